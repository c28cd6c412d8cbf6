"""The states of a run and the only ways from one to another.

::

    OFFLINE - CONNECTED - ARMED - ALIGN - RUN - HOLD - PARK - RELAX - CONNECTED - OFFLINE
                            |              |
                            |            HUMAN      a person drives, and gives back
                            |
                          SHADOW                    the policy thinks, the arm holds still

``TABLE`` is the manual: every way there is, and what takes it. HOLD can be reached from every
state in which the arm is stiff, and RELAX from HOLD. FAULT and ESTOP are latched: only an
operator's ``clear_fault`` leads out, back to CONNECTED and its checks.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple


class Phase(Enum):
    """Where a run stands."""

    OFFLINE = "offline"  # port closed
    CONNECTED = "connected"  # limp, read only, checks
    ARMED = "armed"  # stiff at the measured pose
    ALIGN = "align"  # slowly to the bundle's start set
    RUN = "run"  # the policy drives
    HUMAN = "human"  # a person drives
    SHADOW = "shadow"  # the policy is asked and its targets are filtered and logged, not sent
    HOLD = "hold"  # stopped, stiff
    PARK = "park"  # slowly to the pose where it may go limp
    RELAX = "relax"  # limp, acknowledged joint by joint
    FAULT = "fault"  # latched
    ESTOP = "estop"  # latched


LATCHED = frozenset({Phase.FAULT, Phase.ESTOP})
DRIVEN = frozenset({Phase.RUN, Phase.HUMAN, Phase.SHADOW})  # where a policy's run takes place
STIFF = DRIVEN | {Phase.ARMED, Phase.ALIGN, Phase.HOLD, Phase.PARK}

_STOP = "time is up, an operator, a policy or the safety filter stops it"
_WAYS: dict[Phase, dict[Phase, str]] = {
    Phase.OFFLINE: {
        Phase.CONNECTED: "the port is open and the device is the one expected",
        Phase.HOLD: "a helper takes over a stiff arm whose bridge is gone",
    },
    Phase.CONNECTED: {
        Phase.ARMED: "no fault, every joint in its range; the operator wants it",
        Phase.OFFLINE: "the port is closed",
    },
    Phase.ARMED: {
        Phase.ALIGN: "targets begin at the measured pose",
        Phase.SHADOW: "the policy shall only be watched",
        Phase.HOLD: _STOP,
    },
    Phase.ALIGN: {Phase.RUN: "in the start set, every object seen", Phase.HOLD: _STOP},
    Phase.RUN: {Phase.HUMAN: "a person takes the arm", Phase.HOLD: _STOP},
    Phase.HUMAN: {Phase.RUN: "the person gives it back", Phase.HOLD: _STOP},
    Phase.SHADOW: {Phase.HOLD: _STOP},
    Phase.HOLD: {
        Phase.PARK: "the bundle says where, and the arm is well",
        Phase.RELAX: "there is nowhere to park, or parking failed",
    },
    Phase.PARK: {Phase.RELAX: "arrived", Phase.HOLD: "stopped on the way"},
    Phase.RELAX: {Phase.CONNECTED: "every joint was asked to let go"},
    Phase.FAULT: {Phase.CONNECTED: "an operator cleared it"},
    Phase.ESTOP: {Phase.CONNECTED: "an operator cleared it"},
}
TABLE: dict[tuple[Phase, Phase], str] = {
    (before, after): why for before, ways in _WAYS.items() for after, why in ways.items()
}
TABLE |= {
    (phase, Phase.FAULT): "the device or the bridge reports a fault that latches"
    for phase in Phase
    if phase not in {Phase.OFFLINE, *LATCHED}
}
TABLE |= {(phase, Phase.ESTOP): "the emergency stop" for phase in Phase if phase is not Phase.ESTOP}
LEGAL: dict[Phase, frozenset[Phase]] = {
    phase: frozenset(after for before, after in TABLE if before is phase) for phase in Phase
}


def transition_table() -> str:
    """The table as markdown, one line for each way."""
    rows = [f"| {a.name} | {b.name} | {why} |" for (a, b), why in TABLE.items()]
    return "\n".join(["| from | to | when |", "|---|---|---|", *rows]) + "\n"


class PhaseTransition(NamedTuple):
    """One change of state."""

    t: float  # s, monotonic
    before: Phase
    after: Phase
    reason: str


class StateMachine:
    """The current state and how it came about; refuses what the table does not list."""

    def __init__(self, now: Callable[[], float], listen: Callable[[PhaseTransition], None]):
        self.phase = Phase.OFFLINE
        self.history: list[PhaseTransition] = []
        self._now, self._listen = now, listen

    def to(self, phase: Phase, reason: str = "") -> None:
        """Goes on to ``phase``; RuntimeError if the table has no such way."""
        if phase not in LEGAL[self.phase]:
            known = ", ".join(sorted(p.name for p in LEGAL[self.phase]))
            raise RuntimeError(
                f"cannot change from {self.phase.name} to {phase.name}; allowed: {known}"
            )
        transition = PhaseTransition(self._now(), self.phase, phase, reason)
        self.phase = phase
        self.history.append(transition)
        self._listen(transition)
