"""The control loop: read, perceive, observe, act, filter, send, record, at a fixed rate.

``run`` puts a policy, an arm, its limits, a log and people together; ``session.py`` takes the arm
through its states and back to rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from real_robot.core.arm_layout import robot_of
from real_robot.core.clearance import Clearance
from real_robot.core.config import RunConfig
from real_robot.core.driver import Description, Fault, RobotDriver
from real_robot.core.manifest import BundleError, Manifest
from real_robot.core.states import PhaseTransition
from real_robot.core.stop_signals import StopSignals
from real_robot.log.recorder import Recorder
from real_robot.log.result import RunResult
from real_robot.log.tape import CALLS, Tape, TapedObject, TapePlayer
from real_robot.operator.handover import ToolJog
from real_robot.policy.bundle import PolicyBundle
from real_robot.policy.runner import PolicyRunner
from real_robot.safety.filter import SafetyFilter, SafetyStop
from real_robot.safety.guarded_driver import GuardedDriver
from real_robot.session.options import RunOptions
from real_robot.session.session import Session, SessionCallbacks
from real_robot.session.stop_requests import StopRequests
from sims import make_task
from sims.core.task import Task


def run(
    driver: RobotDriver, bundle: PolicyBundle, options: RunOptions | None = None, **named: Any
) -> RunResult:
    """Runs ``bundle`` on an arm and brings the arm to rest, whatever happens on the way.

    The first Ctrl-C, SIGTERM or SIGHUP stops the run, a second one also stops parking.

    Args:
        driver: The arm's driver, not yet connected.
        bundle: The policy, its limits and its park pose.
        options: How the run goes.
        named: Fields of ``RunOptions``, in place of those of ``options``:
            ``run(driver, bundle, seconds=10)``.

    Returns:
        How the run ended, and what was measured on the way.

    Raises:
        BundleError: The bundle, the task and the arm do not fit; the arm was not touched.
        LatchedError: An operator must clear a fault first; the arm was not touched.
        ValueError: An option is out of its range.
        TypeError: ``named`` has a name that is no option.

    Any other exception is a bug in one of the pieces and comes out after the arm was stopped.
    """
    options = dataclasses.replace(options or RunOptions(), **_given(named))
    if options.latch is not None:
        options.latch.check()
    manifest, config = bundle.manifest, options.config
    if options.task is None and manifest.goal.startswith("["):
        raise BundleError(
            f"the bundle's goal is a formula, {manifest.goal}, which needs "
            "goal-progress observations: pass "
            "task=robo_rl.goals.bundle_task.task_of(bundle.manifest)"
        )
    robot, task = driver.describe(), options.task or task_of_manifest(manifest)
    signals, own_process = StopSignals(), options.policy is not None
    heard: Callable[[], tuple[int, str]] = lambda: (signals.count, signals.last)  # noqa: E731
    begun = options.clock.now_ns() * 1e-9
    if options.log is not None or options.tape is not None:
        driver, options = _taped(driver, bundle, options)
        heard = _taped_call(options.tape, "signals", heard)
    runner = PolicyRunner(
        bundle, task, robot, options.perception, options.clock, config, options.policy
    )

    def limits(identified: Description) -> SafetyFilter:
        try:
            bundle.check_robot(identified)
        except BundleError as error:  # what the device says of itself, once it is asked
            raise SafetyStop(Fault.CONFIG, str(error)) from error
        return policy_filter(identified, manifest, task, config)

    arm = GuardedDriver(driver, policy_filter(robot, manifest, task, config), options.clock, config)
    periods = math.inf if options.seconds is None else round(options.seconds / robot.period)
    if options.steps is not None:
        periods = options.steps * runner.per_action
    there = {
        "eyes": options.perception,
        "human": options.human,
        "stop": options.stop,
        "policy": own_process,
    }
    about = {
        "bundle": bundle.sha256,
        "manifest": manifest,
        "robot": robot,
        "config": config,
        "periods": periods,
        "wall_clock": datetime.now(UTC).isoformat(),  # when; nothing is timed by it
        "shadow": options.shadow,
        "present": [name for name, who in there.items() if who],
    }
    requests = StopRequests(signals, heard=heard, stop=options.stop)
    with _recording(options, about, begun) as recorder:

        def listen(transition: PhaseTransition) -> None:
            if recorder is not None:
                recorder.transition(transition)
            if options.on_transition is not None:
                options.on_transition(transition)

        callbacks = SessionCallbacks(
            requests=requests,
            limits=limits,
            latch=options.latch,
            human=options.human,
            tool=ToolJog(task) if options.human is not None else None,
            dial=options.dial,
            shadow=options.shadow,
            policy=getattr(options.policy, "pid", 0),
            listen=listen,
            recorder=recorder,
            watch=options.watch,
            tape=options.tape,
        )
        session = Session(arm, runner, manifest.park, config, options.clock, callbacks)
        with contextlib.ExitStack() as filming:
            for camera in options.film if recorder is not None else ():
                filming.enter_context(camera.to(recorder.frame))
            result = session.result(*session.run(periods))
        if options.judge is not None:
            verdict = options.judge(result)
            result = dataclasses.replace(result, verdict=verdict.what)
            if recorder is not None:
                recorder.verdict(verdict, session.woke)
    # Once the log is closed it is known whether it is whole.
    lost = "" if recorder is None else recorder.lost
    signal = signals.last or ("asked to stop" if requests.asked else "")
    return dataclasses.replace(result, signal=signal, unlogged=lost)


def _given(named: dict[str, Any]) -> dict[str, Any]:
    """Without a clock or a config of None, which stand for the usual ones."""
    usual = ("clock", "config")
    return {k: v for k, v in named.items() if v is not None or k not in usual}


def _recording(
    options: RunOptions, about: dict[str, Any], begun: float
) -> contextlib.AbstractContextManager[Recorder | None]:
    """What writes the log, if there is to be one."""
    if options.log is None:
        return contextlib.nullcontext()
    return Recorder(options.log, about, begun)


def _taped(
    driver: RobotDriver, bundle: PolicyBundle, options: RunOptions
) -> tuple[RobotDriver, RunOptions]:
    """Driver and options whose every answer goes to the tape, or comes from it."""
    tape, policy = options.tape or Tape(), options.policy
    policy_calls = CALLS["policy"][: 1 + bool(policy)]
    taped = dataclasses.replace(
        options,
        tape=tape,
        clock=TapedObject(tape, "clock", options.clock, CALLS["clock"]),
        perception=options.perception
        and TapedObject(tape, "eyes", options.perception, CALLS["eyes"]),
        policy=TapedObject(tape, "policy", policy or bundle, policy_calls),
        human=options.human and TapedObject(tape, "human", options.human, CALLS["human"]),
        stop=options.stop and _taped_call(tape, "stop", options.stop),
        dial=_taped_call(tape, "dial", options.dial),
    )
    taped_driver: Any = TapedObject(tape, "driver", driver, CALLS["driver"])
    return taped_driver, taped


def _taped_call(
    tape: Tape | TapePlayer, name: str, function: Callable[[], Any]
) -> Callable[[], Any]:
    """``function`` with its answers on the tape."""
    return lambda: tape.call(name, function)


def policy_filter(
    robot: Description, manifest: Manifest, task: Task[Any], config: RunConfig
) -> SafetyFilter:
    """The safety filter of a policy on an arm, within the limits of both."""
    return SafetyFilter.build(
        robot,
        manifest.limits,
        clearance=Clearance.of(task, margin=config.clearance, workspace=manifest.limits.box),
        margin=config.margin,
        lag=config.lag,
        max_age=config.max_age,
        max_wish_age=config.max_age + manifest.control_dt,
        patience=config.patience,
        handover=config.handover,
        smoothing=manifest.action.smoothing,
        stall=config.stall,
        leaning=config.leaning,
        tool_speed=config.tool_speed,
        stop_s=config.stop_s or math.inf,
        simulated=robot_of(task).joint_range,
    )


def task_of_manifest(manifest: Manifest) -> Task[Any]:
    """The task that a manifest names, with its parameters; obs and control know no goal."""
    params = {k: v for k, v in manifest.task_config.items() if k not in ("robot", "goal")}
    return make_task(manifest.task, robot=manifest.arm, **params)
