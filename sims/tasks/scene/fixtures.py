"""Furniture of the tabletop: a target, a button, a cabinet with a drawer, a socket for a peg.

Each stands on a mocap body whose origin is on the table, so that a row may put it anywhere.
"""

from __future__ import annotations

import mujoco

from sims.core.task import Entity
from sims.robots.parts import STIFF
from sims.tasks.scene.manipulation import Fixture, Placement

BOX, CYLINDER = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER
SLIDE = mujoco.mjtJoint.mjJNT_SLIDE
Vec3 = tuple[float, float, float]
Rgba = tuple[float, float, float, float]

WOOD: Rgba = (0.72, 0.58, 0.40, 1.0)
PALE: Rgba = (0.93, 0.90, 0.80, 1.0)
STEEL: Rgba = (0.20, 0.20, 0.24, 1.0)
GREEN: Rgba = (0.10, 0.75, 0.20, 1.0)
YELLOW: Rgba = (0.95, 0.80, 0.10, 1.0)
RED: Rgba = (0.90, 0.08, 0.06, 1.0)


def _stand(spec: mujoco.MjSpec, name: str) -> mujoco.MjsBody:
    return spec.worldbody.add_body(name=name, mocap=True)


def _box(body: mujoco.MjsBody, low: Vec3, high: Vec3, rgba: Rgba, name: str = "") -> None:
    """Adds a box that fills ``low`` to ``high`` (m) of ``body``."""
    body.add_geom(
        name=name,
        type=BOX,
        size=[(h - g) / 2 for g, h in zip(low, high, strict=True)],
        pos=[(h + g) / 2 for g, h in zip(low, high, strict=True)],
        rgba=rgba,
        friction=(0.6, 0.01, 0.001),
    )


# A flat green disc that a thing can be put on.
TARGET_RADIUS = 0.04  # m


def _add_target(spec: mujoco.MjSpec) -> None:
    body = _stand(spec, "target")
    body.add_geom(
        name="target",
        type=CYLINDER,
        size=(TARGET_RADIUS, 0.001, 0),
        rgba=GREEN,
        contype=0,
        conaffinity=0,
    )
    body.add_site(name="target", group=4)


TARGET = Fixture(
    "target",
    _add_target,
    (
        Entity(
            "target",
            ("target", "goal", "disc", "spot", "mark", "pad"),
            "green",
            "target",
            ("touch",),
            "target",
            "target_pos",
            (TARGET_RADIUS, TARGET_RADIUS, 0.0),
        ),
    ),
    places=(Placement("target", aside=TARGET_RADIUS / 2),),
)


# A button: a yellow cap on a spring, in a dark case.
BUTTON_TRAVEL = 0.012  # m
BUTTON_HEIGHT = 0.045  # m, top of the cap when nobody presses


def _add_button(spec: mujoco.MjSpec) -> None:
    stand = _stand(spec, "button_case")
    _box(stand, (-0.035, -0.035, 0.0), (0.035, 0.035, 0.026), STEEL)
    cap = stand.add_body(name="button", pos=(0.0, 0.0, BUTTON_HEIGHT))
    cap.add_joint(
        name="button_joint",
        type=SLIDE,
        axis=(0, 0, -1),
        limited=True,
        range=(0.0, BUTTON_TRAVEL),
        stiffness=150.0,
        springref=-0.008,
        damping=6.0,
        armature=0.1,
        solimp_limit=STIFF,
    )
    cap.add_geom(
        name="button",
        type=CYLINDER,
        size=(0.024, 0.008, 0),
        pos=(0, 0, -0.008),
        rgba=YELLOW,
        mass=0.05,
    )
    cap.add_site(name="button", group=4)
    spec.add_exclude(bodyname1="button_case", bodyname2="button")


BUTTON = Fixture(
    "button_case",
    _add_button,
    (
        Entity(
            "button",
            ("button", "switch", "knob"),
            "yellow",
            "button",
            ("touch", "press"),
            "button",
            "button_pos",
        ),
    ),
    joint="button_joint",
    range=(0.0, BUTTON_TRAVEL),
    doc="how far the button is pressed",
)


# A cabinet whose drawer comes out towards -y. The drawer's origin is the middle of its front, on
# the table; its handle is a bar across the front, far enough off it for a closed hand.
DRAWER_TRAVEL = 0.10  # m
HANDLE_OFF = 0.042  # m, bar to front
HANDLE_UP = 0.030  # m, bar to table
DRAWER_DEPTH, DRAWER_HALF = 0.105, 0.052  # m, along y and half across it
DRAWER_WALL = 0.006  # m
DRAWER_TOP = 0.040  # m
DRAWER_FLOOR, DRAWER_MIDDLE = 0.008, 0.020  # m, above the table
ROOF = 0.055  # m, the cabinet's highest point: low enough for a hand that reaches over it


def _add_drawer(spec: mujoco.MjSpec) -> None:
    cabinet = _stand(spec, "cabinet")
    half, back = DRAWER_HALF + 0.012, DRAWER_DEPTH + 0.02
    _box(cabinet, (-half, 0.0, ROOF - 0.008), (half, back, ROOF), WOOD)
    _box(cabinet, (-half, 0.0, 0.0), (-half + 0.008, back, ROOF - 0.008), WOOD)
    _box(cabinet, (half - 0.008, 0.0, 0.0), (half, back, ROOF - 0.008), WOOD)
    _box(cabinet, (-half, back - 0.008, 0.0), (half, back, ROOF - 0.008), WOOD)

    drawer = cabinet.add_body(name="drawer")
    drawer.add_joint(
        name="drawer_joint",
        type=SLIDE,
        axis=(0, -1, 0),
        limited=True,
        range=(0.0, DRAWER_TRAVEL),
        damping=4.0,
        frictionloss=0.4,
        armature=0.4,
        solimp_limit=STIFF,
    )
    w, d, t = DRAWER_HALF, DRAWER_DEPTH, DRAWER_WALL
    _box(drawer, (-w, 0.0, 0.004), (w, d, DRAWER_FLOOR), PALE)
    _box(drawer, (-w, 0.0, 0.004), (w, t, DRAWER_TOP + 0.004), PALE, "drawer_front")
    _box(drawer, (-w, d - t, 0.004), (w, d, DRAWER_TOP), PALE)
    _box(drawer, (-w, 0.0, 0.004), (-w + t, d, DRAWER_TOP), PALE)
    _box(drawer, (w - t, 0.0, 0.004), (w, d, DRAWER_TOP), PALE)
    reach = 0.034  # m, half the bar
    for x in (-reach, reach):
        drawer.add_geom(
            type=CYLINDER,
            fromto=(x, 0, HANDLE_UP, x, -HANDLE_OFF, HANDLE_UP),
            size=(0.004, 0, 0),
            rgba=STEEL,
        )
    drawer.add_geom(
        name="handle",
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        size=(0.005, 0, 0),
        rgba=STEEL,
        fromto=(-reach, -HANDLE_OFF, HANDLE_UP, reach, -HANDLE_OFF, HANDLE_UP),
    )
    drawer.add_site(name="drawer", pos=(0.0, DRAWER_DEPTH / 2, DRAWER_MIDDLE), group=4)
    drawer.add_site(name="handle", pos=(0.0, -HANDLE_OFF, HANDLE_UP), group=4)
    spec.add_exclude(bodyname1="cabinet", bodyname2="drawer")


DRAWER = Fixture(
    "cabinet",
    _add_drawer,
    (
        Entity(
            "drawer",
            ("drawer", "tray", "compartment"),
            "",
            "drawer",
            ("touch", "open", "close", "pull", "push"),
            "drawer",
            "drawer_pos",
            (DRAWER_HALF, DRAWER_DEPTH / 2, 0.0),
        ),
        Entity(
            "handle",
            ("handle", "bar", "grip"),
            "",
            "handle",
            ("touch", "pull", "push"),
            "drawer",
            "handle_pos",
        ),
    ),
    joint="drawer_joint",
    range=(0.0, DRAWER_TRAVEL),
    doc="how far the drawer is open",
    places=(Placement("drawer", under=DRAWER_MIDDLE - DRAWER_FLOOR, aside=0.016),),
)


# A block with a square hole, as wide as the peg and a millimetre more.
PEG_RADIUS, PEG_HALF = 0.010, 0.035  # m
CLEARANCE = 0.001  # m, hole less peg
HOLE_DEPTH = 0.030  # m, which is also how high the block stands


def _add_socket(spec: mujoco.MjSpec) -> None:
    block = _stand(spec, "socket")
    hole, out, top = PEG_RADIUS + CLEARANCE / 2, 0.040, HOLE_DEPTH
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        # Two walls run the whole width, two stand between them.
        long = out if x else hole
        low = (x * hole, -long, 0.0) if x else (-long, y * hole, 0.0)
        high = (x * out, long, top) if x else (long, y * out, top)
        pairs = [sorted(pair) for pair in zip(low, high, strict=True)]
        _box(block, tuple(p[0] for p in pairs), tuple(p[1] for p in pairs), WOOD)
    block.add_site(name="hole", pos=(0.0, 0.0, HOLE_DEPTH), group=4)


SOCKET = Fixture(
    "socket",
    _add_socket,
    (
        Entity(
            "hole",
            ("hole", "slot", "opening", "socket"),
            "",
            "hole",
            ("touch",),
            "socket",
            "hole_pos",
        ),
    ),
    places=(Placement("hole", deep=HOLE_DEPTH),),
)
