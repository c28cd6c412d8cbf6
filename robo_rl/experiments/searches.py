"""What a search gains: ``robo-rl bench search``, three independent searches for each comparison.

The winner of a search, trained again from scratch, beside the hand-written reward with the search's
steps on top, so that both have had the same steps in all. Each search keeps its journal, and the
command goes on where it stopped; a search that is done is only told again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import sims
from reward_models.metrics import paired_gain
from robo_rl.presets import preset
from robo_rl.search.config import SearchConfig
from robo_rl.search.journal import Journal
from robo_rl.search.run import JOURNAL, search
from robo_rl.search.worker import unpacked


@dataclass(frozen=True)
class Compared:
    """One comparison; a search takes 25 times ``env_steps``, eleven of them the dense reward's."""

    task: str
    goal: str
    dense: str  # what its dense reward is
    env_steps: int  # of a whole training
    select_episodes: int
    episodes: int  # of the verdict


# Steps at which the rewards of both tasks have begun to be learned and not yet done so, fixed
# before the first run. An episode of the hopper may take 1,000 steps, one of the arm takes 80.
COMPARED = (
    Compared("hopper", "forward", "Gymnasium's v5 reward", 400_000, 64, 500),
    Compared("push", "red_cube_next_to_blue_ball", "our dense reward", 200_000, 256, 1000),
)
SEARCHES = 3
FEWEST_STEPS, FEWEST_EPISODES = 512, 16  # of a trial run


def config(one: Compared, seed: int, runs: Path, share: float = 1.0, jobs: int = 1) -> SearchConfig:
    """One search; ``share`` of the full steps and episodes makes a trial run of it."""
    base = preset(one.task, goal=one.goal)
    few = min(1.0, 10 * share)
    return SearchConfig(
        task=one.task,
        goal=sims.make_task(one.task).goals()[one.goal].sentence,
        candidates=6,
        rounds=2,
        rungs=3,
        env_steps=max(FEWEST_STEPS, round(share * one.env_steps)),
        episode_s=base.episode_s,
        select_episodes=max(FEWEST_EPISODES, round(few * one.select_episodes)),
        episodes=max(FEWEST_EPISODES, round(few * one.episodes)),
        seed=seed,
        equal_total="dense",
        workers=jobs,
        minutes=300.0,  # the longest training has twelve times the others' steps
        tuning=base.tuning,
        runs=runs,
        name=f"{one.task}-{one.goal}-{seed}",
    )


def measure(
    runs: Path, share: float = 1.0, console: Console | None = None, jobs: int = 1
) -> list[dict[str, Any]]:
    """One row per comparison; runs what is missing, ``jobs`` trainings at a time."""
    rows = []
    for compared in COMPARED:
        summaries, won = [], {"winner": [], "dense_total": []}
        for seed in range(SEARCHES):
            one = config(compared, seed, runs, share, jobs)
            folder = runs / one.name
            if console is not None:
                console.rule(f"{compared.task} {compared.goal}, {seed + 1} of {SEARCHES}")
            if (folder / JOURNAL).exists():
                _same(folder, one)
            search(one, resume=folder if (folder / JOURNAL).exists() else None, console=console)
            summaries.append(json.loads((folder / "search.json").read_text()))
            finals = _finals(folder, one.episodes)
            for what in won:
                won[what].append(finals[what])
        gain, low, high = paired_gain(np.array(won["winner"]), np.array(won["dense_total"]))
        rows.append(
            {
                "task": compared.task,
                "goal": compared.goal,
                "dense": compared.dense,
                "gain": gain,
                "low": low,
                "high": high,
                "searches": [
                    {
                        "seed": s["config"]["seed"],
                        "search_env_steps": s["search_env_steps"],
                        "winner": s["winner"],
                        "failures": s["failures"],
                        "verdict": {w: v["success"] for w, v in s["verdict"].items()},
                        "gains": s["gains"],
                    }
                    for s in summaries
                ],
            }
        )
    return rows


def _finals(folder: Path, episodes: int) -> dict[str, list[int]]:
    """{what: success of every test episode} of a finished search."""
    journal = Journal(folder / JOURNAL)
    try:
        return {
            e["what"]: unpacked(e["won"], episodes) if e["kind"] == "trained" else [0] * episodes
            for e in journal.of("judged")
        }
    finally:
        journal.close()


def _same(folder: Path, wanted: SearchConfig) -> None:
    """ValueError where a search that was begun has other steps than what is asked for."""
    journal = Journal(folder / JOURNAL)
    begun = journal.of("begun")
    journal.close()
    for name in ("env_steps", "episodes", "select_episodes", "candidates", "rounds"):
        if begun and begun[0]["config"][name] != getattr(wanted, name):
            raise ValueError(
                f"{folder} holds a search with {name} {begun[0]['config'][name]}, asked for "
                f"{getattr(wanted, name)}; give another --runs"
            )


def markdown(rows: list[dict[str, Any]]) -> str:
    """The comparisons, then every search."""
    lines = [
        "| task | beside, at equal total steps | gain of the winner (95 %, paired) |",
        "|---|---|---|",
    ]
    for row in rows:
        gain, low, high = (100 * row[k] for k in ("gain", "low", "high"))
        lines.append(
            f"| {row['task']} {row['goal']} | {row['dense']} | "
            f"{gain:+.1f} points ({low:.1f} to {high:.1f}) |"
        )
    kinds = ("winner", "sentence", "dense", "null", "dense_total")
    lines += ["", f"| search | steps | {' | '.join(kinds)} | failures |", f"|{'---|' * 8}"]
    for row in rows:
        for one in row["searches"]:
            shown = [
                f"{100 * one['verdict'][k]:.1f} %" if k in one["verdict"] else "" for k in kinds
            ]
            lines.append(
                f"| {row['task']} {one['seed']} | {one['search_env_steps']:,} | "
                f"{' | '.join(shown)} | {one['failures'].split(':')[0]} |"
            )
    return "\n".join(lines) + "\n"
