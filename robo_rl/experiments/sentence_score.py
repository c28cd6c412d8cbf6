"""How often sentences are read right: ``python -m robo_rl.experiments.sentence_score FILE``.

A corpus is a JSON list of ``{"task", "sentence", "goal": "task/key"}`` or, for what is to be
refused, ``{"task", "sentence", "refuse": true}`` (tests/data/README.md). Only counts are printed,
so that a corpus kept out of the grammar's making stays unseen.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from functools import cache
from pathlib import Path

import sims
from reward_models.metrics import wilson
from robo_rl.goals import read_goal

# The corpora were written before most tasks: their keys -> the tasks' own.
OWN_KEYS = {"ant/wave_leg": "wave", "humanoid/raise_arms": "arms_raised"}
make = cache(sims.make_task)


def own_key(row: dict[str, str]) -> str:
    """The goal of the row's task that its sentence means; empty: it is to be refused."""
    goal = row.get("goal", "")
    return OWN_KEYS.get(goal, goal.removeprefix(f"{row['task']}/"))


def outcome(row: dict[str, str]) -> str:
    """What became of a row.

    ``right``: read as its goal, or read as no goal of the task where it is to be refused (of those
    ``read_anyway`` says how many were read into a formula that the task has no ground truth for).
    ``wrong_accepted``: read as another goal, or into a formula that is not its goal's.
    ``refused_wrongly``: a goal that was not read.
    """
    wanted, got = own_key(row), read_goal(make(row["task"]), row["sentence"])
    if got.key == wanted:
        return "right" if wanted or got.formula is None else "read_anyway"
    return "wrong_accepted" if got.formula is not None or got.key else "refused_wrongly"


def score(path: Path) -> dict[str, dict[str, int]]:
    """{"all" | "goals" | "refusals": {outcome: count}}."""
    counts = {name: Counter() for name in ("all", "goals", "refusals")}
    for row in json.loads(path.read_text(encoding="utf-8")):
        found = outcome(row)
        for name in ("all", "goals" if own_key(row) else "refusals"):
            counts[name].update(["total", found])
            if found == "read_anyway":
                counts[name].update(["right"])
    kinds = ("total", "right", "wrong_accepted", "refused_wrongly", "read_anyway")
    return {name: {kind: count[kind] for kind in kinds} for name, count in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", help="corpora")
    parser.add_argument("--json", action="store_true", help="print one JSON object per file")
    args = parser.parse_args()
    for path in args.files:
        result = score(path)
        if args.json:
            print(json.dumps(result))
            continue
        low, high = wilson(result["all"]["right"], result["all"]["total"])
        print(f"{path.name}: {100 * low:.1f}-{100 * high:.1f} % right")
        for name, part in result.items():
            print(f"  {name}: {', '.join(f'{k} {v}' for k, v in part.items())}")


if __name__ == "__main__":
    main()
