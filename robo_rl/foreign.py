"""Judging on ``gym:ID``, anyone's Gymnasium env.

Such an env has no goals of ours and no state rows: there is no sentence, no video, and success is
what the env itself reports, or is not reported at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reward_models.metrics import wilson
from robo_rl.config import TrainConfig
from robo_rl.evaluate import TEST_SEED
from sims.foreign import ForeignEnv

Array = np.ndarray
Act = Callable[[Array], Array]


@dataclass(frozen=True)
class ForeignEvaluation:
    """What ``episodes`` episodes of a policy were worth."""

    episodes: int
    return_mean: float
    return_std: float
    successes: int | None  # None: the env does not say
    seed: int

    def line(self) -> str:
        """``return 3411.2 (deviation 20.1, n=100)``, and success where the env reports it."""
        worth = f"return {self.return_mean:.1f} (deviation {self.return_std:.1f}"
        if self.successes is None:
            return f"{worth}, n={self.episodes}); success not measured: the env does not report it"
        low, high = (100 * x for x in wilson(self.successes, self.episodes))
        share = 100 * self.successes / self.episodes
        return f"{worth}); success {share:.1f} % ({low:.1f}-{high:.1f}, n={self.episodes})"


def make_sim(config: TrainConfig, num_envs: int, seed: int) -> ForeignEnv:
    """Rows of the config's env, in its interpreter."""
    try:
        kwargs = json.loads(config.env_kwargs)
    except ValueError:
        kwargs = None
    if not isinstance(kwargs, dict):
        raise ValueError(f"env_kwargs must be a JSON object, got {config.env_kwargs!r}")
    return ForeignEnv(config.task, num_envs, seed=seed, python=config.env_python, kwargs=kwargs)


def evaluate_foreign(config: TrainConfig, act: Act, episodes: int) -> ForeignEvaluation:
    """``act`` for ``episodes`` episodes on seeds nobody trained on."""
    rows = min(episodes, 32)
    sim = make_sim(config, rows, TEST_SEED)
    returns, successes = np.zeros(0), np.zeros(0, bool)
    judged = True
    while len(returns) < episodes:
        worth, success = _episode(sim, act)
        returns = np.concatenate([returns, worth])[:episodes]
        judged = judged and success is not None
        if success is not None:
            successes = np.concatenate([successes, success])[:episodes]
    sim.close()
    return ForeignEvaluation(
        episodes,
        float(returns.mean()),
        float(returns.std()),
        int(successes.sum()) if judged else None,
        TEST_SEED,
    )


def _episode(sim: ForeignEnv, act: Act) -> tuple[Array, Array | None]:
    """(return (N,), success (N,) at the end, or None) of one episode of every row."""
    obs = sim.reset()
    over, worth = np.zeros(sim.num_envs, bool), np.zeros(sim.num_envs)
    success: Any = None
    while not over.all():
        step = sim.step(act(obs))
        worth += np.where(over, 0.0, step.reward)
        if "success" in step.info:
            before = np.zeros(sim.num_envs, bool) if success is None else success
            success = np.where(over, before, step.info["success"])
        over |= step.terminated | step.truncated
        obs = step.obs
    return worth, success
