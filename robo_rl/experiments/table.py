"""Tables of rows, and what stands under them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from robo_rl.search.report import percent
from sims.versions import LIBRARIES

SHOWN = {"python", *LIBRARIES}  # of a row's versions; its machine is said before them

__all__ = ["footnote", "interval", "percent", "table"]


def table(heads: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A markdown table; columns that are empty in every line are left out."""
    cells = [[str(cell) for cell in line] for line in lines]
    shown = [k for k in range(len(heads)) if not cells or any(line[k] for line in cells)]
    rows = [[heads[k] for k in shown], ["---"] * len(shown)]
    rows += [[line[k] for k in shown] for line in cells]
    rule = "|".join(rows.pop(1))
    first, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([first, f"|{rule}|", *rest]) + "\n"


def interval(figure: Sequence[float] | None) -> str:
    """``.192 (.157-.261)``; nothing where it could not be measured."""
    if figure is None:
        return ""
    value, low, high = (f"{one:.3f}".removeprefix("0") for one in figure)
    return f"{value} ({low}-{high})"


def footnote(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the rows were measured on and with: one line for each that differs."""
    found: dict[str, int] = {}
    for row in rows:
        versions = row.get("versions", {})
        made = ", ".join(f"{k} {versions[k]}" for k in sorted(versions) if k in SHOWN)
        where = row.get("machine") or versions.get("platform", "a machine that was not noted")
        found[f"{where}; {made}"] = found.get(f"{where}; {made}", 0) + 1
    lines = [f"{count} rows: {words}" for words, count in found.items()]
    return "".join(f"\n{line}\n" for line in lines)
