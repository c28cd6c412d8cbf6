"""The guard of the look: a state and its frame of every scene that the shipped CLIP knows.

A network trained on one look of a scene fails quietly on another. A test renders the states again
and compares; when a look has drifted it names the command that retrains.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import sims
from reward_models.vision.tiny_clip import TrainingScene

Array = np.ndarray

SEED = 5  # of the states: scattered ones
TOLERANCE = 2.0  # mean absolute difference of a frame's 8-bit values; drivers round differently
SIZE = (96, 96)  # px


def write_guard(homes: Sequence[TrainingScene], path: Path) -> None:
    """Keeps a scattered state of each of ``homes``, and its frame."""
    arrays: dict[str, Array] = {}
    for scene, here in itertools.groupby(homes, lambda home: (home.task, home.robot)):
        with contextlib.closing(_env(*scene)) as env:
            env.scatter()
            for home in here:
                arrays[f"{_name(home)} state"] = env.state()[:1]
                frames = env.render_states(env.state()[:1], home.camera, size=SIZE)
                arrays[f"{_name(home)} frame"] = frames[0]
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def drift(homes: Sequence[TrainingScene], path: Path) -> dict[TrainingScene, float]:
    """Mean absolute difference of each home's frame, 0 to 255; inf where the scene is another."""
    found = {}
    with np.load(path, allow_pickle=False) as archive:
        for scene, here in itertools.groupby(homes, lambda home: (home.task, home.robot)):
            with contextlib.closing(_env(*scene)) as env:
                for home in here:
                    state, frame = (archive[f"{_name(home)} {what}"] for what in ("state", "frame"))
                    if state.shape[1] != env.nstate:
                        found[home] = float("inf")
                        continue
                    now = env.render_states(state, home.camera, size=SIZE)[0]
                    found[home] = float(np.abs(now.astype(float) - frame).mean())
    return found


def _env(task: str, robot: str) -> sims.BatchEnv:
    return sims.BatchEnv(sims.make_task(task, robot=robot or None), 1, seed=SEED)


def _name(home: TrainingScene) -> str:
    return f"{home.task} {home.robot} {home.camera}"
