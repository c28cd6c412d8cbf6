"""Frames of stored states: a camera, a look, and the tuned offscreen renderer.

A frame is a pure function of a state row and a look, so nothing is rendered until someone asks.
Shadows, reflections and anti-aliasing cost most of a software-GL frame and tell a reward model
nothing: they are off, and the offscreen buffer is exactly the image.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes.util
import dataclasses
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from sims.utils.versions import noted

Array = np.ndarray

BACKENDS = ("egl", "osmesa", "glfw")
GL_RENDERER, GL_VERSION = 0x1F01, 0x1F02
SKY = (0.72, 0.78, 0.84)
ROOM = 10.0  # m, half the side of the least plane that is a floor, and no table
FLOOR = 2_000.0  # m, that of a floor as it is drawn: a cheetah runs 500 in an episode
# A vertex costs software GL more than a pixel. Cylinders and spheres have 16 rings by default; of 8
# a small frame of a scene of balls and arms is the same but for a pixel or two, in 2/3 of the time.
COARSE_UP_TO = 128  # px
COARSE_STACKS = 8

# One of a process's renderers draws at a time: software GL looks, while it draws for one context,
# at what the others are drawing, unguarded (Mesa 22.3; a SIGSEGV once in some 100,000 frames).
# ``render_pool`` draws side by side in processes.
_screen = threading.RLock()
_left: list[tuple[Any, mujoco.MjrContext]] = []  # of renderers that nobody closed, to be freed


class RenderError(RuntimeError):
    """No OpenGL backend works here."""


@dataclass(frozen=True)
class Camera:
    """A camera looking from ``pos`` at ``target``; angles in degrees, lengths in m.

    With a ``body`` both are relative to it, and the camera goes where the body goes, not turning.
    """

    name: str
    pos: tuple[float, float, float]
    target: tuple[float, float, float]
    fovy: float = 45.0  # deg, vertical
    height: int = 96  # px
    width: int = 96  # px
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    body: str = ""  # what it follows; empty: it stands still

    def axes(self) -> tuple[Array, Array]:
        """Returns the image's right and up directions, (3,) each, in the world."""
        forward = np.subtract(self.target, self.pos)
        right = np.cross(forward, self.up)
        right = right / np.linalg.norm(right)
        up = np.cross(right, forward)
        return right, up / np.linalg.norm(up)

    def sees(self, points: Array, look: Appearance | None = None) -> Array:
        """Returns whether world points (n, 3) are in its frames, (n,) bool, rendered with ``look``.

        What stands before them is not asked for; a camera that follows a body has all in view.
        """
        if self.body:
            return np.ones(len(points), bool)
        look = look or Appearance()
        right, up = self.axes()
        own = np.stack([right, up, np.cross(right, up)], axis=1)  # columns: right, up, back
        off = (points - np.asarray(self.pos)) @ own
        if look.camera_offset is not None:
            off = off - look.camera_offset
        if look.camera_roll is not None:
            off = _turned(off, -look.camera_roll)
        half = np.tan(np.deg2rad(self.fovy * (1.0 if look.fovy is None else look.fovy) / 2))
        ahead = -off[:, 2] * half
        wide = ahead * self.width / self.height
        return (np.abs(off[:, 0]) < wide) & (np.abs(off[:, 1]) < ahead)

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Adds the camera to the world of ``spec``, or to its body."""
        right, up = self.axes()
        holder = spec.body(self.body) if self.body else spec.worldbody
        camera = holder.add_camera(name=self.name, pos=self.pos, fovy=self.fovy)
        if self.body:
            camera.mode = mujoco.mjtCamLight.mjCAMLIGHT_TRACK
        camera.alt.type = mujoco.mjtOrientation.mjORIENTATION_XYAXES
        camera.alt.xyaxes = [*right, *up]


@dataclass(frozen=True)
class Appearance:
    """Per-frame changes of how a scene looks; None leaves the scene as it is.

    ``geom_rgba`` {geom name: (n, 4)}, ``light`` (n,) factor on every light, ``camera_offset``
    (n, 3) m in the camera's own axes (right, up, back), ``camera_roll`` (n, 3) rad small rotation
    about those axes, ``fovy`` (n,) factor. ``numbered`` paints every geom in a number of its own,
    which ``geom_ids`` reads.
    """

    geom_rgba: dict[str, Array] | None = None
    light: Array | None = None
    camera_offset: Array | None = None
    camera_roll: Array | None = None
    fovy: Array | None = None
    numbered: bool = False

    def rows(self, part: slice) -> Appearance:
        """The look of some of its frames."""
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        rgba, numbered = given.pop("geom_rgba"), given.pop("numbered")
        return Appearance(
            numbered=numbered,
            geom_rgba=None if rgba is None else {name: rows[part] for name, rows in rgba.items()},
            **{name: None if rows is None else rows[part] for name, rows in given.items()},
        )


def geom_ids(frames: Array) -> Array:
    """Ids (n, H, W) of the geoms that ``numbered`` frames (n, H, W, 3) show; -1 where there is
    none."""
    return frames.astype(np.int32) @ np.array([1, 1 << 8, 1 << 16], np.int32) - 1


def _turned(points: Array, turn: Array) -> Array:
    """Points (n, 3) turned about ``turn`` (n, 3) rad (Rodrigues)."""
    angle = np.linalg.norm(turn, axis=1, keepdims=True)
    axis = turn / np.maximum(angle, 1e-12)
    along = np.sum(axis * points, axis=1, keepdims=True) * axis
    across = np.cross(axis, points)
    return along + np.cos(angle) * (points - along) + np.sin(angle) * across


def sky_textures(spec: mujoco.MjSpec) -> list[mujoco.MjsTexture]:
    """What is behind everything."""
    return [t for t in spec.textures if t.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX]


def add_sky(spec: mujoco.MjSpec) -> None:
    """One colour behind everything, where there would be black; a sky of its own stays."""
    if sky_textures(spec):
        return
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        rgb1=SKY,
        width=1,
        height=6,
    )


def preload_triton() -> None:
    """Loads triton, where it is installed: call it before a process's first OpenGL context.

    Triton and software GL bring an LLVM each, and triton's crashes when it comes second: whoever
    draws and then makes one of torch's optimisers, which import triton, would die of it.
    """
    with contextlib.suppress(ImportError):
        importlib.import_module("triton")


def _open_context(
    model: mujoco.MjModel, height: int, width: int, asked: str
) -> tuple[str, Any, mujoco.MjrContext]:
    """The backend ``asked`` for, else the first that works, a current GL context of it, and
    MuJoCo's own on that."""
    asked = asked or os.environ.get("MUJOCO_GL", "").strip().lower()
    if asked and asked not in BACKENDS:
        raise RenderError(f"MUJOCO_GL must be one of {', '.join(BACKENDS)}, got {asked!r}")
    preload_triton()
    failures = []
    for backend in [asked] if asked else BACKENDS:
        library = {"egl": "EGL", "osmesa": "OSMesa"}.get(backend)
        if library and not ctypes.util.find_library(library):
            failures.append(f"{backend}: lib{library} is not installed")
            continue
        if library and os.environ.get("PYOPENGL_PLATFORM", backend) != backend:
            # PyOpenGL binds one platform at its first import: forget the one that failed.
            del os.environ["PYOPENGL_PLATFORM"]
            for name in [m for m in sys.modules if m.split(".")[0] == "OpenGL"]:
                del sys.modules[name]
        try:
            context = importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
            context.make_current()
            # GLFW without a display says nothing until MuJoCo asks for its functions.
            own = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50)
            _record_gl_backend(backend)
            return backend, context, own
        except mujoco.FatalError:
            failures.append(f"{backend}: gives no OpenGL context")
        except (ImportError, AttributeError, RuntimeError, OSError, ValueError) as error:
            failures.append(f"{backend}: {error or type(error).__name__}")
        except Exception as error:  # PyOpenGL's own errors share no base class with the above
            if type(error).__module__.split(".")[0] not in ("OpenGL", "glfw"):
                raise
            failures.append(f"{backend}: {type(error).__name__}")
    raise RenderError(
        "no OpenGL backend works ("
        + "; ".join(failures)
        + "). Install one: apt install libegl1 libgl1-mesa-dri (EGL) or libosmesa6 (OSMesa)"
    )


def _record_gl_backend(backend: str) -> None:
    """Has ``versions()`` say which OpenGL renders here, if it tells: frames hang on it."""
    if "opengl" in noted:
        return
    name = ctypes.util.find_library("OSMesa" if backend == "osmesa" else "GL")
    if name and hasattr(library := ctypes.CDLL(name), "glGetString"):
        library.glGetString.restype = ctypes.c_char_p
        told = (library.glGetString(what) for what in (GL_RENDERER, GL_VERSION))
        noted["opengl"] = ", ".join(text.decode(errors="replace") for text in told if text)


def working_gl_backend() -> str:
    """The OpenGL backend that works here, of $MUJOCO_GL or the first of BACKENDS; RenderError where
    none does."""
    renderer = Renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 1, 1)
    renderer.close()
    return renderer.backend


def _extend_floors(model: mujoco.MjModel) -> None:
    """Floors of who is followed by a camera, drawn as far as anybody runs, in the same squares."""
    planes = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
    for plane in np.flatnonzero(planes & (model.geom_size[:, 0] >= ROOM)):
        material = model.geom_matid[plane]
        if material >= 0 and not model.mat_texuniform[material]:
            model.mat_texrepeat[material] /= model.geom_size[plane, :2]  # now per m
            model.mat_texuniform[material] = True
        model.geom_size[plane, :2] = FLOOR


class Renderer:
    """Renders stored state rows of one model; belongs to the thread that made it.

    ``backend`` is one of BACKENDS; by default $MUJOCO_GL says, or the first that works.
    """

    def __init__(self, model: mujoco.MjModel, height: int, width: int, *, backend: str = ""):
        # A private copy: looks and the offscreen size are written into it.
        self._model = copy.copy(model)
        self._model.vis.quality.shadowsize = 0
        self._model.vis.quality.offsamples = 0
        self._model.vis.global_.offheight, self._model.vis.global_.offwidth = height, width
        if (self._model.cam_mode != mujoco.mjtCamLight.mjCAMLIGHT_FIXED).any():
            _extend_floors(self._model)
        if max(height, width) <= COARSE_UP_TO:
            quality = self._model.vis.quality
            quality.numstacks = min(quality.numstacks, COARSE_STACKS)
        self._thread = threading.get_ident()
        with _screen:
            for lost in list(_left):
                with contextlib.suppress(Exception):  # not while it is current in another thread
                    _free(*lost)
                    _left.remove(lost)
            opened = _open_context(self._model, height, width, backend)
        self.backend, self._gl, self._context = opened
        self._data = mujoco.MjData(self._model)
        self._scene = mujoco.MjvScene(self._model, maxgeom=max(200, 2 * self._model.ngeom))
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = 0
        self._option = mujoco.MjvOption()
        self._option.sitegroup[:] = 0
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        with _screen:
            self._gl.make_current()
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self._spec = mujoco.mjtState.mjSTATE_INTEGRATION
        self.nstate = mujoco.mj_stateSize(self._model, self._spec)

    def frames(self, states: Array, camera: str, look: Appearance | None = None) -> Array:
        """Returns frames (n, H, W, 3) uint8 of stored states.

        Args:
            states: (n, nstate) MuJoCo states.
            camera: a camera's name.
            look: what differs from the model's own look, for each of the n states.

        Raises:
            RenderError: another thread created the renderer, or it is closed.
            ValueError: the states have another shape.
        """
        if threading.get_ident() != self._thread:
            raise RenderError(
                "a Renderer can be used only in the thread that created it; create one per thread"
            )
        if self._gl is None:
            raise RenderError("this Renderer is closed; create a new one")
        states = np.ascontiguousarray(states, float)
        if states.ndim != 2 or states.shape[1] != self.nstate:
            raise ValueError(f"states must have shape (n, {self.nstate}), got {states.shape}")
        model, data = self._model, self._data
        self._camera.fixedcamid = _camera_id(model, camera)
        out = np.empty((len(states), self._rect.height, self._rect.width, 3), np.uint8)
        numbered = look is not None and look.numbered
        for flag in (mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR):
            self._scene.flags[flag] = numbered
        with self._restored(look):
            for i, state in enumerate(states):
                if look is not None:
                    self._apply(look, i)
                mujoco.mj_setState(model, data, state, self._spec)
                mujoco.mj_kinematics(model, data)
                mujoco.mj_camlight(model, data)
                mujoco.mjv_updateScene(
                    model,
                    data,
                    self._option,
                    None,
                    self._camera,
                    mujoco.mjtCatBit.mjCAT_ALL,
                    self._scene,
                )
                for geom in self._scene.geoms[: self._scene.ngeom if numbered else 0]:
                    ours = geom.objtype == mujoco.mjtObj.mjOBJ_GEOM
                    geom.segid = geom.objid if ours else -1
                with _screen:
                    self._gl.make_current()
                    mujoco.mjr_render(self._rect, self._scene, self._context)
                    mujoco.mjr_readPixels(out[i], None, self._rect, self._context)
        return out[:, ::-1]  # OpenGL's first row is the bottom one

    def describe(self) -> str:
        """What draws: the backend and the name that its OpenGL gives itself."""
        from OpenGL import GL  # the platform is chosen by now

        with _screen:
            self._gl.make_current()
            return f"{self.backend}, {GL.glGetString(GL.GL_RENDERER).decode()}"

    @contextlib.contextmanager
    def _restored(self, look: Appearance | None) -> Iterator[None]:
        model, self._base = self._model, None
        if look is not None:
            self._base = (
                model.geom_rgba.copy(),
                model.light_diffuse.copy(),
                model.light_ambient.copy(),
                model.cam_pos.copy(),
                model.cam_quat.copy(),
                model.cam_fovy.copy(),
                model.vis.headlight.ambient.copy(),
                model.vis.headlight.diffuse.copy(),
            )
        try:
            yield
        finally:
            if self._base is not None:
                rgba, diffuse, ambient, pos, quat, fovy, head_ambient, head_diffuse = self._base
                model.geom_rgba[:], model.light_diffuse[:] = rgba, diffuse
                model.light_ambient[:], model.cam_pos[:] = ambient, pos
                model.cam_quat[:], model.cam_fovy[:] = quat, fovy
                model.vis.headlight.ambient[:] = head_ambient
                model.vis.headlight.diffuse[:] = head_diffuse

    def _apply(self, look: Appearance, i: int) -> None:
        assert self._base is not None
        model, camera = self._model, self._camera.fixedcamid
        _, diffuse, ambient, pos, quat, fovy, head_ambient, head_diffuse = self._base
        for name, rgba in (look.geom_rgba or {}).items():
            model.geom(name).rgba = rgba[i]
        if look.light is not None:
            model.light_diffuse[:] = diffuse * look.light[i]
            model.light_ambient[:] = ambient * look.light[i]
            model.vis.headlight.ambient[:] = head_ambient * look.light[i]
            model.vis.headlight.diffuse[:] = head_diffuse * look.light[i]
        axes = np.empty(9)
        mujoco.mju_quat2Mat(axes, quat[camera])
        if look.camera_offset is not None:
            model.cam_pos[camera] = pos[camera] + axes.reshape(3, 3) @ look.camera_offset[i]
        if look.camera_roll is not None:
            turn, turned = np.empty(4), np.empty(4)
            angle = float(np.linalg.norm(look.camera_roll[i]))
            axis = look.camera_roll[i] / max(angle, 1e-12)
            mujoco.mju_axisAngle2Quat(turn, axis, angle)
            mujoco.mju_mulQuat(turned, quat[camera], turn)
            model.cam_quat[camera] = turned
        if look.fovy is not None:
            model.cam_fovy[camera] = fovy[camera] * look.fovy[i]

    def close(self) -> None:
        """Frees the GL context; safe to call twice."""
        if self._gl is not None:
            with _screen:
                _free(self._gl, self._context)
            self._gl = None

    def __del__(self) -> None:
        # Garbage may be collected while this thread draws with another renderer, whose context
        # must stay current, or in another thread than that where this one's context is: then it is
        # freed when the next renderer is made.
        if getattr(self, "_gl", None) is None or sys.is_finalizing():
            return
        if _screen._is_owned() or threading.get_ident() != self._thread:
            _left.append((self._gl, self._context))
        else:
            self.close()


def _free(gl: Any, context: mujoco.MjrContext) -> None:
    # GL frees by number in whichever context is current: another renderer's, if not this one's.
    gl.make_current()
    context.free()
    gl.free()


def _camera_id(model: mujoco.MjModel, name: str) -> int:
    known = [model.camera(i).name for i in range(model.ncam)]
    if name not in known:
        raise ValueError(f"unknown camera {name!r}; available: {', '.join(known)}")
    return known.index(name)
