"""An emulated camera: the scene behind an emulated arm, with tags on its objects, rendered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import mujoco
import numpy as np

from real_robot.perception.camera import CameraModel, Frame
from real_robot.perception.tags import FACES, TaggedObject, box_tags, tag_dictionary
from sims.core.task import Task
from sims.rendering.cameras import Camera, Renderer

Array = np.ndarray

CELL = 32  # px of a tag's cell in its texture
MARGIN = 1  # cells of white round a tag
PLATE = 0.0002  # m, half thickness
SHARE = 0.9  # of an object's face that its plate covers
WATCH = (1280, 960)  # px


class TaggedScene:
    """The scene of ``task`` with a plate on each side of each object, seen by camera "watch".

    Plates have no weight and touch nothing, so the physics is the task's own and so are its state
    rows. Cube, ball and cylinder all get the six plates of the box around them.

    Raises:
        ValueError: The tags changed the physics of the task.
    """

    def __init__(self, task: Task[Any], view: Camera | None = None, tags: str = "aruco4x4"):
        self.view = view or default_view(task)
        spec = task.spec()
        plain = spec.compile()
        self.objects: list[TaggedObject] = []
        for body, name in _objects(plain, task):
            half = _half_sizes(plain, body)
            self.objects.append(_add_plates(spec, name, len(self.objects) * 6, half, tags))
        self.view.add_to(spec)
        self.model = spec.compile()
        if mujoco.mj_stateSize(self.model, _STATE) != mujoco.mj_stateSize(plain, _STATE):
            raise ValueError(f"task {task.name!r}: adding tags changed the physics of its model")
        right, up = self.view.axes()
        self.camera = CameraModel.ideal(
            self.view.width, self.view.height, self.view.fovy, np.array(self.view.pos), right, up
        )


_STATE = mujoco.mjtState.mjSTATE_INTEGRATION


@dataclass(frozen=True)
class PlainScene:
    """The scene of a task as it is, seen by its first camera."""

    view: Camera
    model: mujoco.MjModel

    @classmethod
    def of(cls, task: Task[Any]) -> PlainScene:
        return cls(task.cameras[0], task.spec().compile())


def default_view(task: Task[Any], turn: float = 0.0) -> Camera:
    """The front camera's place, ``turn`` rad round what it looks at, seen from above."""
    front = task.cameras[0]
    width, height = WATCH
    x, y, z = np.subtract(front.pos, front.target)
    away = x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn), z
    pos = tuple(float(p) for p in np.add(front.target, away))
    return Camera("watch", pos, front.target, front.fovy, height, width)


def _objects(model: mujoco.MjModel, task: Task[Any]) -> list[tuple[int, str]]:
    """(body, entity) of the loose objects."""
    out = []
    for entity in task.entities():
        body = model.body(entity.body)
        joint = int(body.jntadr[0])
        if joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            out.append((body.id, entity.name))
    return out


def _half_sizes(model: mujoco.MjModel, body: int) -> Array:
    """Half sizes (3,) m of the box round a body's one geom."""
    geom = int(model.body_geomadr[body])
    if model.body_geomnum[body] != 1:
        raise ValueError(
            f"body {model.body(body).name!r} has more than one geom; a tagged body must "
            "have exactly one"
        )
    return np.array(model.geom_aabb[geom, 3:])


def _add_plates(spec: mujoco.MjSpec, name: str, first: int, half: Array, tags: str) -> TaggedObject:
    """Puts six plates on body ``name``."""
    words = tag_dictionary(tags)
    cells = words.markerSize + 2
    plate = 2 * SHARE * float(half.min())
    tag = plate * cells / (cells + 2 * MARGIN)
    outside = half + 2 * PLATE
    body = spec.body(name)
    for index, (normal, up) in enumerate(FACES):
        label = f"{name}_tag{index}"
        picture = cv2.aruco.generateImageMarker(words, first + index, cells * CELL)
        picture = cv2.copyMakeBorder(picture, *[MARGIN * CELL] * 4, cv2.BORDER_CONSTANT, value=255)
        texture = spec.add_texture(name=label, type=mujoco.mjtTexture.mjTEXTURE_2D)
        texture.width = texture.height = len(picture)
        texture.nchannel = 3
        texture.data = np.repeat(picture[..., None], 3, axis=2).tobytes()
        material = spec.add_material(name=label)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = label
        material.texrepeat, material.texuniform = [1, 1], False
        material.emission, material.specular, material.shininess = 0.4, 0.0, 0.0
        geom = body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[plate / 2, plate / 2, PLATE],
            pos=normal * (half + PLATE),
            material=label,
            contype=0,
            conaffinity=0,
            mass=0.0,
        )
        right = np.cross(up, normal)
        frame, quat = np.column_stack([right, up, normal]), np.empty(4)
        mujoco.mju_mat2Quat(quat, frame.ravel())
        geom.quat = quat
    return box_tags(name, first, outside, tag)


class EmulatedCamera:
    """FrameSource: renders what ``state`` returns, (row (nstate,), t s), in the caller's thread."""

    def __init__(self, scene: TaggedScene | PlainScene, state: Callable[[], tuple[Array, float]]):
        self._scene, self._state = scene, state
        self._renderer: Renderer | None = None

    def read(self) -> Frame:
        """A picture of the scene as it is."""
        if self._renderer is None:  # a renderer belongs to the thread that made it
            view = self._scene.view
            self._renderer = Renderer(self._scene.model, view.height, view.width)
        row, t = self._state()
        return Frame(self._renderer.frames(row[None], self._scene.view.name)[0].copy(), t)

    def close(self) -> None:
        """Frees the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
