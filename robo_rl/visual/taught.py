"""What a small CLIP is taught: frames of a scene, and captions that its state grades.

The captions are the table of predicates' (``reward_models/visual/table_captions.py``), on any task
whose card it speaks of, or somebody's own (``graded.py``), on any task and on anyone's Gymnasium
env. No expert has a hand in any state: they are scattered where the task can, and of random moves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import sims
from reward_models.base import from_dict
from reward_models.visual.graded import read_captions
from reward_models.visual.table_captions import TableCaptions, table_captions
from reward_models.visual.tiny_clip import Home
from reward_models.visual.train import GradedStates
from robo_rl.goals import read_goal
from robo_rl.visual.data import collect, jitter, watched
from sims.cameras import Look
from sims.foreign import PREFIX, ForeignEnv
from sims.task import Task

Array = np.ndarray

SIZE = (96, 96)  # px
ROWS, FOREIGN_ROWS = 256, 32
HELD = 0.1  # times the frames that teach, of other episodes: what it is judged by
OTHER = 7_919  # from the seed of those that teach to that of those that judge
PART = 1024  # frames drawn at once
REPAINTED = 0.4  # share of frames in which the things' colours are exchanged
PAINTS = 6  # ways to paint a scene, at most
CAMERA, LIGHT, SHARE = 0.06, 0.25, 0.7  # how far both are moved, and in what share of the frames


@dataclass(frozen=True)
class GradedFrames:
    """Frames with what their states measure, part by part as the scene was painted."""

    frames: Array  # (M, H, W, 3) uint8
    seen: list[GradedStates]  # M states in all, in the order of the frames
    states: Array  # (m, nstate) of the first scene; (m, 0) of somebody else's env
    homes: tuple[Home, ...]


@dataclass(frozen=True)
class Paint:
    """One way to paint a scene's things: each has the colour of another."""

    rgba: Mapping[str, Array]  # {geom: (4,)}; {}: as they are
    colours: Mapping[str, str]  # {entity: colour}


def graded_frames(
    task: str,
    robot: str,
    captions: Path | None,
    count: int,
    seed: int,
    goals: Sequence[str] = (),
    progress: Callable[[float], None] = lambda share: None,
) -> GradedFrames:
    """``count`` frames of a task or of ``gym:ID``, graded by a file of ``captions``, or by the
    table and what ``goals`` ask for.

    ValueError where captions or goals ask for what is not measured there.
    """
    if task.startswith(PREFIX):
        if captions is None:
            raise ValueError(f"{task} has no things that words are known for: give --captions FILE")
        return _abroad(task, captions, count, seed, progress)
    made = sims.make_task(task, robot=robot or None)
    card = from_dict(made.card())
    written = (
        read_captions(captions, card) if captions is not None else captions_of_task(made, goals)
    )
    env = sims.BatchEnv(made, ROWS, seed=seed)
    states, signals = collect(env, count, seed)
    rng = np.random.default_rng(seed + 1)
    order = rng.permutation(count)  # scattered ones come first, those of episodes after them
    states, signals = states[order], {name: s[order] for name, s in signals.items()}
    paints = paints_of(made) if isinstance(written, TableCaptions) else [Paint({}, {})]
    if isinstance(written, TableCaptions):
        written = written.softened(signals)
    edges = _shares(count, len(paints))
    rgba = {
        geom: np.concatenate([np.tile(paint.rgba[geom], (n, 1))
                              for paint, n in zip(paints, np.diff(edges), strict=True)])
        for geom in paints[-1].rgba
    }  # fmt: skip
    moved = jitter(rng, count, env.camera(), camera=CAMERA, light=LIGHT, share=SHARE)
    look = Look(geom_rgba=rgba or None, **moved)
    parts = []
    for start in range(0, count, PART):
        some = slice(start, start + PART)
        parts.append(env.render_states(states[some], size=SIZE, look=look.rows(some)))
        progress(min(1.0, (start + PART) / count))
    home = Home(made.name, getattr(made, "robot", ""), env.camera().name)
    env.close()
    seen = []
    for paint, (first, last) in zip(paints, itertools.pairwise(edges), strict=True):
        said = written.repainted(paint.colours) if paint.colours else written
        part = {name: s[first:last] for name, s in signals.items()}
        seen.append(GradedStates(said, getattr(said, "card", card), part))
    return GradedFrames(np.concatenate(parts), seen, states, (home,))


def of_scenes(
    scenes: Sequence[tuple[str, str]],
    captions: Path | None,
    count: int,
    seed: int,
    goals: Sequence[str] = (),
    progress: Callable[[float], None] = lambda share: None,
) -> GradedFrames:
    """``count`` frames of several ``scenes`` (task, arm), as many of each, one after the other."""
    made: list[GradedFrames] = []
    frames = np.empty((count, *SIZE, 3), np.uint8)
    edges = np.linspace(0, count, len(scenes) + 1).round().astype(int).tolist()
    for (task, robot), (first, last) in zip(scenes, itertools.pairwise(edges), strict=True):

        def drawn(share: float, first: int = first, last: int = last) -> None:
            progress((first + share * (last - first)) / count)

        one = graded_frames(task, robot, captions, last - first, seed, goals, drawn)
        frames[first:last] = one.frames
        made.append(replace(one, frames=frames[first:last]))
    seen = [part for one in made for part in one.seen]
    return GradedFrames(frames, seen, made[0].states, tuple(one.homes[0] for one in made))


def held_out(task: str, robot: str, captions: Path, count: int, seed: int) -> GradedFrames:
    """Frames to judge by what ``count`` frames taught: of other episodes, a tenth as many."""
    return graded_frames(task, robot, captions, max(2, round(HELD * count)), seed + OTHER)


def paints_of(task: Task[Any]) -> list[Paint]:
    """As the scene is, and with the colours of its loose things exchanged.

    Only where each thing's name is its colour and shape, and stays the only one of that name.
    """
    things = [t for t in getattr(task, "objects", ()) if t.colour]
    own = Paint({t.name: np.asarray(t.rgba) for t in things}, {})
    if len(things) < 2 or any(t.name != f"{t.colour}_{t.kind}" for t in things):
        return [Paint({}, {})]
    found = [own]
    for order in itertools.permutations(range(len(things))):
        given = [things[i] for i in order]
        colours = {t.name: g.colour for t, g in zip(things, given, strict=True)}
        names = {f"{colour}_{t.kind}" for t, colour in zip(things, colours.values(), strict=True)}
        if list(order) != sorted(order) and len(names) == len(things):
            rgba = {t.name: np.asarray(g.rgba) for t, g in zip(things, given, strict=True)}
            found.append(Paint(rgba, colours))
    return found[:PAINTS]


def _shares(count: int, paints: int) -> list[int]:
    """Where each way of painting begins, the own one first, and the end."""
    if paints == 1:
        return [0, count]
    own = round((1.0 - REPAINTED) * count)
    return [0, *np.linspace(own, count, paints).round().astype(int).tolist()]


def captions_of_task(task: Task[Any], goals: Sequence[str] = ()) -> TableCaptions:
    """The table's captions of a task's things, and of what its own goals and the sentences
    ``goals`` ask for; ValueError for a sentence that is not read, or that no frame shows."""
    asked = []
    for text in goals:
        goal = read_goal(task, text)
        _ = goal.plan  # says what is wrong with it
        asked.append(goal.formula)
    own = [read_goal(task, key).formula for key in task.goals()]
    return table_captions(from_dict(task.card()), [f for f in (*own, *asked) if f is not None])


def _abroad(
    task: str, captions: Path, count: int, seed: int, progress: Callable[[float], None]
) -> GradedFrames:
    sim = ForeignEnv(task, FOREIGN_ROWS, seed=seed, frames=True, frame_size=SIZE)
    try:
        card = from_dict(sim.card)
        graded = read_captions(captions, card)
        frames, signals = watched(sim, count, seed, progress)
    finally:
        sim.close()
    home = Home(task, "", sim.cameras[0])
    seen = [GradedStates(graded, card, signals)]
    return GradedFrames(frames, seen, np.zeros((count, 0)), (home,))
