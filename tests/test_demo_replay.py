"""Demonstrations among what is learned from: played again, scored as one's own, in every batch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import FlattenExtractor
from test_learners import assert_same

import sims
from reward_models.base import RewardOutput
from robo_rl.cli import main
from robo_rl.commands.train import parse_train
from robo_rl.config.presets import with_presets
from robo_rl.config.resolve import resolve
from robo_rl.config.train_config import TrainConfig
from robo_rl.datasets.demonstrations import read_demonstrations
from robo_rl.goals.reading import formula_goal
from robo_rl.learners import EnsembleConfig, IQLConfig, LearnerConfig, SACConfig, TD3Config
from robo_rl.learners.demo_guided_noise import DemoGuidedNoise
from robo_rl.learners.demo_replay import DemoReplay
from robo_rl.learners.ensemble_sac import likelihood
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.learners.training_loop import learn
from robo_rl.runs.run_dir import RunDir
from robo_rl.training.checks import pre_run_advice
from robo_rl.training.run_envs import training_env
from sims.envs.demonstrations import DemoConfig, write_demos

ROWS = 4
# A rate that falls would fall with the total, and these runs are cut into halves of one.
SMALL = {
    "final_rate": 1.0,
    "num_envs": ROWS,
    "net": (16, 16),
    "learning_starts": 16,
    "buffer_size": 256,
    "batch_size": 32,
    "gradient_steps": 2,
    "normalise_obs": False,
}


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six episodes of lift, some of which fail."""
    path = tmp_path_factory.mktemp("demos") / "lift-v0"
    config = DemoConfig(episodes=6, num_envs=4, failures=0.4, seed=3)
    write_demos(sims.make_task("lift"), path, config)
    return path


@dataclass
class Height:
    """How high the cube is, and twice that from version 1 on; looks at two steps."""

    version: int = 0
    needs = frozenset({"signals"})
    context = 2
    causal = True

    def score(self, segment):
        up = segment.signals["red_cube_pos"][1:, ..., 2] * (1 + self.version)
        return RewardOutput(up.astype(np.float32), segment.valid, version=self.version)


def new(
    demos: Path,
    model: Height | None = None,
    seed: int = 0,
    kind: type[LearnerConfig] = SACConfig,
    **more,
) -> Learner:
    config = kind(**SMALL | more, demos=str(demos))
    sim = sims.make("lift", ROWS, seed=seed, sparse=model is None)
    return make_learner(config, sim, model, seed=seed)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_demos_policy_can_start_as_a_clone(
    demos: Path, share: float, training_seed: int, outcome: Callable[..., None]
) -> None:
    """It comes to do what was done where episodes succeeded, while critics learn of its own steps;
    then it learns as ever."""
    learner = new(
        demos,
        None,
        training_seed,
        EnsembleConfig,
        clone_updates=400,
        demo_share=share,
        gradient_steps=10,
    )
    algorithm = learner.algorithm
    prior = algorithm.replay_buffer.prior
    obs, action = (x.numpy() for x in prior.sample_successful(256, algorithm.device))

    def off() -> float:
        return float(np.abs(learner.act(obs) - action).mean())

    first, critics = off(), [p.clone() for p in algorithm.critic.parameters()]
    learn(learner, 176)  # 16 at random, then ten updates for each of 4 rows' steps
    assert algorithm._n_updates == 400
    outcome("error of the clone, of its first", off() / first, below=0.7)
    for before, now in zip(critics, algorithm.critic.parameters(), strict=True):
        assert not torch.equal(before, now)
    batch = algorithm.replay_buffer.sample(32)
    theirs = {row.tobytes() for row in prior.obs}
    assert sum(row.tobytes() in theirs for row in batch.observations.numpy()) >= 32 * share
    actor = [p.clone() for p in algorithm.actor.parameters()]
    learn(learner, 184)
    changed = zip(actor, algorithm.actor.parameters(), strict=True)
    assert any(not torch.equal(before, now) for before, now in changed)


def test_guided_noise_points_where_demonstrations_differ(
    training_seed: int, outcome: Callable[..., None]
) -> None:
    torch.manual_seed(training_seed)
    guided = DemoGuidedNoise(FlattenExtractor(spaces.Box(-1, 1, (2,))), 3)
    obs = torch.rand(512, 2) * 2 - 1
    # Where the first number of a state is above 0 they went along (1, -1, 0), else nowhere.
    way = torch.tensor([0.5, -0.5, 0.0]) * torch.randn(512, 1).abs() * (obs[:, :1] > 0)
    for _ in range(600):
        guided.learn(obs, way + 0.02 * torch.randn(512, 3))
    with torch.no_grad():
        away, at_rest = (
            guided.around(torch.tensor([[x, 0.0]])).sample((4000,))[:, 0].T for x in (0.5, -0.5)
        )
    there = torch.cov(away)
    outcome("correlation", there[0, 1] / (there[0, 0] * there[1, 1]).sqrt(), below=-0.8)
    outcome("variance along, of that across", there[0, 0] / there[2, 2], above=30)
    outcome("variance at rest, of that away", torch.cov(at_rest).trace() / there.trace(), below=0.1)


def test_guided_noise_works_without_demos_in_batches(demos: Path) -> None:
    learner = new(demos, kind=EnsembleConfig, guided_noise=0.5, demo_share=0.0)
    learn(learner, 160)
    algorithm, half = learner.algorithm, ROWS // 2
    drawn = np.stack([algorithm._sample_action(0, None, ROWS)[0] for _ in range(300)])
    own = np.stack([algorithm.predict(algorithm._last_obs)[0] for _ in range(300)])
    mean = algorithm.actor(torch.as_tensor(algorithm._last_obs), deterministic=True)
    assert np.abs(drawn).max() <= 1
    np.testing.assert_allclose(drawn[:, half:].std(0), own[:, half:].std(0), rtol=0.3)
    # The others vary around what the policy would do, as the Gaussian says.
    around = algorithm.guided.around(torch.as_tensor(algorithm._last_obs[:half]))
    said = (mean[:half] + around.sample((300,))).clamp(-1, 1).detach().numpy().std(0)
    np.testing.assert_allclose(drawn[:, :half].std(0), said, rtol=0.3)
    theirs = {row.tobytes() for row in algorithm.replay_buffer.prior.obs}
    batch = algorithm.replay_buffer.sample(32)
    assert not any(row.tobytes() in theirs for row in batch.observations.numpy())
    with pytest.raises(ValueError, match="guided_noise needs demonstrations: give --demos"):
        EnsembleConfig(guided_noise=0.5)


def test_guided_noise_resumes_identically(demos: Path, tmp_path: Path) -> None:
    def one(seed: int = 0) -> Learner:
        return new(demos, seed=seed, kind=EnsembleConfig, guided_noise=0.5)

    straight, run = one(), RunDir.create(tmp_path / "run", SACConfig(**SMALL))
    learn(straight, 96)
    learn(one(), 64, run=run, checkpoint_every=32)
    again = one(seed=5)
    learn(again, 96, run=RunDir.open(run.path), resume=True)
    assert_same(straight, again)
    mine, its = (x.algorithm.guided.state_dict() for x in (straight, again))
    assert all(torch.equal(mine[name], its[name]) for name in mine)


IQL = {k: v for k, v in SMALL.items() if k != "num_envs"} | {"gradient_steps": 25}


def offline(demos: Path, model: Height | None = None, seed: int = 0, **more) -> Learner:
    """Implicit Q-learning of the data set."""
    config = IQLConfig(**IQL, demos=str(demos), **more)
    return make_learner(config, sims.make("lift", 1, sparse=model is None), model, seed=seed)


@pytest.mark.parametrize("paid", [False, True])
def test_offline_learning_imitates_data_without_env_steps(
    demos: Path, paid: bool, training_seed: int, outcome: Callable[..., None]
) -> None:
    """Of a dataset half of which is noise: successful episodes become more likely."""
    learner = offline(demos, Height() if paid else None, training_seed, temperature=5.0)
    algorithm = learner.algorithm
    prior = algorithm.replay_buffer.prior
    written = read_demonstrations(demos, failures=True)
    good = written.success[written.episode]
    obs, action = (torch.as_tensor(x) for x in (prior.obs, prior.action))

    def likely() -> float:
        with torch.no_grad():
            return float(likelihood(algorithm.actor, obs, action).numpy()[good].mean())

    before = likely()
    learn(learner, 500)
    assert algorithm._n_updates == learner.env_steps == 500
    outcome("gain of log likelihood", likely() - before, above=1.0)
    # The episode that SB3 began is still at its first moment: a state begins with its time.
    assert algorithm.replay_buffer.size() == 0 and not learner.env.sim.state()[:, 0].any()


def test_offline_learning_prefers_rewarded_actions(
    demos: Path, monkeypatch: pytest.MonkeyPatch, training_seed: int, outcome: Callable[..., None]
) -> None:
    """One of two actions is paid, everywhere: the policy takes that, and without a temperature
    their mean."""

    def acts(temperature: float) -> float:
        learner = offline(
            demos, None, training_seed, temperature=temperature, learning_rate=3e-3, tau=0.1
        )
        algorithm = learner.algorithm
        batch = algorithm.replay_buffer.sample(64)
        paid = torch.arange(64)[:, None] % 2 == 0
        batch = batch._replace(
            actions=torch.where(paid, 0.5, -0.5).expand_as(batch.actions),
            rewards=paid.float(),
            dones=torch.ones(64, 1),
        )
        monkeypatch.setattr(algorithm.replay_buffer, "sample", lambda _: batch)
        learn(learner, 150)
        return float(learner.act(batch.observations.numpy()).mean())

    outcome("action of what is paid", acts(5.0), above=0.2)
    outcome("action without a temperature", abs(acts(0.0)), below=0.15)


def test_offline_learning_resumes_identically(demos: Path, tmp_path: Path) -> None:
    whole = offline(demos, Height())
    learn(whole, 200)
    run = RunDir.create(tmp_path / "run", {})
    learn(offline(demos, Height()), 100, run=run)
    rest = offline(demos, Height())
    learn(rest, 200, run=run, resume=True)
    assert_same(whole, rest)


def test_offline_learning_requires_demos(demos: Path) -> None:
    with pytest.raises(ValueError, match="give --demos DIR"):
        IQLConfig().check(sims.make("lift", 1))
    for wrong, said in (
        ({"demo_share": 0.5}, "demo_share must be"),
        ({"expectile": 0.3}, "expectile must be in"),
        ({"interventions": 0.2}, "--demos only: leave out interventions"),
        ({"temperature": -1}, "temperature must be at least 0"),
        ({"clone_updates": 100}, "--demos only: leave out clone_updates"),
        ({"actor_every": 4}, "leave out actor_every"),
        ({"entropy_init": 0.5}, "leave out entropy_init"),
    ):
        with pytest.raises(ValueError, match=said):
            IQLConfig(demos=str(demos), **wrong)
    for option in ({"randomize": 0.5}, {"random_starts": 0.5}):
        with pytest.raises(ValueError, match="trains on --demos only: leave out --randomize and"):
            TrainConfig(task="lift", tuning=IQLConfig(demos=str(demos)), **option)


def test_replayed_demos_equal_the_dataset(demos: Path) -> None:
    written = read_demonstrations(demos, failures=True)
    prior = DemoReplay(written, sims.make("lift", 1), None)
    assert len(prior) == len(written.obs) == 6 * 80
    np.testing.assert_array_equal(prior.obs, written.obs)
    np.testing.assert_array_equal(prior.action, written.action)
    same = written.episode[1:] == written.episode[:-1]
    np.testing.assert_array_equal(prior.next_obs[:-1][same], written.obs[1:][same])
    with h5py.File(demos / "data" / "main_data.hdf5") as file:
        groups = [file[f"episode_{i}"] for i in range(6)]
        paid = np.concatenate([g["rewards"] for g in groups])
        won = np.concatenate([g["infos/success"][1:] for g in groups])
        assert 0 < sum(g.attrs["success"] for g in groups) < 6
    np.testing.assert_allclose(prior.reward, paid)
    sparse = DemoReplay(written, sims.make("lift", 1, sparse=True), None)
    np.testing.assert_array_equal(sparse.reward, won)


class AtTheEnd(Height):
    """Pays an episode as a whole."""

    episodic = True

    def score(self, segment):
        last = segment.placed(self).last
        return RewardOutput(last.astype(np.float32), segment.valid)


def test_demo_rewards_at_episode_end_terminate(demos: Path) -> None:
    prior = DemoReplay(read_demonstrations(demos, failures=True), sims.make("lift", 1), AtTheEnd())
    prior.score()
    assert prior.last.sum() == 6
    np.testing.assert_array_equal(prior.reward, prior.last)
    np.testing.assert_array_equal(prior.done, prior.last)


def test_demos_for_another_goal_get_its_columns_and_rewards(demos: Path) -> None:
    task, _ = formula_goal(
        sims.make_task("lift"), "then(touch(gripper, red_cube), lifted(red_cube))"
    )
    sim, written = sims.BatchEnv(task, 1, sparse=True), read_demonstrations(demos, failures=True)
    prior = DemoReplay(written, sim, None)
    assert prior.obs.shape[1] == sim.obs_dim > written.obs.shape[1]
    own = [sim.obs_names.index(name) for name in sims.make("lift", 1).obs_names]
    np.testing.assert_array_equal(prior.obs[:, own], written.obs)
    account = np.delete(prior.obs, own, axis=1)
    assert np.ptp(account, axis=0).max() > 0 and 0 < prior.reward.mean() < 1


def test_demo_share_of_batches_and_relabelling(demos: Path) -> None:
    model = Height()
    learner = new(demos, model, demo_share=0.25)
    learn(learner, 64)
    buffer, prior = learner.buffer, learner.buffer.prior
    model.version = 0
    batch = buffer.sample(64)
    theirs = {tuple(row) for row in prior.obs.round(5).tolist()}
    of = np.array([tuple(row) in theirs for row in batch.observations.numpy().round(5).tolist()])
    assert of[-16:].all() and of.sum() == 16
    before = prior.reward.copy()
    model.version = 1
    buffer.relabel()
    np.testing.assert_allclose(prior.reward, 2 * before)
    model.version = 2
    learn(learner, 96)  # what is scored anew while it learns is scored for all
    np.testing.assert_allclose(prior.reward, 3 * before, rtol=1e-6)
    assert all(torch.isfinite(p).all() for p in learner.algorithm.policy.parameters())


def test_n_step_returns_of_demos_stay_in_one_episode(demos: Path) -> None:
    prior, n, gamma = (
        DemoReplay(read_demonstrations(demos, failures=True), sims.make("lift", 1), None),
        4,
        0.9,
    )
    at = np.arange(0, 480, 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "randint", lambda *_, **__: at)
        batch = prior.draw(len(at), torch.device("cpu"), n, gamma)
    for k, first in enumerate(at):
        steps = np.arange(first, min(first + n, 80 * (first // 80 + 1)))  # 80 steps each
        paid = prior.reward[steps] @ gamma ** np.arange(len(steps))
        assert batch.rewards[k, 0] == pytest.approx(paid, rel=1e-5)
        assert batch.discounts[k, 0] == pytest.approx(gamma ** len(steps))
        np.testing.assert_array_equal(batch.next_observations[k], prior.next_obs[steps[-1]])
        np.testing.assert_array_equal(batch.observations[k], prior.obs[first])


RESUMED = [
    (SACConfig, True),
    (EnsembleConfig, False),
    pytest.param(SACConfig, False, marks=pytest.mark.slow),
    pytest.param(EnsembleConfig, True, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "scored"), RESUMED)
def test_a_resumed_run_equals_an_uninterrupted_one(
    demos: Path, tmp_path: Path, kind: type[LearnerConfig], scored: bool
) -> None:
    def one(seed: int = 0) -> Learner:
        return new(demos, Height() if scored else None, seed, kind)

    straight, run = one(), RunDir.create(tmp_path / "run", SACConfig(**SMALL))
    learn(straight, 96)
    learn(one(), 64, run=run, checkpoint_every=32)
    again = one(seed=5)
    learn(again, 96, run=RunDir.open(run.path), resume=True)
    assert_same(straight, again)


def test_demos_number_means_expert_episodes(tmp_path: Path) -> None:
    sim = sims.make("lift", ROWS, seed=5)
    config = replace(TD3Config(**SMALL), demos="3")
    config.check(sim)
    made = make_learner(config, sim).algorithm.replay_buffer.prior
    again = make_learner(config, sims.make("lift", ROWS, seed=5)).algorithm.replay_buffer.prior
    write_demos(sim.task, tmp_path / "demos", DemoConfig(episodes=3, seed=5))
    asked = replace(config, demos=str(tmp_path / "demos"))
    written = make_learner(asked, sims.make("lift", ROWS)).algorithm.replay_buffer.prior
    other = make_learner(config, sims.make("lift", ROWS, seed=6)).algorithm.replay_buffer.prior
    assert made.last.sum() == 3
    assert np.array_equal(made.obs, written.obs) and np.array_equal(made.action, written.action)
    again.load_state_dict(made.state_dict())  # as a run that goes on has it
    with pytest.raises(ValueError, match="must be the demonstrations that this run started with"):
        other.load_state_dict(made.state_dict())
    for wrong, asked_of, said in (
        ("0", sim, "episodes and num_envs must be at least 1"),
        ("3", sims.make("hopper", 1), "hopper has no scripted expert for this goal"),
    ):
        with pytest.raises(ValueError, match=said):
            replace(config, demos=wrong).check(asked_of)


def test_rate_limited_run_gets_rate_limited_demos(tmp_path: Path) -> None:
    path = tmp_path / "demos"
    assert (
        main(["demos", "lift", str(path), "--episodes", "3", "--seed", "5", "--rate-limited"]) == 0
    )
    config = replace(TD3Config(**SMALL), demos="3")
    mine = make_learner(config, sims.make("lift", ROWS, seed=5, shaped=True))
    written = replace(config, demos=str(path))
    theirs = make_learner(written, sims.make("lift", ROWS, shaped=True))
    plain = make_learner(config, sims.make("lift", ROWS, seed=5))
    a, b, c = (one.algorithm.replay_buffer.prior for one in (mine, theirs, plain))
    assert np.array_equal(a.obs, b.obs) and not np.array_equal(a.obs[:80], c.obs[:80])
    with pytest.raises(ValueError, match="within the bridge's limits, and this run trains without"):
        written.check(sims.make("lift", ROWS))


def test_rate_limited_run_reports_rate_limited_success(
    short_video: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["reach", "--reward", "sparse", "--demos", "3", "--rate-limited", "--eval-points", "0"]
    how = ["--env-steps", "160", "--episodes", "8", "--runs", str(tmp_path), "--name", "run"]
    tuning = ["--tuning.clone-updates", "16", "--tuning.no-normalise-obs"]
    assert main(["train", *asked, *how, *tuning]) == 0
    told = capsys.readouterr()
    other = "without the rate limits it was trained in: success"
    assert other in " ".join(told.err.split()) and other not in told.out
    assert "on the validation seed, rate-limited actions; " in told.out.splitlines()[-1]
    run = RunDir.open(tmp_path / "run")
    assert other in (run.path / "report.html").read_text()
    limited, without = (run.result[n] for n in ("evaluation", "evaluation_unlimited"))
    assert limited["rate_limited"] and not without["rate_limited"]
    assert main(["evaluate", str(run.path), "--episodes", "8", "--eval-seeds", "validation"]) == 0
    again = capsys.readouterr().out
    assert "on the validation seed, rate-limited actions; " in again
    assert f"success {100 * limited['success']:.1f} %" in again
    old = json.loads((run.path / "result.json").read_text())
    old |= {"evaluation": old.pop("evaluation_unlimited"), "evaluation_shaped": limited}
    (run.path / "result.json").write_text(json.dumps(old))
    assert run.result["evaluation"] == limited  # a run of version 0.1.0 is read so, too


def test_resume_requires_the_same_demonstrations(demos: Path, tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", SACConfig(**SMALL))
    learn(new(demos), 24, run=run, checkpoint_every=8)
    write_demos(sims.make_task("lift"), tmp_path / "other", DemoConfig(episodes=2, seed=4))
    with pytest.raises(ValueError, match="must be the demonstrations that this run started with"):
        learn(new(tmp_path / "other"), 48, run=RunDir.open(run.path), resume=True)


def test_mismatched_demos_are_a_one_line_error(demos: Path, tmp_path: Path) -> None:
    def refused(sim, path: Path = demos) -> str:
        with pytest.raises(ValueError) as said:
            TD3Config(**SMALL, demos=str(path)).check(sim)
        assert "\n" not in str(said.value)
        return str(said.value)

    assert "its task must be that of this run, 'push', got 'lift'" in refused(sims.make("push", 1))
    assert "its robot must be" in refused(sims.make("lift", 1, robot="ur5e"))
    said = refused(sims.make("lift", 1, shaped=True))
    assert "recorded without the bridge's limits, and this run trains within them" in said
    assert "is not a Minari dataset" in refused(sims.make("lift", 1), tmp_path)
    for name, change in (
        ("old", lambda group: group.attrs.__delitem__("start")),
        ("moved", lambda group: group["actions"].__setitem__(slice(None), 0.5)),
    ):
        path = tmp_path / name
        shutil.copytree(demos, path)
        with h5py.File(path / "data" / "main_data.hdf5", "r+") as file:
            for group in file.values():
                change(group)
        if name == "old":
            assert "has no initial states, so its" in refused(sims.make("lift", 1), path)
        else:
            with pytest.raises(ValueError, match="replayed episodes differ from the stored"):
                make_learner(replace(TD3Config(**SMALL), demos=str(path)), sims.make("lift", ROWS))
    with pytest.raises(ValueError, match="sparse rewards need the success judge"):
        sims.make("lift", 1, sparse=True, judged=False)
    with pytest.raises(ValueError, match="demo_share must be between 0 and 1, got 1"):
        SACConfig(demo_share=1)
    for kind in (SACConfig, EnsembleConfig):
        with pytest.raises(ValueError, match="demo_share must be between 0 and 1, got 0"):
            kind(demos=str(demos), demo_share=0)
    with pytest.raises(ValueError, match="clone_updates needs demonstrations"):
        EnsembleConfig(clone_updates=1)


def test_demos_option_on_the_command_line(
    demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["lift", "--reward", "sparse", "--learner", "sac", "--runs", str(tmp_path)]
    typed = parse_train([*asked, "--demos", str(demos), "--tuning.demo-share", "0.2"]).config_values
    config = with_presets(TrainConfig(**typed))
    assert (config.tuning.demos, config.tuning.demo_share) == (str(demos), 0.2)
    env = training_env(sims.make_task("lift"), config, 1)
    env.reset()
    assert env.sparse and not env.step(np.zeros((env.num_envs, 4))).reward.any()
    assert main(["train", "lift", "--learner", "ppo", "--demos", str(demos)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "--demos is an option of --learner sac, td3, tqc, crossq, " in said and "of ppo" in said
    assert main(["train", *asked, "--demos", "nowhere", "--name", "two"]) == 1
    assert "nowhere is not a Minari dataset" in capsys.readouterr().err
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize(
    ("typed", "advised"),
    [
        (["put the red cube in the drawer"], True),
        (["put the red cube in the drawer", "--demos", "50"], False),
        (["drawer_then_place", "--learner", "sac", "--interventions", "0.2"], False),
        (["stack", "--reward", "sparse"], True),
        (["peg", "--reward", "task"], True),
        (["pick_place"], False),  # it may be pushed there
        (["lift"], False),
        (["tabletop", "--things", "two red cubes", "--goal", "stack the red cubes"], False),
    ],
)
def test_advice_suggests_demos_for_placing_goals(typed: list[str], advised: bool) -> None:
    """But where nobody could show it."""
    resolved = resolve(TrainConfig(**parse_train(typed).config_values))
    assert ("--demos 50" in pre_run_advice(resolved)) is advised
