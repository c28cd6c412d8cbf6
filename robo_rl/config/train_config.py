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
from robo_rl.runtime.renamed_options import accepts_old_names, current_names
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
    """Common options."""

    task: str = "reach"  # as `robo-rl list tasks` shows
    # A sentence, or the key of a goal of the task, or any: another goal of the task per episode;
    # empty: the first goal.
    goal: str = ""
    # A goal written as a formula instead (docs/reference/goal-language.md), with --reward offline.
    formula: str = ""
    reward: Name = None  # as `robo-rl list rewards` shows
    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own, if it has one
    things: str = ""  # objects of task tabletop: "yellow ball, two red cubes, white plate"
    scene: str = ""  # your scene for task tabletop: FILE.xml, with FILE.toml beside it
    learner: Name = None  # as `robo-rl list learners` shows
    env_steps: Steps = None  # simulated steps, summed over all environments
    seed: int = 0  # training seed; evaluation uses seeds that no training run uses
    name: str = ""  # run name; empty: built from task, goal, reward and seed


@dataclass(frozen=True, kw_only=True)
class FurtherOptions:
    """Further options."""

    episodes: int = 1000  # evaluation episodes at the end of training
    # Evaluation seeds: validation is for development, test is for figures that you publish.
    eval_seeds: Literal["validation", "test"] = "validation"
    eval_points: int = 10  # periodic evaluations during training, at most; 0: none
    eval_episodes: int = 100  # episodes per periodic evaluation
    stop_at: Share = None  # stop training at this success rate in an evaluation; 0: never
    stop_overoptimised: bool = False  # stop once the reward rises while the success rate falls
    episode_s: Seconds = None  # s, training episode length; 0: the task's; evaluation: full
    # Domain randomisation scale reached during training; 0: identical environments.
    randomize: float = 0.0
    # Known arm latency, s, split equally between sensing and actuation.
    latency: float = 0.0
    # Known servo stiffness, N m/rad: an upper bound in every environment; 0: the model's own.
    stiffness: float = 0.0
    async_scoring: bool = False  # score rewards in a separate process; learning does not wait
    random_starts: Share = None  # share of training episodes with random initial states
    rate_limited: bool = False  # rate-limit actions as the bridge of a real arm does
    env_python: str = ""  # gym:ID tasks: Python interpreter for the env; empty: this one
    # gym:ID tasks: JSON object of constructor arguments; "$SEED" becomes each environment's seed.
    env_kwargs: str = "{}"
    # Frames per labelling request when the distilled encoder is uncertain; 0: never relabel.
    labels: int = 512
    labels_every: int = 12  # rollouts between checks of that uncertainty
    labels_above: float = 2.5  # relabel above this multiple of the uncertainty on held-out states
    checkpoint_every: Steps = None  # env steps between checkpoints
    runs: Path = Path("runs")  # folder of all runs
    device: str = "cpu"  # device of the networks: cpu or cuda


@accepts_old_names
@dataclass(frozen=True, kw_only=True)
class TrainConfig(CommonOptions, FurtherOptions):
    """Settings of one training run as given; None takes the preset's value."""

    scoring: RewardConfig | None = None  # settings of the reward; None: the defaults
    tuning: LearnerConfig | None = None  # settings of the learner; None: the preset's

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "scene", packed_scene(self.scene)
        )  # a run needs no file outside it
        if not self.task.startswith(PREFIX) and (self.env_python or self.env_kwargs != "{}"):
            raise ValueError(
                "env_python and env_kwargs apply to gym:ID tasks only, got task "
                f"{self.task}: leave them out"
            )
        if self.formula and self.goal:
            raise ValueError("--goal and --formula are exclusive: give one of them")
        if self.formula and self.reward == "task":
            raise ValueError(
                "--reward task has no dense reward for a formula: with --formula use "
                "--reward clip, offline, sparse, constant or code:FILE"
            )
        if self.learner is None and self.tuning is not None:
            object.__setattr__(self, "learner", learner_of_tuning(self.tuning))
        if self.learner not in (None, *LEARNERS):
            raise unknown_name_error(f"unknown learner {self.learner!r}", self.learner, LEARNERS)
        if self.tuning is not None and type(self.tuning) is not LEARNERS[self.learner].config:
            raise ValueError(
                f"tuning of learner {self.learner!r} must be a "
                f"{LEARNERS[self.learner].config.__name__}, "
                f"got {type(self.tuning).__name__}"
            )
        if self.tuning is not None and not self.tuning.makes_steps:
            if self.randomize or self.random_starts:
                raise ValueError(
                    f"learner {self.learner} is offline and trains on --demos only: leave out "
                    "--randomize and --random-starts"
                )
        if self.reward is not None:
            check_settings(self.reward, self.scoring)
        counts = ("env_steps", "episodes", "eval_episodes", "labels_every", "checkpoint_every")
        at_least(self, 1, *(name for name in counts if getattr(self, name) is not None))
        at_least(
            self, 0, "randomize", "eval_points", "labels", "labels_above", "latency", "stiffness"
        )
        at_least(self, 0, *(["episode_s"] if self.episode_s is not None else []))
        rollout = self.tuning.n_steps if isinstance(self.tuning, PPOConfig) else 0
        if self.env_steps is not None and rollout > self.env_steps:
            raise ValueError(
                f"tuning.n_steps gives rollouts of {rollout:,}, more than env_steps, "
                f"{self.env_steps:,}"
            )
        if not 0 <= (self.random_starts or 0) <= 1:
            raise ValueError(f"random_starts must be in [0, 1], got {self.random_starts}")
        if not 0 <= (self.stop_at or 0) <= 1 or (self.stop_at and not self.eval_points):
            raise ValueError(
                f"stop_at must be in [0, 1] and needs periodic evaluation, got {self.stop_at} with "
                f"eval_points={self.eval_points}"
            )
        if self.stop_overoptimised and not self.eval_points:
            raise ValueError(
                "stop_overoptimised needs periodic evaluations: set eval_points above 0"
            )
        if not 0 <= self.seed < JUDGING:
            raise ValueError(f"seed must be in [0, {JUDGING:,}), got {self.seed}")
        if self.device != "cpu" and not re.fullmatch(r"cuda(:\d+)?", self.device):
            raise ValueError(f"device must be cpu, cuda or cuda:N, got {self.device!r}")


def learner_of_tuning(tuning: LearnerConfig) -> str:
    """The learner whose settings these are."""
    return next(name for name, kind in LEARNERS.items() if kind.config is type(tuning))


@dataclass(frozen=True, kw_only=True)
class SettledConfig(TrainConfig):
    """Settings of one training run with every value resolved, as stored in ``config.json``."""

    reward: str = "clip"
    learner: str = "ppo"
    env_steps: int = ENV_STEPS
    stop_at: float = 0.0
    episode_s: float = 0.0
    random_starts: float = 0.0
    checkpoint_every: int = CHECKPOINT_EVERY
    tuning: LearnerConfig = field(default_factory=PPOConfig)


# What a run that goes on may be given anew; where it lies is the folder's name and place.
MAY_CHANGE = ("env_steps", "episodes", "eval_seeds", "stop_at", "stop_overoptimised", "device")


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
                f"{path} was started with --{option} {was}, got {now}: a resumed run keeps its "
                "settings; leave the option out, or start a new run"
            )
        changed[name] = value
    if changed.get("env_steps", stored.env_steps) < stored.env_steps:
        raise ValueError(
            f"{path} was started with --env-steps {stored.env_steps}, got "
            f"{changed['env_steps']}: a resumed run can only be extended"
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
    if not data.keys() <= known:
        data = current_names(data)
    unknown = sorted(set(data) - known)
    if unknown:
        raise ValueError(
            f"unknown fields {', '.join(unknown)} of {kind.__name__}: another version wrote it"
        )
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
