"""Goals drawn at random: they mean something, they vary, and the same seed draws the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sims
from reward_models.base import from_dict
from reward_models.goals import parse
from reward_models.goals.draw import draw
from reward_models.goals.formula import OPERATORS, Joined, atoms, fill, kind
from reward_models.goals.predicates import PREDICATES
from robo_rl.experiments import Options, Place, experiment
from robo_rl.experiments.drawn import CLASSES, goal_of, measure, rows

PUSH = from_dict(sims.make_task("push").card())


def operators(formula) -> set[str]:
    if not isinstance(formula, Joined):
        return set()
    return {formula.operator}.union(*map(operators, formula.parts))


def test_draws_are_formulas_of_the_card_in_every_form() -> None:
    rng = np.random.default_rng(3)
    drawn = [draw(PUSH, rng, ("push",)) for _ in range(400)]
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
    assert 0.3 < np.mean([kind(formula) == "state" for formula in drawn]) < 0.7


def test_the_same_seed_draws_the_same_and_development_draws_others() -> None:
    quoted, developed = rows(Options()), rows(Options(develop=True))
    assert len(quoted) == len({row.name for row in quoted}) == 20 * len(CLASSES)
    assert {row.of.config.judge for row in quoted} == {"test"}
    one, again, other = (goal_of(row.of)[0].wanted for row in (quoted[0], quoted[0], developed[0]))
    assert one == again != other


@pytest.mark.slow
def test_a_drawn_goal_is_trained_judged_and_told(tmp_path: Path) -> None:
    row = next(r for r in rows(Options(share=0.01, develop=True)) if r.of.of == "handle")
    found = {"name": row.name, **measure(row.of, Place(tmp_path / "row"))}
    assert found["evaluation"]["episodes"] >= 8 and "floors" in found["evaluation"]
    text = experiment("drawn").table([found])
    assert "handle: 0 of 1 goals reach 80 %" in text and found["formula"] in text
