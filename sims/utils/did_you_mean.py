"""What is said of a name that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ALIKE = 0.5  # of 1, at least: "so11" is an so101


def unknown_name_error(
    what: str, name: str, known: Iterable[str], called: str = "known"
) -> ValueError:
    """``what`` is wrong, then the names that are ``known``, and the one that is perhaps meant."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1, ALIKE)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"{what}; {called}: {', '.join(names)}.{hint}")
