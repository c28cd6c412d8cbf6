"""Frames and facts for training the embedded CLIP: states of the simulator, seen and measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import sims
from reward_models.visual.captions import COLOURS, KINDS
from reward_models.visual.relations import Facts
from sims.batch_env import BatchEnv
from sims.cameras import Look

Array = np.ndarray


def collect(
    env: BatchEnv, count: int, seed: int, rollouts: float = 0.35
) -> tuple[Array, dict[str, Array]]:
    """State rows (count, nstate) and their signals {name: (count, ...)}.

    A share ``rollouts`` comes from episodes in which every row is driven by a random goal's expert
    with noise, so that pushed, leaning and touching states occur and no goal is the set's
    favourite; the rest is scattered over the workspace.
    """
    rng = np.random.default_rng(seed)
    states: list[Array] = []
    signals: list[dict[str, Array]] = []

    def keep(ids: Array) -> None:
        states.append(env.state(ids))
        signals.append({name: s[ids] for name, s in env.signals().items()})

    everyone = np.arange(env.num_envs)
    wanted = round((1.0 - rollouts) * count)
    while wanted > 0:
        env.scatter()
        keep(everyone[: min(wanted, env.num_envs)])
        wanted -= env.num_envs
    guides = [
        sims.make_task(env.task.name, robot=env.task.robot, goal=goal) for goal in env.task.goals()
    ]
    wanted = round(rollouts * count)
    while wanted > 0:
        env.reset()
        chosen = rng.integers(len(guides), size=env.num_envs)
        noise = np.zeros((env.num_envs, env.act_dim))
        drift = rng.uniform(0.0, 1.0, (env.num_envs, 1))  # from pure expert to mostly noise
        for step in range(env.max_steps):
            noise = 0.8 * noise + 0.6 * rng.normal(size=noise.shape)
            expert = np.stack([guide.expert(env.views, rng) for guide in guides])
            env.step((1 - 0.7 * drift) * expert[chosen, everyone] + drift * noise)
            if step % 5 == 4 and wanted > 0:
                ids = np.sort(rng.permutation(env.num_envs)[: min(wanted, env.num_envs // 2)])
                keep(ids)
                wanted -= len(ids)
    joined = {name: np.concatenate([s[name] for s in signals]) for name in signals[0]}
    return np.concatenate(states), joined


def facts(env: BatchEnv, signals: dict[str, Array], colour: Array | None = None) -> Facts:
    """Facts of signal rows; ``colour`` (M, S) repaints the objects (default: as the scene is)."""
    things = [e for e in env.task.entities() if e.colour]
    shape = (len(signals["tip"]), len(things))
    own = np.array([COLOURS.index(e.colour) for e in things])
    kinds = np.array([KINDS.index(e.kind) for e in things])
    return Facts(
        tip=signals["tip"],
        pointing=signals["pointing"],
        position=np.stack([signals[e.pose_signal] for e in things], axis=1),
        colour=np.broadcast_to(own, shape) if colour is None else colour,
        kind=np.broadcast_to(kinds, shape),
        left=-env.camera().axes()[0],
    )


def paint(env: BatchEnv, colour: Array) -> dict[str, Array]:
    """Look.geom_rgba that paints each object of each frame with ``colour`` (M, S)."""
    things = [e for e in env.task.entities() if e.colour]
    palette = np.stack([env.model.geom(t.name).rgba for t in things])
    order = [COLOURS.index(t.colour) for t in things]
    by_colour = palette[np.argsort(order)]
    return {t.name: by_colour[colour[:, slot]] for slot, t in enumerate(things)}


def jitter(
    rng: np.random.Generator, count: int, camera: float, light: float, share: float = 1.0
) -> dict[str, Array]:
    """Look arrays of ``count`` frames: camera within ``camera`` (0.05: 5 %) and light ``light``.

    The camera moves by up to that share of its distance to the scene (0.6 m) along each axis, its
    field of view by as much, and it turns by up to that share of half its field of view. A share
    1 - ``share`` of the frames keeps the scene as it is.
    """
    on = (rng.uniform(size=count) < share).astype(float)
    spread = rng.uniform(-1, 1, (count, 8)) * on[:, None]
    return {
        "camera_offset": spread[:, 0:3] * camera * 0.6,
        "camera_roll": spread[:, 3:6] * camera * np.deg2rad(22.0),
        "fovy": 1.0 + spread[:, 6] * camera,
        "light": 1.0 + spread[:, 7] * light,
    }


def dataset(
    env: BatchEnv,
    count: int,
    seed: int,
    *,
    camera: float = 0.06,
    light: float = 0.25,
    repaint: float = 0.4,
    share: float = 0.7,
    progress: Callable[[float], None] | None = None,
) -> tuple[Array, Facts, Array]:
    """``count`` frames (count, H, W, 3), their facts, and the state rows they were taken of.

    A share ``repaint`` of the frames has its objects' colours shuffled, so that colour and shape
    must both be read; a share ``share`` has camera and light moved.
    """
    states, signals = collect(env, count, seed)
    rng = np.random.default_rng(seed + 1)
    order = rng.permutation(count)
    states, signals = states[order], {name: s[order] for name, s in signals.items()}
    plain = facts(env, signals)
    colour = np.array(plain.colour)
    shuffled = rng.permuted(np.tile(np.arange(colour.shape[1]), (count, 1)), axis=1)
    colour = np.where(rng.uniform(size=(count, 1)) < repaint, shuffled, colour)
    look = Look(geom_rgba=paint(env, colour), **jitter(rng, count, camera, light, share))
    frames = []
    for start in range(0, count, 1024):
        part = slice(start, start + 1024)
        frames.append(env.render_states(states[part], look=look.rows(part)))
        if progress is not None:
            progress(min(1.0, (start + 1024) / count))
    return np.concatenate(frames), facts(env, signals, colour), states
