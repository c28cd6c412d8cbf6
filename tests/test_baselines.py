"""What a figure stands on: floors, seeds, intervals; no figure where nobody can judge."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from reach_bundle import write as write_bundle

import sims
from real_robot.policy.bundle import PolicyBundle, write_manifest
from robo_rl.arm.episodes import ArmResult, gap_advice, run_emulated
from robo_rl.config.train_config import TrainConfig
from robo_rl.evaluation import baselines as floors_module
from robo_rl.evaluation.baselines import (
    Baselines,
    SuccessRate,
    baselines_of_scenes,
    measure_baselines,
    untrained_policy,
)
from robo_rl.evaluation.evaluate import (
    TEST_SEED,
    VALIDATION_SEED,
    Evaluation,
    evaluate,
    evaluate_expert,
    summary_line,
)
from robo_rl.learners import PPOConfig
from robo_rl.rollout.episode_runner import BLOCK, active_rows_policy, run_episode, zero_action
from robo_rl.runs.run_dir import RunDir
from sims.envs.batch_env import BatchEnv
from sims.tasks.reach import Reach

Array = np.ndarray
SENTENCE = "make it look tidy"  # no relation that anybody measures


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "floors"


# Rows that are over.
def falling(env: BatchEnv) -> Any:
    """A policy under which rows fall, each at its own time."""
    weight = np.random.default_rng(0).normal(size=(env.obs_dim, env.act_dim))
    return lambda obs: np.sin(40.0 * (obs @ weight))


def stepped_to_the_end(env: BatchEnv, act: Any) -> tuple[Array, Array, Array]:
    """Success, distance and return as they were found when rows that are over went on being
    stepped."""
    obs, n = env.reset(), env.num_envs
    over, failed, success = np.zeros((3, n), bool)
    (distance, returned), everyone = np.zeros((2, n)), np.ones(n, bool)
    for _ in range(env.max_steps):
        step = env.step(act(obs, everyone))
        failed |= step.info["diverged"] & ~over
        success[~over], distance[~over] = step.info["success"][~over], env.distance()[~over]
        returned += np.where(over, 0.0, step.reward)
        over |= step.terminated | step.truncated
        if over.all():
            break
        obs = step.obs
    return success & ~failed, distance, returned


@pytest.mark.parametrize("name", ["hopper", "ant"])
def test_finished_envs_are_not_simulated_and_results_stay(name: str) -> None:
    task = sims.make_task(name, episode_s=2.0 if name == "hopper" else 15.0)
    whole, part = (BatchEnv(task, 24, seed=VALIDATION_SEED) for _ in range(2))
    policy = active_rows_policy(falling(part), part.act_dim)
    success, distance, returned = stepped_to_the_end(whole, policy)
    found = run_episode(part, policy)
    assert (found.success == success).all() and (found.distance == distance).all()
    assert (found.returned == returned).all() and np.ptp(returned) > 0
    assert part.env_steps < 0.75 * whole.env_steps


def test_policy_action_is_independent_of_active_envs() -> None:
    act, obs = untrained_policy(7, 3), np.random.default_rng(0).normal(size=(150, 7))
    seen: list[int] = []

    def counted(rows: Array) -> Array:
        seen.append(len(rows))
        return act(rows)

    every = active_rows_policy(counted, 3)(obs, np.ones(150, bool))
    some = np.arange(150) % 7 == 0
    few = active_rows_policy(counted, 3)(obs, some)
    assert set(seen) == {BLOCK} and (few[some] == every[some]).all() and not few[~some].any()


def test_judge_can_use_the_whole_episode() -> None:
    env = BatchEnv(sims.make_task("reach"), 3, seed=1)
    steps: list[int] = []

    def ever(env: BatchEnv, step: Any) -> Array:
        steps.append(len(steps))
        return np.array([True, False, len(steps) > 10])

    assert run_episode(env, zero_action(3), ever).success.tolist() == [True, False, True]
    assert len(steps) == env.max_steps


# Floors.
def test_baselines_use_the_same_episodes_and_are_cached(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = sims.make_task("reach", goal="touch_red_cube")
    found = measure_baselines(task, episodes=40, seed=VALIDATION_SEED)
    env = BatchEnv(task, 40, seed=VALIDATION_SEED)
    by_hand = run_episode(env, zero_action(3)).success.sum()
    assert found.still == SuccessRate(int(by_hand), 40) and found.untrained.episodes == 40
    [kept] = cache.iterdir()
    assert json.loads(kept.read_text())["of"]["seed"] == VALIDATION_SEED

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("simulated again")

    with monkeypatch.context() as patch:
        patch.setattr(floors_module, "make_randomized_env", refused)
        assert measure_baselines(task, episodes=40, seed=VALIDATION_SEED) == found
        for other in (
            {"seed": TEST_SEED},
            {"episodes": 41},
            {"shaped": True},
            {"width": 0.5},
            {"task": sims.make_task("reach", goal="above_red_cube")},
            {"task": sims.make_task("reach", goal="touch_red_cube", tip_step=0.01)},
        ):
            with pytest.raises(AssertionError, match="simulated again"):
                measure_baselines(
                    **({"task": task, "episodes": 40, "seed": VALIDATION_SEED} | other)
                )
        # What is kept of another scene or other code is not taken for today's.
        patch.setattr(floors_module, "_code", lambda task: "another")
        with pytest.raises(AssertionError, match="simulated again"):
            measure_baselines(task, episodes=40, seed=VALIDATION_SEED)


def test_baselines_of_long_episodes_use_the_first_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(task: Any, count: int, **_: Any) -> Any:
        made.append(count)
        raise InterruptedError

    monkeypatch.setattr(floors_module, "make_randomized_env", counted)
    for name in ("ant", "drawer_then_place", "reach"):
        with pytest.raises(InterruptedError):
            measure_baselines(sims.make_task(name), episodes=1000, seed=TEST_SEED)
    assert made == [200, 1000, 1000]


def test_untrained_baseline_is_the_initial_ppo_network() -> None:
    act, obs = untrained_policy(20, 3), np.random.default_rng(1).normal(size=(500, 20))
    assert PPOConfig().net == floors_module.HIDDEN and PPOConfig().activation == "tanh"
    assert 1e-3 < np.abs(act(obs)).max() < 0.1 and (act(obs) == untrained_policy(20, 3)(obs)).all()
    assert (act(obs) != untrained_policy(20, 3, seed=1)(obs)).all()


def test_arm_scenes_have_their_own_baselines() -> None:
    task = sims.make_task("reach", goal="left_of_red_cube")
    found = baselines_of_scenes(task, [800_000_000, 800_000_001])
    assert found.still.episodes == 2 and found.still.successes == 0
    scenes = floors_module._Scenes(task, [800_000_000, 800_000_001])
    alone = BatchEnv(task, 1, seed=800_000_001)
    assert (scenes.reset()[1] == alone.reset()[0]).all()


# What an evaluation says.
def test_evaluation_line_has_seed_interval_and_baselines(cache: Path) -> None:
    task = sims.make_task("reach", goal="left_of_red_cube")
    found = evaluate_expert(task, episodes=30, seed=VALIDATION_SEED)
    assert found.held == 0 and found.success > 0.9 and found.above_floor
    line = found.line()
    assert "n=30) on the validation seed; doing nothing 0.0 % (0.0-11.4), untrained " in line
    assert Evaluation.from_dict(json.loads(json.dumps(found.as_dict()))) == found
    lazy = evaluate(task, lambda obs: np.zeros((len(obs), 3)), episodes=30, seed=TEST_SEED)
    assert "on the test seed" in lazy.line() and "not above the baselines" in lazy.line()
    assert "return" not in lazy.line()  # by which nobody compares arms
    body = evaluate(sims.make_task("hopper", episode_s=1.0), lambda o: 0 * o[:, :3], episodes=8)
    assert body.return_mean is not None and f"return {body.return_mean:,.0f} (dev" in body.line()
    assert summary_line(None) == "success not measured: no ground truth for this sentence"
    assert Evaluation.from_dict({"goal": "", "success": 1.0}) is None  # of a run of before


# The arm.
@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    write_bundle(folder, "so101")
    return folder


def test_arm_result_line_has_noise_latency_and_baselines(bundle: Path) -> None:
    found = run_emulated(bundle, episodes=2, noise=0.001, latency=0.02)
    assert "(1 mm of noise on perceived positions, 20 ms of latency): success" in found.line()
    assert found.floors is not None and "n=2); doing nothing 0.0 %" in found.line()


def test_arm_without_ground_truth_reports_no_success(bundle: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    loaded = PolicyBundle.load(bundle)
    for name in ("policy.onnx", "golden.npz"):
        (tmp_path / name).write_bytes((bundle / name).read_bytes())
    write_manifest(tmp_path, replace(loaded.manifest, goal=""))
    found = run_emulated(tmp_path, episodes=1, noise=0.0)
    assert found.successes is None and found.floors is None
    assert "success not measured" in found.line() and "%" not in found.line()


@pytest.mark.parametrize(
    ("won", "training", "named"),
    [
        (14, {}, ("--randomize 0.7", "--rate-limited")),
        (14, {"randomize": {"width": 0.7}}, ("--rate-limited",)),
        (14, {"randomize": {"width": 0.7}, "shaped": True}, ()),
        (20, {}, ()),
    ],
)
def test_gap_to_the_arm_names_training_options(
    won: int, training: dict[str, Any], named: tuple[str, ...]
) -> None:
    known = {"success": 0.999, "low": 0.994, "successes": 999, "episodes": 1000}
    result = ArmResult("it", 20, won, {}, 0, 0.0, 0.0, {}, (), under="2 mm of noise")
    made = SimpleNamespace(metrics=known, training=training)
    text = gap_advice(result, made)  # type: ignore[arg-type]
    assert bool(text) == bool(named) and all(option in text for option in named)
    assert ("--randomize" in text) == ("--randomize 0.7" in named)


# No figure where nobody can judge.
def test_run_without_ground_truth_reports_no_success(
    short_video: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    from robo_rl.cli import main
    from robo_rl.training.train import train

    program = tmp_path / "cube.py"
    program.write_text(
        'def reward(tip, red_cube_pos):\n    return {"near": near(norm(tip - red_cube_pos), 0.1)}\n'
    )
    console = Console(file=open(tmp_path / "said", "w"), force_terminal=True, width=200)
    config = TrainConfig(
        goal=SENTENCE,
        reward=f"code:{program}",
        env_steps=2 * 16 * 50,
        episodes=20,
        tuning=PPOConfig(num_envs=16, net=(16,)),
        runs=tmp_path,
        name="run",
    )
    trained = train(config, console=console)
    console.file.close()
    assert trained.evaluation is None and trained.run.result["evaluation"] is None
    said_while = (tmp_path / "said").read_text()
    assert "steps" in said_while and "success" not in said_while and "= None" not in said_while
    metrics = RunDir.open(trained.run.path).metrics()
    assert "reward" in metrics and not {"success", "episode_return"} & set(metrics)
    page = (trained.run.path / "report.html").read_text()
    assert "Not measured" in page and "success of training" not in page and "Green dot" not in page
    assert "The frames that were paid most" in page  # what there is to look at instead
    manifest = json.loads((trained.bundle / "manifest.json").read_text())
    assert not {"success", "successes", "distance_median"} & set(manifest["metrics"])
    assert main(["evaluate", str(trained.run.path), "--episodes", "20"]) == 0
    assert capsys.readouterr().out.startswith("success not measured")
    assert main(["deploy", str(trained.bundle), "--emulate", "--episodes", "1"]) in (0, 1)
    assert "success not measured" in capsys.readouterr().out


# The report.
@pytest.mark.parametrize("unit", ["m", ""])
def test_report_has_baselines_interval_seed_and_distance(unit: str) -> None:
    from robo_rl.training.report import _headline

    beneath = Baselines(SuccessRate(0, 1000), SuccessRate(3, 1000))
    found = Evaluation("g", 1000, 973, VALIDATION_SEED, 0.012, 0.03, 0, 2, unit, beneath)
    text = _headline(found)
    assert "97.3 %" in text and "95 % interval 96.1 to 98.1" in text and "validation seed" in text
    assert "doing nothing 0.0 % (0.0-0.4), untrained 0.3 % (0.1-0.9)" in text
    assert "In 2 episodes the goal held" in text
    assert ("median 12 mm" in text) == bool(unit) and ("Missing" in text) == bool(unit)


def test_baseline_cache_key_covers_a_plugin_tasks_file() -> None:
    class Mine(Reach):
        """Lies in this file."""

    assert floors_module._code(Mine()) != floors_module._code(Reach())
