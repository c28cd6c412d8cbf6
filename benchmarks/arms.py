"""Policies through deploy on emulated arms: of the dense reward, and of sentences with an order and
a constraint, rewarded by what was read from them.

Each policy is trained once and judged in simulation, under each of the conditions that it meets on
the arm; then its bundle drives the arm over the arm's own wire protocol. What is finished is not
done again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from benchmarks.training import FLOORS, VISUAL, WRITTEN, baselines_text, policy, trained
from real_robot import PolicyBundle
from robo_rl.arm.emulated import EmulatedStage
from robo_rl.arm.episodes import run_episodes
from robo_rl.arm.stage import closing
from robo_rl.config.presets import preset
from robo_rl.config.train_config import TrainConfig
from robo_rl.evaluation.arm_conditions import PLAIN, ArmConditions
from robo_rl.evaluation.baselines import SuccessRate
from robo_rl.evaluation.evaluate import EVAL_SEEDS, evaluate
from robo_rl.goals.bundle_task import task_of_bundle
from robo_rl.goals.goal_task import GoalTask
from robo_rl.runs.markdown import table
from robo_rl.runs.run_dir import jsonable, write_json

ARMS = ("so101", "ur5e")
GOALS = {"reach": "touch_red_cube", "push": "red_cube_next_to_blue_ball"}
TOLD = (  # of reach
    "touch the red cube, then the blue ball",
    "touch the red cube without touching the blue ball",
)
EPISODES = 100  # on the arm, in every way
PART = 25  # of them, whose figures are kept if the rest is interrupted
WIDTH = 0.7  # of randomised rows: what the arm adds is met in training
STEPS = {"reach": 300_000, "push": 800_000}
SOFT = {"so101": (100.0, 30.0, 10.0), "ur5e": (1000.0, 500.0, 200.0)}  # N m/rad
KNOWN = ("push",)  # one more policy is told that its arm's servos are the softest of these


@dataclass(frozen=True)
class ArmSetting:
    """Under what a bundle drives an arm."""

    name: str
    conditions: ArmConditions = PLAIN
    rendered: bool = False  # poses from tags in rendered cameras
    told: bool = False  # sentences are put to it, too

    @property
    def slug(self) -> str:
        """In names of files."""
        return self.name.replace(" ", "-").replace(",", "").replace("/", "-")


def arm_settings(of: TrainConfig) -> tuple[ArmSetting, ...]:
    """Those of a policy's arm, the last three with servos softer and softer; of one that was told
    its servos, with these and as it is."""
    plain = ArmSetting("as it is", told=True)
    soft = tuple(
        ArmSetting(f"{k:g} N m/rad", ArmConditions(noise=0.002, stiffness=k))
        for k in SOFT[of.robot]
    )
    if of.stiffness:
        return (soft[-1], plain)
    return (
        plain,
        ArmSetting(
            "40 ms, 2 mm, 3 mm off", ArmConditions(noise=0.002, bias=0.003, latency=0.04), told=True
        ),
        ArmSetting("rendered cameras", rendered=True),
        *soft,
    )


@dataclass(frozen=True)
class Driven:
    """A policy and in how many episodes it drives its arm, in every way."""

    policy: TrainConfig
    episodes: int


def rows(options: Options) -> list[BenchmarkRow]:
    """All policies on all arms."""
    made, episodes = [], options.scaled(EPISODES)
    for seed in options.seeds or (0,):
        for arm in ARMS:
            for trained_as in (
                *(config(task, arm) for task in GOALS),
                *(replace(config(task, arm), stiffness=SOFT[arm][-1]) for task in KNOWN),
                *(config_of_sentence(s, arm) for s in TOLD),
            ):
                name = f"{_name(vars(trained_as))}, {arm}, seed {seed}"
                one = policy(name, trained_as, options, seed)
                of = Driven(one.of.config, episodes)
                code = (*one.code, __name__, "robo_rl.arm.episodes", "robo_rl.arm.emulated")
                made.append(replace(one, of=of, code=code, without=VISUAL + WRITTEN))
    return made


def _name(of: Mapping[str, Any]) -> str:
    """What a policy does, and what of its arm it was told."""
    known = of.get("stiffness")  # rows of before have none
    return f"{of['task']} {of['goal']}" + (f", told {known:g} N m/rad" if known else "")


def config(task: str, arm: str) -> TrainConfig:
    """How the policy for ``task`` on ``arm`` is trained."""
    return replace(
        preset(task, "ensemble", goal=GOALS[task]),
        env_steps=STEPS[task],
        reward="task",
        robot=arm,
        randomize=WIDTH,
        rate_limited=True,
    )


def config_of_sentence(sentence: str, arm: str) -> TrainConfig:
    """How the policy for a sentence is trained on ``arm``: by what it was read as, as it comes."""
    return TrainConfig(task="reach", goal=sentence, robot=arm, reward="offline", rate_limited=True)


def measure(of: Driven, place: RowFolder) -> dict[str, Any]:
    """The policy's figures in simulation, and on its arm in all ways, each beside simulation under
    the same conditions."""
    result = trained(of.policy, place).run.result
    row = {
        "task": of.policy.task,
        "goal": of.policy.goal,
        "arm": of.policy.robot,
        "stiffness": of.policy.stiffness,
        "simulation": result["evaluation"],
        "without_limits": result["evaluation_unlimited"],
        "env_steps": result["env_steps"],
    }
    for way in arm_settings(of.policy):
        if way.told or of.policy.goal not in TOLD:
            row[way.name] = _driven(way, of.episodes, place) | {
                "simulated": _simulated(way, of, place)
            }
    return row


def _simulated(way: ArmSetting, of: Driven, place: RowFolder) -> dict[str, Any] | None:
    """In simulation under the same conditions, kept in the run's folder; a bias is as long, but its
    sides are the corners of a cube. What tags come to nobody has a model of: as it is. None: nobody
    has one of what the account of a formula's goal comes to, either."""
    alike = next(one for one in arm_settings(of.policy) if one.conditions == way.conditions)
    stored_file = place.folder / f"arm-{alike.slug}-simulated.json"
    if not stored_file.exists():
        bundle = PolicyBundle.load(place.folder / "bundle")
        task = task_of_bundle(bundle.manifest)
        if isinstance(task, GoalTask):
            return None
        found = evaluate(
            task,
            lambda obs: bundle.act(obs)[0],
            episodes=of.policy.episodes,
            seed=EVAL_SEEDS[of.policy.eval_seeds],
            shaped=True,
            randomize=way.conditions.randomization(task),
        )
        write_json(stored_file, jsonable(found.as_dict()))
    return json.loads(stored_file.read_text())


def _driven(way: ArmSetting, episodes: int, place: RowFolder) -> dict[str, Any]:
    """The bundle on the emulated arm, in parts whose figures are kept in the run's folder."""
    total: dict[str, Any] = {
        "episodes": 0,
        "successes": 0,
        "ended": {},
        "reasons": [],
        "processor_s": 0.0,
    }
    while (first := total["episodes"]) < episodes:
        stored_file = place.folder / f"arm-{way.slug}-{first:03d}.json"
        if not stored_file.exists():
            bundle = PolicyBundle.load(place.folder / "bundle")
            task = task_of_bundle(bundle.manifest)
            begun = time.process_time()
            stage = EmulatedStage(task, way.conditions, tags=way.rendered)
            with closing(stage):
                count = min(PART, episodes - first)
                done = run_episodes(
                    bundle, task, stage, episodes=count, first=first, console=place.console
                )
            if "interrupted" in done.ended:
                raise KeyboardInterrupt
            part = {name: getattr(done, name) for name in total if name != "processor_s"}
            part["processor_s"] = time.process_time() - begun
            write_json(stored_file, jsonable(part | {"arm": done.arm, "limited": done.limited}))
        part = json.loads(stored_file.read_text())
        for name in ("episodes", "successes", "reasons", "processor_s"):
            total[name] += part[name]
        for how, times in part["ended"].items():
            total["ended"][how] = total["ended"].get(how, 0) + times
    return total


def table_text(rows: Sequence[Measured]) -> str:
    """In brackets the 95 % interval, and runs that were stopped before their end.

    The simulation has the bridge's limits in it, as in training.
    """
    lines = []
    for row in rows:
        policy = _name(row), row["arm"]
        for way, driven in row.items():
            if isinstance(driven, Mapping) and "ended" in driven:
                # Rows that were kept before had one simulation for all ways.
                simulated = driven.get("simulated", row["simulation"])
                blank = ("", "")
                if simulated is not None:
                    rate = SuccessRate(simulated["successes"], simulated["episodes"]).line()
                    blank = rate, baselines_text(simulated)
                lines.append((*policy, way, *blank, _cell(driven)))
                policy = "", ""
    columns = ("policy", "arm", "put to", "simulation under the same", FLOORS, "on the wire")
    return table(columns, lines)


def _cell(way: Measured) -> str:
    stopped = way["episodes"] - way["ended"].get("done", 0)
    return SuccessRate(way["successes"], way["episodes"]).line() + (
        f", {stopped} stopped" if stopped else ""
    )


EXPERIMENT = Experiment(rows, measure, table_text)
