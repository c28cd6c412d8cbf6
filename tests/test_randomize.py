"""Randomised rows: drawn per row, reproducible, undone at width 0."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest

import sims
from reward_models.goals import parse
from robo_rl.evaluation.evaluate import evaluate
from robo_rl.goals.goal_task import make_goal_task
from sims import BatchEnv
from sims.core.task import ObsPart, Task
from sims.randomization.domain_randomization import Randomize, RandomizedEnv, curriculum_width

Array = np.ndarray

NOTHING = {f.name: 0.0 for f in dataclasses.fields(Randomize) if f.name not in ("width", "told")}
TOLD = "then(above(gripper, red_cube), moved(blue_ball, left=3cm), touch(gripper, red_cube))"
NAMES = pytest.mark.parametrize("name", ("reach", "push", "hopper", "ant", TOLD))


def only(told: bool = False, **given: float) -> Randomize:
    return Randomize(**(NOTHING | given), told=tuple(given) if told else ())


def task_of(name: str) -> Task:
    """The task of that name, or one with that formula for its goal."""
    known = name in sims.TASKS
    return sims.make_task(name) if known else make_goal_task(sims.make_task("push"), parse(name))


def made(name: str, n: int = 8, randomize: Randomize | None = None, **options: object):
    return RandomizedEnv(
        task_of(name), n, randomize=randomize or Randomize(), **{"seed": 3} | options
    )


def actions(env: BatchEnv, steps: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, (steps, env.num_envs, env.act_dim))


@NAMES
def test_scale_0_equals_the_plain_simulator(name: str) -> None:
    plain, env = BatchEnv(task_of(name), 4, seed=3), made(name, 4, randomize=Randomize(width=0.0))
    assert (plain.reset() == env.reset()).all()
    for action in actions(env, 15):
        mine, theirs = env.step(action), plain.step(action)
        assert (mine.obs == theirs.obs).all()
        np.testing.assert_array_equal(mine.reward, theirs.reward)
        done = mine.terminated | mine.truncated
        assert (env.reset(done) == plain.reset(done)).all()
    assert (env.render() == plain.render()).all()


@NAMES
def test_randomized_env_alone_equals_the_env_in_a_batch(name: str) -> None:
    wide, alone = made(name), made(name, 1, rows=[5])
    assert (wide.reset()[5] == alone.reset()[0]).all()
    for action in actions(wide, 18):
        many, one = wide.step(action), alone.step(action[5:6])
        assert (many.obs[5] == one.obs[0]).all()
        np.testing.assert_array_equal(many.reward[5], one.reward[0])
        assert (wide.state()[5] == alone.state()[0]).all()
        done = many.terminated | many.truncated
        wide.reset(done)
        alone.reset(done[5:6])
    assert (wide.render(np.array([5])) == alone.render()).all()


def test_randomized_models_vary_by_env_and_episode_in_range() -> None:
    env = made("reach", 64, only(mass=0.3, friction=0.4, damping=0.5, gain=0.1))
    env.reset()
    base, batch = env.model, env.batch
    pairs = {
        0.3: (batch.expanded("body_mass")[:, 1:], base.body_mass[1:]),
        0.4: (batch.expanded("geom_friction")[:, :, 0], base.geom_friction[:, 0]),
        0.1: (batch.expanded("actuator_gainprm")[:, :, 0], base.actuator_gainprm[:, 0]),
    }
    for half, (rows, model) in pairs.items():
        share = rows[:, model > 0] / model[model > 0]
        assert share.min() > 1 - half - 1e-9 and share.max() < 1 + half + 1e-9
        assert share.std(axis=0).min() > 0.4 * half / np.sqrt(3)
    before = batch.expanded("body_mass").copy()
    env.reset(np.arange(64) == 7)
    changed = (batch.expanded("body_mass") != before).any(axis=1)
    assert changed.tolist() == [row == 7 for row in range(64)]
    # What MuJoCo derives from masses follows them.
    total = batch.expanded("body_subtreemass")[:, 0]
    np.testing.assert_allclose(total, batch.expanded("body_mass").sum(axis=1))


def test_randomized_physics_differs_and_success_is_exact() -> None:
    env, plain = made("push", 16, only(mass=0.5, friction=0.9)), sims.make("push", 16, seed=3)
    env.reset()
    plain.reset()
    for action in actions(env, 20):
        env.step(action)
        plain.step(action)
    nq = env.model.nq
    assert (env.batch.qpos[:, :nq] != plain.batch.qpos).any(axis=1).all()
    goal = env.task.goals()[env.task.goal]
    assert (env.step(actions(env, 1)[0]).info["success"] == goal.success(env.views)).all()


def between(past: list[Array], t: int, late: Array) -> Array:
    """(N, m) of ``past``, ``late`` (N,) steps before t; before the first, nothing."""
    padded = [np.zeros_like(past[0])] * 4 + past
    newer = np.floor(late).astype(int)
    rows, share = np.arange(len(late)), (late - newer)[:, None].astype(past[0].dtype)
    first, second = np.stack(padded)[4 + t - newer, rows], np.stack(padded)[3 + t - newer, rows]
    return (1 - share) * first + share * second


def test_action_delay_is_a_fraction_of_a_step() -> None:
    env, plain = made("hopper", 32, only(action_delay=2.0)), sims.make("hopper", 32, seed=3)
    env.reset()
    plain.reset()
    late = env._drawn[:, env._part["action_delay"]][:, 0]
    assert 0 <= late.min() < 0.3 and 1.7 < late.max() < 2
    given = list(actions(env, 6))
    for step, action in enumerate(given):
        env.step(action)
        plain.step(between(given, step, late))
        assert (env.batch.qpos == plain.batch.qpos).all()


def test_actions_beyond_their_range_act_like_its_ends() -> None:
    """Also with a delay, which mixes an action with the one before."""
    inside, beyond = made("reach"), made("reach")
    for env in (inside, beyond):
        env.reset()
    for action in np.sign(actions(inside, 5)):
        np.testing.assert_array_equal(inside.step(action).obs, beyond.step(1.5 * action).obs)


def test_observations_are_delayed_and_noisy_but_not_the_state() -> None:
    env, plain = made("reach", 32, only(obs_delay=1.0)), sims.make("reach", 32, seed=3)
    seen, true = [env.reset()], [plain.reset()]
    for action in actions(env, 5):
        seen.append(env.step(action).obs)
        true.append(plain.step(action).obs)
    late = env._drawn[:, env._part["obs_delay"]][:, 0]
    assert 0 <= late.min() < 0.2 and 0.8 < late.max() < 1
    for t in range(1, 6):
        assert (seen[t] == between(true, t, late)).all()
    noisy = made("hopper", 128, only(obs_noise=0.02))
    plain = sims.make("hopper", 128, seed=3)
    gap = noisy.reset() - plain.reset()
    for action in actions(noisy, 20):
        gap = np.concatenate([gap, noisy.step(action).obs - plain.step(action).obs])
    assert gap.std() == pytest.approx(0.02, rel=0.02) and abs(gap.mean()) < 1e-3
    assert np.abs(np.corrcoef(gap[:512].T) - np.eye(noisy.obs_dim)).max() < 0.35
    assert (noisy.batch.qpos == plain.batch.qpos).all()


ARM_TASKS = ("reach", "stack", "drawer", "button", "drawer_then_place")


@pytest.mark.parametrize("name", ARM_TASKS)
def test_all_columns_of_a_position_share_its_error(name: str) -> None:
    """Columns that say one thing twice stay in step, however wrong what was sensed is."""
    env = made(name, 6, Randomize(obs_delay=0.0))
    obs = env.reset()
    for action in actions(env, 12):
        obs = env.step(action).obs
    column = {
        key: [i for i, n in enumerate(env.obs_names) if n.startswith(f"{key}[")]
        for key in ("thing", "tip", "tip_to_thing", "qpos", "lag")
    }
    if column["thing"]:
        things = obs[:, column["thing"]].reshape(6, -1, 3) / 4.0
        ways = obs[:, column["tip_to_thing"]].reshape(6, -1, 3)
        told = things - obs[:, None, column["tip"]] / 4.0
        np.testing.assert_allclose(ways / (4.0 if name == "reach" else 10.0), told, atol=1e-6)
        truth = np.stack(env.views.thing_pos, axis=1)
        off = np.linalg.norm(things - truth, axis=-1)
        assert 0.0003 < np.median(off) < 0.01
    goal = obs[:, column["lag"]] / 5.0 + obs[:, column["qpos"]]
    np.testing.assert_allclose(goal, env.views.ctrl, atol=1e-6)  # what was commanded is known


@pytest.mark.parametrize("name", ("reach", "drawer"))
def test_tip_error_follows_joint_errors(name: str) -> None:
    env, other = made(name, 6, only(joint_zero=0.02)), sims.make(name, 6, seed=3)
    env.reset()
    other.reset()
    for action in actions(env, 5):
        seen = env.step(action).obs
    state = env.batch.state.copy()
    other.set_state(state)
    other.views.qpos[:] += env._drawn[:, env._part["joint_zero"]]
    other.batch.forward()
    told = np.concatenate(list(other.task.obs(other.views).values()), axis=1)
    true = np.concatenate(list(env.task.obs(env.views).values()), axis=1)
    assert np.abs(true - seen).max() > 0.01
    np.testing.assert_allclose(seen, told, atol=0.006)  # but for what is not linear


def test_bias_lasts_an_episode_and_noise_a_measurement() -> None:
    env = made("reach", 64, only(pose_bias=0.004))
    thing = [i for i, n in enumerate(env.obs_names) if n.startswith("thing[")]

    def errors(steps: int) -> Array:  # (T, N, 9) m
        rest = np.zeros((64, 3))
        seen = [
            (env.step(rest).obs[:, thing], np.stack(env.views.thing_pos, 1)) for _ in range(steps)
        ]
        return np.stack([obs / 4.0 - true.reshape(64, -1) for obs, true in seen])

    env.reset()
    off = errors(10)
    assert np.abs(off.mean(axis=0)).max() > 0.0035 and np.abs(off - off[0]).max() < 1e-5
    env.reset()
    assert np.abs(errors(1) - off[0]).max() > 0.001  # another episode, another bias
    env = made("reach", 64, only(pose_noise=0.004, pose_lost=0.2))
    env.reset()
    off = errors(24)
    assert np.sqrt((off[-6:] ** 2).mean()) < 0.5 * 0.004  # things at rest, looked at many times


def test_dropped_measurement_keeps_the_last_position() -> None:
    env = made("push", 32, only(pose_lost=9.0))
    thing = [i for i, n in enumerate(env.obs_names) if n.startswith("thing[")]
    first = env.reset()[:, thing]
    env.batch.qpos[:, -14] += 0.05  # someone moves one
    assert np.abs(env.step(np.zeros((32, 3))).obs[:, thing] - first).max() < 1e-6


def test_masked_reset_keeps_other_envs_observations() -> None:
    env = made("reach", 8)
    env.reset()
    for action in actions(env, 5):
        before = env.step(action).obs
    mask = np.arange(8) % 3 == 0
    after = env.reset(mask)
    assert (after[~mask] == before[~mask]).all() and (after[mask] != before[mask]).any(axis=1).all()


@pytest.mark.parametrize("field", ("camera_pos", "camera_turn", "fovy", "light", "colour"))
def test_randomized_appearance_is_part_of_the_state(field: str) -> None:
    env = made("reach", 3, only(**{field: 0.2}))
    env.reset()
    plain = sims.make("reach", 3)
    nstate = plain.nstate
    frames, clean = env.render(), plain.render_states(env.state()[:, :nstate])
    for row in range(3):
        assert (frames[row] != clean[row]).mean() > 0.05
    states = env.state()
    env.reset()
    assert (env.render() != frames).any()
    assert (env.render_states(states) == frames).all()  # any time later
    with pytest.raises(ValueError, match=r"states must have shape \(n, \d+\), got"):
        env.render_states(states[:, :nstate])


def test_stored_state_restores_its_randomized_model() -> None:
    env, other = made("hopper", 6), made("hopper", 6, seed=99)
    env.reset()
    for action in actions(env, 9):
        env.step(action)
    # What is on its way at that moment is not in a row: let it arrive.
    other.reset()
    other.set_state(env.state())
    assert (other.state() == env.state()).all()
    zero = np.zeros((6, 3))
    late = made("hopper", 6, Randomize(action_delay=0.0))
    late.reset()
    for action in actions(late, 9):
        late.step(action)
    twin = made("hopper", 6, Randomize(action_delay=0.0), seed=99)
    twin.reset()
    twin.set_state(late.state())
    for _ in range(5):
        late.step(zero)
        twin.step(zero)
        assert (late.state() == twin.state()).all()


@pytest.mark.parametrize(
    ("robot", "softest", "stiffest"), [("so101", 10.0, 998.22), ("ur5e", 200.0, 2500.0)]
)
def test_randomized_servo_stiffness_is_in_the_known_range(
    robot: str, softest: float, stiffest: float
) -> None:
    task = sims.make_task("reach", robot=robot)
    env = RandomizedEnv(task, 512, randomize=only(soft=1.0), seed=3)
    env.reset()
    gain = env.batch.expanded("actuator_gainprm")[:, :, 0]
    bias = env.batch.expanded("actuator_biasprm")
    own = env.model.actuator_gainprm[:, 0]
    arm = gain[:, env._servos.ids]
    assert softest <= arm.min() < 1.1 * softest and 0.9 * stiffest < arm.max() <= stiffest
    way = np.log(stiffest / arm[:, 0]) / np.log(stiffest / softest)
    assert abs(np.median(way) - 0.25) < 0.08  # most are not far from their own
    assert (arm.max(axis=0) <= own[env._servos.ids]).all()  # none is stiffer than its own
    np.testing.assert_allclose(bias[:, :, 1], -gain)  # it holds where it is told
    np.testing.assert_allclose(
        bias[:, :, 2], env.model.actuator_biasprm[:, 2] * np.sqrt(gain / own), rtol=1e-9
    )
    others = np.setdiff1d(np.arange(env.model.nu), env._servos.ids)
    assert (gain[:, others] == own[others]).all()  # jaws that slide, and what is no servo


def test_known_conditions_are_equal_in_every_env() -> None:
    """Delays and softness at their end, biases of that size to either side."""
    task = sims.make_task("reach", robot="so101")
    servos = RandomizedEnv(task, 1, randomize=only(soft=1.0))._servos
    told = only(True, soft=servos.softness_of(30.0), obs_delay=0.4, pose_bias=0.002)
    env = RandomizedEnv(task, 64, randomize=told, seed=3)
    env.reset()
    np.testing.assert_allclose(env.batch.expanded("actuator_gainprm")[:, servos.ids, 0], 30.0)
    assert (env._drawn[:, env._part["obs_delay"]] == 0.4).all()
    bias = env._drawn[:, env._part["pose_bias"]]
    assert set(np.unique(bias)) == {-0.002, 0.002}


def test_task_without_observation_parts_cannot_be_randomized() -> None:
    reach = sims.make_task("reach")

    class Untold(type(reach)):
        def obs(self, v: Any) -> dict[str, np.ndarray]:
            return reach.obs(v)

        def obs_parts(self) -> dict[str, tuple[ObsPart, ...]]:
            return {}

    with pytest.raises(
        ValueError, match=r"cannot be randomised: the task does not declare .* \(obs_parts\)"
    ):
        RandomizedEnv(Untold(), 2, randomize=Randomize(width=0.5))
    assert RandomizedEnv(Untold(), 2, randomize=Randomize(width=0.0)).num_envs == 2
    told = make_goal_task(Untold(), parse("touch(gripper, red_cube)"))
    with pytest.raises(ValueError, match="cannot be randomised"):
        RandomizedEnv(told, 2, randomize=Randomize(width=0.5))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("drawer_then_place", "then(open(drawer), inside(red_cube, drawer))"),
        ("peg", "inserted(peg, hole)"),
        ("button", "pressed(button)"),
        ("tabletop", "on(red_cube, white_plate)"),
    ],
)
def test_estimated_state_keeps_last_measured_positions(name: str, text: str) -> None:
    """Loose things, furniture, and what slides in it; and nothing that is seen moves."""
    task = make_goal_task(sims.make_task(name, robot="so101"), parse(text))
    env = RandomizedEnv(task, 8, randomize=Randomize(pose_bias=0.01), seed=3)
    sensing, seen = env._sensing, env._believed._batch
    _ = seen.xpos, seen.xaxis  # kept from here on
    env.reset()
    for action in actions(env, 12):
        env.step(action)
    slides = {own: (joint, root) for joint, own, root in sensing._slides}
    for k, body in enumerate(sensing.bodies):
        off = seen.xpos[:, body] - sensing.known[:, k]
        if k in slides:  # how far out it is, of what carries it
            off = np.einsum("nx,nx->n", off, seen.xaxis[:, slides[k][0]])
        np.testing.assert_allclose(off, 0.0, atol=1e-9)
        assert np.abs(seen.xpos[:, body] - env.batch.xpos[:, body]).max() > 0.003
    assert len(sensing.bodies) >= len(task.entities()) - 1
    still = np.setdiff1d(np.arange(env.model.nv), _arm_dofs(env))
    assert (seen.qvel[:, still] == 0.0).all() and (env.batch.qvel[:, still] != 0.0).any() == (
        len(still) > 0
    )


def _arm_dofs(env: RandomizedEnv) -> Array:
    """Those of whatever is seen by its own encoders."""
    root = env.model.body(sims.ROBOTS["so101"].base_body).rootid[0]
    return np.flatnonzero(env.model.body_rootid[env.model.dof_bodyid] == root)


@NAMES
def test_randomized_state_dict_resumes_bit_for_bit(name: str) -> None:
    env, other = made(name), made(name, seed=99)
    env.reset()
    chosen = actions(env, 24)
    for action in chosen[:10]:
        env.step(action)
    other.load_state_dict(env.state_dict())
    for action in chosen[10:]:
        one, two = env.step(action), other.step(action)
        assert (one.obs == two.obs).all()
        np.testing.assert_array_equal(one.reward, two.reward)
        done = one.terminated | one.truncated
        assert (env.reset(done) == other.reset(done)).all()
    with pytest.raises(ValueError, match="saved without randomisation"):
        other.load_state_dict(BatchEnv(task_of(name), 8).state_dict())


def test_evaluation_under_randomization_uses_ground_truth() -> None:
    task, seen = sims.make_task("reach", goal="touch_red_cube"), []
    names = sims.make("reach", 1).obs_names
    way = [i for i, n in enumerate(names) if n.startswith("tip_to_thing[")][:3]

    def act(obs: Array) -> Array:
        seen.append(obs)
        return np.clip(10.0 * obs[:, way], -1, 1)

    plain = evaluate(task, act, episodes=6, seed=5)
    true = seen.copy()
    seen.clear()
    spread = evaluate(task, act, episodes=6, seed=5, randomize=0.9)
    assert 0 < np.abs(seen[0] - true[0]).max() < 0.5  # the same starts, seen with errors
    assert spread.episodes == plain.episodes and spread.distance_median != plain.distance_median
    assert plain.success > 0.5 and "seed 5; doing" in plain.line()
    assert "seed 5, rows randomised by 0.9; doing nothing" in spread.line()


def test_randomization_curriculum_reaches_full_scale_halfway() -> None:
    randomize = Randomize(width=0.8)
    assert [curriculum_width(randomize, share) for share in (0, 0.25, 0.5, 1)] == [0, 0.4, 0.8, 0.8]
    env = made("reach", 64, only(mass=0.5))
    for width in (0.2, 1.0):
        env.width = width
        env.reset()
        share = env.batch.expanded("body_mass")[:, 1:] / env.model.body_mass[1:]
        assert np.abs(share - 1).max() == pytest.approx(0.5 * width, rel=0.1)


def test_invalid_randomization_ranges_are_refused() -> None:
    with pytest.raises(ValueError, match=r"mass must be in \[0, 10\), got -0.1"):
        Randomize(mass=-0.1)
    with pytest.raises(ValueError, match=r"width 3 times friction 0.4 is a share of 1.20"):
        Randomize(width=3, mass=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ("reach", "hopper", "humanoid"))
def test_randomization_costs_at_most_ten_percent(name: str) -> None:
    envs = [sims.make(name, 256, num_threads=1), made(name, 256, num_threads=1)]
    costs: list[list[float]] = [[], []]
    chosen = actions(envs[0], 30)
    for _ in range(5):
        for env, cost in zip(envs, costs, strict=True):
            env.reseed(0)
            env.reset()
            begun = time.process_time()
            for action in chosen:
                env.step(action)
            cost.append(time.process_time() - begun)
    assert np.median(costs[1]) < 1.1 * np.median(costs[0])
