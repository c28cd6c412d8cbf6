"""RunConfig: what a run allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sims.core.pose_filter import DRIFT, NOISE


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What a run allows; the defaults are slow and careful."""

    max_age: float = 0.1  # s, oldest measurement to act on
    max_pose_age: float = 0.3  # s, oldest object pose to act on without asking more
    max_hidden: float = 3.0  # s, the same for an object that cannot have moved far meanwhile
    max_doubt: float = 0.03  # m, how far that is
    pose_noise: float = NOISE  # m, standard deviation of a seen position on each axis
    pose_drift: float = DRIFT  # m/sqrt(s), by which an object may wander without being noticed
    max_retries: int = 4  # ticks in a row without a measurement
    max_spoilt: float = 0.02  # share of a second's measurements that may come in spoilt
    max_lost: float = 0.25  # share of a window's measurements that may not come at all
    max_missed: float = 0.25  # share of a window's periods that the loop may miss
    window: float = 2.0  # s
    max_gap: float = 0.3  # s, the loop may be late in a row
    margin: float = 0.02  # rad kept from the ends of the joint range
    lag: float = 0.6  # rad between a target and its joint
    tool_speed: float = 1.0  # m/s
    stop_s: float | None = None  # s, longest that the quickest stop may take; None: as it comes
    clearance: float = 0.005  # m kept between the arm and itself or the table
    patience: float = 2.5  # s, a limit that is active for longer is reported, for twice that stops
    handover: float = 1.0  # s in which what the new hand wants fades in
    stall: float = 0.5  # s of full effort without motion
    leaning: float = 3.0  # s of the same where motors that protect themselves are eased meanwhile
    align_speed: float = 0.5  # rad/s, of the fastest joint on the way to the start set
    align_max: float = 1.6  # rad, a joint farther than this from the start set is not moved there
    park_speed: float = 0.5  # rad/s
    arrive: float = 0.03  # rad, between a joint and the pose it is moved to
    rests: float = 0.15  # rad from its park pose at which an arm may rest: soft, or on something
    settle: float = 3.0  # s, waited beyond the time that a move should take
    realtime: bool = False  # take a real-time priority and lock memory, where that is permitted

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name == "realtime" or (name == "stop_s" and value is None):
                continue
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be above 0 and finite, got {value}")
