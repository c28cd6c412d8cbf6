"""Every fault the bridge answers for, and what it promises; docs/faults.md is made of this table.

A test shows a promise with ``@pytest.mark.fault(18, 19)`` and, where it takes time, says how long
by the fixture ``took``: ``took(0.004, "held")``. ``pytest --faults=docs/faults.md`` writes the page
from what ran; a fault without a test says so there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Promise(NamedTuple):
    """One row: what goes wrong, and what the bridge does about it."""

    fault: str
    promise: str


H, L = "hold", "latched"  # a jerk-limited stop; leaves only by an operator's clear
FAULTS: dict[int, Promise] = {
    1: Promise("one reply dropped", "retried within the tick, counted, motion continues"),
    2: Promise("5 replies in a row dropped", f"{H}, {L} COMM_TIMEOUT"),
    3: Promise("one corrupt checksum; then 2 % of them", f"retried; {H} with a warning"),
    4: Promise("a reply 80 ms late", "discarded; the next reading is fresh and says its age"),
    5: Promise("a reply of another id, a duplicate", "discarded, counted"),
    6: Promise("a truncated packet, garbage between packets", "resynchronised, no exception"),
    7: Promise("cable pulled", f"{L} DISCONNECTED within one tick, policy stopped"),
    8: Promise("replugged under another name", "found by its serial number; still needs a person"),
    9: Promise("port already open elsewhere", "refused at the start"),
    10: Promise("another motor model, id or count", "refused when connecting"),
    11: Promise("calibration is not the bundle's", "refused"),
    12: Promise("encoder jump faster than the joint", f"rejected; 3 in a row: {H}, {L} ENCODER"),
    13: Promise("overload of one servo", f"seen within 10 ticks, {L}; the others are relaxed"),
    14: Promise("temperature rising", f"slower at the soft limit, {L} at the hard one"),
    15: Promise("voltage too low", f"{H}, {L} VOLTAGE"),
    16: Promise(
        "stall: a joint is blocked and pushes on",
        f"SO-101 and Koch, by their load: eased after 1 s, {H} after 3 s, {L} STALL; UR5e, "
        "FR3: as 17",
    ),
    17: Promise(
        "collision: something pushes on a joint",
        f"UR5e, by its currents: {H} once it is half of what the joint can do; "
        "a servo's load does not tell it from work: as 16; FR3, by its joints' sensors: as UR5e",
    ),
    18: Promise("NaN in an action", f"never sent; {H}"),
    19: Promise("inf in an action", f"never sent; {H}"),
    20: Promise("NaN or inf in a measurement", f"never shown to the policy; {H}"),
    21: Promise("action of another length or type", f"refused at load; {H} while running"),
    22: Promise("a limiter that is active too long", f"reported, then {H}"),
    23: Promise("a jump between actions", "limited in velocity, acceleration and jerk; reported"),
    24: Promise("a target outside the workspace or in collision", "never sent; stopped before it"),
    25: Promise("policy stalls (SIGSTOP)", f"{H} within 3 ticks"),
    26: Promise("policy dies (kill -9)", f"{H} within one tick"),
    27: Promise("exception in the policy", f"{H}; its traceback is logged"),
    28: Promise("policy slower than its rate", f"last goal kept for a tick, then {H}; no backlog"),
    29: Promise("an action from an old observation", "dropped"),
    30: Promise("a second policy process", "has no way in: the sockets have no address"),
    31: Promise(
        "bridge dies (kill -9)", "braked and held by the bus, then parked and relaxed by a helper"
    ),
    32: Promise("bridge stalls (SIGSTOP)", "as 31, and it is killed after a second"),
    33: Promise("Ctrl-C, SIGTERM or SIGHUP", f"{H}, park, relax"),
    34: Promise("Ctrl-C again while parking", f"{H} at once; the arm's state is printed"),
    35: Promise("terminal lost", "as SIGHUP"),
    36: Promise(
        "disk full, log writer dead",
        "refused before the arm moves; later: the run continues, the command fails with a line",
    ),
    37: Promise("wall clock set by an hour", "no effect"),
    38: Promise("the loop wakes 300 ms late", f"periods skipped, no burst; {H} over the limit"),
    39: Promise("the processor is taken", f"misses counted; {H} after too many in a row"),
    40: Promise("arm far from the start set", "refused; near it, moved slowly and without contact"),
    41: Promise("arm moved by hand while limp", "targets begin where it is: no jump"),
    42: Promise("torque refused or read back wrong", f"{L}"),
    43: Promise("device reboots while running", f"{L}"),
    44: Promise("protective stop of the controller", f"{L}; never unlocked by itself"),
    45: Promise(
        "emergency stop; program stopped from the pendant", f"{L} ESTOP; {L} PROTECTIVE_STOP"
    ),
    46: Promise("the stream stops, the connection stays", f"STALE within 3 periods, {H}"),
    47: Promise("a field the controller does not have", "refused when connecting, named"),
    48: Promise("the controller refuses a target", f"counted as not sent, {H}"),
    49: Promise(
        "reflex of the controller (FR3): a push, a command that breaks a limit, 20 lost in a row",
        f"{L} PROTECTIVE_STOP with its reasons; recovered only by a person",
    ),
    50: Promise("gripper missing", "refused before the arm is stiff"),
    51: Promise("the hand's device is gone while it drives", f"{H}"),
    52: Promise("hand over between policy and person", "without a bump"),
    53: Promise("one byte of the bundle changed", "refused"),
    54: Promise("golden vectors differ", "refused"),
    55: Promise("control rate does not fit the arm's", "refused"),
    56: Promise("a limit that is NaN, negative or of another type", "refused"),
    57: Promise("a log replayed", "the same trace of states"),
    58: Promise(
        "the device stops answering, at any point of a session",
        f"no call holds the loop: {L} DISCONNECTED, back within 2 s; the controller stops the arm",
    ),
    59: Promise("the gripper's line is cut or silent", f"{H}, park, relax; the jaws as they were"),
    60: Promise("four of five replies lost, never five in a row", f"{H} within 1.1 s"),
    61: Promise("a third of the periods missed, never many in a row", f"{H} within 2 s"),
    62: Promise(
        "the process that owns the port dies or stalls",
        f"the device keeps its last goal, or its watchdog stops it; the bridge takes over: {H}, "
        "park, relax",
    ),
    63: Promise("an operator's clear", "nothing moves before it, in any process; then it does"),
    64: Promise(
        "everybody dies at once",
        "the device keeps its last goal, or its watchdog stops it; the next deploy says that it is "
        "stiff, and parks or relaxes it on a word",
    ),
    65: Promise(
        "servos softer than expected: 10, 100, 998 N m/rad",
        "neither holding nor taking over nor parking lowers the arm",
    ),
    66: Promise("pictures that are old", "thrown away; each says when it was taken"),
}


@dataclass
class Shown:
    """What a run of the tests has shown, by fault."""

    tests: dict[int, set[str]] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    took: dict[int, list[tuple[float, str]]] = field(default_factory=dict)  # s, what

    def add(self, numbers: Iterable[int], test: str, passed: bool, took: list) -> None:
        """Notes one test; ``took`` has pairs (s, what)."""
        for number in numbers:
            self.tests.setdefault(number, set()).add(test)
            self.took.setdefault(number, []).extend(tuple(pair) for pair in took)
            if not passed:
                self.failed.add(number)

    def page(self, command: str) -> str:
        """The table as markdown."""
        shown = len(self.tests) - len(self.failed)
        head = [
            "# Faults and what the bridge does about them",
            "",
            f"Written by `{command}`: {shown} of {len(FAULTS)} faults shown by tests of that run. "
            "Times are from the fault to the promised behaviour, the slowest of the tests' cases; "
            "tests with a compressed clock give the arm's own time.",
            "",
            "| | fault | promise | shown by | time |",
            "|---|---|---|---|---|",
        ]
        return "\n".join(head + [self._row(number) for number in FAULTS]) + "\n"

    def _row(self, number: int) -> str:
        slowest: dict[str, float] = {}
        for seconds, what in self.took.get(number, []):
            slowest[what] = max(seconds, slowest.get(what, 0.0))
        times = ", ".join(f"{what} {1000 * s:.1f} ms" for what, s in slowest.items())
        tests = ", ".join(f"`{name}`" for name in sorted(self.tests.get(number, ())))
        if number in self.failed:
            tests = f"FAILED: {tests}"
        return f"| {number} | {' | '.join(FAULTS[number])} | {tests or 'not shown yet'} | {times} |"
