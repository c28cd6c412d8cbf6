"""SB3VecEnv: a VecSim as Stable-Baselines3 wants it, with every reset after the last look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from reward_models.base import RewardModel
from robo_rl.rollout.episode_stats import EpisodeStats
from robo_rl.rollout.interventions import Interventions
from robo_rl.rollout.reward_scale import RewardScale
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.trace import Observation, Observer, Trace, Transition
from robo_rl.rollout.vec_sim import Reseedable, Resumable, VecSim
from sims.utils.prefixed_dict import add_prefix, select_prefix

Array = np.ndarray

MAX_DIVERGED = 1e-3  # of all steps; more is a fault of the simulation, not of the policy
_FEW = 10  # diverged steps that are forgiven whatever their share


class SimulationDiverged(RuntimeError):
    """Too many steps in which the simulation failed."""


class SB3VecEnv(VecEnv):
    """Steps ``sim`` and resets finished rows, after recording their true successors.

    Rewards are the reward model's, scored step by step, or the task's own without one; divided by
    ``scale`` where there is one. Scoring many steps at once is far faster: buffers that do so set
    ``scored_later``, are handed zeros, and add what they score from ``last_step()``. The task's own
    reward and success are counted in ``episodes`` in any case.
    """

    def __init__(
        self, sim: VecSim, reward_model: RewardModel | None = None, scale: RewardScale | None = None
    ):
        self.sim, self.reward_model, self.scale = sim, reward_model, scale
        needs = reward_model.needs if reward_model else frozenset()
        self.observer = Observer(sim, needs, getattr(reward_model, "frame_size", None))
        self.scored_later = False
        self.interventions: Interventions | None = None  # who else may act
        self._scorer = Scorer(reward_model, self.observer) if reward_model else None
        # Room for the steps that a score reaches back to.
        self._trace = Trace(1 + (self._scorer.reach if self._scorer else 0))
        self.episodes = EpisodeStats(sim.num_envs)
        self._last: Transition | None = None
        # (N, goals) bool, which hold after the last step, of a task with several at once.
        self.reached: Array | None = None
        self.env_steps = self.diverged = 0
        self._observation: dict[str, Array] = {}
        self._step = np.zeros(sim.num_envs, np.int32)  # actions so far of each row's episode
        self._action: Array | None = None
        super().__init__(
            sim.num_envs,
            spaces.Box(-np.inf, np.inf, (sim.obs_dim,), np.float32),
            spaces.Box(-1.0, 1.0, (sim.act_dim,), np.float32),
        )

    def reset(self) -> Array:
        """Observations (N, obs_dim) f32 of new episodes in all rows."""
        obs = self.sim.reset()
        self.episodes.restart()
        self._observation = self.observer.observe()
        self._step = np.zeros(self.num_envs, np.int32)
        return obs

    def step_async(self, actions: Array) -> None:
        """Takes the actions (N, act_dim) of the next ``step_wait``."""
        self._action = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """SB3's (obs, reward, done, infos); obs of finished rows are their new episodes' first."""
        assert self._action is not None, "step_wait() without step_async()"
        action = self._action
        if self.interventions is not None:
            action = self.interventions(action, self._step == 0, self.env_steps)
        step = self.sim.step(action)
        done = step.terminated | step.truncated
        diverged = step.info.get("diverged", np.zeros(self.num_envs, bool))
        self._watch(diverged)
        self.episodes.add(step.reward, done, diverged, step.info.get("success"))
        self.reached = step.info.get("reached")
        before, after, obs = self._observation, self.observer.observe(), step.obs
        self._observation = after
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any():
            ids = np.flatnonzero(done)
            # Of what is paid for the whole of an episode nothing more is to be had after its time.
            goes_on = not getattr(self.reward_model, "episodic", False)
            over = step.truncated & ~step.terminated & goes_on
            for i in ids:
                infos[i]["terminal_observation"] = obs[i].copy()
                infos[i]["TimeLimit.truncated"] = bool(over[i])
            obs = self.sim.reset(done)
            self._observation = self.observer.observe(after, ids)
        self._last = Transition(
            before, after, step.action, self._step, done, step.terminated, diverged
        )
        self._step = np.where(done, 0, self._step + 1).astype(np.int32)
        return obs, self._reward(step.reward, done), done, infos

    def _reward(self, own: Array, done: Array) -> Array:
        """(N,) f32 of the last step."""
        reward = own.astype(np.float32)
        if self._scorer is not None:
            if self.scored_later:
                return np.zeros(self.num_envs, np.float32)
            self._trace.add(self.last_step())
            end = self._trace.count
            reward = self._scorer.score(self._trace, end - 1, end).reward[0].astype(np.float32)
        return reward if self.scale is None else self.scale(reward, done)

    @property
    def current_observation(self) -> Observation:
        """The recorded observation of all environments in their present state."""
        return self._observation

    def last_step(self) -> Transition:
        """The step that SB3 is about to store."""
        assert self._last is not None, "no step has been made"
        return self._last

    def _watch(self, diverged: Array) -> None:
        self.env_steps += self.num_envs
        self.diverged += int(diverged.sum())
        if self.diverged > max(_FEW, MAX_DIVERGED * self.env_steps):
            raise SimulationDiverged(
                f"the simulation failed in {self.diverged} of {self.env_steps} steps "
                f"(limit {MAX_DIVERGED:.1%}), last in rows "
                f"{np.flatnonzero(diverged).tolist()}: check the task's timestep, gains and action "
                "scale, or the policy for NaN"
            )

    def state_dict(self) -> dict[str, Array]:
        """Returns the state of the simulator, if it can be saved, and of this adapter.

        Returns:
            Arrays by name, with a prefix for each part; this adapter's own are ``step`` (N,), the
            number of actions in each running episode, and ``counters`` (3,).
        """
        sim = self.sim.state_dict() if isinstance(self.sim, Resumable) else {}
        scale = self.scale.state_dict() if self.scale else {}
        taken = self.interventions.state_dict() if self.interventions else {}
        past = self._trace.state_dict(self._trace.capacity - 1)  # {count: 0} where scored later
        return {
            **add_prefix("sim", sim),
            **add_prefix("episodes", self.episodes.state_dict()),
            **add_prefix("scale", scale),
            **add_prefix("interventions", taken),
            **add_prefix("trace", past),
            "step": self._step.copy(),
            "counters": np.array([self.env_steps, self.diverged, self.observer.frames_rendered]),
        }

    def load_state_dict(self, saved: Mapping[str, Array]) -> bool:
        """Restores ``step`` (N,) and the other arrays that ``state_dict`` returned.

        Returns:
            False if the simulator cannot be restored, so that new episodes must start.
        """
        counters = (int(count) for count in saved["counters"])
        self.env_steps, self.diverged, self.observer.frames_rendered = counters
        if self.scale is not None:
            self.scale.load_state_dict(select_prefix(saved, "scale"))
        if not isinstance(self.sim, Resumable):
            return False
        self.sim.load_state_dict(select_prefix(saved, "sim"))
        if self.interventions is not None:
            self.interventions.load_state_dict(select_prefix(saved, "interventions"))
        self.episodes.load_state_dict(select_prefix(saved, "episodes"))
        self._trace.load_state_dict(select_prefix(saved, "trace"))
        self._observation = self.observer.observe()
        self._step = saved["step"].copy()
        return True

    def close(self) -> None:
        self.sim.close()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Starts every row's stream over at the next reset; the seed once a row.

        ValueError where the simulator is seeded when it is made alone.
        """
        if not isinstance(self.sim, Reseedable):
            raise ValueError(
                "this simulator is seeded at construction: sims.make(..., seed=...); construct "
                "the algorithm with seed=None"
            )
        if seed is None:
            seed = int(np.random.default_rng().integers(2**31))
        self.sim.reseed(seed)
        return [seed] * self.num_envs

    # SB3 asks these of environments that live in other processes; the rows here are one object.
    def get_attr(self, attr_name: str, indices: None | int | Iterable[int] = None) -> list[Any]:
        value = None if attr_name == "render_mode" else getattr(self.sim, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(
        self, attr_name: str, value: Any, indices: None | int | Iterable[int] = None
    ) -> None:
        """Raises ValueError: the environments of a batch share one simulator."""
        raise ValueError(f"cannot set {attr_name!r}: environments of a batch share one simulator")

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: None | int | Iterable[int] = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Raises ValueError: the environments of a batch share one simulator."""
        raise ValueError(
            f"cannot call {method_name!r} on one environment: those of a batch share a simulator; "
            "use .sim"
        )

    def env_is_wrapped(
        self, wrapper_class: type, indices: None | int | Iterable[int] = None
    ) -> list[bool]:
        return [False for _ in self._get_indices(indices)]
