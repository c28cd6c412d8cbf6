"""What an operator is asked before an arm moves: to clear its fault, to park it or relax it."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.prompt import Confirm, Prompt

from real_robot import Clearance, Phase, Rescue, RunConfig
from real_robot.core.driver import RobotFault
from real_robot.core.manifest import Manifest
from real_robot.safety.fault_latch import FaultLatch, LatchedError
from real_robot.session.rescue import rescue
from robo_rl.arm.connected import ConnectedStage
from robo_rl.commands.arm_options import ArmSessionOptions
from sims.core.task import Task


def claim_arm(
    command: ArmSessionOptions,
    stage: ConnectedStage,
    task: Task[Any],
    manifest: Manifest,
    config: RunConfig,
    console: Console,
) -> FaultLatch:
    """Opens the fault latch of an arm whose torque is off. A latched fault is cleared last, because
    clearing turns the torque of every joint off, and an arm that is to be parked would fall."""
    latch = arm_fault_latch(command)
    cleared = confirm_clear(command, latch, console)
    stage.rescue = _rescue(command, manifest, latch)
    settle_torque(command, stage, task, manifest, config, latch, console)
    if cleared:
        clear(latch, stage)
    return latch


def arm_fault_latch(command: ArmSessionOptions) -> FaultLatch:
    """Returns the fault latch of the arm at the port or the host."""
    return FaultLatch.of(str(command.robot), str(command.port or command.host))


def confirm_clear(command: ArmSessionOptions, latch: FaultLatch, console: Console) -> bool:
    """Returns whether the operator wants the fault cleared. Raises LatchedError for a
    fault that the operator does not confirm."""
    why = latch.reason()
    confirmed = command.clear_fault
    if why and not confirmed and sys.stdin.isatty():
        console.print(f"This arm has a latched fault: {why}", markup=False)
        confirmed = Confirm.ask(
            "Have you inspected the arm, and is its surrounding clear of people? Clear the fault",
            console=console,
        )
    if not confirmed:
        latch.check()
    return confirmed


def clear(latch: FaultLatch, stage: ConnectedStage) -> None:
    """An operator has looked at the arm; LatchedError where it still reports its fault."""
    try:
        latch.clear(stage.driver())
    except RobotFault as error:
        raise LatchedError(f"the fault was not cleared: {error}") from error


def settle_torque(
    command: ArmSessionOptions,
    stage: ConnectedStage,
    task: Task[Any],
    manifest: Manifest,
    config: RunConfig,
    latch: FaultLatch,
    console: Console,
) -> None:
    """Parks or relaxes, as the operator chooses, an arm whose torque is on without a controller.
    Raises ValueError without a choice, or where torque stays on, and KeyboardInterrupt where
    parking was stopped: torque is off then, and no episode starts."""
    driver = stage.driver()
    try:
        driver.connect()
        driver.identify()
        stiff = driver.joints_with_torque()
    except RobotFault:
        return  # the run says it, and logs it
    finally:
        driver.close()
    if not stiff:
        return
    state = (
        f"torque is still on ({', '.join(stiff)}) but no controller is connected; the "
        "arm holds its last target"
    )
    how: str = command.if_torque_on
    if not how and sys.stdin.isatty():
        console.print(f"{state}. Inspect it: parking moves it slowly, relaxing lets it fall.")
        how = Prompt.ask("Park or relax the arm?", choices=["park", "relax"], console=console)
    if not how:
        raise ValueError(
            f"{state}. Inspect it; then add --if-torque-on park, which moves it slowly, or "
            "--if-torque-on relax, which lets it fall"
        )
    driver = stage.driver()
    try:
        driver.connect()
    except RobotFault as error:
        raise ValueError(f"{state}, and the arm does not answer: {error}") from error
    around = Clearance.of(task, margin=config.clearance)
    park = manifest.park if how == "park" else ()
    result = rescue(driver, park, config, latch=latch, clearance=around, heeds=True)
    if left := [joint for joint, limp in result.acks.items() if not limp]:
        raise ValueError(f"torque is still on: {', '.join(left)}; {result.reason or result.notes}")
    parked = Phase.PARK in {t.after for t in result.history} and not result.notes
    console.print(f"the arm was {'parked and ' * parked}relaxed, joint by joint")
    if result.signal:
        raise KeyboardInterrupt


def _rescue(command: ArmSessionOptions, manifest: Manifest, latch: FaultLatch) -> Rescue:
    """Returns what the rescue process must know to bring the arm to rest."""
    if command.log is not None:
        command.log.mkdir(parents=True, exist_ok=True)
    return Rescue(
        park=manifest.park,
        scene={**manifest.task_config, "name": manifest.task, "robot": manifest.arm, "goal": None},
        report="" if command.log is None else str(command.log.absolute() / "rescue.json"),
        latch=str(latch.path.absolute()),
        stop_s=command.stop_within,
        tool_speed=command.tool_speed,
    )
