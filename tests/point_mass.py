"""A point in a square that is to reach a goal point: the smallest VecSim, for tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reward_models.base import RewardOutput, Segment
from reward_models.vision.clip_score import reward_in_sequence

Array = np.ndarray


class Result(NamedTuple):
    obs: Array
    reward: Array
    terminated: Array
    truncated: Array
    info: dict[str, Array]
    action: Array


class PointMass:
    """``pos += 0.1 action``; success: within 0.1 of the goal at the end of ``steps`` steps.

    ``ragged`` ends episodes at random, by termination or truncation; ``diverge`` marks that share
    of steps as failed. A frame is a (2, 2, 3) image whose first pixel codes the position.
    """

    obs_dim, act_dim, control_dt = 4, 2, 0.1
    obs_names = ("pos[0]", "pos[1]", "to_goal[0]", "to_goal[1]")
    cameras = ("top",)

    def __init__(
        self,
        num_envs: int,
        *,
        seed: int = 0,
        steps: int = 16,
        ragged: float = 0.0,
        diverge: float = 0.0,
        scale: float = 1.0,
        offset: float = 0.0,
        reward_scale: float = 1.0,
    ):
        self.num_envs, self.steps, self.ragged, self.diverge = num_envs, steps, ragged, diverge
        self.scale, self.offset = scale, offset  # of the observations
        self.reward_scale = reward_scale
        self.rng = np.random.default_rng(seed)
        self.pos, self.goal = np.zeros((num_envs, 2)), np.zeros((num_envs, 2))
        self.time = np.zeros(num_envs, np.int64)
        self.rendered = 0

    @property
    def card(self) -> dict[str, Any]:
        return {"task": "point", "control_dt": 0.1, "episode_s": 0.1 * self.steps}

    def reset(self, mask: Array | None = None) -> Array:
        mask = np.ones(self.num_envs, bool) if mask is None else mask
        n = int(mask.sum())
        self.pos[mask] = self.rng.uniform(-0.5, 0.5, (n, 2))
        self.goal[mask] = self.rng.uniform(-0.5, 0.5, (n, 2))
        self.time[mask] = 0
        return self._obs()

    def step(self, action: Array) -> Result:
        assert action.shape == (self.num_envs, 2)
        action = np.clip(action, -1, 1)
        self.pos = np.clip(self.pos + 0.1 * action, -1, 1)
        self.time += 1
        n = self.num_envs
        diverged = self.rng.random(n) < self.diverge
        early = self.rng.random(n) < self.ragged
        terminated = early & (self.rng.random(n) < 0.5) & ~diverged
        truncated = (self.time >= self.steps) | (early & ~terminated) | diverged
        near = np.linalg.norm(self.goal - self.pos, axis=1)
        info = {"success": near < 0.1, "diverged": diverged}
        reward = -self.reward_scale * near
        return Result(self._obs(), reward, terminated, truncated, info, action)

    def _obs(self) -> Array:
        obs = np.concatenate([self.pos, self.goal - self.pos], axis=1)
        return (self.offset + self.scale * obs).astype(np.float32)

    def signals(self) -> dict[str, Array]:
        return {"pos": self.pos.copy(), "goal": self.goal.copy()}

    def state(self, ids: Array | None = None) -> Array:
        state = np.concatenate([self.pos, self.goal], axis=1)
        return state if ids is None else state[ids]

    def render_states(self, states: Array, camera: str | None = None, *, size=None) -> Array:
        self.rendered += len(states)
        frames = np.zeros((len(states), 2, 2, 3), np.uint8)
        frames[:, 0, 0, :2] = np.round((states[:, :2] + 1) * 100)
        return frames

    def render(self, ids: Array | None = None, camera: str | None = None) -> Array:
        return self.render_states(self.state(ids), camera)

    def state_dict(self) -> dict[str, Array]:
        words = self.rng.bit_generator.state["state"]
        generator = [words[k] >> shift & (2**64 - 1) for k in ("state", "inc") for shift in (64, 0)]
        return {
            "pos": self.pos.copy(),
            "goal": self.goal.copy(),
            "time": self.time.copy(),
            "rng": np.array(generator, np.uint64),
        }

    def load_state_dict(self, saved: Any) -> None:
        self.pos, self.goal = saved["pos"].copy(), saved["goal"].copy()
        self.time = saved["time"].copy()
        words = [int(word) for word in saved["rng"]]
        state = self.rng.bit_generator.state
        state["state"] = {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]}
        self.rng.bit_generator.state = state

    def close(self) -> None:
        pass


class Nearness:
    """The learned reward of the tests: exp(-4 distance) of the successor, from signals alone."""

    needs = frozenset({"signals"})
    context = 1
    causal = True

    def __init__(self, version: int = 0, factor: float = 1.0):
        self.version, self.factor = version, factor

    def score(self, segment: Segment) -> RewardOutput:
        gap = np.linalg.norm(segment.signals["goal"] - segment.signals["pos"], axis=-1)
        reward = self.factor * np.exp(-4 * gap[1:])
        parts = {"gap": gap[1:].astype(np.float32)}
        return RewardOutput(reward, segment.valid, components=parts, version=self.version)


class InTurn:
    """To the right, then to the left."""

    needs, context, causal, version = frozenset({"signals"}), 1, True, 0

    def score(self, segment: Segment) -> RewardOutput:
        x = segment.signals["pos"][1:, :, 0]
        worth = np.where(segment.valid, np.stack([x, -x]), 0.0)
        before = np.zeros(x.shape[1], int) if segment.done is None else segment.done
        reward, done = reward_in_sequence(worth, worth > 0.2, np.array([1.0, 1.0]), before)
        return RewardOutput(np.where(segment.valid, reward, 0.0), segment.valid, done=done)


class Window:
    """Mean x of the last ``context`` entries of the episode so far, from signals or frames."""

    causal = True

    def __init__(self, context: int, needs: str = "signals"):
        self.context, self.needs, self.version = context, frozenset({needs}), 0

    def score(self, segment: Segment) -> RewardOutput:
        if "frames" in self.needs:
            where = np.ones((len(segment.valid) + 1, segment.valid.shape[1]), bool)
            x = segment.frames("top", where)[:, 0, 0, 0].reshape(where.shape) / 100 - 1
        else:
            x = segment.signals["pos"][..., 0]
        reward = np.zeros(segment.valid.shape)
        for t in range(len(reward)):
            reward[t] = x[max(0, t + 2 - self.context) : t + 2].mean(axis=0)
        return RewardOutput(reward, segment.valid, version=self.version)
