"""Residuals on a clone of few demonstrations beside learning from scratch, at equal steps, from the
dense reward. Every seed has demonstrations and a clone of its own, and its base is judged too."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from robo_rl.config import SettledConfig
from robo_rl.demonstrations import CloneConfig
from robo_rl.experiments import Experiment, Measured, Options, Place, Row, training
from robo_rl.experiments.table import percent, table
from robo_rl.experiments.training import FLOORS, Policy, demonstrated, floors_of, policy
from robo_rl.learners.residual import ResidualConfig
from robo_rl.presets import preset
from robo_rl.trained import Trained, load
from sims.demos import DemoConfig

SEEDS = (0, 1, 2)
TASK, ROBOT, GOAL, STEPS = "lift", "so101", "lift_cube", 20_000
DEMOS, NOISE = 6, 0.1  # episodes that are cloned, the noise on their actions
BASES = ("robo_rl.clone", "robo_rl.demonstrations", "sims.demos")


@dataclass(frozen=True)
class Corrected:
    """A policy over a clone, which is made first."""

    policy: Policy
    demos: DemoConfig
    clone: CloneConfig


def rows(options: Options) -> list[Row]:
    """All of one seed before any of the next."""
    return [row for seed in options.seeds or SEEDS for row in _seed(options, seed)]


def _seed(options: Options, seed: int) -> list[Row]:
    def config(learner: str, **tuning: Any) -> SettledConfig:
        made = preset(TASK, learner, goal=GOAL)
        tuned = replace(made.tuning, gradient_steps=4, **tuning)
        return replace(
            made, robot=ROBOT, reward="task", env_steps=STEPS, looks=0, tuning=tuned
        )  # fmt: skip

    scratch = policy(f"sac from scratch, seed {seed}", config("sac"), options, seed)
    name = f"residual-sac on a clone of {DEMOS} demonstrations, seed {seed}"
    residual = config("residual-sac", scale=0.5, switch_on_steps=8_000)
    over = policy(name, residual, options, seed)
    trained_as = over.of.config
    # More episodes than are cloned: a few of the expert's own fail, under noise.
    demos = DemoConfig(episodes=2 * DEMOS, noise=NOISE, num_envs=2 * DEMOS, seed=trained_as.seed)
    clone = CloneConfig(
        demos=DEMOS, seed=trained_as.seed, episodes=trained_as.episodes, judge=trained_as.judge,
        updates=options.scaled(CloneConfig.updates, least=8),
    )  # fmt: skip
    corrected = Corrected(over.of, demos, clone)
    return [replace(over, of=corrected, code=(*over.code, *BASES)), scratch]


def measure(of: Corrected | Policy, place: Place) -> dict[str, Any]:
    """Success of the policy, and of its base where it has one; what training took."""
    if isinstance(of, Policy):
        return training.measure(of, place)
    base, config = _base(of, place), of.policy.config
    assert isinstance(config.tuning, ResidualConfig) and base.evaluation is not None
    tuning = replace(config.tuning, base=str(base.run.path))
    found = training.measure(replace(of.policy, config=replace(config, tuning=tuning)), place)
    return {"base": base.evaluation.as_dict(), **found}


def _base(of: Corrected, place: Place) -> Trained:
    """The clone, made once."""
    from robo_rl.clone import clone

    folder = place.folder.with_name(f"{place.folder.name}-base")
    if (folder / "result.json").exists():
        return load(folder)
    if folder.exists():  # it was stopped halfway
        shutil.rmtree(folder)
    config = of.policy.config
    shown = demonstrated(config, of.demos, replace(place, folder=folder))
    named = replace(of.clone, runs=folder.parent, name=folder.name)
    return clone(shown, named, console=place.console)


def shown(rows: Sequence[Measured]) -> str:
    """Success with that of the base, and what training took."""
    heads = ("run", "base", "success (95 % interval, n)", FLOORS, "steps", "processor min")
    lines = [
        (
            row["name"], percent(row["base"]) if "base" in row else "",
            percent(row["evaluation"]), floors_of(row["evaluation"]), f"{row['env_steps']:,}",
            f"{row['seconds']['processor'] / 60:.1f}" if "processor" in row["seconds"] else "",
        )
        for row in rows
    ]  # fmt: skip
    return table(heads, lines)


EXPERIMENT = Experiment(rows, measure, shown)
