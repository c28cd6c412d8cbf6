"""Pieces that arms are built of: links from published numbers, shapes of our own, servos."""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]  # w first
Rgba = tuple[float, float, float, float]
Face = tuple[tuple[float, float], tuple[float, float]]

BOX, CYLINDER = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER

MAGENTA: Rgba = (0.95, 0.05, 0.75, 1.0)
STIFF = [0.99, 0.999, 0.001, 0.5, 2.0]  # solimp
FINGER_MATERIAL = "finger"  # gives off light, so the jaws keep their colour in the arm's shadow


class Link(NamedTuple):
    """One moving body: its frame in its parent's, its joint and its inertia."""

    body: str
    joint: str
    xyz: Vec3  # m
    rpy: Vec3  # rad, as in URDF: turn about the parent's x, then y, then z
    limit: tuple[float, float]  # rad
    mass: float  # kg
    com: Vec3  # m
    inertia: tuple[float, ...]  # kg m^2: xx yy zz xy xz yz, or with ``turn`` the principal three
    turn: Quat | None = None  # of the principal axes
    axis: Vec3 = (0.0, 0.0, 1.0)  # of the joint


class ServoSpec(NamedTuple):
    """A position servo on a joint and what its gear adds; N m for hinges, N for slides."""

    kp: float  # N m / rad
    kv: float  # N m s / rad
    force: float  # N m, the most it gives
    armature: float  # kg m^2
    damping: float = 0.0  # N m s / rad
    friction: float = 0.0  # N m


def quat(rpy: Vec3) -> list[float]:
    """Unit quaternion (4,), w first, of URDF roll, pitch, yaw in rad."""
    (cr, cp, cy), (sr, sp, sy) = ([f(a / 2) for a in rpy] for f in (math.cos, math.sin))
    return [
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    ]


def set_inertia(
    body: mujoco.MjsBody,
    mass: float,
    com: Vec3 | None,
    inertia: tuple[float, ...],
    turn: Quat | None = None,
) -> None:
    """Gives ``body`` its mass (kg), centre (m) and inertia (kg m^2: xx yy zz xy xz yz, or the
    principal three about axes turned by ``turn``).
    """
    body.mass, body.explicitinertial = mass, True
    if com is not None:
        body.ipos = list(com)
    if turn is None:
        body.fullinertia = list(inertia)
    else:
        body.inertia, body.iquat = list(inertia), list(turn)


def add_link(
    spec: mujoco.MjSpec, parent: mujoco.MjsBody, link: Link, servo: ServoSpec
) -> mujoco.MjsBody:
    """The body of ``link`` under ``parent``, with its joint and the servo that drives it."""
    body = parent.add_body(name=link.body, pos=list(link.xyz), quat=quat(link.rpy))
    set_inertia(body, link.mass, link.com, link.inertia, link.turn)
    hinge = mujoco.mjtJoint.mjJNT_HINGE
    # Joint ranges are read in the unit the spec is set to, whoever set it.
    unit = 180.0 / math.pi if spec.compiler.degree else 1.0
    add_joint(spec, body, link.joint, hinge, link.axis, link.limit, servo, unit)
    return body


def add_joint(
    spec: mujoco.MjSpec,
    body: mujoco.MjsBody,
    name: str,
    kind: mujoco.mjtJoint,
    axis: Vec3,
    limit: tuple[float, float],
    servo: ServoSpec,
    unit: float = 1.0,
    driven: bool = True,
) -> None:
    """Adds a joint, and unless it is not ``driven`` an actuator of the same name."""
    body.add_joint(
        name=name,
        type=kind,
        axis=list(axis),
        limited=True,
        range=[value * unit for value in limit],
        damping=servo.damping,
        frictionloss=servo.friction,
        armature=servo.armature,
    )
    if not driven:
        return
    drive = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    drive.set_to_position(kp=servo.kp, kv=servo.kv)
    drive.ctrllimited, drive.ctrlrange = True, list(limit)
    drive.forcelimited, drive.forcerange = True, [-servo.force, servo.force]


def add_solid(
    body: mujoco.MjsBody,
    kind: mujoco.mjtGeom,
    low: Vec3,
    high: Vec3,
    rgba: Rgba,
    *,
    collide: bool = True,
) -> None:
    """Adds a box, or an upright cylinder, filling ``low`` to ``high`` (m) of ``body``."""
    half = [(h - g) / 2 for g, h in zip(low, high, strict=True)]
    size = half if kind == BOX else [half[0], half[2], 0.0]
    body.add_geom(
        type=kind,
        size=size,
        pos=[(h + g) / 2 for g, h in zip(low, high, strict=True)],
        rgba=list(rgba),
        mass=0.0,
        contype=0,
        conaffinity=int(collide),
    )


def add_tube(
    body: mujoco.MjsBody, start: Vec3, end: Vec3, radius: float, rgba: Rgba, *, capped: bool = False
) -> None:
    """Adds a cylinder from ``start`` to ``end`` (m) of ``body``, ``capped`` with round ends."""
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CAPSULE if capped else CYLINDER,
        fromto=[*start, *end],
        size=[radius, 0.0, 0.0],
        rgba=list(rgba),
        mass=0.0,
        contype=0,
        conaffinity=1,
    )


def add_finger_material(spec: mujoco.MjSpec) -> None:
    """Adds what ``add_finger`` geoms are made of."""
    spec.add_material(name=FINGER_MATERIAL, rgba=list(MAGENTA), emission=0.4)


def add_finger(
    body: mujoco.MjsBody, name: str, size: Vec3, pos: Vec3, rpy: Vec3 = (0.0, 0.0, 0.0)
) -> None:
    """Adds the box of half sizes ``size`` (m) that touches what is grasped."""
    body.add_geom(
        name=name,
        type=BOX,
        size=list(size),
        pos=list(pos),
        quat=quat(rpy),
        material=FINGER_MATERIAL,
        rgba=list(MAGENTA),
        mass=0.0,
        contype=0,
        conaffinity=1,
        # Contact numbers of the menagerie's SO-101; priority lets them rule over the object's.
        condim=6,
        friction=[1.0, 0.005, 0.0005],
        solref=[0.01, 1.0],
        priority=1,
    )


class Jaws(NamedTuple):
    """Two fingers that slide towards each other along x of the body that carries them."""

    joints: tuple[str, str]  # the driven one, then the one that follows it
    travel: float  # m, of each finger
    rail: float  # m along z of the carrier, where the fingers' bodies start
    end: float  # m along z of the carrier, where they end
    half_width: float  # m along y
    thick: float  # m along x
    pad: float  # m along z of the coloured part that touches things
    clearance: float  # m between each closed finger and the middle
    mass: float  # kg, of each finger
    servo: ServoSpec


def add_jaws(spec: mujoco.MjSpec, carrier: mujoco.MjsBody, jaws: Jaws, rgba: Rgba) -> None:
    """Adds the two fingers to ``carrier``; geoms ``finger_left`` and ``finger_right``."""
    slide = mujoco.mjtJoint.mjJNT_SLIDE
    for side, joint, name in zip((1, -1), jaws.joints, ("left", "right"), strict=True):
        body = carrier.add_body(name=f"{name}_finger", pos=[0.0, 0.0, jaws.rail])
        length = jaws.end - jaws.rail
        box = (2 * jaws.thick, 2 * jaws.half_width, length)
        inertia = [jaws.mass / 12 * (sum(s * s for s in box) - s * s) for s in box]
        com = (side * (jaws.clearance + jaws.thick / 2), 0.0, length / 2)
        set_inertia(body, jaws.mass, com, (*inertia, 0.0, 0.0, 0.0))
        add_joint(
            spec,
            body,
            joint,
            slide,
            (float(side), 0.0, 0.0),
            (0.0, jaws.travel),
            jaws.servo,
            driven=side == 1,
        )
        half = jaws.thick / 2
        middle = side * (jaws.clearance + half)
        add_finger(
            body,
            f"finger_{name}",
            (half, jaws.half_width, jaws.pad / 2),
            (middle, 0.0, length - jaws.pad / 2),
        )
        outer = side * (jaws.clearance + 2 * jaws.thick)
        low, high = sorted((side * (jaws.clearance + 0.002), outer))
        w = jaws.half_width * 0.9
        add_solid(body, BOX, (low, -w, 0.0), (high, w, length - jaws.pad), rgba)
        # Gears give less than MuJoCo's defaults: a finger that is leant on stays where it is.
        body.joints[0].solimp_limit = STIFF
    follow = spec.add_equality()
    follow.type, follow.objtype = mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtObj.mjOBJ_JOINT
    follow.name1, follow.name2 = jaws.joints[1], jaws.joints[0]
    follow.data[:5] = [0.0, 1.0, 0.0, 0.0, 0.0]
    follow.solref, follow.solimp = [0.01, 1.0], STIFF
