"""A task around another: the same scene and arm, with something else for its goal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, Entity, Signal, Task, TaskGoal


@dataclass(frozen=True, kw_only=True)
class TaskWrapper(Task[Any]):
    """``inner``, and whatever a subclass makes of it; episodes last as long unless it says so."""

    inner: Task[Any]
    episode_s: float = 0.0  # s; 0: that of ``inner``

    def __post_init__(self) -> None:
        if self.episode_s not in (0.0, self.inner.episode_s):
            inner = dataclasses.replace(self.inner, episode_s=self.episode_s)
            object.__setattr__(self, "inner", inner)
        for name in ("control_dt", "episode_s", "stage", "persistent"):
            object.__setattr__(self, name, getattr(self.inner, name))

    def __getstate__(self) -> dict[str, Any]:
        """Returns the fields alone, for another process: what was compiled stays in this one."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @property
    def unwrapped(self) -> Task[Any]:
        return self.inner.unwrapped

    def __getattr__(self, name: str) -> Any:
        """Whatever else the inner task has: its arm, its things, its cameras."""
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def mirrors(self) -> str:  # type: ignore[override]
        """None: this goal is nobody else's."""
        return ""

    def spread_of(self, part: str) -> float | Array:
        """Returns the inner task's spread of a column of ``obs``, a float or an array (k,)."""
        return self.inner.spread_of(part)

    def spec(self) -> mujoco.MjSpec:
        return self.inner.spec()

    def model(self) -> mujoco.MjModel:
        return self.inner.model()

    def with_own(self, v: Any, owned: Mapping[str, Array], **derived: Array) -> Any:
        """Returns the views ``v`` of the inner task with further arrays.

        Args:
            v: the views of the inner task.
            owned: {name: (N, ...)}, arrays of the wrapper that are saved with the state.
            derived: arrays (N, ...) by name that follow from ``owned`` and are not saved.
        """
        fields = [(name, Array, field(metadata={"owned": True})) for name in owned]
        views = dataclasses.make_dataclass(
            "Views", [*fields, *((name, Array) for name in derived)], bases=(type(v),)
        )
        mine = {f.name: getattr(v, f.name) for f in dataclasses.fields(v)}
        return views(**mine, **owned, **derived)

    def reset(self, v: Any, ids: Array, rng: RowRng) -> None:
        """Writes a starting state of the inner task into environments ``ids`` (n,)."""
        self.inner.reset(v, ids, rng)

    def scatter(self, v: Any, ids: Array, rng: RowRng) -> None:
        """Writes a random state of the whole workspace into environments ``ids`` (n,)."""
        self.inner.scatter(v, ids, rng)

    def control(self, v: Any, action: Array) -> None:
        """Applies ``action`` (N, act_dim) in [-1, 1] as the inner task does."""
        self.inner.control(v, action)

    def after_reset(self, v: Any, ids: Array) -> None:
        """Updates the inner task's owned arrays after a reset of environments ``ids`` (n,)."""
        self.inner.after_reset(v, ids)

    def after_step(self, v: Any, ids: Array) -> None:
        """Updates the inner task's owned arrays after a step of environments ``ids`` (n,)."""
        self.inner.after_step(v, ids)

    def obs(self, v: Any) -> dict[str, Array]:
        """Returns the inner task's observation, {name: (N, k)}."""
        return self.inner.obs(v)

    def signals(self, v: Any) -> dict[str, Array]:
        """Returns the inner task's signals, {name: (N, ...)}."""
        return self.inner.signals(v)

    def signal_docs(self) -> tuple[Signal, ...]:
        return self.inner.signal_docs()

    def entities(self) -> tuple[Entity, ...]:
        return self.inner.entities()

    def goals(self) -> Mapping[str, TaskGoal[Any]]:
        return self.inner.goals()

    def expert(self, v: Any, rng: np.random.Generator) -> Array:
        """Returns the action (N, act_dim) of the inner task's expert."""
        return self.inner.expert(v, rng)

    def terminated(self, v: Any) -> Array | bool:
        """Returns whether the inner task ends an episode early, (N,) bool or False."""
        return self.inner.terminated(v)

    def action_doc(self) -> tuple[str, ...]:
        return self.inner.action_doc()

    def area(self) -> tuple[float, ...]:
        return self.inner.area()

    def card(self) -> dict[str, Any]:
        return self.inner.card()
