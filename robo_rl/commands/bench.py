"""`robo-rl bench`: the documented figures, measured again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.commands.options import Json
from robo_rl.runs.run_dir import atomic_write
from robo_rl.runtime.checkout import benchmarks
from robo_rl.runtime.progress_bars import stderr_console
from robo_rl.runtime.threads import set_threads


@dataclass(frozen=True, kw_only=True)
class BenchCommand:
    """Runs the missing parts of an experiment; finished parts are not repeated."""

    what: tyro.conf.Positional[str] = ""  # an experiment from the list above; all: all rates
    list: bool = False  # print the experiments
    only: str = ""  # run only configurations whose names contain this
    seeds: Annotated[str, tyro.conf.arg(aliases=["--seed"])] = ""  # 0,1,2; empty: the defaults
    develop: bool = False  # use development seeds and validation episodes
    share: float = 1.0  # share of steps and episodes to run; below 1: a trial run
    jobs: int = 1  # parallel jobs
    journal: Path | None = None  # file of finished results; empty: RUNS/NAME.json
    again: bool = False  # repeat measurements that are already stored
    stored: bool = False  # only print stored results, grouped by version
    runs: Path = Path("runs/bench")  # where runs, journals and tables go
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Runs an experiment, prints its table and returns the exit code 0.

    Args:
        argv: The words after ``robo-rl bench``.

    Raises:
        ValueError: the experiment is unknown, a seed is not a whole number, share or jobs is out of
            its range, or ``--journal`` is given with all experiments.
    """
    bench = benchmarks()
    listed = "\n".join(f"{name}: {text}\n" for name, text in bench.EXPERIMENTS.items())
    about = f"Measures the documented figures again.\n\n{listed}"
    command = tyro.cli(BenchCommand, args=[*argv], prog="robo-rl bench", description=about)
    if command.list:
        print(json.dumps(bench.EXPERIMENTS, indent=2) if command.as_json else listed, end="")
        return 0
    names = bench.RATES if command.what == "all" else (command.what,)
    if len(names) > 1 and command.journal:
        raise ValueError("--journal needs one experiment, got all")
    seeds = [s for s in command.seeds.split(",") if s]
    if not all(s.isdecimal() for s in seeds):
        raise ValueError(f"seeds must be whole numbers, as in 0,1,2; got {command.seeds!r}")
    if not 0 < command.share <= 1 or command.jobs < 1:
        raise ValueError(
            f"share must be in (0, 1] and jobs at least 1, got {command.share} and {command.jobs}"
        )
    options = bench.Options(
        only=command.only,
        seeds=tuple(map(int, seeds)),
        develop=command.develop,
        share=command.share,
    )
    for name in names:
        bench.experiment(name)
    set_threads()  # before anything heavy is imported
    run = benchmarks("runner").run

    for name in names:
        results = run(
            name,
            options,
            runs=command.runs,
            journal=command.journal,
            jobs=command.jobs,
            again=command.again,
            stored=command.stored,
            console=stderr_console(),
        )
        table = results.markdown()
        if not command.stored:
            command.runs.mkdir(parents=True, exist_ok=True)
            atomic_write(command.runs / f"{name}.md", table.encode())
        print(json.dumps(results.as_dict(), indent=2) if command.as_json else table, end="")
    return 0
