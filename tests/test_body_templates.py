"""Programs for what bodies do: paid as done only where the simulator's truth says so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sims
from reward_models.base import TaskCard, from_dict
from reward_models.goals import FormulaError, parse, read
from reward_models.programs import Program, load
from reward_models.writers.locomotion_templates import ACTED
from reward_models.writers.template_writer import NoTemplate, write_program
from robo_rl.runtime.sandbox import Job, preflight

Array = np.ndarray

GOALS = [
    ("hopper", "forward"),
    ("hopper", "front_flip"),
    ("hopper", "back_flip"),
    ("ant", "forward"),
    ("ant", "wave"),
    ("ant", "lie_down"),
    ("humanoid", "forward"),
    ("humanoid", "stand_up"),
    ("humanoid", "kneel"),
    ("humanoid", "arms_raised"),
    ("half_cheetah", "forward"),
    ("walker2d", "forward"),
]


def card_of(task: str) -> TaskCard:
    return from_dict(sims.make_task(task).card())


def program(task: str, goal: str) -> Program:
    card = card_of(task)
    return load(write_program(read(card.goals[goal], card), card), card)


class Film:
    """States written by hand, step by step: what the truth says of them and what they are paid."""

    def __init__(self, task: str, goal: str, rows: int):
        self.env = sims.make(task, rows, goal=goal, num_threads=1)
        self.env.reset()
        self.v, self.truth = self.env.views, self.env.task.goals()[goal]
        self.program = program(task, goal)
        self.signals, self.held = [self.env.signals()], []

    def shoot(self) -> None:
        """Takes the state as it was written."""
        self.env.batch.forward()
        self.env.task.after_step(self.v, np.arange(self.env.num_envs))
        self.signals.append(self.env.signals())
        self.held.append(np.array(self.truth.success(self.v)))

    def terms(self) -> tuple[dict[str, Array], Array]:
        """({component: (T, N)}, truth (T, N))."""
        steps = len(self.held)
        flat = {
            name: np.stack([s[name] for s in self.signals]).reshape(
                steps + 1, self.env.num_envs, -1
            )
            for name in self.signals[0]
        }
        after = {n: s[1:].reshape(steps * self.env.num_envs, -1) for n, s in flat.items()}
        before = {n: s[:-1].reshape(steps * self.env.num_envs, -1) for n, s in flat.items()}
        action = np.zeros((steps * self.env.num_envs, self.env.act_dim))
        terms = self.program(after, action, before, steps=steps)
        self.env.close()
        return {n: t.reshape(steps, -1) for n, t in terms.items()}, np.stack(self.held)


def walk(rng: np.random.Generator, steps: int, rows: int, width: float) -> Array:
    """(steps, rows) of smooth random courses that start at 0."""
    pushes = np.repeat(rng.normal(size=(steps // 10 + 1, rows)), 10, axis=0)[:steps]
    return width * np.cumsum(pushes, axis=0) / 10


@pytest.mark.parametrize(("goal", "sign"), [("front_flip", 1.0), ("back_flip", -1.0)])
def test_flip_template_pays_completion_only_after_a_flip(goal: str, sign: float) -> None:
    """Random turns at random heights, half of them mostly the right way round."""
    rng, steps, rows = np.random.default_rng(0), 120, 256
    film = Film("hopper", goal, rows)
    turn = walk(rng, steps, rows, 1.0) + np.linspace(0.0, 8.0, steps)[:, None] * (
        np.arange(rows) % 2
    )
    height = 0.9 + np.abs(walk(rng, steps, rows, 0.3)) * np.where(rng.random(rows) < 0.3, -1, 1)
    for t in range(steps):
        film.v.qpos[:, 1], film.v.qpos[:, 2] = np.clip(height[t], 0.2, 1.6), sign * turn[t]
        film.shoot()
    terms, held = film.terms()
    there = terms["there"] > 0
    assert not (there & ~held).any()
    assert 10 < held[-1].sum() < rows - 10 and there.sum() > 0.85 * held.sum()
    total = sum(terms.values())
    assert (total[-1] > total[0] + 0.5)[there[-1]].all()


def test_flip_template_pays_airborne_turns_not_rolling() -> None:
    made = program("hopper", "front_flip")
    rows = {
        "pitch": np.array([[0.04]] * 3),
        "torso_pos": np.array([[0, 0, 1.2], [0, 0, 0.2], [0, 0, 1.2]]),
    }
    before = {"pitch": np.array([[0.0], [0.0], [0.08]])}
    turn = made(rows, before=before, steps=1)["turn"]
    assert turn[0] > 0.5 and turn[1] == 0.0 and turn[2] < -0.5


def test_wave_template_pays_completion_only_after_a_wave() -> None:
    rng, steps, rows = np.random.default_rng(0), 90, 128
    film = Film("ant", "wave", rows)
    swing = 0.7 * np.sin(np.cumsum(rng.uniform(0.1, 0.5, (steps, rows)), axis=0))
    swing *= rng.uniform(0.3, 1.0, rows)
    down = rng.random((steps, rows)) < 0.03
    for t in range(steps):
        film.v.qpos[:, 2] = np.where(down[t], 0.1, 1.5)  # the whole ant, and with it the foot
        film.v.qpos[:, 3:7] = (1.0, 0.0, 0.0, 0.0)
        film.v.qpos[:, film.v.hips[0]] = swing[t]
        film.shoot()
    terms, held = film.terms()
    there = terms["there"] > 0
    assert not (there & ~held).any()
    # A foot put down in between makes the chain wait for a side that it has had: paid later.
    assert 20 < held[-1].sum() < rows and there[-1].sum() > 0.5 * held[-1].sum()
    assert (terms["waved"][-1] >= terms["waved"][0]).all()


def poses(task: str, goal: str, rows: int) -> Film:
    """Random tilts, heights, bends and speeds around the pose."""
    rng = np.random.default_rng(0)
    film = Film(task, goal, rows)
    v, model = film.v, film.env.model
    for _ in range(4):
        half = rng.uniform(0.0, np.pi / 2 if task == "ant" else 0.4, rows)
        v.qpos[:, 3:7] = 0.0
        v.qpos[:, 3], v.qpos[:, 4] = np.cos(half), np.sin(half)
        v.qpos[:, 2] = rng.uniform(0.3, 1.5, rows)
        v.qvel[:] = 0.0
        v.qvel[:, :3] = rng.normal(0.0, 0.15, (rows, 3))
        if task == "humanoid":
            for side in ("right", "left"):
                v.qpos[:, model.joint(f"{side}_knee").qposadr[0]] = rng.choice([0.0, -1.6], rows)
                for joint in ("shoulder1", "shoulder2", "elbow"):
                    name = model.joint(f"{side}_{joint}")
                    low, high = name.range
                    v.qpos[:, name.qposadr[0]] = rng.uniform(low, high, rows)
        film.shoot()
    return film


@pytest.mark.parametrize(
    ("task", "goal"),
    [
        ("ant", "lie_down"),
        ("humanoid", "stand_up"),
        ("humanoid", "kneel"),
        ("humanoid", "arms_raised"),
    ],
)
def test_pose_template_pays_completion_only_in_the_pose(task: str, goal: str) -> None:
    film = poses(task, goal, 800)
    terms, held = film.terms()
    there = terms["there"] > 0
    assert not (there & ~held).any()
    assert there.sum() > 0.2 * held.sum() > 2
    total = sum(terms.values())
    assert total[there].min() > np.quantile(total[~held], 0.95)


@pytest.mark.parametrize("task", ["hopper", "ant", "humanoid", "half_cheetah", "walker2d"])
def test_forward_template_pays_by_speed_and_never_for_falling(task: str) -> None:
    made, card = program(task, "forward"), card_of(task)
    sizes = {s.name: int(np.prod(s.shape)) for s in card.signals}
    rows = {name: np.zeros((5, size)) for name, size in sizes.items()}
    before = {name: array.copy() for name, array in rows.items()}
    rows["torso_pos"][:, 0] = card.control_dt * np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    if "torso_up" in rows:
        rows["torso_up"][:] = 1.0
    total = sum(made(rows, before=before).values())
    back, still, *going = total
    assert (np.diff([still, *going]) > 0.3).all() and still >= back >= 0
    assert going[-1] >= 3 * still  # as Gymnasium's own pays a hopper at 2 m/s


def test_every_grammar_action_has_a_valid_template() -> None:
    for task in sorted({t for t, _ in GOALS}):
        card = card_of(task)
        texts = [write_program(read(card.goals[g], card), card) for t, g in GOALS if t == task]
        for text in texts:
            assert not load(text, card).warnings
        if task in ("hopper", "ant"):
            assert not any(preflight([Job(text) for text in texts], card))
    asked = {a for t, g in GOALS for a in ACTED if a in str(read(card_of(t).goals[g], card_of(t)))}
    assert asked == set(ACTED)


def test_template_of_two_actions_in_sequence() -> None:
    card = card_of("humanoid")
    made = load(write_program(read("kneel, then stand up", card), card), card)
    assert made.lowered.remembers and "part2_pose" in made.components


def test_template_uses_or_refuses_numbers_of_an_action() -> None:
    ant, humanoid = card_of("ant"), card_of("humanoid")
    paces = [write_program(parse(f"forward(ant, pace={pace})"), ant) for pace in (0.5, 1, 3)]
    assert "0.0, 2.0)" in paces[1] and "0.0, 6.0)" in paces[2] and len(set(paces)) == 3
    waves = [write_program(parse(f"wave(ant, swings={swings})"), ant) for swings in (1, 3)]
    assert waves[0].count("so_far") < waves[1].count("so_far") and "/ 3.0" in waves[1]
    for said, card in (
        ("stand_up(humanoid, height=1)", humanoid),
        ("kneel(humanoid, speed=2)", humanoid),
        ("wave(ant, swings=50)", ant),
    ):
        with pytest.raises(NoTemplate, match="no reward template for"):
            write_program(parse(said), card)


@pytest.mark.parametrize("task", ["hopper", "ant", "humanoid"])
def test_template_covers_every_part_of_the_sentence(task: str) -> None:
    card = card_of(task)
    [name] = [entity.name for entity in card.entities if entity.kind == "body"]
    does = f"forward({name})"
    for predicate in ("still", "slower", "faster", "upright", "backward", "at_height"):
        for said in (
            f"{predicate}({name})",
            f"and({does}, {predicate}({name}))",
            f"then({does}, {predicate}({name}))",
        ):
            try:
                text = write_program(parse(said), card)
            except (NoTemplate, FormulaError):
                continue
            assert predicate in text, said


def test_template_error_names_the_missing_signal() -> None:
    walker = card_of("walker2d")
    with pytest.raises(NoTemplate, match="no signal 'pitch'"):
        write_program(parse("front_flip(walker)"), walker)
    humanoid = card_of("humanoid")
    with pytest.raises(NoTemplate, match="it needs a body of 4 feet; task .* has 2"):
        write_program(parse("lie_down(humanoid)"), humanoid)
    ant = card_of("ant")
    bare = replace(ant, signals=tuple(s for s in ant.signals if s.name != "torso_up"))
    with pytest.raises(NoTemplate, match="no signal 'torso_up'"):
        write_program(read("wave a leg", ant), bare)


def test_body_templates_share_no_code_with_the_judge() -> None:
    source = Path(sims.__file__).parents[1] / "reward_models/writers/locomotion_templates.py"
    assert not re.search(r"\bsims\b.*import|import.*\bsims\b|success\(", source.read_text())
