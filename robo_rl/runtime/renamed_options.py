"""Options and settings whose names have changed: one table for command lines, Python and files.

UPGRADING.md lists when an old name stops working on the command line and in Python. Stored
configurations are read under their old names for good.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

RENAMED = {  # {old field: new field}; an option has dashes where its field has underscores
    # train, sweep; eval_seeds also of evaluate and clone, rate_limited also of demos
    "looks": "eval_points",
    "look_episodes": "eval_episodes",
    "judge": "eval_seeds",
    "asynchronous": "async_scoring",
    "scattered": "random_starts",
    "shaped": "rate_limited",
    "select_episodes": "validation_episodes",  # search
    "stiff": "if_torque_on",  # deploy, teleop, learn-on-arm
    "think": "policy_timeout",  # deploy
    "asks": "verdicts",  # learn-on-arm
    "trust": "min_auc",
    "draws": "bootstrap_samples",  # reward report
    "film": "video",
    "by": "labeller",  # reward label
    "ask.by": "ask.labeller",  # reward train
    "watch.scattered": "watch.random_starts",
    "kept": "stored",  # bench
}
RENAMED_VALUES = {"judge": {"select": "validation"}}  # {old field: {old value: new value}}
REMOVED_IN = "0.4.0"

Class = TypeVar("Class", bound=type)


class RenamedOption(FutureWarning):
    """An option is given under a name that a later version will not know."""

    one_line = True  # in the shell


def current_options(args: Sequence[str]) -> list[str]:
    """Command-line words with old option names replaced, each with a RenamedOption warning."""
    words: list[str] = []
    values: Mapping[str, str] = {}  # of the option before this word
    for word in args:
        name, given, value = word.partition("=")
        negated = "no-" if name.startswith("--no-") else ""
        old = name.removeprefix(f"--{negated}").replace("-", "_")
        if name.startswith("--") and old in RENAMED:
            new = f"--{negated}{RENAMED[old]}".replace("_", "-")
            _warn(name, new)
            values = RENAMED_VALUES.get(old, {})
            words.append(new + given + values.get(value, value))
        else:
            words.append(values.get(word, word))
            values = {}
    return words


def current_names(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored configuration with its old field names, and their old values, replaced."""
    found = {}
    for name, value in stored.items():
        values = RENAMED_VALUES.get(name, {})
        found[RENAMED.get(name, name)] = values.get(value, value) if values else value
    return found


def accepts_old_names(kind: Class) -> Class:
    """Class decorator: the dataclass ``kind`` also takes old field names, with a warning."""
    init = kind.__init__

    @functools.wraps(init)
    def __init__(self: Any, **values: Any) -> None:
        for old in RENAMED.keys() & values.keys():
            _warn(old, RENAMED[old])
        init(self, **current_names(values))

    kind.__init__ = __init__  # type: ignore[misc]
    return kind


def _warn(old: str, new: str) -> None:
    text = f"{old} is now called {new}; the old name works until version {REMOVED_IN}"
    warnings.warn(RenamedOption(text), stacklevel=3)
