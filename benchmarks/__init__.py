"""Benchmarks: every documented figure is a row of one, and `robo-rl bench NAME` measures it again.

An experiment is a table of ``cases.toml`` where it only lists policies, or a module of this package
that holds ``EXPERIMENT``: its rows, how one of them is measured, how they read as a table. Either
has one line here. ``runner.py`` does what is missing of it.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console

from sims.utils.did_you_mean import unknown_name_error

EXPERIMENTS = {
    # name, which with "_" for "-" is the module's: what it shows
    "demo": "the demo's reward from frames and distilled, with its upper bound and controls",
    "goals": "one policy per goal of reach, further seeds for three of them",
    "push": "push from its sentence beside the dense reward",
    "seen": "one CLIP for nine tasks and three arms, compared with the dense reward",
    "formulas": "four scores from embeddings: evaluated, and used as rewards",
    "encoders": "image towers of four sizes trained alike: caption accuracy and policies",
    "scorers": "every scorer evaluated on five tasks, and used as reward on three",
    "dense": "arm tasks from their hand-written dense reward",
    "bodies": "locomotion tasks from their hand-written dense reward",
    "off-policy": "SAC, TD3 and TQC beside PPO on lift and drawer, from the dense reward",
    "residual": "residuals on clones of few demonstrations beside learning from scratch",
    "interventions": "expert takeovers in early episodes compared with none",
    "learn": "processor time to a success threshold, compared with SB3 defaults",
    "one-policy": "one policy for all goals from sparse rewards, with and without hindsight",
    "prior": "fifty demonstrations compared with none, from sparse rewards",
    "sentences": "programs written from sentences compared with dense rewards",
    "untuned": "twelve untuned goals with numbers, order and constraints",
    "drawn": "randomly sampled goals, untuned",
    "reading": "accuracy of parsing sentences",
    "crossing": "files on the path from a command line to the first reward",
    "screens": "archive screens on good and on bad rewards",
    "search": "reward search compared with a hand-written reward, at equal steps",
    "memory": "memory of runs after some steps and after four times as many",
    "arms": "reach and push on emulated arms, over their wire protocols",
    "sim": "rate: env-steps per second of bodies and of arm reach",
    "render": "rate: frames per second of the arm scene",
    "reward": "rate: frames encoded and steps rewarded per second",
    "loop": "rate: latency of the control loop and of the policy",
}
RATES = ("sim", "render", "reward", "loop")  # each beside its peer in the same run

Measured = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What may be asked of an experiment's rows."""

    only: str = ""  # rows whose names contain this
    seeds: tuple[int, ...] = ()  # training seeds, counted from 0; empty: the experiment's default
    develop: bool = False  # train and evaluate on validation seeds
    share: float = 1.0  # share of steps and episodes; below 1: a trial run

    def scaled(self, count: int, least: int = 1) -> int:
        """``count`` steps or episodes, or a trial run's share of them."""
        return count if self.share >= 1 else max(least, round(self.share * count))


@dataclass(frozen=True)
class BenchmarkRow:
    """One row of a table: what is measured, and all that its figures hang on."""

    name: str
    of: Any  # plain data, as JSON or frozen dataclasses of it
    code: tuple[str, ...]  # modules that make the figures; what they import counts with them
    without: tuple[str, ...] = ()  # of what they import: what no figure hangs on


@dataclass(frozen=True)
class RowFolder:
    """Where a row is measured."""

    folder: Path  # one per row, reused when the row is resumed
    console: Console | None = None


@dataclass(frozen=True)
class Experiment:
    """Rows, how one is measured (from its ``of``), and how those that are done read."""

    rows: Callable[[Options], Sequence[BenchmarkRow]]
    measure: Callable[[Any, RowFolder], dict[str, Any]]
    table: Callable[[Sequence[Measured]], str]
    rate: bool = False  # of this machine; nothing else may run beside it


@cache
def listed() -> dict[str, dict[str, Any]]:
    """{experiment that only lists policies: its table in ``cases.toml``}."""
    return tomllib.loads(Path(__file__).with_name("cases.toml").read_text())


def experiment(name: str) -> Experiment:
    """The experiment called ``name``; ValueError lists the known ones."""
    if name not in EXPERIMENTS:
        raise unknown_name_error(f"unknown experiment {name!r}", name, EXPERIMENTS)
    if name in listed():
        return importlib.import_module(f"{__name__}.cases").listed_experiment(name)
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}").EXPERIMENT
