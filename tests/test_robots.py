"""Every listed arm against its published numbers, typed here a second time."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
import pytest

from sims.robots import ROBOTS, Robot, get

Array = np.ndarray


class Joint(NamedTuple):
    """A row of a published URDF: the body it moves, its origin (m, rad), axis and limits."""

    name: str
    body: str
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]
    axis: tuple[float, float, float]
    limit: tuple[float, float]
    slides: bool = False  # along the axis, in m, instead of turning about it


class Published(NamedTuple):
    """What an arm's makers state of it."""

    joints: tuple[Joint, ...]  # a chain from the base; the gripper's joint comes last
    tip: tuple[tuple[float, float, float], tuple[float, float, float]]  # m, rad in last arm body
    masses: tuple[float, ...]  # kg
    home_height: float  # m, of the tip; as high as the arm allows with room to spare
    home_reach: float  # m, of the tip from the first joint's axis


Z = (0.0, 0.0, 1.0)

# TheRobotStudio/SO-ARM100, Simulation/SO101/so101_new_calib.urdf, revision fda892c, Apache-2.0.
# Copied as printed there, so its export noise is here and not in the model.
SO101 = Published(
    joints=(
        Joint(
            "shoulder_pan",
            "shoulder",
            (0.0388353, -8.97657e-09, 0.0624),
            (3.14159, 4.18253e-17, -3.14159),
            Z,
            (-1.91986, 1.91986),
        ),
        Joint(
            "shoulder_lift",
            "upper_arm",
            (-0.0303992, -0.0182778, -0.0542),
            (-1.5708, -1.5708, 0.0),
            Z,
            (-1.74533, 1.74533),
        ),
        Joint(
            "elbow_flex",
            "lower_arm",
            (-0.11257, -0.028, 1.73763e-16),
            (-3.63608e-16, 8.74301e-16, 1.5708),
            Z,
            (-1.69, 1.69),
        ),
        Joint(
            "wrist_flex",
            "wrist",
            (-0.1349, 0.0052, 3.62355e-17),
            (4.02456e-15, 8.67362e-16, -1.5708),
            Z,
            (-1.65806, 1.65806),
        ),
        Joint(
            "wrist_roll",
            "gripper",
            (5.55112e-17, -0.0611, 0.0181),
            (1.5708, 0.0486795, 3.14159),
            Z,
            (-2.74385, 2.84121),
        ),
        Joint(
            "gripper",
            "moving_jaw",
            (0.0202, 0.0188, -0.0234),
            (1.5708, -5.24284e-08, -1.41553e-15),
            Z,
            (-0.174533, 1.74533),
        ),
    ),
    tip=((-0.0079, -0.000218121, -0.0981274), (0.0, 3.14159, 0.0)),
    masses=(0.147, 0.100006, 0.103, 0.104, 0.079, 0.087, 0.012),
    home_height=0.07,
    home_reach=0.20,
)

TURN, HALF = 2 * np.pi, np.pi  # rad

# UniversalRobots/Universal_Robots_ROS2_Description, config/ur5e/{default_kinematics,joint_limits,
# physical_parameters}.yaml, revision 2221ec0, BSD-3-Clause. base_link_inertia is half a turn from
# base_link, which the first origin takes in. The gripper is of google-deepmind/mujoco_menagerie,
# robotiq_2f85/2f85.xml, revision 1b428b0, BSD-2-Clause: heights 0.0038 + 0.007 + 0.0609 + 0.0375 +
# 0.01352 + 0.0375 m to the fingers' ends, of which our tip keeps 5 mm; 85 mm of opening; masses.
UR5E = Published(
    joints=(
        Joint("shoulder_pan", "shoulder", (0.0, 0.0, 0.1625), (0.0, 0.0, HALF), Z, (-TURN, TURN)),
        Joint("shoulder_lift", "upper_arm", (0, 0, 0), (1.570796327, 0, 0), Z, (-TURN, TURN)),
        Joint("elbow", "forearm", (-0.425, 0, 0), (0, 0, 0), Z, (-HALF, HALF)),
        Joint("wrist_1", "wrist_1", (-0.3922, 0, 0.1333), (0, 0, 0), Z, (-TURN, TURN)),
        Joint(
            "wrist_2",
            "wrist_2",
            (0, -0.0997, -2.044881182297852e-11),
            (1.570796327, 0, 0),
            Z,
            (-TURN, TURN),
        ),
        Joint(
            "wrist_3",
            "wrist_3",
            (0, 0.0996, -2.042830148012698e-11),
            (1.570796326589793, 3.141592653589793, 3.141592653589793),
            Z,
            (-TURN, TURN),
        ),
        Joint("gripper", "left_finger", (0, 0, 0.094), (0, 0, 0), (1, 0, 0), (0, 0.0425), True),
    ),
    tip=((0.0, 0.0, 0.155), (0.0, 0.0, 0.0)),
    masses=(4.0, 3.761, 8.058, 2.846, 1.37, 1.3, 0.365, 0.777441, *[0.0612811] * 2),
    home_height=0.11,
    home_reach=0.45,
)

# frankaemika/franka_description, robots/fr3/{kinematics,joint_limits,inertials}.yaml and
# end_effectors/common/franka_hand.xacro, revision b299b39, Apache-2.0: the hand 45 degrees back on
# the flange at 0.107 m, the fingers at 0.0584 m, the tip at 0.1034 m. Its jaws open along y.
FR3 = Published(
    joints=(
        Joint("joint1", "link1", (0, 0, 0.333), (0, 0, 0), Z, (-2.7437, 2.7437)),
        Joint("joint2", "link2", (0, 0, 0), (-1.570796326794897, 0, 0), Z, (-1.7837, 1.7837)),
        Joint("joint3", "link3", (0, -0.316, 0), (1.570796326794897, 0, 0), Z, (-2.9007, 2.9007)),
        Joint("joint4", "link4", (0.0825, 0, 0), (1.570796326794897, 0, 0), Z, (-3.0421, -0.1518)),
        Joint(
            "joint5", "link5", (-0.0825, 0.384, 0), (-1.570796326794897, 0, 0), Z, (-2.8065, 2.8065)
        ),
        Joint("joint6", "link6", (0, 0, 0), (1.570796326794897, 0, 0), Z, (0.5445, 4.5169)),
        Joint("joint7", "link7", (0.088, 0, 0), (1.570796326794897, 0, 0), Z, (-3.0159, 3.0159)),
        Joint(
            "gripper",
            "left_finger",
            (0, 0, 0.107 + 0.0584),
            (0, 0, np.pi / 4),
            (1, 0, 0),
            (0, 0.04),
            True,
        ),
    ),
    tip=((0.0, 0.0, 0.107 + 0.1034), (0.0, 0.0, np.pi / 4)),
    masses=(
        2.3966,
        2.9274653454,
        2.9355370338,
        2.2449013699,
        2.6155955791,
        2.3271207594,
        1.8170376524,
        0.6271432862,
        0.6544,
        0.0291,
        0.0291,
    ),
    home_height=0.11,
    home_reach=0.45,
)

# google-deepmind/mujoco_menagerie, low_cost_robot_arm/low_cost_robot_arm.xml, revision ef4d04f,
# Apache-2.0: half a turn from ours, and the gripper's axis turned round. The base's mass is ours,
# and so is the tip, midway between the source's pads.
Y, X = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)
KOCH = Published(
    joints=(
        Joint(
            "shoulder_pan", "shoulder", (-0.012, 0, 0.0409), (0, 0, HALF), (0, 0, -1.0), (-2.2, 2.2)
        ),
        Joint("shoulder_lift", "upper_arm", (0, -0.0209, 0.0154), (0, 0, 0), Y, (-1.57, 0.6)),
        Joint(
            "elbow_flex",
            "lower_arm",
            (-0.0148, 0.0065, 0.1083),
            (0, 0, 0),
            (0, -1.0, 0),
            (-1.57, 1.45),
        ),
        Joint("wrist_flex", "wrist", (-0.10048, 5e-05, 0.0026999), (0, 0, 0), Y, (-2.0, 2.0)),
        Joint("wrist_roll", "gripper", (-0.045, 0.013097, 0), (0, 0, 0), X, (-3.14, 3.14)),
        Joint("gripper", "moving_jaw", (-0.01315, -0.0075, 0.0145), (0, 0, 0), Z, (-0.032, 1.60)),
    ),
    tip=((-0.066, 0.008, 0.0005), (-HALF / 2, 0.0, HALF / 2)),
    masses=(0.12, 0.05014, 0.050177, 0.06379, 0.019805, 0.029277, 0.012831),
    home_height=0.07,
    home_reach=0.14,
)
PUBLISHED = {"so101": SO101, "ur5e": UR5E, "fr3": FR3, "koch": KOCH}

# The makers' Denavit-Hartenberg tables, typed from their documentation: an account of the flange
# that owes nothing to the descriptions above. Rows are (a, d, alpha) in m and rad.
# UR5e: support article "DH parameters for calculations of kinematics and dynamics", standard
# convention, in the controller's base frame, half a turn from ours. FR3: Franka Control Interface
# documentation, "Robot and interface specifications", Craig's convention, flange included.
UR5E_DH = (
    (0.0, 0.1625, np.pi / 2),
    (-0.425, 0.0, 0.0),
    (-0.3922, 0.0, 0.0),
    (0.0, 0.1333, np.pi / 2),
    (0.0, 0.0997, -np.pi / 2),
    (0.0, 0.0996, 0.0),
)
FR3_DH = (
    (0.0, 0.333, 0.0),
    (0.0, 0.0, -np.pi / 2),
    (0.0, 0.316, np.pi / 2),
    (0.0825, 0.0, np.pi / 2),
    (-0.0825, 0.384, -np.pi / 2),
    (0.0, 0.0, np.pi / 2),
    (0.088, 0.0, np.pi / 2),
)


def rotation(rpy: tuple[float, float, float]) -> Array:
    """Matrix (3, 3) of URDF roll, pitch, yaw in rad."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def turn(axis: tuple[float, float, float], angle: Array) -> Array:
    """Matrices (N, 3, 3) of turns by `angle` (N,) rad about the unit `axis`, by Rodrigues."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.eye(3) + s * cross + (1 - c) * (cross @ cross)


def forward(published: Published, q: Array) -> tuple[Array, Array, Array, Array]:
    """Body origins (N, J, 3) m and axes (N, J, 3, 3), then the tip's, of joint vectors (N, J)."""
    pos, rot = np.zeros((len(q), 3)), np.broadcast_to(np.eye(3), (len(q), 3, 3))
    origins, frames = [], []
    for i, joint in enumerate(published.joints):
        pos = pos + rot @ np.array(joint.xyz)
        rot = rot @ rotation(joint.rpy)
        if joint.slides:
            pos = pos + rot @ np.array(joint.axis) * q[:, i, None]
        else:
            rot = rot @ turn(joint.axis, q[:, i])
        origins.append(pos)
        frames.append(rot)
    offset, rpy = published.tip
    last = len(published.joints) - 2  # the body that the fingers are on
    tip = origins[last] + frames[last] @ np.array(offset)
    return np.stack(origins, 1), np.stack(frames, 1), tip, frames[last] @ rotation(rpy)


def angle_between(a: Array, b: Array) -> float:
    """Angle in rad from frame `a` to frame `b`, each (3, 3)."""
    # By the skew part: arccos of the trace cannot tell angles under 1e-8 from rounding.
    d = a.T @ b
    skew = np.array([d[2, 1] - d[1, 2], d[0, 2] - d[2, 0], d[1, 0] - d[0, 1]]) / 2
    return float(np.arctan2(np.linalg.norm(skew), (np.trace(d) - 1) / 2))


def compiled(robot: Robot, **base: object) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The arm alone in a world, and its data at zero."""
    spec = mujoco.MjSpec()
    robot.build(spec, **base)
    model = spec.compile()
    return model, mujoco.MjData(model)


def at_home(robot: Robot, model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Return nothing: put the arm in its home pose, gripper half open, and hold it there."""
    target = dict(zip(robot.joints, robot.home, strict=True))
    target[robot.gripper_joint] = sum(robot.gripper_range) / 2
    for name, angle in target.items():
        data.joint(name).qpos[0] = angle
        data.actuator(name).ctrl[0] = angle
    open_jaws(robot, data, sum(robot.gripper_range) / 2)
    mujoco.mj_forward(model, data)


def open_jaws(robot: Robot, data: mujoco.MjData, opening: float) -> None:
    """Return nothing: put the gripper's joint, and those that mirror it, at `opening`."""
    for name in (robot.gripper_joint, *robot.gripper_followers):
        data.joint(name).qpos[0] = opening


@pytest.fixture(params=sorted(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    """Each listed arm in turn."""
    return ROBOTS[request.param]


@pytest.fixture
def published(robot: Robot) -> Published:
    """The makers' numbers of that arm; an arm listed without them fails here."""
    return PUBLISHED[robot.name]


def test_robot_kinematics_match_published_values(robot: Robot, published: Published) -> None:
    model, data = compiled(robot)
    low, high = np.array([j.limit for j in published.joints]).T
    q = np.random.default_rng(0).uniform(low, high, (1000, len(low)))
    origins, frames, tip, tip_frame = forward(published, q)
    address = [model.joint(j.name).qposadr[0] for j in published.joints]
    bodies = [model.body(j.body).id for j in published.joints]
    site = model.site(robot.tool_site).id
    for i, row in enumerate(q):
        data.qpos[address] = row
        mujoco.mj_kinematics(model, data)
        assert np.abs(data.xpos[bodies] - origins[i]).max() < 1e-4
        assert np.abs(data.site_xpos[site] - tip[i]).max() < 1e-4
        for body, frame in zip(bodies, frames[i], strict=True):
            assert angle_between(data.xmat[body].reshape(3, 3), frame) < 1e-4
        assert angle_between(data.site_xmat[site].reshape(3, 3), tip_frame[i]) < 1e-4


@pytest.mark.parametrize("degree", [True, False])
def test_robot_limits_match_published_values(
    robot: Robot, published: Published, degree: bool
) -> None:
    *arm, gripper = published.joints
    assert robot.joints == tuple(j.name for j in arm)
    assert robot.gripper_joint == gripper.name
    np.testing.assert_allclose(robot.joint_range, [j.limit for j in arm], atol=1e-9)
    np.testing.assert_allclose(robot.gripper_range, gripper.limit, atol=1e-9)
    spec = mujoco.MjSpec()
    spec.compiler.degree = degree  # whichever unit the scene's author works in
    robot.build(spec)
    model = spec.compile()
    assert [model.actuator(i).name for i in range(model.nu)] == list(robot.actuators)
    for joint in published.joints:
        np.testing.assert_allclose(model.joint(joint.name).range, joint.limit, atol=1e-9)
        servo = model.actuator(joint.name)
        np.testing.assert_allclose(servo.ctrlrange, joint.limit, atol=1e-9)
        assert servo.trnid[0] == model.joint(joint.name).id
    for name, effort in zip(robot.joints, robot.effort_limit, strict=True):
        np.testing.assert_allclose(model.actuator(name).forcerange, [-effort, effort])


def test_robot_masses_match_published_values(robot: Robot, published: Published) -> None:
    model, _ = compiled(robot)
    assert model.body_mass.sum() == pytest.approx(sum(published.masses), rel=0.01)
    assert model.body_mass[1:] == pytest.approx(published.masses, rel=0.01)


def test_home_pose_points_down_in_front_of_the_base(robot: Robot, published: Published) -> None:
    model, data = compiled(robot)
    at_home(robot, model, data)
    tip = data.site(robot.tool_site)
    axis = data.joint(robot.joints[0]).xanchor
    assert tip.xpos[2] == pytest.approx(published.home_height, abs=1e-3)
    assert tip.xpos[0] - axis[0] == pytest.approx(published.home_reach, abs=1e-3)
    assert tip.xpos[1] == pytest.approx(axis[1], abs=1e-3)
    assert tip.xmat.reshape(3, 3)[:, 2] == pytest.approx([0, 0, -1], abs=1e-3)
    margin = np.minimum(robot.home - robot.joint_range[:, 0], robot.joint_range[:, 1] - robot.home)
    assert margin.min() > 0.1


def test_servos_hold_home_against_gravity(robot: Robot) -> None:
    model, data = compiled(robot)
    at_home(robot, model, data)
    start = data.qpos.copy()
    droop = np.zeros(model.nq)
    while data.time < 2.0:
        mujoco.mj_step(model, data)
        droop = np.maximum(droop, np.abs(data.qpos - start))
    assert droop.max() < 0.06
    assert np.abs(data.qvel).max() < 1e-3  # at rest, not merely near: no ringing of the gains


def test_closed_jaws_nearly_touch_at_the_tip(robot: Robot) -> None:
    model, data = compiled(robot)
    fixed, moving = (model.geom(name).id for name in robot.finger_geoms)
    at_home(robot, model, data)
    segment = np.zeros(6)
    gap = {}
    for angle in robot.gripper_range:
        open_jaws(robot, data, angle)
        mujoco.mj_forward(model, data)
        gap[angle] = mujoco.mj_geomDistance(model, data, fixed, moving, 1.0, segment)
        if angle == robot.gripper_range[0]:
            middle = (segment[:3] + segment[3:]) / 2
            ends = [lowest_corner(data, geom) for geom in (fixed, moving)]
    closed, opened = (gap[angle] for angle in robot.gripper_range)
    assert 0 < closed < 2e-3
    assert opened > 0.04
    tip = data.site(robot.tool_site)
    offset = tip.xmat.reshape(3, 3).T @ (middle - tip.xpos)
    assert abs(offset[0]) < 1e-3  # midway, in the direction the jaws open
    past = [tip.xpos[2] - end for end in ends]  # at home the tool points straight down
    assert 0 < min(past) and max(past) < 7e-3  # the jaws reach a little past the tip


def lowest_corner(data: mujoco.MjData, geom: int) -> float:
    """Height in m of the lowest corner of a box."""
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1)
    axes, half = data.geom_xmat[geom].reshape(3, 3), data.model.geom_size[geom]
    return float(data.geom_xpos[geom][2] + (axes[2] * half @ corners).min())


def dh(a: float, d: float, alpha: float, theta: float, convention: str) -> Array:
    """Matrix (4, 4) of one row of a DH table, "standard" or "craig"."""
    about_x, about_z = np.eye(4), np.eye(4)
    about_x[:3, :3], about_x[0, 3] = rotation((alpha, 0, 0)), a
    about_z[:3, :3], about_z[2, 3] = rotation((0, 0, theta)), d
    return about_z @ about_x if convention == "standard" else about_x @ about_z


@pytest.mark.parametrize(
    ("name", "table", "convention", "base", "flange"),
    [
        ("ur5e", UR5E_DH, "standard", rotation((0, 0, np.pi)), 0.0),
        ("fr3", FR3_DH, "craig", np.eye(3), 0.107),
    ],
)
def test_flange_pose_matches_the_dh_table(
    name: str, table: tuple, convention: str, base: Array, flange: float
) -> None:
    robot = ROBOTS[name]
    model, data = compiled(robot)
    rng, last = np.random.default_rng(1), PUBLISHED[name].joints[-2].body
    for _ in range(1000):
        q = rng.uniform(*robot.joint_range.T)
        chain = np.eye(4)
        for row, angle in zip(table, q, strict=True):
            chain = chain @ dh(*row, angle, convention)
        for joint, angle in zip(robot.joints, q, strict=True):
            data.joint(joint).qpos[0] = angle
        mujoco.mj_kinematics(model, data)
        body = data.body(last)
        at = body.xpos + body.xmat.reshape(3, 3)[:, 2] * flange
        there = chain[:3, 3] + chain[:3, 2] * flange
        assert np.abs(at - base @ there).max() < 1e-4
        assert angle_between(body.xmat.reshape(3, 3), base @ chain[:3, :3]) < 1e-4


def test_jaws_close_symmetrically_on_an_object(robot: Robot) -> None:
    spec = mujoco.MjSpec()
    spec.option.timestep = 0.005
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    robot.build(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    at_home(robot, model, data)
    closed, opened = robot.gripper_range
    for target in (closed, opened, closed):
        data.actuator(robot.gripper_joint).ctrl[0] = target
        start = data.time
        while data.time < start + 1.5:
            mujoco.mj_step(model, data)
            at = data.joint(robot.gripper_joint).qpos[0]
            for name in robot.gripper_followers:
                assert data.joint(name).qpos[0] == pytest.approx(at, abs=2e-3)
        assert at == pytest.approx(target, abs=0.02 * abs(opened - closed))


def test_arm_collides_with_the_world_not_itself(robot: Robot) -> None:
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(name="table", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.1])
    robot.build(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    table = model.geom("table").id
    rng, touched = np.random.default_rng(0), set()
    for _ in range(300):
        for name, (low, high) in zip(robot.joints, robot.joint_range, strict=True):
            data.joint(name).qpos[0] = rng.uniform(low, high)
        mujoco.mj_forward(model, data)
        pairs = data.contact.geom
        assert np.all(np.any(pairs == table, axis=1))
        touched.update(int(g) for g in pairs.ravel())
    assert {model.geom(name).id for name in robot.finger_geoms} <= touched


def test_robot_base_can_be_placed(robot: Robot) -> None:
    (model, data), (moved, moved_data) = (
        compiled(robot),
        compiled(robot, pos=(0.3, -0.2, 0.1), yaw=np.pi / 2),
    )
    at_home(robot, model, data)
    at_home(robot, moved, moved_data)
    x, y, z = data.site(robot.tool_site).xpos
    assert moved_data.site(robot.tool_site).xpos == pytest.approx([0.3 - y, -0.2 + x, 0.1 + z])


def test_servos_can_give_the_stated_acceleration(robot: Robot) -> None:
    model, data = compiled(robot)
    n, rng = len(robot.joints), np.random.default_rng(0)
    dofs = [model.joint(name).dofadr[0] for name in robot.joints]
    for _ in range(300):
        for name, (low, high) in zip(robot.joints, robot.joint_range, strict=True):
            data.joint(name).qpos[0] = rng.uniform(low, high)
        mujoco.mj_forward(model, data)
        inertia = np.zeros((model.nv, model.nv))
        for i in range(model.nv):
            mujoco.mj_mulM(model, data, inertia[i], np.eye(model.nv)[i])
        need = np.abs(inertia[np.ix_(dofs, dofs)]) @ robot.acceleration_limit
        need += np.abs(data.qfrc_bias[dofs])  # at rest this is the weight
        assert need.shape == (n,)
        assert np.all(need < robot.effort_limit)


def test_robot_is_read_only_and_consistent(robot: Robot) -> None:
    n = len(robot.joints)
    assert robot.joint_range.shape == (n, 2)
    for limits in (robot.velocity_limit, robot.acceleration_limit, robot.effort_limit):
        assert limits.shape == (n,)
        assert np.all(limits > 0)
    with pytest.raises(ValueError, match="read-only"):
        robot.home[0] = 1.0


def test_unknown_robot_error_lists_the_robots() -> None:
    for name, robot in ROBOTS.items():
        assert get(name) is robot
        assert robot.name == name
    with pytest.raises(ValueError, match="so101") as error:
        get("so-101")
    assert "Did you mean 'so101'" in str(error.value)
    with pytest.raises(ValueError, match="available robots: .*so101"):
        get("xyzzy")
