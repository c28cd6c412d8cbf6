"""TrainConfig: every knob of a run in one frozen dataclass; the comment is the CLI's help.

A TrainConfig says what a person asks for; a SettledConfig has everything settled, by presets where
nothing was asked (``robo_rl/config/presets.py``).
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from reward_models.vision.config import at_least
from robo_rl.learners import LEARNERS, LearnerConfig, PPOConfig
from robo_rl.rewards import RewardConfig, check_settings, reward_type
from sims.core.rng import JUDGING
from sims.external.gymnasium_env import PREFIX
from sims.tasks.scene.mjcf import packed_scene, scene_label
from sims.utils.did_you_mean import unknown_name_error

ENV_STEPS, CHECKPOINT_EVERY = 96_000, 32_000  # where no preset says otherwise

# What a preset may set: None is "as the task needs", and help shows the number that this is.
Steps = Annotated[int | None, tyro.conf.arg(metavar="INT")]
Name = Annotated[str | None, tyro.conf.arg(metavar="STR")]
Seconds = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]
Share = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """What people set most."""

    task: str = "reach"  # as `robo-rl list tasks` shows
    # A sentence, or the key of one of the task's goals, or any: all of them, one an episode; empty:
    # the first one.
    goal: str = ""
    # A goal written as a formula instead (docs/reference/goal-language.md), with --reward offline.
    formula: str = ""
    reward: Name = None  # as `robo-rl list rewards` shows
    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own, if it has one
    things: str = ""  # on the table of task tabletop: "yellow ball, two red cubes, white plate"
    scene: str = ""  # on that table: your FILE.xml, with its card FILE.toml beside it
    learner: Name = None  # as `robo-rl list learners` shows
    env_steps: Steps = None  # simulated steps over all rows
    seed: int = 0  # of training; evaluation draws from seeds that no training uses
    name: str = ""  # of the run; empty: made of task, goal, reward and seed


@dataclass(frozen=True, kw_only=True)
class FurtherOptions:
    """Seldom needed."""

    episodes: int = 1000  # judged at the end; fewer while trying things out
    judge: Literal["select", "test"] = "select"  # seed of those; figures are quoted on test's, once
    looks: int = 10  # at the policy while it learns, on selection episodes, at most; 0: none
    look_episodes: int = 100  # of each
    stop_at: Share = None  # ends training once a look at the policy succeeds so often; 0: never
    stop_overoptimised: bool = False  # ends it once the policy is paid more and succeeds less
    episode_s: Seconds = None  # s, of a training episode; 0: the task's; whole ones are judged
    randomize: float = 0.0  # width of the randomised rows, which it grows to; 0: all rows the same
    # s, of the arm as it is known, half to what is seen and half to what is commanded
    latency: float = 0.0
    # N m/rad, of its servos as they are known: no row has stiffer ones; 0: the model's own
    stiffness: float = 0.0
    asynchronous: bool = False  # score in a process of its own; who learns does not wait for it
    scattered: Share = None  # share of training episodes that begin anywhere in the workspace
    shaped: bool = False  # rows move within the limits that the bridge on a real arm keeps to
    env_python: str = ""  # of gym:ID tasks: an interpreter to run the env in; empty: this one
    env_kwargs: str = "{}"  # of gym:ID tasks: JSON object their constructor gets; "$SEED": a row's
    labels: int = 512  # frames per request where the distilled encoder is in doubt; 0: never ask
    labels_every: int = 12  # rollouts between looks at its doubt
    labels_above: float = 2.5  # times its doubt on held-out states
    checkpoint_every: Steps = None  # env steps
    runs: Path = Path("runs")  # folder of all runs
    device: str = "cpu"  # of the networks: cpu or cuda


@dataclass(frozen=True, kw_only=True)
class TrainConfig(CommonOptions, FurtherOptions):
    """One training run as it is asked for: what is None becomes what the task needs."""

    scoring: RewardConfig | None = None  # of the reward; None: as it comes
    tuning: LearnerConfig | None = None  # of the learner; None: the preset's

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "scene", packed_scene(self.scene)
        )  # a run needs no file outside it
        if not self.task.startswith(PREFIX) and (self.env_python or self.env_kwargs != "{}"):
            raise ValueError(
                f"env_python and env_kwargs are of gym:ID tasks, not of {self.task}: leave them out"
            )
        if self.formula and self.goal:
            raise ValueError(
                "a goal is a sentence or a formula: give --goal or --formula, not both"
            )
        if self.formula and self.reward == "task":
            raise ValueError(
                "--reward task does not know how far a formula is: with --formula use "
                "--reward clip, offline, sparse, constant or code:FILE"
            )
        if self.learner is None and self.tuning is not None:
            object.__setattr__(self, "learner", learner_of_tuning(self.tuning))
        if self.learner not in (None, *LEARNERS):
            raise unknown_name_error(f"unknown learner {self.learner!r}", self.learner, LEARNERS)
        if self.tuning is not None and type(self.tuning) is not LEARNERS[self.learner].config:
            raise ValueError(
                f"learner {self.learner!r} is tuned by {LEARNERS[self.learner].config.__name__}, "
                f"got {type(self.tuning).__name__}"
            )
        if self.tuning is not None and not self.tuning.makes_steps:
            if self.randomize or self.scattered:
                raise ValueError(
                    f"{self.learner} learns of --demos alone, as they were made: leave out "
                    "--randomize and --scattered"
                )
        if self.reward is not None:
            check_settings(self.reward, self.scoring)
        counts = ("env_steps", "episodes", "look_episodes", "labels_every", "checkpoint_every")
        at_least(self, 1, *(name for name in counts if getattr(self, name) is not None))
        at_least(self, 0, "randomize", "looks", "labels", "labels_above", "latency", "stiffness")
        at_least(self, 0, *(["episode_s"] if self.episode_s is not None else []))
        rollout = self.tuning.n_steps if isinstance(self.tuning, PPOConfig) else 0
        if self.env_steps is not None and rollout > self.env_steps:
            raise ValueError(
                f"tuning.n_steps of {rollout:,} is longer than all of the training, env_steps of "
                f"{self.env_steps:,}"
            )
        if not 0 <= (self.scattered or 0) <= 1:
            raise ValueError(f"scattered must be in [0, 1], got {self.scattered}")
        if not 0 <= (self.stop_at or 0) <= 1 or (self.stop_at and not self.looks):
            raise ValueError(
                f"stop_at must be in [0, 1], and above 0 only with looks; got {self.stop_at} with "
                f"looks={self.looks}"
            )
        if self.stop_overoptimised and not self.looks:
            raise ValueError("stop_overoptimised is told by looks, and there are none: looks=0")
        if not 0 <= self.seed < JUDGING:
            raise ValueError(f"seed must be in [0, {JUDGING:,}), got {self.seed}")
        if self.device != "cpu" and not re.fullmatch(r"cuda(:\d+)?", self.device):
            raise ValueError(f"device must be cpu, cuda or cuda:N, got {self.device!r}")


def learner_of_tuning(tuning: LearnerConfig) -> str:
    """The learner whose settings these are."""
    return next(name for name, kind in LEARNERS.items() if kind.config is type(tuning))


@dataclass(frozen=True, kw_only=True)
class SettledConfig(TrainConfig):
    """One training run with everything settled, as ``config.json`` keeps it."""

    reward: str = "clip"
    learner: str = "ppo"
    env_steps: int = ENV_STEPS
    stop_at: float = 0.0
    episode_s: float = 0.0
    scattered: float = 0.0
    checkpoint_every: int = CHECKPOINT_EVERY
    tuning: LearnerConfig = field(default_factory=PPOConfig)


# What a run that goes on may be given anew; where it lies is the folder's name and place.
MAY_CHANGE = ("env_steps", "episodes", "judge", "stop_at", "stop_overoptimised", "device")


def resumed_config(path: Path, stored: SettledConfig, asked: Mapping[str, Any]) -> SettledConfig:
    """``stored``, of the run in ``path``, with what ``asked`` changes of it.

    None asks for nothing. ValueError names both values of the first option that contradicts.
    """
    changed: dict[str, Any] = {}
    for name, value in asked.items():
        value = packed_scene(value) if name == "scene" else value
        if value is None or name == "runs" or value == getattr(stored, name):
            continue
        if name == "name" and value in ("", path.name):
            continue
        # A reward's settings are options under the reward's name.
        prefix = stored.reward.partition(":")[0] if name == "scoring" else name
        option, was, now = _difference(prefix, getattr(stored, name), value)
        if name not in MAY_CHANGE:
            raise ValueError(
                f"{path} was begun with --{option} {was}, asked is {now}: a run goes on as it "
                "began; leave the option out, or begin another run"
            )
        changed[name] = value
    if changed.get("env_steps", stored.env_steps) < stored.env_steps:
        raise ValueError(
            f"{path} was begun for --env-steps {stored.env_steps}, asked is "
            f"{changed['env_steps']}: a run that goes on can only run for more"
        )
    return replace(stored, **changed)


def _difference(name: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    """(option, value, other value) of the first difference; settings within settings are looked
    into where both have them."""
    if dataclasses.is_dataclass(one) and type(one) is type(other):
        for f in dataclasses.fields(one):
            inner = getattr(one, f.name), getattr(other, f.name)
            if inner[0] != inner[1]:
                return _difference(f"{name}.{f.name}", *inner)
    return name.replace("_", "-"), _value_text(one), _value_text(other)


def _value_text(value: Any) -> str:
    if isinstance(value, str) and value.startswith("{") and '"xml"' in value:
        return scene_label(value)
    return type(value).__name__ if dataclasses.is_dataclass(value) else repr(value)


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
        if name == "tuning":
            hint = LEARNERS[data["learner"]].config
        if name == "scoring":
            hint = reward_type(data["reward"]).settings
        if dataclasses.is_dataclass(hint):
            values[name] = from_json(hint, value)
        elif Path in (hint, *typing.get_args(hint)) and value is not None:
            several = isinstance(value, list)
            values[name] = tuple(map(Path, value)) if several else Path(value)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)
