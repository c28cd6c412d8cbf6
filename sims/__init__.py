"""Batched MuJoCo tasks: ``sims.make("reach", 64)`` is a BatchEnv.

Importing this package also registers every task with Gymnasium: ``gymnasium.make("robo/Reach-v0")``
and ``gymnasium.make_vec("robo/Reach-v0", 64)`` are views of the same batch. Names are loaded when
first used, so that a process that needs ``sims.utils`` alone loads neither MuJoCo nor Gymnasium.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_HOME = {
    "ROBOTS": "sims.robots",
    "TASKS": "sims.envs.registration",
    "BatchEnv": "sims.envs.batch_env",
    "Camera": "sims.rendering.cameras",
    "Entity": "sims.core.task",
    "GymnasiumEnv": "sims.external.gymnasium_env",
    "ObsPart": "sims.core.task",
    "Signal": "sims.core.task",
    "SignalReader": "sims.core.task",
    "StepResult": "sims.core.step_result",
    "Task": "sims.core.task",
    "TaskGoal": "sims.core.task",
    "gymnasium_id": "sims.envs.registration",
    "make": "sims.envs.registration",
    "make_task": "sims.envs.registration",
    "register": "sims.envs.registration",
}
_REGISTRATION = "sims.envs.registration"
# What names of before are called now; they stay for two releases.
_FORMER = {"ForeignEnv": "GymnasiumEnv"}

__all__ = sorted(_HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def __getattr__(name: str) -> Any:
    name = _FORMER.get(name, name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


class _RegisterWithGymnasium(importlib.abc.MetaPathFinder):
    """Registers the tasks when Gymnasium is imported after this package, whoever imports it."""

    _searching = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnasium" or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                sys.meta_path.remove(self)
                load(module)
                importlib.import_module(_REGISTRATION)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    importlib.import_module(_REGISTRATION)
else:
    sys.meta_path.insert(0, _RegisterWithGymnasium())
