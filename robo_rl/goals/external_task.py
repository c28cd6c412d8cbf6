"""ExternalTask: anyone's Gymnasium env ``gym:ID``, where a task of ours would stand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sims.external.gymnasium_env import GymnasiumEnv


@dataclass(frozen=True, kw_only=True)
class ExternalTask:
    """A Gymnasium env: it names no goals and no entities, and its rows have no state to restore."""

    name: str  # gym:ID
    python: str = ""  # interpreter that the env runs in; empty: this one
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # constructor arguments

    goal: ClassVar[str] = ""
    formula: ClassVar[None] = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ExternalTask:
        """Returns the env that a run's config names. ValueError where its constructor arguments
        are no JSON object."""
        try:
            kwargs = json.loads(config["env_kwargs"])
        except ValueError:
            kwargs = None
        if not isinstance(kwargs, dict):
            raise ValueError(f"env_kwargs must be a JSON object, got {config['env_kwargs']!r}")
        return cls(name=config["task"], python=config["env_python"], kwargs=kwargs)

    def make_env(self, num_envs: int, seed: int, **options: Any) -> GymnasiumEnv:
        """Returns ``num_envs`` of the env, seeded by ``seed``; ``options`` are GymnasiumEnv's."""
        where = {"python": self.python, "kwargs": dict(self.kwargs)}
        return GymnasiumEnv(self.name, num_envs, seed=seed, **where, **options)
