"""Interventions: somebody takes over in some early episodes, and what they do is learned from.

As people do beside a robot that learns (HIL-SERL, arXiv:2410.21845). Here it is the task's scripted
expert: in a share of the episodes that begin before a given step it acts from a moment in the
first half of the episode to its end. The replay buffer keeps executed actions, so its steps are
there beside the policy's own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robo_rl.rollout.vec_sim import VecSim
from sims.core.rng import RowRng
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

_STREAM = 1 << 40  # added to the seed, from which the episodes themselves are drawn
LATEST = 0.5  # of an episode, by when somebody has taken over who does so at all


class Interventions:
    """Takes over in ``share`` of the episodes of ``sim`` that begin before env step ``until``.

    ValueError where the task has no expert.
    """

    def __init__(self, sim: VecSim, share: float, until: int):
        task = getattr(sim, "task", None)
        if not (isinstance(sim, BatchEnv) and task.solved):
            raise ValueError(
                "--interventions needs a scripted expert, and "
                f"{sim.card['task']} has none for this goal: leave it out"
            )
        self.sim, self.share, self.until = sim, share, until
        self._episode = np.full(sim.num_envs, -1, np.int64)
        self._step = np.zeros(sim.num_envs, np.int64)  # of the episode
        self._from = np.full(sim.num_envs, np.inf)  # the step from which somebody else acts
        self._counts = np.zeros(2, np.int64)  # steps in all, and of them somebody else's

    def __call__(self, action: Array, first: Array, env_steps: int) -> Array:
        """What is done (N, act_dim) where the policy would do ``action``; rows whose episode begins
        are ``first`` (N,) bool, ``env_steps`` were made before."""
        self._step = np.where(first, 0, self._step + 1)
        self._episode += first
        if first.any():
            self._from[first] = self._moments(np.flatnonzero(first), env_steps)
        taken = self._step >= self._from
        self._counts += len(taken), int(taken.sum())
        if not taken.any():
            return action
        rng = np.random.default_rng(0)  # an expert is stateless and draws nothing
        return np.where(taken[:, None], self.sim.task.expert(self.sim.views, rng), action)

    def _moments(self, rows: Array, env_steps: int) -> Array:
        """(n,) steps; infinite in episodes that are the policy's own."""
        rng = RowRng(self.sim.seed + _STREAM, self.sim.rows[rows], self._episode[rows])
        chosen, moment = rng.uniform(0, 1) < self.share, rng.uniform(0, LATEST)
        here = np.floor(moment * self.sim.max_steps)
        return np.where(chosen & (env_steps < self.until), here, np.inf)

    def pop_share(self) -> float:
        """Returns the share of the steps since the last call that were taken over."""
        steps, taken = self._counts
        self._counts[:] = 0
        return float(taken / max(steps, 1))

    def state_dict(self) -> dict[str, Array]:
        """Returns the state: ``episode``, ``step`` and ``from`` (N,), ``counts`` (2,)."""
        return {
            "episode": self._episode.copy(),
            "step": self._step.copy(),
            "from": self._from.copy(),
            "counts": self._counts.copy(),
        }

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the arrays, (N,) and (2,), that ``state_dict`` returned."""
        self._episode[:], self._step[:] = saved["episode"], saved["step"]
        self._from[:], self._counts[:] = saved["from"], saved["counts"]
