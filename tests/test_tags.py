"""Perception by tags and the calibration of cameras, on rendered pictures."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import mujoco
import numpy as np
import pytest

import sims
from real_robot import VirtualClock
from real_robot.emulators.camera import EmulatedCamera, TaggedScene
from real_robot.perception.calibration_boards import CalibrationBoard, calibrate_lens, locate_camera
from real_robot.perception.camera import CameraModel, Frame
from real_robot.perception.tags import TagLocator, TagPerception, load_tags, save_tags
from real_robot.sim.scene import SimScene
from robo_rl.cli import main
from sims.rendering.cameras import Camera, Renderer

TASK = sims.make_task("reach", robot="so101", goal="above_red_cube")


@pytest.fixture(scope="module")
def tagged() -> TaggedScene:
    return TaggedScene(TASK)


@pytest.fixture
def scene() -> SimScene:
    return SimScene(TASK, 0)


@pytest.fixture
def camera(tagged: TaggedScene, scene: SimScene) -> Iterator[EmulatedCamera]:
    camera = EmulatedCamera(tagged, lambda: (scene.state(), 7.0))
    yield camera
    camera.close()


def turn_between(a: np.ndarray, b: np.ndarray) -> float:
    """Angle in rad between two unit quaternions."""
    return 2 * float(np.arccos(min(1.0, abs(a @ b))))


def test_tags_locate_objects(tagged: TaggedScene, scene: SimScene, camera: EmulatedCamera) -> None:
    locator = TagLocator(tagged.camera, tagged.objects)
    away, turned, seen = [], [], 0
    for seed in range(8):
        scene.reset(seed)
        found, truth = locator.locate(camera.read().image), scene.poses()
        seen += len(found)
        for name, (pos, quat) in found.items():
            away.append(np.linalg.norm(pos - truth[name][0]))
            turned.append(turn_between(quat, truth[name][1]))
    assert seen >= 23  # of 24; the arm may hide one
    assert np.median(away) < 0.003 and np.max(away) < 0.008
    assert np.median(turned) < 0.02 and np.max(turned) < 0.1


def test_tag_poses_have_image_time_and_age_when_hidden(
    tagged: TaggedScene, scene: SimScene, camera: EmulatedCamera
) -> None:
    clock, dark = VirtualClock(10.0), [False]

    class Curtain:
        def read(self) -> Frame:
            frame = camera.read()
            return Frame(frame.image * (not dark[0]), clock.now_ns() * 1e-9)

    eyes = TagPerception(Curtain(), TagLocator(tagged.camera, tagged.objects), clock=clock)
    assert eyes.read()["red_cube"].t == pytest.approx(10.0)
    eyes.read()
    assert eyes.frames == 1  # once in a period
    dark[0] = True
    clock.advance(0.2)
    assert eyes.read()["red_cube"].t == pytest.approx(10.0) and eyes.frames == 2
    dark[0] = False
    clock.advance(0.2)
    assert eyes.read()["red_cube"].t == pytest.approx(10.4)


def test_tags_refuse_wrong_image_size_and_duplicate_ids(tagged: TaggedScene) -> None:
    with pytest.raises(ValueError, match=r"image has shape \(4, 4\)"):
        TagLocator(tagged.camera, tagged.objects).locate(np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(ValueError, match="tag ids must be unique"):
        TagLocator(tagged.camera, [*tagged.objects, tagged.objects[0]])
    with pytest.raises(ValueError, match="unknown tag family 'qr'; available: aruco4x4"):
        TagLocator(tagged.camera, tagged.objects, "qr")


def test_tags_on_objects_change_no_physics(tagged: TaggedScene, scene: SimScene) -> None:
    plain = TASK.spec().compile()
    for name in ("body_mass", "body_inertia", "dof_armature"):
        np.testing.assert_allclose(getattr(tagged.model, name), getattr(plain, name))
    assert tagged.model.nq == plain.nq and tagged.model.nu == plain.nu


# Calibration.
VIEW = Camera("board", (0.0, 0.0, 0.0), (0.0, 0.0, -1.0), 40.0, 720, 960, up=(0.0, 1.0, 0.0))
BOARD = CalibrationBoard()


def board_pictures() -> tuple[list[np.ndarray], CameraModel, list[np.ndarray]]:
    """Rendered pictures of the board in twelve poses, the true camera, corner and axes of each."""
    spec = mujoco.MjSpec()
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = (0.6,) * 3, (0.3,) * 3
    spec.visual.map.znear = 0.01
    picture = BOARD.picture(8000)
    margin = 120
    picture = cv2.copyMakeBorder(picture, *[margin] * 4, cv2.BORDER_CONSTANT, value=255)
    height, width = picture.shape
    texture = spec.add_texture(name="board", type=mujoco.mjtTexture.mjTEXTURE_2D)
    texture.width, texture.height, texture.nchannel = width, height, 3
    texture.data = np.repeat(picture[..., None], 3, axis=2).tobytes()
    material = spec.add_material(name="board", texrepeat=[1, 1], specular=0.0)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "board"
    body = spec.worldbody.add_body(name="board")
    body.add_freejoint()
    size = [width / 8000 / 2, height / 8000 / 2, 0.001]
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=size, material="board", mass=1.0)
    VIEW.add_to(spec)
    model = spec.compile()
    data, renderer, rng = mujoco.MjData(model), Renderer(model, VIEW.height, VIEW.width), None
    rng = np.random.default_rng(4)
    images, poses = [], []
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    for _ in range(12):
        tilt, quat = rng.uniform(-0.6, 0.6, 3), np.empty(4)
        mujoco.mju_euler2Quat(quat, tilt, "xyz")
        data.qpos[:3] = [*rng.uniform(-0.05, 0.05, 2), rng.uniform(-0.55, -0.35)]
        data.qpos[3:7] = quat
        row = np.empty(renderer.nstate)
        mujoco.mj_getState(model, data, row, kind)
        images.append(renderer.frames(row[None], "board")[0].copy())
        axes = np.empty(9)
        mujoco.mju_quat2Mat(axes, quat)
        poses.append(np.concatenate([data.qpos[:3], axes]))
    renderer.close()
    right, up = VIEW.axes()
    truth = CameraModel.ideal(VIEW.width, VIEW.height, VIEW.fovy, np.zeros(3), right, up)
    return images, truth, poses


def corner_and_axes(pose: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The board's corner, along its columns, down its rows, in the world."""
    axes = pose[3:].reshape(3, 3)
    width, height = BOARD.size
    corner = pose[:3] + axes @ [-width / 2, height / 2, 0.001]
    return corner, axes[:, 0], -axes[:, 1]


@pytest.fixture(scope="module")
def pictures() -> tuple[list[np.ndarray], CameraModel, list[np.ndarray]]:
    return board_pictures()


def test_camera_calibration_recovers_lens_and_pose(
    pictures: tuple[list[np.ndarray], CameraModel, list[np.ndarray]],
) -> None:
    images, truth, poses = pictures
    model, error, used = calibrate_lens(images, BOARD)
    assert used >= 10 and error < 0.5
    np.testing.assert_allclose(model.matrix, truth.matrix, rtol=0.01, atol=5.0)
    placed, place_error = locate_camera(model, images[0], BOARD, *corner_and_axes(poses[0]))
    assert place_error < 0.6
    where = -placed.rotation.T @ placed.translation
    np.testing.assert_allclose(where, np.zeros(3), atol=0.006)
    with pytest.raises(ValueError, match="found in 0 of 7 images, at least 6 are needed"):
        calibrate_lens([np.zeros_like(images[0])] * 7, BOARD)


def test_calibrate_camera_command_from_a_folder(
    pictures: tuple[list[np.ndarray], CameraModel, list[np.ndarray]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    images, truth, poses = pictures
    for i, image in enumerate(images):
        cv2.imwrite(str(tmp_path / f"{i:02}.png"), image[..., ::-1])
    corner, along, down = ([f"{v:.9f}" for v in x] for x in corner_and_axes(poses[0]))
    command = ["calibrate", "camera", "--pictures", str(tmp_path), "--lying", "00.png", "--json"]
    command += ["--corner", *corner, "--along", *along, "--down", *down]
    assert main([*command, "--out", str(tmp_path / "camera.json")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["focal_px"] == pytest.approx(truth.matrix[0, 0], rel=0.01)
    saved = CameraModel.load(tmp_path / "camera.json")
    again = saved.project(np.array([[0.0, 0.0, -0.4]]))
    np.testing.assert_allclose(again, truth.project(np.array([[0.0, 0.0, -0.4]])), atol=4.0)


def test_calibrate_tags_writes_sheets_and_layout(
    tagged: TaggedScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "tags", "--out", str(tmp_path)]) == 0
    assert "254 dots to the inch" in capsys.readouterr().out
    objects, family = load_tags(tmp_path / "tags.json")
    assert family == "aruco4x4" and [o.entity for o in objects] == [
        o.entity for o in tagged.objects
    ]
    for ours, theirs in zip(objects, tagged.objects, strict=True):
        for number in ours.tags:
            np.testing.assert_allclose(ours.tags[number], theirs.tags[number])
    assert len(list(tmp_path.glob("*.png"))) == 1 + 18
    save_tags(tmp_path / "again.json", objects, family)
    assert (tmp_path / "again.json").read_text() == (tmp_path / "tags.json").read_text()


def test_camera_that_never_answers_is_left_on_close(
    tagged: TaggedScene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And so are all threads that are waited for: a bare join waits for ever."""
    monkeypatch.setattr("real_robot.core.threads.WAIT", 0.2)
    answers = threading.Event()

    class Blocked:
        def read(self) -> Frame:
            answers.wait()
            raise OSError("unplugged")

    eyes = TagPerception(Blocked(), TagLocator(tagged.camera, tagged.objects)).start()
    begun = time.monotonic()
    eyes.close()
    assert time.monotonic() - begun < 3.0
    assert "a camera's thread did not end within" in capsys.readouterr().err
    answers.set()
    root = Path(__file__).parents[1]
    files = [p for part in ("real_robot", "robo_rl", "sims") for p in (root / part).rglob("*.py")]
    assert len(files) > 200
    bare = [f"{p}" for p in files if re.search(r"\.join\(\)", p.read_text())]
    assert not bare
