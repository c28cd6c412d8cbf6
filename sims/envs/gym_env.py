"""Gymnasium's two views of a batch: one row as an Env, all rows as a VectorEnv.

Nothing is simulated here. Row 0 of the vector view and the single view, reset with the same seed,
are the same environment bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from sims.envs.batch_env import BatchEnv
from sims.envs.registration import make

Array = np.ndarray


class _Limited:
    """Knows its time limit: the task's, which parameters may change and no registry can know."""

    sim: BatchEnv
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """What Gymnasium made the env from."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = copy.copy(spec)
        if self._spec is not None:
            self._spec.max_episode_steps = self.sim.max_steps


class GymEnv(_Limited, gymnasium.Env[Array, Array]):
    """One row of ``task`` as a Gymnasium env.

    Observation: the columns of ``sim.obs_names``, (obs_dim,) f32. Action: (act_dim,) f32 in
    [-1, 1]. Reward: the hand-written dense reward of the goal. The time limit is the env's own.
    ``info`` has ``success``, ``diverged`` and the reward's terms as ``reward/<term>``. ``params``
    are the task's (``tip_step``, ``episode_s``, ...); ``spec.max_episode_steps`` follows them.
    """

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(
        self,
        task: str,
        *,
        robot: str | None = None,
        goal: str | None = None,
        render_mode: str | None = None,
        camera: str | None = None,
        **params: Any,
    ):
        self.sim = make(task, 1, robot=robot, goal=goal, num_threads=1, **params)
        self.metadata = {**self.metadata, "render_fps": round(1 / self.sim.control_dt)}
        self.render_mode, self.camera = _render_mode(render_mode), self.sim.camera(camera).name
        self.observation_space, self.action_space = _spaces(self.sim)
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Returns the first observation (obs_dim,) of a new episode; ``seed`` seeds the stream."""
        super().reset(seed=seed)
        _refuse(options, ())
        _reseed(self, seed)
        return self.sim.reset()[0], {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Returns obs, reward, terminated, truncated and info after ``action`` (act_dim,)."""
        result = self.sim.step(np.asarray(action)[None])
        values = _with_is_success(result.info)
        return (
            result.obs[0],
            float(result.reward[0]),
            bool(result.terminated[0]),
            bool(result.truncated[0]),
            {n: v[0] if v[0].ndim else v[0].item() for n, v in values.items()},
        )

    def render(self) -> Array | None:
        """Returns the frame (H, W, 3) uint8 of ``camera``; None without a render mode."""
        return None if self.render_mode is None else self.sim.render(camera=self.camera)[0]

    def close(self) -> None:
        """Frees the renderers; safe to call twice."""
        self.sim.close()


class GymVectorEnv(_Limited, VectorEnv[Array, Array, Array]):
    """``num_envs`` rows of ``task`` as a Gymnasium VectorEnv.

    ``autoreset_mode`` is SAME_STEP (a row that is done is reset at once, its true last observation
    and info are in ``final_obs`` and ``final_info``) or DISABLED (the caller resets rows with
    ``reset(options={"reset_mask": mask})``).
    """

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        *,
        robot: str | None = None,
        goal: str | None = None,
        render_mode: str | None = None,
        camera: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        num_threads: int = 0,
        **params: Any,
    ):
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            raise ValueError(
                "autoreset_mode must be SameStep or Disabled, got NextStep, which spends a step on "
                "every reset"
            )
        options = {"num_threads": num_threads, **params}
        self.sim = make(task, num_envs, robot=robot, goal=goal, **options)
        self.num_envs = num_envs
        self.metadata = {
            **self.metadata,
            "render_fps": round(1 / self.sim.control_dt),
            "autoreset_mode": self.autoreset_mode,
        }
        self.render_mode, self.camera = _render_mode(render_mode), self.sim.camera(camera).name
        self.single_observation_space, self.single_action_space = _spaces(self.sim)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Observations (N, obs_dim); new episodes in the rows of ``options["reset_mask"]``."""
        super().reset(seed=seed)
        _refuse(options, ("reset_mask",))
        _reseed(self, seed)
        return self.sim.reset((options or {}).get("reset_mask")), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Returns observations (N, obs_dim), rewards, terminations and truncations (N,), and infos.

        Args:
            actions: (N, act_dim) in [-1, 1].
        """
        obs, reward, terminated, truncated, told, _ = self.sim.step(actions)
        values = _with_is_success(told)
        done = terminated | truncated
        if self.autoreset_mode == AutoresetMode.DISABLED or not done.any():
            info = _masked(values, np.ones(self.num_envs, bool))
        else:
            final = np.full(self.num_envs, None, object)
            for row in np.flatnonzero(done):
                final[row] = obs[row]
            # Where a row is done, ``info`` is the new episode's, which has nothing to say yet.
            info = _masked(values, ~done)
            info |= {"final_obs": final, "_final_obs": done.copy()}
            info |= {"final_info": _masked(values, done), "_final_info": done.copy()}
            obs = self.sim.reset(done)
        return obs, reward.astype(np.float64), terminated, truncated, info

    def render(self) -> tuple[Array, ...] | None:
        """Returns the frames (H, W, 3) uint8 of all environments; None without a render mode."""
        return None if self.render_mode is None else tuple(self.sim.render(camera=self.camera))

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the renderers."""
        self.sim.close()


def _with_is_success(info: Mapping[str, Array]) -> dict[str, Array]:
    """``info``, in which success has the name that Stable-Baselines3 looks for, too."""
    return dict(info) | ({"is_success": info["success"]} if "success" in info else {})


def _masked(values: dict[str, Array], mask: Array) -> dict[str, Any]:
    """Gymnasium's vector info: each array, zero outside ``mask`` (N,), beside its own mask."""
    info: dict[str, Any] = {}
    for name, value in values.items():
        rows = mask.reshape(-1, *(1,) * (value.ndim - 1))
        info[name], info[f"_{name}"] = np.where(rows, value, np.zeros_like(value)), mask.copy()
    return info


def _render_mode(mode: str | None) -> str | None:
    if mode not in (None, "rgb_array"):
        raise ValueError(f"render_mode must be 'rgb_array' or None, got {mode!r}")
    return mode


def _spaces(sim: BatchEnv) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Observation and action space of one row."""
    box = gymnasium.spaces.Box
    return box(-np.inf, np.inf, (sim.obs_dim,)), box(-1.0, 1.0, (sim.act_dim,))


def _reseed(env: GymEnv | GymVectorEnv, seed: int | None) -> None:
    """Starts every row's stream over; a first reset without a seed takes one from the OS."""
    if seed is not None or not env._seeded:
        env.sim.reseed(int(env.np_random.integers(2**63)) if seed is None else seed)
        env._seeded = True


def _refuse(options: dict[str, Any] | None, known: tuple[str, ...]) -> None:
    unknown = set(options or {}) - set(known)
    if unknown:
        raise ValueError(
            f"unknown reset options {', '.join(sorted(unknown))}; "
            f"available: {', '.join(known) or 'none'}"
        )
