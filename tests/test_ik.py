"""Resolved-rate control: its Jacobian is MuJoCo's, and the tip goes where it is sent."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import sims
from sims import robots
from sims.core import ik
from sims.tasks.scene.tabletop import polar_to_table


@pytest.mark.parametrize("robot", sims.ROBOTS)
def test_ik_small_step_moves_the_tip(robot: str) -> None:
    env = sims.make("reach", 64, seed=1, robot=robot)
    env.reset()
    v, move = env.views, np.random.default_rng(0).uniform(-1e-3, 1e-3, (64, 3))
    room = np.full((64, v.qpos.shape[1]), np.inf)
    before = v.tip.copy()
    v.qpos[:] += ik.joint_step(v.anchor, v.axis, v.tip, v.pointing, move, (-room, room))
    env.batch.forward(stage=mujoco.mjtStage.mjSTAGE_POS)
    assert np.abs(v.tip - before - move).max() < 2e-4


@pytest.mark.parametrize("robot", sims.ROBOTS)
def test_jacobian_matches_mujoco(robot: str) -> None:
    env = sims.make("reach", 4, seed=2, robot=robot)
    env.reset()
    v, arm = env.views, robots.get(robot)
    data = mujoco.MjData(env.model)
    dofs = [env.model.joint(name).dofadr[0] for name in arm.joints]
    for row, state in enumerate(env.state()):
        mujoco.mj_setState(env.model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_forward(env.model, data)
        theirs = np.empty((3, env.model.nv))
        mujoco.mj_jacSite(env.model, data, theirs, None, env.model.site(arm.tool_site).id)
        ours = np.cross(v.axis[row], v.tip[row] - v.anchor[row])
        assert np.abs(ours - theirs[:, dofs].T).max() < 1e-9


@pytest.mark.parametrize("robot", sims.ROBOTS)
def test_ik_places_the_tip_within_joint_limits(robot: str) -> None:
    env = sims.make("reach", 32, seed=3, robot=robot)
    env.reset()
    rng, place = np.random.default_rng(0), robots.get(robot).workspace
    target = np.column_stack(
        [
            polar_to_table(
                place, rng.uniform(*place.reach, 32), rng.uniform(-1, 1, 32) * place.sector
            ),
            rng.uniform(0.02, 0.08, 32),
        ]
    )
    env.task.place_tip(env.views, np.arange(32), target)
    env.batch.forward()
    low, high = robots.get(robot).joint_range.T
    assert np.linalg.norm(env.views.tip - target, axis=1).max() < 1e-3
    assert (env.views.qpos >= low - 1e-9).all() and (env.views.qpos <= high + 1e-9).all()
    assert (env.views.pointing[:, 2] < -0.95).all()  # still a tool that points down


def test_ik_compensates_for_a_joint_at_its_limit() -> None:
    # Three parallel hinges in a row, the third at its limit: two can still reach sideways.
    anchor = np.array([[[0.0, 0, 0], [0.1, 0.0, 0], [0.2, 0.05, 0]]])
    axis, tip = np.tile([0.0, 0, 1], (1, 3, 1)), np.array([[0.3, 0.0, 0.0]])
    move, down = np.array([[0.0, 1e-3, 0.0]]), np.array([[0.0, 0.0, -1.0]])
    room = np.full((1, 3), np.inf)
    room[0, 2] = 0.0
    step = ik.joint_step(anchor, axis, tip, down, move, (-room, room))
    moved = (np.cross(axis, tip[:, None] - anchor) * step[..., None]).sum(axis=1)
    assert step[0, 2] == 0.0
    assert np.abs(moved - move).max() < 1e-4
