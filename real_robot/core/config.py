"""RunConfig: what a run allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sims.core.pose_filter import DRIFT, NOISE


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What a run allows; the defaults are slow and careful.

    Raises:
        ValueError: A field is not above 0 and finite.
    """

    max_age: float = 0.1  # s, oldest measurement to act on
    max_pose_age: float = 0.3  # s, oldest object pose to act on without the occlusion bound below
    max_hidden: float = 3.0  # s, the same for an occluded object that moved max_doubt at most
    max_doubt: float = 0.03  # m, largest distance that an unseen object may have moved
    pose_noise: float = NOISE  # m, standard deviation of a measured position on each axis
    pose_drift: float = DRIFT  # m/sqrt(s), random-walk drift assumed of an unseen object
    max_retries: int = 4  # consecutive ticks without a measurement that are tolerated
    max_spoilt: float = 0.02  # share of one second's measurements that may be corrupt
    max_lost: float = 0.25  # share of a window's measurements that may be missing
    max_missed: float = 0.25  # share of a window's periods that the loop may miss
    window: float = 2.0  # s
    max_gap: float = 0.3  # s, longest single delay of the loop
    margin: float = 0.02  # rad, distance kept from the ends of the joint range
    lag: float = 0.6  # rad, largest distance between a target and its joint
    tool_speed: float = 1.0  # m/s
    stop_s: float | None = None  # s, longest time to brake to rest; None: no limit
    clearance: float = 0.005  # m kept between the arm and itself or the table
    patience: float = 2.5  # s of uninterrupted limiting that are reported; twice as long stops
    handover: float = 1.0  # s over which control is blended to the operator or policy taking over
    stall: float = 0.5  # s of full effort without motion that count as a stall
    leaning: float = 3.0  # s of the same for motors whose torque is reduced to avoid overload
    align_speed: float = 0.5  # rad/s, speed of the fastest joint on the way to the start pose
    align_max: float = 1.6  # rad, a joint farther than this from the start set is not moved there
    park_speed: float = 0.5  # rad/s
    arrive: float = 0.03  # rad, distance from the target pose that counts as arrived
    rests: float = 0.15  # rad from the park pose within which torque may be switched off
    settle: float = 3.0  # s to wait beyond the time that a move should take
    realtime: bool = False  # use a real-time priority and lock memory, where permitted

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name == "realtime" or (name == "stop_s" and value is None):
                continue
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be above 0 and finite, got {value}")
