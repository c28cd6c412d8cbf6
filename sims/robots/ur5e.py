"""The UR5e of Universal Robots (6 joints) with a parallel gripper, from published numbers.

Frames, limits, masses, centres of mass and inertias are the numbers of `config/ur5e/*.yaml` in
UniversalRobots/Universal_Robots_ROS2_Description (revision 2221ec0, BSD-3-Clause), which cites the
maker's DH table, user manual and article on joint torques. The gripper's height, stroke and mass
are those of `robotiq_2f85/2f85.xml` in google-deepmind/mujoco_menagerie (revision 1b428b0,
BSD-2-Clause); its fingers slide straight where Robotiq's swing on four bars. See THIRD_PARTY.md.
The shapes are our own cylinders and boxes with the radii that the description gives for the links.

Base frame: the description's base_link, on the table (z = 0), x forward, y left, z up. The maker's
controller takes the arm's weight off its joints, and so does MuJoCo here (gravcomp).
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from sims.robots.arm_model import ArmModel, Base, Palm
from sims.robots.parts import BOX, CYLINDER, Jaws, Link, Rgba, ServoSpec, add_solid, add_tube
from sims.robots.workbench import BENCH

BASE_MASS = 4.0
BASE_INERTIA = (0.00443333156, 0.00443333156, 0.0072, 0.0, 0.0, 0.0)  # of a cylinder, as menagerie

_TURN = math.tau
# The inertias of upper arm and forearm are given about axes turned by 90 degrees in pitch, which
# swaps xx and zz.
LINKS: tuple[Link, ...] = (
    Link(
        "shoulder",
        "shoulder_pan",
        (0.0, 0.0, 0.1625),
        (0.0, 0.0, 0.0),
        (-_TURN, _TURN),
        3.761,
        (0.0, -0.00193, -0.02561),
        (0.0102675, 0.0102675, 0.00666, 0.0, 0.0, 0.0),
    ),
    Link(
        "upper_arm",
        "shoulder_lift",
        (0.0, 0.0, 0.0),
        (math.pi / 2, 0.0, 0.0),
        (-_TURN, _TURN),
        8.058,
        (-0.2125, 0.0, 0.11336),
        (0.0151074, 0.13388583541666665, 0.13388583541666665, 0.0, 0.0, 0.0),
    ),
    Link(
        "forearm",
        "elbow",
        (-0.425, 0.0, 0.0),
        (0.0, 0.0, 0.0),
        (-math.pi, math.pi),
        2.846,
        (-0.2422, 0.0, 0.0265),
        (0.004095, 0.03120936758333333, 0.03120936758333333, 0.0, 0.0, 0.0),
    ),
    Link(
        "wrist_1",
        "wrist_1",
        (-0.3922, 0.0, 0.1333),
        (0.0, 0.0, 0.0),
        (-_TURN, _TURN),
        1.37,
        (0.0, -0.01634, -0.0018),
        (0.0025599, 0.0025599, 0.0021942, 0.0, 0.0, 0.0),
    ),
    Link(
        "wrist_2",
        "wrist_2",
        (0.0, -0.0997, 0.0),
        (math.pi / 2, 0.0, 0.0),
        (-_TURN, _TURN),
        1.3,
        (0.0, 0.01634, -0.0018),
        (0.0025599, 0.0025599, 0.0021942, 0.0, 0.0, 0.0),
    ),
    Link(
        "wrist_3",
        "wrist_3",
        (0.0, 0.0996, 0.0),
        (-math.pi / 2, 0.0, 0.0),
        (-_TURN, _TURN),
        0.365,
        (0.0, 0.0, -0.001159),
        (9.890414008333333e-05, 9.890414008333333e-05, 0.0001321171875, 0.0, 0.0, 0.0),
    ),
)

# No gains are published; these settle a step without overshoot and follow within 45 ms. The forces
# are the maker's largest joint torques, the armature is the menagerie's.
SHOULDER_SERVO = ServoSpec(kp=2500.0, kv=110.0, force=150.0, armature=0.1)
WRIST_SERVO = ServoSpec(kp=600.0, kv=25.0, force=28.0, armature=0.1)
SPEED = math.pi  # rad/s, every joint
# What the maker's ROS 2 driver plans with ("chosen conservatively", the arm is limited by torque
# alone; ur_moveit_config/config/joint_limits.yaml). With every joint at twice this at once, in the
# worst pose, no joint needs more torque than it has.
ACCELERATION = 5.0  # rad/s^2

# The gripper, z out of the flange, the jaws along x.
PALM_MASS, FINGER_MASS = 0.777441, 0.0612811  # kg
PALM_INERTIA = (0.000260285, 0.000225381, 0.000152708, 0.0, 0.0, 0.0)
FINGER_END = 0.160  # m from the flange
TIP = 0.155  # m, a little short of the fingers' ends
JAWS = Jaws(
    joints=("gripper", "gripper_right"),
    travel=0.0425,
    rail=0.094,
    end=FINGER_END,
    half_width=0.011,
    thick=0.010,
    pad=0.045,
    clearance=0.0005,
    mass=FINGER_MASS,
    # Gentle beside the 20 to 235 N of the maker's data sheet; the armature is the gear's.
    servo=ServoSpec(kp=2000.0, kv=100.0, force=40.0, armature=1.0, damping=5.0),
)

GREY: Rgba = (0.80, 0.81, 0.83, 1.0)
BLUE: Rgba = (0.42, 0.62, 0.78, 1.0)
DARK: Rgba = (0.15, 0.15, 0.17, 1.0)


def _add_shapes(bodies: dict[str, mujoco.MjsBody]) -> None:
    """Gives the bodies their shapes: motor housings with blue caps, tubes between them."""
    base = bodies["base"]
    add_tube(base, (0, 0, 0), (0, 0, 0.03), 0.075, DARK)
    add_tube(base, (0, 0, 0.03), (0, 0, 0.10), 0.06, GREY)

    shoulder = bodies["shoulder"]  # z up
    add_tube(shoulder, (0, 0, -0.06), (0, 0, 0.06), 0.06, GREY)
    add_tube(shoulder, (0, 0, 0.06), (0, 0, 0.068), 0.055, BLUE)
    add_tube(shoulder, (0, 0, 0), (0, -0.085, 0), 0.058, GREY)

    upper = bodies["upper_arm"]  # z along the lift axis, -x along the arm
    add_tube(upper, (0, 0, 0.085), (0, 0, 0.193), 0.06, GREY)
    add_tube(upper, (0, 0, 0.193), (0, 0, 0.200), 0.055, BLUE)
    add_tube(upper, (-0.03, 0, 0.138), (-0.395, 0, 0.138), 0.048, GREY)
    add_tube(upper, (-0.425, 0, 0.075), (-0.425, 0, 0.188), 0.056, GREY)
    add_tube(upper, (-0.425, 0, 0.188), (-0.425, 0, 0.195), 0.051, BLUE)

    forearm = bodies["forearm"]
    add_tube(forearm, (0, 0, -0.052), (0, 0, 0.072), 0.055, GREY)
    add_tube(forearm, (0, 0, -0.059), (0, 0, -0.052), 0.050, BLUE)
    add_tube(forearm, (-0.03, 0, 0.007), (-0.365, 0, 0.007), 0.040, GREY)
    add_tube(forearm, (-0.3922, 0, -0.045), (-0.3922, 0, 0.075), 0.043, GREY)
    add_tube(forearm, (-0.3922, 0, -0.051), (-0.3922, 0, -0.045), 0.039, BLUE)

    wrist = bodies["wrist_1"]
    add_tube(wrist, (0, 0, -0.055), (0, 0, 0.040), 0.043, GREY)
    add_tube(wrist, (0, 0, 0.040), (0, 0, 0.046), 0.039, BLUE)
    add_tube(wrist, (0, 0, 0), (0, -0.055, 0), 0.043, GREY)

    wrist = bodies["wrist_2"]
    add_tube(wrist, (0, 0, -0.045), (0, 0, 0.040), 0.043, GREY)
    add_tube(wrist, (0, 0, 0.040), (0, 0, 0.046), 0.039, BLUE)
    add_tube(wrist, (0, 0, 0), (0, 0.055, 0), 0.043, GREY)

    add_tube(bodies["wrist_3"], (0, 0, -0.045), (0, 0, 0), 0.0375, GREY)

    palm = bodies["gripper"]
    add_tube(palm, (0, 0, 0), (0, 0, 0.012), 0.0375, DARK)
    add_solid(palm, CYLINDER, (-0.034, -0.034, 0.012), (0.034, 0.034, 0.070), DARK)
    add_solid(palm, BOX, (-0.058, -0.014, 0.064), (0.058, 0.014, 0.092), DARK)


MODEL = ArmModel(
    # The description turns base_link_inertia, where the chain begins, by half a turn.
    base=Base(BASE_MASS, (0.0, 0.0, 0.0), BASE_INERTIA, yaw=math.pi),
    links=LINKS,
    servos=(*[SHOULDER_SERVO] * 3, *[WRIST_SERVO] * 3),
    palm=Palm(
        xyz=(0.0, 0.0, 0.0),
        rpy=(0.0, 0.0, 0.0),
        mass=PALM_MASS,
        com=(0.0, 0.0, 0.0354675),
        inertia=PALM_INERTIA,
        jaws=JAWS,
        rgba=DARK,
    ),
    add_shapes=_add_shapes,
    tip_xyz=(0.0, 0.0, TIP),
)

UR5E = MODEL.robot(
    "ur5e",
    # Tip 0.45 m ahead of the base and 0.11 m above the table, pointing straight down, the elbow up,
    # the jaws opening along y.
    home=np.array([-0.300735, -1.553483, 2.157763, -2.175077, -1.570796, -0.300735]),
    velocity_limit=SPEED,
    acceleration_limit=ACCELERATION,
    lag_limit=0.04,
    workspace=BENCH,
    feels=True,
    softest=200.0,  # ours: nobody publishes how far servoj gives at its lowest gain
)
