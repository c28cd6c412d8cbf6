"""How often the grammar reads a corpus of sentences right: ``python -m reward_models.goals.score``.

A corpus is a JSON list of ``{"text": ..., "read": [...]}``; ``read`` holds the accepted answers,
the best first, each a formula or ``refuse:CODE`` (tests/data/README.md).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reward_models.base import TaskCard, from_dict
from reward_models.goals import Refusal, read
from reward_models.goals.formula import Atom, Formula, Joined, parse, parts_of

_ENTITIES = (
    # name, aliases, colour, kind
    (
        "gripper",
        ("gripper", "hand", "claw", "fingers", "arm", "robot", "end effector"),
        "",
        "gripper",
    ),
    ("red_cube", ("cube", "block", "box", "brick"), "red", "cube"),
    ("blue_ball", ("ball", "sphere", "orb"), "blue", "ball"),
    ("green_cylinder", ("cylinder", "can", "tube"), "green", "cylinder"),
)


def corpus_card() -> TaskCard:
    """The scene that the corpora of tests/data speak of."""
    entities = [
        {"name": name, "aliases": list(aliases), "colour": colour, "kind": kind,
         "affordances": [], "body": name, "pose_signal": f"{name}_pose"}
        for name, aliases, colour, kind in _ENTITIES
    ]  # fmt: skip
    return from_dict(
        {"task": "corpus", "signals": [], "entities": entities, "goals": {}, "cameras": [],
         "control_dt": 0.05, "episode_s": 2.5}
    )  # fmt: skip


def answer(text: str, card: TaskCard) -> str:
    """The formula of a sentence as a string, or ``refuse:CODE``."""
    try:
        return str(read(text, card))
    except Refusal as refusal:
        return f"refuse:{refusal.code}"


def flat(text: str) -> str:
    """An answer with sequences of sequences joined: then(A, then(B, C)) asks what then(A, B, C)
    asks, and so does a conjunction of conjunctions."""
    if text.startswith("refuse:"):
        return text

    def join(formula: Formula) -> Formula:
        if isinstance(formula, Atom):
            return formula
        parts = map(join, parts_of(formula, formula.operator))
        return Joined(formula.operator, tuple(parts), formula.numbers)

    return str(join(parse(text)))


def score(path: str | Path, card: TaskCard | None = None) -> dict[str, Any]:
    """Counts over a corpus.

    ``right``: the answer is in ``read``; ``first``: it is the best one; ``wrong_accepted``: a
    formula that is not in ``read``; ``refused``: any refusal; ``refused_wrongly``: a refusal that
    is not in ``read``. ``goals`` are the rows whose best answer is a formula, ``refusals`` the
    others; ``goals.refused_allowed`` counts goals refused where ``read`` allows it.
    """
    card = corpus_card() if card is None else card
    rows = json.loads(Path(path).read_text(encoding="utf-8"))
    graded = [([*map(flat, row["read"])], flat(answer(row["text"], card))) for row in rows]

    def count(part: Sequence[tuple[list[str], str]]) -> dict[str, int]:
        refused = [(read, got) for read, got in part if got.startswith("refuse:")]
        return {
            "total": len(part),
            "right": sum(got in read for read, got in part),
            "first": sum(got == read[0] for read, got in part),
            "refused": len(refused),
            "refused_allowed": sum(got in read for read, got in refused),
            "refused_wrongly": sum(got not in read for read, got in refused),
            "wrong_accepted": sum(
                got not in read for read, got in part if not got.startswith("refuse:")
            ),
        }

    goals = [row for row in graded if not row[0][0].startswith("refuse:")]
    refusals = [row for row in graded if row[0][0].startswith("refuse:")]
    return {**count(graded), "goals": count(goals), "refusals": count(refusals)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "file", type=Path, help="a corpus such as tests/data/goal_sentences_dev.json"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    result = score(args.file)
    if args.json:
        print(json.dumps(result))
        return
    for name, part in (
        ("all", result),
        ("goals", result["goals"]),
        ("refusals", result["refusals"]),
    ):
        figures = ", ".join(f"{k} {v}" for k, v in part.items() if isinstance(v, int))
        print(f"{name}: {figures}")


if __name__ == "__main__":
    main()
