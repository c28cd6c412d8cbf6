"""Episodes of a task as an encoder sees them, by whoever acts: what scorers learn from.

Unlike what makes the reward of a sentence, this may be an expert: who acted is kept with every
episode, and goes into the scorer's card and into what a run says that its reward sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reward_models.scorers.embedded_episodes import EmbeddedEpisodes
from robo_rl.runs.policy import load_policy
from robo_rl.vision.state_collection import RandomWalkActions
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.utils.cache import cache_dir
from sims.utils.versions import rendered_with

if TYPE_CHECKING:
    from reward_models.vision.encoders import TorchEncoder

Array = np.ndarray
Choose = Callable[[BatchEnv, Array], Array]

EXPERT, LOST = "the task's expert", "an expert that loses its way"
WANDERING, SCATTERED = "random moves", "random moves from anywhere"
HELD = 0.8  # share of the noise on actions that goes on from one step to the next
DRAWN = 1024  # frames in memory at a time
DRAWN_AS = 3  # raised when episodes are played or kept otherwise


@dataclass(frozen=True, kw_only=True)
class EpisodesConfig:
    """Who acts in the training episodes, and how many of each."""

    demonstrations: int = 120  # episodes of the scripted expert, with noise; 0: none
    lost: int = 60  # failed episodes of the expert, which leaves its path
    random: int = 120  # episodes of random actions
    random_starts: int = 0  # episodes of random actions from random initial states
    run: tuple[Path, ...] = ()  # finished runs, whose policies act with noise
    of_each: int = 60  # episodes per run
    noise: float = 0.1  # standard deviation on actions in [-1, 1], smooth
    seed: int = 0  # random seed of scenes and noise

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, int | float) and value < 0:
                raise ValueError(f"{f.name} must be at least 0, got {value}")


@dataclass(frozen=True)
class EncodedEpisodes:
    """Episodes as an encoder saw them, and what their frames can be drawn from again."""

    seen: EmbeddedEpisodes
    states: Array  # (M, nstate) of each frame

    def frames(self, task: Task[Any], encoder: TorchEncoder, entries: Array) -> Array:
        """Frames (k, H, W, 3) uint8 of ``entries`` (k,), as the encoder saw them."""
        env = BatchEnv(task, 1)
        try:
            return env.render_states(self.states[entries], encoder.camera, size=encoder.size)
        finally:
            env.close()


def encode_episodes(
    task: Task[Any],
    encoder: TorchEncoder,
    config: EpisodesConfig,
    progress: Callable[[float], None] = lambda share: None,
) -> EncodedEpisodes:
    """Episodes of the task as ``encoder`` sees them, played and drawn once and then in the cache.

    ValueError as ``play_task_episodes``.
    """
    path = cache_dir() / f"episodes-{task.name}-{_key(task, encoder, config)}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as stored:
            stored_arrays = {name: stored[name] for name in stored.files}
        by, states = tuple(stored_arrays.pop("by").tolist()), stored_arrays.pop("states")
        return EncodedEpisodes(EmbeddedEpisodes(by=by, **stored_arrays), states)
    played = play_task_episodes(task, config)
    env, rows = BatchEnv(task, 1), []
    for first in range(0, len(played.states), DRAWN):
        part = played.states[first : first + DRAWN]
        rows.append(encoder.encode(env.render_states(part, encoder.camera, size=encoder.size)))
        progress((first + len(part)) / len(played.states))
    env.close()
    arrays = {
        "rows": np.concatenate(rows),
        "episode": played.episode,
        "holds": played.holds,
        "worth": played.worth,
        "actions": played.actions,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part.npz")
    np.savez(partial, **arrays, states=played.states, by=np.array(played.by))
    partial.replace(path)
    return EncodedEpisodes(EmbeddedEpisodes(by=played.by, **arrays), played.states)


class PlayedEpisodes(NamedTuple):
    """Episodes before anybody has looked at them, one after the other."""

    states: Array  # (M, nstate)
    holds: Array  # (M,) bool
    worth: Array  # (M,) f32
    actions: Array  # (M, act_dim) f32
    episode: Array  # (M,)
    by: tuple[str, ...]  # (E,)


def play_task_episodes(task: Task[Any], config: EpisodesConfig) -> PlayedEpisodes:
    """Plays the episodes of ``config``. Raises ValueError where the task has no expert and one is
    needed, or where no actor is given."""
    if (config.demonstrations or config.lost) and not task.solved:
        raise ValueError(
            f"task {task.name!r} has no expert for this goal: give "
            "--watch.demonstrations 0 --watch.lost 0, and --watch.run RUN for successful "
            "episodes"
        )
    rng = np.random.default_rng(config.seed)
    parts = [
        _played(task, who, choose, count, config.seed + 1000 * number)
        for number, (who, choose, count) in enumerate(actors(task, config, rng))
        if count
    ]
    if not parts:
        raise ValueError("no episode source selected: give --watch.random, --watch.run or another")
    # One episode after the other, each in order.
    states, holds, worth, actions = (
        np.concatenate([np.concatenate(part[i].swapaxes(0, 1)) for part in parts]) for i in range(4)
    )
    by = tuple(who for part in parts for who in part[4])
    episode = np.repeat(np.arange(len(by)), len(holds) // len(by))
    return PlayedEpisodes(states, holds, worth, actions, episode, by)


def _key(task: Task[Any], encoder: TorchEncoder, config: EpisodesConfig) -> str:
    """16 hex digits that change whenever other episodes would be seen, or the same otherwise."""
    spec = task.spec()
    spec.compile()
    content = [spec.to_xml(), repr(task), encoder.name, encoder.camera, encoder.dtype_name]
    content += [repr(config), str(DRAWN_AS), *rendered_with()]
    content += [(run / "result.json").read_text() for run in config.run]
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:16]


def actors(
    task: Task[Any], config: EpisodesConfig, rng: np.random.Generator
) -> list[tuple[str, Callable[[], Choose], int]]:
    """(who, a chooser for one round of episodes, how many episodes)."""

    def expert() -> Choose:
        drift = Drift(rng)
        return lambda env, obs: task.expert(env.views, rng) + config.noise * drift(env)

    def failing() -> Choose:
        drift, until, step = Drift(rng), np.zeros(0), 0

        def choose(env: BatchEnv, obs: Array) -> Array:
            nonlocal until, step
            if not step:
                until = rng.integers(0, max(1, env.max_steps // 3), env.num_envs)
            step += 1
            astray = (step > until)[:, None]
            return np.where(astray, drift(env), task.expert(env.views, rng))

        return choose

    def random_walk() -> Choose:
        ways: list[RandomWalkActions] = []

        def choose(env: BatchEnv, obs: Array) -> Array:
            if not ways:
                ways.append(RandomWalkActions(rng, env.num_envs, env.act_dim))
            return ways[0]()

        return choose

    def policy_of(path: Path) -> Callable[[], Choose]:
        act = load_policy(path).act

        def begin() -> Choose:
            drift = Drift(rng)
            return lambda env, obs: act(obs) + config.noise * drift(env)

        return begin

    return [
        (EXPERT, expert, config.demonstrations),
        (LOST, failing, config.lost),
        (WANDERING, random_walk, config.random),
        *((f"the policy in {path.name}", policy_of(path), config.of_each) for path in config.run),
        (SCATTERED, random_walk, config.random_starts),
    ]


class Drift:
    """Smooth noise (N, act_dim) of unit deviation."""

    def __init__(self, rng: np.random.Generator):
        self._rng, self._now = rng, np.zeros((0, 0))

    def __call__(self, env: BatchEnv) -> Array:
        fresh = self._rng.normal(size=(env.num_envs, env.act_dim))
        self._now = HELD * self._now + np.sqrt(1 - HELD**2) * fresh if self._now.size else fresh
        return self._now


def _played(
    task: Task[Any], who: str, begin: Callable[[], Choose], count: int, seed: int
) -> tuple[Array, Array, Array, Array, tuple[str, ...]]:
    """(states (T, count, nstate), whether the goal is met (T, count), dense reward (T, count), each
    after a step of an episode of each row, the step's actions (T, count, act_dim), who); a row that
    is over goes on as it is."""
    env = BatchEnv(task, count, seed=seed)
    obs, choose = env.scatter() if who == SCATTERED else env.reset(), begin()
    states, holds, worth, actions = [], [], [], []
    for _ in range(env.max_steps):
        actions.append(np.clip(choose(env, obs), -1.0, 1.0))
        step = env.step(actions[-1])
        states.append(env.state())
        holds.append(np.array(step.info["success"]))
        worth.append(step.reward)
        obs = step.obs
    env.close()
    worth, actions = (np.stack(of).astype(np.float32) for of in (worth, actions))
    return np.stack(states), np.stack(holds), worth, actions, (who,) * count
