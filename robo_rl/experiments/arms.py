"""Policies through deploy on emulated arms: of the dense reward, and of sentences with an order and
a constraint, rewarded by what was read from them.

Each policy is trained once and judged in simulation; then its bundle drives the arm over the arm's
own wire protocol. What is finished is not done again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from reward_models.metrics import wilson
from robo_rl.config import TrainConfig
from robo_rl.experiments import Experiment, Measured, Options, Place, Row
from robo_rl.experiments.table import table
from robo_rl.experiments.training import FLOORS, VISUAL, WRITTEN, floors_of, policy, trained
from robo_rl.presets import preset
from robo_rl.runs import jsonable, write_json

ARMS = ("so101", "ur5e")
GOALS = {"reach": "touch_red_cube", "push": "red_cube_next_to_blue_ball"}
TOLD = (  # of reach
    "touch the red cube, then the blue ball",
    "touch the red cube without touching the blue ball",
)
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
    of: tuple[str, ...] = (*GOALS.values(), *TOLD)  # goals


WAYS = (
    Way("as it is", 0.0, 0.0),
    Way("40 ms, 2 mm", 0.002, 0.04),
    Way("rendered cameras", 0.0, 0.0, rendered=True, of=(GOALS["reach"],)),
)


@dataclass(frozen=True)
class Driven:
    """A policy and in how many episodes it drives its arm, in every way."""

    policy: TrainConfig
    episodes: int


def rows(options: Options) -> list[Row]:
    """All policies on all arms."""
    made, episodes = [], options.scaled(EPISODES)
    for seed in options.seeds or (0,):
        for arm in ARMS:
            for trained_as in (
                *(config(task, arm) for task in GOALS),
                *(told(s, arm) for s in TOLD),
            ):
                name = f"{trained_as.task} {trained_as.goal}, {arm}, seed {seed}"
                one = policy(name, trained_as, options, seed)
                of = Driven(one.of.config, episodes)
                code = (*one.code, __name__, "robo_rl.arm.episodes", "robo_rl.arm.emulated")
                made.append(replace(one, of=of, code=code, without=VISUAL + WRITTEN))
    return made


def config(task: str, arm: str) -> TrainConfig:
    """How the policy for ``task`` on ``arm`` is trained."""
    base = preset(task, goal=GOALS[task])
    return replace(
        base,
        tuning=replace(base.tuning, num_envs=ROWS[task]),
        env_steps=STEPS[task],
        reward="task",
        robot=arm,
        randomize=WIDTH[task],
        shaped=True,
    )


def told(sentence: str, arm: str) -> TrainConfig:
    """How the policy for a sentence is trained on ``arm``: by what it was read as, as it comes."""
    return TrainConfig(task="reach", goal=sentence, robot=arm, reward="offline", shaped=True)


def measure(of: Driven, place: Place) -> dict[str, Any]:
    """The policy's figures in simulation, and on its arm in all ways."""
    result = trained(of.policy, place).run.result
    row = {
        "task": of.policy.task, "goal": of.policy.goal, "arm": of.policy.robot,
        "simulation": result["evaluation_shaped"], "without_limits": result["evaluation"],
        "env_steps": result["env_steps"],
    }  # fmt: skip
    for way in WAYS:
        if of.policy.goal in way.of:
            row[way.name] = _driven(way, of.episodes, place)
    return row


def _driven(way: Way, episodes: int, place: Place) -> dict[str, Any]:
    """The bundle on the emulated arm, in parts whose figures are kept in the run's folder."""
    from real_robot import PolicyBundle
    from robo_rl.arm.emulated import EmulatedStage
    from robo_rl.arm.episodes import run_episodes, task_of
    from robo_rl.arm.stage import closing

    slug = way.name.replace(" ", "-").replace(",", "")
    total: dict[str, Any] = {
        "episodes": 0, "successes": 0, "ended": {}, "reasons": [], "processor_s": 0.0
    }  # fmt: skip
    while (first := total["episodes"]) < episodes:
        kept = place.folder / f"arm-{slug}-{first:03d}.json"
        if not kept.exists():
            bundle = PolicyBundle.load(place.folder / "bundle")
            task = task_of(bundle.manifest)
            begun = time.process_time()
            stage = EmulatedStage(task, noise=way.noise, latency=way.latency, tags=way.rendered)
            with closing(stage):
                count = min(PART, episodes - first)
                done = run_episodes(
                    bundle, task, stage, episodes=count, first=first, console=place.console
                )
            if "interrupted" in done.ended:
                raise KeyboardInterrupt
            part = {name: getattr(done, name) for name in total if name != "processor_s"}
            part["processor_s"] = time.process_time() - begun
            write_json(kept, jsonable(part | {"arm": done.arm, "limited": done.limited}))
        part = json.loads(kept.read_text())
        for name in ("episodes", "successes", "reasons", "processor_s"):
            total[name] += part[name]
        for how, times in part["ended"].items():
            total["ended"][how] = total["ended"].get(how, 0) + times
    return total


def shown(rows: Sequence[Measured]) -> str:
    """In brackets the 95 % interval, and runs that were stopped before their end.

    The simulation is the one with the bridge's limits in it, as in training.
    """
    names = [way.name for way in WAYS]
    lines = []
    for row in rows:
        cells = [
            f"{100 * e['success']:.1f} ({100 * e['low']:.1f}-{100 * e['high']:.1f})"
            for e in (row["simulation"], row["without_limits"])
        ]
        cells.append(floors_of(row["simulation"]))
        cells += [_cell(row[name]) if name in row else "" for name in names]
        lines.append((f"{row['task']} {row['goal']}", row["arm"], *cells))
    simulated = ("simulation, n=1000", "the same without limits", FLOORS)
    return table(("policy", "arm", *simulated, *names), lines)


def _cell(way: Measured) -> str:
    won, n = way["successes"], way["episodes"]
    low, high = wilson(won, n)
    stopped = n - way["ended"].get("done", 0)
    note = f", {stopped} stopped" if stopped else ""
    return f"{100 * won / n:.0f} ({100 * low:.0f}-{100 * high:.0f}, n={n}{note})"


EXPERIMENT = Experiment(rows, measure, shown)
