"""Rows that have demonstrations, which are made first: in their batches, as a start that imitates
them, or as a clone that a residual corrects."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sims
from benchmarks import BenchmarkRow, RowFolder, training
from benchmarks.training import PolicyCase
from robo_rl.config.train_config import TrainConfig
from robo_rl.datasets.demonstrations import CloneConfig
from robo_rl.learners.config import OffPolicyConfig
from robo_rl.learners.residual import ResidualConfig
from robo_rl.training.trained import Trained, load
from sims.envs.demonstrations import DemoConfig, write_demos

CODE = (
    "robo_rl.learners.demo_replay",
    "robo_rl.datasets.demonstrations",
    "sims.envs.demonstrations",
)
BASES = ("robo_rl.training.clone", *CODE[1:])  # of who corrects a clone, and has them not else


@dataclass(frozen=True)
class FromDemos:
    """A policy that learns from demonstrations."""

    policy: PolicyCase
    demos: DemoConfig
    way: Mapping[str, Any] | None  # settings of a learner that is given them; None: it is not
    clone: CloneConfig | None = None  # of them, the base that a residual corrects


def among(row: BenchmarkRow, demos: DemoConfig, way: Mapping[str, Any]) -> BenchmarkRow:
    """The ``row`` of a policy, which is given demonstrations in this ``way``."""
    return replace(row, of=FromDemos(row.of, demos, way), code=(*row.code, *CODE))


def measure(of: FromDemos | PolicyCase, place: RowFolder) -> dict[str, Any]:
    """Success of the policy, and of its base where it has one, with floors; what training took."""
    if isinstance(of, PolicyCase):
        return training.measure(of, place)
    config, found = of.policy.config, {}
    tuning = config.tuning
    if of.way is not None:
        assert isinstance(tuning, OffPolicyConfig)
        tuning = replace(tuning, demos=str(demonstrated(config, of.demos, place)), **of.way)
    if of.clone is not None:
        assert isinstance(tuning, ResidualConfig)
        base = _base(of, of.clone, place)
        assert base.evaluation is not None
        tuning = replace(tuning, base=str(base.run.path))
        found["base"] = base.evaluation.as_dict()
    policy = replace(of.policy, config=replace(config, tuning=tuning))
    return found | training.measure(policy, place)


def demonstrated(config: TrainConfig, demos: DemoConfig, place: RowFolder) -> Path:
    """The data set of demonstrations beside a row's place, made once; by the expert of the task's
    goal."""
    folder = place.folder.with_name(f"{place.folder.name}-demos")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        task = sims.make_task(config.task, robot=config.robot or None, goal=config.goal)
        write_demos(task, folder, demos)
    return folder


def _base(of: FromDemos, asked: CloneConfig, place: RowFolder) -> Trained:
    """The clone, made once."""
    from robo_rl.training.clone import clone

    folder = place.folder.with_name(f"{place.folder.name}-base")
    if (folder / "result.json").exists():
        return load(folder)
    if folder.exists():  # it was stopped halfway
        shutil.rmtree(folder)
    demos = demonstrated(of.policy.config, of.demos, place)
    named = replace(asked, runs=folder.parent, name=folder.name)
    return clone(demos, named, console=place.console)
