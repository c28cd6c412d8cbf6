"""The policy of a finished run, without torch: the very graph that was checked when it finished."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from real_robot.bundle import POLICY, PolicyBundle

Array = np.ndarray


def load_policy(run: Path) -> Callable[[Array], Array]:
    """obs (N, obs_dim) -> action (N, act_dim): of the run's bundle, or its graph if it has no arm.

    ValueError where there is neither.
    """
    if (run / "bundle").exists():
        bundle = PolicyBundle.load(run / "bundle")
        return lambda obs: bundle.act(obs)[0]
    path = run / POLICY
    if not path.exists():
        raise ValueError(f"{run} has neither a bundle nor {POLICY}: the run has not finished")
    graph = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return lambda obs: graph.run(["action"], {"obs": np.asarray(obs, np.float32)})[0]
