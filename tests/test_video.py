"""Films are written quickly and read back as they were."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from robo_rl.runs.video import ANNOTATED, annotate, grid, read_frames, write_webm


def _episode(seed: int, steps: int = 24) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ground = cv2.resize(rng.integers(60, 200, (6, 6, 3), np.uint8), (96, 96))
    frames = np.repeat(ground[None], steps, axis=0)
    for t in range(steps):
        frames[t, 40:56, 2 * t : 2 * t + 16] = (220, 40, 40)
    return frames


def test_video_round_trip(tmp_path: Path) -> None:
    reward = np.linspace(0, 1, 24)
    success = reward > 0.7
    videos = [annotate(_episode(k), reward, success, f"episode {k}") for k in range(4)]
    shown = np.stack([grid(images, 2) for images in zip(*videos, strict=True)])
    write_webm(tmp_path / "film.webm", shown, fps=12.5)
    back, fps = read_frames(tmp_path / "film.webm")
    assert back.shape == shown.shape and fps == pytest.approx(12.5, rel=0.01)
    error = np.abs(back.astype(float) - shown)
    assert error.mean() < 6 and error.mean(axis=(1, 2, 3)).max() < 10
    assert [p.name for p in tmp_path.iterdir()] == ["film.webm"]


def test_a_runs_own_video_is_no_episode_to_be_scored(tmp_path: Path) -> None:
    """It shows several side by side: by its comment wherever it lies, else by its folder."""
    shown = np.stack([annotate(_episode(k), np.arange(24.0), None) for k in range(2)])
    write_webm(tmp_path / "copy.webm", shown[0], fps=12.5, comment=ANNOTATED)
    write_webm(tmp_path / "video.webm", shown[0], fps=12.5)
    assert len(read_frames(tmp_path / "video.webm")[0]) == 24
    (tmp_path / "config.json").write_text("{}")
    for name in ("copy.webm", "video.webm"):
        with pytest.raises(ValueError, match=f"give the run's folder, such as {tmp_path}"):
            read_frames(tmp_path / name)
    (tmp_path / "not.mp4").write_text("words")
    with pytest.raises(ValueError, match="cannot read a video from .*not.mp4"):
        read_frames(tmp_path / "not.mp4")
