"""Camera calibration from pictures of a ChArUco board, and the board to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from real_robot.perception.camera import CameraModel
from real_robot.perception.tags import tag_dictionary

Array = np.ndarray

LEAST_PICTURES = 6
LEAST_CORNERS = 8  # of the board, in a picture
WORST = 1.0  # px, root mean square, over all pictures


@dataclass(frozen=True)
class CalibrationBoard:
    """A chessboard with tags in its white squares; corners are counted from its own corner."""

    columns: int = 7
    rows: int = 5
    square: float = 0.03  # m
    tags: str = "aruco4x4"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, m."""
        return self.columns * self.square, self.rows * self.square

    def opencv(self) -> cv2.aruco.CharucoBoard:
        """The board as OpenCV knows it: x along the columns, y down the rows, z into the board."""
        shape, words = (self.columns, self.rows), tag_dictionary(self.tags)
        return cv2.aruco.CharucoBoard(shape, self.square, 0.75 * self.square, words)

    def picture(self, pixels_per_m: float) -> Array:
        """The board as a grey picture (h, w) uint8, to print or to render, without a margin."""
        width, height = (round(x * pixels_per_m) for x in self.size)
        return self.opencv().generateImage((width, height))

    def find(self, image: Array) -> tuple[Array, Array] | None:
        """(points (n, 3) m on the board, pixels (n, 2)) in ``image``, None where too few show."""
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image
        board = self.opencv()
        corners, ids, _, _ = cv2.aruco.CharucoDetector(board).detectBoard(grey)
        if ids is None or len(ids) < LEAST_CORNERS:
            return None
        points = board.getChessboardCorners()[np.ravel(ids)]
        return np.asarray(points, float), np.asarray(corners, float).reshape(-1, 2)


def calibrate_lens(
    images: Sequence[Array], board: CalibrationBoard
) -> tuple[CameraModel, float, int]:
    """Lens of the camera that took ``images``: (model, error px, pictures used).

    The camera's place stays unknown: it is given the identity.

    Raises:
        ValueError: Images differ in size, too few show the board, or they fit no camera.
    """
    shapes = {image.shape[:2] for image in images}
    if len(shapes) != 1:
        raise ValueError(f"images must have one size, got {sorted(shapes) or 'none'}")
    ((height, width),) = shapes
    found = [pair for image in images if (pair := board.find(image)) is not None]
    if len(found) < LEAST_PICTURES:
        raise ValueError(
            f"the board was found in {len(found)} of {len(images)} images, at least "
            f"{LEAST_PICTURES} are needed, with the whole board, sharp, at different angles "
            "and distances"
        )
    error, matrix, distortion, _, _ = cv2.calibrateCamera(
        [points.astype(np.float32) for points, _ in found],
        [pixels.astype(np.float32) for _, pixels in found],
        (width, height),
        None,
        None,
    )
    if error > WORST:
        raise ValueError(
            f"the images do not fit one camera model: reprojection error {error:.2f} px, at "
            f"most {WORST} px is allowed; is the board flat and the given square size right?"
        )
    lens = np.asarray(distortion).ravel()[:5]
    model = CameraModel(width, height, matrix, lens, np.eye(3), np.zeros(3))
    return model, float(error), len(found)


def locate_camera(
    model: CameraModel,
    image: Array,
    board: CalibrationBoard,
    corner: Array,
    along: Array,
    down: Array,
) -> tuple[CameraModel, float]:
    """``model`` put where it stood when it took ``image`` of the board lying still.

    The board's corner is at ``corner`` (3,) m of the robot's world, its columns run ``along`` and
    its rows ``down`` (3,) unit vectors. Returns the model and its error in px.

    Raises:
        ValueError: The board was not found, or its axes are not unit vectors at a right angle.
    """
    found = board.find(image)
    if found is None:
        raise ValueError("the board was not found in the image given for the camera's pose")
    points, pixels = found
    axes = np.array([along, down], float)
    if np.abs(axes @ axes.T - np.eye(2)).max() > 1e-6:
        raise ValueError(f"along and down must be unit vectors at a right angle, got {axes}")
    world = np.asarray(corner, float) + points[:, :2] @ axes
    _, turn, move = cv2.solvePnP(
        world, pixels, model.matrix, model.distortion, flags=cv2.SOLVEPNP_IPPE
    )
    turn, move = cv2.solvePnPRefineLM(world, pixels, model.matrix, model.distortion, turn, move)
    again, _ = cv2.projectPoints(world, turn, move, model.matrix, model.distortion)
    error = float(np.sqrt(((again.reshape(-1, 2) - pixels) ** 2).sum(axis=1).mean()))
    rotation, _ = cv2.Rodrigues(turn)
    placed = CameraModel(
        model.width, model.height, model.matrix, model.distortion, rotation, move.ravel()
    )
    return placed, error
