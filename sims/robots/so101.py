"""The SO-101 arm of TheRobotStudio (5 joints and a gripper), from its published numbers.

Frames, origins, axes, limits, masses and inertias are the numbers of
`Simulation/SO101/so101_new_calib.urdf` in TheRobotStudio/SO-ARM100 (revision fda892c). Servo gains,
armature, friction and torque are the numbers of `robotstudio_so101/so101.xml` in
google-deepmind/mujoco_menagerie (revision 191a7ba). Both are under the Apache License 2.0; see
THIRD_PARTY.md. The shapes are our own boxes and cylinders, sized after the printed parts.

Base frame: the URDF's base_link, on the table (z = 0), x forward, y left, z up. The shoulder-pan
axis stands 38.8 mm ahead of its origin. Zero of every joint is the middle of its travel.

The fixed jaw does not move, so the jaws do not open symmetrically about the tip: an open gripper
has all its room on the side of the moving jaw (+x of the gripper body, -x of the tip site).
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from sims.rendering.cameras import Camera
from sims.robots.arm_model import ArmModel, Base
from sims.robots.parts import (
    BOX,
    CYLINDER,
    Face,
    Link,
    Rgba,
    ServoSpec,
    Vec3,
    add_finger,
    add_solid,
)
from sims.robots.robot import Workspace

BASE_MASS = 0.147
BASE_COM: Vec3 = (0.0137179, -5.19711e-05, 0.0334843)
BASE_INERTIA = (0.000114686, 0.000136117, 0.000130364, -4.59787e-07, 4.97151e-06, 9.75275e-08)

# Rotations and offsets below 1e-7 in the source are rounding of its CAD export, written 0 here.
LINKS: tuple[Link, ...] = (
    Link(
        "shoulder",
        "shoulder_pan",
        (0.0388353, 0.0, 0.0624),
        (3.14159, 0.0, -3.14159),
        (-1.91986, 1.91986),
        0.100006,
        (-0.0307604, -1.66727e-05, -0.0252713),
        (8.3759e-05, 8.10403e-05, 2.39783e-05, 7.55525e-08, -1.16342e-06, 1.54663e-07),
    ),
    Link(
        "upper_arm",
        "shoulder_lift",
        (-0.0303992, -0.0182778, -0.0542),
        (-1.5708, -1.5708, 0.0),
        (-1.74533, 1.74533),
        0.103,
        (-0.0898471, -0.00838224, 0.0184089),
        (4.08002e-05, 0.000147318, 0.000142487, -1.97819e-05, -4.03016e-08, 8.97326e-09),
    ),
    Link(
        "lower_arm",
        "elbow_flex",
        (-0.11257, -0.028, 0.0),
        (0.0, 0.0, 1.5708),
        (-1.69, 1.69),
        0.104,
        (-0.0980701, 0.00324376, 0.0182831),
        (2.87438e-05, 0.000159844, 0.00014529, 7.41152e-06, 1.26409e-06, -4.90188e-08),
    ),
    Link(
        "wrist",
        "wrist_flex",
        (-0.1349, 0.0052, 0.0),
        (0.0, 0.0, -1.5708),
        (-1.65806, 1.65806),
        0.079,
        (-0.000103312, -0.0386143, 0.0281156),
        (3.68263e-05, 2.5391e-05, 2.1e-05, 1.7893e-08, -5.28128e-08, 3.6412e-06),
    ),
    Link(
        "gripper",
        "wrist_roll",
        (0.0, -0.0611, 0.0181),
        (1.5708, 0.0486795, 3.14159),
        (-2.74385, 2.84121),
        0.087,
        (0.000213627, 0.000245138, -0.025187),
        (2.75087e-05, 4.33657e-05, 3.45059e-05, -3.35241e-07, -5.7352e-06, -5.17847e-08),
    ),
    Link(
        "moving_jaw",
        "gripper",
        (0.0202, 0.0188, -0.0234),
        (1.5708, 0.0, 0.0),
        (-0.174533, 1.74533),
        0.012,
        (-0.00157495, -0.0300244, 0.0192755),
        (6.61427e-06, 1.89032e-06, 5.28738e-06, -3.19807e-07, -5.90717e-09, -1.09945e-07),
    ),
)

# The URDF's gripper_frame in the gripper body; its z leaves the wrist along the fingers.
TIP_XYZ: Vec3 = (-0.0079, -0.000218121, -0.0981274)
TIP_RPY: Vec3 = (0.0, 3.14159, 0.0)

# STS3215 servo. The gains stand for a proportional gain of 16 set in the servo; the force is its
# 30 kg cm stall torque at 12 V.
SERVO = ServoSpec(kp=998.22, kv=2.731, force=2.94, armature=0.028, damping=0.60, friction=0.052)
# The URDF's 10 rad/s and 10 N m are fillers; 45 rpm is the servo's no-load speed (0.22 s / 60 deg).
SPEED = 4.71  # rad/s
# No figure is published for the arm. With every joint at this at once, in the worst pose, the
# shoulder needs 2.5 N m, the arm's weight included: less than the servo has.
ACCELERATION = 20.0  # rad/s^2

GREY: Rgba = (0.86, 0.86, 0.88, 1.0)
DARK: Rgba = (0.13, 0.13, 0.15, 1.0)

# Jaws, after the printed parts: inner faces as (x, along) at root and tip. The fixed jaw's are x
# and z of the gripper body, the moving jaw's x and y of its own body. The moving face is 1 mm
# nearer than the print's so that the tip site lies midway between the closed jaws' tips.
FIXED_FACE = ((-0.0150, -0.0300), (-0.0079, -0.1040))
MOVING_FACE = ((-0.0065, -0.0120), (-0.0135, -0.0820))
FINGER_HALF_WIDTH = 0.009  # m, across the opening direction
FINGER_HALF_THICK = 0.005  # m, along it
MOVING_FINGER_Z = 0.0190  # m, brings both fingers into one plane


def _jaw(body: mujoco.MjsBody, name: str, face: Face, side: int, along: int) -> None:
    """Adds a jaw to ``body``: a box behind the inner ``face``, on ``side`` of it in x.

    ``along`` is the body axis (1 is y, 2 is z) that the face's second coordinate counts in m.
    """
    (x0, a0), (x1, a1) = face
    length = math.hypot(x1 - x0, a1 - a0)
    lean = math.atan2(x1 - x0, a0 - a1)  # rad, of the tip towards +x
    # Outward normal of the face, turned with the lean.
    normal = (side * math.cos(lean), side * math.sin(lean))
    pos = [(x0 + x1) / 2 + normal[0] * FINGER_HALF_THICK, 0.0, 0.0]
    pos[along] = (a0 + a1) / 2 + normal[1] * FINGER_HALF_THICK
    size = [FINGER_HALF_THICK, FINGER_HALF_WIDTH, FINGER_HALF_WIDTH]
    size[along] = length / 2
    if along == 1:
        pos[2] = MOVING_FINGER_Z
        rpy = (0.0, 0.0, lean)  # turning about +z carries -y towards +x
    else:
        rpy = (0.0, -lean, 0.0)  # turning about -y carries -z towards +x
    add_finger(body, name, tuple(size), tuple(pos), rpy)


def _add_shapes(bodies: dict[str, mujoco.MjsBody]) -> None:
    """Gives the bodies their shapes, measured (m) after the printed parts."""
    base = bodies["base"]
    add_solid(base, BOX, (-0.022, -0.055, 0.0), (0.064, 0.055, 0.010), GREY)
    add_solid(base, BOX, (-0.022, -0.022, 0.010), (0.050, 0.022, 0.060), GREY)
    add_solid(base, BOX, (-0.031, -0.025, 0.026), (-0.022, 0.025, 0.068), DARK)
    add_solid(base, CYLINDER, (0.0158, -0.023, 0.060), (0.0618, 0.023, 0.066), DARK, collide=False)

    shoulder = bodies["shoulder"]  # z down, x backward
    add_solid(shoulder, BOX, (-0.0476, -0.023, -0.034), (0.0122, 0.023, -0.006), GREY)
    add_solid(shoulder, BOX, (-0.0428, -0.0198, -0.0644), (-0.018, 0.0198, -0.030), DARK)

    upper = bodies["upper_arm"]  # -x along the arm, z along the lift axis
    add_solid(upper, CYLINDER, (-0.014, -0.014, -0.010), (0.014, 0.014, 0.0466), GREY)
    add_solid(upper, BOX, (-0.104, -0.0115, -0.002), (0.0, 0.0115, 0.0386), GREY)
    add_solid(upper, BOX, (-0.1250, -0.0382, -0.0015), (-0.1002, 0.0120, 0.0381), DARK)

    lower = bodies["lower_arm"]
    add_solid(lower, CYLINDER, (-0.014, -0.014, -0.010), (0.014, 0.014, 0.0466), GREY)
    add_solid(lower, BOX, (-0.102, -0.0115, -0.002), (0.0, 0.0115, 0.0386), GREY)
    add_solid(lower, BOX, (-0.1451, -0.0072, -0.0015), (-0.1000, 0.0176, 0.0381), DARK)

    wrist = bodies["wrist"]  # -y along the arm
    add_solid(wrist, CYLINDER, (-0.012, -0.012, -0.009), (0.012, 0.012, 0.0456), GREY)
    add_solid(wrist, BOX, (-0.0124, -0.028, -0.008), (0.0124, 0.0, 0.0446), GREY)
    add_solid(wrist, BOX, (-0.0124, -0.0611, 0.000), (0.0124, -0.026, 0.050), DARK)

    gripper = bodies["gripper"]  # -z along the fingers, x the opening direction
    add_solid(gripper, CYLINDER, (-0.020, -0.020, -0.010), (0.020, 0.020, 0.001), GREY)
    add_solid(gripper, BOX, (-0.030, -0.020, -0.040), (0.004, 0.020, -0.008), GREY)
    add_solid(gripper, BOX, (0.002, -0.0193, -0.0358), (0.0304, 0.0193, -0.011), DARK)

    jaw = bodies["moving_jaw"]  # -y along the finger, z along the jaw's axis
    add_solid(
        jaw, CYLINDER, (-0.0095, -0.0095, -0.004), (0.0095, 0.0095, 0.0415), GREY, collide=False
    )
    _jaw(gripper, "finger_fixed", FIXED_FACE, -1, 2)
    _jaw(jaw, "finger_moving", MOVING_FACE, 1, 1)


WORKSPACE = Workspace(
    table=(0.5, 0.6, 0.02),
    table_x=0.25,
    light=(0.3, 0.3, 1.2),
    shoulder_x=0.04,
    reach=(0.15, 0.255),
    sector=0.85,
    inner_reach=(0.15, 0.24),
    inner_sector=0.6,
    air_reach=(0.10, 0.32),
    air_sector=1.2,
    air_top=0.26,
    aside=(0.19, 0.20, 0.16),
    turn=0.6,
    jitter=0.1,
    span=0.6,
    front=Camera("front", pos=(0.66, 0.0, 0.42), target=(0.17, 0.0, 0.09), fovy=44.0),
    top=Camera(
        "top", pos=(0.19, 0.0, 0.75), target=(0.19, 0.0, 0.0), fovy=42.0, up=(-1.0, 0.0, 0.0)
    ),
)
MODEL = ArmModel(
    base=Base(BASE_MASS, BASE_COM, BASE_INERTIA),
    links=LINKS,
    servos=(SERVO,) * 6,
    add_shapes=_add_shapes,
    tip_xyz=TIP_XYZ,
    tip_rpy=TIP_RPY,
)

SO101 = MODEL.robot(
    "so101",
    # Tip 0.20 m ahead of the shoulder-pan axis and 0.07 m above the table, pointing straight down,
    # the jaws opening along y. No higher: the wrist's travel ends at 95 degrees below the forearm,
    # so the tool points straight down only below 0.093 m, and below about 0.083 m at this distance.
    home=np.array([-0.040404, 0.058670, -0.034163, 1.546296, 1.579065]),
    velocity_limit=SPEED,
    acceleration_limit=ACCELERATION,
    grip_open=0.80,  # the jaws' tips 66 mm apart, the moving one not yet high above the fixed one
    grip_offset=0.031,  # the fixed jaw does not move, so it stands this far from what is grasped
    workspace=WORKSPACE,
    # What identifications of such servos come to (BAM, Open Duck: 10 to 18), against SERVO's 998.
    softest=10.0,
    overload=0.8,  # for 2 s, as its servos' registers 36 and 35 leave the factory
)
