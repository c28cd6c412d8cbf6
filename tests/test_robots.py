"""Every listed arm against its published numbers, typed here a second time."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
import pytest

from sims.robots import ROBOTS, Robot, get

Array = np.ndarray


class Joint(NamedTuple):
    """A row of a published URDF: the body it moves, its origin (m, rad), axis and limits (rad)."""

    name: str
    body: str
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]
    axis: tuple[float, float, float]
    limit: tuple[float, float]


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
PUBLISHED = {"so101": SO101}


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
        rot = rot @ rotation(joint.rpy) @ turn(joint.axis, q[:, i])
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
    mujoco.mj_forward(model, data)


@pytest.fixture(params=sorted(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    """Each listed arm in turn."""
    return ROBOTS[request.param]


@pytest.fixture
def published(robot: Robot) -> Published:
    """The makers' numbers of that arm; an arm listed without them fails here."""
    return PUBLISHED[robot.name]


def test_kinematics_are_the_published_ones(robot: Robot, published: Published) -> None:
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
def test_limits_are_the_published_ones(robot: Robot, published: Published, degree: bool) -> None:
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


def test_mass_is_the_published_one(robot: Robot, published: Published) -> None:
    model, _ = compiled(robot)
    assert model.body_mass.sum() == pytest.approx(sum(published.masses), rel=0.01)
    assert model.body_mass[1:] == pytest.approx(published.masses, rel=0.01)


def test_home_points_straight_down_ahead_of_the_base(robot: Robot, published: Published) -> None:
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
        data.joint(robot.gripper_joint).qpos[0] = angle
        mujoco.mj_forward(model, data)
        gap[angle] = mujoco.mj_geomDistance(model, data, fixed, moving, 1.0, segment)
        if angle == robot.gripper_range[0]:
            middle = (segment[:3] + segment[3:]) / 2
    closed, opened = (gap[angle] for angle in robot.gripper_range)
    assert 0 < closed < 2e-3
    assert opened > 0.04
    tip = data.site(robot.tool_site)
    offset = tip.xmat.reshape(3, 3).T @ (middle - tip.xpos)
    assert abs(offset[0]) < 1e-3  # midway, in the direction the jaws open
    assert 0 < offset[2] < 6e-3  # the jaws reach a little past the tip


def test_arm_touches_the_world_and_not_itself(robot: Robot) -> None:
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


def test_base_goes_where_it_is_put(robot: Robot) -> None:
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


def test_get_finds_names_and_lists_them_when_it_cannot() -> None:
    for name, robot in ROBOTS.items():
        assert get(name) is robot
        assert robot.name == name
    with pytest.raises(ValueError, match="so101") as error:
        get("so-101")
    assert "Did you mean 'so101'" in str(error.value)
    with pytest.raises(ValueError, match="known robots: .*so101"):
        get("xyzzy")
