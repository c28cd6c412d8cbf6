"""The states of a run and the only ways from one to another.

::

    OFFLINE - CONNECTED - ARMED - ALIGN - RUN - HOLD - PARK - RELAX - CONNECTED - OFFLINE

HOLD can be reached from every state in which the arm is stiff, and RELAX from HOLD. FAULT and ESTOP
are latched: only an operator's ``clear_fault`` leads out, back to CONNECTED and its checks.
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
    HOLD = "hold"  # stopped, stiff
    PARK = "park"  # slowly to the pose where it may go limp
    RELAX = "relax"  # limp, acknowledged joint by joint
    FAULT = "fault"  # latched
    ESTOP = "estop"  # latched


_ON = {
    Phase.OFFLINE: {Phase.CONNECTED},
    Phase.CONNECTED: {Phase.ARMED, Phase.OFFLINE},
    Phase.ARMED: {Phase.ALIGN, Phase.HOLD},
    Phase.ALIGN: {Phase.RUN, Phase.HOLD},
    Phase.RUN: {Phase.HOLD},
    Phase.HOLD: {Phase.PARK, Phase.RELAX},
    Phase.PARK: {Phase.HOLD, Phase.RELAX},
    Phase.RELAX: {Phase.CONNECTED},
    Phase.FAULT: {Phase.CONNECTED},
    Phase.ESTOP: {Phase.CONNECTED},
}
LATCHED = frozenset({Phase.FAULT, Phase.ESTOP})
LEGAL: dict[Phase, frozenset[Phase]] = {
    phase: frozenset(
        on | {Phase.ESTOP} | (set() if phase in {Phase.OFFLINE, *LATCHED} else {Phase.FAULT})
    )
    - {phase}
    for phase, on in _ON.items()
}


class Transition(NamedTuple):
    """One change of state."""

    t: float  # s, monotonic
    before: Phase
    after: Phase
    reason: str


class Machine:
    """The current state and how it came about; refuses what the table does not list."""

    def __init__(self, now: Callable[[], float], listen: Callable[[Transition], None]):
        self.phase = Phase.OFFLINE
        self.history: list[Transition] = []
        self._now, self._listen = now, listen

    def to(self, phase: Phase, reason: str = "") -> None:
        """Goes on to ``phase``; RuntimeError if the table has no such step."""
        if phase not in LEGAL[self.phase]:
            known = ", ".join(sorted(p.name for p in LEGAL[self.phase]))
            raise RuntimeError(f"cannot go from {self.phase.name} to {phase.name}; only to {known}")
        transition = Transition(self._now(), self.phase, phase, reason)
        self.phase = phase
        self.history.append(transition)
        self._listen(transition)
