"""`robo-rl bench arms`: policies of the dense reward, through deploy, on emulated arms.

Each policy is trained once and judged in simulation on 1,000 episodes; then its bundle drives the
arm over the arm's own wire protocol. What is finished is not done again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from reward_models.metrics import wilson
from robo_rl.config import TrainConfig, from_json
from robo_rl.presets import preset
from robo_rl.runs import RunDir, jsonable, write_json

ARMS = ("so101", "ur5e")
GOALS = {"reach": "touch_red_cube", "push": "red_cube_next_to_blue_ball"}
EPISODES = 100  # on the arm, in every way
PART = 25  # of them, whose figures are kept if the rest is interrupted
WIDTH = {"reach": 0.0, "push": 0.7}  # of randomised rows: push needs to have met noise and delay
STEPS = {"reach": 96_000, "push": 1_500_000}
ROWS = {"reach": 64, "push": 128}  # with more of them, what limits and delays blur averages out


@dataclass(frozen=True)
class Way:
    """Under what a bundle drives an arm."""

    name: str
    noise: float  # m, of perceived positions
    latency: float  # s
    rendered: bool = False  # poses from tags in rendered cameras
    tasks: tuple[str, ...] = ("reach", "push")


WAYS = (
    Way("as it is", 0.0, 0.0),
    Way("40 ms, 2 mm", 0.002, 0.04),
    Way("rendered cameras", 0.0, 0.0, rendered=True, tasks=("reach",)),
)


def config(task: str, arm: str, runs: Path, seed: int) -> TrainConfig:
    """How the policy for ``task`` on ``arm`` is trained."""
    base = preset(task, base=TrainConfig(runs=runs, seed=seed))
    return replace(
        base,
        tuning=replace(base.tuning, num_envs=ROWS[task]),
        goal=GOALS[task],
        env_steps=STEPS[task],
        reward="task",
        robot=arm,
        randomize=WIDTH[task],
        shaped=True,
        name=f"{task}-{arm}",
    )


def measure(
    runs: Path, seed: int = 0, console: Console | None = None, episodes: int = EPISODES
) -> list[dict[str, Any]]:
    """Rows of all policies on all arms in all ways."""
    rows = []
    for arm in ARMS:
        for task in GOALS:
            wanted = config(task, arm, runs, seed)
            row = {"task": task, "goal": wanted.goal, "arm": arm, "randomize": wanted.randomize}
            row |= _trained(wanted, console)
            for way in WAYS:
                if task in way.tasks:
                    row[way.name] = _driven(wanted, way, episodes, console)
            rows.append(row)
    return rows


def _trained(wanted: TrainConfig, console: Console | None) -> dict[str, Any]:
    """The policy's figures in simulation."""
    folder = wanted.runs / wanted.name
    run, begun = RunDir(folder), (folder / "config.json").exists()
    if begun:
        kept = from_json(TrainConfig, run.config)
        kept = replace(kept, runs=wanted.runs, name=wanted.name)
        other = [k for k, v in vars(wanted).items() if vars(kept)[k] != v]
        if other:
            raise ValueError(f"{folder} was trained with other {', '.join(other)}; move it away")
    if not run.finished:
        from robo_rl.training import train

        train(wanted, resume=folder if begun else None, console=console)
    result = run.result
    return {
        "simulation": result["evaluation_shaped"],
        "without_limits": result["evaluation"],
        "env_steps": result["env_steps"],
    }


def _driven(
    wanted: TrainConfig, way: Way, episodes: int, console: Console | None
) -> dict[str, Any]:
    """The bundle on the emulated arm, in parts whose figures are kept in the run's folder."""
    from real_robot import PolicyBundle
    from robo_rl.arm.emulated import EmulatedStage
    from robo_rl.arm.episodes import run_episodes, task_of
    from robo_rl.arm.stage import closing

    folder = wanted.runs / wanted.name
    slug = way.name.replace(" ", "-").replace(",", "")
    total: dict[str, Any] = {
        "episodes": 0, "successes": 0, "ended": {}, "reasons": [], "processor_s": 0.0
    }  # fmt: skip
    while (first := total["episodes"]) < episodes:
        found = sorted(folder.glob(f"arm-{slug}-{first:03d}-*.json"))
        if found:
            part = json.loads(found[0].read_text())
        else:
            bundle = PolicyBundle.load(folder / "bundle")
            task = task_of(bundle)
            begun = time.process_time()
            stage = EmulatedStage(task, noise=way.noise, latency=way.latency, tags=way.rendered)
            with closing(stage):
                count = min(PART, episodes - first)
                done = run_episodes(
                    bundle, task, stage, episodes=count, first=first, console=console
                )
            if "interrupted" in done.ended:
                raise KeyboardInterrupt
            part = {name: getattr(done, name) for name in total if name != "processor_s"}
            part["processor_s"] = time.process_time() - begun
            part = jsonable(part | {"arm": done.arm, "limited": done.limited})
            write_json(folder / f"arm-{slug}-{first:03d}-{count}.json", part)
        for name in ("episodes", "successes", "reasons", "processor_s"):
            total[name] += part[name]
        for how, times in part["ended"].items():
            total["ended"][how] = total["ended"].get(how, 0) + times
    return total


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table; in brackets the 95 % interval, and runs that were stopped before their end.

    The simulation is the one with the bridge's limits in it, as in training.
    """
    names = [way.name for way in WAYS]
    lines = [
        f"| policy | arm | simulation, n=1000 | the same without limits | {' | '.join(names)} |",
        "|---|---|---|---|" + "---|" * len(names),
    ]
    for row in rows:
        cells = [
            f"{100 * e['success']:.1f} ({100 * e['low']:.1f}-{100 * e['high']:.1f})"
            for e in (row["simulation"], row["without_limits"])
        ]
        for name in names:
            cells.append(_cell(row[name]) if name in row else "")
        lines.append(f"| {row['task']} {row['goal']} | {row['arm']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(way: dict[str, Any]) -> str:
    won, n = way["successes"], way["episodes"]
    low, high = wilson(won, n)
    stopped = n - way["ended"].get("done", 0)
    note = f", {stopped} stopped" if stopped else ""
    return f"{100 * won / n:.0f} ({100 * low:.0f}-{100 * high:.0f}, n={n}{note})"
