"""Formulas: both spellings, what a card makes of them, and mistakes told in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sims
from benchmarks.labelled_sentences import card_of
from reward_models.base import TaskCard, from_dict
from reward_models.goals.formula import (
    CHOICES,
    OPERATORS,
    Atom,
    EntityChoice,
    Formula,
    FormulaError,
    Joined,
    fill,
    from_data,
    parse,
    to_data,
)
from reward_models.goals.predicates import AFTER, PREDICATES, Number, roles
from robo_rl.goals.reading import read_card_goal

DOCS = Path(__file__).parent.parent / "docs" / "reference" / "goal-language.md"
TASKS = ("reach", "stack", "peg", "drawer_then_place", "button", "ant", "hopper")
CARDS = {task: from_dict(sims.make_task(task).card()) for task in TASKS}
REACH = CARDS["reach"]


def number(slot: Number) -> st.SearchStrategy[float]:
    if slot.name == AFTER:
        return st.just(0.0)  # of any part of any formula
    return st.floats(slot.low, slot.high)


@st.composite
def atoms_of(draw: st.DrawFn, card: TaskCard, said: bool | None = None) -> Atom:
    """Any atom that fits the card, with all numbers, or with those that must be given."""
    fitting = [
        p
        for p in PREDICATES.values()
        if all(any(fits & roles(e) for e in card.entities) for fits in p.roles)
        and len(card.entities) >= p.arity
    ]
    row = draw(st.sampled_from(fitting))
    left, terms = [e for e in card.entities], []
    for fits in row.roles:
        able = [e.name for e in left if fits & roles(e)]
        if not able:
            return draw(atoms_of(card, said))
        term = draw(st.sampled_from(able))
        left = [e for e in left if e.name != term]
        terms.append(term)
    whole = draw(st.booleans()) if said is None else said
    needed = {*row.needs, *(n.name for n in row.numbers if n.default is None)}
    given_ = [n for n in row.numbers if whole or n.name in needed]
    return Atom(row.name, tuple(terms), tuple((n.name, draw(number(n))) for n in given_))


@st.composite
def formulas(draw: st.DrawFn, card: TaskCard, depth: int = 3, wanted: str = "any") -> Formula:
    """Any well-typed formula over the card."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(atoms_of(card))
    state = ["and", "or", "not"]
    name = draw(st.sampled_from(state if wanted == "state" else list(OPERATORS)[:-2]))
    row = OPERATORS[name]
    count = draw(st.integers(row.least, min(row.most, 3)))
    parts = tuple(
        draw(formulas(card, depth - 1, "state" if wanted == "state" or i in row.state else "any"))
        for i in range(count)
    )
    return Joined(name, parts, tuple((n.name, draw(st.floats(0.0, 5.0))) for n in row.numbers))


ANY = st.sampled_from(sorted(CARDS)).flatmap(
    lambda task: formulas(CARDS[task]).map(lambda formula: (CARDS[task], formula))
)


@settings(deadline=None, max_examples=150)
@given(pair=ANY, guarded=st.booleans())
def test_formula_text_and_data_round_trip(pair: tuple[TaskCard, Formula], guarded: bool) -> None:
    card, formula = pair
    if guarded:
        still = Atom.of("still", card.entities[0].name)
        formula = Joined("and", (formula, Joined("always", (still,))))
    assert parse(str(formula)) == formula
    try:
        meant = fill(formula, card)
    except FormulaError as error:  # a size that the card does not say
        assert "no default" in str(error)
        return
    assert fill(meant, card) == meant and parse(str(meant)) == meant
    assert from_data(json.loads(json.dumps(to_data(meant)))) == meant


def test_documentation_example_parses() -> None:
    text = re.search(r"^(then\(touch.*\))$", DOCS.read_text("utf-8"), re.M)
    data = re.search(r'^(\["then".*?\{\}\])$', DOCS.read_text("utf-8"), re.M | re.S)
    assert text and data
    assert to_data(fill(parse(text[1]), REACH)) == json.loads(data[1])


def test_every_predicate_is_documented() -> None:
    text = DOCS.read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    for name, row in PREDICATES.items():
        said = [line for line in rows if re.search(rf"`{name}[`(]", line.split("|")[1])]
        assert said, name
        names = {n.name for n in row.numbers}
        like_another = "as left_of" in said[0] or "the same" in said[0]
        assert like_another or all(n in " ".join(said) for n in names), name
    for name in (*OPERATORS, *CHOICES):
        assert f"`{name}" in text or f'"{name}"' in text, name


def test_formula_units_and_defaults() -> None:
    assert parse("above(gripper, a, height=5cm)") == parse("above(gripper, a, height=0.05)")
    assert parse("turned(a, angle=180 deg)")["angle"] == pytest.approx(3.14159265)  # type: ignore[index]
    assert parse("open(drawer, share=50%)")["share"] == 0.5  # type: ignore[index]

    def meant(text: str) -> str:
        return str(fill(parse(text), REACH))

    # More exactly where a number was said; another tolerance for what is to be avoided.
    assert meant("above(gripper, red_cube)").endswith("height=0.055, tolerance=0.035, over=0.025)")
    assert "tolerance=0.015" in meant("above(gripper, red_cube, height=5cm)")
    assert meant("never(touch(gripper, red_cube))").endswith("within=0.004))")
    assert meant("never(not(touch(gripper, red_cube)))").endswith("within=0.02)))")
    # By the size of what is under it.
    for task, key, aside in (
        ("pick_place", "cube_at_target", 0.03),
        ("stack", "red_on_blue", 0.02),
        ("pusher", "push", 0.06),
    ):
        goal = read_card_goal(card_of(task), key)
        assert goal.formula is not None
        formula = fill(goal.formula, goal.card)
        assert isinstance(formula, Atom) and formula["aside"] == aside


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "touch(gripper, red_cub)",
            "its second, 'red_cub', is not an entity of reach; did you mean 'red_cube'?",
        ),
        ("near(red_cube, gripper)", "its second must be object, got 'gripper'; fits here: red_"),
        (
            "lifted(red_cube)",
            "its first must be something to lift, got 'red_cube'; fits here: nothing",
        ),
        ("near(red_cube, red_cube)", "must differ"),
        ("above(gripper, red_cube, hight=3)", "no parameter 'hight'; it takes height, tol"),
        ("above(gripper, red_cube, height=50)", "height must be from 0 to 2 m, got 50"),
        ("above(gripper, red_cube, height=5s)", "height is in m, got 's'; fits: m, cm, mm"),
        ("above(gripper, red_cube, height=1, height=1)", "height is given twice"),
        ("moved(red_cube)", "needs left or front"),
        ("at_point(red_cube, x=0.1)", "needs y in m, which has no default"),
        ("hold(touch(gripper, red_cube))", "hold needs seconds"),
        ("thn(a, b)", "unknown predicate or operator 'thn'; did you mean 'then'?"),
        ("then(touch(gripper, red_cube))", "then takes 2 or more parts, got 1"),
        ("not(then(far(gripper, red_cube), far(gripper, blue_ball)))", "a state, got event"),
        ("then(never(far(gripper, red_cube)), far(gripper, red_cube))", "spans the whole episode"),
        ("touch(gripper, touch(gripper, red_cube))", "argument 2 of touch must be an entity"),
        ("touch(gripper, nearst(gripper, red_cube, blue_ball))", "operator 'nearst'"),
        ("touch(gripper, nearest(gripper, red_cube))", "nearest takes 3 entities or more, got 2"),
        ("touch(gripper, leftmost(red_cube, green))", "is not an entity of reach"),
        ("touch(gripper", "at character 14: expected , or ) in touch, got the end"),
        ("touch(gripper, red_cube) x", "expected the end, got 'x'"),
        (
            "raised(gripper, after=1)",
            "parts of the sequence before its own: a whole number from 0 to 0 here, got 1",
        ),
        (
            "and(then(touch(gripper, red_cube), within(raised(gripper, after=2), seconds=1)), "
            "never(far(gripper, red_cube)))",
            "a whole number from 0 to 1 here, got 2",
        ),
        ("then(touch(gripper, red_cube), raised(gripper, after=0.5))", "got 0.5"),
        ("not(" * 30 + "far(a, b)" + ")" * 30, "20 deep"),
    ],
)
def test_formula_error_is_one_line_and_names_the_slot(text: str, told: str) -> None:
    with pytest.raises(FormulaError) as caught:
        fill(parse(text), REACH)
    assert told in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("touch", "formula: expected [name, [arguments], {numbers}]"),
        (["touch", ["gripper"], {}], "touch takes 2 entities, got 1"),
        (["then", [["far", ["a", "b"], {}], 3], {}], "formula[1][1]: expected"),
        (["far", ["a", "b"], {"least": "much"}], "least must be a number in m, got 'much'"),
        (["far", ["a", "b"], {"least": float("nan")}], "least must be from"),
        (["far", ["a", ["nearest", ["a", "b", "c"], {"x": 1}]], {}], "nearest has no numbers"),
    ],
)
def test_formula_from_invalid_data_is_refused(data: object, told: str) -> None:
    with pytest.raises(FormulaError, match=re.escape(told)):
        from_data(data)


def test_formula_data_without_start_number_still_loads() -> None:
    """A run that was made then is judged, and what it lacks is told."""
    data = ["moved", ["red_cube"], {"left": 0.05, "front": 0.0, "tolerance": 0.02}]
    meant = fill(parse("moved(red_cube, left=5cm)"), REACH)
    assert to_data(meant) == data and from_data(data) == meant
    assert to_data(from_data(data)) == data
    later = fill(parse("then(touch(gripper, red_cube), moved(red_cube, left=5cm, after=1))"), REACH)
    assert from_data(to_data(later)) == later and to_data(later)[1][1][2]["after"] == 1.0


def test_unfilled_formula_has_no_data_form() -> None:
    with pytest.raises(FormulaError, match="lacks within: fill it against a card first"):
        to_data(parse("touch(gripper, red_cube)"))


def test_choice_of_objects_requires_matching_kinds() -> None:
    formula = parse("touch(gripper, nearest(gripper, red_cube, blue_ball))")
    assert formula == Atom.of(
        "touch", "gripper", EntityChoice("nearest", ("gripper", "red_cube", "blue_ball"))
    )
    fill(formula, REACH)
    with pytest.raises(FormulaError, match="must be object"):
        fill(parse("near(red_cube, leftmost(blue_ball, gripper))"), REACH)


@pytest.mark.parametrize("half", ["formulas", "formulas_fresh"])
def test_corpus_labels_are_valid_formulas(half: str) -> None:
    """Every answer of the corpus means something in its task."""
    path = Path(__file__).parent / "data" / f"goal_sentences_{half}.json"
    rows = json.loads(path.read_text())
    assert sum("refuse" in row for row in rows) < len(rows) / 4
    cards = {task: from_dict(sims.make_task(task).card()) for task in {r["task"] for r in rows}}
    for row in rows:
        if "refuse" not in row:
            goal = fill(parse(row["formula"]), cards[row["task"]])
            assert from_data(to_data(goal)) == goal, row
