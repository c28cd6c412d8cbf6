"""What a search gains: its winner beside the hand-written reward with as many steps in all.

A row is one search with its verdict, whose own journal lets it go on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import sims
from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from benchmarks.training import FLOORS, FRESH, baselines_text, task_code
from reward_models.analysis.metrics import paired_gain
from robo_rl.config.presets import preset
from robo_rl.evaluation.baselines import measure_baselines
from robo_rl.evaluation.evaluate import TEST_SEED
from robo_rl.runs.markdown import table
from robo_rl.search.config import SearchConfig
from robo_rl.search.journal import SearchJournal
from robo_rl.search.report import gain
from robo_rl.search.run import JOURNAL, search
from robo_rl.search.worker import unpack_successes


@dataclass(frozen=True)
class Compared:
    """One comparison. A search takes 7 times the candidates' steps: those themselves, four
    trainings of the verdict as long, and the dense reward's with both on top."""

    task: str
    goal: str
    dense: str  # what its dense reward is
    env_steps: int  # of one candidate
    candidates: int
    rounds: int
    validation_episodes: int = 256
    episodes: int = 1000  # of the verdict


# Steps at which candidates differ (reach: 11 to 16 % after 6,400 steps of the dense reward; push:
# what has 2 to 9 % after 100,000 has half after 200,000, what has nothing stays there) and the
# verdict's trainings, each as long as all candidates together, are on their way up (reach: 53 %
# after 25,600, 98 % after 51,200).
COMPARED = (
    Compared("reach", "touch_red_cube", "our dense reward", 6_400, 3, 2),
    Compared("push", "red_cube_next_to_blue_ball", "our dense reward", 100_000, 4, 1),
)
SEEDS = (0, 1, 2)
FEWEST_STEPS, FEWEST_EPISODES = 512, 16  # of a trial run
KINDS = ("winner", "sentence", "dense", "null", "dense_total")


def rows(options: Options) -> list[BenchmarkRow]:
    """Every comparison once before any has its second search."""
    made = []
    for seed in options.seeds or SEEDS:
        for one in COMPARED:
            code = (
                "robo_rl.search.run",
                "robo_rl.search.worker",
                "reward_models.writers",
                *task_code(sims.make_task(one.task)),
            )
            name = f"{one.task} {one.goal}, search {seed}"
            made.append(BenchmarkRow(name, (one, config(one, seed, options)), code))
    return made


def config(one: Compared, seed: int, options: Options) -> SearchConfig:
    """The settings of a search."""
    base = preset(one.task, goal=one.goal)
    return SearchConfig(
        task=one.task,
        goal=sims.make_task(one.task).goals()[one.goal].sentence,
        candidates=one.candidates,
        rounds=one.rounds,
        rungs=1,
        env_steps=options.scaled(one.env_steps, FEWEST_STEPS),
        episode_s=base.episode_s,
        validation_episodes=options.scaled(one.validation_episodes, FEWEST_EPISODES),
        episodes=options.scaled(one.episodes, FEWEST_EPISODES),
        seed=seed if options.develop else FRESH + seed,
        equal_total="dense",
        minutes=300.0,  # the longest training has twice the others' steps
        tuning=base.tuning,
    )


def measure(of: tuple[Compared, SearchConfig], place: RowFolder) -> dict[str, Any]:
    """The search's verdict, and the success of every test episode."""
    one, wanted = of
    task = sims.make_task(one.task, goal=one.goal)
    begun = (place.folder / JOURNAL).exists()
    wanted = replace(wanted, runs=place.folder.parent, name=place.folder.name)
    search(wanted, resume=place.folder if begun else None, console=place.console)
    summary = json.loads((place.folder / "search.json").read_text())
    journal = SearchJournal(place.folder / JOURNAL)
    won = {e["what"]: e["won"] for e in journal.of("judged") if e["kind"] == "trained"}
    journal.close()
    return {
        "task": one.task,
        "goal": one.goal,
        "dense": one.dense,
        "search_env_steps": summary["search_env_steps"],
        "failures": summary["failures"],
        "verdict": {w: v["success"] for w, v in summary["verdict"].items()},
        "gains": summary["gains"],
        "episodes": wanted.episodes,
        "floors": measure_baselines(task, episodes=wanted.episodes, seed=TEST_SEED).as_dict(),
        "won": won,  # packed; a training that failed has no success
    }


def table_text(rows: Sequence[Measured]) -> str:
    """The comparisons over all their searches, then every search."""
    goals = dict.fromkeys((row["task"], row["goal"], row["dense"]) for row in rows)
    gains = []
    for task, goal, dense in goals:
        own = [row for row in rows if (row["task"], row["goal"]) == (task, goal)]
        cells = [f"{task} {goal}", len(own), dense]
        for other in ("dense_total", "dense", "sentence", "null"):
            winner, beside = (_episodes(own, what) for what in ("winner", other))
            value, low, high = paired_gain(winner, beside)
            cells.append(gain({"gain": value, "low": low, "high": high}))
        gains.append(cells)
    heads = (
        "goal",
        "searches",
        "dense reward",
        "winner's gain (95 %, paired) over dense at equal total steps",
        "over dense at its own",
        "over the sentence's",
        "over null",
    )
    each = [
        (
            row["name"],
            f"{row['search_env_steps']:,}",
            *(f"{100 * row['verdict'][k]:.1f} %" if k in row["verdict"] else "" for k in KINDS),
            baselines_text(row),
            row["failures"].split(":")[0],
        )
        for row in rows
    ]
    return f"{table(heads, gains)}\n{table(('search', 'steps', *KINDS, FLOORS, 'failures'), each)}"


def _episodes(rows: Sequence[Measured], what: str) -> np.ndarray:
    """(searches, episodes) success of the test episodes."""
    return np.array(
        [
            unpack_successes(row["won"].get(what, ""), row["episodes"]) or [0] * row["episodes"]
            for row in rows
        ]
    )


EXPERIMENT = Experiment(rows, measure, table_text)
