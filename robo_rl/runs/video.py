"""Videos that a browser plays: VP9 in WebM, a grid of episodes with the reward drawn below."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

Array = np.ndarray

ANNOTATED = "robo-rl: episodes side by side, with their rewards"  # comment of a run's video
IMAGES = (".png", ".jpg", ".jpeg")
STRIP = 44  # px, height of the curve below each episode
# Of libvpx-vp9: constant quality (0 best, 63 worst) without a limit of bits, and speed over size.
_QUICK = {"deadline": "realtime", "cpu-used": "8", "row-mt": "1", "crf": "31", "b": "0"}
WHITE, GREY, GREEN, AMBER = (245, 245, 245), (60, 62, 66), (88, 200, 120), (240, 180, 60)


def annotate(frames: Array, reward: Array, success: Array | None, title: str = "") -> Array:
    """Frames (T, H, W, 3) with a title line, the curve of ``reward`` (T,) and, where ``success``
    (T,) is known, a mark while it holds."""
    t, height, width, _ = frames.shape
    out = np.empty((t, height + STRIP, width, 3), np.uint8)
    low, high = float(reward.min()), float(reward.max())
    x = np.linspace(4, width - 5, t)
    y = height + STRIP - 5 - (STRIP - 12) * (reward - low) / max(high - low, 1e-9)
    curve = np.stack([x, y], axis=1).round().astype(np.int32)
    for i in range(t):
        image = np.full((height + STRIP, width, 3), 24, np.uint8)
        image[:height] = frames[i]
        cv2.polylines(image, [curve], False, GREY, 1, cv2.LINE_AA)
        cv2.polylines(image, [curve[: i + 1]], False, AMBER, 2, cv2.LINE_AA)
        cv2.circle(image, tuple(int(c) for c in curve[i]), 3, WHITE, -1, cv2.LINE_AA)
        if success is not None and success[i]:
            cv2.circle(image, (width - 14, 14), 7, GREEN, -1, cv2.LINE_AA)
        if title:
            cv2.putText(
                image, title, (8, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.42, WHITE, 1, cv2.LINE_AA
            )
        out[i] = image
    return out


def grid(images: Sequence[Array], columns: int) -> Array:
    """One image (H*, W*, 3) of equally large ones, row by row; what fills no row is left out."""
    rows = [
        np.concatenate(images[i : i + columns], axis=1)
        for i in range(0, len(images) - len(images) % columns, columns)
    ]
    return np.concatenate(rows)


def write_webm(path: Path, frames: Iterable[Array], fps: float, comment: str = "") -> None:
    """Writes frames (H, W, 3) RGB uint8, H and W even, one after the other; ``comment`` stays in
    the file.

    The encoder is told to be quick: its own settings take thirty times as long, longer than many a
    training, and gain little on so short a film.
    """
    partial = path.with_suffix(".part.webm")
    with av.open(partial, "w", format="webm") as film:
        film.metadata["comment"] = comment
        stream = film.add_stream("libvpx-vp9", rate=Fraction(fps).limit_denominator(1000))
        stream.pix_fmt = "yuv420p"
        stream.options = _QUICK
        for i, frame in enumerate(frames):
            if i == 0:
                stream.height, stream.width = frame.shape[:2]
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
            film.mux(stream.encode(picture))
        film.mux(stream.encode())
    os.replace(partial, path)


def read_frames(path: Path) -> tuple[Array, float]:
    """Reads a video file or a folder of images.

    Args:
        path: The file, or a folder of .png and .jpg images of one size, read in the order of names.

    Returns:
        (frames (T, H, W, 3) RGB uint8, frames per second); 10 per second where that is not known.

    Raises:
        ValueError: there is no readable video or image, or images differ in size.
    """
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if f.suffix.lower() in IMAGES)
        images = [cv2.imread(str(f)) for f in files]
        if not images or any(image is None for image in images):
            raise ValueError(f"{path} holds no readable .png or .jpg images")
        shapes = {image.shape for image in images}
        if len(shapes) > 1:
            raise ValueError(f"images in {path} differ in size: {sorted(shapes)}")
        return np.stack(images)[..., ::-1], 10.0
    _check_video(path)
    capture = cv2.VideoCapture(str(path))
    frames = []
    while True:
        ok, frame = capture.read()
        if not ok:
            break
        frames.append(frame[..., ::-1])
    rate = capture.get(cv2.CAP_PROP_FPS) or 10.0
    capture.release()
    if not frames:
        raise ValueError(f"cannot read a video from {path}")
    return np.stack(frames), float(rate)


def _check_video(path: Path) -> None:
    """ValueError where there is no video, or a run's own one, which is no episode to be scored."""
    try:
        with av.open(path) as film:
            if not film.streams.video or next(film.decode(video=0), None) is None:
                raise ValueError(f"cannot read a video from {path}: it has no frames")
            comments = film.metadata.values()
    except (av.FFmpegError, OSError) as error:
        raise ValueError(f"cannot read a video from {path}: {error.strerror}") from None
    run = path.parent
    if ANNOTATED in comments or (path.name == "video.webm" and (run / "config.json").exists()):
        raise ValueError(
            f"{path} shows several episodes side by side with their rewards, and one episode was "
            f"expected: give the run's folder, such as {run}, whose policy is rendered again"
        )
