"""Experiments that only list policies, as ``cases.toml`` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import sims
from benchmarks import BenchmarkRow, Experiment, Measured, Options, listed
from benchmarks.table import percent
from benchmarks.training import FLOORS, baselines_text, measure, policy, table_text
from robo_rl.config.presets import preset, with_presets
from robo_rl.config.train_config import TrainConfig
from robo_rl.rewards import ClipConfig
from robo_rl.runs.markdown import table


def listed_experiment(name: str) -> Experiment:
    """The experiment of the file that has this ``name``."""
    made = TABLES[listed()[name].get("table", "policies")]
    return Experiment(partial(rows, name), measure, made)


def rows(name: str, options: Options) -> list[BenchmarkRow]:
    """Every case of one training seed before any of the next; an expert is one for all seeds."""
    common = dict(listed()[name])
    seeds, cases = common.pop("seeds"), common.pop("cases", {})
    common.pop("table", None)
    every_seed = [*cases]
    if (always := common.pop("every_goal", None)) is not None:
        cases = {goal: {"goal": goal} for goal in sims.make_task(common["task"]).goals()}
        every_seed = always
    made, experts = [], []
    for seed in options.seeds or seeds:
        for title, case in cases.items():
            if not options.seeds and seed != seeds[0] and title not in every_seed:
                continue
            fields = common | case
            kind = fields.pop("kind", "train")
            config, judged_as = _config(fields)
            if kind == "expert":
                experts = [policy(title, config, options, kind="expert")]
            else:
                named = f"{title}, seed {seed}"
                made.append(policy(named, config, options, seed, judged_as=judged_as))
    return made + experts


def _config(fields: dict[str, Any]) -> tuple[TrainConfig, str]:
    """The training config of a case, and the ground truth where it is not the trained goal's."""
    task, goal = fields.pop("task"), fields.pop("goal", "")
    trained, tuning = fields.pop("trained_goal", ""), fields.pop("tuning", {})
    if "scoring" in fields:
        fields["scoring"] = ClipConfig(**fields["scoring"])
    if "formula" in fields:
        return with_presets(TrainConfig(task=task, **fields)), ""
    config = preset(task, fields.pop("learner", None), goal=goal)
    fields["tuning"] = replace(config.tuning, **tuning)
    if trained:
        fields["goal"] = trained
    return replace(config, **fields), goal if trained else ""


def _return_table(measured: Sequence[Measured]) -> str:
    """Success and return of each, and what training took."""
    heads = ("run", "success (95 % interval, n)", FLOORS, "return", "steps", "processor min")
    lines = [
        (
            row["name"],
            percent(row["evaluation"]),
            baselines_text(row["evaluation"]),
            f"{row['evaluation']['return_mean']:,.0f}",
            f"{row['env_steps']:,}",
            f"{row['seconds']['processor'] / 60:.1f}",
        )
        for row in measured
    ]
    return table(heads, lines)


TABLES: Mapping[str, Any] = {"policies": table_text, "return": _return_table}
