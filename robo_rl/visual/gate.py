"""The gate of the embedded CLIP: measures against the simulator's truth on held-out states.

For every goal: AUC of success, Spearman with the true distance near the goal, and whether
repainting two objects swaps their scores; all again with camera and light moved. The truth is the
task's own success and distance, which training never saw.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from dataclasses import dataclass

import numpy as np

import sims
from reward_models.metrics import auc, spearman
from reward_models.visual.captions import COLOURS
from reward_models.visual.encoders import TorchEncoder
from robo_rl.visual.data import collect, facts, jitter, paint
from sims.batch_env import BatchEnv
from sims.cameras import Look

Array = np.ndarray

NEAR = 0.10  # m, the range over which order matters most
CLEAR = (0.02, 0.01)  # m, by which one object is nearer: what touching allows, and half of it


@dataclass(frozen=True)
class GoalScore:
    """What one goal's sentence is worth."""

    goal: str
    sentence: str
    auc: float
    spearman: float  # of score and -distance, among states within NEAR of the goal
    spearman_all: float
    positives: int
    near: int


def frames(env: BatchEnv, states: Array, look: Look | None = None) -> Array:
    """Frames (n, H, W, 3) of states from the encoder's camera."""
    return env.render_states(states, look=look)


def judge(
    env: BatchEnv, states: Array, embeddings: Array, encoder: TorchEncoder
) -> list[GoalScore]:
    """One GoalScore for each goal of the env's task."""
    truth = _truth(env, states)
    out = []
    for goal, spec in env.task.goals().items():
        score = embeddings @ encoder.encode_texts((spec.sentence,))[0]
        success, distance = truth[goal]
        near = distance < NEAR
        out.append(
            GoalScore(
                goal,
                spec.sentence,
                auc(score, success),
                spearman(score[near], -distance[near]),
                spearman(score, -distance),
                int(success.sum()),
                int(near.sum()),
            )
        )
    return out


def _truth(env: BatchEnv, states: Array) -> dict[str, tuple[Array, Array]]:
    """{goal: (success (n,), distance (n,))} of state rows."""
    parts: dict[str, list[tuple[Array, Array]]] = {goal: [] for goal in env.task.goals()}
    n = env.num_envs
    for start in range(0, len(states), n):
        chunk = states[start : start + n]
        padded = np.concatenate([chunk, np.repeat(chunk[:1], n - len(chunk), axis=0)])
        env.set_state(padded)
        for goal, spec in env.task.goals().items():
            pair = spec.success(env.views)[: len(chunk)], spec.distance(env.views)[: len(chunk)]
            parts[goal].append((np.array(pair[0], bool), np.array(pair[1])))
    return {
        goal: (np.concatenate([s for s, _ in rows]), np.concatenate([d for _, d in rows]))
        for goal, rows in parts.items()
    }


def swap_rates(
    env: BatchEnv, states: Array, signals: dict[str, Array], encoder: TorchEncoder, look: Look
) -> dict[float, float]:
    """{margin m: share of states in which repainting two objects turns round which scores higher}.

    Score of "the gripper touches the red object" against "... the blue object" (and so on), in
    the scene as it is and with the two colours exchanged. States in which neither object is nearer
    by the margin, in the goals' own distance, or both are far, say nothing and are left out.
    """
    things = [e for e in env.task.entities() if e.colour]
    colour = np.array(facts(env, signals).colour)
    embedded = encoder.encode(env.render_states(states, look=look))
    texts = encoder.encode_texts(tuple(f"the gripper touches the {c} object" for c in COLOURS))
    truth = _truth(env, states)
    distance = [truth[f"touch_{e.name}"][1] for e in things]
    turned, gaps = [], []
    for a, b in itertools.combinations(range(len(things)), 2):
        swapped = colour.copy()
        swapped[:, [a, b]] = swapped[:, [b, a]]
        repainted = dataclasses.replace(look, geom_rgba=paint(env, swapped))
        other = encoder.encode(env.render_states(states, look=repainted))
        axis = texts[COLOURS.index(things[a].colour)] - texts[COLOURS.index(things[b].colour)]
        near = np.minimum(distance[a], distance[b]) < NEAR
        turned.append(((embedded @ axis) * (other @ axis) < 0)[near])
        gaps.append(np.abs(distance[a] - distance[b])[near])
    turn, gap = np.concatenate(turned), np.concatenate(gaps)
    return {margin: float(turn[gap > margin].mean()) for margin in CLEAR}


def gate(
    encoder: TorchEncoder,
    *,
    tasks: tuple[str, ...] = ("reach",),
    count: int = 4000,
    seed: int = 900_001,
    camera: float = 0.05,
    light: float = 0.20,
) -> dict[str, object]:
    """Every figure of the gate as one JSON-able dict; ``seed`` is disjoint from training's."""
    report: dict[str, object] = {"encoder": encoder.name, "states": count, "seed": seed}
    worst: dict[str, float] = {}
    for task in tasks:
        env = sims.make(task, 256, seed=seed)
        states, signals = collect(env, count, seed)
        moved = Look(**jitter(np.random.default_rng(seed), count, camera, light))
        for label, look in (("plain", None), ("jitter", moved)):
            embeddings = encoder.encode(frames(env, states, look))
            rows = judge(env, states, embeddings, encoder)
            report[f"{task}/{label}"] = [vars(row) for row in rows]
            worst[f"{task}/{label}/auc"] = min(row.auc for row in rows)
            worst[f"{task}/{label}/spearman"] = min(row.spearman for row in rows)
        if task == tasks[0]:
            few = slice(0, 1500)
            part = {name: s[few] for name, s in signals.items()}
            for label, look in (("plain", Look()), ("jitter", Look(**jitter(
                np.random.default_rng(seed), 1500, camera, light)))):  # fmt: skip
                for margin, share in swap_rates(env, states[few], part, encoder, look).items():
                    worst[f"{task}/{label}/swap beyond {100 * margin:.0f} cm"] = share
            worst["text_cosine"] = text_cosine(env, encoder)
            report["frames_per_s"] = speed(encoder, frames(env, states[:256]))
        env.close()
    report["worst"] = worst
    return report


def text_cosine(env: BatchEnv, encoder: TorchEncoder) -> float:
    """Largest cosine between the captions of one relation and two different objects."""
    by_relation: dict[str, list[str]] = {}
    for spec in env.task.goals().values():
        by_relation.setdefault(spec.sentence.rsplit("the", 1)[0], []).append(spec.sentence)
    largest = -1.0
    for sentences in by_relation.values():
        rows = encoder.encode_texts(tuple(sentences))
        cosines = rows @ rows.T - 2.0 * np.eye(len(rows))
        largest = max(largest, float(cosines.max()))
    return largest


def speed(encoder: TorchEncoder, batch: Array, repeats: int = 5) -> float:
    """Frames per second of ``encode``, median of ``repeats``."""
    encoder.encode(batch)
    rates = []
    for _ in range(repeats):
        start = time.perf_counter()
        encoder.encode(batch)
        rates.append(len(batch) / (time.perf_counter() - start))
    return float(np.median(rates))
