"""Programs written from sentences: they say what the sentence says, and hold where it holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sims
from reward_models.base import TaskCard, from_dict
from reward_models.goals import Atom, Refusal, parse, read
from reward_models.goals.formula import parts_of
from reward_models.goals.predicates import PREDICATES, role
from reward_models.programs import Program, load
from reward_models.writers.staged import write_staged
from reward_models.writers.template_writer import (
    NoTemplate,
    TemplateNumbers,
    adjusted_numbers,
    write_program,
)
from robo_rl.cli import main
from robo_rl.goals.goal_task import make_goal_task
from robo_rl.goals.reading import judged_goal
from robo_rl.rewards.code import template_program
from robo_rl.runtime.sandbox import Job, preflight

CARD = from_dict(sims.make_task("push").card())


def program(sentence: str, card: TaskCard = CARD) -> Program:
    return load(write_program(read(sentence, card), card), card)


def atoms() -> list[Atom]:
    return [
        Atom.of(p.name, a.name, b.name)
        for p in PREDICATES.values()
        for a in CARD.entities
        for b in CARD.entities
        if role(a) in p.spoken and role(b) == "object" and a != b
    ]


def test_every_predicate_has_a_valid_template() -> None:
    texts = [write_program(atom, CARD) for atom in atoms()]
    assert len(texts) == 5 * 3 + 4 * 6
    for text in texts:
        assert not load(text, CARD).warnings, text
    assert not any(preflight([Job(text) for text in texts[::6]], CARD))


@pytest.mark.parametrize("file", ["goal_sentences_dev.json", "goal_sentences_extra.json"])
def test_every_parsed_sentence_has_a_program(file: str) -> None:
    rows = json.loads((Path(__file__).parent / "data" / file).read_text("utf-8"))
    written = 0
    for row in rows:
        try:
            formula = read(row["text"], CARD)
        except Refusal:
            continue
        written += 1
        try:
            text = write_program(formula, CARD)
        except NoTemplate:  # a goal that is nobody's own is rewarded by stages
            task = make_goal_task(sims.make_task("push"), formula)
            load(write_staged(task.measured, task.automaton), from_dict(task.card()))
        else:
            assert load(text, CARD).lowered.remembers == (len(parts_of(formula, "then")) > 1)
    assert written > 80


@pytest.mark.parametrize("task", ["reach", "push"])
def test_template_reward_rises_under_the_expert(task: str) -> None:
    """The scripted expert ends with more reward than it begins with, most where it succeeds."""
    card = from_dict(sims.make_task(task).card())
    for goal in list(card.goals)[:: 4 if task == "reach" else 2]:
        made = sims.make_task(task, goal=goal)
        env = sims.BatchEnv(made, 24, seed=5)
        env.reset()
        begun = np.array(made.goals()[goal].success(env.views))
        rng = np.random.default_rng(0)
        reward = []
        text = program(card.goals[goal], card)
        for _ in range(env.max_steps):
            result = env.step(made.expert(env.views, rng))
            reward.append(sum(text(env.signals()).values()))
            if len(reward) == 1:
                begun |= np.array(made.goals()[goal].success(env.views))
        success = result.info["success"]
        env.close()
        assert success.mean() > 0.7, goal
        first, last = reward[0], reward[-1]
        assert (last > first)[success & ~begun].mean() > 0.9, goal


@pytest.mark.parametrize("task", ["reach", "push"])
def test_template_bonus_is_paid_only_on_success(task: str) -> None:
    """The margins lie inside the simulators' truth: what is paid as done counts as done."""
    env = sims.make(task, 512, seed=3)
    env.scatter()
    card, signals = from_dict(env.card), env.signals()
    for goal, sentence in card.goals.items():
        there = program(sentence, card)(signals)["there"] > 0
        wrong = there & ~env.task.goals()[goal].success(env.views)
        # Objects that were scattered into each other are still to fall apart.
        assert wrong.mean() <= (0.01 if task == "push" else 0.0), (goal, int(wrong.sum()))
    env.close()


HANDLING = [
    ("lift", "lift_cube"),
    ("pick_place", "cube_at_target"),
    ("stack", "red_on_blue"),
    ("drawer", "open"),
    ("drawer", "close"),
    ("button", "press"),
    ("drawer_then_place", "cube_in_drawer"),
    ("peg", "insert"),
]


@pytest.mark.parametrize(("task", "goal"), HANDLING)
def test_manipulation_bonus_is_paid_only_on_success(task: str, goal: str) -> None:
    """Beside the expert, half of whose envs act loosely, the bonus is paid only where the goal is
    true, mostly where it is, and the whole reward rises to where it is."""
    made = sims.make_task(task, goal=goal)
    card = from_dict(made.card())
    text = write_program(read(card.goals[goal], card), card)
    assert not preflight([Job(text)], card)[0]
    reward = load(text, card)
    assert not reward.warnings
    env = sims.BatchEnv(made, 12, seed=5)
    env.reset()
    rng = np.random.default_rng(0)
    loose = np.arange(12) % 2 == 1
    total, paid, held = [], 0, 0
    for _ in range(env.max_steps):
        action = np.array(made.expert(env.views, rng))
        action[loose] += rng.normal(0.0, 0.6, action[loose].shape)
        result = env.step(np.clip(action, -1.0, 1.0))
        terms = reward(env.signals())
        truth = np.array(made.goals()[goal].success(env.views))
        there = terms["there"] > 0
        assert not (there & ~truth).any()
        paid, held = paid + there.sum(), held + truth.sum()
        total.append(sum(terms.values()))
    success = result.info["success"]
    env.close()
    # The worst of five seeds is the peg: 0.67 and 0.88 of what is held; a broken writer pays 0.
    assert success[~loose].mean() > 0.4 and paid > 0.75 * held
    assert (total[-1] > total[0] + 0.5)[success].all()


def test_manipulation_template_is_staged() -> None:
    """The hand at its place first, then the thing's way, which counts for more."""

    def total(made: Program, **signals: list[float]) -> float:
        rows = {name: np.array([value]) for name, value in signals.items()}
        return float(sum(made(rows).values())[0])

    card = from_dict(sims.make_task("drawer").card())
    opens, closes = program("pull the drawer open", card), program("shut the drawer", card)
    handle, drawer = [0.24, 0.0, 0.03], [0.24, 0.09, 0.02]  # it comes out towards -y
    behind, before = [0.24, 0.021, 0.02], [0.24, -0.021, 0.02]
    for made, joint, spot, other in ((opens, 0.02, behind, before), (closes, 0.08, before, behind)):
        at, off = (
            total(made, tip=tip, handle_pos=handle, drawer_pos=drawer, drawer_joint=[joint])
            for tip in (spot, other)
        )
        slid = 0.09 if made is opens else 0.0
        done = total(
            made, tip=[0.3, 0.2, 0.1], handle_pos=handle, drawer_pos=drawer, drawer_joint=[slid]
        )
        assert done > at + 1.0 and at > off + 0.1
    card = from_dict(sims.make_task("lift").card())
    lifts = program("pick up the cube", card)
    cube, near, far = [0.2, 0.0, 0.02], [0.2, 0.02, 0.02], [0.2, 0.1, 0.1]
    steps = [
        total(lifts, tip=far, red_cube_pos=cube, gripper=[1.7]),
        total(lifts, tip=near, red_cube_pos=cube, gripper=[1.7]),
        total(lifts, tip=near, red_cube_pos=cube, gripper=[0.28]),
        total(lifts, tip=[0.2, 0.02, 0.1], red_cube_pos=[0.2, 0.0, 0.1], gripper=[0.28]),
    ]
    assert steps == sorted(steps) and steps[-1] > steps[-2] + 1.0
    thrown = total(lifts, tip=near, red_cube_pos=[0.2, 0.0, 0.2], gripper=[0.28])
    assert thrown < 0.5


PUT = (  # a task, where its cube may come to lie, and how far aside of that it still does
    ("stack", "stack the red cube on the blue one", [0.2, 0.05, 0.02], 0.06, 0.013),
    ("drawer_then_place", "put the red cube in the drawer", [0.2, 0.05, 0.02], 0.03, 0.025),
)


@pytest.mark.parametrize(("task", "sentence", "place", "rest", "aside"), PUT)
def test_placing_template_pays_lowering_the_object(
    task: str, sentence: str, place: list[float], rest: float, aside: float
) -> None:
    """Wherever it may lie each centimetre down pays more, and so does each towards the place; just
    above where it lies opening the jaws does, and then going away."""
    card = from_dict(sims.make_task(task).card())
    made, where = program(sentence, card), {"target": place, "blue_cube": place, "drawer": place}

    def held(dx: Any, z: Any, jaws: Any = 0.28, up: Any = 0.0) -> np.ndarray:
        dx, z, jaws, up = np.broadcast_arrays(dx, z, jaws, up)
        n = len(dx)
        cube = np.column_stack([place[0] + dx, np.full(n, place[1]), z])
        tip = cube + np.column_stack([np.zeros(n), np.full(n, 0.02), up])
        known = {
            "red_cube_pos": cube,
            "tip": tip,
            "gripper": jaws[:, None],
            "drawer_joint": np.full((n, 1), 0.09),
            "handle_pos": np.tile([0.2, 0.0, 0.03], (n, 1)),
        } | {f"{name}_pos": np.tile(at, (n, 1)) for name, at in where.items()}
        return np.sum([*made({name: known[name] for name in made.signals}).values()], axis=0)

    assert (np.diff(held(aside, np.arange(0.12, rest, -0.01))) > 0.02).all()
    assert (np.diff(held(np.arange(0.09, aside, -0.01), 0.11)) > 0.02).all()
    above = 0.008 if task != "stack" else 0.007
    assert (np.diff(held(0.0, rest + above, np.arange(0.3, 1.0, 0.1))) > 0.02).all()
    assert (np.diff(held(0.0, rest, 1.0, np.arange(0.0, 0.06, 0.01))) > 0.02).all()


def test_template_error_names_the_missing_card_signal() -> None:
    card = from_dict(sims.make_task("drawer").card())
    bare = replace(card, signals=tuple(s for s in card.signals if s.name != "drawer_joint"))
    with pytest.raises(NoTemplate, match="no signal 'drawer_joint'"):
        write_program(read("open the drawer", card), bare)
    peg = from_dict(sims.make_task("peg").card())
    bare = replace(peg, signals=tuple(s for s in peg.signals if s.name != "peg_up"))
    with pytest.raises(NoTemplate, match="no signal 'peg_up'"):
        write_program(read("insert the peg", peg), bare)
    bare = replace(card, entities=tuple(e for e in card.entities if e.kind != "handle"))
    with pytest.raises(NoTemplate, match="handle"):
        write_program(read("open the drawer", card), bare)


def test_template_pushes_onto_a_mark() -> None:
    card = from_dict(sims.make_task("pick_place").card())
    made = program("put the red cube on the target", card)
    assert set(made.components) == {"behind", "push", "there"}


def test_push_template_is_staged() -> None:
    made = program("push the red cube next to the blue ball")
    assert set(made.components) == {"behind", "push", "there"}
    far = {
        "tip": [[0.3, 0.2, 0.1]],
        "red_cube_pos": [[0.2, 0.0, 0.02]],
        "blue_ball_pos": [[0.2, 0.1, 0.02]],
    }
    rows = {name: np.array(value) for name, value in far.items()}

    def total(tip: tuple[float, float, float]) -> float:
        return float(sum(made(rows | {"tip": np.array([tip])}).values())[0])

    behind, on_top, beyond = (0.2, -0.045, 0.016), (0.2, 0.0, 0.06), (0.2, 0.15, 0.016)
    assert total(behind) > total(on_top) > total(beyond)
    moved = rows | {"red_cube_pos": np.array([[0.2, 0.05, 0.02]])}
    moved["tip"] = np.array([[0.2, 0.005, 0.016]])
    assert float(sum(made(moved).values())[0]) > total(behind)


def test_sequence_template_gates_the_second_part() -> None:
    made = program("touch the red cube, then touch the blue ball")
    cube, ball = (np.array([m, m]).T for m in ((0.2, 0.0, 0.1), (0.3, 0.1, 0.0)))  # away
    signals = {"red_cube_fingers": cube, "blue_ball_fingers": ball}
    after = made(signals, steps=3)
    straight = made({k: v[[0, 2, 2]] for k, v in signals.items()}, steps=3)
    assert after["part2_near"][2] > 0.9 and straight["part2_near"][2] < 0.3


def test_predicate_without_template_is_an_error() -> None:
    nested = parse(
        "and(then(far(gripper, red_cube), touch(gripper, red_cube)), far(gripper, blue_ball))"
    )
    with pytest.raises(NoTemplate, match="no reward template"):
        write_program(nested, CARD)


def test_template_numbers_adapt_to_component_statistics() -> None:
    base = TemplateNumbers()
    assert adjusted_numbers(base, {"near": (0.0, 0.01)}).wide > base.wide
    assert (
        adjusted_numbers(base, {"push": (0.2, 0.2), "behind": (0.4, 0.4)}).push_scale
        < base.push_scale
    )
    assert adjusted_numbers(base, {"push": (0.0, 0.01), "behind": (0.4, 0.49)}).behind_weight < 0.5
    assert adjusted_numbers(base, {}) == base


def test_template_writer_shares_no_code_with_the_judge() -> None:
    folder = Path(sims.__file__).parents[1] / "reward_models/writers"
    for name in ("template_writer.py", "manipulation_templates.py", "template_lines.py"):
        source = (folder / name).read_text()
        assert not re.search(r"\bsims\b.*import|import.*\bsims\b|success\(", source)


def test_reward_write_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reward", "write", "--task", "push", "--goal", "push the red cube to the ball"]
    assert main([*arguments, "--explain"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# push the red cube to the ball\ndef reward(")
    assert "the sum of behind, push, there" in out
    assert main([*arguments, "--out", str(tmp_path / "r.py")]) == 0
    assert main(["reward", "check", str(tmp_path / "r.py"), "--task", "push"]) == 0
    assert main([*arguments, "--out", str(tmp_path / "r.py")]) == 1
    assert "r.py exists already; give a new one" in capsys.readouterr().err
    capsys.readouterr()
    sentence = "touch the ball, then hover 5 cm above the cube for a second"
    assert main(["reward", "write", "--task", "reach", "--goal", sentence]) == 0
    task, goal = judged_goal(sims.make_task("reach"), sentence)  # as train learns from it
    assert capsys.readouterr().out == f"# {sentence}\n{template_program(task, goal)}"
    assert main(["reward", "write", "--task", "push", "--goal", "caress the cube"]) == 1
    assert "unknown word" in capsys.readouterr().err
