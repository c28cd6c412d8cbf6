"""Frames for somebody's own captions, of any task or Gymnasium env, and how well they are seen.

No expert has a hand in them: states are scattered where the task can, and of random moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sims
from reward_models.base import from_dict
from reward_models.metrics import auc, spearman
from reward_models.visual.encoders import TorchEncoder
from reward_models.visual.graded import Graded, read_captions
from reward_models.visual.tiny_clip import Home
from robo_rl.visual.data import collect, jitter, watched
from sims.cameras import Look
from sims.foreign import PREFIX, ForeignEnv

Array = np.ndarray

SIZE = (96, 96)  # px
ROWS, FOREIGN_ROWS = 256, 32
HELD = 0.1  # times the frames that teach, of other episodes: what it is judged by
OTHER = 7_919  # from the seed of those that teach to that of those that judge
TRUE = 0.5  # a caption's grade from which on it counts as true
PART = 1024  # frames drawn at once


@dataclass(frozen=True)
class Watched:
    """Frames of a scene and the states they show."""

    frames: Array  # (M, H, W, 3) uint8
    signals: Mapping[str, Array]  # {name: (M, ...)}
    graded: Graded
    home: Home


def watch(
    task: str,
    robot: str,
    captions: Path,
    count: int,
    seed: int,
    progress: Callable[[float], None] = lambda share: None,
) -> Watched:
    """``count`` frames of a task or of ``gym:ID``; ValueError where the captions ask for what
    is not measured there."""
    if task.startswith(PREFIX):
        sim = ForeignEnv(task, FOREIGN_ROWS, seed=seed, frames=True, frame_size=SIZE)
        try:
            graded = read_captions(captions, from_dict(sim.card))
            frames, signals = watched(sim, count, seed, progress)
        finally:
            sim.close()
        return Watched(frames, signals, graded, Home(task, "", sim.cameras[0]))
    made = sims.make_task(task, robot=robot or None)
    graded = read_captions(captions, from_dict(made.card()))
    env = sims.BatchEnv(made, ROWS, seed=seed)
    states, signals = collect(env, count, seed)
    rng = np.random.default_rng(seed + 1)
    look = Look(**jitter(rng, count, env.camera(), camera=0.03, light=0.25, share=0.7))
    parts = []
    for start in range(0, count, PART):
        some = slice(start, start + PART)
        parts.append(env.render_states(states[some], size=SIZE, look=look.rows(some)))
        progress(min(1.0, (start + PART) / count))
    home = Home(made.name, getattr(made, "robot", ""), env.camera().name)
    env.close()
    return Watched(np.concatenate(parts), signals, graded, home)


def held_out(task: str, robot: str, captions: Path, count: int, seed: int) -> Watched:
    """Frames to judge by what ``count`` frames taught: of other episodes, a tenth as many."""
    return watch(task, robot, captions, max(2, round(HELD * count)), seed + OTHER)


def cells(encoder: TorchEncoder, graded: Graded, held: Watched) -> dict[str, dict[str, float]]:
    """{caption: auc of its being true, rank correlation with its grade, how many are true} on
    frames that were held out; auc nan where fewer than two are true, or false."""
    scores = encoder.encode(held.frames) @ encoder.encode_texts(graded.texts).T
    truth = graded.truth(held.signals)
    found = {}
    for i, text in enumerate(graded.texts):
        positive = truth[:, i] >= TRUE
        both = 1 < positive.sum() < len(positive) - 1
        found[text] = {
            "auc": auc(scores[:, i], positive) if both else float("nan"),
            "spearman": spearman(scores[:, i], truth[:, i]),
            "true": int(positive.sum()),
            "of": len(positive),
        }
    return found


def told(found: Mapping[str, Mapping[str, float]]) -> str:
    """A line for each caption."""
    lines: Sequence[str] = [
        f"auc {cell['auc']:.3f}  rank {cell['spearman']:.3f}  {cell['true']:.0f} of "
        f"{cell['of']:.0f} true  {text}"
        for text, cell in found.items()
    ]
    return "\n".join(lines)
