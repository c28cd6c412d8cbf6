"""Suites of runs behind the documented figures: each resumable, each written as one table.

A suite is a list of entries; an entry is a training run, an untrained policy or the expert, judged
on the same unseen episodes. What is finished is not done again, so a suite that was interrupted
goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

import sims
from reward_models.writers.offline import write
from robo_rl.config import TrainConfig
from robo_rl.experiments.sentences import REWARDS, SEEDS, WRITTEN, row_name
from robo_rl.experiments.sentences import markdown as sentences_table
from robo_rl.goals import read_goal
from robo_rl.presets import preset
from robo_rl.runs import RunDir, jsonable, versions, write_json
from robo_rl.threads import cores, limit_cores

DEMO_GOAL = "touch_red_cube"
SEEDED = ("touch_red_cube", "above_blue_ball", "left_of_green_cylinder")


@dataclass(frozen=True)
class Entry:
    """One row of a suite's table."""

    name: str
    config: TrainConfig
    kind: Literal["train", "untrained", "expert"] = "train"
    judged_as: str = ""  # key of the ground truth, where it is not the trained goal's


def demo_controls(base: TrainConfig) -> list[Entry]:
    """The demo's reward beside its ceiling and its controls, at equal steps."""
    base = replace(base, goal=DEMO_GOAL)
    return [
        Entry("frame reward (clip)", replace(base, reward="clip")),
        Entry("dense reward (ceiling)", replace(base, reward="task")),
        Entry("constant reward", replace(base, reward="constant")),
        Entry(
            "another goal's frame reward",
            replace(base, reward="clip", goal="touch_green_cylinder"),
            judged_as=DEMO_GOAL,
        ),
        Entry("untrained policy (floor)", replace(base, reward="constant"), "untrained"),
        Entry("scripted expert", replace(base, reward="constant"), "expert"),
    ]


def goals(base: TrainConfig) -> list[Entry]:
    """One policy per goal of reach from its sentence alone, and three seeds for three of them."""
    keys = list(sims.make_task("reach").goals())
    entries = [Entry(key, replace(base, goal=key)) for key in keys]
    for key in SEEDED:
        for seed in (1, 2):
            entries.append(Entry(f"{key}, seed {seed}", replace(base, goal=key, seed=seed)))
    return entries


def push(base: TrainConfig) -> list[Entry]:
    """Push from its sentence beside the dense reward at equal steps."""
    base = replace(preset("push", base=base), goal="red_cube_next_to_blue_ball")
    return [
        Entry("dense reward (ceiling)", replace(base, reward="task")),
        Entry("sentence alone (clip)", replace(base, reward="clip")),
        Entry("untrained policy (floor)", replace(base, reward="constant"), "untrained"),
        Entry("scripted expert", replace(base, reward="constant"), "expert"),
    ]


DENSE = (  # task, arm, goal
    ("reach", "so101", "touch_red_cube"),
    ("push", "so101", "red_cube_next_to_blue_ball"),
    ("lift", "ur5e", "lift_cube"),
    ("drawer", "so101", "open"),
    ("drawer", "so101", "close"),
    ("button", "so101", "press"),
)


def dense(base: TrainConfig) -> list[Entry]:
    """Arm tasks from their hand-written dense reward, and each task's floor."""
    entries = []
    for task, robot, goal in DENSE:
        one = replace(preset(task, base=base), robot=robot, goal=goal, reward="task")
        name = f"{task}: {goal}, {robot}"
        entries += [Entry(name, one), Entry(f"{name}, untrained", one, "untrained")]
    return entries


BODIES = (  # task, goal
    ("ant", "lie_down"),
    ("hopper", "forward"),
    ("hopper", "front_flip"),
    ("ant", "forward"),
)


def bodies(base: TrainConfig) -> list[Entry]:
    """What bodies do, from their hand-written dense reward."""
    return [
        Entry(f"{task}: {goal}", replace(preset(task, base=base, goal=goal), reward="task"))
        for task, goal in BODIES
    ]


def sentences(base: TrainConfig) -> list[Entry]:
    """Programs that templates write from the sentence beside the dense reward, at equal steps."""
    entries = []
    for seed in SEEDS:  # all goals once, before any has its second seed
        for written in WRITTEN:
            one = preset(written.task, base=base, goal=written.goal)
            one = replace(one, robot=written.robot, seed=seed)
            for reward in REWARDS:
                name = row_name(written, reward, seed)
                entries.append(Entry(name, replace(one, reward=reward)))
    return entries


SUITES: dict[str, tuple[Callable[[TrainConfig], list[Entry]], str]] = {
    "demo-controls": (demo_controls, "the demo's reward beside its ceiling and controls"),
    "goals": (goals, "one policy per reach goal, three seeds for three of them"),
    "push": (push, "push from its sentence beside the dense reward"),
    "dense": (dense, "arm tasks from their hand-written dense reward"),
    "bodies": (bodies, "what bodies do, from their hand-written dense reward"),
    "sentences": (sentences, "programs written from sentences beside the dense rewards, 3 seeds"),
}


# Further tables, made of all rows, that stand above a suite's rows.
TABLES: dict[str, Callable[[list[dict[str, Any]]], str]] = {"sentences": sentences_table}


def run_suite(
    name: str,
    base: TrainConfig,
    console: Console | None = None,
    journal: Path | None = None,
    jobs: int = 1,
) -> Path:
    """Runs what is missing of a suite and writes ``<runs>/<suite>.json`` and ``.md``.

    ``journal`` is a file of finished rows that outlives the runs' folder, so that a suite may be
    worked through in several sittings. A row is known by the hash of its whole configuration, its
    program included: one whose configuration has changed since is run again. ``jobs`` rows are
    worked at side by side, each in a process of its own with its share of the cores.
    """
    entries, title = SUITES[name][0](base), SUITES[name][1]
    folder = base.runs / name
    folder.mkdir(parents=True, exist_ok=True)
    kept = json.loads(journal.read_text())["rows"] if journal and journal.exists() else []
    keys = [config_hash(entry) for entry in entries]
    known = {row["config_hash"]: row for row in kept}
    for key in keys:
        path = folder / f"{key[:12]}.json"
        if key not in known and path.exists():
            known[key] = json.loads(path.read_text())

    def finished() -> list[dict[str, Any]]:
        return [known[key] for key in keys if key in known]

    missing = [(key, entry) for key, entry in zip(keys, entries, strict=True) if key not in known]
    names = {key: entry.name for key, entry in missing}
    for key, row in _worked(missing, folder, jobs, console):
        row = {"name": names[key], "config_hash": key, **row, "versions": versions()}
        write_json(folder / f"{key[:12]}.json", row)
        known[key] = row
        if journal is not None:
            write_json(journal, {"title": title, "rows": finished()})
        if console is not None:
            console.print(f"{name} {len(finished())}/{len(keys)} done: {row['name']}")
    rows = finished()
    write_json(base.runs / f"{name}.json", {"title": title, "rows": rows, "versions": versions()})
    table = base.runs / f"{name}.md"
    above = TABLES[name](rows) + "\n" if name in TABLES else ""
    table.write_text(above + markdown(rows))
    return table


def _worked(
    missing: list[tuple[str, Entry]], folder: Path, jobs: int, console: Console | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(hash, row) of every missing entry, as they are finished."""
    configs = {key: replace(e.config, runs=folder, name=key[:12]) for key, e in missing}
    if jobs == 1:
        for key, entry in missing:
            if console is not None:
                console.rule(entry.name)
            yield key, _row(entry, configs[key], console)
        return
    with ProcessPoolExecutor(
        jobs,
        get_context("spawn"),
        initializer=limit_cores,
        initargs=(max(1, cores() // jobs),),
        max_tasks_per_child=1,
    ) as pool:
        futures = {pool.submit(_row, entry, configs[key], None): key for key, entry in missing}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:  # what has not begun shall not begin after a failure
            pool.shutdown(wait=False, cancel_futures=True)


def config_hash(entry: Entry) -> str:
    """The name of everything that an entry's figures depend on: sha256 of its configuration."""
    config = jsonable(replace(entry.config, runs=Path(), name=""))
    facts = {"config": config, "kind": entry.kind, "judged_as": entry.judged_as}
    if entry.config.reward == "offline":
        goal = read_goal(sims.make_task(config["task"], robot=config["robot"] or None),
                         config["goal"])  # fmt: skip
        assert goal.formula is not None, goal.refusal
        facts["program"] = write(goal.formula, goal.card)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _row(entry: Entry, config: TrainConfig, console: Console | None) -> dict[str, Any]:
    from robo_rl.evaluate import evaluate, evaluate_expert
    from robo_rl.training import train

    key = entry.judged_as or config.goal
    task = sims.make_task(config.task, robot=config.robot or None, goal=key)
    if entry.kind == "expert":
        return {"evaluation": evaluate_expert(task, episodes=config.episodes).as_dict()}
    if entry.kind == "untrained":
        from robo_rl.learners.sb3 import make_learner

        env = sims.BatchEnv(task, config.tuning.num_envs)
        learner = make_learner(config.tuning, env, seed=config.seed)
        return {"evaluation": evaluate(task, learner.act, episodes=config.episodes).as_dict()}
    path = config.runs / config.name
    begun = (path / "config.json").exists()
    trained = train(config, resume=path if begun else None, console=console)
    result = trained.run.result
    if entry.judged_as:
        from real_robot.bundle import PolicyBundle

        bundle = PolicyBundle.load(trained.bundle)
        judged = evaluate(task, lambda obs: bundle.act(obs)[0], episodes=config.episodes)
        result["evaluation"] = judged.as_dict()
    metrics = RunDir.open(trained.run.path).metrics()
    # These clocks go on where an interrupted run goes on.
    learning = {"train": metrics["wall_s"][-1], "processor": metrics["processor_s"][-1]}
    return {
        "evaluation": result["evaluation"],
        "env_steps": result["env_steps"],
        "frames": result["frames"],
        "seconds": result["seconds"] | learning,
        "audit": result.get("audit"),
        "steps_per_s": float(metrics["steps_per_s"].mean()) if "steps_per_s" in metrics else None,
    }


def markdown(rows: list[dict[str, Any]]) -> str:
    """The suite's table; training counted in seconds by the clock and of the processor."""
    lines = [
        "| run | success (95 % interval, n) | steps | new frames | reward s | training s "
        "| processor s |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        e = row["evaluation"]
        success = (
            f"{100 * e['success']:.1f} % ({100 * e['low']:.1f}-{100 * e['high']:.1f}, "
            f"n={e['episodes']})"
        )
        if "env_steps" not in row:
            lines.append(f"| {row['name']} | {success} | | | | | |")
            continue
        frames, seconds = row["frames"], row["seconds"]
        new = frames["scene"] + frames["training"] + frames["labels"]
        # Rows of older journals were not timed by the processor's clock.
        processor = f"{seconds['processor']:.0f}" if "processor" in seconds else ""
        lines.append(
            f"| {row['name']} | {success} | {row['env_steps']:,} | {new:,} | "
            f"{seconds['reward']:.0f} | {seconds['train']:.0f} | {processor} |"
        )
    return "\n".join(lines) + "\n"
