"""Goals drawn at random: they mean something, they vary, and the same seed draws the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sims
from benchmarks import Options, RowFolder, experiment
from benchmarks.drawn import CLASSES, goal_of, measure, rows
from reward_models.base import from_dict
from reward_models.goals import parse
from reward_models.goals.duration import achieved_by
from reward_models.goals.formula import OPERATORS, Joined, atoms, fill, formula_kind
from reward_models.goals.predicates import PREDICATES
from reward_models.goals.random_formulas import sample_formula
from reward_models.writers.staged import write_staged
from robo_rl.goals.goal_task import make_goal_task

PUSH = from_dict(sims.make_task("push").card())


def operators(formula) -> set[str]:
    if not isinstance(formula, Joined):
        return set()
    return {formula.operator}.union(*map(operators, formula.parts))


def test_random_formulas_cover_every_operator() -> None:
    rng = np.random.default_rng(3)
    drawn = [sample_formula(PUSH, rng, ("push",)) for _ in range(400)]
    for formula in drawn:
        assert parse(str(formula)) == formula
        filled = fill(formula, PUSH)
        assert any(
            PREDICATES[a.predicate].by == "push" and a.subject != "gripper" for a in atoms(filled)
        )
    assert set().union(*map(operators, drawn)) == set(OPERATORS)
    said = {a.predicate for formula in drawn for a in atoms(formula)}
    pushed = {p.name for p in PREDICATES.values() if p.by == "push" and p.margin}
    assert said >= pushed - {"still", "faster", "upright"} | {"touch", "above"}
    assert 0.3 < np.mean([formula_kind(formula) == "state" for formula in drawn]) < 0.7


def test_random_goals_are_seeded_and_development_differs() -> None:
    quoted, developed = rows(Options()), rows(Options(develop=True))
    assert len(quoted) == len({row.name for row in quoted}) == 20 * len(CLASSES)
    assert {row.of.config.eval_seeds for row in quoted} == {"test"}
    one, again, other = (
        goal_of(row.of)[0].goal_formula for row in (quoted[0], quoted[0], developed[0])
    )
    assert one == again != other


@pytest.mark.slow
def test_random_goal_experiment_trains_and_reports(tmp_path: Path) -> None:
    row = next(r for r in rows(Options(share=0.01, develop=True)) if r.of.of == "handle")
    found = {"name": row.name, **measure(row.of, RowFolder(tmp_path / "row"))}
    assert found["evaluation"]["episodes"] >= 8 and "floors" in found["evaluation"]
    text = experiment("drawn").table([found])
    assert "handle: 0 of 1 goals reach 80 %" in text and found["formula"] in text


def test_on_a_mark_is_pushed_and_stacking_is_not() -> None:
    for task, said, by in (
        ("pick_place", "on(red_cube, target)", "push"),
        ("stack", "on(red_cube, blue_cube)", "put"),
        ("drawer_then_place", "inside(red_cube, drawer)", "put"),
    ):
        made = make_goal_task(sims.make_task(task), parse(said))
        assert achieved_by(made.goal_formula, from_dict(made.card())) == by
        text = write_staged(made.measured, made.automaton)
        assert ("behind" in text) == (by == "push")
        assert ("gap" in text) == (by == "put")  # a grasp's
        assert made.episode_s == 6.0  # as before
