"""`robo-rl learn-on-arm`: a policy goes on learning on an arm, from logs, verdicts and pictures."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from real_robot import PolicyBundle
from robo_rl.arm.episodes import next_number
from robo_rl.commands.arm_options import ArmSessionOptions
from robo_rl.commands.arm_session import run_arm_session
from robo_rl.commands.train import option_in
from robo_rl.config.train_config import from_json
from robo_rl.goals.bundle_task import task_of_bundle
from robo_rl.on_robot_learning.config import (
    BASE,
    EPISODES,
    VERDICT,
    LearnerStatus,
    OnRobotConfig,
    bundle_of,
)
from robo_rl.on_robot_learning.session import OnRobotSession
from robo_rl.runs.run_dir import RunDir, run_folder
from robo_rl.runtime.progress_bars import stderr_console

THINK = 0.01  # s that the policy may take in real time
# What is said anew for each start; of these the last two by somebody who looks at the arm then.
EACH_TIME = {"bundle", "resume", "clear_fault", "if_torque_on"}


@dataclass(frozen=True, kw_only=True)
class LearnOnArmCommand(OnRobotConfig, ArmSessionOptions):
    """Corrects a bundle on the arm it runs on: episodes, verdicts, updates, until time is up."""

    bundle: tyro.conf.Positional[Path | None] = None  # policy bundle folder; none with --resume
    name: str = ""  # name of the run; empty: made from the bundle's task, goal and arm
    runs: Path = Path("runs")  # parent folder of the runs
    resume: Path | None = None  # run to resume, with its own options
    episodes: tyro.conf.Suppress[int] = 0  # as many as there is time for
    log: tyro.conf.Suppress[Path | None] = None

    def check(self) -> None:
        """ValueError where an option is out of its range, or contradicts another."""
        super().check()
        if (self.bundle is None) == (self.resume is None):
            raise ValueError("no policy given: give the BUNDLE to fine-tune, or --resume RUN")
        if self.takeover and not self.human.startswith("scripted"):
            raise ValueError(
                "--takeover applies only to --human scripted:...; a person takes over at any time"
            )


def main(argv: Sequence[str]) -> int:
    """Drives the arm, trains the policy on its episodes and returns the exit code.

    Args:
        argv: The words after ``robo-rl learn-on-arm``.

    Returns:
        0, or 1 if a fault or the safety filter ended the episodes early.

    Raises:
        ValueError: the run to resume is not one of learn-on-arm, or the bundle's goal is a formula.
    """
    args = list(argv)
    default = LearnOnArmCommand()
    if resumed := option_in(args, "--resume"):
        run = RunDir.open(Path(resumed))
        if "base_sha256" not in run.config:
            raise ValueError(
                f"{resumed} is not a learn-on-arm run; resume it with robo-rl train --resume"
            )
        names = {f.name for f in dataclasses.fields(LearnOnArmCommand)} - EACH_TIME
        stored = {k: v for k, v in run.config.items() if k in names}
        default = from_json(LearnOnArmCommand, stored)
    command = tyro.cli(LearnOnArmCommand, args=args, default=default, prog="robo-rl learn-on-arm")
    command.check()
    source = command.resume / BASE if command.resume else command.bundle
    assert source is not None
    bundle = PolicyBundle.load(source)
    manifest = bundle.manifest
    if manifest.goal.startswith("["):
        raise ValueError(
            f"{source}: its goal is a formula, which learn-on-arm does not support; use a "
            "bundle trained for a goal that robo-rl list tasks shows"
        )
    task = task_of_bundle(manifest)
    made = f"{task.name}-{task.goal}-{manifest.arm}-on-arm-{command.seed}".replace("_", "-")
    path = command.resume or run_folder(command.runs, command.name or made)
    about = {
        **{k: v for k, v in dataclasses.asdict(command).items() if k not in EACH_TIME},
        "task": task.name,
        "goal": manifest.metrics.get("sentence", task.goal),
        "base_sha256": bundle.sha256,
        "where": arm_text(command, manifest.arm),
        "learner": "on-arm",
    }
    filmed = command.emulate and command.reward not in (VERDICT, "task")
    with RunDir.under_way(path, about, resume=command.resume is not None):
        (path / EPISODES).mkdir(exist_ok=True)
        if not (path / BASE).exists():
            shutil.copytree(source, path / BASE)
        first, waits = next_number(path / EPISODES), command.emulate and not command.realtime
        driven = dataclasses.replace(command, log=path / EPISODES)
        session = OnRobotSession(path, command, first, waits=waits, think=0.0 if waits else THINK)
        try:
            status = run_arm_session(
                driven, bundle, task, first=first, learning=session, filmed=filmed
            )
        finally:
            session.close()
    finish(RunDir.open(path), command)
    return status


def arm_text(command: ArmSessionOptions, arm: str) -> str:
    """Returns which arm is used, in words."""
    if command.emulate:
        return f"the emulated {arm}" if command.robot else f"the simulated {arm}"
    return f"the {arm} at {command.port or command.host}"


def finish(run: RunDir, command: LearnOnArmCommand) -> None:
    """Copies the last bundle to its place in the run and prints the result; of a stopped run,
    prints the command that resumes it."""
    status = LearnerStatus.read(run.path)
    console = stderr_console()
    if status.arm_s < 60 * command.minutes:
        console.print(f"stopped; to resume: robo-rl learn-on-arm --resume {run.path}")
        return
    final = run.path / "bundle"
    if final.exists():
        shutil.rmtree(final)
    shutil.copytree(bundle_of(run.path, status.published), final)
    run.finish(dataclasses.asdict(status))
    console.print(f"{run.path / 'report.html'}; bundle: {final}")
    print(
        json.dumps(dataclasses.asdict(status)) if command.as_json else status.line(command.reward)
    )
