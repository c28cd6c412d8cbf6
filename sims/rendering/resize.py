"""Frames in another size, as a camera that somebody else draws does not have them."""

from __future__ import annotations

import cv2
import numpy as np

Array = np.ndarray


def resize_frames(frames: Array, size: tuple[int, int] | None) -> Array:
    """Frames (n, H, W, 3) as frames (n, *size, 3), each stretched; None: as they are."""
    if size is None or frames.shape[1:3] == tuple(size):
        return frames
    height, width = size
    return np.stack([cv2.resize(f, (width, height), interpolation=cv2.INTER_AREA) for f in frames])
