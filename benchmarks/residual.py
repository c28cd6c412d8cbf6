"""Residuals on a clone of few demonstrations beside learning from scratch with as many steps,
updates and demonstrations. Every seed has demonstrations and a clone of its own, and its base is
judged too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks import BenchmarkRow, Experiment, Measured, Options
from benchmarks.demonstrated import BASES, CODE, FromDemos, among, measure
from benchmarks.table import percent
from benchmarks.training import FLOORS, baselines_text, policy
from robo_rl.config.presets import preset
from robo_rl.datasets.demonstrations import CloneConfig
from robo_rl.runs.markdown import table
from sims.envs.demonstrations import DemoConfig

SEEDS = (0, 1, 2, 3, 4)
ROBOT = "so101"


@dataclass(frozen=True)
class ResidualCase:
    """What is learned, for how long, from what demonstrations."""

    goal: str
    learner: str  # from scratch; residual-... of it on the base
    reward: str
    steps: int
    episodes: int  # of demonstrations: a few of the expert's own fail, under noise
    cloned: int  # of those that succeed
    noise: float = 0.1  # on their actions
    among: bool = False  # all of them in every batch, too, of both
    tuning: Mapping[str, Any] = field(default_factory=dict)  # of both
    over: Mapping[str, Any] = field(default_factory=dict)  # of the residual


TASKS: Mapping[str, ResidualCase] = {
    "peg": ResidualCase(
        "insert",
        "ensemble",
        "sparse",
        125_000,
        50,
        15,
        noise=0.03,
        among=True,
        tuning={"gradient_steps": 32, "horizon_s": 4.0},
        over={"scale": 0.5, "critic_updates": 4_000},
    ),
    "push": ResidualCase(
        "red_cube_next_to_blue_ball",
        "ensemble",
        "task",
        100_000,
        40,
        40,
        among=True,
        tuning={"gradient_steps": 32},
        over={"scale": 0.5, "critic_updates": 4_000},
    ),
    "lift": ResidualCase(
        "lift_cube",
        "sac",
        "task",
        20_000,
        12,
        6,
        tuning={"gradient_steps": 4},
        over={"scale": 0.5, "switch_on_steps": 8_000},
    ),
}


def rows(options: Options) -> list[BenchmarkRow]:
    """All of one seed before any of the next."""
    return [
        row
        for seed in options.seeds or SEEDS
        for task, case in TASKS.items()
        for row in _pair(task, case, options, seed)
    ]


def _pair(
    task: str, case: ResidualCase, options: Options, seed: int
) -> tuple[BenchmarkRow, BenchmarkRow]:
    def made(name: str, learner: str, **more: Any) -> BenchmarkRow:
        config = preset(task, learner, goal=case.goal)
        tuning = replace(config.tuning, **case.tuning, **more)
        config = replace(
            config, robot=ROBOT, reward=case.reward, env_steps=case.steps, eval_points=0
        )
        return policy(f"{task}, {name}, seed {seed}", replace(config, tuning=tuning), options, seed)

    residual = f"residual-{case.learner}"
    over = made(f"{residual} on a clone of {case.cloned}", residual, **case.over)
    scratch = made(f"{case.learner} from scratch", case.learner)
    trained_as = over.of.config
    demos = DemoConfig(
        episodes=case.episodes, noise=case.noise, num_envs=case.episodes, seed=trained_as.seed
    )
    clone = CloneConfig(
        demos=case.cloned,
        seed=trained_as.seed,
        episodes=trained_as.episodes,
        eval_seeds=trained_as.eval_seeds,
        updates=options.scaled(CloneConfig.updates, least=8),
    )
    if not case.among:
        corrected = FromDemos(over.of, demos, None, clone)
        return replace(over, of=corrected, code=(*over.code, *BASES)), scratch
    corrected = FromDemos(over.of, demos, {}, clone)
    return (
        replace(over, of=corrected, code=(*over.code, *CODE, *BASES)),
        among(scratch, demos, {}),
    )


def table_text(rows: Sequence[Measured]) -> str:
    """Success with that of the base, and what training took."""
    heads = ("run", "base", "success (95 % interval, n)", FLOORS, "steps", "processor min")
    lines = [
        (
            row["name"],
            percent(row["base"]) if "base" in row else "",
            percent(row["evaluation"]),
            baselines_text(row["evaluation"]),
            f"{row['env_steps']:,}",
            f"{row['seconds']['processor'] / 60:.1f}" if "processor" in row["seconds"] else "",
        )
        for row in rows
    ]
    return table(heads, lines)


EXPERIMENT = Experiment(rows, measure, table_text)
