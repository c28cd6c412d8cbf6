"""How often sentences are read right: one row for each set in tests/data.

Three formats (tests/data/README.md). A line ``{"text", "read": [...]}`` is right where its formula,
or ``refuse:CODE``, is among those accepted. A line ``{"task", "sentence", "goal": "task/key"}`` is
right where it is read as its goal, one with ``"refuse": true`` where it is refused: read into any
formula, also one that the task has no ground truth for, it is accepted wrongly. A line with a
``"formula"`` is right where it is read as that, or as one of those under ``"or"``, which say it as
well, or refused if it may be. Only counts are told, so that a set kept out of the grammar's making
stays unseen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import sims
from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from benchmarks.labelled_sentences import (
    SETS,
    UNSEEN,
    card_of,
    corpus_card,
    labelled,
    own_key,
    path_of,
)
from benchmarks.table import percent
from reward_models.analysis.metrics import wilson
from reward_models.base import TaskCard
from reward_models.goals import FormulaError, Refusal, fill, read
from reward_models.goals.formula import Formula, canonical, parse
from reward_models.goals.suggestions.proposer import SHIPPED, load_shipped
from robo_rl.goals.reading import read_card_goal
from robo_rl.runs.markdown import table


def rows(options: Options) -> list[BenchmarkRow]:
    """One for each set; its hash is of the set as it is, and of the proposer's weights."""
    code = (
        "benchmarks.reading",
        "robo_rl.goals.reading",
        "reward_models.goals",
        "sims.tasks",
        *(k.__module__ for k in sims.TASKS.values()),
    )
    weights = sha256(SHIPPED.read_bytes()).hexdigest()
    return [
        BenchmarkRow(
            what,
            {
                "set": name,
                "sha256": sha256(path_of(name).read_bytes()).hexdigest(),
                "proposer": weights,
            },
            code,
        )
        for name, what in SETS.items()
    ]


def outcome(line: Mapping[str, Any]) -> str:
    """``right``, ``wrong_accepted`` (read as what it does not mean) or ``refused_wrongly``."""
    if "read" in line:
        got = answer(line["text"], corpus_card())
        refused, right = got.startswith("refuse:"), flat(got) in map(flat, line["read"])
    elif "formula" in line:
        found = read_card_goal(card_of(line["task"]), line["sentence"])
        refused = found.formula is None
        accepted = (parse(text) for text in (line["formula"], *line.get("or", ())))
        read_so = not refused and any(same(found.formula, f, found.card) for f in accepted)
        right = bool(line.get("refuse")) if refused else read_so
    else:
        wanted, found = own_key(line), read_card_goal(card_of(line["task"]), line["sentence"])
        refused = found.formula is None and not found.key
        right = refused if not wanted else found.key == wanted
    return "right" if right else "refused_wrongly" if refused else "wrong_accepted"


def to_refuse(line: Mapping[str, Any]) -> bool:
    """Whether a line's sentence is no goal."""
    if "read" in line:
        return line["read"][0].startswith("refuse:")
    return not own_key(line) and "formula" not in line


def answer(text: str, card: TaskCard) -> str:
    """The formula of a sentence as a string, or ``refuse:CODE``."""
    try:
        return str(read(text, card))
    except Refusal as refusal:
        return f"refuse:{refusal.code}"


def flat(text: str) -> str:
    """An answer as ``canonical`` writes its formula: then(A, then(B, C)) asks for then(A, B, C)."""
    return text if text.startswith("refuse:") else str(canonical(parse(text)))


def score(name: str) -> dict[str, dict[str, int]]:
    """{"all" | "goals" | "refusals": {"total" and each outcome: count}} of a set.

    ``offered``: refused wrongly, and what is meant is among three proposals; ``needless``: refused
    rightly, and something is proposed. ``listed`` is the control: refused wrongly, and what is
    meant is among the first three goals that the task is known for.
    """
    counts = {part: Counter() for part in ("all", "goals", "refusals")}
    lines = json.loads(path_of(name).read_text(encoding="utf-8"))
    for line, (text, card, wanted) in zip(lines, labelled(name), strict=True):
        found = [outcome(line)]
        if found == ["refused_wrongly"]:
            offers = load_shipped().propose(text, card)
            known = [read(goal, card) for goal in [*card.goals.values()][:3]]
            found += ["offered"] * any(same(offer, wanted, card) for offer in offers)
            found += ["listed"] * any(same(goal, wanted, card) for goal in known)
        elif to_refuse(line) and found == ["right"]:
            found += ["needless"] * bool(load_shipped().propose(text, card))
        for part in ("all", "refusals" if to_refuse(line) else "goals"):
            counts[part].update(["total", *found])
    kinds = ("total", "right", "wrong_accepted", "refused_wrongly", "offered", "listed", "needless")
    return {part: {kind: count[kind] for kind in kinds} for part, count in counts.items()}


def same(found: Formula, wanted: Formula | None, card: TaskCard) -> bool:
    """Whether two formulas are one, once every number of both is filled in."""
    try:
        return wanted is not None and canonical(fill(found, card)) == canonical(fill(wanted, card))
    except FormulaError:
        return False  # what this scene does not have


def measure(of: Mapping[str, str], place: RowFolder) -> dict[str, Any]:
    """The counts of a set."""
    return {"set": of["set"], "counts": score(of["set"])}


def table_text(rows: Sequence[Measured]) -> str:
    """Every set, and all that no reader was made with together."""
    lines = [_line(row["name"], row["counts"]["all"]) for row in rows]
    unseen = [row["counts"]["all"] for row in rows if row["set"] in list(SETS)[:UNSEEN]]
    if len(unseen) == UNSEEN:
        lines.insert(UNSEEN, _line("all kept out", sum(map(Counter, unseen), Counter())))
    heads = (
        "sentences",
        "right (95 %)",
        "accepted wrongly",
        "refused wrongly",
        "of these offered",
        "right or offered",
        "refused rightly, something offered",
    )
    return table(heads, lines)


def _line(name: str, count: Mapping[str, int]) -> tuple[Any, ...]:
    total, right, offered = count["total"], count["right"], count["offered"]
    either = right + offered
    listed = f"{offered} (listing three goals: {count['listed']})"
    return (
        name,
        f"{right}: {_share(right, total)}",
        count["wrong_accepted"],
        count["refused_wrongly"],
        listed,
        f"{either}: {_share(either, total)}",
        count["needless"],
    )


def _share(of: int, total: int) -> str:
    low, high = wilson(of, total)
    return percent({"success": of / total, "low": low, "high": high, "episodes": total})


EXPERIMENT = Experiment(rows, measure, table_text)
