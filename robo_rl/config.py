"""TrainConfig: every knob of a run in one frozen dataclass; the comment is the CLI's help."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robo_rl.learners.config import LEARNERS, LearnerConfig, PPOConfig
from robo_rl.rewards import ClipConfig


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run."""

    task: str = "reach"  # as `robo-rl list tasks` shows
    goal: str = ""  # a sentence, or the key of one of the task's goals; empty: the first one
    reward: str = "clip"  # as `robo-rl list rewards` shows
    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own, if it has one
    learner: str = "ppo"  # as `robo-rl list learners` shows
    env_steps: int = 96_000  # simulated steps over all rows
    seed: int = 0  # of training; evaluation draws from seeds that no training uses
    episodes: int = 1000  # judged at the end
    episode_s: float = 0.0  # s, of a training episode; 0: the task's; whole ones are judged
    randomize: float = 0.0  # width of the randomised rows, which it grows to; 0: all rows the same
    shaped: bool = False  # rows move within the limits that the bridge on a real arm keeps to
    env_python: str = ""  # of gym:ID tasks: an interpreter to run the env in; empty: this one
    env_kwargs: str = "{}"  # of gym:ID tasks: JSON object their constructor gets; "$SEED": a row's
    clip: ClipConfig = field(default_factory=ClipConfig)
    tuning: LearnerConfig = field(default_factory=PPOConfig)
    labels: int = 512  # frames per request where the distilled encoder is in doubt; 0: never ask
    labels_every: int = 12  # rollouts between looks at its doubt
    labels_above: float = 2.5  # times its doubt on held-out states
    checkpoint_every: int = 32_000  # env steps
    runs: Path = Path("runs")  # folder of all runs
    name: str = ""  # of the run; empty: made of task, goal, reward and seed
    device: str = "cpu"  # of the networks: cpu or cuda

    def __post_init__(self) -> None:
        if self.learner not in LEARNERS:
            raise ValueError(f"unknown learner {self.learner!r}; known: {', '.join(LEARNERS)}")
        if type(self.tuning) is not LEARNERS[self.learner]:
            raise ValueError(
                f"learner {self.learner!r} is tuned by {LEARNERS[self.learner].__name__}, "
                f"got {type(self.tuning).__name__}"
            )
        for name in ("env_steps", "episodes", "labels_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.episode_s < 0:
            raise ValueError(f"episode_s must be at least 0, got {self.episode_s}")
        if self.randomize < 0:
            raise ValueError(f"randomize must be at least 0, got {self.randomize}")
        if self.seed < 0 or self.seed >= 500_000_000:
            raise ValueError(f"seed must be in [0, 500,000,000), got {self.seed}")


def from_json(kind: type, data: Any) -> Any:
    """The config dataclass ``kind`` that ``config.json`` holds; ValueError on what does not fit."""
    if not isinstance(data, dict):
        raise ValueError(f"{kind.__name__} must be a JSON object, got {type(data).__name__}")
    hints = typing.get_type_hints(kind)
    known = {f.name for f in dataclasses.fields(kind)}
    unknown = sorted(set(data) - known)
    if unknown:
        raise ValueError(f"{kind.__name__} has no {', '.join(unknown)}: another version wrote it")
    values = {}
    for name, value in data.items():
        hint = hints[name]
        if hint is LearnerConfig:
            hint = LEARNERS[data["learner"]]
        if dataclasses.is_dataclass(hint):
            values[name] = from_json(hint, value)
        elif hint is Path:
            values[name] = Path(value)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)
