"""All goals of a task at once: each row is judged by its own, and is told which; hindsight."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from reach_bundle import write

import sims
from real_robot.core.arm_layout import robot_of
from real_robot.core.driver import RobotState
from real_robot.perception.base import Pose
from real_robot.policy.bundle import PolicyBundle
from real_robot.policy.twin import Twin
from reward_models.base import Segment
from reward_models.vision.distillation import DistillConfig
from robo_rl.bundles.retarget import set_bundle_goal
from robo_rl.cli import main
from robo_rl.commands.teleop import TeleopCommand
from robo_rl.config.train_config import TrainConfig
from robo_rl.goals.bundle_task import task_of_bundle
from robo_rl.goals.reading import NotRead, all_goals, known_goal, single_goal
from robo_rl.learners import EnsembleConfig, IQLConfig, SACConfig
from robo_rl.learners.hindsight import HindsightReplayBuffer
from robo_rl.learners.learner import make_learner
from robo_rl.rewards import ClipConfig, make_reward
from robo_rl.rollout.vec_env import SB3VecEnv
from robo_rl.training.train import train
from robo_rl.vision.distilled_scene import SceneConfig
from sims import BatchEnv
from sims.core.multi_goal import ANY, ASKED, MultiGoalTask
from sims.envs.demonstrations import DemoConfig, write_demos
from sims.randomization.domain_randomization import Randomize, RandomizedEnv

Array = np.ndarray
# No test here is of how observations are scaled, which would be measured all over the workspace.
TINY = {"net": (16,), "buffer_size": 400, "normalise_obs": False}


def rows(task: str = "reach", n: int = 48, **options: Any) -> BatchEnv:
    env = sims.make(task, n, seed=4, goal=ANY, **options)
    env.reset()
    return env


@pytest.mark.parametrize("name", ["reach", "push", "drawer", "hopper", "humanoid", "ant"])
def test_each_env_of_any_goal_matches_an_env_with_that_goal_only(name: str) -> None:
    env = rows(name, n=32)
    begun, asked = env.state(), env.views.goal_asked.copy()
    assert len(set(asked)) > 0.6 * len(env.task.keys)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (12, env.num_envs, env.act_dim))
    env.set_state(begun)  # as the others are put there
    mine = [env.step(action) for action in actions]
    for k in sorted(set(asked)):
        alone, turn = sims.make(name, env.num_envs, seed=4, goal=env.task.keys[k]), asked == k
        alone.reset()
        spread = alone.state().std(axis=0)
        off = np.abs(begun[turn].mean(axis=0) - alone.state().mean(axis=0))
        assert (off <= 4 * spread / np.sqrt(turn.sum()) + 1e-9).all()  # begun as it begins
        alone.set_state(np.where(turn[:, None], begun, alone.state()))
        for action, step in zip(actions, mine, strict=True):
            its = alone.step(action)
            for what in ("success", "terminated"):
                one, other = (
                    x.info["success"] if what == "success" else x.terminated for x in (its, step)
                )
                np.testing.assert_array_equal(one[turn], other[turn])
            np.testing.assert_array_equal(its.info["success"][turn], step.info["reached"][turn, k])
            np.testing.assert_allclose(its.reward[turn], step.reward[turn], atol=1e-6)
            # An ant's contact forces are settled once more where a wave is counted beside it.
            width = 27 if name == "ant" else its.obs.shape[1]
            np.testing.assert_array_equal(its.obs[turn, :width], step.obs[turn, :width])
            columns = np.eye(len(env.task.keys))[asked]
            np.testing.assert_array_equal(step.obs[:, its.obs.shape[1] :], columns)


def test_goal_sampling_is_uniform_whichever_goal_holds_at_reset() -> None:
    env = rows("drawer", n=2_000)
    assert abs(env.views.goal_asked.mean() - 0.5) < 0.05


def test_any_goal_env_works_in_gymnasium() -> None:
    one, several = (
        gymnasium.make("robo/Reach-v0", goal=ANY),
        gymnasium.make_vec("robo/Reach-v0", 4, goal=ANY),
    )
    for env, shape in ((one, (15,)), (several, (4, 15))):
        env.reset(seed=0)
        info = env.step(env.action_space.sample())[4]
        assert info["reached"].shape == shape
        env.close()


def test_any_goal_state_restores_the_goal_and_no_reset_meets_it() -> None:
    env, other = rows(n=256), rows(n=256)
    env.reset()
    assert not env.held.any() and not env._goal.success(env.views).any()
    other.load_state_dict(env.state_dict())
    np.testing.assert_array_equal(other.views.goal_asked, env.views.goal_asked)
    assert (np.bincount(env.views.goal_asked) > 4).all()  # of 256 rows, 15 goals


@pytest.mark.parametrize("width", [0.0, 1.0])
def test_goal_observation_is_exact_under_sensor_noise(width: float) -> None:
    env = RandomizedEnv(rows().task, 16, seed=5, randomize=Randomize(width=width))
    env.reset()
    for _ in range(5):
        obs = env.step(np.zeros((16, env.act_dim))).obs
    true = np.concatenate(list(env.task.obs(env.views).values()), axis=1)
    np.testing.assert_array_equal(obs[:, -15:], np.eye(15)[env.views.goal_asked])
    assert (np.abs(obs - true).max() > 1e-3) == bool(width)


def test_expert_solves_every_goal() -> None:
    env, rng = rows(n=60), np.random.default_rng(0)
    for _ in range(env.max_steps):
        step = env.step(env.task.expert(env.views, rng))
    assert step.info["success"].mean() > 0.95


# ---- hindsight


def filled(
    steps: int, size: int, n_steps: int = 3, n: int = 6, name: str = "reach"
) -> HindsightReplayBuffer:
    """A buffer of steps as SB3 adds them, an arm's of its expert, in episodes of 1 s."""
    task = sims.make_task(name, goal=ANY)
    task = dataclasses.replace(task, episode_s=1.0) if task.has_expert else task
    env = SB3VecEnv(BatchEnv(task, n, seed=1, sparse=True))
    columns = np.flatnonzero([name.startswith(ASKED) for name in env.sim.obs_names])
    buffer = HindsightReplayBuffer(
        size * n,
        env.observation_space,
        env.action_space,
        "cpu",
        n_envs=n,
        env=env,
        columns=columns,
        hindsight=0.5,
        n_steps=n_steps,
        gamma=0.9,
    )
    rng, obs = np.random.default_rng(0), env.reset()
    for _ in range(steps):
        known = task.expert(env.sim.views, rng) if task.has_expert else 1.0  # a body falls so
        action = np.clip(known + rng.normal(0, 0.5, (n, task.act_dim)), -1, 1)
        after, reward, done, infos = env.step(action)
        next_obs = after.copy()
        for i in np.flatnonzero(done):
            next_obs[i] = infos[i]["terminal_observation"]
        buffer.add(obs, next_obs, action, reward, done, infos)
        obs = after
    return buffer


def found(buffer: HindsightReplayBuffer, obs: Array) -> tuple[int, int]:
    """Where a transition is kept whose observation is ``obs``, but for its goal."""
    plain = np.delete(np.arange(buffer.observations.shape[-1]), buffer.columns)
    same = (buffer.observations[..., plain] == obs[plain]).all(axis=-1)
    ((at,), (row,)) = np.nonzero(same)
    return at, row


@pytest.mark.parametrize(("steps", "size"), [(55, 100), (130, 64)])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_hindsight_reward_is_success_of_the_relabelled_goal(
    steps: int, size: int, n_steps: int
) -> None:
    buffer = filled(steps, size, n_steps)
    batch = buffer._sample_hindsight(400)
    another = 0
    for i in range(400):
        obs, after = batch.observations[i].numpy(), batch.next_observations[i].numpy()
        told_ = obs[buffer.columns]
        goal = int(told_.argmax())
        assert sorted(told_) == [0.0] * (len(buffer.columns) - 1) + [1.0]
        np.testing.assert_array_equal(after[buffer.columns], told_)
        at, row = found(buffer, obs)
        another += buffer.observations[at, row, buffer.columns[goal]] == 0.0
        # By hand: step by step until the episode, the n steps or what is known is over.
        paid, steps_made, k = 0.0, 0, at
        while True:
            paid += 0.9**steps_made * buffer.reached[k, row, goal]
            steps_made += 1
            newest = k == (buffer.pos - 1) % buffer.buffer_size
            if steps_made == n_steps or buffer.dones[k, row] or newest:
                break
            k = (k + 1) % buffer.buffer_size
        assert batch.rewards[i].item() == pytest.approx(paid, abs=1e-6)
        assert batch.discounts[i].item() == pytest.approx(0.9**steps_made, abs=1e-6)
        last = np.delete(buffer.next_observations[k, row], buffer.columns)
        np.testing.assert_array_equal(np.delete(after, buffer.columns), last)
        assert batch.dones[i].item() == 0.0  # an arm's episodes are cut short, they do not end
    assert another > 200


@pytest.mark.parametrize("before", range(4))
def test_hindsight_keeps_termination(before: int) -> None:
    buffer = filled(150, 200, 3, 24, "hopper")
    at, row = np.nonzero(buffer.dones * (1.0 - buffer.timeouts))
    assert len(at) > 2 and at.min() > 3
    step = at - before
    batch = buffer._relabelled(step, row, buffer.ended[step, row], np.zeros(len(at), int))
    np.testing.assert_array_equal(batch.dones[:, 0], float(before < 3))
    np.testing.assert_allclose(batch.discounts[:, 0], 0.9 ** min(before + 1, 3), rtol=1e-6)


def test_hindsight_samples_reached_goals_including_rare_ones() -> None:
    buffer = filled(100, 100)
    batch = buffer._sample_hindsight(4_000)
    goals = batch.observations[:, buffer.columns].argmax(dim=1).numpy()
    for i in range(300):
        at, row = found(buffer, batch.observations[i].numpy())
        episode = [at]
        while not buffer.dones[episode[-1], row]:
            episode.append(episode[-1] + 1)
        asked = buffer.observations[at, row, buffer.columns].argmax()
        assert buffer.reached[episode, row, goals[i]].any() or goals[i] == asked
    held = buffer.reached.mean(axis=(0, 1))
    share = np.bincount(goals, minlength=len(held)) / len(goals)
    rare, frequent = np.where(held > 0, held, 1.0).argmin(), held.argmax()
    assert held[frequent] > 10 * held[rare]
    assert share[rare] / share[frequent] > 5 * held[rare] / held[frequent]


def test_hindsight_shares_batches_and_resumes_identically() -> None:
    buffer, other = filled(130, 64), filled(3, 64)
    other.load_state_dict(buffer.state_dict())
    np.testing.assert_array_equal(other._held, buffer._held)
    drawn = []
    for one in (buffer, other):
        np.random.seed(3)  # noqa: NPY002 - what SB3 draws from
        drawn.append(one.sample(64))
    assert len(drawn[0].rewards) == 64
    for mine, its in zip(*drawn, strict=True):
        np.testing.assert_array_equal(mine.numpy(), its.numpy())


def test_hindsight_batch_uses_the_learners_discount() -> None:
    config = SACConfig(num_envs=8, hindsight=1.0, horizon_s=2.5, **TINY)
    learner = make_learner(config, sims.make("reach", 8, goal=ANY, sparse=True))
    assert learner.buffer.gamma == pytest.approx(config.gamma(0.05)) == learner.algorithm.gamma


@pytest.mark.parametrize("asked", ["touch_blue_ball", ANY])
def test_demonstrations_have_the_goal_that_was_reached(asked: str, tmp_path: Path) -> None:
    """Of one goal, they ask for that; of all, each for its own."""
    path = tmp_path / "demos"
    write_demos(
        sims.make_task("reach", goal=asked), path, DemoConfig(episodes=12, num_envs=4, seed=1)
    )
    config = EnsembleConfig(num_envs=8, demos=str(path), **TINY)
    prior = make_learner(config, sims.make("reach", 8, goal=ANY, sparse=True)).buffer.prior
    goals = prior.obs[:, -15:].argmax(axis=1)
    assert (prior.obs[:, -15:].sum(axis=1) == 1).all()
    assert len(set(goals)) == 1 if asked != ANY else len(set(goals)) > 3
    assert (goals == 5).all() or asked == ANY
    # Who did what was asked ends with it: 1 is paid at the end of nearly each.
    assert prior.reward[prior.last].mean() > 0.8


@pytest.mark.parametrize("distill", [False, True])
def test_clip_reward_of_each_env_uses_its_own_sentence(distill: bool) -> None:
    env = rows("drawer", n=12)
    small = SceneConfig(frames=256, holdout=64, rollouts=0.0, distill=DistillConfig(steps=20))
    settings = ClipConfig(distill=distill, scene=small)
    task, goal = all_goals(sims.make_task("drawer", robot=env.task.robot))
    made = make_reward("clip", goal, env, settings)
    before, asked = env.signals(), env.views.goal_asked.copy()
    env.step(np.zeros((env.num_envs, env.act_dim)))
    after, states = env.signals(), env.state()
    signals = {name: np.stack([before[name], after[name]]) for name in after}
    where = np.ones((1, env.num_envs), bool)

    def frames(camera: str, wanted: Array) -> Array:
        return env.render_states(states[wanted[1]], camera, size=made.model.frame_size)

    segment = Segment(signals, frames, np.zeros((1, env.num_envs, env.act_dim)), where)
    paid = made.model.score(segment).reward[0]
    assert set(asked) == {0, 1} and paid.std() > 0
    for k, key in enumerate(task.keys):
        alone, one = known_goal({"task": "drawer"}, key)
        model = make_reward("clip", one, BatchEnv(alone, 1), settings).model
        np.testing.assert_allclose(paid[asked == k], model.score(segment).reward[0][asked == k])
    said = [f"the gripper touches the handle -> the drawer is {how}" for how in ("open", "closed")]
    assert made.text == "; ".join(said)


def test_any_goal_errors_name_the_available_goals() -> None:
    with pytest.raises(ValueError, match="'lift' has only one goal, lift_cube: remove 'any'"):
        sims.make_task("lift", goal=ANY)
    with pytest.raises(ValueError, match="no goal 'touch_moon'; available: touch_red_cube"):
        MultiGoalTask(inner=sims.make_task("reach"), only="touch_moon")
    with pytest.raises(ValueError, match="offline has one: give --reward clip, task, sparse"):
        train(TrainConfig(task="reach", goal=ANY, reward="offline"))
    config = EnsembleConfig(num_envs=8, hindsight=0.5)
    for env in (sims.make("reach", 8, sparse=True), rows(n=8)):
        with pytest.raises(ValueError, match="give --goal any and --reward sparse"):
            config.check(env)
    with pytest.raises(ValueError, match="trains on --demos only: leave out hindsight"):
        IQLConfig(hindsight=0.5)
    with pytest.raises(ValueError, match="one goal, got --goal any"):
        TeleopCommand(goal=ANY).check()
    with pytest.raises(ValueError, match=r"hindsight must be in \[0, 1\], got 2"):
        EnsembleConfig(hindsight=2.0)
    with pytest.raises(ValueError, match="has one goal, touch_red_cube"):
        single_goal(sims.make_task("reach"), "touch the blue ball")
    task, goal = all_goals(sims.make_task("reach"))
    assert goal.key == task.goal == ANY
    with pytest.raises(NotRead):
        single_goal(task, "open the drawer")


# ---- the whole line


@pytest.fixture(scope="module")
def run(short_video: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A policy of all goals that has hardly learned."""
    tuning = EnsembleConfig(num_envs=16, hindsight=0.5, learning_starts=320, **TINY)
    return train(
        TrainConfig(
            task="reach",
            goal=ANY,
            reward="sparse",
            tuning=tuning,
            env_steps=480,
            episodes=45,
            eval_points=0,
            runs=tmp_path_factory.mktemp("runs"),
            name="any",
        )
    )


def test_one_policy_is_a_bundle_for_each_goal(run: Any, tmp_path: Path, capsys: Any) -> None:
    first = PolicyBundle.load(run.bundle)
    assert first.manifest.goal == "touch_red_cube"
    assert main(["export", str(run.run.path), str(tmp_path / "b"), "--goal", "above the ball"]) == 0
    other = PolicyBundle.load(tmp_path / "b")
    assert other.manifest.goal == "above_blue_ball"
    assert other.manifest.metrics["sentence"] == "the gripper is above the blue ball"
    # The observation that the bridge makes of it says that goal, and all else is as it was.
    task = task_of_bundle(other.manifest)
    assert isinstance(task, MultiGoalTask) and task.goal == "above_blue_ball"
    env = BatchEnv(task, 4, seed=0)
    asked = env.reset()[:, [name.startswith(ASKED) for name in env.obs_names]]
    assert (asked.argmax(axis=1) == task.keys.index("above_blue_ball")).all()
    written = {one.name: one for one in other.manifest.inputs}[ASKED].parts
    np.testing.assert_array_equal([part.offset for part in written], asked[0])
    assert (tmp_path / "b/policy.onnx").read_bytes() == (run.bundle / "policy.onnx").read_bytes()
    twin, arm = Twin(task), robot_of(task)
    still = RobotState(0.0, 0.0, 0, arm.home, *[np.zeros(len(arm.joints))] * 2, 0.0)
    poses = {name: Pose(np.zeros(3), np.array([1.0, 0, 0, 0]), 0.0) for name in twin.entities}
    seen = twin.observe(still, poses)
    np.testing.assert_array_equal(seen[-15:], asked[0])


def test_policy_action_depends_on_the_goal(run: Any) -> None:
    env = BatchEnv(MultiGoalTask(inner=sims.make_task("reach")), 8, seed=0)
    obs = env.reset()
    other = obs.copy()
    columns = [name.startswith(ASKED) for name in env.obs_names]
    other[:, columns] = np.roll(obs[:, columns], 1, axis=1)
    assert np.abs(run.policy.act(obs) - run.policy.act(other)).max() > 1e-4


def test_evaluation_counts_missed_goals_and_takes_one_goal(
    run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = run.evaluation.misses
    assert sum(missed.values()) == run.evaluation.episodes - run.evaluation.successes > 0
    assert set(missed) <= {goal.sentence for goal in sims.make_task("reach").goals().values()}
    path = str(run.run.path)
    assert (
        main(["evaluate", path, "--episodes", "20", "--json", "--goal", "far_from_red_cube"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["goal"] == "far_from_red_cube"


def test_export_of_a_single_goal_run_refuses_another_goal(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    write(tmp_path / "one", "so101")
    with pytest.raises(ValueError, match="has one goal"):
        set_bundle_goal(tmp_path / "one", "touch the blue ball", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_hindsight_buffer_resumes_identically_after_a_kill() -> None:
    """A learner from a checkpoint goes on as the one that went on."""

    def new() -> Any:
        config = EnsembleConfig(
            num_envs=8, hindsight=0.5, learning_starts=80, batch_size=32, gradient_steps=2, **TINY
        )
        return make_learner(config, sims.make("reach", 8, goal=ANY, sparse=True))

    one, other = new(), new()
    one.algorithm.learn(160)
    saved = one.checkpoint()
    one.algorithm.learn(80, reset_num_timesteps=False)
    other.restore(saved)
    other.algorithm.learn(80, reset_num_timesteps=False)
    for mine, its in zip(
        one.algorithm.policy.parameters(), other.algorithm.policy.parameters(), strict=True
    ):
        np.testing.assert_array_equal(mine.detach().numpy(), its.detach().numpy())
