"""Arrays of a part among those of the whole: ``part/name``, as checkpoints have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


def add_prefix(part: str, values: Mapping[str, V]) -> dict[str, V]:
    """``values`` as those of ``part``."""
    return {f"{part}/{name}": value for name, value in values.items()}


def select_prefix(saved: Mapping[str, V], part: str) -> Mapping[str, V]:
    """What ``add_prefix`` put among ``saved``; each is read from there when it is asked for."""
    return _PrefixView(saved, f"{part}/")


class _PrefixView(Mapping[str, V], Generic[V]):
    def __init__(self, saved: Mapping[str, V], start: str):
        self._saved, self._start = saved, start
        self._names = [n.removeprefix(start) for n in saved if n.startswith(start)]

    def __getitem__(self, name: str) -> V:
        return self._saved[self._start + name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
