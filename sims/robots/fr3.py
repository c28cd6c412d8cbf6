"""The FR3 of Franka Robotics (7 joints) with the Franka Hand, from its published numbers.

Frames, limits, masses, centres of mass and inertias of arm and hand are the numbers of
`robots/fr3/*.yaml` and `end_effectors/*` in frankaemika/franka_description (revision b299b39,
Apache-2.0); the same lengths stand in the maker's DH table. Armature and friction of the joints are
those of `franka_fr3/fr3.xml` in google-deepmind/mujoco_menagerie (revision 0059d43, Apache-2.0).
See THIRD_PARTY.md. The shapes are our own cylinders, capsules and boxes, sized after the maker's
collision capsules. The fingers end 3 mm short of the real ones.

Base frame: link 0, on the table (z = 0), x forward, y left, z up. The maker's controller takes the
arm's weight off its joints, and so does MuJoCo here (gravcomp).
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from sims.robots.arm_model import ArmModel, Base, Palm
from sims.robots.parts import BOX, Jaws, Link, Rgba, ServoSpec, Vec3, add_solid, add_tube
from sims.robots.workbench import BENCH

BASE_MASS = 2.3966
BASE_COM: Vec3 = (-0.0172, 0.0004, 0.0745)
BASE_INERTIA = (0.0090, 0.0115, 0.0085, 0.0, 0.0020, 0.0)

_Q = math.pi / 2
LINKS: tuple[Link, ...] = (
    Link(
        "link1",
        "joint1",
        (0.0, 0.0, 0.333),
        (0.0, 0.0, 0.0),
        (-2.7437, 2.7437),
        2.9274653454,
        (4.128e-07, -0.0181251324, -0.0386035970),
        (
            0.023927316485107913,
            0.0224821613275756,
            0.006350098258530016,
            1.3317903455714081e-05,
            -0.00011404774918616684,
            -0.0019950320628240115,
        ),
    ),
    Link(
        "link2",
        "joint2",
        (0.0, 0.0, 0.0),
        (-_Q, 0.0, 0.0),
        (-1.7837, 1.7837),
        2.9355370338,
        (0.0031828864, -0.0743221644, 0.0088146084),
        (
            0.041938946257609425,
            0.02514514885014724,
            0.06170214472888839,
            0.00020257331521090626,
            0.004077784227179924,
            -0.0042252158006570156,
        ),
    ),
    Link(
        "link3",
        "joint3",
        (0.0, -0.316, 0.0),
        (_Q, 0.0, 0.0),
        (-2.9007, 2.9007),
        2.2449013699,
        (0.0407015686, -0.0048200565, -0.0289730823),
        (
            0.02410142547240885,
            0.01974053266708178,
            0.019044494482244823,
            0.002404694559042109,
            -0.002856269270114313,
            -0.002104212683891874,
        ),
    ),
    Link(
        "link4",
        "joint4",
        (0.0825, 0.0, 0.0),
        (_Q, 0.0, 0.0),
        (-3.0421, -0.1518),
        2.6155955791,
        (-0.0459100965, 0.0630492960, -0.0085187868),
        (
            0.03452998321913202,
            0.028881621933049058,
            0.04125471171146641,
            0.01322552265982813,
            0.01015142998484113,
            -0.0009762833870704552,
        ),
    ),
    Link(
        "link5",
        "joint5",
        (-0.0825, 0.384, 0.0),
        (-_Q, 0.0, 0.0),
        (-2.8065, 2.8065),
        2.3271207594,
        (-0.0016039605, 0.0292536262, -0.0972965990),
        (
            0.051610278463662895,
            0.04787729713371481,
            0.016423625579357254,
            -0.005715173387783472,
            -0.0035673167625872135,
            0.010673985108535986,
        ),
    ),
    Link(
        "link6",
        "joint6",
        (0.0, 0.0, 0.0),
        (_Q, 0.0, 0.0),
        (0.5445, 4.5169),
        1.8170376524,
        (0.0597131221, -0.0410294666, -0.0101692726),
        (
            0.005412333594383447,
            0.014058329545509979,
            0.016080817924212554,
            0.006193456360285834,
            0.0014219289306117652,
            -0.0013140753741120031,
        ),
    ),
    Link(
        "link7",
        "joint7",
        (0.088, 0.0, 0.0),
        (_Q, 0.0, 0.0),
        (-3.0159, 3.0159),
        0.6271432862,
        (0.0045225817, 0.0086261921, -0.0161633251),
        (
            0.00021092389150104718,
            0.00017718568002411474,
            5.993190599659971e-05,
            -2.433299114461931e-05,
            4.564480393778983e-05,
            8.744070223226438e-05,
        ),
    ),
)

# No gains are published for the maker's joint position mode; these settle a step without overshoot
# and follow within 45 ms.
ARM_SERVO = ServoSpec(kp=2500.0, kv=110.0, force=87.0, armature=0.195, damping=0.21, friction=1.137)
WRIST_SERVO = ServoSpec(kp=600.0, kv=20.0, force=12.0, armature=0.074, damping=0.21, friction=0.3)
SPEED = np.array([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])  # rad/s
# The maker allows each joint 10; with every joint at once, in the worst pose, this is what the
# torques allow.
ACCELERATION = 3.0  # rad/s^2

# The hand: its frame on the flange, which lies 0.107 m along z of link 7, and the tip in the hand.
FLANGE = 0.107
HAND_YAW = -math.pi / 4
TIP = 0.1034
HAND_MASS, FINGER_MASS = 0.6544, 0.0291
HAND_COM: Vec3 = (-0.0000376, 0.0119128, 0.0207260)
HAND_INERTIA = (0.00186, 0.00030, 0.00174, 0.0, 0.0, -0.00002)
JAWS = Jaws(
    joints=("gripper", "gripper_right"),
    travel=0.04,
    rail=0.0584,
    end=0.1094,
    half_width=0.010,
    thick=0.009,
    pad=0.030,
    clearance=0.0005,
    mass=FINGER_MASS,
    # Of the 70 N that the hand holds for good; the armature is the gear's.
    servo=ServoSpec(kp=2000.0, kv=100.0, force=40.0, armature=1.0, damping=5.0),
)

WHITE: Rgba = (0.90, 0.91, 0.93, 1.0)
GREY: Rgba = (0.55, 0.56, 0.59, 1.0)
DARK: Rgba = (0.17, 0.17, 0.19, 1.0)


def _add_shapes(bodies: dict[str, mujoco.MjsBody]) -> None:
    """Gives the bodies their shapes: white housings, grey where one turns on another."""
    base = bodies["base"]
    add_solid(base, BOX, (-0.13, -0.065, 0.0), (0.06, 0.065, 0.05), WHITE)
    add_tube(base, (0, 0, 0), (0, 0, 0.138), 0.065, WHITE)

    link = bodies["link1"]
    add_tube(link, (0, 0, -0.195), (0, 0, -0.187), 0.060, GREY)
    add_tube(link, (0, 0, -0.187), (0, 0, -0.02), 0.060, WHITE)
    add_tube(link, (0, -0.05, 0), (0, 0.05, 0), 0.062, WHITE)

    link = bodies["link2"]  # z along the shoulder's axis, -y up the arm
    add_tube(link, (0, 0, -0.068), (0, 0, -0.050), 0.058, GREY)
    add_tube(link, (0, 0, 0.050), (0, 0, 0.068), 0.058, GREY)
    add_tube(link, (0, -0.02, 0), (0, -0.125, 0), 0.060, WHITE)

    link = bodies["link3"]  # z up the arm
    add_tube(link, (0, 0, -0.191), (0, 0, -0.183), 0.059, GREY)
    add_tube(link, (0, 0, -0.183), (0, 0, -0.065), 0.059, WHITE)
    add_tube(link, (0.01, 0, -0.065), (0.0825, 0, 0.0), 0.050, WHITE, capped=True)

    link = bodies["link4"]  # z along the elbow's axis
    add_tube(link, (0, 0, -0.068), (0, 0, 0.068), 0.056, GREY)
    add_tube(link, (0, 0.0, 0), (-0.0825, 0.09, 0), 0.050, WHITE, capped=True)
    add_tube(link, (-0.0825, 0.09, 0), (-0.0825, 0.12, 0), 0.055, WHITE)

    link = bodies["link5"]  # z towards the wrist
    add_tube(link, (0, 0, -0.264), (0, 0, -0.256), 0.055, GREY)
    add_tube(link, (0, 0, -0.256), (0, 0, -0.20), 0.055, WHITE)
    add_tube(link, (0, 0.035, -0.20), (0, 0.075, -0.06), 0.035, WHITE, capped=True)
    add_tube(link, (0, 0.06, 0), (0, 0.09, 0), 0.048, GREY)

    link = bodies["link6"]  # z along the wrist's axis, x to the flange's
    add_tube(link, (0, 0, -0.06), (0, 0, 0.06), 0.047, WHITE)
    add_tube(link, (0.02, 0, 0.0), (0.088, 0, 0.0), 0.045, WHITE, capped=True)
    add_tube(link, (0.088, -0.060, 0), (0.088, -0.052, 0), 0.046, GREY)

    link = bodies["link7"]
    add_tube(link, (0, 0, 0.05), (0, 0, 0.098), 0.043, WHITE)
    add_tube(link, (0, 0, 0.098), (0, 0, 0.107), 0.0315, DARK)

    hand = bodies["gripper"]  # the jaws along x
    add_solid(hand, BOX, (-0.100, -0.021, 0.004), (0.100, 0.021, 0.052), WHITE)
    add_solid(hand, BOX, (-0.090, -0.017, 0.052), (0.090, 0.017, 0.062), DARK)


# Our gripper frames have the jaws along x; Franka's hand has them along y.
_X, _Y, _Z = HAND_COM
_XX, _YY, _ZZ, _XY, _XZ, _YZ = HAND_INERTIA

MODEL = ArmModel(
    base=Base(BASE_MASS, BASE_COM, BASE_INERTIA),
    links=LINKS,
    servos=(*[ARM_SERVO] * 4, *[WRIST_SERVO] * 3),
    palm=Palm(
        xyz=(0.0, 0.0, FLANGE),
        rpy=(0.0, 0.0, HAND_YAW + _Q),
        mass=HAND_MASS,
        com=(_Y, -_X, _Z),
        inertia=(_YY, _XX, _ZZ, -_XY, _YZ, -_XZ),
        jaws=JAWS,
        rgba=GREY,
    ),
    add_shapes=_add_shapes,
    tip_xyz=(0.0, 0.0, TIP),
)

FR3 = MODEL.robot(
    "fr3",
    # Tip 0.45 m ahead of the base and 0.11 m above the table, pointing straight down, the elbow in
    # the arm's own plane, the jaws opening along y.
    home=np.array([0.0, 0.140576, 0.0, -2.567927, 0.0, 2.708503, 0.785398]),
    velocity_limit=SPEED,
    acceleration_limit=ACCELERATION,
    lag_limit=0.04,
    workspace=BENCH,
    feels=True,
    softest=200.0,  # ours: joint impedance is the user's to set
)
