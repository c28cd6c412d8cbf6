"""Session: one arm and one policy, from OFFLINE through the states of ``core/states.py`` and back.

Whatever happens on the way (the time is up, Ctrl-C, a target that is not safe, a fault, an
exception in a policy) it ends with the arm stopped, parked where the bundle says how and the arm is
well, and limp, joint by joint.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from real_robot.core.config import RunConfig
from real_robot.core.driver import Description, Fault, FaultResponse, RobotFault, RobotState, Target
from real_robot.core.pacing import Clock, low_latency_interpreter
from real_robot.core.realtime import AVAILABLE, realtime
from real_robot.core.states import DRIVEN, LATCHED, Phase, PhaseTransition, StateMachine
from real_robot.log.recorder import Recorder, Tick
from real_robot.log.result import Ended, RunMeter, RunResult
from real_robot.log.tape import Tape, TapePlayer
from real_robot.operator.handover import Operator, OperatorHandover, OperatorInput, ToolJog
from real_robot.policy.runner import PolicyOutput, PolicyRunner
from real_robot.safety.fault_latch import FaultLatch
from real_robot.safety.filter import SafetyFilter, SafetyStop, TargetRequest
from real_robot.safety.guarded_driver import Exchange, GuardedDriver, Ramp
from real_robot.session.loop_timer import LoopTimer
from real_robot.session.stop_requests import Interrupted, StopRequests

Array = np.ndarray

STILL, STILL_S = 0.05, 0.3  # rad/s, and s of less than that, of an arm that has come to rest


@dataclass(frozen=True, kw_only=True)
class SessionCallbacks:
    """Who else has a say in a session, or listens."""

    requests: StopRequests
    limits: Callable[[Description], SafetyFilter] | None = None  # of the arm, once identified
    latch: FaultLatch | None = None
    human: Operator | None = None
    tool: ToolJog | None = None  # for who jogs it
    dial: Callable[[], float] = lambda: 1.0
    shadow: bool = False
    policy: int = 0  # its process
    listen: Callable[[PhaseTransition], None] = lambda transition: None
    recorder: Recorder | None = None
    watch: Callable[[Tick, Mapping[str, float]], None] | None = None
    tape: Tape | TapePlayer | None = None


class OperatorControl:
    """The person who may take the arm, and what came of it.

    Args:
        human: Where the operator's input comes from; None: there is no operator.
        handover: Blends the person's targets in and out.
        joints: Names of the arm's joints, for refusals.
        notes: Gets the first refusal.
    """

    def __init__(
        self,
        human: Operator | None,
        handover: OperatorHandover,
        joints: Sequence[str],
        notes: list[str],
    ):
        self._human, self.handover = human, handover
        self._joints, self._notes = joints, notes
        self.refused = ""  # why a person may not take the arm as things are
        self.verdict = ""  # the person's, which ends the run

    def read(self) -> OperatorInput | None:
        """Returns the operator's newest input."""
        return self._human.read() if self._human else None

    def has_arm(self, hand: OperatorInput | None, command: Array, now: float, has: bool) -> bool:
        """Whether the operator has the arm. A refusal is noted once.

        Args:
            hand: What the person wants.
            command: (J,) rad, the arm's last target.
            now: The loop's clock, s.
            has: Whether the person had the arm in the last period.
        """
        engaged = self.handover.engaged(hand, now, has)
        refused = "" if has or not engaged else self.handover.refused(hand, command, self._joints)
        if refused and not any(note.startswith("no handover") for note in self._notes):
            self._notes.append(refused)
        self.refused = refused
        return engaged and not refused


class Session:
    """One arm and one policy from OFFLINE to OFFLINE.

    Args:
        arm: The driver behind its safety filter.
        runner: The policy; None: the arm is only brought to rest.
        park: (J,) rad, the park pose; empty: there is none.
        config: What the run allows.
        clock: What the loop is timed by.
        callbacks: Who else has a say, or listens.
    """

    def __init__(
        self,
        arm: GuardedDriver,
        runner: PolicyRunner | None,
        park: Sequence[float],
        config: RunConfig,
        clock: Clock,
        callbacks: SessionCallbacks,
    ):
        self._arm, self._driver, self._joints = arm, arm.driver, arm.safety.joints
        self._runner, self._parking, self._config = runner, park, config
        self._callbacks, self._requests = callbacks, callbacks.requests
        self._timer = LoopTimer(arm.safety.period, clock, config)
        self._machine = StateMachine(self._timer.now, callbacks.listen)
        self._meter = RunMeter()
        self._notes: list[str] = []
        handover = OperatorHandover(arm.safety.period, tool=callbacks.tool)
        self._operator = OperatorControl(callbacks.human, handover, self._joints, self._notes)
        self._acks: dict[str, bool] = {}
        self._why = ""  # the run is over
        self._gone = self._regained = False  # the process that owned the port
        self._latched: RobotFault | SafetyStop | None = None  # by what

    @property
    def woke(self) -> float:
        """When the newest period began, s of the loop's clock."""
        return self._timer.woke

    def run(self, total: float) -> tuple[Ended, Fault, str]:
        """Runs ``total`` periods of the policy: (how it ended, which fault, in words)."""
        with self._requests.signals, low_latency_interpreter(), contextlib.ExitStack() as stack:
            if self._config.realtime and AVAILABLE:
                self._notes += stack.enter_context(realtime(self._callbacks.policy))
            try:
                stack.callback(self._disconnect)
                self._connect()
                stack.callback(self._relax)
                stack.callback(self._come_to_rest)
                self._machine.to(Phase.ARMED)
                self._driver.enable()
                self._arm.seed(stiff=True)
                if not self._callbacks.shadow:
                    self._align()
                self._drive(total)
            except Interrupted as error:
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
        with self._requests.signals, contextlib.ExitStack() as stack:
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
            actions=self._runner.actions if self._runner is not None else 0,
            missed=meter.missed,
            retries=self._arm.retries,
            latency=meter.spreads(),
            limited=meter.shares(),
            limited_long=tuple(j for j, n in zip(self._joints, long, strict=True) if n),
            acks=self._acks,
            history=tuple(self._machine.history),
            notes=tuple(self._notes),
            verdict=self._operator.verdict,
        )

    # To RUN.
    def _connect(self) -> None:
        self._driver.connect()
        identity = self._driver.identify()
        self._machine.to(Phase.CONNECTED, f"{identity.model} {identity.serial}")
        self._identified()
        expected = self._runner.calibration
        if expected and expected != identity.calibration:
            raise SafetyStop(
                Fault.CONFIG,
                f"the bundle was trained for the arm with calibration {expected[:16]}, got "
                f"{identity.calibration[:16] or 'none'}",
            )
        self._arm.seed()  # refuses an arm that reports a fault or stands outside its range

    def _identified(self) -> None:
        """From here on the limits are those of the arm that answered, not of its kind."""
        if (limits := self._callbacks.limits) is not None:
            self._arm.safety = limits(self._driver.describe())

    def _align(self) -> None:
        """To the nearest pose of the start set, and on until every object was seen."""
        self._machine.to(Phase.ALIGN)
        start, qpos = self._runner.start, self._arm.memory.qpos
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
        unseen = lambda: self._runner.missing_objects(self._arm.state)  # noqa: E731
        self._move(pose, gripper, self._config.align_speed, arrive, unseen)

    def _drive(self, total: float) -> None:
        """The policy, for ``total`` periods."""
        self._machine.to(Phase.SHADOW if self._callbacks.shadow else Phase.RUN)
        self._timer.start()
        index = 0

        def wish(state: RobotState) -> TargetRequest:
            memory, operator = self._arm.memory, self._operator
            hand, dial = operator.read(), self._callbacks.dial()
            driving = self._machine.phase is Phase.HUMAN
            operator.verdict = "" if hand is None else hand.verdict
            if operator.has_arm(hand, memory.qpos, self._timer.now(), driving):
                if not driving:
                    self._machine.to(Phase.HUMAN, "taken by hand")
                self._runner.watch(state, index, memory.goal, memory.gripper)
                return operator.handover.target_request(hand, memory.qpos, memory.gripper, dial)
            if driving:
                self._machine.to(Phase.RUN, "given back")
            wish = self._runner.target(state, index, memory.goal, memory.gripper)
            return dataclasses.replace(wish, dial=dial)

        while index < total and not self._operator.verdict:
            skipped = self._tick(wish)
            self._meter.missed += skipped
            index += 1 + skipped

    # Back to OFFLINE. What fails on the way becomes a note, and the next thing is tried.
    def _come_to_rest(self) -> None:
        """Stops the arm, and parks it if that is possible."""
        self._requests.come_to_rest()
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
        self._timer.start()
        while self._arm.memory.moving:
            woke = self._timer.wake()
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
        """Reconnects to a device that lost its client; it holds its last target.

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
        except (SafetyStop, RobotFault, Interrupted) as error:
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
            if (latch := self._callbacks.latch) is not None:
                try:
                    latch.set(error.fault, str(error))
                except OSError as trouble:  # the stop continues; this process still knows the fault
                    self._notes.append(f"the fault could not be saved: {trouble}")

    # One period.
    def _tick(self, wish: Callable[[RobotState], Target]) -> int:
        """One exchange with the arm and the wait for the next; returns periods skipped."""
        woke = self._timer.wake()
        self._requests.check()
        done = self._arm.exchange(wish, move=self._machine.phase is not Phase.SHADOW)
        if done is not None:
            driven = self._machine.phase in DRIVEN
            thought = self._runner.thought if driven else None
            if driven:
                self._meter.add(done.flags, self._timer.late, done.t - woke, thought)
            self._record(woke, done, thought)
        return self._wait()

    def _flush(self) -> None:
        recorder, tape = self._callbacks.recorder, self._callbacks.tape
        if recorder is not None and tape is not None:
            if entries := tape.take():
                recorder.tape(entries, self.woke)

    def _record(self, woke: float, done: Exchange, thought: PolicyOutput | None) -> None:
        recorder, watch = self._callbacks.recorder, self._callbacks.watch
        if recorder is None and watch is None:
            return
        phase, late, skipped = self._machine.phase.value, self._timer.late, self._timer.skipped
        tick = Tick(phase, woke, late, skipped, thought, *done, self._operator.refused)
        if recorder is not None:
            recorder.tick(tick)
        if watch is not None:
            watch(tick, {} if self._runner is None else self._runner.ages(done.t))

    def _wait(self) -> int:
        """Until the next period; returns periods skipped."""
        self._flush()
        return self._timer.wait(stopping=self._requests.stopping)

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
        self._timer.start()
        speed = min(speed, float(self._arm.safety.shaping.cruise.min()))
        begun, start = self._timer.now(), self._arm.compliant_start()
        allowed = np.abs(pose - start).max() / speed + self._config.settle
        ramp = Ramp(start, pose, gripper, speed * self._timer.period)
        moved = begun
        while True:
            self._tick(ramp)
            lacking = missing()
            if ramp.away > rests or np.abs(self._arm.state.qvel).max() > STILL:
                moved = self._timer.now()
            near = ramp.away <= arrive or self._timer.now() - moved > STILL_S
            if near and not lacking:
                return
            if self._timer.now() - begun > allowed:
                if near:
                    raise SafetyStop(
                        Fault.STALE,
                        f"the arm has arrived, but after {allowed:.1f} s {lacking}: is a camera "
                        "covered, dark or unplugged, or the object out of its sight?",
                    )
                raise SafetyStop(
                    Fault.TRACKING,
                    f"the arm did not arrive within {allowed:.1f} s: "
                    f"{self._arm.safety.joints[ramp.joint]} is {ramp.away:.3f} rad away, at most "
                    f"{arrive} rad is allowed{'; ' + lacking if lacking else ''}",
                )
