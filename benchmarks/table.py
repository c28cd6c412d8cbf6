"""Tables of rows, and what stands under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robo_rl.search.report import percent
from sims.utils.versions import LIBRARIES

SHOWN = {"python", *LIBRARIES}  # of a row's versions; its machine is said before them

__all__ = ["footnote", "interval", "percent"]


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
