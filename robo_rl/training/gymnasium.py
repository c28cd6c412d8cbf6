"""Judging on ``gym:ID``, anyone's Gymnasium env.

Such an env has no goals of ours and no state rows: a sentence is rewarded there by a pretrained
CLIP alone, and success is what the env itself reports, or is not reported at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reward_models.base import from_dict
from reward_models.goals import Refusal
from robo_rl.config.train_config import TrainConfig
from robo_rl.evaluation.baselines import Baselines, SuccessRate, untrained_policy
from robo_rl.evaluation.evaluate import TEST_SEED, VALIDATION_SEED
from robo_rl.goals.reading import ReadGoal
from robo_rl.rewards import BuiltReward, make_reward, reward_type
from sims.external.gymnasium_env import GymnasiumEnv

Array = np.ndarray
Act = Callable[[Array], Array]
Progress = Callable[[str, float], None]  # (stage, share of it that is done)

ROWS = 32  # simulated together
FEW = 100  # episodes of each floor: somebody else's simulator may be slow


@dataclass(frozen=True)
class GymnasiumEvaluation:
    """The returns of a policy in ``episodes`` episodes."""

    episodes: int
    return_mean: float
    return_std: float
    successes: int | None  # at the end of an episode; None: the env reports no success
    seed: int
    floors: Baselines | None = None  # of success, in the first of these episodes
    beneath: Mapping[str, float] | None = None  # mean return of each baseline, by name
    successes_once: int | None = None  # at any step of an episode; None: not reported, or not known

    def line(self) -> str:
        """``return 3411.2 (deviation 20.1, n=100)``, and success where the env reports it."""
        worth = f"return {self.return_mean:.1f} (deviation {self.return_std:.1f}"
        less = "".join(f"; {who} {mean:.1f}" for who, mean in (self.beneath or {}).items())
        if self.successes is None:
            unjudged = "success not measured: the env does not report it"
            return f"{worth}, n={self.episodes}){less}; {unjudged}"
        text = f"{worth}){less}; success {SuccessRate(self.successes, self.episodes).line()}"
        if self.successes_once is not None:
            once = SuccessRate(self.successes_once, self.episodes).line(self.episodes)
            text += f" at the end of an episode, {once} at any step"
        return text if self.floors is None else f"{text}; {self.floors.line(self.episodes)}"

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return vars(self) | {"floors": None if self.floors is None else self.floors.as_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GymnasiumEvaluation:
        """From ``as_dict``."""
        floors = data.get("floors")
        return cls(**{**data, "floors": None if floors is None else Baselines.from_dict(floors)})


def make_gymnasium_env(
    config: TrainConfig, num_envs: int, seed: int, **options: Any
) -> GymnasiumEnv:
    """Rows of the config's env, in its interpreter; ``options`` are GymnasiumEnv's."""
    try:
        kwargs = json.loads(config.env_kwargs)
    except ValueError:
        kwargs = None
    if not isinstance(kwargs, dict):
        raise ValueError(f"env_kwargs must be a JSON object, got {config.env_kwargs!r}")
    where = {"python": config.env_python, "kwargs": kwargs}
    return GymnasiumEnv(config.task, num_envs, seed=seed, **where, **options)


def gymnasium_reward(
    config: TrainConfig, name: str, progress: Progress = lambda stage, share: None
) -> tuple[BuiltReward, ReadGoal]:
    """The reward called ``name`` for the config's sentence, or the env's own; and the sentence.

    ValueError for a CLIP that knows but its own scene, or a program that reads what is not there.
    """
    sim = make_gymnasium_env(config, ROWS, config.seed + 1, frames=reward_type(name).frames)
    try:
        why = Refusal("unsupported", f"{config.task} names no objects")
        goal = ReadGoal(config.goal, None, why, "", from_dict(sim.card))
        if name == "task":
            return BuiltReward(None, "the env's own", "everything"), goal
        options = {"device": config.device, "progress": progress}
        return make_reward(name, goal, sim, config.scoring, **options), goal
    finally:
        sim.close()


def reports_success(config: TrainConfig) -> bool:
    """Whether the env says of an episode that it succeeded or did not; one is played to see it."""
    return _played(config, 1, VALIDATION_SEED, _zero_action)[1] is not None


def evaluate_gymnasium(
    config: TrainConfig,
    act: Act,
    episodes: int,
    seed: int = TEST_SEED,
    *,
    beneath: bool = True,
    progress: Progress = lambda stage, share: None,
) -> GymnasiumEvaluation:
    """``act`` for ``episodes`` episodes on a seed that nobody trained on.

    Floors are measured ``beneath`` it, each time: nobody here can tell when such an env has
    changed.
    """
    report = partial(progress, "evaluate")
    worth, success, once = _played(config, episodes, seed, lambda sim: act, report)
    floors, less = None, None
    if beneath:
        few = min(episodes, FEW)
        ways = {"doing nothing": _zero_action, "untrained": _untrained}
        played = {
            name: _played(config, few, seed, way, partial(progress, name))
            for name, way in ways.items()
        }
        less = {name: float(worth.mean()) for name, (worth, *_) in played.items()}
        won = [w for _, w, _ in played.values() if w is not None]
        if success is not None and len(won) == len(ways):
            floors = Baselines(*(SuccessRate(int(w.sum()), few) for w in won))
    return GymnasiumEvaluation(
        episodes,
        float(worth.mean()),
        float(worth.std()),
        None if success is None else int(success.sum()),
        seed,
        floors,
        less,
        None if once is None else int(once.sum()),
    )


def _untrained(sim: GymnasiumEnv) -> Act:
    return untrained_policy(sim.obs_dim, sim.act_dim)


def _zero_action(sim: GymnasiumEnv) -> Act:
    return lambda obs: np.zeros((len(obs), sim.act_dim))


def _played(
    config: TrainConfig,
    episodes: int,
    seed: int,
    way: Callable[[GymnasiumEnv], Act],
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[Array, Array | None, Array | None]:
    """(return (episodes,), success at the end, success at any step), each (episodes,), or None
    where the env does not say."""
    sim = make_gymnasium_env(config, min(episodes, ROWS), seed)
    act, worths, successes = way(sim), np.zeros(0), np.zeros((2, 0), bool)
    judged = True
    while len(worths) < episodes:
        done, more = len(worths) / episodes, min(sim.num_envs / episodes, 1.0)
        worth, success = _episode(
            sim, act, lambda share, done=done, more=more: progress(min(done + more * share, 1.0))
        )
        worths = np.concatenate([worths, worth])[:episodes]
        judged = judged and success is not None
        if success is not None:
            successes = np.concatenate([successes, success], axis=1)[:, :episodes]
    sim.close()
    return worths, *(successes if judged else (None, None))


def _episode(
    sim: GymnasiumEnv, act: Act, progress: Callable[[float], None]
) -> tuple[Array, Array | None]:
    """(return (N,), success (2, N) at the end and at any step, or None) of one episode of every
    row."""
    obs = sim.reset()
    over, worth = np.zeros(sim.num_envs, bool), np.zeros(sim.num_envs)
    success: Any = None
    steps = 0
    while not over.all():
        step = sim.step(act(obs))
        worth += np.where(over, 0.0, step.reward)
        if "success" in step.info:
            now = step.info["success"]
            before = np.zeros((2, sim.num_envs), bool) if success is None else success
            success = np.where(over, before, [now, before[1] | now])
        over |= step.terminated | step.truncated
        obs = step.obs
        steps += 1
        progress(max(over.mean(), steps / sim.max_steps))
    return worth, success
