"""The patterns of ``wordings.toml``, one constant per table.

Patterns are texts in the notation of ``patterns.py``. A deed is (predicate, verbs, what follows).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

_PART = re.compile(r"{(\w+)}")  # the name of a part


def _filled(value: Any, parts: dict[str, str]) -> Any:
    """A value of the file with its parts filled in, and tuples for lists."""
    if isinstance(value, str):
        return _PART.sub(lambda name: parts[name[1]], value)
    if isinstance(value, dict):
        return {key: _filled(inner, parts) for key, inner in value.items()}
    return tuple(_filled(inner, parts) for inner in value) if isinstance(value, list) else value


def _tables() -> tuple[dict[str, str], dict[str, Any]]:
    """(parts, tables) of the file; a part may hold the parts above it."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    parts: dict[str, str] = {}
    for name, text in tables.pop("parts").items():
        parts[name] = _filled(text, parts)
    return parts, _filled(tables, parts)


Deeds = tuple[tuple[str, str, str], ...]
_PARTS, _TABLES = _tables()
START, HERE, ANYWHERE = (_PARTS[name] for name in ("start", "here", "anywhere"))

RELATIONS: dict[str, tuple[str, ...]] = _TABLES["relations"]
STATES: dict[str, tuple[str, ...]] = _TABLES["states"]
POSES: dict[str, tuple[str, ...]] = _TABLES["poses"]
BODY_OF: dict[str, str] = _TABLES["bodies"]
UPRIGHT_WAYS: dict[str, str] = _TABLES["upright_ways"]
DIRECTIONS: dict[str, tuple[int, int]] = {
    text: (left, front) for left, front, text in _TABLES["directions"]["rows"]
}

_VERBS = _TABLES["verbs"]
DEEDS: Deeds = _VERBS["deeds"]
UNCLEAR: Deeds = _VERBS["unclear"]
BODY_DEEDS: Deeds = _VERBS["body_deeds"]
POSE_VERBS: str = _VERBS["pose_verbs"]
PLACE: str = _VERBS["place"]
PLACE_HAND: str = _VERBS["place_hand"]
GO: str = _VERBS["go"]
GOES: str = _VERBS["goes"]
STAY = frozenset(_VERBS["stay"].split())
MAKE: str = _VERBS["make"]

STATEMENTS: tuple[tuple[str, str], ...] = _TABLES["statements"]["rows"]
MEASURED = frozenset(_TABLES["statements"]["measured"].split())

_SENTENCES = _TABLES["sentences"]
POLITE: tuple[str, ...] = _SENTENCES["polite"]
LEADING: tuple[str, ...] = _SENTENCES["leading"]
OPENERS: tuple[str, ...] = _SENTENCES["openers"]
STARTERS: tuple[str, ...] = _SENTENCES["starters"]
VIEWS: tuple[str, ...] = _SENTENCES["views"]
IMPLIED: tuple[tuple[str, str], ...] = _SENTENCES["implied"]
REASONS: tuple[str, ...] = _SENTENCES["reasons"]
TOOLS: tuple[str, ...] = _SENTENCES["tools"]
