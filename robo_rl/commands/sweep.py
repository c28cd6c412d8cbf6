"""`robo-rl sweep`: the same training with several settings and seeds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.commands.options import Json
from robo_rl.commands.train import parse_train
from robo_rl.config.train_config import TrainConfig
from robo_rl.runs.markdown import table
from robo_rl.runs.run_dir import run_folder
from robo_rl.runtime.argv import pop_option
from robo_rl.runtime.progress_bars import stderr_console
from robo_rl.runtime.renamed_options import current_options
from robo_rl.runtime.threads import set_threads


@dataclass(frozen=True, kw_only=True)
class SweepCommand:
    """Trains every combination of --over with every seed: TASK [options of train] --over ...

    All other options are those of `robo-rl train`. Finished runs are skipped and started ones are
    resumed: repeat the command, or repeat it with more of --over or --seeds.
    """

    # An option of train and its values: learner=ppo,sac; between | where values have commas.
    over: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    seeds: Annotated[str, tyro.conf.arg(aliases=["--seed"])] = "0,1,2"  # training seeds
    jobs: int = 1  # parallel runs, which share the cores
    name: str = "sweep"  # name of the sweep folder in RUNS
    runs: Path = Path("runs")  # folder in which run folders are created
    as_json: Json = False  # print JSON


OWN = ("--over", "--seeds", "--seed", "--jobs", "--name", "--runs")
FLAGS = ("--json", "--no-json", "--help", "-h")


def main(argv: Sequence[str]) -> int:
    """Trains the missing runs, writes the page, prints the table and returns the exit code 0.

    Args:
        argv: The words after ``robo-rl sweep``.

    Raises:
        ValueError: the seeds are no whole numbers, or ``--jobs`` is below 1.
    """
    own, rest = _split(argv)
    command = tyro.cli(SweepCommand, args=own, prog="robo-rl sweep")
    seeds = [seed for seed in command.seeds.split(",") if seed]
    if not seeds or not all(seed.isdecimal() for seed in seeds):
        raise ValueError(f"seeds must be whole numbers, as in 0,1,2; got {command.seeds!r}")
    if command.jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {command.jobs}")
    settings = settings_of(rest, command.over)
    set_threads()  # before anything heavy is imported
    from robo_rl.training.sweep import PAGE, sweep, table_of

    folder = run_folder(command.runs, command.name)
    console = stderr_console()
    found = sweep(settings, folder, [*map(int, seeds)], jobs=command.jobs, console=console)
    console.print(f"{folder / PAGE}")
    if command.as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        print(table(*table_of(found)), end="")
    return 0


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of a sweep, and those of train."""
    rest, own = list(argv), []
    for option in OWN:
        rest, values = pop_option(rest, option)
        own += [word for value in values for word in (option, value)]
    return [*own, *(f for f in FLAGS if f in rest)], [word for word in rest if word not in FLAGS]


def settings_of(args: Sequence[str], over: Sequence[str]) -> dict[str, TrainConfig]:
    """{name: what is trained} of every combination; ValueError, or train's own words, for what
    train does not take."""
    if any(word.partition("=")[0] == "--resume" for word in args):
        raise ValueError("a sweep does not take --resume: run the same command again to resume it")
    axes = dict(map(_axis, over))
    if len(axes) < len(over):
        raise ValueError(
            "--over is given twice for one option: give all of its values in one --over"
        )
    found = {}
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        name = ", ".join(f"{option}={value}" for option, value in chosen.items())
        words = current_options([*_typed(args, chosen)])
        found[name] = TrainConfig(**parse_train(words).config_values)
    return found


def _axis(text: str) -> tuple[str, list[str]]:
    option, given, values = text.partition("=")
    option = option.strip().removeprefix("--").replace("_", "-")
    parts = [part.strip() for part in values.split("|" if "|" in values else ",")]
    if not given or not option or not all(parts) or len(set(parts)) < len(parts):
        raise ValueError(f"--over: expected OPTION=VALUE,VALUE, as learner=ppo,sac; got {text!r}")
    if f"--{option}" in OWN:
        raise ValueError(f"--over {option}: this is an option of sweep itself; give --{option}")
    return option, parts


def _typed(args: Sequence[str], chosen: Mapping[str, str]) -> Iterator[str]:
    """The words that a person would type for one combination."""
    if "task" in chosen:
        yield chosen["task"]
    yield from args
    for option, value in chosen.items():
        if value in ("true", "false"):
            yield f"--{option}" if value == "true" else f"--no-{option}"
        elif option != "task":
            yield from (f"--{option}", value)
