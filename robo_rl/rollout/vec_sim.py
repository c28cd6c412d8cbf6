"""VecSim: all that learners, scoring and evaluation may know of a simulator.

``sims.BatchEnv`` is one; so is the adapter around any Gymnasium env. ``step`` never resets: the
caller resets the rows it wants, after it has looked at their true last state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

Array = np.ndarray


class Step(Protocol):
    """The true successors of one action in every row."""

    @property
    def obs(self) -> Array: ...  # (N, obs_dim) f32

    @property
    def reward(self) -> Array: ...  # (N,) the task's own reward

    @property
    def terminated(self) -> Array: ...  # (N,) bool

    @property
    def truncated(self) -> Array: ...  # (N,) bool

    @property
    def info(self) -> Mapping[str, Array]: ...  # {name: (N,)}; success and diverged if known

    @property
    def action(self) -> Array: ...  # (N, act_dim) what was executed of the action asked for


class VecSim(Protocol):
    """``num_envs`` rows of one task, stepped together; every array returned is the caller's."""

    num_envs: int
    obs_dim: int
    act_dim: int
    obs_names: tuple[str, ...]
    control_dt: float  # s

    @property
    def cameras(self) -> tuple[str, ...]: ...
    @property
    def card(self) -> dict[str, Any]: ...

    def reset(self, mask: Array | None = None) -> Array:
        """Starts new episodes and returns the observations (N, obs_dim) float32.

        Args:
            mask: (N,) bool, the environments that start over; None: all.
        """
        ...

    def step(self, action: Array) -> Step:
        """Returns the true successors of ``action`` (N, act_dim) in [-1, 1]; no episode is
        reset."""
        ...

    def signals(self) -> dict[str, Array]:
        """Returns what a reward may read of all environments, {name: (N, ...)}."""
        ...

    def render(self, ids: Array | None = None, camera: str | None = None) -> Array:
        """Returns frames (k, H, W, 3) uint8 of the environments ``ids`` (k,), by default of all."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class HasStates(Protocol):
    """A simulator whose frames are a function of a state row, so they can be rendered later."""

    def state(self, ids: Array | None = None) -> Array:
        """Returns the state vectors (k, nstate) of the environments ``ids`` (k,), by default of
        all."""
        ...

    def render_states(
        self, states: Array, camera: str | None = None, *, size: tuple[int, int] | None = None
    ) -> Array:
        """Returns frames (k, H, W, 3) uint8 of the state vectors ``states`` (k, nstate).

        Args:
            states: (k, nstate) as ``state`` returned them.
            camera: The camera's name; None: the first.
            size: (height, width) px; None: as the camera has it.
        """
        ...


@runtime_checkable
class Resumable(Protocol):
    """A simulator that can be put back into the very state it was saved in."""

    def state_dict(self) -> dict[str, Array]:
        """Returns the state of all environments, {name: (N, ...)}, and counters."""
        ...

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the arrays (N, ...) that ``state_dict`` returned."""
        ...


@runtime_checkable
class HasWorkspace(VecSim, Protocol):
    """A simulator that can begin anywhere in its workspace, not only where its episodes do."""

    seed: int

    @property
    def least_spread(self) -> Array: ...  # (obs_dim,) of each column, that means anything

    def scatter(self) -> Array:
        """Samples states from the whole workspace and returns their observations (N, obs_dim)
        float32."""
        ...

    def reseed(self, seed: int) -> None: ...


@runtime_checkable
class Reseedable(Protocol):
    """A simulator whose episodes can be started over from another seed."""

    def reseed(self, seed: int) -> None: ...


def episode_steps(sim: VecSim) -> int:
    """Control steps of a full episode, from the card's ``episode_s`` and ``control_dt``."""
    return max(1, round(sim.card["episode_s"] / sim.control_dt))
