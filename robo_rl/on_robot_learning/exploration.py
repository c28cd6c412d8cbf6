"""ExploringPolicy: a policy with smooth noise on its actions, for learning on an arm; loads no
torch.

The noise is bounded like everything that is wished for: the filter knows nothing of it. How much
there is of it is in the manifest that goes into the log.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from real_robot.core.manifest import Manifest
from real_robot.policy.bundle import PolicyBundle

Array = np.ndarray

SMOOTH = 0.25  # s, over which the noise is much the same


class ExploringPolicy:
    """Answers as ``policy`` (a bundle, or its process) does, with noise of deviation ``sd``."""

    def __init__(self, policy: Any, manifest: Manifest, sd: float, seed: int):
        self._policy, self._sd = policy, sd
        self._rng = np.random.default_rng(seed)
        self._keep = math.exp(-manifest.control_dt / SMOOTH)
        self._noise = self._rng.normal(size=manifest.action.dim)
        self._low, self._high = manifest.action.low, manifest.action.high

    def act(self, obs: Array, state: Array | None = None) -> tuple[Array, Array | None]:
        """The action (act_dim,) f32 of ``obs`` (obs_dim,), and the policy's next state."""
        action, state = self._policy.act(obs, state)
        noisy = np.clip(action + self._sd * self._noise, self._low, self._high)
        fresh = self._rng.normal(size=len(self._noise))
        self._noise = self._keep * self._noise + math.sqrt(1 - self._keep**2) * fresh
        return noisy.astype(np.float32), state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)


def with_exploration_note(bundle: PolicyBundle, **training: Any) -> PolicyBundle:
    """``bundle`` whose manifest says more of its training."""
    merged = {**bundle.manifest.training, **training}
    bundle.manifest = dataclasses.replace(bundle.manifest, training=merged)
    return bundle
