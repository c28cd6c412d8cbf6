"""`robo-rl calibrate servo`: a step test of one servo of an arm, and what it means for training."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from real_robot import RobotFault, arms, drivers
from real_robot.core.pacing import Clock, RealClock
from real_robot.core.stop_signals import StopSignals
from real_robot.drivers.servo_identification import Estimate, identify_servo
from real_robot.drivers.servo_step_test import (
    ProbeableDriver,
    StepTest,
    StepTestStopped,
    swing_range,
)
from real_robot.safety.fault_latch import FaultLatch
from robo_rl.commands.options import Json
from robo_rl.runtime.progress_bars import stderr_console
from sims import make_task
from sims.randomization.domain_randomization import ArmServos

SHARED = tuple(name for name in arms.ARMS if arms.spec(name).calibrated)
if TYPE_CHECKING:
    SharedArm = str
else:  # made of a table, which a type checker cannot follow
    SharedArm = Literal[SHARED]
LOAD = 0.5  # N m, a 200 g weight at 25 cm


@dataclass(frozen=True, kw_only=True)
class CalibrateServoCommand:
    """One servo's stiffness, damping, dead band and delay, by small steps of the stiff arm."""

    port: str  # device path, or the USB adapter's serial number
    joint: str  # joint whose servo is tested
    robot: SharedArm = "so101"  # which arm
    out: Path = Path("servo.json")  # file to write
    swing: float = 0.0  # rad of one longer move at full speed, to measure the top speed; 0: none
    patience: float = 0.05  # s that a servo's reply may take beyond its time on the wire
    as_json: Json = False  # print JSON


def run(
    command: CalibrateServoCommand,
    confirm: Callable[[str], bool],
    console: Console,
    clock: Clock | None = None,
) -> dict[str, Any]:
    """Runs the step test of one servo once ``confirm`` returns True, and writes the result's file.

    Args:
        command: The options, with the arm, its port and the joint.
        confirm: Shows a text to the operator; True: the test may begin. It is asked again until
            then.
        console: Where progress is shown.
        clock: The clock of the test; None: real time.

    Returns:
        What the file holds: the settings, the estimated servo parameters and advice for training.

    Raises:
        ValueError: the arm cannot be tested, the joint is unknown, the swing is outside 0 to 1.57
            rad, the arm reported a fault, or a joint's torque is still enabled after the test.
        KeyboardInterrupt: the operator stopped the test.
    """
    clock = clock or RealClock()
    driver = drivers.make(command.robot, command.port, patience=command.patience, clock=clock)
    if not isinstance(driver, ProbeableDriver):
        raise ValueError(
            f"calibrate servo does not support {command.robot}: not all of its servos "
            "report the motor voltage"
        )
    if command.joint not in driver.joints:
        raise ValueError(f"unknown joint {command.joint!r}; available: {', '.join(driver.joints)}")
    if not 0.0 <= command.swing <= math.pi / 2:
        raise ValueError(f"--swing must be from 0 to 1.57 rad, got {command.swing:g}")
    FaultLatch.of(command.robot, command.port).check()
    joint = driver.joints.index(command.joint)
    try:
        driver.connect()
        driver.identify()
        while not confirm(
            f"{command.joint} will turn by up to {math.degrees(swing_range(command.swing)):.0f} "
            f"degrees "
            "to either side of where it is, for about half a minute; the other joints are held. "
            "Nothing near the arm, a hand on the plug; Ctrl-C lets go at once. At the end every "
            "joint lets go, and the arm falls: lay it down or hold it."
        ):
            pass
        with StopSignals() as signals:
            try:
                driver.enable()
                test = StepTest(driver, joint, clock, command.swing)
                with Progress(console=console, transient=True) as bar:
                    task = bar.add_task(command.joint, total=1.0)
                    steps = test.run(
                        lambda share: bar.update(task, completed=share), lambda: signals.count > 0
                    )
            finally:
                stiff = [name for name, limp in driver.relax().items() if not limp]
                if stiff:  # however the test went
                    raise ValueError(
                        f"torque is still on: {', '.join(stiff)}; cut the power of the arm"
                    )
    except StepTestStopped:
        raise KeyboardInterrupt from None
    except RobotFault as error:
        raise ValueError(f"{command.robot} at {command.port}: {error}") from error
    finally:
        driver.close()
    stall = float(driver.stall[joint])
    found = identify_servo(steps, test.settings, stall)
    probes = [probe for step in steps for probe in step.probes]
    span = probes[-1].t - probes[0].t
    result = {
        "robot": command.robot,
        "joint": command.joint,
        "settings": test.settings._asdict(),
        "volts": float(np.median([p.volts for p in probes])),
        "heat": max(p.heat for p in probes),
        "stall": stall,
        "steps": len(steps),
        "samples": len(probes),
        "samples_per_second": len(probes) / span,
        "found": {name: value._asdict() for name, value in found.items()},
        "means": training_advice(found["stiffness"], servos_of(command.robot), joint),
    }
    draft = command.out.with_name(command.out.name + ".new")
    draft.write_text(json.dumps(result, indent=1) + "\n")
    draft.replace(command.out)
    return result


def servos_of(robot: str) -> ArmServos:
    """The simulated arm's servos."""
    task = make_task("reach", robot=robot)
    return ArmServos.of(task, task.model())


def training_advice(stiffness: Estimate, servos: ArmServos, joint: int) -> str:
    """Returns what the stiffness of ``joint``'s servo means for training a policy for it."""
    own = float(servos.stiffness[joint])
    usual = f"the simulated servo has {own:.0f} N m/rad"
    if stiffness.value is None:
        return f"the test could not measure the servo's stiffness; {usual}"
    if stiffness.high is None or stiffness.low is None:
        return (
            f"the servo has at least {stiffness.value:.0f} N m/rad and saturates within a "
            f"few encoder steps; {usual}: this test cannot distinguish the two, and the "
            "difference does not matter to a policy"
        )
    if stiffness.low <= own <= stiffness.high:
        return f"the servo is as stiff as the simulated one: {usual}"
    droops = [math.degrees(LOAD / value) for value in (stiffness.value, own)]
    advice = (
        f"under {LOAD:g} N m the joint gives by {droops[0]:.2f} degrees, the simulated "
        f"one by {droops[1]:.2f}"
    )
    if stiffness.value > own:
        return f"the servo is stiffer than in training: {usual}; {advice}"
    width = math.ceil(20 * servos.softness_of(max(stiffness.low, servos.softest))) / 20
    others = (
        f"to cover it, train with --randomize {width:.2g}: its softest environments "
        f"have {servos.stiffness_at(width):.3g} N m/rad"
    )
    if stiffness.value < servos.softest:
        others = (
            "--randomize 1 does not cover it: its softest environments have "
            f"{servos.softest:g} N m/rad"
        )
    cover = f"train with --stiffness {stiffness.value:.3g} if all joints are this soft; "
    return f"the servo is softer than the simulated one: {usual}; {advice}; {cover}{others}"


def print_results(result: dict[str, Any], console: Console) -> None:
    """Prints the one table."""
    table = Table(title=f"{result['joint']} of {result['robot']}", title_justify="left")
    for column in ("", "value", "95 %", "n", "unit", ""):
        table.add_column(column)
    for name, found in result["found"].items():
        value, low, high = (_text(found[key]) for key in ("value", "low", "high"))
        between = f"{low} to {high}" if found["low"] is not None else f"below {high}"
        if found["high"] is None:
            between = f"above {low}"
        known = found["low"] is not None or found["high"] is not None
        table.add_row(
            name.replace("_", " "),
            value,
            between if known else "",
            str(found["n"]),
            found["unit"],
            found["note"],
        )
    console.print(table)
    console.print(
        f"{result['samples']} samples, {result['samples_per_second']:.0f} a second, at "
        f"{result['volts']:.1f} V; P, D, I are {result['settings']['p']}, "
        f"{result['settings']['d']}, {result['settings']['i']}.",
        highlight=False,
    )
    console.print(result["means"] + ".", highlight=False, soft_wrap=True)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def main(
    command: tyro.conf.OmitArgPrefixes[CalibrateServoCommand],
    enter: Callable[[Console], Callable[[str], bool]],
) -> int:
    """Tests a servo and says what was found."""
    console = stderr_console()
    result = run(command, enter(console), console)
    if command.as_json:
        print(json.dumps(result, indent=1))
    else:
        print_results(result, Console())
        print(f"wrote {command.out}")
    return 0
