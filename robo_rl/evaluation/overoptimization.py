"""What a reward pays the episodes by which a policy is judged, and whether it turned against them.

Each evaluation plays the same episodes of the validation seed. There the reward, a proxy, and
the judge's verdict stand side by side, and the policy now beside the best one before it: where it
is paid more and succeeds less, both beyond noise, it is over-optimised
(``reward_models/analysis/overoptimization.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reward_models.analysis.overoptimization import compare_proxy_with_truth
from reward_models.base import RewardModel, Segment, positions_from_start
from robo_rl.evaluation.evaluate import VALIDATION_SEED
from robo_rl.rollout.episode_runner import (
    Act,
    Choose,
    EpisodeOutcome,
    active_rows_policy,
    run_episode,
)
from robo_rl.rollout.scoring import StoredFrames
from sims.core.step_result import StepResult
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

FRAMES = 1000  # drawn for a look, about: as many rows are paid as that many show
FEWEST = 4  # rows that are paid whatever that costs


class OveroptimizationMonitor:
    """Figures of a policy on the validation seed: ``success``, median ``distance``, ``proxy`` (mean
    reward per step) and whether it is ``overoptimised``."""

    def __init__(self, env: BatchEnv, model: RewardModel | None, *, sparse: bool = False):
        """``model`` None: the task's own reward, or with ``sparse`` the judge's verdict."""
        self._env, self._model, self._sparse = env, model, sparse
        frames = model is not None and "frames" in model.needs
        least = max(FEWEST, FRAMES // env.max_steps) if frames else env.num_envs
        self._rows = np.arange(min(least, env.num_envs))
        self.frames = 0  # drawn
        self._best: dict[str, Array] = {}  # of the best look so far: version, proxy, success

    def __call__(self, act: Act) -> dict[str, float]:
        env = self._env
        env.reseed(VALIDATION_SEED)
        episodes = _Recorder(env, self._rows, self._model, self._sparse)
        outcome = run_episode(
            env, episodes.choose(active_rows_policy(act, env.act_dim)), episodes.judge
        )
        proxy = episodes.paid()
        self.frames += episodes.frames
        known = outcome.distance[np.isfinite(outcome.distance)]
        figures = {"success": float(outcome.success.mean()), "proxy": float(proxy.mean())}
        figures["overoptimised"] = float(self._turned(proxy, outcome))
        return figures | ({"distance": float(np.median(known))} if len(known) else {})

    def _turned(self, proxy: Array, outcome: EpisodeOutcome) -> bool:
        """Returns whether the policy is over-optimised compared with the best one, which it becomes
        if it is as good. A refitted reward starts the comparison again."""
        version = np.array(getattr(self._model, "version", 0))
        now = {"version": version, "proxy": proxy, "success": outcome.success}
        best = self._best
        if not best or best["version"] != version:
            self._best = now
            return False
        if outcome.success.mean() >= best["success"].mean():
            self._best = now
            return False
        pays, truths = (best["proxy"], proxy), (best["success"], outcome.success)
        return compare_proxy_with_truth(pays, truths).overoptimised

    def state_dict(self) -> dict[str, Array]:
        """Returns the best evaluation so far, and the number of frames rendered for all.

        Returns:
            ``version`` of the reward model, ``proxy`` (k,) mean rewards per step, ``success`` (N,)
            bool and ``frames``; only ``frames`` before the first evaluation.
        """
        return {**self._best, "frames": np.array(self.frames)}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``proxy`` (k,), ``success`` (N,) and the counts that ``state_dict``
        returned."""
        self._best = {name: np.array(array) for name, array in saved.items()}
        self.frames = int(self._best.pop("frames", 0))


class _Recorder:
    """Keeps of every row's episode what a reward is to see of it."""

    def __init__(self, env: BatchEnv, rows: Array, model: RewardModel | None, sparse: bool):
        self._env, self._rows, self._model, self._sparse = env, rows, model, sparse
        self._signals: list[Mapping[str, Array]] = []
        self._states: list[Array] = []
        self._action: list[Array] = []
        self._active: list[Array] = []
        self._failed: list[Array] = []  # there the simulation did
        self._terminated: list[Array] = []
        self._own: list[Array] = []
        self.frames = 0  # drawn

    def choose(self, inner: Choose) -> Choose:
        """``inner``, whose every question and answer is kept."""

        def chosen(obs: Array, active: Array) -> Array:
            action = inner(obs, active)
            self._look()
            self._action.append(np.clip(action[self._rows], -1.0, 1.0))
            self._active.append(active[self._rows].copy())
            return action

        return chosen

    def judge(self, env: BatchEnv, step: StepResult) -> Array:
        """The verdict, as ``at_the_end``."""
        own = step.info["success"] if self._sparse else step.reward
        self._own.append(np.array(own[self._rows], float))
        self._failed.append(np.array(step.info["diverged"][self._rows]))
        self._terminated.append(np.array(step.terminated[self._rows]))
        return step.info["success"]

    def _look(self) -> None:
        needs = frozenset() if self._model is None else self._model.needs
        if "signals" in needs:
            self._signals.append({n: s[self._rows] for n, s in self._env.signals().items()})
        if "frames" in needs:
            self._states.append(self._env.state(self._rows))

    def paid(self) -> Array:
        """(k,) mean reward per step of each row's episode."""
        self._look()  # what the last action led to
        live = np.stack(self._active)
        valid = live & ~np.stack(self._failed)
        if self._model is None:
            reward = np.stack(self._own)
        else:
            model, length = self._model, valid.sum(axis=0)
            rows = np.stack(self._states) if self._states else np.zeros((len(valid) + 1, 1, 0))
            size = getattr(model, "frame_size", None)

            def render(some: Array, camera: str) -> Array:
                self.frames += len(some)
                return self._env.render_states(some, camera, size=size)

            frames = StoredFrames(rows, length, render)
            names = self._signals[0] if self._signals else ()
            signals = {name: np.stack([s[name] for s in self._signals]) for name in names}
            place = positions_from_start(live, np.stack(self._terminated))
            segment = Segment(signals, frames, np.stack(self._action), valid, place)
            scored = model.score(segment)
            reward, valid = scored.reward, valid & scored.scored
        return np.where(valid, reward, 0.0).sum(axis=0) / np.maximum(valid.sum(axis=0), 1)
