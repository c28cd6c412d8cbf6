"""Policy: what acts. A finished run's is loaded without torch: the very graph that was checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from real_robot.policy.bundle import POLICY, PolicyBundle
from robo_rl.runs.run_dir import warn_of_run

Array = np.ndarray

BEST_POLICY = "best.onnx"  # of a run: what did best while it learned, where that is not the last


@dataclass(frozen=True)
class Policy:
    """A deterministic policy without memory: raw observations in, actions in [-1, 1] out."""

    act: Callable[[Array], Array]  # obs (N, obs_dim) -> action (N, act_dim)

    def predict(
        self,
        observation: Array,
        state: Any = None,
        episode_start: Array | None = None,
        deterministic: bool = True,
    ) -> tuple[Array, None]:
        """As Stable-Baselines3 asks: (action, None), of one observation (obs_dim,) or of (N, ..).

        ``state`` and ``episode_start`` are for policies with a memory. ValueError where a random
        action is asked for: there is none.
        """
        if not deterministic:
            raise ValueError(
                "this policy is deterministic and cannot be sampled; use deterministic=True"
            )
        obs = np.asarray(observation, np.float32)
        return (self.act(obs[None])[0] if obs.ndim == 1 else self.act(obs)), None


def load_policy(run: Path) -> Policy:
    """The policy of the run's bundle, or of its graph if it has no arm.

    ValueError where there is neither.
    """
    if (run / "bundle").exists():
        bundle = PolicyBundle.load(run / "bundle")
        return Policy(lambda obs: bundle.act(obs)[0])
    path = run / POLICY
    if not path.exists():
        raise ValueError(f"{run} has neither a bundle nor {POLICY}: the run has not finished")
    warn_of_run(run)
    return load_graph(path)


def load_graph(path: Path) -> Policy:
    """The policy of one ONNX file."""
    graph = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])

    def act(obs: Array) -> Array:
        return np.asarray(graph.run(["action"], {"obs": np.asarray(obs, np.float32)})[0])

    return Policy(act)
