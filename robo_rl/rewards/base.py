"""What every kind of reward has in common: its settings, what it is made from, what is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reward_models.base import Encoder, RewardModel
from reward_models.programs import Program
from robo_rl.goals.reading import ReadGoal
from robo_rl.vision.distilled_scene import DistilledScene
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import GymnasiumEnv

if TYPE_CHECKING:
    from robo_rl.labelling.queries import OnlineQueries


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """The settings of a reward; this one of those that have none."""


@dataclass(frozen=True)
class RewardRequest:
    """Goal, env and settings from which a reward is made."""

    goal: ReadGoal
    env: BatchEnv | GymnasiumEnv  # a BatchEnv is only read; a GymnasiumEnv is also stepped
    settings: Any  # of the kind's own class
    argument: str = ""  # what the name has after its colon
    device: str = "cpu"
    progress: Callable[[str, float], None] = lambda stage, share: None
    option: str = "--"  # what a person types before the name of one of its settings


@dataclass
class BuiltReward:
    """A reward model and what making it cost."""

    model: RewardModel | None  # None: the task's own reward
    text: str  # the captions, or the program, for people and for the bundle
    sees: str  # its inputs, in words
    scene: DistilledScene | None = None
    frames: int = 0  # rendered to make it
    program: Program | None = None  # where it is one
    about: dict[str, str] = field(default_factory=dict)  # of the scorer, for reports
    camera: str = ""  # camera of its frames; empty: none
    asks: OnlineQueries | None = None  # label queries during training


@dataclass(frozen=True)
class RewardType:
    """An entry of the table of rewards."""

    says: str  # one-line description
    build: Callable[[RewardRequest], BuiltReward]
    settings: type[RewardConfig] = RewardConfig
    argument: str = ""  # what follows its name and a colon: FILE
    frames: bool = False  # whether it looks at frames
    alone: bool = False  # its name does without what follows, too
    sample: Callable[[Encoder], RewardModel] | None = None  # a small one, which tests look at
