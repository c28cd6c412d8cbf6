"""States of the simulator, and frames of somebody else's, to train and to scale rewards on.

No expert had a hand in any of these states. They are scattered over the workspace, or random,
smooth actions led to them: what makes a reward, and scales it, may not know the way to the goal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robo_rl.rollout.vec_sim import VecSim
from sims.envs.batch_env import BatchEnv
from sims.rendering.cameras import Camera

Array = np.ndarray

ROLLED = 0.35  # share of states from episodes, the rest scattered
KEPT_STEPS = 5  # one step in so many of an episode is looked at, in half of the rows
MEMORY = 0.8  # of an action, in the next one: random moves that get somewhere


def collect_states(
    env: BatchEnv, count: int, seed: int, rollouts: float = ROLLED
) -> tuple[Array, dict[str, Array]]:
    """State rows (count, nstate) and their signals {name: (count, ...)}, a function of ``seed``.

    A share ``rollouts`` comes from episodes of random, smooth actions that begin by turns where
    the task begins and at a scattered state, so that pushed, leaning and touching states occur;
    the rest is scattered over the workspace.
    """
    env.reseed(seed)
    rng = np.random.default_rng(seed)
    buffer = _StateBuffer(env)
    everyone = np.arange(env.num_envs)
    rolled = round(rollouts * count)
    while buffer.count < count - rolled:
        env.scatter()
        buffer.add(everyone[: count - rolled - buffer.count])
    begin, other = env.scatter, env.reset
    while buffer.count < count:
        begin()
        begin, other = other, begin
        wander = RandomWalkActions(rng, env.num_envs, env.act_dim)
        for step in range(1, env.max_steps + 1):
            if buffer.count == count:
                break  # a body's episode may be long
            env.step(wander())
            if step % KEPT_STEPS == 0:
                half = rng.permutation(env.num_envs)[: max(1, env.num_envs // 2)]
                buffer.add(np.sort(half[: count - buffer.count]))
    return buffer.arrays()


def collect_frames(
    sim: VecSim,
    count: int,
    seed: int,
    progress: Callable[[float], None] = lambda share: None,
    out: Array | None = None,
) -> tuple[Array, dict[str, Array]]:
    """Frames (count, H, W, 3) uint8, in ``out`` if there is one, and signals {name: (count, ...)}
    of random, smooth actions in any simulator, seen by its first camera; half of the rows at a
    time, one step in so many."""
    rng, signals_of, steps, done = np.random.default_rng(seed), [], 0, 0
    sim.reset()
    wander = RandomWalkActions(rng, sim.num_envs, sim.act_dim)
    while done < count:
        step = sim.step(wander())
        steps += 1
        if steps % KEPT_STEPS == 0:
            half = np.sort(rng.permutation(sim.num_envs)[: max(1, sim.num_envs // 2)])
            frames = sim.render(half, sim.cameras[0])[: count - done]
            if out is None:
                out = np.empty((count, *frames.shape[1:]), np.uint8)
            out[done : done + len(frames)] = frames
            signals_of.append({name: s[half] for name, s in sim.signals().items()})
            done += len(frames)
            progress(done / count)
        if (over := step.terminated | step.truncated).any():
            sim.reset(over)
            wander.begin(over)
    signals = {
        name: np.concatenate([t[name] for t in signals_of])[:count] for name in signals_of[0]
    }
    assert out is not None, "count is at least 1"
    return out, signals


class RandomWalkActions:
    """Random, smooth actions (N, act_dim) of an episode: some rows tremble where they are, some
    sweep across the workspace, most drift one way."""

    def __init__(self, rng: np.random.Generator, rows: int, act_dim: int):
        self._rng = rng
        self._size = np.zeros((rows, 1))
        self._way, self._noise = np.zeros((2, rows, act_dim))
        self.begin(np.ones(rows, bool))

    def begin(self, rows: Array) -> None:
        """``rows`` (N,) bool set out another way."""
        count, width = int(rows.sum()), self._way.shape[1]
        self._size[rows] = self._rng.uniform(0.0, 1.0, (count, 1))
        self._way[rows] = 0.5 * self._rng.normal(size=(count, width))
        self._noise[rows] = self._rng.normal(size=(count, width))

    def __call__(self) -> Array:
        fresh = self._rng.normal(size=self._noise.shape)
        self._noise = MEMORY * self._noise + np.sqrt(1 - MEMORY**2) * fresh
        return self._size * (self._way + self._noise)


class _StateBuffer:
    """State rows and signals set aside."""

    def __init__(self, env: BatchEnv):
        self._env, self.count = env, 0
        self._states: list[Array] = []
        self._signals: list[dict[str, Array]] = []

    def add(self, ids: Array) -> None:
        """Copies rows ``ids`` as they are now."""
        self._states.append(self._env.state(ids))
        self._signals.append({name: s[ids] for name, s in self._env.signals().items()})
        self.count += len(ids)

    def arrays(self) -> tuple[Array, dict[str, Array]]:
        """All of them, in the order in which they came."""
        names = self._signals[0]
        joined = {name: np.concatenate([s[name] for s in self._signals]) for name in names}
        return np.concatenate(self._states), joined


def jitter(
    rng: np.random.Generator,
    count: int,
    view: Camera,
    *,
    camera: float,
    light: float,
    share: float = 1.0,
) -> dict[str, Array]:
    """Samples changes of the camera and the light for ``count`` frames.

    The camera moves by up to the share ``camera`` of its distance to the scene along each axis, its
    field of view changes by as much, and it turns by up to that share of half its field of view.

    Args:
        rng: The random numbers.
        count: The number of frames.
        view: The camera.
        camera: The largest change of the camera, as a share (0.05: 5 %).
        light: The largest change of the light, as a share.
        share: The share of the frames that are changed; the others keep the scene as it is.

    Returns:
        ``camera_offset`` (count, 3) m, ``camera_roll`` (count, 3) rad, and the factors ``fovy`` and
        ``light`` (count,).
    """
    on = (rng.uniform(size=count) < share).astype(float)
    spread = rng.uniform(-1, 1, (count, 8)) * on[:, None]
    distance = float(np.linalg.norm(np.subtract(view.target, view.pos)))
    return {
        "camera_offset": spread[:, 0:3] * camera * distance,
        "camera_roll": spread[:, 3:6] * camera * np.deg2rad(view.fovy / 2),
        "fovy": 1.0 + spread[:, 6] * camera,
        "light": 1.0 + spread[:, 7] * light,
    }
