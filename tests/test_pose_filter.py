"""What is known of objects that tremble in a picture, or are in none."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from real_robot.perception.base import MergedPerception, Pose
from real_robot.perception.occlusion import CLOSE, OcclusionBound
from real_robot.perception.pose_filter import PoseKalmanFilter
from real_robot.sim.scene import SimScene
from sims import make_task
from sims.core.pose_filter import kalman_update

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])
NOISE = 0.002  # m
LOOK = 0.05  # s between two looks


def _follow(truth: np.ndarray, seed: int = 0) -> np.ndarray:
    """Errors (T,) m along ``truth`` (T, 3) m of what Steady makes of noisy looks at it."""
    rng, steady, errors = np.random.default_rng(seed), PoseKalmanFilter(NOISE, 0.001), []
    for k, pos in enumerate(truth):
        seen = Pose(pos + rng.normal(0.0, NOISE, 3), LEVEL, k * LOOK)
        errors.append(np.linalg.norm(steady.take({"cube": seen})["cube"].pos - pos))
    return np.array(errors)


def test_pose_filter_reduces_noise_at_rest() -> None:
    errors = np.array([_follow(np.full((60, 3), 0.2), seed)[20:] for seed in range(20)])
    look = NOISE * np.sqrt(3)
    assert np.sqrt((errors**2).mean()) < 0.45 * look


def test_pose_filter_follows_a_push() -> None:
    still, way = np.zeros((20, 3)), np.zeros((20, 3))
    way[:, 0] = 0.01 * np.arange(1, 21)  # 0.2 m/s
    errors = np.array([_follow(np.concatenate([still, way]), seed)[20:] for seed in range(20)])
    assert np.median(errors[:, 0]) < 0.008 and np.median(errors[:, 1:]) < 0.006


def test_pose_filter_ignores_repeated_measurements() -> None:
    steady = PoseKalmanFilter(NOISE, 0.001)
    steady.take({"cube": Pose(np.zeros(3), LEVEL, 0.0)})
    seen = {"cube": Pose(np.full(3, 0.002), -LEVEL, 0.1)}
    once = steady.take(seen)["cube"]
    assert np.array_equal(steady.take(seen)["cube"].pos, once.pos) and once.t == 0.1
    np.testing.assert_allclose(once.quat, LEVEL)  # -q is the same turn
    assert steady.take({})["cube"].t == 0.1  # unseen: as it was, and growing old


def test_pose_filter_is_batch_independent() -> None:
    rng, ours = np.random.default_rng(0), [PoseKalmanFilter(NOISE, 0.001) for _ in range(6)]
    looks = rng.normal(0.0, NOISE, (30, 6, 3))
    looks[15:, :3] += 0.05  # half of them are moved
    known, variance = looks[0], np.full(6, NOISE**2)
    for steady, look in zip(ours, looks[0], strict=True):
        steady.take({"cube": Pose(look, LEVEL, 0.0)})
    for t in range(1, 30):
        known, variance, _ = kalman_update(known, variance, looks[t], LOOK, NOISE, 0.001)
        for row, steady in enumerate(ours):
            pose = steady.take({"cube": Pose(looks[t, row], LEVEL, t * LOOK)})["cube"]
            np.testing.assert_allclose(pose.pos, known[row], atol=1e-12)


class _Eyes:
    def __init__(self, **poses: Pose):
        self.poses = poses

    def read(self) -> Mapping[str, Pose]:
        return self.poses


def test_newest_camera_measurement_wins() -> None:
    old, new = Pose(np.zeros(3), LEVEL, 1.0), Pose(np.ones(3), LEVEL, 2.0)
    both = MergedPerception([_Eyes(cube=old, ball=new), _Eyes(cube=new, can=old)]).read()
    assert {name: pose.t for name, pose in both.items()} == {"cube": 2.0, "ball": 2.0, "can": 1.0}


@pytest.mark.parametrize("arm", ["so101", "ur5e"])
def test_occlusion_bound_grows_only_near_the_arm(arm) -> None:
    task = make_task("reach", robot=arm)
    scene, hidden = SimScene(task, 3), OcclusionBound(task)
    home = scene.qpos[scene.arm.qpos].copy()
    poses = {name: Pose(*pose, 0.0) for name, pose in scene.poses().items()}
    tip = scene.batch.site(scene.robot.tool_site).xpos[0].copy()
    poses["red_cube"] = Pose(tip, LEVEL, 0.0)
    poses["blue_ball"] = Pose(tip + [0.0, 0.05, 0.0], LEVEL, 0.0)  # next to the cube
    poses["green_cylinder"] = Pose(tip + [0.0, 0.05 + 0.05 + 2 * CLOSE, 0.0], LEVEL, 0.0)
    hidden.observe(home, 0.0, poses)
    hidden.observe(home + 0.01, 0.0, poses)
    doubt = dict(hidden.doubt)
    assert doubt["green_cylinder"] == 0.0
    assert 0.0 < doubt["red_cube"] == doubt["blue_ball"] < 0.05
    hidden.observe(home + 0.01, 0.0, poses)  # the arm rests
    assert hidden.doubt == doubt
    seen = poses | {"red_cube": poses["red_cube"]._replace(t=0.1)}
    hidden.observe(home + 0.02, 0.0, seen)
    assert hidden.doubt["red_cube"] == 0.0 and hidden.doubt["blue_ball"] > doubt["blue_ball"]
