"""Rewards judged on known episodes: what they were paid, what the figures say of good and bad ones,
and a run's whole way through the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from point_mass import InTurn
from test_learners import assert_same
from test_periodic_eval import CONFIG, Judge, trained
from test_scorers import Rows, unit

import sims
from real_robot.policy.bundle import PolicyBundle
from reward_models.base import Segment, from_dict
from reward_models.goals.formula import fill, parse, to_data
from reward_models.programs import ProgramReward, load
from reward_models.scorers.goal_image import GoalImage
from robo_rl.cli import main
from robo_rl.config.train_config import TrainConfig
from robo_rl.evaluation import overoptimization
from robo_rl.evaluation.evaluate import VALIDATION_SEED
from robo_rl.evaluation.overoptimization import OveroptimizationMonitor
from robo_rl.evaluation.reward_tables import figures_text, interval, overoptimised, short_name
from robo_rl.goals.reading import read_goal
from robo_rl.learners import PPOConfig
from robo_rl.learners.fit import fit
from robo_rl.reward_analysis.coverage import FREE, SHORT, collect_coverage
from robo_rl.reward_analysis.figures import (
    JudgedReward,
    classification_metrics,
    episode_outcomes,
    reward_distances,
    state_value,
    value_order,
)
from robo_rl.reward_analysis.language import (
    _rewards_at_ends,
    language_figures,
    opposite_goal,
    sentence_paraphrases,
)
from robo_rl.reward_analysis.scores import (
    by_entry,
    by_model,
    clock,
    dense,
    forward,
    reversed_steps,
    sparse,
    whole_episodes,
)
from robo_rl.rewards.base import RewardConfig
from robo_rl.runs.run_dir import RunDir
from robo_rl.training.periodic_eval import EvalCallback
from robo_rl.training.report import write_report
from robo_rl.training.train import train
from robo_rl.vision.episodes import EXPERT
from sims.envs.batch_env import BatchEnv

REACH = sims.make_task("reach", goal="touch_red_cube")
CARD = from_dict(REACH.card())
NEARER = """
def reward(tip, prev_tip, red_cube_pos):
    return {"way": norm(prev_tip - red_cube_pos) - norm(tip - red_cube_pos)}
"""
HEIGHT = "def reward(tip):\n    return {'height': tip[2]}\n"


@pytest.fixture(scope="module")
def seen():
    return collect_coverage(REACH, 48)


# Episodes and what they were paid.
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 3))
def test_reversed_episodes_mirror_the_forward_ones(length, start) -> None:
    length = np.array(length)
    way = forward(np.arange(len(length)), length, start)
    turned = reversed_steps(way)
    for i, n in enumerate(length):
        own = start + np.arange(n + 1)
        assert way.entry[: n + 1, i].tolist() == own.tolist()
        assert turned.entry[: n + 1, i].tolist() == own[::-1].tolist()
        assert turned.action[:n, i].tolist() == way.action[:n, i][::-1].tolist()
        assert (way.entry[n:, i] == start + n).all() and (turned.entry[n:, i] == start).all()
    assert (way.valid.sum(axis=0) == length).all()


def test_archive_episodes_are_labelled_by_actor(seen) -> None:
    assert set(seen.who) > {EXPERT, SHORT, *FREE} and seen.of((EXPERT,)).size
    assert seen.met[seen.of((EXPERT,))].all() and seen.valid.all()
    result = episode_outcomes(seen)
    assert (result[seen.met] == 2).all() and {0, 1, 2} == set(result)
    # What is kept of an entry is what the simulator has in that state.
    with_state = BatchEnv(REACH, len(seen.who))
    obs = with_state.set_state(seen.states[7])
    np.testing.assert_allclose(obs, seen.obs[7], atol=1e-5)
    np.testing.assert_allclose(with_state.signals()["tip"], seen.signals["tip"][7], atol=1e-6)
    np.testing.assert_allclose(with_state.distance(), seen.distance[7], atol=1e-6)
    with_state.close()


def test_early_episode_end_masks_later_steps() -> None:
    hopper = collect_coverage(sims.make_task("hopper"), 16)
    assert set(hopper.who) == set(FREE)
    over = hopper.terminated.any(axis=0)
    assert over.any() and (hopper.length[over] == hopper.terminated.argmax(axis=0)[over] + 1).all()
    assert not hopper.valid[hopper.length[over], np.flatnonzero(over)].any()
    truth = JudgedReward("task", by_entry(dense))
    pay = truth.pay(hopper, whole_episodes(hopper))
    assert (np.isfinite(pay.reward) == hopper.valid).all()
    assert classification_metrics(truth, pay, hopper, draws=4)["frames"] == hopper.valid.sum()
    found = reward_distances(
        [truth], {"task": pay.reward}, ["task"], hopper, np.arange(16), 0.97, draws=4
    )
    assert found["task"]["starc"]["task"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_program_reward_is_scored_on_executed_steps(seen) -> None:
    model = ProgramReward(load(NEARER, CARD))
    tip, cube = seen.signals["tip"], seen.signals["red_cube_pos"]

    def nearer(before: np.ndarray, after: np.ndarray, thing: np.ndarray) -> np.ndarray:
        return np.linalg.norm(before - thing, axis=2) - np.linalg.norm(after - thing, axis=2)

    paid = by_model(model)(seen, whole_episodes(seen))
    np.testing.assert_allclose(paid.reward, nearer(tip[:-1], tip[1:], cube[1:]), atol=1e-6)
    np.testing.assert_allclose(paid.parts["way"], paid.reward, atol=1e-6)
    turned = by_model(model)(seen, reversed_steps(whole_episodes(seen))).reward
    expected = nearer(tip[1:], tip[:-1], cube[:-1])[::-1]
    np.testing.assert_allclose(turned, expected, atol=1e-6)


def test_archive_frames_match_states_in_both_directions(seen) -> None:
    model = GoalImage(Rows(), np.abs(unit(2, 3)))  # no score below 0, where all are paid alike
    few = forward(np.array([0, 5, 9]), np.array([4, 2, 3]))
    env = BatchEnv(REACH, 1)
    for way in (few, reversed_steps(few)):
        found = by_model(model)(seen, way).reward
        for i, (column, n) in enumerate(zip(way.column, way.length, strict=True)):
            states = seen.states[way.entry[1 : n + 1, i], column]
            frames = env.render_states(states, "front", size=Rows.size)
            raw = model.raw(Rows().encode(frames))
            assert np.argsort(found[:n, i]).tolist() == np.argsort(raw).tolist()
            assert np.isnan(found[n:, i]).all()
    env.close()


# Figures of rewards that are known to be good or bad.
def figures(seen, name: str, pay, **more):
    judged = JudgedReward(name, pay, **more)
    found = pay(seen, whole_episodes(seen))
    return (
        judged,
        found.reward,
        value_order(judged, found.reward, seen)
        | classification_metrics(judged, found, seen, draws=8),
    )


def test_reward_report_ranks_truth_first_and_detects_a_clock(seen) -> None:
    _, _, truth = figures(seen, "sparse", by_entry(sparse))
    assert truth["auc all"][0] == truth["average precision all"] == 1.0
    assert truth["threshold"]["false positives"]["share"] == 0.0
    assert truth["threshold"]["found"]["share"] == 1.0
    _, _, time = figures(seen, "time", clock)
    assert time["success"] == time["reversed"] == time["failure"] == 1.0
    assert time["order"] == 0.0 and 0.3 < time["auc all"][0] < 0.7
    _, _, own = figures(seen, "task", by_entry(dense))
    assert own["success"] > 0.5 and own["reversed"] < -0.4 and own["failure"] < 0.3
    assert own["order"] > 0.6 and own["nearness"] > 0.95 and own["auc free"][1] > 0.99


def test_starc_separates_shaping_from_another_goal(seen) -> None:
    program = ProgramReward(load(NEARER, CARD))
    gap = 0.97
    judged = [
        JudgedReward("task", by_entry(dense)),
        JudgedReward("negated", by_entry(lambda c: -dense(c))),
        JudgedReward("way", by_model(program), state_value(program)),
        JudgedReward("shaped", by_entry(lambda c: dense(c) + gap * far(c)[1:] - far(c)[:-1])),
        JudgedReward("nothing", by_entry(lambda c: np.ones_like(c.dense))),
    ]
    paid = {j.name: j.pay(seen, whole_episodes(seen)).reward for j in judged}
    found = reward_distances(judged, paid, ["task"], seen, np.arange(len(seen.who)), gap, draws=16)
    starc = {name: row["starc"]["task"] for name, row in found.items()}
    assert starc["task"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    assert starc["negated"][0] == pytest.approx(1.0) and starc["nothing"][0] == pytest.approx(0.5)
    assert starc["shaped"][0] < 0.1 and starc["shaped"][1] <= starc["shaped"][2]
    assert found["negated"]["epic"]["task"][0] == pytest.approx(1.0)


def far(cover):
    return -5.0 * np.sqrt(cover.distance)


# Words.
def test_language_tests_use_paraphrases_and_opposites() -> None:
    goal = read_goal(REACH, "left_of_blue_ball")
    turned = opposite_goal(goal, REACH)
    assert turned.key == "right_of_blue_ball"
    said = sentence_paraphrases(goal)
    assert any("sphere" in text for text in said) and goal.text not in said
    assert all(read_goal(REACH, text).key == goal.key for text in said if "please" in text)


def test_sequence_ends_are_rewarded_as_the_last_part() -> None:
    pos = np.array([[[0.0, 0.0]], [[-0.8, 0.0]]])  # at the second thing, after one step
    end = Segment({"pos": pos}, None, np.zeros((1, 1, 2)), np.ones((1, 1), bool))
    assert _rewards_at_ends(InTurn(), end) == pytest.approx([1.8])


def test_program_reward_identifies_its_own_sentence() -> None:
    push = sims.make_task("push")
    goal = read_goal(push, next(iter(push.goals())))
    env = BatchEnv(push, 1)
    found = language_figures("offline", goal, push, RewardConfig(), env)
    env.close()
    assert found["goals"] == list(push.goals()) and found["ends"] == 6 * len(push.goals())
    assert found["accuracy"] > 0.9 > found["chance"] and found["auc_least"] > 0.9
    assert found["paraphrases"]["understood"] > 3 and found["paraphrases"]["spread"] < 1e-6
    assert found["opposite"]["share"] == 1.0
    assert language_figures("constant", goal, push, RewardConfig(), env) is None


# While training.
def to_the_cube(env: BatchEnv):
    """A policy that goes straight to the red cube, from what it observes."""
    columns = [env.obs_names.index(f"tip_to_thing[{i}]") for i in range(3)]
    return lambda obs: np.clip(20.0 * obs[:, columns], -1.0, 1.0)


def upwards(obs: np.ndarray) -> np.ndarray:
    return np.tile(np.float32([0.0, 0.0, 1.0]), (len(obs), 1))


def test_more_reward_with_less_success_flags_overoptimisation() -> None:
    env = BatchEnv(REACH, 24)
    judge = OveroptimizationMonitor(env, ProgramReward(load(HEIGHT, CARD)))
    good = judge(to_the_cube(env))
    assert good["success"] > 0.4 and not good["overoptimised"]
    saved = judge.state_dict()
    turned = judge(upwards)
    assert turned["success"] == 0.0 and turned["proxy"] > good["proxy"] and turned["overoptimised"]
    # A judge that goes on from what was saved says the same; a better reward sees no such thing.
    again = OveroptimizationMonitor(env, ProgramReward(load(HEIGHT, CARD)))
    again.load_state_dict(saved | {"frames": np.array(7)})
    assert again(upwards) == turned and again.state_dict()["frames"] == again.frames == 7
    honest = OveroptimizationMonitor(env, ProgramReward(load(NEARER, CARD)))
    honest(to_the_cube(env))
    assert not honest(upwards)["overoptimised"]
    # What a look is paid is the mean of the rewards of its steps.
    env.reseed(VALIDATION_SEED)
    obs, heights = env.reset(), []
    for _ in range(env.max_steps):
        obs = env.step(upwards(obs)).obs
        heights.append(env.signals()["tip"][:, 2])
    assert turned["proxy"] == pytest.approx(np.mean(heights), abs=1e-5)
    env.close()


def test_proxy_evaluation_does_not_change_training(tmp_path: Path) -> None:
    learned = []
    for count in (0, 2):
        run = RunDir.create(tmp_path / str(count), CONFIG)
        model = ProgramReward(load(NEARER, CARD))
        judge = OveroptimizationMonitor(BatchEnv(REACH, 8), model)
        hooks = [
            EvalCallback(judge, run, env_steps=512, eval_points=n, cost=1) for n in [count] if n
        ]
        fitted = fit(BatchEnv(REACH, 8), model, CONFIG, env_steps=512, run=run, hooks=hooks)
        learned.append(fitted.learner)
    assert_same(*learned)


def test_proxy_evaluation_renders_few_envs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overoptimization, "FRAMES", 250)
    env = BatchEnv(REACH, 8)
    judge = OveroptimizationMonitor(env, GoalImage(Rows(), unit(2, 3)))
    judge(upwards)
    assert judge.frames == 250 == 5 * env.max_steps
    own = OveroptimizationMonitor(env, None)(upwards)
    env.reseed(VALIDATION_SEED)
    obs, rewards = env.reset(), []
    for _ in range(env.max_steps):
        step = env.step(upwards(obs))
        obs = step.obs
        rewards.append(step.reward)
    assert own["proxy"] == pytest.approx(np.mean(rewards), abs=1e-5)
    env.close()


def test_stop_overoptimised_ends_training(tmp_path: Path) -> None:
    class Turning(Judge):
        def __call__(self, act):
            found = super().__call__(act)
            return found | {"overoptimised": float(found["success"] < 0.6)}

    told: list[str] = []
    run = RunDir.create(tmp_path / "run", CONFIG)
    marks = 0.9, 0.5, 0.4, 0.3
    fitted = trained(run, Turning(*marks), stop_overoptimised=True, warn=told.append)
    assert fitted.learner.env_steps == 512 and "50%, then 90%" in told[0]
    other = RunDir.create(tmp_path / "other", CONFIG)
    assert trained(other, Turning(*marks), warn=told.append).learner.env_steps == 1024
    assert len(told) == 4
    with pytest.raises(ValueError, match="set eval_points above 0"):
        TrainConfig(stop_overoptimised=True, eval_points=0)


# The command.
@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, short_video: None) -> Path:
    config = TrainConfig(
        task="reach",
        goal="touch_red_cube",
        reward="offline",
        env_steps=512,
        episodes=4,
        eval_episodes=4,
        eval_points=1,
        runs=tmp_path_factory.mktemp("runs"),
        name="short",
        tuning=PPOConfig(num_envs=16, n_steps=16, net=(16,)),
    )
    return train(config).run.path


def test_reward_report_of_a_run_is_stored(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looked = RunDir.open(run).evaluations.read()
    assert np.isfinite(looked["proxy"]).all() and not looked["overoptimised"].any()
    few = ["--episodes", "16", "--bootstrap-samples", "16", "--no-words", "--json"]
    assert main(["reward", "report", str(run), *few]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["judged"] == ["offline"] and report["truths"] == ["sparse", "task"]
    assert "the policy in short" in report["coverage"]
    near, wild = report["rewards"]["offline"], report["controls"]["random"]
    for part in ("free", "all"):
        assert near[part]["starc"]["task"][0] < wild[part]["starc"]["task"][0] - 0.15
    shaped = report["controls"]["truth, shaped"]
    assert shaped["all"]["epic"]["task"][0] < 1e-6 and shaped["all"]["starc"]["task"][0] < 0.1
    assert near["language"] is None and near["sees"] == "the task's signals"
    assert json.loads((run / "reward_report.json").read_text())["truth"] == "touch_red_cube"
    page = (run / "report.html").read_text()
    assert "The reward, judged" in page and "truth, shaped (control)" in page
    assert (run / "paid_failures.webm").stat().st_size > 1000
    # The bundle is whole, and carries the short of it.
    carried = PolicyBundle.load(run / "bundle").manifest.metrics["reward_report"]
    assert carried["starc"]["all"] == near["all"]["starc"] and carried["reward"] == "offline"
    write_report(RunDir.open(run))  # as often as one likes


def test_reward_report_page_is_complete(run: Path, tmp_path: Path) -> None:
    told = RunDir.open(run).result
    copy = RunDir(Path(shutil.copytree(run, tmp_path / "run")))
    formula = fill(parse("then(touch(gripper, red_cube), touch(gripper, blue_ball))"), CARD)
    copy.finish({**told, "goal": "", "formula": "", "truth": json.dumps(to_data(formula))})
    page = write_report(copy).read_text()
    assert "<h1>reach</h1>" in page and "Formula</th><td>none" in page
    assert f"Ground truth</th><td>{formula}</td>" in page
    assert "<td><pre># the gripper touches the red cube\ndef reward(" in page
    assert "cached" not in page and "Frames rendered" not in page  # no frame was ever asked for


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["task", "--episodes", "4"], "at least 16"),
        (["sparse", "--goal", "touch the red cube twice"], "Did you mean|not"),
        (["bad"], "available rewards"),
        (["nowhere.safetensors"], "not a scorer"),
        (["task", "--out", "x.csv"], ".json file"),
    ],
)
def test_reward_report_errors_are_one_line(arguments, said, capsys) -> None:
    assert main(["reward", "report", *arguments]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and any(part in lines[0] for part in said.split("|"))


@pytest.mark.slow
def test_reward_report_compares_frame_and_state_rewards(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "clip",
        "constant",
        "--task",
        "push",
        "--episodes",
        "48",
        "--bootstrap-samples",
        "16",
        "--json",
    ]
    assert main(["reward", "report", *asked]) == 0
    report = json.loads(capsys.readouterr().out)
    seen, nothing = (report["rewards"][name] for name in ("clip", "constant"))
    assert seen["sees"] == "frames" and seen["all"]["starc"]["sparse"][0] < 0.5
    assert nothing["all"]["starc"]["sparse"][0] == pytest.approx(0.5, abs=1e-12)
    assert seen["language"]["accuracy"] > 0.8 and seen["auc all"][0] > 0.9


def test_reward_tables_use_short_numbers() -> None:
    assert (
        short_name("success:a/b/c.safetensors") == "success:c.safetensors"
        and short_name("clip") == "clip"
    )
    assert interval([0.1234, -0.05, 1.0]) == ".123 (-.050-1.000)" and interval(None) == "-"
    assert overoptimised({"env_steps": np.array([5.0, 9.0])}) == []
    looks = {"env_steps": np.array([5.0, 9.0]), "overoptimised": np.array([np.nan, 1.0])}
    assert overoptimised(looks) == [9]


def test_epic_evaluates_programs_on_counterfactual_states(seen) -> None:
    """Of ``|prev - cube'| - |tip' - cube'|`` the mean over imagined successors is that of the first
    term from each state, but for a constant."""
    left = state_value(ProgramReward(load(NEARER, CARD)))(seen)
    rng, (at, of) = np.random.default_rng(0), np.nonzero(seen.valid)
    some = rng.integers(len(at), size=32)
    cube = seen.signals["red_cube_pos"][at[some] + 1, of[some]]
    expected = np.linalg.norm(seen.signals["tip"][:, :, None] - cube, axis=3).mean(axis=2)
    np.testing.assert_allclose(np.ptp(left - expected), 0.0, atol=1e-5)
    assert state_value(ProgramReward(load(HEIGHT, CARD))) is None


def test_figures_text_is_one_line() -> None:
    found = {"cells": 12, "auc": 0.98123456, "none": None, "asked": {"first": 3}, "said": ["a"]}
    assert figures_text(found) == "cells: 12; auc: 0.9812; none: -; asked: first 3; said: a"
