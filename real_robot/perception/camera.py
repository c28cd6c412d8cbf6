"""A calibrated camera: how it projects, where it stands, and where its frames come from."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import cv2
import numpy as np

from real_robot.core.pacing import Clock, RealClock

Array = np.ndarray


class Frame(NamedTuple):
    """One picture."""

    image: Array  # (H, W, 3) uint8 RGB
    t: float  # s, monotonic: when it was taken, as well as the source can know


class CameraSource(Protocol):
    """Where pictures come from."""

    def read(self) -> Frame:
        """The newest picture; may wait for it."""
        ...


class RecordedCamera:
    """A camera whose pictures a log gets too, as JPEG, from the thread that reads it."""

    def __init__(self, source: CameraSource, name: str):
        self.name, self._source = name, source
        self._sink: Callable[[str, bytes, float], None] | None = None

    def read(self) -> Frame:
        """The newest picture."""
        frame = self._source.read()
        if (sink := self._sink) is not None:
            done, jpeg = cv2.imencode(
                ".jpg", cv2.cvtColor(frame.image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 90]
            )
            if done:
                sink(self.name, jpeg.tobytes(), frame.t)
        return frame

    @contextlib.contextmanager
    def to(self, sink: Callable[[str, bytes, float], None]) -> Iterator[None]:
        """Inside, every picture goes to ``sink(name, jpeg, t)`` as well."""
        self._sink = sink
        try:
            yield
        finally:
            self._sink = None


QUEUE = 300  # pictures that a camera may have in store
FROZEN = 2.0  # s; noise alone makes two pictures differ
UNKNOWN = 30.0  # pictures a second, of a camera that does not say


class VideoDevice:
    """A camera that OpenCV opens: a device number, a path or a URL.

    Whoever looks more seldom than it takes pictures finds old ones waiting, more with every look
    where they come over a network. They are thrown away until one has to be waited for. A camera
    that repeats one picture for 2 s has failed.

    Raises:
        ValueError: The camera cannot be opened.
    """

    def __init__(self, device: int | str, width: int, height: int, clock: Clock | None = None):
        self._clock = clock or RealClock()
        self._capture = cv2.VideoCapture(device)
        if not self._capture.isOpened():
            raise ValueError(f"cannot open camera {device!r}")
        self._capture.set(cv2.CAP_PROP_FRAME_WIDTH, width)
        self._capture.set(cv2.CAP_PROP_FRAME_HEIGHT, height)
        self._capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)  # old pictures are of no use
        self._size = (height, width)
        self._period = 1.0 / (self._capture.get(cv2.CAP_PROP_FPS) or UNKNOWN)
        self._stored = Path(str(device)).is_file()  # a film: its pictures wait for us
        self._image: Array | None = None  # that came last, and since when it has been the same
        self._same_since = 0.0
        self._tells = self._capture.getBackendName() == "V4L2"  # when a picture was taken

    def read(self) -> Frame:
        """The newest picture. Where the camera does not say when it was taken, that was no earlier
        than a period before it was asked for; that is its time then.

        Raises:
            OSError: The camera gives no more pictures, or repeats one.
            ValueError: A picture has another size than the calibration.
        """
        asked = self._grab()
        done, image = self._capture.retrieve()
        if not done:
            raise OSError("the camera gives no more pictures")
        if image.shape[:2] != self._size:
            raise ValueError(
                f"camera image is {image.shape[1]}x{image.shape[0]}, calibrated at "
                f"{self._size[1]}x{self._size[0]}"
            )
        self._check_changes(image)
        t = asked - self._period
        if self._tells:  # by the clock that ours reads, too
            told = self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e-3
            t = told if 0.0 <= self._now() - told < 1.0 else t
        return Frame(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), t)

    def _check_changes(self, image: Array) -> None:
        """OSError where a camera has repeated one picture for FROZEN s: its poses would be taken
        for new ones."""
        if self._image is None or not np.array_equal(image, self._image):
            self._image, self._same_since = image.copy(), self._now()
        elif not self._stored and (age := self._now() - self._same_since) > FROZEN:
            raise OSError(f"the camera has repeated one picture for {age:.1f} s: restart it")

    def _grab(self) -> float:
        """Takes pictures in until one was not there yet; when that one was asked for, s."""
        for _ in range(1 if self._stored else QUEUE):
            asked = self._now()
            if not self._capture.grab():
                raise OSError("the camera gives no more pictures")
            if self._now() - asked > 0.2 * self._period:
                break
        return asked

    def _now(self) -> float:
        return self._clock.now_ns() * 1e-9

    def close(self) -> None:
        """Lets go of the camera."""
        self._capture.release()


@dataclass(frozen=True, eq=False)
class CameraModel:
    """Pinhole and distortion after OpenCV, and the camera's place in the robot's world.

    A point p of the world is at ``rotation @ p + translation`` in the camera's frame: x right,
    y down, z ahead.

    Raises:
        ValueError: An array has another shape, or is not finite or no rotation.
    """

    width: int  # px
    height: int
    matrix: Array  # (3, 3) px
    distortion: Array  # (5,) k1 k2 p1 p2 k3
    rotation: Array  # (3, 3)
    translation: Array  # (3,) m

    def __post_init__(self) -> None:
        shapes = {"matrix": (3, 3), "distortion": (5,), "rotation": (3, 3), "translation": (3,)}
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), float)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"camera: {name} must be finite with shape {shape}, got {array}")
            object.__setattr__(self, name, array)
        if np.abs(self.rotation @ self.rotation.T - np.eye(3)).max() > 1e-6:
            raise ValueError("camera: rotation must be a rotation matrix")

    def project(self, points: Array) -> Array:
        """Pixels (n, 2) of world points (n, 3) m."""
        turn, _ = cv2.Rodrigues(self.rotation)
        pixels, _ = cv2.projectPoints(
            np.asarray(points, float), turn, self.translation, self.matrix, self.distortion
        )
        return pixels.reshape(-1, 2)

    def save(self, path: Path) -> None:
        """Writes JSON."""
        fields = {k: np.asarray(v).tolist() for k, v in vars(self).items()}
        path.write_text(json.dumps(fields, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> CameraModel:
        """Reads what ``save`` wrote.

        Raises:
            ValueError: The file holds no calibration.
        """
        try:
            fields: dict[str, Any] = json.loads(path.read_text())
            return cls(**fields)
        except (json.JSONDecodeError, TypeError) as error:
            raise ValueError(f"{path} is not a camera calibration file: {error}") from error

    @classmethod
    def ideal(
        cls, width: int, height: int, fovy: float, pos: Array, right: Array, up: Array
    ) -> CameraModel:
        """A camera without distortion at ``pos`` (3,) m, ``fovy`` in degrees, by its axes."""
        focal = height / 2 / np.tan(np.radians(fovy) / 2)
        # Pixel centres are at whole numbers, so the middle is half a pixel before the half size.
        matrix = [[focal, 0, width / 2 - 0.5], [0, focal, height / 2 - 0.5], [0, 0, 1]]
        rotation = np.array([right, -np.asarray(up), np.cross(np.asarray(up), right)])
        return cls(width, height, np.array(matrix), np.zeros(5), rotation, -rotation @ pos)
