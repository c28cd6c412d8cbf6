"""Four ways to turn embeddings into a score, side by side: how far each reward is from the dense
one, how well it tells success, and what is learned from it. Of VLM-RM's projection also how much
of it (alpha 0 is the cosine itself)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder, training
from benchmarks.seen import OWN, vision_config
from benchmarks.table import interval, percent
from benchmarks.training import FLOORS, PolicyCase, baselines_text, policy
from robo_rl.rewards import ClipConfig
from robo_rl.runs.markdown import table

SEEDS = (0, 1, 2)
TASKS = ("reach", "push", "lift", "open the drawer")
WAYS = {
    "cosine": ClipConfig(),
    "contrast": ClipConfig(formula="contrast"),
    "softmax": ClipConfig(formula="softmax"),
} | {
    f"goal baseline, alpha {alpha:g}": ClipConfig(formula="goal_baseline", alpha=alpha)
    for alpha in (0.25, 0.5, 0.75, 1.0)
}
EPISODES = 128  # on which a reward is judged
JUDGING = ("robo_rl.reward_analysis.report",)


@dataclass(frozen=True)
class FormulaCase:
    """A policy, and the reward that it learns from, which is judged beside it."""

    policy: PolicyCase
    episodes: int


def rows(options: Options) -> list[BenchmarkRow]:
    """Every way of every task with one seed, then with the next; all of a distilled copy."""
    made = []
    for seed in options.seeds or SEEDS:
        for task in TASKS:
            for way, scoring in WAYS.items():
                config = vision_config(OWN[task], replace(scoring, distill=True))
                one = policy(f"{task}, {way}, seed {seed}", config, options, seed)
                scored = FormulaCase(one.of, options.scaled(EPISODES, least=32))
                made.append(replace(one, of=scored, code=(*one.code, *JUDGING)))
    return made


def measure(of: FormulaCase, place: RowFolder) -> dict[str, Any]:
    """Success of the policy; STARC to both truths and AUC of its reward, with intervals."""
    from robo_rl.reward_analysis.report import judge_rewards, subject_of_run

    found = training.measure(of.policy, place)
    subject = replace(
        subject_of_run(place.folder), runs=()
    )  # its own policy acts in none of the episodes
    report = judge_rewards(subject, episodes=of.episodes, words=False).report
    reward_figures = report["rewards"][of.policy.config.reward]
    chosen = {"starc": reward_figures["free"]["starc"], "auc": reward_figures["auc all"]}
    return found | {"judged": chosen}


def table_text(rows: Sequence[Measured]) -> str:
    """What the rewards are worth, and what was learned from them."""
    heads = (
        "run",
        "STARC to dense",
        "STARC to sparse",
        "AUC",
        "success (95 % interval, n)",
        FLOORS,
        "steps",
    )
    lines = [
        (
            row["name"],
            *(interval(row["judged"]["starc"][truth]) for truth in ("task", "sparse")),
            interval(row["judged"]["auc"]),
            percent(row["evaluation"]),
            baselines_text(row["evaluation"]),
            f"{row['env_steps']:,}",
        )
        for row in rows
    ]
    return table(heads, lines)


EXPERIMENT = Experiment(rows, measure, table_text)
