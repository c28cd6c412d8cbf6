"""Perception by tags: ArUco or AprilTag markers on objects, seen by a calibrated camera."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import mujoco
import numpy as np

from real_robot.core.pacing import Clock, RealClock
from real_robot.core.threads import join_or_leave
from real_robot.perception.base import Pose
from real_robot.perception.camera import CameraModel, CameraSource

Array = np.ndarray

FAMILIES = {
    "aruco4x4": cv2.aruco.DICT_4X4_50,
    "apriltag16h5": cv2.aruco.DICT_APRILTAG_16H5,
    "apriltag25h9": cv2.aruco.DICT_APRILTAG_25H9,
    "apriltag36h11": cv2.aruco.DICT_APRILTAG_36H11,
}
GOOD = 0.6  # px, root mean square: where corners fit worse, the worst tag is left out
WORST = 1.0  # px: a pose that fits its corners worse is not believed


def tag_dictionary(name: str) -> cv2.aruco.Dictionary:
    """The dictionary of tag family ``name``.

    Raises:
        ValueError: There is no such family.
    """
    if name not in FAMILIES:
        raise ValueError(f"unknown tag family {name!r}; available: {', '.join(FAMILIES)}")
    return cv2.aruco.getPredefinedDictionary(FAMILIES[name])


@dataclass(frozen=True)
class TaggedObject:
    """An object and its tags: {id: corners (4, 3) m in the object's frame}.

    Corners go clockwise from the tag's own top left, as seen from outside.
    """

    entity: str
    tags: Mapping[int, Array]


def box_tags(entity: str, first: int, half: Sequence[float], side: float) -> TaggedObject:
    """Six tags ``first`` to ``first + 5`` of ``side`` m on a box of half sizes (3,) m.

    In order +x, -x, +y, -y, +z, -z. A tag's up is +z on the sides, and +x on top and bottom.
    """
    tags = {}
    for index, (normal, up) in enumerate(FACES):
        right = np.cross(up, normal)
        centre = normal * np.asarray(half)
        tags[first + index] = np.array(
            [
                centre + side / 2 * (up - right),
                centre + side / 2 * (up + right),
                centre + side / 2 * (-up + right),
                centre + side / 2 * (-up - right),
            ]
        )
    return TaggedObject(entity, tags)


_X, _Y, _Z = np.eye(3)
FACES = ((_X, _Z), (-_X, _Z), (_Y, _Z), (-_Y, _Z), (_Z, _X), (-_Z, _X))  # outward normal, up


class TagLocator:
    """From one picture to the poses of the tagged objects in it.

    Raises:
        ValueError: Two tags have one id.
    """

    def __init__(
        self, camera: CameraModel, objects: Sequence[TaggedObject], tags: str = "aruco4x4"
    ):
        self._camera, self._objects = camera, tuple(objects)
        ids = [i for thing in objects for i in thing.tags]
        if len(set(ids)) != len(ids):
            raise ValueError(f"tag ids must be unique, got {sorted(ids)}")
        parameters = cv2.aruco.DetectorParameters()
        parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
        parameters.cornerRefinementWinSize = 3
        self._detector = cv2.aruco.ArucoDetector(tag_dictionary(tags), parameters)

    def corners(self, image: Array) -> dict[int, Array]:
        """{tag id: corners (4, 2) px} of all tags seen in ``image`` (H, W, 3) RGB.

        Raises:
            ValueError: The image has another size than the calibration.
        """
        expected = (self._camera.height, self._camera.width)
        if image.shape[:2] != expected:
            raise ValueError(
                f"image has shape {image.shape[:2]}, expected {expected} as calibrated"
            )
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        found, ids, _ = self._detector.detectMarkers(grey)
        if ids is None:
            return {}
        return {int(i): c.reshape(4, 2) for i, c in zip(np.ravel(ids), found, strict=True)}

    def locate(self, image: Array) -> dict[str, tuple[Array, Array]]:
        """{entity: (pos (3,) m, quat (4,) wxyz) in the world} of those that were seen well."""
        seen = self.corners(image)
        out = {}
        for thing in self._objects:
            common = [i for i in thing.tags if i in seen]
            while common:
                points = np.concatenate([thing.tags[i] for i in common])
                pixels = np.concatenate([seen[i] for i in common])
                pose, errors = self._solve(points, pixels)
                error = float(np.sqrt((errors**2).mean()))
                if error <= GOOD or len(common) == 1:
                    if error <= WORST:
                        out[thing.entity] = pose
                    break
                # A corner that a finger covers spoils its tag.
                del common[int((errors**2).reshape(-1, 4).sum(axis=1).argmax())]
        return out

    def _solve(self, points: Array, pixels: Array) -> tuple[tuple[Array, Array], Array]:
        """The world pose that puts ``points`` (n, 3) m at ``pixels`` (n, 2), and errors (n,) px."""
        camera = self._camera
        method = cv2.SOLVEPNP_IPPE if len(points) == 4 else cv2.SOLVEPNP_SQPNP
        lens = camera.matrix, camera.distortion
        count, turns, moves, _ = cv2.solvePnPGeneric(points, pixels, *lens, flags=method)
        best, least = None, np.full(len(points), np.inf)
        for k in range(count):
            turn, move = cv2.solvePnPRefineLM(points, pixels, *lens, turns[k], moves[k])
            again, _ = cv2.projectPoints(points, turn, move, *lens)
            errors = np.linalg.norm(again.reshape(-1, 2) - pixels, axis=1)
            if (errors**2).sum() < (least**2).sum():
                best, least = (turn, move), errors
        if best is None:
            return (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])), least
        turn, _ = cv2.Rodrigues(best[0])
        rotation = camera.rotation.T @ turn
        pos = camera.rotation.T @ (best[1].ravel() - camera.translation)
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, np.ascontiguousarray(rotation).ravel())
        return (pos, quat), least


def save_tags(path: Path, objects: Sequence[TaggedObject], tags: str) -> None:
    """Writes which tags are where on which objects, as JSON."""
    entries = {o.entity: {str(i): c.tolist() for i, c in o.tags.items()} for o in objects}
    path.write_text(json.dumps({"family": tags, "objects": entries}, indent=1) + "\n")


def load_tags(path: Path) -> tuple[list[TaggedObject], str]:
    """Reads what ``save_tags`` wrote: (objects, family).

    Raises:
        ValueError: The file holds no tag layout.
    """
    try:
        told = json.loads(path.read_text())
        tag_dictionary(told["family"])
        objects = [
            TaggedObject(name, {int(i): np.array(c, float).reshape(4, 3) for i, c in tags.items()})
            for name, tags in told["objects"].items()
        ]
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a tag layout file: {error!r}") from error
    return objects, told["family"]


class TagPerception:
    """Perception from a camera.

    After ``start`` a thread looks, and ``read`` returns the newest poses at once. Without a thread,
    ``read`` itself looks once in ``period`` s of ``clock``: for compressed time. What is not seen
    keeps its old pose, which grows old.
    """

    def __init__(
        self,
        source: CameraSource,
        locator: TagLocator,
        *,
        clock: Clock | None = None,
        period: float = 1 / 30,
    ):
        self._source, self._locator = source, locator
        self._clock, self._period = clock or RealClock(), period
        self._poses: dict[str, Pose] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked = -math.inf
        self.frames = 0

    def start(self) -> TagPerception:
        """Begins to look."""
        self._thread = threading.Thread(target=self._watch, daemon=True, name="tags")
        self._thread.start()
        return self

    def look(self) -> None:
        """Takes in one picture."""
        frame = self._source.read()
        found = self._locator.locate(frame.image)
        fresh = {name: Pose(pos, quat, frame.t) for name, (pos, quat) in found.items()}
        self._poses = {**self._poses, **fresh}
        self.frames += 1

    def read(self) -> Mapping[str, Pose]:
        """{entity: newest pose}."""
        now = self._clock.now_ns() * 1e-9
        if self._thread is None and now - self._looked >= self._period:
            self._looked = now
            self.look()
        return self._poses

    def _watch(self) -> None:
        # A camera that fails leaves poses that grow old, which stops the run.
        try:
            while not self._stopping.is_set():
                self.look()
        except (OSError, ValueError) as error:
            print(f"a camera stopped: {error}", file=sys.stderr)

    def close(self) -> None:
        """Stops looking; a camera that does not answer is left."""
        self._stopping.set()
        if self._thread is not None:
            join_or_leave(self._thread, "a camera's thread")
            self._thread = None
