"""The Koch v1.1 follower arm (5 joints and a gripper, Dynamixel X servos), from published numbers.

Frames, origins, axes, limits, masses and inertias of the moving bodies, pads and kp are the numbers
of `low_cost_robot_arm/low_cost_robot_arm.xml` in google-deepmind/mujoco_menagerie (revision
ef4d04f, Apache License 2.0), which calls its limits approximate. Torques and speeds are ROBOTIS'
for the XL430-W250 at 12 V (shoulder) and the XL330-M288 at 5 V (the rest). Armature, kv and
friction are our estimates: that model's armature of 0.5 kg m^2 would take all the torque there is.
The shapes are our own boxes; the base's mass, which that model leaves to a mesh, is ours too. See
THIRD_PARTY.md.

Base frame: on the table (z = 0), x forward (half a turn from the source's), y left, z up. Joints
bear LeRobot's names. The gripper's axis is turned round, so that it opens upwards from its limit.

It reaches 0.17 m with the tool down, which is enough for three things side by side and a push, and
not for drawers and stacks: it is offered for reach and push.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from sims.rendering.cameras import Camera
from sims.robots.arm_model import ArmModel, Base
from sims.robots.parts import BOX, Link, Rgba, ServoSpec, Vec3, add_finger, add_solid
from sims.robots.robot import Workspace

LINKS: tuple[Link, ...] = (
    Link(
        "shoulder",
        "shoulder_pan",
        (-0.012, 0.0, 0.0409),
        (0.0, 0.0, math.pi),
        (-2.2, 2.2),
        0.05014,
        (0.011924, -0.00048792, 0.013381),
        (1.44921e-05, 1.2371e-05, 7.59138e-06),
        (-0.0190903, 0.705417, 0.0178052, 0.708312),
        (0.0, 0.0, -1.0),
    ),
    Link(
        "upper_arm",
        "shoulder_lift",
        (0.0, -0.0209, 0.0154),
        (0.0, 0.0, 0.0),
        (-1.57, 0.6),
        0.050177,
        (0.0011747, 0.02097, 0.071547),
        (3.73065e-05, 3.3772e-05, 7.94901e-06),
        (0.998768, 2.01447e-05, 0.0496266, 0.000367169),
        (0.0, 1.0, 0.0),
    ),
    Link(
        "lower_arm",
        "elbow_flex",
        (-0.0148, 0.0065, 0.1083),
        (0.0, 0.0, 0.0),
        (-1.57, 1.45),
        0.06379,
        (-0.05537, 0.014505, 0.0028659),
        (2.45081e-05, 2.2231e-05, 7.34061e-06),
        (8.17663e-05, 0.710999, -4.16983e-05, 0.703193),
        (0.0, -1.0, 0.0),
    ),
    Link(
        "wrist",
        "wrist_flex",
        (-0.10048, 5e-05, 0.0026999),
        (0.0, 0.0, 0.0),
        (-2.0, 2.0),
        0.019805,
        (-0.02652, 0.019195, -9.0614e-06),
        (2.95813e-06, 2.8759e-06, 1.07787e-06),
        (0.707361, 0.706812, 0.00580344, 0.00484124),
        (0.0, 1.0, 0.0),
    ),
    Link(
        "gripper",
        "wrist_roll",
        (-0.045, 0.013097, 0.0),
        (0.0, 0.0, 0.0),
        (-3.14, 3.14),
        0.029277,
        (-0.019091, 0.0053379, 0.00018011),
        (8.11303e-06, 7.14908e-06, 3.27429e-06),
        (0.105295, 0.703509, -0.0986543, 0.695885),
        (1.0, 0.0, 0.0),
    ),
    Link(
        "moving_jaw",
        "gripper",
        (-0.01315, -0.0075, 0.0145),
        (0.0, 0.0, 0.0),
        (-0.032, 1.60),
        0.012831,
        (-0.02507, 0.0010817, -0.01414),
        (3.49922e-06, 2.45768e-06, 1.4645e-06),
        (0.528148, 0.5474, 0.466496, 0.451436),
        (0.0, 0.0, 1.0),
    ),
)
BASE_MASS = 0.12  # kg, ours: it does not move

# Between the closed jaws' tips, z along the fingers, x towards the jaw that does not move.
TIP_XYZ: Vec3 = (-0.066, 0.008, 0.0005)
TIP_RPY: Vec3 = (-math.pi / 2, 0.0, math.pi / 2)

# A motor's torque falls to nothing at the speed it has without load: that is the damping.
XL430 = ServoSpec(kp=100.0, kv=2.5, force=1.5, armature=0.015, damping=1.5 / 6.39, friction=0.03)
XL330 = ServoSpec(kp=100.0, kv=1.0, force=0.52, armature=0.002, damping=0.52 / 10.8, friction=0.02)
SERVOS = (XL430, XL430, XL330, XL330, XL330, XL330)
SPEED = np.array([6.39, 6.39, 10.8, 10.8, 10.8])  # rad/s, 61 and 103 rpm without load
ACCELERATION = 20.0  # rad/s^2, ours: with the arm's weight it leaves every servo torque to spare

WHITE: Rgba = (0.86, 0.86, 0.88, 1.0)
DARK: Rgba = (0.13, 0.13, 0.15, 1.0)

HALF_THICK, HALF_WIDTH = 0.004, 0.0075  # m, of a finger along the opening direction and across
FIXED_Y, END_X = 0.0085, -0.0698  # m, the fixed jaw's inner face and both jaws' ends
ROOT_X = (-0.028, -0.042)  # m, where the fixed and the moving finger begin
GAP = 0.001  # m, between the closed jaws


def _jaws(fixed: mujoco.MjsBody, moving: mujoco.MjsBody) -> None:
    """Adds the fingers, whose inner faces are parallel where the jaws are closed."""
    middle, moving_middle = ((root + END_X) / 2 for root in ROOT_X)
    size, moving_size = (((root - END_X) / 2, HALF_THICK, HALF_WIDTH) for root in ROOT_X)
    add_finger(fixed, "finger_fixed", size, (middle, FIXED_Y + HALF_THICK, TIP_XYZ[2]))
    hinge, lean = LINKS[-1].xyz, -LINKS[-1].limit[0]
    x, y = moving_middle - hinge[0], FIXED_Y - GAP - HALF_THICK - hinge[1]
    c, s = math.cos(lean), math.sin(lean)
    place = (c * x - s * y, s * x + c * y, TIP_XYZ[2] - hinge[2])
    add_finger(moving, "finger_moving", moving_size, place, (0.0, 0.0, lean))


def _add_shapes(bodies: dict[str, mujoco.MjsBody]) -> None:
    """Gives the bodies their shapes, sized (m) after the servos and what holds them."""
    base = bodies["base"]
    add_solid(base, BOX, (-0.055, -0.035, 0.0), (0.030, 0.035, 0.006), WHITE)
    add_solid(base, BOX, (-0.034, -0.017, 0.006), (0.012, 0.017, 0.036), DARK)
    # Links run along -x of their frames, the upper arm along z; hinges turn about y.
    add_solid(bodies["shoulder"], BOX, (-0.012, -0.017, 0.002), (0.034, 0.017, 0.030), DARK)
    add_solid(bodies["upper_arm"], BOX, (-0.010, 0.004, -0.008), (0.010, 0.038, 0.085), WHITE)
    add_solid(bodies["upper_arm"], BOX, (-0.025, 0.006, 0.085), (0.010, 0.036, 0.118), DARK)
    add_solid(bodies["lower_arm"], BOX, (-0.080, 0.004, -0.010), (-0.018, 0.026, 0.012), WHITE)
    add_solid(bodies["lower_arm"], BOX, (-0.110, 0.004, -0.010), (-0.080, 0.026, 0.014), DARK)
    add_solid(bodies["wrist"], BOX, (-0.045, 0.003, -0.010), (-0.010, 0.025, 0.010), DARK)
    add_solid(bodies["gripper"], BOX, (-0.028, -0.012, -0.012), (-0.001, 0.0165, 0.012), DARK)
    _jaws(bodies["gripper"], bodies["moving_jaw"])


WORKSPACE = Workspace(
    table=(0.4, 0.5, 0.02),
    table_x=0.15,
    light=(0.2, 0.2, 1.0),
    shoulder_x=-0.012,
    reach=(0.110, 0.168),
    sector=1.4,
    inner_reach=(0.115, 0.160),
    inner_sector=0.8,
    air_reach=(0.09, 0.22),
    air_sector=1.2,
    air_top=0.18,
    aside=(0.05, 0.15, 0.13),
    turn=0.6,
    jitter=0.07,
    span=0.45,
    front=Camera("front", pos=(0.48, 0.0, 0.32), target=(0.10, 0.0, 0.06), fovy=44.0),
    top=Camera(
        "top", pos=(0.11, 0.0, 0.55), target=(0.11, 0.0, 0.0), fovy=42.0, up=(-1.0, 0.0, 0.0)
    ),
)
MODEL = ArmModel(
    base=Base(BASE_MASS, None, (1e-4, 1e-4, 1e-4), turn=(1.0, 0.0, 0.0, 0.0)),
    links=LINKS,
    servos=SERVOS,
    add_shapes=_add_shapes,
    tip_xyz=TIP_XYZ,
    tip_rpy=TIP_RPY,
)

KOCH = MODEL.robot(
    "koch",
    # Tip 0.14 m ahead of the first axis and 0.07 m above the table, pointing straight down.
    home=np.array([-0.048317, -0.259251, -0.471570, -1.783116, -0.048317]),
    velocity_limit=SPEED,
    acceleration_limit=ACCELERATION,
    grip_open=0.90,  # the jaws' tips 52 mm apart
    grip_offset=0.025,  # the fixed jaw stands this far from what is grasped
    workspace=WORKSPACE,
    softest=5.0,  # what the factory's gains of the large servos come to by the manual's numbers
    # The maker says that a load above the most for some time is an overload, and neither how much
    # nor how long; the emulated servos give up at this for 2 s.
    overload=0.8,
    tasks=("reach", "push"),
)
