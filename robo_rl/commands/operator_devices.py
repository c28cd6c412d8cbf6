"""The person who may take the arm in an arm session, by the device that ``--human`` names."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from real_robot.core.arm_layout import robot_of
from real_robot.core.driver import Description
from real_robot.core.pacing import RealClock
from real_robot.operator.devices import LIVE, DeviceContext, make, parse_device
from real_robot.operator.handover import Operator
from real_robot.operator.scripted import EXPERT, RememberingDriver, from_file
from real_robot.session.monitor import Monitor
from robo_rl.arm.stage import ArmStage, EpisodeSetup
from robo_rl.commands.arm_options import ArmSessionOptions
from sims.core.task import Task
from sims.robots.robot import TARGET_DT


def device_help(human: str, joints: int) -> str:
    """Returns the panel's line on the keys of an operator's device."""
    if not human:
        return ""
    name = parse_device(human)[0]
    if name == "keyboard":
        from real_robot.operator.keyboard import HELP

        return f"{name}: {HELP.format(n=joints)}"
    return f"{name} · t: take, give back · y success, n failure, x throw away: ends the episode"


def make_operator(
    command: ArmSessionOptions,
    task: Task[Any],
    stage: ArmStage,
    monitor: Monitor | None,
    alone: bool,
) -> (
    contextlib.AbstractContextManager[Callable[[EpisodeSetup, int], tuple[EpisodeSetup, Operator]]]
    | None
):
    """Returns the function that makes each episode's operator; None without ``--human``.

    Args:
        command: The options, with the operator's device in ``human``.
        task: The task, with its arm.
        stage: The arm.
        monitor: The live display, which reads the keys; None: there is none.
        alone: No policy runs: the operator moves the arm all the time.

    Returns:
        A context manager of ``(scene, seed) -> (scene, operator)``; leaving it closes the device.

    Raises:
        ValueError: a person's device is given with simulated time, or a leader arm without the
            monitor that switches to it.
    """
    if not command.human:
        return None
    name, where = parse_device(command.human)
    if name in LIVE and not stage.realtime:
        raise ValueError(
            f"--human {name} is operated by a person, in real time: add --realtime to "
            "--emulate, or start robo-rl emulate and give its --port or --host"
        )
    if name == "scripted" and where != EXPERT:  # what is wrong with a file is said before the arm
        from_file(Path(where), robot_of(task).joints)
    if name == "leader" and monitor is None and not alone:
        raise ValueError(
            "--human leader takes over by a key of the monitor: run it in a terminal, "
            "without --no-monitor"
        )
    return _operators(command.human, task, monitor, alone)


@contextlib.contextmanager
def _operators(
    human: str, task: Task[Any], monitor: Monitor | None, alone: bool
) -> Iterator[Callable[[EpisodeSetup, int], tuple[EpisodeSetup, Operator]]]:
    robot = Description.of(robot_of(task), TARGET_DT)
    keys: dict[str, Any] = {}
    if monitor is not None:
        keys = {"typed": monitor.typed, "alive": lambda: monitor.alive}
    live: Operator | None = None
    if parse_device(human)[0] in LIVE:  # opened before the arm is touched, and kept
        live = make(human, DeviceContext(robot=robot, clock=RealClock(), **keys), taken=alone)

    def person(scene: EpisodeSetup, seed: int) -> tuple[EpisodeSetup, Operator]:
        if live is not None:
            return scene, live
        driver = RememberingDriver(scene.driver)
        around = DeviceContext(
            robot=robot,
            clock=scene.clock,
            task=task,
            driver=driver,
            eyes=scene.sight or scene.eyes,
            seed=seed,
            **keys,
        )
        return dataclasses.replace(scene, driver=driver), make(human, around, taken=alone)

    try:
        yield person
    finally:
        if hasattr(live, "close"):
            live.close()
