"""What a small CLIP is taught: frames of a scene, and captions that its state grades.

The captions are the table of predicates' (``reward_models/vision/table_captions.py``), on any task
whose card it speaks of, or somebody's own (``reward_models/vision/graded_captions.py``), on any
task and on anyone's Gymnasium env. No expert has a hand in any state: they are scattered where the
task can, and of random moves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sims
from reward_models.base import TaskCard, from_dict
from reward_models.goals.predicates import GRIPPER, role
from reward_models.vision.graded_captions import read_captions
from reward_models.vision.table_captions import TableCaptions, table_captions
from reward_models.vision.tiny_clip import TrainingScene
from reward_models.vision.train import GradedStates, grade
from robo_rl.goals.reading import read_goal, task_of_config
from robo_rl.runtime.memory import check_free
from robo_rl.runtime.workers import run_in_workers
from robo_rl.vision.distilled_scene import objects_hash
from robo_rl.vision.recoloring import (
    Recoloring,
    object_looks,
    random_recolorings,
    recolorings,
    recolorings_without,
)
from robo_rl.vision.state_collection import collect_frames, collect_states, jitter
from sims.core.task import Task
from sims.external.gymnasium_env import PREFIX, GymnasiumEnv
from sims.rendering.cameras import Appearance, Camera
from sims.tasks.scene.named_objects import COLOURS, SHAPES, parse_object_list
from sims.truth import judged_predicates

Array = np.ndarray

SIZE = (96, 96)  # px
ROWS, FOREIGN_ROWS = 256, 32
HELD = 0.1  # times the frames that teach, of other episodes: what it is judged by
SCENE = 1_009  # from one scene's seed to the next one's
OTHER = 7_919  # from the seed of those that teach to that of those that judge
PART = 1024  # frames drawn at once
# Of any things: tables to teach and to judge by, the most on each, how many ways each is painted,
# and how much is said of several things at once each time.
TABLES, JUDGED_TABLES, CROWD, COLOURINGS, PAIRS = 16, 4, 4, 40, 12
CAMERA, LIGHT, SHARE = 0.06, 0.25, 0.7  # how far both are moved, and in what share of the frames


@dataclass(frozen=True)
class SceneView:
    """A task, its objects and the camera that shows them."""

    task: str  # or gym:ID
    robot: str = ""  # empty: the task's own
    camera: str = ""  # empty: its first one
    things: str = ""  # on the table of task tabletop, as a config has them
    scene: str = ""

    def task_made(self) -> Task[Any]:
        """The task; ValueError where there is none such."""
        return task_of_config(vars(self))

    def home(self) -> TrainingScene:
        """The scene by which weights name it."""
        task = self.task_made()
        camera = self.camera or task.cameras[0].name
        return TrainingScene(task.name, getattr(task, "robot", ""), camera, objects_hash(task))


@dataclass(frozen=True)
class GradedFrames:
    """Frames with the caption grades of their states, one part per colouring of the scene."""

    frames: Array  # (M, H, W, 3) uint8
    seen: list[GradedStates]  # M states in all, in the order of the frames
    homes: tuple[TrainingScene, ...]


@dataclass(frozen=True)
class FrameOptions:
    """Which captions and objects the frames of a training are rendered and graded for."""

    captions: Path | None = None  # user captions; None: the built-in ones
    goals: tuple[str, ...] = ()  # additional training sentences
    without: tuple[str, ...] = ()  # held-out objects, such as "red ball"
    coloured: bool = False  # objects in any colour


def graded_frames(
    of: SceneView,
    options: FrameOptions,
    count: int,
    seed: int,
    progress: Callable[[float], None] = lambda share: None,
    out: Array | None = None,
) -> GradedFrames:
    """``count`` frames of what is looked at, drawn into ``out`` (count, H, W, 3) if there is one.

    ValueError where captions or goals ask for what is not measured there.
    """
    if out is None:
        out = np.empty((count, *SIZE, 3), np.uint8)
    captions = options.captions
    if of.task.startswith(PREFIX):
        if captions is None:
            raise ValueError(
                f"{of.task} has no objects with built-in captions: give --captions FILE"
            )
        return _graded_gymnasium_frames(of.task, of.camera, captions, seed, progress, out)
    made = of.task_made()
    card = from_dict(made.card())
    written = (
        read_captions(captions, card)
        if captions is not None
        else captions_of_task(made, options.goals)
    )
    paints = [Recoloring({}, {})]
    if isinstance(written, TableCaptions):
        paints = recolorings_without(recolorings(made), made, options.without)
    chance = np.random.default_rng([seed, COLOURINGS])
    if options.coloured:
        paints = random_recolorings(made, COLOURINGS, chance)
    env = sims.BatchEnv(made, ROWS, seed=seed)
    view = env.camera(of.camera or None)
    states, signals = collect_states(env, count, seed)
    rng = np.random.default_rng(seed + 1)
    order = rng.permutation(count)  # scattered ones come first, those of episodes after them
    states, signals = states[order], {name: s[order] for name, s in signals.items()}
    if isinstance(written, TableCaptions):
        written = written.softened(signals)
    edges = _shares(count, len(paints))
    rgba = {
        geom: np.concatenate(
            [
                np.tile(paint.rgba[geom], (n, 1))
                for paint, n in zip(paints, np.diff(edges), strict=True)
            ]
        )
        for geom in paints[-1].rgba
    }
    moved = jitter(rng, count, view, camera=CAMERA, light=LIGHT, share=SHARE)
    appearance = Appearance(geom_rgba=rgba or None, **moved)
    for start in range(0, count, PART):
        some = slice(start, start + PART)
        out[some] = env.render_states(
            states[some], view.name, size=SIZE, look=appearance.rows(some)
        )
        progress(min(1.0, (start + PART) / count))
    env.close()
    beyond_it: dict[str, Array] = {}
    if isinstance(written, TableCaptions):
        beyond_it = outside_frame(view, card, signals, appearance)
    graded = []
    for paint, (first, last) in zip(paints, itertools.pairwise(edges), strict=True):
        painted = written.repainted(paint.colours) if paint.colours else written
        if options.coloured:
            painted = painted.some(chance, PAIRS)
        part, hidden = (
            {name: s[first:last] for name, s in of.items()} for of in (signals, beyond_it)
        )
        graded.append(grade(painted, getattr(painted, "card", card), part, hidden))
    return GradedFrames(out, graded, (of.home(),))


def outside_frame(
    view: Camera, card: TaskCard, signals: Mapping[str, Array], appearance: Appearance | None
) -> dict[str, Array]:
    """Returns {pose signal: (M,) bool} of a card's entities: whether it is out of ``view``'s frame
    with ``appearance``. The gripper is left out, since the arm shows where it is."""
    return {
        e.pose_signal: ~view.sees(signals[e.pose_signal], appearance)
        for e in card.entities
        if role(e) != GRIPPER
        if e.pose_signal in signals and signals[e.pose_signal].shape[1:] == (3,)
    }


def graded_frames_of_scenes(
    views: Sequence[SceneView],
    options: FrameOptions,
    count: int,
    seed: int,
    progress: Callable[[float], None] = lambda share: None,
    jobs: int = 1,
) -> GradedFrames:
    """``count`` frames of several ``views``, one after the other, more of one that can be painted
    more ways; ``jobs`` of them are drawn side by side. Each has states of its own."""
    shares = np.cumsum([0.0, *(_recoloring_count(view) ** 0.5 for view in views)])
    edges = (count * shares / shares[-1]).round().astype(int).tolist()
    shape = (count, *SIZE, 3)
    what = f"{count:,} frames of {SIZE[1]} x {SIZE[0]} px are kept"
    check_free(np.prod(shape), what, "give less of --frames")
    frames = np.empty(shape, np.uint8)
    given: dict[int, tuple[Any, ...]] = {}
    for i, (first, last) in enumerate(itertools.pairwise(edges)):
        given[i] = (views[i], options, last - first, seed + SCENE * i)
        if jobs == 1:  # other processes tell nothing before they are done, and send what they drew
            report = partial(lambda i, share: progress((i + share) / len(views)), i)
            given[i] += (report, frames[first:last])
    made: dict[int, GradedFrames] = {}
    for i, one in run_in_workers(graded_frames, given, jobs):
        here = frames[edges[i] : edges[i + 1]]
        if jobs > 1:
            here[:] = one.frames
        made[i] = replace(one, frames=here)
        progress(len(made) / len(given))
    in_order = [made[i] for i in given]
    graded = [part for one in in_order for part in one.seen]
    return GradedFrames(frames, graded, tuple(one.homes[0] for one in in_order))


def _recoloring_count(view: SceneView) -> int:
    """Returns the number of colourings of a scene."""
    return 1 if view.task.startswith(PREFIX) else len(recolorings(view.task_made()))


def held_out(view: SceneView, captions: Path, count: int, seed: int) -> GradedFrames:
    """Frames to judge by what ``count`` frames of a ``view`` taught: of other episodes, a tenth as
    many."""
    return graded_frames(view, FrameOptions(captions), max(2, round(HELD * count)), seed + OTHER)


def any_tables(count: int, seed: int) -> list[str]:
    """Returns lists of two to ``CROWD`` objects, each object the only one of its colour and shape
    in its list."""
    rng = np.random.default_rng([seed, TABLES])
    known = [f"{colour} {shape}" for colour in COLOURS for shape in SHAPES]
    loose = [name for name in known if not name.endswith("plate")]
    tables = []
    for _ in range(count):
        first = str(rng.choice(loose))
        more = [name for name in rng.permutation(known) if name != first]
        tables.append(", ".join([first, *more[: rng.integers(1, CROWD)]]))
    return tables


def names_of(views: Sequence[SceneView]) -> frozenset[str]:
    """Returns the names that objects of the tables may have, in any colours: ``red ball``."""
    things = [thing for view in views for thing in parse_object_list(view.things)]
    return frozenset(f"{colour} {thing.shape}" for thing in things for colour in COLOURS)


def check_shown(views: Sequence[SceneView], things: Sequence[str]) -> None:
    """ValueError where one of ``things`` that are to be kept out is shown in none of them."""
    if not things:
        return
    made = [view.task_made() for view in views]
    known = {
        appearance
        for task in made
        for paint in recolorings(task)
        for appearance in object_looks(paint, task)
    }
    for thing in things:
        if thing not in known:
            raise ValueError(
                f"unknown object {thing!r} of --without; available: "
                f"{', '.join(sorted(known)) or 'no coloured objects'}"
            )


def _shares(count: int, paints: int) -> list[int]:
    """Where each way of painting begins, the own one first, and the end: as many frames of each,
    and twice as many of the own one."""
    ends = np.arange(1, paints + 1) + 1
    return [0, *(count * ends / ends[-1]).round().astype(int).tolist()]


def captions_of_task(task: Task[Any], goals: Sequence[str] = ()) -> TableCaptions:
    """Returns the captions of a task's objects, and those of its goals and of the sentences
    ``goals``, as far as a judge grades them. Raises ValueError for a sentence that cannot be
    parsed, or that no frame shows."""
    atoms = []
    for text in goals:
        goal = read_goal(task, text)
        _ = goal.plan  # says what is wrong with it
        atoms.append(goal.formula)
    own = [read_goal(task, key).formula for key in task.goals()]
    made = table_captions(from_dict(task.card()), [f for f in (*own, *atoms) if f is not None])
    judged = judged_predicates(task)
    of = zip(made.texts, made.atoms, made.measures, strict=True)
    judged_rows = [one for one in of if one[1].predicate in judged]
    texts, sentences, measures = zip(*judged_rows, strict=True)
    return replace(made, texts=texts, atoms=sentences, measures=measures)


def _graded_gymnasium_frames(
    task: str, camera: str, captions: Path, seed: int, progress: Callable[[float], None], out: Array
) -> GradedFrames:
    sim = GymnasiumEnv(task, FOREIGN_ROWS, seed=seed, frames=True, frame_size=SIZE)
    try:
        if camera not in ("", *sim.cameras):
            raise ValueError(f"{task} has no camera {camera!r}, only its own render: leave it out")
        card = from_dict(sim.card)
        graded = read_captions(captions, card)
        frames, signals = collect_frames(sim, len(out), seed, progress, out)
    finally:
        sim.close()
    home = TrainingScene(task, "", sim.cameras[0])
    graded_states = [grade(graded, card, signals)]
    return GradedFrames(frames, graded_states, (home,))
