"""Command lines as lists of words."""

from __future__ import annotations

from collections.abc import Sequence


def pop_option(args: Sequence[str], option: str) -> tuple[list[str], list[str]]:
    """``args`` without an option wherever it stands, and its values; "" for one without."""
    rest: list[str] = []
    values: list[str] = []
    words = iter(args)
    for word in words:
        name, given, value = word.partition("=")
        if name == option:
            values.append(value if given else next(words, ""))
        else:
            rest.append(word)
    return rest, values
