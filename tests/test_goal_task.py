"""Tasks whose goal is a formula: the account beside the judge, columns, starts, rewards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import sims
from real_robot import BundleError, PolicyBundle, SimDriver, VirtualClock, run
from real_robot.sim.scene import SimScene
from reward_models.base import from_dict
from reward_models.goals.automaton import DONE, FAILED
from reward_models.goals.duration import episode_seconds
from reward_models.goals.formula import FormulaError, parse
from reward_models.goals.margins import NoMargin
from reward_models.goals.text import to_sentence
from reward_models.programs import load
from reward_models.writers.staged import write_staged
from reward_models.writers.template_lines import NoTemplate
from robo_rl.arm.episodes import run_emulated
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import TrainConfig
from robo_rl.evaluation.evaluate import evaluate, task_of_run
from robo_rl.goals.bundle_task import task_of_bundle
from robo_rl.goals.goal_task import GoalTask, make_goal_task, training_task
from robo_rl.goals.reading import formula_goal, judged_goal
from robo_rl.learners import PPOConfig
from robo_rl.reward_analysis.coverage import collect_coverage
from robo_rl.reward_analysis.report import subject_of_run
from robo_rl.rewards import ClipConfig, make_reward
from robo_rl.runtime.sandbox import Job, preflight
from robo_rl.training.train import train
from robo_rl.vision.distilled_scene import SceneConfig
from sims.envs.batch_env import BatchEnv

Array = np.ndarray
REACH = sims.make_task("reach")
TWO = "then(touch(gripper, red_cube), hold(above(gripper, blue_ball), seconds=0.2))"
MIXED = f"and({TWO}, never(touch(gripper, green_cylinder)))"
CHOSEN = (
    "and(near(gripper, nearest(gripper, red_cube, blue_ball), within=10cm), "
    "still(gripper, speed=2))"
)
MOVED = "once(moved(gripper, front=4cm, tolerance=3cm))"
ANY = (
    "or(once(left_of(gripper, red_cube)), within(far(gripper, blue_ball, least=12cm), seconds=0.5))"
)
THERE = (
    "within(then(near(gripper, red_cube, within=6cm), raised(gripper, height=2cm, tolerance=1cm, "
    "after=1), displaced(gripper, least=4cm, after=2)), seconds=2)"
)
INSERTED = "inserted(peg, hole, deep=1cm)"
NEARER = "then(touch(gripper, red_cube), nearer(gripper, blue_ball, by=3cm, after=1))"
GUARDED = (
    "while(until(far(gripper, red_cube, least=4cm), near(gripper, blue_ball)), "
    "far(gripper, green_cylinder, least=6cm))"
)


def slow(*values: str) -> Any:
    """A case of which the others here are examples."""
    return pytest.param(*values, marks=pytest.mark.slow)


def made(text: str, task: str = "reach") -> GoalTask:
    return make_goal_task(sims.make_task(task), parse(text))


def reward(task: GoalTask) -> Any:
    return load(write_staged(task.measured, task.automaton), from_dict(task.card()))


@pytest.mark.parametrize(
    "text", [MIXED, CHOSEN, MOVED, ANY, GUARDED, THERE, slow(TWO), slow(NEARER)]
)
def test_goal_progress_matches_the_success_judge(text: str) -> None:
    """Beside each other over episodes of random play that often gets somewhere; the program reads
    the account, is sound, and pays most where the goal is done."""
    task = made(text)
    program = reward(task)
    assert not program.warnings and not preflight([Job(program.text)], from_dict(task.card()))[0]
    env = BatchEnv(task, 32, seed=1)
    obs, rng = env.reset(), np.random.default_rng(0)
    assert env.judge is not None
    agree, done_pays, else_pays = [], [], []
    things = ("red_cube_pos", "blue_ball_pos")
    for step in range(40):
        over = (0.0, 0.0, 0.03 if step < 20 else 0.08)
        to = env.signals()[things[step // 20]] + over - env.signals()["tip"]
        before = env.signals()
        got = env.step(np.clip(40.0 * to + rng.normal(0.0, 0.5, to.shape), -1.0, 1.0))
        memory = {name: env.signals()[name][:, 0] > 0 for name in (DONE, FAILED)}
        agree.append(memory[DONE] == got.info["success"])
        agree.append(memory[FAILED] == env.judge.failed())
        total = sum(program(env.signals(), before=before).values())
        done_pays += total[memory[DONE]].tolist()
        else_pays += total[~memory[DONE]].tolist()
        assert np.isfinite(got.obs).all() and (total[memory[FAILED]] == 0).all()
        goal = got.obs[:, [i for i, n in enumerate(env.obs_names) if n.startswith("goal[")]]
        assert (np.abs(goal) <= 3.0).all() and goal.any()
        obs = got.obs
    env.close()
    assert len(obs) == 32 and np.mean(agree) > 0.995
    assert done_pays, "the goal is never done here: the test shows nothing"
    assert min(done_pays) > 0.5 + 0.5 * np.mean(else_pays)


def test_goal_task_env_is_batch_independent_and_restorable() -> None:
    task = training_task(made(MIXED))
    wide, row = BatchEnv(task, 8, seed=3), BatchEnv(task, 1, seed=3, rows=[5])
    other = BatchEnv(task, 8, seed=4)
    assert np.array_equal(wide.reset()[5], row.reset()[0])
    other.reset()
    rng = np.random.default_rng(0)
    for _ in range(3):
        action = rng.uniform(-1, 1, (8, 3))
        assert np.array_equal(wide.step(action).obs[5], row.step(action[5:6]).obs[0])
    other.load_state_dict(wide.state_dict())
    action = rng.uniform(-1, 1, (8, 3))
    assert np.array_equal(wide.step(action).obs, other.step(action).obs)
    for env in (wide, row, other):
        env.close()


def test_goal_task_has_mid_goal_starts_and_ends_on_failure() -> None:
    task = replace(made(MIXED), practice=0.5, ends=True)
    env = BatchEnv(task, 200, seed=0)
    env.reset()
    slot, parts = task.automaton.sequence or ("", 0)
    part = env.signals()[slot][:, 0]
    assert parts == 2 and 0.15 < (part == 1).mean() < 0.35 and not (part == 2).any()
    assert not env.signals()[FAILED].any()  # such starts are drawn anew
    lost = 0
    for _ in range(12):
        signals = env.signals()
        to = signals["green_cylinder_pos"] - signals["tip"]
        step = env.step(np.clip(40.0 * to, -1.0, 1.0))
        assert np.array_equal(step.terminated, env.signals()[FAILED][:, 0] > 0)
        lost += int(step.terminated.sum())
    env.close()
    assert lost > 25


def test_goal_progress_level_rises_with_each_part() -> None:
    task = made(TWO)
    program = reward(task)
    away, at = [0.6, 0.6], [0.0, 0.0]
    tip, ball = [0.2, 0.0, 0.1], [0.2, 0.0, 0.021]

    def level(part: float, held: float, fingers: list[float], high: float = 0.4) -> float:
        rows = {
            "red_cube_fingers": fingers,
            "tip": [*tip[:2], high],
            "blue_ball_pos": ball,
            "goal_part_1": [part],
            "goal_held_2": [held],
            "goal_failed": [0.0],
            "goal_done": [float(part == 2)],
        }
        return float(sum(program({k: np.array([v]) for k, v in rows.items()}).values())[0])

    rising = [
        level(0, 0, away),
        level(0, 0, at),
        level(1, 0, away, high=0.25),
        level(1, 0, at, high=0.1),
        level(1, 2, at, high=0.1),
        level(1, 3, at, high=0.1),
        level(2, 4, at),
    ]
    assert rising == sorted(rising) and rising[0] < 0.1 and rising[-1] == 1.5


def test_push_reward_prefers_pushing_from_behind() -> None:
    task = made("moved(red_cube, left=8cm)", "push")
    program = reward(task)

    def level(tip: list[float], moved: float) -> float:
        cube = [0.2, -moved, 0.02]  # left is -y
        rows = {
            "tip": tip,
            "red_cube_pos": cube,
            "start_red_cube_pos": [0.2, 0.0, 0.02],
            "goal_failed": [0.0],
            "goal_done": [float(abs(moved - 0.08) <= 0.02)],
        }
        return float(sum(program({k: np.array([v]) for k, v in rows.items()}).values())[0])

    behind, before = [0.2, 0.045, 0.016], [0.2, -0.045, 0.016]
    assert level(behind, 0.0) > level(before, 0.0) + 0.2
    assert level([0.2, 0.005, 0.016], 0.04) > level(behind, 0.0)
    assert level([0.3, 0.3, 0.2], 0.08) == 1.5
    # What rests just inside the tolerance has room to go: it soon rests just outside.
    assert level([0.3, 0.3, 0.2], 0.067) == 1.5 > level([0.2, -0.016, 0.016], 0.061) > 1.2
    with pytest.raises(NoTemplate, match="no reward template for .*: predicate below is"):
        reward(made("below(red_cube, blue_ball)", "push"))
    with pytest.raises(NoTemplate, match="red_cube cannot be lifted in push"):
        reward(made("above(red_cube, blue_ball)", "push"))


@pytest.mark.parametrize(
    ("task", "goal", "text"),
    [
        ("lift", "lift_cube", "hold(lifted(red_cube, height=4cm), seconds=0.1)"),
        slow("lift", "lift_cube", "once(grasped(red_cube))"),
        ("drawer", "open", "once(open(drawer, share=0.5))"),
        ("drawer", "close", "closed(drawer, share=0.3)"),
        ("button", "press", "once(pressed(button, share=0.5))"),
        slow("pick_place", "cube_at_target", "within(on(red_cube, target), seconds=12)"),
        slow("stack", "red_on_blue", "once(above(red_cube, blue_cube, height=4cm, tolerance=2cm))"),
        ("stack", "red_on_blue", "on(red_cube, blue_cube)"),
        slow(
            "peg", "insert", "and(inserted(peg, hole, deep=1cm), always(slower(gripper, speed=5)))"
        ),
        ("drawer_then_place", "cube_in_drawer", "then(open(drawer), inside(red_cube, drawer))"),
    ],
)
def test_articulated_goal_reward_is_full_only_when_done(task: str, goal: str, text: str) -> None:
    """Beside the expert of a task's own goal: its way is paid more and more, and in full where the
    judge says that the formula is done."""
    expert = sims.make_task(task, goal=goal)
    task_ = replace(made(text, task), episode_s=expert.episode_s)
    env = BatchEnv(task_, 24, seed=5)
    env.reset()
    program, rng, paid = reward(task_), np.random.default_rng(0), []
    for _ in range(env.max_steps):
        before = env.signals()
        result = env.step(expert.expert(env.views, rng))
        paid.append(sum(program(env.signals(), before=before).values()))
    env.close()
    done = result.info["success"]
    first, middle, last = paid[0], np.mean(paid, axis=0), paid[-1]
    assert done.mean() > 0.7
    assert (last[done] == pytest.approx(1.5)) and (last[~done] < 1.0 + 1e-9).all()
    assert ((first < middle) & (middle < last))[done].all()


def test_understood_goal_is_shown_as_a_sentence() -> None:
    card = from_dict(REACH.card())
    for text, words in (
        (
            MIXED,
            "first the gripper touches the red cube, then the gripper is above the blue ball "
            "for 0.2 s; never: the gripper touches the green cylinder (within 0.4 cm)",
        ),
        (
            "above(gripper, red_cube, height=5cm)",
            "the gripper is above the red cube (height 5 cm, tolerance 1.5 cm, over 2.5 cm)",
        ),
        (
            "touch(gripper, nearest(gripper, red_cube, blue_ball))",
            "the gripper touches whichever of the red cube and the blue ball is nearest to the "
            "gripper at the start",
        ),
        (MOVED, "at some time the gripper has moved (left 0 cm, front 4 cm, tolerance 3 cm)"),
        (
            "raised(gripper, height=-3cm)",
            "the gripper is lower than at the start (height 3 cm, tolerance 2 cm)",
        ),
        (
            "then(touch(gripper, red_cube), raised(gripper, after=1), on_left(red_cube))",
            "first the gripper touches the red cube, then the gripper is higher than it was there, "
            "then the red cube is on the left side of the table",
        ),
    ):
        assert to_sentence(make_goal_task(REACH, parse(text)).goal_formula, card) == words


def test_episode_length_follows_the_goals_parts() -> None:
    push = from_dict(sims.make_task("push").card())
    for text, length in (
        ("touch(gripper, red_cube)", 2.5),
        (TWO, 5.2),
        (MIXED, 5.2),
        ("and(far(gripper, red_cube), far(gripper, blue_ball))", 2.5),
        ("and(next_to(red_cube, blue_ball), far(gripper, red_cube))", 6.5),
        ("then(moved(red_cube, left=8cm), far(gripper, red_cube))", 6.5),
    ):
        assert episode_seconds(parse(text), push) == pytest.approx(length)
    assert made("hold(touch(gripper, red_cube), seconds=0.33)").episode_s == pytest.approx(2.85)


def test_sentence_is_judged_by_its_formula() -> None:
    task, goal = judged_goal(REACH, "the gripper touches the red cube")
    assert goal.key == task.goal == "touch_red_cube" and not isinstance(task, GoalTask)
    task, goal = judged_goal(REACH, "touch the red cube, then the blue ball")
    assert isinstance(task, GoalTask) and goal.key == task.goal
    assert "first the gripper touches the red cube, then" in goal.truth
    task, goal = judged_goal(sims.make_task("ant"), "walk forward, then lie down")
    assert not isinstance(task, GoalTask) and goal.key == task.goal  # told, and not how far it is
    assert "judged by that: first the ant moves forward" in goal.truth


def test_novel_goal_has_reward_and_judge() -> None:
    """Also where it takes a grasp."""
    task, goal = judged_goal(sims.make_task("stack"), "put the blue cube on the red cube")
    env = BatchEnv(task, 2)
    assert isinstance(task, GoalTask) and goal.key and env.judge is not None
    made = make_reward("offline", goal, env)
    assert made.program is not None and "blue_cube_pos" in made.program.text


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("touch(gripper, red_cub)", FormulaError, "did you mean 'red_cube'?"),
        ("front_flip(hopper)", FormulaError, "is not an entity of reach"),
        ("lifted(red_cube)", FormulaError, "must be something to lift"),
    ],
)
def test_formula_invalid_for_the_task_is_refused(
    text: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        formula_goal(REACH, text)


def test_conflicting_goal_options_are_refused() -> None:
    for options, told in (
        ({"goal": "touch it", "reward": "offline"}, "--goal and --formula are exclusive"),
        ({"reward": "task"}, "has no dense reward for a formula"),
    ):
        with pytest.raises(ValueError, match=told):
            TrainConfig(formula=TWO, **options)
    with pytest.raises(NoMargin, match="front_flip has no margin"):
        formula_goal(sims.make_task("hopper"), "front_flip(hopper)")


def test_formula_preset_scales_steps_by_parts() -> None:
    for text, steps in ((TWO, 192_000), (MIXED, 192_000), (MOVED, 96_000)):
        config = TrainConfig(formula=text, reward="offline")
        assert with_presets(config).env_steps == steps
        assert with_presets(replace(config, env_steps=5)).env_steps == 5
    _, goal = judged_goal(REACH, "keep away from the can")
    assert goal.understood == "the gripper is far from the green cylinder"


@pytest.mark.slow
def test_formula_run_has_report_and_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robo_rl.training.train import train

    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path / "cache"))
    tuning = PPOConfig(num_envs=16, n_steps=20, minibatches=2)
    config = TrainConfig(
        formula=MIXED, reward="offline", env_steps=640, episodes=20, tuning=tuning, runs=tmp_path
    )
    trained = train(config)
    result = trained.run.result
    assert json.loads(result["truth"])[0] == "and" and "goal_part_2" in result["captions"]
    assert (trained.run.path / "report.html").exists() and trained.bundle is not None
    task = task_of_run(trained.run.config, result["truth"])
    assert isinstance(task, GoalTask) and task.episode_s == pytest.approx(5.2)
    assert not task.practice and not task.ends
    again = evaluate(task, trained.policy.act, episodes=20, seed=trained.evaluation.seed)
    assert again.successes == trained.evaluation.successes
    assert "doing nothing" in trained.evaluation.line()


def test_task_of_run_restores_the_goal() -> None:
    task, goal = formula_goal(REACH, MIXED)
    config = {"task": "reach", "robot": "", "formula": MIXED, "reward": "offline"}
    assert task_of_run(config, goal.key) == task
    assert task_of_run(config, "above_blue_ball").goal == "above_blue_ball"


def test_clip_run_of_novel_goal_is_judged_without_goal_columns(
    short_video: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No goal of the task's own: what looks at frames has no account of the parts."""
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path / "cache"))
    tuning = PPOConfig(num_envs=8, n_steps=20, minibatches=2)
    config = TrainConfig(
        goal="touch the red cube, then the blue ball",
        reward="clip",
        env_steps=160,
        episodes=20,
        eval_points=0,
        tuning=tuning,
        runs=tmp_path,
        scoring=ClipConfig(scene=SceneConfig(frames=64, holdout=16, rollouts=0.0)),
    )
    said = StringIO()
    made = train(config, console=Console(file=said, width=200))
    assert '--formula "then(touch(gripper, red_cube, within=0.02)' in said.getvalue()
    assert "in turn counts as done once it is seen" in made.run.result["sees"]
    task = task_of_run(made.run.config, made.run.result["truth"])
    assert not isinstance(task, GoalTask) and task.formula[0] == "then"
    again = evaluate(task, made.policy.act, episodes=20, seed=made.evaluation.seed)
    assert again.successes == made.evaluation.successes
    assert subject_of_run(made.run.path).task == task
    assert len(collect_coverage(task, 8).success)  # no expert acts there, who knew another goal
    assert not isinstance(task_of_bundle(PolicyBundle.load(made.bundle).manifest), GoalTask)
    as_formula = {**made.run.config, "goal": "", "formula": made.run.result["formula"]}
    assert isinstance(task_of_run(as_formula, made.run.result["truth"]), GoalTask)


PRESSES = "whoever may stay on a thing presses on it: 7 of 10, and with more steps a stall"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "steps"),
    [
        ("then(touch(gripper, red_cube), above(gripper, red_cube))", 60_000),
        pytest.param(
            "then(displaced(gripper, least=5cm), touch(gripper, red_cube))",
            40_000,
            marks=pytest.mark.xfail(reason=PRESSES, strict=False),
        ),
    ],
    ids=["in the air", "on the cube"],
)
def test_sequence_bundle_runs_on_an_arm(
    formula: str, steps: int, tmp_path: Path, training_seed: int, outcome: Callable[..., None]
) -> None:
    """The bundle names the formula, and the bridge keeps its account: what was done of it."""
    config = TrainConfig(
        formula=formula,
        reward="offline",
        env_steps=steps,
        episodes=100,
        eval_points=0,
        runs=tmp_path,
        seed=training_seed,
    )
    made = train(config)
    outcome("success", made.evaluation.success, above=0.7)
    with pytest.raises(BundleError, match="a formula.*pass task=robo_rl.goals.bundle_task.task_of"):
        run(SimDriver(REACH, clock=VirtualClock(1.0)), PolicyBundle.load(made.bundle), steps=1)
    arm = run_emulated(made.bundle, episodes=10)
    outcome("successes of 10 on the arm", arm.successes, above=5)
    assert arm.floors is not None and arm.floors.still.successes == 0


def test_arm_scene_judges_from_policy_start() -> None:
    """A deadline does not run while the arm is brought to its start."""
    task = make_goal_task(REACH, parse("within(displaced(gripper, least=3cm), seconds=0.5)"))
    scene = SimScene(task, 0)
    for begun in (False, True):
        for _ in range(round(1.0 / scene.timestep)):
            scene.step()
        if begun:
            scene.begin()
        assert not scene.success()
        scene.ctrl[scene.arm.ctrl[0]] += 0.5 if begun else 0.0
        for _ in range(round(0.4 / scene.timestep)):
            scene.step()
        assert scene.success() is begun
