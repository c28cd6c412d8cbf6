"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(heads: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A markdown table; columns that are empty in every line are left out."""
    cells = [[str(cell) for cell in line] for line in lines]
    columns = [k for k in range(len(heads)) if not cells or any(line[k] for line in cells)]
    rows = [[heads[k] for k in columns], ["---"] * len(columns)]
    rows += [[line[k] for k in columns] for line in cells]
    rule = "|".join(rows.pop(1))
    first, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([first, f"|{rule}|", *rest]) + "\n"
