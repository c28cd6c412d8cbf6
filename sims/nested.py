"""Arrays of a part among those of the whole: ``part/name``, as checkpoints have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

V = TypeVar("V")


def named(part: str, values: Mapping[str, V]) -> dict[str, V]:
    """``values`` as those of ``part``."""
    return {f"{part}/{name}": value for name, value in values.items()}


def part_of(saved: Mapping[str, V], part: str) -> dict[str, V]:
    """What ``named`` put among ``saved``."""
    start = f"{part}/"
    return {name.removeprefix(start): v for name, v in saved.items() if name.startswith(start)}
