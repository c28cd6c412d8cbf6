"""`robo-rl search`: reward programs for a sentence, tried, chosen and judged."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from robo_rl.commands.options import Json
from robo_rl.commands.train import option_in
from robo_rl.config.presets import preset
from robo_rl.runs.run_dir import read_json
from robo_rl.runtime.progress_bars import stderr_console
from robo_rl.search.config import SearchConfig
from robo_rl.search.report import headline
from robo_rl.search.run import search


@dataclass(frozen=True, kw_only=True)
class SearchCommand(SearchConfig):
    """Searches for a reward program: TASK --goal "a sentence" --writer offline.

    Programs are proposed in rounds, trained in subprocesses and selected by ground-truth success on
    validation episodes; the winner is trained again and evaluated on test episodes.
    """

    task: tyro.conf.Positional[str] = "reach"  # as `robo-rl list tasks` shows
    resume: Path | None = None  # search folder to resume, with the settings stored in it
    as_json: Json = False  # print search.json


def main(argv: Sequence[str]) -> int:
    """Starts or resumes a search, and prints its result."""
    args = list(argv)
    learner = option_in(args, "--learner") or SearchCommand.learner
    tuning = preset(SearchCommand.task, learner).tuning
    command = _parse(args, SearchCommand(learner=learner, tuning=tuning))
    # The goal may need more steps or larger first ones.
    trained = preset(command.task, learner, goal=command.goal)
    command = _parse(
        args,
        SearchCommand(
            learner=learner,
            env_steps=_candidates_steps(command, trained.env_steps),
            episode_s=trained.episode_s,
            tuning=trained.tuning,
        ),
    )
    own = {f.name: getattr(command, f.name) for f in dataclasses.fields(SearchConfig)}
    console = stderr_console()
    path = search(SearchConfig(**own), resume=command.resume, console=console)
    summary = read_json(path / "search.json")
    console.print(f"report: {path / 'report.md'}; program: {path / 'winner.py'}")
    print(json.dumps(summary, indent=1) if command.as_json else headline(summary))
    return 0


def _candidates_steps(asked: SearchConfig, total: int) -> int:
    """Env steps of a candidate's whole training with which all together take ``total``."""
    unit = dataclasses.replace(asked, env_steps=1 << asked.rungs) if asked.rungs > 0 else asked
    return max(1, round(total * unit.env_steps / max(1, unit.search_steps)))


def _parse(args: list[str], default: SearchCommand) -> SearchCommand:
    return tyro.cli(SearchCommand, args=args, prog="robo-rl search", default=default)
