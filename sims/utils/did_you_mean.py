"""The error for an unknown name, with the available names and the most similar one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ALIKE = 0.5  # least similarity, of 1, of a suggestion: "so11" suggests so101


def unknown_name_error(
    what: str, name: str, known: Iterable[str], called: str = "available"
) -> ValueError:
    """The error for ``name``, which is not one of ``known``.

    Args:
        what: first words of the message, such as "unknown robot 'so11'".
        name: the name as it was given.
        known: names that exist.
        called: words before the list of names.

    Returns:
        ValueError "``what``; ``called``: ``known``. Did you mean ...?"
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, 1, ALIKE)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"{what}; {called}: {', '.join(names)}.{hint}")
