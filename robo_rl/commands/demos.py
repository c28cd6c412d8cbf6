"""`robo-rl demos`: demonstrations, of a task's expert or of an arm's logs, for any learner."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.progress import Progress

from robo_rl.commands.options import Json, SceneOptions
from robo_rl.runtime.progress_bars import stderr_console
from sims.envs.demonstrations import DemoConfig


@dataclass(frozen=True, kw_only=True)
class DemosCommand(DemoConfig, SceneOptions):
    """Writes episodes of a task's expert as a Minari data set.

    Of logs that deploy and teleop wrote instead: robo-rl demos DIR --from LOG... (--from --help).
    """

    task: tyro.conf.Positional[str]  # as `robo-rl list tasks` shows
    to: tyro.conf.Positional[Path]  # a folder that does not exist yet
    goal: str = ""  # a goal of the task: sentence, key, or any; empty: the first
    as_json: Json = False  # print JSON


@dataclass(frozen=True, kw_only=True)
class LogsCommand:
    """Writes episodes of robot logs as a dataset: executed actions, by a policy or an operator,
    with verdicts."""

    to: tyro.conf.Positional[Path]  # a folder that does not exist yet
    logs: Annotated[tuple[Path, ...], tyro.conf.arg(name="from")]  # robot logs, or folders of them
    format: Literal["minari", "lerobot"] = "minari"  # lerobot: LeRobotDataset v3
    failures: bool = False  # lerobot: include failed episodes (Minari marks them)
    progress: Path | None = None  # lerobot: JSON of scores per frame (reward score --json)
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Writes the data set and says how many of its episodes succeed."""
    if any(word == "--from" or word.startswith("--from=") for word in argv):
        return _of_logs(argv)
    command = tyro.cli(DemosCommand, args=list(argv), prog="robo-rl demos")
    from robo_rl.goals.reading import demonstrated_task
    from sims.envs.demonstrations import write_demos

    task = demonstrated_task(vars(command), command.goal)
    config = DemoConfig(
        **{f.name: getattr(command, f.name) for f in dataclasses.fields(DemoConfig)}
    )
    with Progress(console=stderr_console()) as bar:
        line = bar.add_task("episodes", total=1.0)
        made = write_demos(
            task, command.to, config, lambda share: bar.update(line, completed=share)
        )
    if command.as_json:
        print(json.dumps(dataclasses.asdict(made) | {"path": str(made.path)}))
    else:
        print(
            f"{made.path}: {made.episodes:,} episodes, {made.steps:,} steps, "
            f"{made.successes:,} successful, {made.lost:,} made to fail"
        )
    return 0


def _of_logs(argv: Sequence[str]) -> int:
    args = [*argv]
    if "--help" in args or "-h" in args:
        args = ["--help"]
    command = tyro.cli(LogsCommand, args=args, prog="robo-rl demos")
    from robo_rl.datasets.robot_logs import log_files, select_logs, write_minari

    logs = log_files(command.logs)
    logs_read, console = select_logs(logs), stderr_console()
    if command.format == "lerobot":
        from robo_rl.datasets.lerobot import write_lerobot

        scores = [] if command.progress is None else _scores(command.progress)
        made = write_lerobot(
            command.to, logs, logs_read, failures=command.failures, progress=scores
        )
    elif command.progress is not None or command.failures:
        raise ValueError("--progress and --failures need --format lerobot")
    else:
        made = write_minari(command.to, logs, logs_read)
    episodes, steps, successes, unsaid = made
    figures: dict[str, Any] = {
        "path": str(command.to),
        "episodes": episodes,
        "steps": steps,
        "successes": successes,
        "unsaid_rad": {"median": float(np.median(unsaid)), "max": float(np.max(unsaid))},
        "left_out": dict(logs_read.left_out),
    }
    if command.as_json:
        print(json.dumps(figures))
        return 0
    print(
        f"{command.to}: {episodes:,} episodes, {steps:,} steps, {successes:,} successful; "
        f"the actions reproduce the executed steps to within {np.median(unsaid):.3f} rad a step "
        f"(median; at most {np.max(unsaid):.3f})"
    )
    if left_out := logs_read.summary():
        console.print(left_out, markup=False, soft_wrap=True)
    return 0


def _scores(path: Path) -> list[float]:
    """The scores in a JSON file: a list, or the ``score`` of what `reward score --json` prints."""
    try:
        stored = json.loads(path.read_text())
        return [float(x) for x in (stored["score"] if isinstance(stored, dict) else stored)]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected a JSON list of numbers, or an object with such a list as `score`"
        ) from error
