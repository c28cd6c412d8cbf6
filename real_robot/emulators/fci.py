"""The Franka Control Interface on the wire: robot server 10, gripper server 3 (system 5.9 and on).

Commands go over TCP, little-endian and packed: a header, then the request or the answer. Once a
millisecond the robot sends its state over UDP to the port that Connect named; whoever moves it
answers each state with a command that bears the state's number. Layouts and numbers are those of
libfranka's headers; the model is told as URDF, made here from the simulated arm's own numbers.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from xml.etree import ElementTree as xml

import numpy as np

from sims.robots import fr3

ROBOT_PORT, HAND_PORT = 1337, 1338
ROBOT_VERSION, HAND_VERSION = 10, 3
ROBOT_HEADER = struct.Struct("<III")  # command, number of the call, size with the header
HAND_HEADER = struct.Struct("<HII")


class FciCommand(IntEnum):
    """What the robot is asked for."""

    CONNECT = 0
    MOVE = 1
    STOP_MOVE = 2
    SET_COLLISION_BEHAVIOR = 3
    SET_JOINT_IMPEDANCE = 4
    SET_CARTESIAN_IMPEDANCE = 5
    SET_GUIDING_MODE = 6
    SET_EE_TO_K = 7
    SET_NE_TO_EE = 8
    SET_LOAD = 9
    AUTOMATIC_ERROR_RECOVERY = 10
    GET_ROBOT_MODEL = 11


class HandCommand(IntEnum):
    """What the hand is asked for."""

    CONNECT = 0
    HOMING = 1
    GRASP = 2
    MOVE = 3
    STOP = 4


class Status(IntEnum):
    """Answers to all robot commands but Move; the later ones not to every command."""

    SUCCESS = 0
    NOT_POSSIBLE = 1
    REFUSED_BY_SAFETY = 2
    RECOVERY_MANUAL = 3  # of the error recovery
    RECOVERY_STOPPED = 5  # of it, too: the user stop is pressed


class MoveStatus(IntEnum):
    """Answers to Move: one when it begins, one when it has ended."""

    SUCCESS = 0
    STARTED = 1
    PREEMPTED = 2
    NOT_POSSIBLE = 5
    INVALID = 7
    REFLEX_ABORTED = 8
    EMERGENCY_ABORTED = 9
    ABORTED = 11


class HandStatus(IntEnum):
    """Answers to all hand commands but Connect."""

    SUCCESS = 0
    FAIL = 1
    UNSUCCESSFUL = 2
    ABORTED = 3


class Mode(IntEnum):
    """What the robot does."""

    OTHER = 0
    IDLE = 1
    MOVE = 2
    GUIDING = 3
    REFLEX = 4
    USER_STOPPED = 5
    RECOVERY = 6


class Generator(IntEnum):
    """Motion generators as Move asks for them; the state counts from 1, and none is 5 there."""

    JOINT_POSITION = 0
    JOINT_VELOCITY = 1


NO_GENERATOR, OTHER_CONTROLLER = 0, 3  # in the state of a robot that no program moves
JOINT_IMPEDANCE = 0  # the controller that Move asks for, and its number in the state

ERRORS = (
    "joint_position_limits_violation",
    "cartesian_position_limits_violation",
    "self_collision_avoidance_violation",
    "joint_velocity_violation",
    "cartesian_velocity_violation",
    "force_control_safety_violation",
    "joint_reflex",
    "cartesian_reflex",
    "max_goal_pose_deviation_violation",
    "max_path_pose_deviation_violation",
    "cartesian_velocity_profile_safety_violation",
    "joint_position_motion_generator_start_pose_invalid",
    "joint_motion_generator_position_limits_violation",
    "joint_motion_generator_velocity_limits_violation",
    "joint_motion_generator_velocity_discontinuity",
    "joint_motion_generator_acceleration_discontinuity",
    "cartesian_position_motion_generator_start_pose_invalid",
    "cartesian_motion_generator_elbow_limit_violation",
    "cartesian_motion_generator_velocity_limits_violation",
    "cartesian_motion_generator_velocity_discontinuity",
    "cartesian_motion_generator_acceleration_discontinuity",
    "cartesian_motion_generator_elbow_sign_inconsistent",
    "cartesian_motion_generator_start_elbow_invalid",
    "force_controller_desired_force_tolerance_violation",
    "start_elbow_sign_inconsistent",
    "communication_constraints_violation",
    "power_limit_violation",
)
FLAGS = 41  # errors that a state has room for; the rest do not occur in joint space


def _packed(*fields: tuple[str, str, int | tuple[int, ...]]) -> np.dtype:
    return np.dtype([(name, form, () if n == 1 else n) for name, form, n in fields])


STATE = _packed(
    ("message_id", "<u8", 1),
    ("O_T_EE", "<f4", 16),
    ("O_T_EE_d", "<f4", 16),
    ("F_T_EE", "<f4", 16),
    ("EE_T_K", "<f4", 16),
    ("F_T_NE", "<f4", 16),
    ("NE_T_EE", "<f4", 16),
    ("m_ee", "<f4", 1),
    ("I_ee", "<f4", 9),
    ("F_x_Cee", "<f4", 3),
    ("m_load", "<f4", 1),
    ("I_load", "<f4", 9),
    ("F_x_Cload", "<f4", 3),
    ("elbow", "<f4", 2),
    ("elbow_d", "<f4", 2),
    ("tau_J", "<f4", 7),
    ("tau_J_d", "<f4", 7),
    ("dtau_J", "<f4", 7),
    ("q", "<f4", 7),
    ("q_d", "<f4", 7),
    ("dq", "<f4", 7),
    ("dq_d", "<f4", 7),
    ("ddq_d", "<f4", 7),
    ("joint_contact", "<f4", 7),
    ("cartesian_contact", "<f4", 6),
    ("joint_collision", "<f4", 7),
    ("cartesian_collision", "<f4", 6),
    ("tau_ext_hat_filtered", "<f4", 7),
    ("O_F_ext_hat_K", "<f4", 6),
    ("K_F_ext_hat_K", "<f4", 6),
    ("O_dP_EE_d", "<f4", 6),
    ("O_ddP_O", "<f4", 3),
    ("elbow_c", "<f4", 2),
    ("delbow_c", "<f4", 2),
    ("ddelbow_c", "<f4", 2),
    ("O_T_EE_c", "<f4", 16),
    ("O_dP_EE_c", "<f4", 6),
    ("O_ddP_EE_c", "<f4", 6),
    ("theta", "<f4", 7),
    ("dtheta", "<f4", 7),
    ("accelerometer_top", "<f4", (6, 3)),
    ("accelerometer_bottom", "<f4", (6, 3)),
    ("motion_generator_mode", "u1", 1),
    ("controller_mode", "u1", 1),
    ("errors", "?", FLAGS),
    ("reflex_reason", "?", FLAGS),
    ("robot_mode", "u1", 1),
    ("control_command_success_rate", "<f4", 1),
)
COMMAND = _packed(
    ("message_id", "<u8", 1),
    ("q_c", "<f8", 7),
    ("dq_c", "<f8", 7),
    ("O_T_EE_c", "<f8", 16),
    ("O_dP_EE_c", "<f8", 6),
    ("elbow_c", "<f8", 2),
    ("valid_elbow", "?", 1),
    ("motion_generation_finished", "?", 1),
    ("tau_J_d", "<f8", 7),
    ("torque_command_finished", "?", 1),
)
CONNECT = struct.Struct("<HH")  # version, UDP port
MOVE = struct.Struct("<II6d?7d")  # controller, generator, deviations, ...
COLLISION = struct.Struct("<52d")  # lower and upper thresholds: 28 N m, then 24 N
HAND_STATE = struct.Struct("<Idd?H")  # number, width m, most m, holds something, temperature
HAND_MOVE, HAND_GRASP = struct.Struct("<2d"), struct.Struct("<5d")

# What the maker's own URDF says where its description of the arm is narrower, and how fast a joint
# may be so near its end: (low, high rad, rad/s^2, rad/s) in the formula of ``fastest``.
ENDS = np.array(
    [
        (-2.7501, 2.7501, 6.0, 0.30),
        (-1.7918, 1.7918, 2.585, 0.20),
        (-2.9065, 2.9065, 3.5, 0.20),
        (-3.0481, -0.1458, 4.0, 0.30),
        (-2.8101, 2.8101, 17.0, 0.35),
        (0.54092, 4.5205, 5.5, 0.35),
        (-3.0196, 3.0196, 17.0, 0.35),
    ]
)
ACCELERATION, JERK = 10.0, 5000.0  # rad/s^2, rad/s^3, of every joint


def fastest(qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest speed (n,) rad/s that the robot allows its joints at ``qpos`` (n,) rad."""
    low, high, braking, less = ENDS.T
    up = np.sqrt(np.maximum(0.0, 2.0 * braking * (high - qpos))) - less
    down = np.sqrt(np.maximum(0.0, 2.0 * braking * (qpos - low))) - less
    return -np.clip(down, 0.0, fr3.SPEED), np.clip(up, 0.0, fr3.SPEED)


def urdf(name: str = "fr3") -> str:
    """The arm's model as the robot tells it, without shapes."""
    robot = xml.Element("robot", name=name)
    inertial = (fr3.BASE_MASS, fr3.BASE_COM, fr3.BASE_INERTIA)
    _link(robot, "link0", *inertial)
    parent = "link0"
    for link, end, speed in zip(fr3.LINKS, ENDS, fr3.SPEED, strict=True):
        _link(robot, link.body, link.mass, link.com, link.inertia)
        joint = _joint(robot, link.joint, "revolute", link.xyz, link.rpy, parent, link.body)
        xml.SubElement(joint, "axis", xyz="0 0 1")
        low, high, braking, less = (str(value) for value in end)
        xml.SubElement(joint, "limit", effort="87", lower=low, upper=high, velocity=str(speed))
        xml.SubElement(
            joint,
            "position_based_velocity_limits",
            deceleration_limit=braking,
            velocity_offset=less,
        )
        parent = link.body
    xml.SubElement(robot, "link", name="link8")
    _joint(robot, "joint8", "fixed", (0.0, 0.0, fr3.FLANGE), (0.0, 0.0, 0.0), parent, "link8")
    return xml.tostring(robot, encoding="unicode")


def _link(robot: xml.Element, name: str, mass: float, com: tuple, inertia: tuple) -> None:
    inertial = xml.SubElement(xml.SubElement(robot, "link", name=name), "inertial")
    xml.SubElement(inertial, "origin", rpy="0 0 0", xyz=_text(com))
    xml.SubElement(inertial, "mass", value=str(mass))
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    xml.SubElement(inertial, "inertia", dict(zip(names, map(str, inertia), strict=True)))


def _joint(
    robot: xml.Element, name: str, kind: str, xyz: tuple, rpy: tuple, parent: str, child: str
) -> xml.Element:
    joint = xml.SubElement(robot, "joint", name=name, type=kind)
    xml.SubElement(joint, "origin", rpy=_text(rpy), xyz=_text(xyz))
    xml.SubElement(joint, "parent", link=parent)
    xml.SubElement(joint, "child", link=child)
    return joint


def _text(values: tuple) -> str:
    return " ".join(map(str, values))
