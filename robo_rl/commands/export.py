"""`robo-rl export`: the bundle of a run, for the robot."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from real_robot.policy.bundle import PolicyBundle
from robo_rl.runs.run_dir import RunDir


@dataclass(frozen=True, kw_only=True)
class ExportCommand:
    """Copies a run's policy bundle to a folder, verified."""

    run: tyro.conf.Positional[Path]  # the run's folder
    to: tyro.conf.Positional[Path]  # a folder that does not exist yet
    goal: str = ""  # for a run with --goal any: the goal to export (sentence or key)


def copy(folder: Path, to: Path) -> None:
    """Copies the files of ``folder`` to the new folder ``to``; OSError names the one that failed.

    ``shutil.copytree`` gathers errors into one text that neither names the cause nor fits a line.
    """
    to.mkdir()
    for path in sorted(folder.iterdir()):
        try:
            shutil.copyfile(path, to / path.name)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(to / path.name)) from error


def main(argv: Sequence[str]) -> int:
    """Verifies the bundle of a run, copies it, verifies the copy and returns the exit code 0.

    Args:
        argv: The words after ``robo-rl export``.

    Raises:
        ValueError: the run has no bundle, or the folder to write exists already.
    """
    command = tyro.cli(ExportCommand, args=list(argv), prog="robo-rl export")
    run = RunDir.open(command.run)
    run.check_finished()
    bundle = run.path / "bundle"
    if not bundle.exists():
        raise ValueError(f"{run.path} has no robot arm and so no bundle; its policy is policy.onnx")
    PolicyBundle.load(bundle)
    if command.to.exists():
        raise ValueError(f"{command.to} exists already; give a new folder")
    if command.goal:
        from robo_rl.bundles.retarget import set_bundle_goal

        set_bundle_goal(bundle, command.goal, command.to)
        print(command.to)
        return 0
    command.to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=command.to.parent, prefix=f".{command.to.name}."
    ) as temporary:
        partial = Path(temporary) / "bundle"
        copy(bundle, partial)
        PolicyBundle.load(partial)
        partial.rename(command.to)
    print(command.to)
    return 0
