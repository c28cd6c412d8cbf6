"""The control loop: read, perceive, observe, act, filter, send, record, at a fixed rate.

``run`` takes an arm through the states of ``core/states.py`` and back. Whatever happens on the way
(the time is up, Ctrl-C, a target that is not safe, a fault, an exception in a policy) it ends with
the arm stopped, parked where the bundle says how and the arm is well, and limp, joint by joint.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from real_robot.core.arm_layout import robot_of
from real_robot.core.clearance import Clearance
from real_robot.core.config import RunConfig
from real_robot.core.driver import (
    Description,
    Fault,
    FaultResponse,
    RobotDriver,
    RobotFault,
    RobotState,
    Target,
)
from real_robot.core.manifest import BundleError, Manifest
from real_robot.core.pacing import Clock, Pacer, RealClock, low_latency_interpreter
from real_robot.core.realtime import AVAILABLE, realtime
from real_robot.core.states import DRIVEN, LATCHED, Phase, PhaseTransition, StateMachine
from real_robot.core.stop_signals import StopSignals
from real_robot.log.recorder import Recorder, Tick
from real_robot.log.result import Ended, RunMeter, RunResult
from real_robot.log.tape import CALLS, Tape, TapedObject, TapePlayer
from real_robot.operator.handover import (
    Operator,
    OperatorHandover,
    OperatorInput,
    RunVerdict,
    ToolJog,
)
from real_robot.perception.base import Perception
from real_robot.perception.camera import RecordedCamera
from real_robot.policy.bundle import PolicyBundle
from real_robot.policy.process import PolicyProcess
from real_robot.policy.runner import PolicyOutput, PolicyRunner
from real_robot.safety.fault_latch import FaultLatch
from real_robot.safety.filter import SafetyFilter, SafetyStop, TargetRequest
from real_robot.safety.guarded_driver import Exchange, FailureRate, GuardedDriver, Ramp
from sims import make_task
from sims.core.task import Task

Array = np.ndarray

STILL, STILL_S = 0.05, 0.3  # rad/s, and s of less than that, of an arm that has come to rest


def run(
    driver: RobotDriver,
    bundle: PolicyBundle,
    *,
    task: Task[Any] | None = None,
    perception: Perception | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    config: RunConfig | None = None,
    clock: Clock | None = None,
    log: str | Path | None = None,
    stop: Callable[[], bool | Fault] | None = None,
    on_transition: Callable[[PhaseTransition], None] | None = None,
    watch: Callable[[Tick, Mapping[str, float]], None] | None = None,
    policy: PolicyProcess | None = None,
    human: Operator | None = None,
    dial: Callable[[], float] = lambda: 1.0,
    shadow: bool = False,
    tape: Tape | TapePlayer | None = None,
    latch: FaultLatch | None = None,
    film: Sequence[RecordedCamera] = (),
    judge: Callable[[RunResult], RunVerdict] | None = None,
) -> RunResult:
    """Runs ``bundle`` on an arm for ``steps`` actions or ``seconds``, else until asked to stop.

    ``task`` is made from the manifest where it is not given. ``stop`` is asked every period, on the
    way to the park pose too, where only ``Fault.ESTOP`` counts: it latches, and the arm is relaxed
    where it stands. The first Ctrl-C, SIGTERM or SIGHUP stops too, a second one also stops parking.
    ``log`` names an MCAP file to write. ``on_transition`` hears of every change of state, ``watch``
    of every tick and of the ages (s) of the poses acted on, both within the loop.
    ``policy`` answers in place of the bundle, from its own process; ``human`` may take the arm,
    give it back, and end the run with a verdict; meanwhile the policy is asked all the same, for
    the log. ``dial`` is asked every period for the share of full speed. In ``shadow`` the policy is
    asked and its targets are filtered and logged, but the arm holds still. ``tape`` is
    ``replay``'s. A fault that latches is kept in ``latch``, and one that is kept there refuses the
    run. The log also gets the pictures of the cameras ``film``, and what ``judge`` says of the run
    once the arm is limp.

    Raises BundleError where the pieces do not fit, and LatchedError where an operator must clear a
    fault first, both before the arm is touched; any other exception
    is a bug in one of the pieces and comes out after the arm was stopped.
    """
    _check_length(steps, seconds)
    if latch is not None:
        latch.check()
    clock, config = clock or RealClock(), config or RunConfig()
    if task is None and bundle.manifest.goal.startswith("["):
        raise BundleError(
            f"the bundle's goal is a formula, {bundle.manifest.goal}, which needs "
            "goal-progress observations: pass "
            "task=robo_rl.goals.bundle_task.task_of(bundle.manifest)"
        )
    robot, task = driver.describe(), task or task_of_manifest(bundle.manifest)
    asked, own_process = StopSignals(), policy is not None
    heard: Callable[[], tuple[int, str]] = lambda: (asked.count, asked.last)  # noqa: E731
    begun = clock.now_ns() * 1e-9
    if log is not None or tape is not None:
        tape = tape or Tape()
        clock = TapedObject(tape, "clock", clock, CALLS["clock"])
        driver = TapedObject(tape, "driver", driver, CALLS["driver"])
        perception = perception and TapedObject(tape, "eyes", perception, CALLS["eyes"])
        policy = TapedObject(tape, "policy", policy or bundle, CALLS["policy"][: 1 + bool(policy)])
        human = human and TapedObject(tape, "human", human, CALLS["human"])
        stop = stop and _taped(tape, "stop", stop)
        dial, heard = _taped(tape, "dial", dial), _taped(tape, "signals", heard)
    follower = PolicyRunner(bundle, task, robot, perception, clock, config, policy)

    def limits(identified: Description) -> SafetyFilter:
        try:
            bundle.check_robot(identified)
        except BundleError as error:  # what the device says of itself, once it is asked
            raise SafetyStop(Fault.CONFIG, str(error)) from error
        return _filter(identified, bundle.manifest, task, config)

    arm = GuardedDriver(driver, _filter(robot, bundle.manifest, task, config), clock, config)
    total = math.inf if seconds is None else round(seconds / robot.period)
    if steps is not None:
        total = steps * follower.per_action
    there = {"eyes": perception, "human": human, "stop": stop, "policy": own_process}
    about = {
        "bundle": bundle.sha256,
        "manifest": bundle.manifest,
        "robot": robot,
        "config": config,
        "periods": total,
        "wall_clock": datetime.now(UTC).isoformat(),  # when; nothing is timed by it
        "shadow": shadow,
        "present": [name for name, who in there.items() if who],
    }
    recording = contextlib.nullcontext() if log is None else Recorder(log, about, begun)
    with recording as recorder:

        def listen(transition: PhaseTransition) -> None:
            if recorder is not None:
                recorder.transition(transition)
            if on_transition is not None:
                on_transition(transition)

        around = _SessionCallbacks(
            listen=listen,
            recorder=recorder,
            watch=watch,
            stop=stop,
            human=human,
            tool=ToolJog(task) if human is not None else None,
            dial=dial,
            shadow=shadow,
            signals=asked,
            heard=heard,
            tape=tape,
            limits=limits,
            latch=latch,
            policy=getattr(policy, "pid", 0),
        )
        session = _Session(arm, follower, bundle.manifest.park, config, clock, around)
        with contextlib.ExitStack() as filming:
            for camera in film if recorder is not None else ():
                filming.enter_context(camera.to(recorder.frame))
            result = session.result(*session.run(total))
        if judge is not None:
            verdict = judge(result)
            result = dataclasses.replace(result, verdict=verdict.what)
            if recorder is not None:
                recorder.verdict(verdict, session.woke)
    # Once the log is closed it is known whether it is whole.
    lost = "" if recorder is None else recorder.lost
    signal = asked.last or ("asked to stop" if session.asked else "")
    return dataclasses.replace(result, signal=signal, unlogged=lost)


def rescue(
    driver: RobotDriver,
    park: Sequence[float] = (),
    config: RunConfig | None = None,
    latch: FaultLatch | None = None,
    clock: Clock | None = None,
    clearance: Clearance | None = None,
    heeds: bool = False,
) -> RunResult:
    """Holds, parks and relaxes a stiff arm whose bridge is gone; ``driver`` is connected.

    With ``clearance`` it keeps clear of the table and itself on the way; where that is not possible
    it is relaxed where it stands, and so it is where it ``heeds`` Ctrl-C, SIGTERM and SIGHUP and
    one comes. Else they do nothing: nobody would bring the arm to rest after it.
    """
    clock, config = clock or RealClock(), config or RunConfig()

    def limits(robot: Description) -> SafetyFilter:
        return SafetyFilter.build(
            robot,
            clearance=clearance,
            margin=config.margin,
            lag=config.lag,
            tool_speed=config.tool_speed,
            stop_s=config.stop_s or math.inf,
        )

    arm = GuardedDriver(driver, limits(driver.describe()), clock, config)
    asked = StopSignals()
    around = _SessionCallbacks(limits=limits, latch=latch, signals=asked)
    if heeds:
        around = dataclasses.replace(around, heard=lambda: (asked.count, asked.last), bears=0)
    session = _Session(arm, None, park, config, clock, around)
    return dataclasses.replace(session.result(*session.rescue()), signal=asked.last)


def _check_length(steps: int | None, seconds: float | None) -> None:
    if steps is not None and seconds is not None:
        raise ValueError(f"give steps or seconds, not both; got {steps} and {seconds} s")
    if not all(given > 0 for given in (steps, seconds) if given is not None):
        raise ValueError(f"steps and seconds must be above 0, got {steps} and {seconds} s")


def _filter(
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


def _taped(tape: Tape | TapePlayer, name: str, function: Callable[[], Any]) -> Callable[[], Any]:
    """``function`` with its answers on the tape."""
    return lambda: tape.call(name, function)


class _Interrupted(Exception):
    """Someone asked the loop to stop."""


@dataclass(frozen=True, kw_only=True)
class _SessionCallbacks:
    """Who else has a say in a session, or listens."""

    listen: Callable[[PhaseTransition], None] = lambda transition: None
    recorder: Recorder | None = None
    watch: Callable[[Tick, Mapping[str, float]], None] | None = None
    stop: Callable[[], bool | Fault] | None = None
    human: Operator | None = None
    tool: ToolJog | None = None  # for who jogs it
    dial: Callable[[], float] = lambda: 1.0
    shadow: bool = False
    signals: StopSignals = field(default_factory=StopSignals)
    heard: Callable[[], tuple[int, str]] = lambda: (0, "")
    bears: int = 1  # signals on the way back to rest
    tape: Tape | TapePlayer | None = None
    limits: Callable[[Description], SafetyFilter] | None = None  # of the arm, once identified
    latch: FaultLatch | None = None
    policy: int = 0  # its process


class _Session:
    """One arm and one policy from OFFLINE to OFFLINE."""

    def __init__(
        self,
        arm: GuardedDriver,
        follower: PolicyRunner | None,  # None: nobody drives, the arm is only brought to rest
        park: Sequence[float],
        config: RunConfig,
        clock: Clock,
        around: _SessionCallbacks,
    ):
        self._limits, self._latch_file = around.limits, around.latch
        self._stop, self._recorder = around.stop, around.recorder
        self._watch = around.watch
        self._policy = around.policy
        self._human, self._dial, self._shadow = around.human, around.dial, around.shadow
        self._grip = OperatorHandover(arm.safety.period, tool=around.tool)
        self._refused = ""  # why a person may not take the arm as things are
        self._verdict = ""  # the person's, which ends the run
        self._arm, self._driver, self._joints = arm, arm.driver, arm.safety.joints
        self._follower, self._parking, self._config = follower, park, config
        self._clock = clock
        self._period = arm.safety.period
        self._machine = StateMachine(self._now, around.listen)
        self._signals, self._heard, self._tape = around.signals, around.heard, around.tape
        self._borne, self._bears = 0, around.bears  # signals that a phase bears, and the way back
        self._meter = RunMeter()
        self._acks: dict[str, bool] = {}
        self._notes: list[str] = []
        self._why = ""  # the run is over
        self._gone = self._regained = False  # the process that owned the port
        self._stopping = False  # on the way back
        self.asked = False  # to stop, when the arm was on its way back already
        self._latched: RobotFault | SafetyStop | None = None  # by what
        self.woke = self._now()  # s, of the newest period
        self._missed = FailureRate(config.window, config.max_missed, self._period)
        self._pace()

    def run(self, total: float) -> tuple[Ended, Fault, str]:
        """Runs ``total`` periods of the policy: (how it ended, which fault, in words)."""
        with self._signals, low_latency_interpreter(), contextlib.ExitStack() as stack:
            if self._config.realtime and AVAILABLE:
                self._notes += stack.enter_context(realtime(self._policy))
            try:
                stack.callback(self._disconnect)
                self._connect()
                stack.callback(self._relax)
                stack.callback(self._come_to_rest)
                self._machine.to(Phase.ARMED)
                self._driver.enable()
                self._arm.seed(stiff=True)
                if not self._shadow:
                    self._align()
                self._drive(total)
            except _Interrupted as error:
                self._why = str(error)
                return Ended.INTERRUPTED, Fault.OPERATOR, str(error)
            except (SafetyStop, RobotFault) as error:
                self._why, self._gone = str(error), error.fault is Fault.BUS
                mild = error.fault.response is not FaultResponse.LATCH and isinstance(
                    error, SafetyStop
                )
                if mild or error.fault.response is FaultResponse.HOLD:
                    return Ended.SAFETY_STOP, error.fault, str(error)
                self._latch(error)
                return Ended.FAULT, error.fault, str(error)
        return Ended.DONE, Fault.NONE, ""

    def rescue(self) -> tuple[Ended, Fault, str]:
        """Takes a stiff arm over from a bridge that is gone, and brings it to rest."""
        with self._signals, contextlib.ExitStack() as stack:
            try:
                stack.callback(self._disconnect)
                self._machine.to(Phase.HOLD, "taken over")
                stack.callback(self._relax)
                self._driver.identify()
                self._identified()
                self._arm.seed()
                stack.callback(self._come_to_rest)
                self._driver.enable()  # what is stiff already keeps its goal
                self._arm.seed(stiff=True)
            except (SafetyStop, RobotFault) as error:
                self._latch(error)
                return Ended.FAULT, error.fault, str(error)
        return Ended.DONE, Fault.NONE, ""

    def result(self, ended: Ended, fault: Fault, reason: str) -> RunResult:
        """The report of a session that is over; a fault that latched while stopping counts."""
        meter = self._meter
        if ended is not Ended.FAULT and self._latched is not None:
            reason = f"{reason}; then {self._latched}" if reason else str(self._latched)
            ended, fault = Ended.FAULT, self._latched.fault
        long = meter.limited.get("limited_long", np.zeros(len(self._joints)))
        return RunResult(
            ended=ended,
            fault=fault,
            reason=reason,
            ticks=meter.ticks,
            actions=self._follower.actions if self._follower is not None else 0,
            missed=meter.missed,
            retries=self._arm.retries,
            latency=meter.spreads(),
            limited=meter.shares(),
            limited_long=tuple(j for j, n in zip(self._joints, long, strict=True) if n),
            acks=self._acks,
            history=tuple(self._machine.history),
            notes=tuple(self._notes),
            verdict=self._verdict,
        )

    # To RUN.
    def _connect(self) -> None:
        self._driver.connect()
        identity = self._driver.identify()
        self._machine.to(Phase.CONNECTED, f"{identity.model} {identity.serial}")
        self._identified()
        expected = self._follower.calibration
        if expected and expected != identity.calibration:
            raise SafetyStop(
                Fault.CONFIG,
                f"the bundle was trained for the arm with calibration {expected[:16]}, got "
                f"{identity.calibration[:16] or 'none'}",
            )
        self._arm.seed()  # refuses an arm that reports a fault or stands outside its range

    def _identified(self) -> None:
        """From here on the limits are those of the arm that answered, not of its kind."""
        if self._limits is not None:
            self._arm.safety = self._limits(self._driver.describe())

    def _align(self) -> None:
        """To the nearest pose of the start set, and on until every object was seen."""
        self._machine.to(Phase.ALIGN)
        start, qpos = self._follower.start, self._arm.memory.qpos
        centre, tolerance = np.array(start.centre), np.array(start.tolerance)
        distance = np.maximum(np.abs(qpos - centre) - tolerance, 0.0)
        if distance.max() > self._config.align_max:
            i = int(distance.argmax())
            raise SafetyStop(
                Fault.CONFIG,
                f"{self._joints[i]} is {distance[i]:.2f} rad from the start pose, at most "
                f"{self._config.align_max} rad is allowed; move the arm nearer to "
                f"{np.round(centre, 2)} rad",
            )
        # So far inside that where it counts as arrived is inside too.
        arrive = min(self._config.arrive, float(tolerance.min()))
        depth = tolerance - arrive
        inside = np.clip(qpos, centre - depth, centre + depth)
        pose = np.where(distance > 0, inside, qpos)
        gripper = self._arm.memory.gripper if start.gripper is None else start.gripper
        unseen = lambda: self._follower.missing_objects(self._arm.state)  # noqa: E731
        self._move(pose, gripper, self._config.align_speed, arrive, unseen)

    def _drive(self, total: float) -> None:
        """The policy, for ``total`` periods."""
        self._machine.to(Phase.SHADOW if self._shadow else Phase.RUN)
        self._pace()
        index = 0

        def wish(state: RobotState) -> TargetRequest:
            memory, hand = self._arm.memory, self._human.read() if self._human else None
            dial, driving = self._dial(), self._machine.phase is Phase.HUMAN
            self._verdict = "" if hand is None else hand.verdict
            if self._has_it(hand, memory.qpos, driving):
                if not driving:
                    self._machine.to(Phase.HUMAN, "taken by hand")
                self._follower.watch(state, index, memory.goal, memory.gripper)
                return self._grip.target_request(hand, memory.qpos, memory.gripper, dial)
            if driving:
                self._machine.to(Phase.RUN, "given back")
            wish = self._follower.target(state, index, memory.goal, memory.gripper)
            return dataclasses.replace(wish, dial=dial)

        while index < total and not self._verdict:
            skipped = self._tick(wish)
            self._meter.missed += skipped
            index += 1 + skipped

    def _has_it(self, hand: OperatorInput | None, command: Array, driving: bool) -> bool:
        """Whether the person has the arm; who is refused it is told once."""
        engaged = self._grip.engaged(hand, self._now(), driving)
        refused = "" if driving or not engaged else self._grip.refused(hand, command, self._joints)
        if refused and not any(note.startswith("no handover") for note in self._notes):
            self._notes.append(refused)
        self._refused = refused
        return engaged and not refused

    # Back to OFFLINE. What fails on the way becomes a note, and the next thing is tried.
    def _come_to_rest(self) -> None:
        """Stops the arm, and parks it if that is possible."""
        self._borne, self._stopping = self._bears, True
        if self._machine.phase not in {*LATCHED, Phase.HOLD}:
            self._machine.to(Phase.HOLD, self._why)
        if self._gone:
            self._regain()
        else:
            self._attempt("brake", self._brake)
        self._attempt("hold", self._driver.hold)
        if self._parking and self._machine.phase is Phase.HOLD:
            if not self._attempt("park", self._park):
                if self._machine.phase is Phase.PARK:
                    self._machine.to(Phase.HOLD)
                self._attempt("hold", self._driver.hold)

    def _brake(self) -> None:
        """Brings the targets to rest as fast as the limits allow, also without measurements."""
        self._pace()
        while self._arm.memory.moving:
            woke = self.woke = self._now()
            self._record(woke, self._arm.brake(), None)
            self._wait()

    def _park(self) -> None:
        self._arm.seed(stiff=True)
        self._machine.to(Phase.PARK)
        pose, gripper = np.array(self._parking), self._arm.memory.gripper
        config = self._config
        # It is low over the table, and things may lie there; a soft arm hangs below it.
        for place in self._arm.safety.escape_path(self._arm.compliant_start(), pose, gripper):
            self._move(place, gripper, config.park_speed, config.arrive, lambda: "", config.rests)

    def _relax(self) -> None:
        self._acks = dict.fromkeys(self._joints, False)

        def relax() -> None:
            self._acks.update(self._driver.relax())

        regained = self._regained
        if not self._attempt("relax", relax) and self._regained and not regained:
            self._attempt("relax", relax)
        stiff = [joint for joint, limp in self._acks.items() if not limp]
        if stiff:
            self._notes.append(f"torque is still on: {', '.join(stiff)}")
        if self._machine.phase not in LATCHED:
            self._machine.to(Phase.RELAX)
            self._machine.to(Phase.CONNECTED)

    def _disconnect(self) -> None:
        self._attempt("close", self._driver.close)
        if self._machine.phase is Phase.CONNECTED:
            self._machine.to(Phase.OFFLINE)
        self._flush()

    def _regain(self) -> None:
        """Begins anew with a device that nobody speaks to any more: it kept its last target.

        Tried once: what has ended two processes is the device's doing.
        """
        self._regained = True

        def take_over() -> None:
            self._driver.connect()
            self._driver.identify()
            self._driver.enable()  # what is stiff already keeps its goal
            self._arm.seed(stiff=True)

        self._attempt("take over", take_over)

    def _attempt(self, what: str, do: Callable[[], None]) -> bool:
        """Whether ``do`` worked."""
        try:
            do()
        except (SafetyStop, RobotFault, _Interrupted) as error:
            self._notes.append(f"{what}: {error}")
            fault = getattr(error, "fault", None)
            if fault is Fault.BUS and not self._regained:
                self._regain()
            elif isinstance(error, RobotFault) or fault is Fault.ESTOP:
                self._latch(error)
            return False
        return True

    def _latch(self, error: RobotFault | SafetyStop) -> None:
        if self._machine.phase not in {*LATCHED, Phase.OFFLINE}:
            estop, self._latched = error.fault is Fault.ESTOP, error
            self._machine.to(Phase.ESTOP if estop else Phase.FAULT, str(error))
            if self._latch_file is not None:
                try:
                    self._latch_file.set(error.fault, str(error))
                except OSError as trouble:  # the stop goes on; this process still knows it
                    self._notes.append(f"the fault could not be saved: {trouble}")

    # One period.
    def _tick(self, wish: Callable[[RobotState], Target]) -> int:
        """One exchange with the arm and the wait for the next; returns periods skipped."""
        woke = self.woke = self._now()
        count, last = self._heard()
        if count > self._borne:
            raise _Interrupted(last)
        if self._stop is not None and (asked := self._stop()):
            if asked is Fault.ESTOP:
                raise SafetyStop(Fault.ESTOP, "the operator's emergency stop")
            if not self._borne:
                raise _Interrupted("asked to stop")
            self.asked = True
        done = self._arm.exchange(wish, move=self._machine.phase is not Phase.SHADOW)
        if done is not None:
            driven = self._machine.phase in DRIVEN
            thought = self._follower.thought if driven else None
            if driven:
                self._meter.add(done.flags, self._late, done.t - woke, thought)
            self._record(woke, done, thought)
        return self._wait()

    def _flush(self) -> None:
        if self._recorder is not None and self._tape is not None:
            if entries := self._tape.take():
                self._recorder.tape(entries, self.woke)

    def _record(self, woke: float, done: Exchange, thought: PolicyOutput | None) -> None:
        if self._recorder is None and self._watch is None:
            return
        phase, skipped = self._machine.phase.value, self._skipped
        tick = Tick(phase, woke, self._late, skipped, thought, *done, self._refused)
        if self._recorder is not None:
            self._recorder.tick(tick)
        if self._watch is not None:
            self._watch(tick, {} if self._follower is None else self._follower.ages(done.t))

    def _wait(self) -> int:
        """Until the next period; returns periods skipped."""
        self._flush()
        self._skipped, self._late = self._pacer.wait()
        self._behind = self._behind + self._skipped if self._skipped else 0
        if (missed := self._missed.add(self._now(), self._skipped)) and not self._stopping:
            raise SafetyStop(
                Fault.DEADLINE,
                f"the control loop missed {missed} periods in the last {self._missed.seconds:g} "
                f"s, at most {self._missed.most} are allowed; is another program using the "
                "processor?",
            )
        if self._behind * self._period > self._config.max_gap:
            raise SafetyStop(
                Fault.DEADLINE,
                f"the control loop fell {self._behind * self._period:.2f} s behind, at most "
                f"{self._config.max_gap} s is allowed; is another program using the processor?",
            )
        return self._skipped

    def _move(
        self,
        pose: Array,
        gripper: float,
        speed: float,
        arrive: float,
        missing: Callable[[], str],
        rests: float = 0.0,
    ) -> None:
        """Straight to within ``arrive`` rad of ``pose`` (n,) rad at ``speed`` rad/s, or what the
        filter allows of it, or to within ``rests`` where the arm has come to rest there.

        Stays there until ``missing`` returns nothing.
        """
        self._pace()
        speed = min(speed, float(self._arm.safety.shaping.cruise.min()))
        begun, start = self._now(), self._arm.compliant_start()
        allowed = np.abs(pose - start).max() / speed + self._config.settle
        ramp = Ramp(start, pose, gripper, speed * self._period)
        moved = begun
        while True:
            self._tick(ramp)
            lacking = missing()
            if ramp.away > rests or np.abs(self._arm.state.qvel).max() > STILL:
                moved = self._now()
            near = ramp.away <= arrive or self._now() - moved > STILL_S
            if near and not lacking:
                return
            if self._now() - begun > allowed:
                raise SafetyStop(
                    Fault.TRACKING,
                    f"the arm did not arrive within {allowed:.1f} s: "
                    f"{self._arm.safety.joints[ramp.joint]} is {ramp.away:.3f} rad away, at most "
                    f"{arrive} rad is allowed{'; ' + lacking if lacking else ''}",
                )

    def _pace(self) -> None:
        """Deadlines count from now."""
        self._pacer = Pacer(self._period, self._clock)
        self._skipped, self._late, self._behind = 0, 0.0, 0

    def _now(self) -> float:
        return self._clock.now_ns() * 1e-9
