"""`robo-rl calibrate`: arms and cameras. Loads no torch."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import tyro
from rich.console import Console

from real_robot import RobotFault, arms, drivers
from real_robot.perception.calibration_boards import CalibrationBoard, calibrate_lens, locate_camera
from robo_rl.commands import calibrate_servo
from robo_rl.commands.options import Json
from robo_rl.runtime.progress_bars import stderr_console
from sims import make_task

DOTS = 10_000  # px/m of printed sheets: 254 dots to the inch


@dataclass(frozen=True, kw_only=True)
class ServosCommand:
    """Calibrates an arm's servos: zero, range and settings, with torque off and an operator."""

    port: str  # device path, or the USB adapter's serial number
    out: Path | None = None  # calibration file to write, in LeRobot's format; default NAME.json
    patience: float = 0.05  # s that a servo's reply may take beyond its time on the wire


@dataclass(frozen=True, kw_only=True)
class CameraCommand:
    """Calibrates a camera's lens from images of the board, and its pose from one of them."""

    pictures: Path  # folder of PNG or JPEG images of the board
    out: Path = Path("camera.json")  # camera file to write
    lying: str | None = None  # name of the image in which the board lies at a known place
    corner: tuple[float, float, float] = (0.0, 0.0, 0.0)  # m, board corner in the robot frame
    # direction of the board's columns, unit vector
    along: tuple[float, float, float] = (0.0, -1.0, 0.0)
    # direction of the board's rows, unit vector
    down: tuple[float, float, float] = (-1.0, 0.0, 0.0)
    square: float = 0.03  # m, side of one square as printed
    as_json: Json = False  # print JSON


@dataclass(frozen=True, kw_only=True)
class SheetsCommand:
    """Writes the board and tags to print at full size, and the tag layout file."""

    task: str = "reach"  # task whose objects get tags
    robot: str = "so101"  # robot of the scene
    out: Path = Path("tags")  # folder to write


def main(argv: Sequence[str]) -> int:
    """Runs the chosen calibration."""
    servos = {name: _servos(name) for name in arms.ARMS if arms.spec(name).calibrated}
    command: Any = tyro.extras.subcommand_cli_from_dict(
        servos | {"servo": _step_test, "camera": _camera, "tags": _sheets},
        args=list(argv),
        prog="robo-rl calibrate",
        description="Calibrates arms and cameras.",
    )
    return int(command or 0)


def _servos(name: str) -> Callable[..., int]:
    """Returns the calibration command of the servos of arm ``name``."""

    def calibrate_servos(command: tyro.conf.OmitArgPrefixes[ServosCommand]) -> int:
        from real_robot.drivers.servo_setup import ServoCalibration, run_calibration

        console, out = stderr_console(), command.out or Path(f"{name}.json")
        driver = drivers.make(name, command.port, patience=command.patience)
        try:
            found = run_calibration(ServoCalibration(driver), out, console.print, _Enter(console))
        except RobotFault as error:
            raise ValueError(f"{name} at {command.port}: {error}") from error
        finally:
            driver.close()
        for joint, c in found.joints.items():
            print(f"{joint:14} {c.range_min:5} to {c.range_max:5}, offset {c.homing_offset}")
        print(f"wrote {out}; its hash is {found.sha256[:12]}")
        return 0

    calibrate_servos.__doc__ = f"The {name}'s servos."
    return calibrate_servos


class _Enter:
    """Whether Enter was pressed: asks once for a text, and answers at once until it was."""

    def __init__(self, console: Console):
        self._console, self._asked = console, ""

    def __call__(self, text: str) -> bool:
        if self._asked != text:
            self._console.print(text + " [Enter]", markup=False)
            self._asked = text
        ready, _, _ = select.select([sys.stdin], [], [], 0.02)
        if not ready:
            return False
        if sys.stdin.readline() == "":
            raise ValueError(
                "calibration aborted: standard input ended before all steps were confirmed"
            )
        return True


def _step_test(command: tyro.conf.OmitArgPrefixes[calibrate_servo.CalibrateServoCommand]) -> int:
    """One servo of a stiff arm: stiffness, dead band, delay."""
    return calibrate_servo.main(command, _Enter)


def _camera(command: tyro.conf.OmitArgPrefixes[CameraCommand]) -> int:
    """A camera's lens and place."""
    files = sorted(p for p in command.pictures.glob("*") if p.suffix in (".png", ".jpg", ".jpeg"))
    if not files:
        raise ValueError(f"no PNG or JPEG images in {command.pictures}")
    images = {file.name: _image(file) for file in files}
    board = CalibrationBoard(square=command.square)
    model, error, used = calibrate_lens(list(images.values()), board)
    focal = float(model.matrix[0, 0])
    result: dict[str, Any] = {"pictures": used, "error_px": error, "focal_px": focal}
    if command.lying is not None:
        if command.lying not in images:
            raise ValueError(
                f"unknown image {command.lying!r} in --lying; available: {', '.join(images)}"
            )
        model, place_error = locate_camera(
            model,
            images[command.lying],
            board,
            np.array(command.corner),
            np.array(command.along),
            np.array(command.down),
        )
        result["place_error_px"] = place_error
        result["position"] = (-model.rotation.T @ model.translation).round(4).tolist()
    model.save(command.out)
    if command.as_json:
        print(json.dumps(result, indent=1))
        return 0
    print(
        f"wrote {command.out} from {used} images: error {error:.2f} px, focal length {focal:.1f} px"
    )
    if command.lying is None:
        print("camera pose not computed: give --lying, --corner, --along and --down")
    else:
        print(
            f"camera position {result['position']} m; pose error on the board "
            f"{result['place_error_px']:.2f} px"
        )
    return 0


def _image(file: Path) -> np.ndarray:
    image = cv2.imread(str(file))
    if image is None:
        raise ValueError(f"{file} cannot be read as an image")
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def _sheets(command: tyro.conf.OmitArgPrefixes[SheetsCommand]) -> int:
    """Board and tags to print."""
    from real_robot.emulators.camera import TaggedScene
    from real_robot.perception.tags import save_tags, tag_dictionary

    scene = TaggedScene(make_task(command.task, robot=command.robot))
    command.out.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(command.out / "board.png"), CalibrationBoard().picture(DOTS))
    words = tag_dictionary("aruco4x4")
    for thing in scene.objects:
        for number, corners in thing.tags.items():
            side = round(float(np.linalg.norm(corners[1] - corners[0])) * DOTS)
            picture = cv2.aruco.generateImageMarker(words, number, side)
            rim = [side // 6] * 4
            picture = cv2.copyMakeBorder(picture, *rim, cv2.BORDER_CONSTANT, value=255)
            cv2.imwrite(str(command.out / f"{thing.entity}_{number}.png"), picture)
    save_tags(command.out / "tags.json", scene.objects, "aruco4x4")
    print(
        f"wrote board.png, {sum(len(o.tags) for o in scene.objects)} tags and tags.json to "
        f"{command.out}; print them at {DOTS * 0.0254:.0f} dots to the inch, without scaling"
    )
    return 0
