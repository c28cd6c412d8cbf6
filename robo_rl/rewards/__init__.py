"""Rewards by name. A new one is a function that makes it, its settings, and a line in REWARDS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from robo_rl.goals.reading import ReadGoal
from robo_rl.rewards import clip, code, film, goal_image, learned
from robo_rl.rewards.base import Asked, Kind, MadeReward, RewardConfig
from robo_rl.rewards.clip import ClipConfig
from robo_rl.rewards.code import checked_program
from robo_rl.rewards.goal_image import GoalImageConfig
from sims.batch_env import BatchEnv
from sims.foreign import ForeignEnv
from sims.names import unknown

__all__ = [
    "CODE",
    "REWARDS",
    "ClipConfig",
    "MadeReward",
    "RewardConfig",
    "checked_program",
    "kind_of",
    "make_reward",
    "observes_account",
]

REWARDS = {
    "clip": Kind(
        "similarity of rendered frames to the sentence, by a CLIP",
        clip.build,
        ClipConfig,
        frames=True,
    ),
    "goal-image": Kind(
        "likeness of rendered frames to goal pictures, in a file or a folder (`robo-rl reward "
        "picture`)",
        goal_image.build,
        GoalImageConfig,
        argument="FILE",
        frames=True,
    ),
    "film": Kind(
        "likeness of an episode's film at its end to a demonstration's, or to the sentence",
        film.build,
        film.FilmConfig,
        argument="FILE",
        frames=True,
        alone=True,
        sample=film.sample,
    ),
    "success": Kind(
        "a classifier of success, trained before (`robo-rl reward train success`)",
        learned.success,
        learned.SuccessConfig,
        argument="FILE",
        frames=True,
    ),
    "progress": Kind(
        "how far along a demonstration frames look (`robo-rl reward train progress`)",
        learned.progress,
        learned.LearnedConfig,
        argument="FILE",
        frames=True,
    ),
    "critic": Kind(
        "worth of a film so far, whose end was held against ends of episodes that fail (`robo-rl "
        "reward train critic`)",
        learned.critic,
        learned.LearnedConfig,
        argument="FILE",
        frames=True,
    ),
    "value": Kind(
        "value of frames for the sentence, which rises along demonstrations (`robo-rl reward train "
        "value`)",
        learned.value,
        learned.LearnedConfig,
        argument="FILE",
        frames=True,
    ),
    "preferences": Kind(
        "worth of what was preferred (`robo-rl reward train preferences`), and asked about further "
        "while a policy learns, if wanted",
        learned.preferences,
        learned.PreferencesConfig,
        argument="FILE",
        frames=True,
    ),
    "task": Kind("the task's own hand-written dense reward (the ceiling)", code.own),
    "sparse": Kind("1 where the goal holds, else 0 (the ground truth's verdict)", code.sparse),
    "code": Kind(
        "a program in the reward language, checked first (`robo-rl reward check`)",
        code.from_file,
        argument="FILE",
    ),
    "offline": Kind(
        "a program written from the sentence by templates (`robo-rl reward write`)", code.offline
    ),
    "constant": Kind("0 everywhere (the control that teaches nothing)", code.constant),
}

CODE = "code:"


def listed() -> dict[str, str]:
    """{name as it is typed: what it is}."""
    after = {name: f":{kind.argument}" if kind.argument else "" for name, kind in REWARDS.items()}
    return {
        name + (f"[{after[name]}]" if kind.alone else after[name]): kind.says
        for name, kind in REWARDS.items()
    }


def kind_of(name: str) -> Kind:
    """The kind of the reward called ``name``; ValueError lists those that exist."""
    stem, colon, argument = name.partition(":")
    kind = REWARDS.get(stem)
    given = bool(colon and argument)
    if kind is None or (given != bool(kind.argument) and (colon or not kind.alone)):
        raise unknown(f"unknown reward {name!r}", name, listed(), "known rewards")
    return kind


def observes_account(config: Mapping[str, Any]) -> bool:
    """Whether the policy of a run's config observes the account of a goal that is no goal of the
    task's own: what looks at frames has none, so a policy sees what it always sees, unless the goal
    was typed as a formula."""
    return bool(config["formula"]) or not kind_of(config["reward"]).frames


def make_reward(
    name: str,
    goal: ReadGoal,
    env: BatchEnv | ForeignEnv,
    settings: RewardConfig | None = None,
    *,
    device: str = "cpu",
    progress: Callable[[str, float], None] = lambda stage, share: None,
    option: str = "",
) -> MadeReward:
    """The reward called ``name`` for a goal on an env, stepped only if it is a foreign one;
    ValueError for a name that nobody knows, or settings of another kind. ``option`` is what a
    person types before the name of a setting; empty: as in training, ``--clip.``."""
    kind = kind_of(name)
    settings = fitting(name, settings)
    stem, _, argument = name.partition(":")
    option = option or f"--{stem}."
    return kind.build(Asked(goal, env, settings, argument, device, progress, option))


def fitting(name: str, settings: RewardConfig | None) -> RewardConfig:
    """``settings`` if they are those of the reward called ``name``, its defaults for None."""
    expected = kind_of(name).settings
    if settings is None:
        return expected()
    if type(settings) is not expected:
        raise ValueError(
            f"reward {name!r} takes {expected.__name__}, got {type(settings).__name__}"
        )
    return settings
