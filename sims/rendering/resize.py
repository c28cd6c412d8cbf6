"""Frames in another size, as a camera that somebody else draws does not have them."""

from __future__ import annotations

import cv2
import numpy as np

Array = np.ndarray


def resize_frames(frames: Array, size: tuple[int, int] | None, crop: bool = False) -> Array:
    """Frames (n, H, W, 3) as frames (n, *size, 3), each stretched, or with ``crop`` its middle
    that has the shape of ``size``; None: as they are."""
    if size is None or frames.shape[1:3] == tuple(size):
        return frames
    height, width = size
    if crop:
        tall, wide = frames.shape[1:3]
        high, broad = (
            min(tall, round(wide * height / width)),
            min(wide, round(tall * width / height)),
        )
        top, left = (tall - high) // 2, (wide - broad) // 2
        frames = frames[:, top : top + high, left : left + broad]
    return np.stack([cv2.resize(f, (width, height), interpolation=cv2.INTER_AREA) for f in frames])
