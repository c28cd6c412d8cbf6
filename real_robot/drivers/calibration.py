"""Calibration of an arm's servos: where zero is and how far each joint may turn.

The file is JSON with one object per joint, in the form that lerobot writes and reads too:
``{"shoulder_pan": {"id": 1, "drive_mode": 0, "homing_offset": -12, "range_min": 825, "range_max":
3269}, ...}``. Positions are encoder steps after the homing offset; zero of an arm joint is the
middle of its range unless an arm says which angle is there, drive mode 1 turns it the other way
round. The gripper is closed at the low end of its range in its own direction.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

Array = np.ndarray

TICKS = 4096  # encoder steps in a turn
UNIT = 2 * np.pi / TICKS  # rad
UNFINISHED = (1, 1)  # steps: the range of a servo whose zero is new and whose range is not known


@dataclass(frozen=True)
class JointCalibration:
    """One servo.

    Raises:
        ValueError: A field is no whole number, or none that a servo can have.
    """

    id: int
    drive_mode: int  # 1: turns against the joint
    homing_offset: int  # steps, what the servo takes off its encoder's reading, or adds to it
    range_min: int  # steps
    range_max: int  # steps

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"calibration: {name} must be a whole number, got {value!r}")
        if self.drive_mode not in (0, 1) or not 0 < self.id < 254:
            raise ValueError(
                f"calibration: drive_mode must be 0 or 1 and id from 1 to 253, got "
                f"{self.drive_mode} and {self.id}"
            )
        if abs(self.homing_offset) > TICKS // 2:
            raise ValueError(
                f"calibration: homing_offset must be from -2048 to 2048, got {self.homing_offset}"
            )
        if not 0 <= self.range_min < self.range_max < TICKS:
            raise ValueError(
                f"calibration of servo {self.id}: 0 <= range_min < range_max < {TICKS} must hold, "
                f"got {self.range_min} and {self.range_max}"
            )


class Calibration:
    """The calibration of joints in order, base to tool and gripper last.

    ``middle`` (n - 1,) rad is where the arm joints are in the middle of their ranges; None: at 0.
    ``reversing``: the servos themselves count the other way in drive mode 1.
    """

    def __init__(
        self,
        joints: Mapping[str, JointCalibration],
        middle: Array | None = None,
        reversing: bool = False,
    ):
        self.joints = dict(joints)
        parts = list(self.joints.values())
        self.low = np.array([j.range_min for j in parts])  # (n,) steps
        self.high = np.array([j.range_max for j in parts])
        self.sign = np.array([1 if reversing else 1 - 2 * j.drive_mode for j in parts])
        self.middle = np.zeros(len(parts) - 1) if middle is None else middle

    @property
    def sha256(self) -> str:
        """What a bundle or a log names it by."""
        text = json.dumps({k: asdict(j) for k, j in self.joints.items()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def angles(self, ticks: Array) -> Array:
        """Angles (n - 1,) rad of the arm joints at positions (n,) in steps."""
        middle = (self.low + self.high) / 2
        return self.middle + (self.sign * (ticks - middle) * UNIT)[:-1]

    def opening(self, tick: float) -> float:
        """The gripper's opening, 0 closed to 1 open."""
        share = (tick - self.low[-1]) / (self.high[-1] - self.low[-1])
        return float(share if self.sign[-1] > 0 else 1.0 - share)

    def ticks(self, qpos: Array, gripper: float) -> Array:
        """Whole positions (n,) for angles (n - 1,) rad and an opening, inside the range."""
        share = gripper if self.sign[-1] > 0 else 1.0 - gripper
        middle = (self.low + self.high) / 2
        turned = np.asarray(qpos, float) - self.middle
        arm = middle[:-1] + self.sign[:-1] * turned / UNIT
        jaw = self.low[-1] + share * (self.high[-1] - self.low[-1])
        return np.clip(np.round([*arm, jaw]), self.low, self.high).astype(int)

    @property
    def range(self) -> Array:
        """The arm joints' ranges (n - 1, 2) rad, low and high."""
        half = ((self.high - self.low) / 2 * UNIT)[:-1]
        return np.column_stack([self.middle - half, self.middle + half])

    def save(self, path: Path) -> None:
        """Writes the file, whole or not at all."""
        text = json.dumps({k: asdict(j) for k, j in self.joints.items()}, indent=2)
        draft = path.with_name(path.name + ".new")
        draft.write_text(text + "\n")
        draft.replace(path)

    @classmethod
    def load(cls, path: Path, names: Sequence[str]) -> Calibration:
        """Reads a file; ValueError where it does not describe the joints ``names``."""
        try:
            data = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is not a calibration file: {error}") from error
        if not isinstance(data, dict) or set(data) != set(names):
            got = ", ".join(data) if isinstance(data, dict) else type(data).__name__
            raise ValueError(f"{path}: expected the joints {', '.join(names)}; got {got}")
        try:
            return cls({name: JointCalibration(**data[name]) for name in names})
        except TypeError as error:
            raise ValueError(f"{path}: {error}") from error
