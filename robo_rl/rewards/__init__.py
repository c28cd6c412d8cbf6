"""Rewards by name. A new one is a function that makes it, its settings, and a line in REWARDS.

May import: datasets/sources, goals, labelling, runs, runtime, vision.
"""

from __future__ import annotations

from collections.abc import Callable

from robo_rl.goals.reading import ReadGoal
from robo_rl.rewards import clip, code, goal_image, learned, video_similarity
from robo_rl.rewards.base import BuiltReward, RewardConfig, RewardRequest, RewardType
from robo_rl.rewards.clip import ClipConfig
from robo_rl.rewards.code import checked_program
from robo_rl.rewards.goal_image import GoalImageConfig
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import GymnasiumEnv
from sims.utils.did_you_mean import unknown_name_error

__all__ = [
    "CODE",
    "REWARDS",
    "ClipConfig",
    "BuiltReward",
    "RewardConfig",
    "checked_program",
    "reward_type",
    "make_reward",
]

REWARDS = {
    "clip": RewardType(
        "similarity of rendered frames to the sentence, by a CLIP",
        clip.build,
        ClipConfig,
        frames=True,
    ),
    "goal-image": RewardType(
        "likeness of rendered frames to goal pictures, in a file or a folder (`robo-rl reward "
        "picture`)",
        goal_image.build,
        GoalImageConfig,
        argument="FILE",
        frames=True,
    ),
    "film": RewardType(
        "likeness of an episode's film at its end to a demonstration's, or to the sentence",
        video_similarity.build,
        video_similarity.VideoSimilarityConfig,
        argument="FILE",
        frames=True,
        alone=True,
        sample=video_similarity.sample,
    ),
    "success": RewardType(
        "a classifier of success, trained before (`robo-rl reward train success`)",
        learned.success,
        learned.SuccessConfig,
        argument="FILE",
        frames=True,
    ),
    "progress": RewardType(
        "how far along a demonstration frames look (`robo-rl reward train progress`)",
        learned.progress,
        learned.LearnedConfig,
        argument="FILE",
        frames=True,
    ),
    "critic": RewardType(
        "worth of a film so far, whose end was held against ends of episodes that fail (`robo-rl "
        "reward train critic`)",
        learned.critic,
        learned.LearnedConfig,
        argument="FILE",
        frames=True,
    ),
    "value": RewardType(
        "value of frames for the sentence, which rises along demonstrations (`robo-rl reward train "
        "value`)",
        learned.value,
        learned.LearnedConfig,
        argument="FILE",
        frames=True,
    ),
    "preferences": RewardType(
        "worth of what was preferred (`robo-rl reward train preferences`), and asked about further "
        "while a policy learns, if wanted",
        learned.preferences,
        learned.PreferencesConfig,
        argument="FILE",
        frames=True,
    ),
    "task": RewardType("the task's own hand-written dense reward (the ceiling)", code.task_reward),
    "sparse": RewardType(
        "1 where the goal holds, else 0 (the ground truth's verdict)", code.sparse
    ),
    "code": RewardType(
        "a program in the reward language, checked first (`robo-rl reward check`)",
        code.from_file,
        argument="FILE",
    ),
    "offline": RewardType(
        "a program written from the sentence by templates (`robo-rl reward write`)",
        code.template_reward,
    ),
    "constant": RewardType("0 everywhere (the control that teaches nothing)", code.constant),
}

CODE = "code:"


def reward_names() -> dict[str, str]:
    """{name as it is typed: what it is}."""
    after = {name: f":{kind.argument}" if kind.argument else "" for name, kind in REWARDS.items()}
    return {
        name + (f"[{after[name]}]" if kind.alone else after[name]): kind.says
        for name, kind in REWARDS.items()
    }


def reward_type(name: str) -> RewardType:
    """The kind of the reward called ``name``; ValueError lists those that exist."""
    stem, colon, argument = name.partition(":")
    kind = REWARDS.get(stem)
    given = bool(colon and argument)
    if kind is None or (given != bool(kind.argument) and (colon or not kind.alone)):
        raise unknown_name_error(
            f"unknown reward {name!r}", name, reward_names(), "available rewards"
        )
    return kind


def make_reward(
    name: str,
    goal: ReadGoal,
    env: BatchEnv | GymnasiumEnv,
    settings: RewardConfig | None = None,
    *,
    device: str = "cpu",
    progress: Callable[[str, float], None] = lambda stage, share: None,
    option: str = "",
) -> BuiltReward:
    """The reward called ``name`` for a goal on an env, stepped only if it is a foreign one;
    ValueError for a name that nobody knows, or settings of another kind. ``option`` is what a
    person types before the name of a setting; empty: as in training, ``--clip.``."""
    kind = reward_type(name)
    settings = check_settings(name, settings)
    stem, _, argument = name.partition(":")
    option = option or f"--{stem}."
    return kind.build(RewardRequest(goal, env, settings, argument, device, progress, option))


def check_settings(name: str, settings: RewardConfig | None) -> RewardConfig:
    """Returns ``settings`` if they are those of the reward ``name``, and its defaults for None.

    Args:
        name: The reward's name.
        settings: Its settings.

    Raises:
        ValueError: the reward is unknown, or its settings are of another type.
    """
    expected = reward_type(name).settings
    if settings is None:
        return expected()
    if type(settings) is not expected:
        raise ValueError(
            f"reward {name!r} takes {expected.__name__}, got {type(settings).__name__}"
        )
    return settings
