"""What ``deploy`` and ``teleop`` share: which arm, who may take it, and the episodes on it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from real_robot import Ended, PolicyBundle, PolicyProcess, RunConfig
from real_robot.core.manifest import Manifest
from real_robot.safety.fault_latch import FaultLatch, LatchedError
from real_robot.session.monitor import Monitor
from robo_rl.arm.connected import ConnectedStage
from robo_rl.arm.episodes import run_episodes
from robo_rl.arm.stage import ArmStage, closing
from robo_rl.commands.arm_options import ArmSessionOptions
from robo_rl.commands.arm_stages import make_stage
from robo_rl.commands.operator_devices import device_help, make_operator
from robo_rl.commands.operator_prompts import claim_arm, clear, confirm_clear
from robo_rl.evaluation.arm_conditions import ArmConditions
from robo_rl.runtime.progress_bars import stderr_console
from sims.core.task import Task

if TYPE_CHECKING:
    from robo_rl.on_robot_learning.session import OnRobotSession


def run_arm_session(
    command: ArmSessionOptions,
    bundle: PolicyBundle,
    task: Task[Any],
    *,
    policy: Callable[[], PolicyProcess] | None = None,
    shadow: bool = False,
    first: int = 0,
    learning: OnRobotSession | None = None,
    filmed: bool = False,
) -> int:
    """Runs the episodes on an arm, prints what came of them and returns the exit code.

    Args:
        command: The options of the command.
        bundle: The policy. Where its action is none, only the operator moves the arm.
        task: The bundle's task.
        policy: Starts the process in which the bundle runs in real time; None: it runs in this one.
        shadow: The policy runs, but the arm does not move.
        first: The number of the first episode.
        learning: Chooses the policy of each episode while it is trained on the arm.
        filmed: The emulated arm has a camera.

    Returns:
        0 if all episodes ended by themselves, else 1: after a fault, a stop by the safety filter or
        a signal, or when the policy's process ended.

    Raises:
        OSError: a log could not be written to its end.
    """
    console, manifest = stderr_console(), bundle.manifest
    command = command.on_the_arm_of(manifest, task)
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(
            closing(make_stage(command, task, manifest.needs_perception, console, filmed))
        )
        config = RunConfig(
            realtime=stage.realtime, tool_speed=command.tool_speed, stop_s=command.stop_within
        )
        latch = None
        if isinstance(stage, ConnectedStage):
            latch = claim_arm(command, stage, task, manifest, config, console)
        monitor = None
        terminal = stage.realtime and sys.stdin.isatty() and console.is_terminal
        if command.monitor and terminal:
            key_help = device_help(command.human, len(manifest.joints))
            monitor = stack.enter_context(Monitor(manifest.arm, command.dial, key_help))
        human = make_operator(command, task, stage, monitor, manifest.action.kind == "none")
        if human is not None:
            human = stack.enter_context(human)
            human = human if learning is None else learning.operators(human)
        answering = None
        if stage.realtime and policy is not None:  # compressed time stands still while one thinks
            answering = stack.enter_context(policy())
        console.print(f"goal: {_goal_of(manifest, task)}", markup=False, highlight=False)
        _warn(command, manifest, task, console)
        result = run_episodes(
            bundle,
            task,
            stage,
            episodes=None if learning else command.episodes,  # its time ends it
            first=first,
            seed=command.seed,
            log=command.log,
            console=console,
            policy=answering,
            monitor=monitor,
            latch=latch,
            config=config,
            human=human,
            dial=(lambda: command.dial) if monitor is None else monitor.dial,
            shadow=shadow,
            **(_learning_options(learning, command, stage, latch, console) if learning else {}),
        )
    print(json.dumps(dataclasses.asdict(result), indent=1) if command.as_json else result.line())
    for remark in result.remarks:
        console.print(remark, markup=False)
    if result.unlogged:
        raise OSError(
            f"the log is incomplete: {result.unlogged}; free disk space there, or give "
            "another --log"
        )
    return 0 if set(result.ended) == {Ended.DONE.value} and not result.cut else 1


def _goal_of(manifest: Manifest, task: Task[Any]) -> str:
    """Returns the goal's sentence from the bundle, or the task's own words for it."""
    own = task.goals().get(task.goal)
    return manifest.metrics.get("sentence") or (own.sentence if own else str(task.goal))


def _warn(
    command: ArmSessionOptions, manifest: Manifest, task: Task[Any], console: Console
) -> None:
    """Prints what the policy was trained for, and which conditions of this run exceed training."""
    if manifest.action.kind == "none":
        return
    met = ArmConditions.worst_trained(manifest.training, task)
    trained = (
        met.known_text(only=True) or "no noise, no latency and the model's own servo stiffness"
    )
    console.print(f"trained for {trained}", markup=False, highlight=False)
    if not command.emulate:
        return
    if beyond := command.conditions.beyond(met, tags=command.rendered):
        console.print(f"beyond that: {beyond}", markup=False, highlight=False)


def _learning_options(
    learning: OnRobotSession,
    command: ArmSessionOptions,
    stage: ArmStage,
    latch: FaultLatch | None,
    console: Console,
) -> dict[str, Callable[..., Any]]:
    """Returns the arguments of ``run_episodes`` for learning between episodes. An operator clears
    faults at the terminal; on an emulated arm they are cleared without one."""

    def cleared() -> bool:
        if latch is None or not isinstance(stage, ConnectedStage):
            return True
        try:
            if confirm_clear(dataclasses.replace(command, clear_fault=False), latch, console):
                clear(latch, stage)
        except LatchedError as error:
            console.print(str(error), markup=False)
            return False
        return True

    return {"before": learning.before, "after": learning.after, "cleared": cleared}
