"""How well a CLIP recognises the captions that it was trained on, against the success judge.

On held-out states, a third of which experts reached (training has no such states), each caption
has two figures: the AUC of the judge's verdict (``sims/truth``, which shares no code with the
grading of training frames) and the rank correlation with the distance from holding. Both are
measured in the unchanged scene, and with camera and light moved and the objects' colours
exchanged, where a caption must follow the colour that the frame shows. A caption that is true, or
false, of too few states is listed without a figure.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sims
from reward_models.analysis.metrics import auc, spearman
from reward_models.goals.formula import to_data
from reward_models.vision.encoders import EmbeddedClip, TorchEncoder
from reward_models.vision.table_captions import TableCaptions
from reward_models.vision.tiny_clip import TrainingScene
from robo_rl.vision.caption_data import GradedFrames, SceneView, captions_of_task, outside_frame
from robo_rl.vision.recoloring import Recoloring, recolorings, recolorings_without
from robo_rl.vision.state_collection import ROLLED, collect_states, jitter
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.rendering.cameras import Appearance, geom_ids
from sims.truth import SuccessJudge

Array = np.ndarray

FEW = 50  # states of which a caption must be true, and false
DRIVEN = 0.35  # share of the judge's states that experts led to
ROWS = 256  # of the judge's batch
TRUE = 0.5  # a grade from which on a caption of somebody's own counts as true
SEED = 900_001  # disjoint from training's
CAMERA, LIGHT = 0.05, 0.20
LEAST = 4  # px of a thing from which on a frame shows its colour


@dataclass(frozen=True)
class CaptionCell:
    """How well scores agree with one caption."""

    text: str
    auc: float | None  # None where too few states are true, or false
    rank: float | None  # Spearman's correlation of its score with how nearly it is true
    true: int
    of: int


def judged_states(env: BatchEnv, count: int, seed: int) -> tuple[Array, dict[str, Array]]:
    """State rows (count, nstate) and signals {name: (count, ...)} that a scorer is judged on.

    Most are scattered. The others come from episodes in which every row is driven by a random
    goal's expert with noise, from pure expert to mostly noise; where the task has no expert, by
    random moves. For judging alone: nothing is trained or scaled on them.
    """
    if not env.task.has_expert:
        return collect_states(env, count, seed, ROLLED)
    states, signals = collect_states(env, count - round(DRIVEN * count), seed, rollouts=0.0)
    rng = np.random.default_rng(seed)
    driven: list[tuple[Array, dict[str, Array]]] = []
    guides = [dataclasses.replace(env.task, goal=goal) for goal in env.task.goals()]
    wanted, everyone = round(DRIVEN * count), np.arange(env.num_envs)
    while wanted > 0:
        env.reset()
        chosen = rng.integers(len(guides), size=env.num_envs)
        noise = np.zeros((env.num_envs, env.act_dim))
        drift = rng.uniform(0.0, 1.0, (env.num_envs, 1))
        for step in range(env.max_steps):
            noise = 0.8 * noise + 0.6 * rng.normal(size=noise.shape)
            expert = np.stack([guide.expert(env.views, rng) for guide in guides])
            env.step((1 - 0.7 * drift) * expert[chosen, everyone] + drift * noise)
            if step % 5 == 4:
                ids = np.sort(rng.permutation(env.num_envs)[: min(wanted, env.num_envs // 2)])
                driven.append((env.state(ids), {k: v[ids] for k, v in env.signals().items()}))
                wanted -= len(ids)
            if wanted == 0:
                break
    states = np.concatenate([states, *(rows for rows, _ in driven)])
    return states, {n: np.concatenate([s, *(r[n] for _, r in driven)]) for n, s in signals.items()}


def truths(env: BatchEnv, states: Array, captions: TableCaptions) -> Array:
    """(M, captions) bool: which of the captions the judge finds to hold in state rows."""
    judges = [
        SuccessJudge(to_data(atom), env.task, env.batch, env.views) for atom in captions.atoms
    ]
    found, n = np.zeros((len(states), len(judges)), bool), env.num_envs
    for start in range(0, len(states), n):
        chunk = states[start : start + n]
        env.set_state(np.concatenate([chunk, np.repeat(chunk[:1], n - len(chunk), axis=0)]))
        for column, judge in enumerate(judges):
            judge.begin(np.arange(n))
            found[start : start + len(chunk), column] = judge.success()[: len(chunk)]
    return found


def caption_cells(
    scores: Array, truth: Array, nearness: Array, texts: Sequence[str], unseen: Array | None = None
) -> list[CaptionCell]:
    """One Cell for each caption from scores, verdicts (bool) and how nearly it is true, (M, C);
    states are left out in whose frames it speaks of something ``unseen`` (M, C)."""
    out = []
    for i, text in enumerate(texts):
        visible = slice(None) if unseen is None else ~unseen[:, i]
        score, holds, near = (of[visible, i] for of in (scores, truth, nearness))
        true = int(holds.sum())
        enough = min(true, len(holds) - true) >= min(FEW, 0.05 * len(holds))
        area = auc(score, holds) if enough else None
        rank = spearman(score, near) if np.ptp(near) > 0 else None
        out.append(CaptionCell(text, area, rank, true, len(holds)))
    return out


def own_caption_cells(encoder: TorchEncoder, held: GradedFrames) -> list[CaptionCell]:
    """Evaluates own captions on frames of held-out episodes."""
    [graded] = held.seen
    scores = encoder.encode(held.frames) @ encoder.encode_texts(graded.texts).T
    return caption_cells(scores, graded.truth >= TRUE, graded.truth, graded.texts)


def evaluate_captions(
    encoder: TorchEncoder,
    task: Task[Any],
    goals: Sequence[str] = (),
    *,
    hidden: Sequence[str] = (),
    count: int = 4000,
    seed: int = SEED,
) -> dict[str, Any]:
    """Evaluates the captions of a task that an encoder was trained on; of a pretrained one, all.

    Args:
        encoder: The image and text encoder.
        task: The task that is rendered.
        goals: Further sentences to evaluate.
        hidden: Objects that no training frame had ("red ball").
        count: States to evaluate on.
        seed: Of the states, disjoint from training's.

    Returns:
        Figures that can be written as JSON: ``plain`` and ``moved``, the cells of the captions in
        the unchanged and in the changed scene, with a summary of each; ``unseen``, those of
        captions about ``hidden`` objects in a scene that has them; and frames per second.
    """
    captions = captions_of_task(task, goals)
    env = sims.BatchEnv(task, ROWS, seed=seed)
    states, signals = judged_states(env, count, seed)
    truth, nearness = truths(env, states, captions), -captions.missing(signals)
    rng = np.random.default_rng(seed)
    view, paints = env.camera(encoder.camera), recolorings(task)
    paints_shown = recolorings_without(paints, task, hidden)
    moved = Appearance(**jitter(rng, len(states), view, camera=CAMERA, light=LIGHT))
    as_is = Appearance() if paints_shown[0].colours else None
    appearances = [("plain", as_is, paints_shown[0]), ("moved", moved, paints_shown[-1])]
    appearances += [
        ("unseen", Appearance(), paint) for paint in paints if paint not in paints_shown
    ][:1]
    report: dict[str, Any] = {"encoder": encoder.name, "states": count, "seed": seed}
    images, texts, shows, rates = [], [], [], []
    for label, appearance, painted in appearances:
        painted_captions = captions.repainted(painted.colours) if painted.colours else captions
        appearance = _painted(appearance, painted, count)
        frames = env.render_states(states, encoder.camera, look=appearance)
        start = time.perf_counter()
        images.append(encoder.encode(frames))
        rates.append(len(frames) / (time.perf_counter() - start))
        texts.append(painted_captions.texts)
        if len(paints) > 1:
            covered = occluded_objects(env, states, encoder.camera, appearance)
            shows.append(~captions.unseen(covered))
        if label == "unseen":
            known = about = [
                i
                for i, text in enumerate(painted_captions.texts)
                if any(thing in text for thing in hidden)
            ]
        else:
            known = [i for i, text in enumerate(painted_captions.texts) if text in encoder.taught]
        known_texts = tuple(painted_captions.texts[i] for i in known)
        scores = images[-1] @ encoder.encode_texts(known_texts).T
        outside = outside_frame(view, captions.card, signals, appearance)
        unseen = captions.unseen(outside)[:, known] if outside else None
        found = caption_cells(scores, truth[:, known], nearness[:, known], known_texts, unseen)
        report[label] = [vars(cell) for cell in found]
        report[f"{label} summary"] = summary(found)
    report["swapped"] = swapped(encoder, images[:2], texts[:2], truth, shows[:2])
    if "unseen" in report:
        names = [[painted_captions[i] for i in about] for painted_captions in (texts[0], texts[-1])]
        shows = [of[:, about] for of in shows]
        report["unseen told apart"] = swapped(
            encoder, images[::2], names, truth[:, about], shows[::2], trained=False
        )
    report["frames_per_s"] = float(np.median(rates))
    env.close()
    return report


def occluded_objects(
    env: BatchEnv, states: Array, camera: str, look: Appearance | None
) -> dict[str, Array]:
    """Returns {pose signal: (M,) bool} of a task's loose objects: whether ``camera``'s frame of a
    state hides it, beyond the edge, below the arm or behind another object."""
    numbered = dataclasses.replace(look or Appearance(), numbered=True)
    geoms = geom_ids(env.render_states(states, camera, look=numbered))
    return {
        f"{thing.name}_pos": (geoms == env.model.geom(thing.name).id).sum(axis=(1, 2)) < LEAST
        for thing in env.task.objects
    }


def evaluate_clip_file(
    path: Path, view: SceneView, device: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Evaluates the captions of the CLIP in the file ``path`` with the camera of ``view``."""
    encoder = EmbeddedClip(path, device)
    encoder.camera = view.home().camera
    return evaluate_captions(encoder, view.task_made(), **options)


def swapped(
    encoder: TorchEncoder,
    images: Sequence[Array],
    texts: Sequence[Sequence[str]],
    truth: Array,
    shows: Sequence[Array] = (),
    trained: bool = True,
) -> float | None:
    """Of two paintings of the same states: the share of what is true of them in which, of the names
    that a thing bears in either, both frames prefer their own; None where no name differs. What is
    true under either name (of two cubes that touch) tells nothing.

    ``images`` are the embeddings (M, D) of each, ``texts`` the captions as said of each, ``shows``
    (M, captions) whether the frame shows what each speaks of; those alone count, where ``trained``,
    that the encoder was.
    """
    column_of = [{text: column for column, text in enumerate(sentences)} for sentences in texts]
    right, of = 0, 0
    for column, names in enumerate(zip(*texts, strict=True)):
        if len(set(names)) == 1 or (trained and not all(n in encoder.taught for n in names)):
            continue
        first, second = encoder.encode_texts(names)
        held = np.logical_and.reduce([truth[:, column], *(of[:, column] for of in shows)])
        for sentences, other in zip(column_of, reversed(names), strict=True):
            if other in sentences:
                held &= ~truth[:, sentences[other]]
        prefers = [embedded[held] @ (first - second) for embedded in images]
        right += int(((prefers[0] > 0) & (prefers[1] < 0)).sum())
        of += int(held.sum())
    return right / of if of else None


def _painted(appearance: Appearance | None, paint: Recoloring, count: int) -> Appearance | None:
    if appearance is None or not paint.rgba:
        return appearance
    rows = {geom: np.tile(rgba, (count, 1)) for geom, rgba in paint.rgba.items()}
    return dataclasses.replace(appearance, geom_rgba=rows)


def summary(found: Sequence[CaptionCell]) -> dict[str, float]:
    """The figures of cells that have enough states of either kind."""
    judged = [cell for cell in found if cell.auc is not None and cell.rank is not None]
    areas, ranks = np.array([c.auc for c in judged]), np.array([c.rank for c in judged])
    if not judged:
        return {"cells": 0, "left_out": len(found)}
    return {
        "cells": len(judged),
        "left_out": len(found) - len(judged),
        "auc_median": float(np.median(areas)),
        "auc_least": float(areas.min()),
        "share_95": float((areas >= 0.95).mean()),
        "rank_median": float(np.median(ranks)),
    }


def summarize_scenes(found: Mapping[TrainingScene, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the card's figures, scene by scene and in total, of {home: figures}."""
    scenes, rates = [], []
    cells: dict[str, list[dict[str, Any]]] = {"plain": [], "moved": [], "unseen": []}
    for home, figures in found.items():
        of = dataclasses.asdict(home)
        scene = {
            **of,
            **figures["plain summary"],
            "swapped": figures["swapped"],
            "moved": figures["moved summary"],
        }
        if "unseen" in figures:
            scene |= {
                "unseen": figures["unseen summary"],
                "unseen told apart": figures["unseen told apart"],
            }
        scenes.append(scene)
        rates.append(figures["frames_per_s"])
        for label, cell_figures in cells.items():
            cell_figures += [cell | of for cell in figures.get(label, ())]
    names = [field.name for field in dataclasses.fields(CaptionCell)]
    in_all = {
        label: summary(
            [CaptionCell(**{name: cell[name] for name in names}) for cell in cell_figures]
        )
        for label, cell_figures in cells.items()
        if cell_figures
    }
    return {
        "cells": cells["plain"],
        "summary": in_all["plain"],
        "moved": in_all["moved"],
        **({"unseen": in_all["unseen"]} if "unseen" in in_all else {}),
        "scenes": scenes,
        "swapped": scenes[0]["swapped"] if len(scenes) == 1 else None,
        "frames_per_s": float(np.median(rates)),
    }


def caption_lines(found: Sequence[Mapping[str, Any]]) -> str:
    """A line for each caption."""
    return "\n".join(
        f"auc {figure(cell['auc'])}  rank {figure(cell['rank'])}  {cell['true']} of {cell['of']} "
        f"true  {cell['text']}"
        for cell in found
    )


def figure(value: float | None) -> str:
    """Three digits, or a stroke where there is none."""
    return "    -" if value is None else f"{value:.3f}"
