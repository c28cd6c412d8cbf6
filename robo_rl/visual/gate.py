"""The gate of the embedded CLIP: measures against the simulator's truth on held-out states.

For every goal: AUC of success, Spearman with the true distance near the goal, and whether
repainting two objects swaps their scores; all again with camera and light moved. The truth is the
task's own success and distance, which training never saw. Nor has it seen an expert's states, a
third of those that judge it: so every goal has its share of near misses.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from reward_models.metrics import auc, spearman
from reward_models.visual.captions import CAPTIONS, COLOURS
from reward_models.visual.encoders import TorchEncoder
from robo_rl.visual.data import ROLLED, collect, facts, jitter, paint, things_of
from sims.batch_env import BatchEnv
from sims.cameras import Look
from sims.task import Task

Array = np.ndarray

NEAR = 0.10  # m, the range over which order matters most
CLEAR = (0.02, 0.01)  # m, by which one object is nearer: what touching allows, and half of it
DRIVEN = 0.35  # share of the judge's states that experts led to
ROWS = 256  # of the judge's batch
SWAPPED = 1500  # states whose objects are repainted


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


def sayable(task: Task[Any]) -> dict[str, str]:
    """{goal: sentence} of the goals that are captions of the embedded CLIP."""
    return {k: g.sentence for k, g in task.goals().items() if g.sentence in CAPTIONS}


def judged_states(env: BatchEnv, count: int, seed: int) -> tuple[Array, dict[str, Array]]:
    """State rows (count, nstate) and signals {name: (count, ...)} that a scorer is judged on.

    Most are scattered. The others come from episodes in which every row is driven by a random
    goal's expert with noise, from pure expert to mostly noise; where the task has no expert, by
    random moves. For judging alone: nothing is trained or scaled on them.
    """
    if not env.task.has_expert:
        return collect(env, count, seed, ROLLED)
    states, signals = collect(env, count - round(DRIVEN * count), seed, rollouts=0.0)
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
            if step % 5 == 4 and wanted > 0:
                ids = np.sort(rng.permutation(env.num_envs)[: min(wanted, env.num_envs // 2)])
                driven.append((env.state(ids), {k: v[ids] for k, v in env.signals().items()}))
                wanted -= len(ids)
    states = np.concatenate([states, *(rows for rows, _ in driven)])
    return states, {n: np.concatenate([s, *(r[n] for _, r in driven)]) for n, s in signals.items()}


def judge(
    env: BatchEnv, states: Array, embeddings: Array, encoder: TorchEncoder
) -> list[GoalScore]:
    """One GoalScore for each goal of the env's task that is a caption."""
    truth = _truth(env, states)
    out = []
    for goal, sentence in sayable(env.task).items():
        score = embeddings @ encoder.encode_texts((sentence,))[0]
        success, distance = truth[goal]
        near = distance < NEAR
        out.append(
            GoalScore(
                goal,
                sentence,
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
    Empty where the task has no two goals of touching.
    """
    things = [e for e in things_of(env.task) if f"touch_{e.name}" in env.task.goals()]
    if len(things) < 2:
        return {}
    colour = np.array(facts(env, signals).colour)
    embedded = encoder.encode(env.render_states(states, encoder.camera, look=look))
    texts = encoder.encode_texts(tuple(f"the gripper touches the {c} object" for c in COLOURS))
    truth = _truth(env, states)
    distance = [truth[f"touch_{e.name}"][1] for e in things]
    turned, gaps = [], []
    for a, b in itertools.combinations(range(len(things)), 2):
        swapped = colour.copy()
        swapped[:, [a, b]] = swapped[:, [b, a]]
        repainted = dataclasses.replace(look, geom_rgba=paint(env, swapped))
        other = encoder.encode(env.render_states(states, encoder.camera, look=repainted))
        axis = texts[COLOURS.index(things[a].colour)] - texts[COLOURS.index(things[b].colour)]
        near = np.minimum(distance[a], distance[b]) < NEAR
        turned.append(((embedded @ axis) * (other @ axis) < 0)[near])
        gaps.append(np.abs(distance[a] - distance[b])[near])
    turn, gap = np.concatenate(turned), np.concatenate(gaps)
    return {margin: float(turn[gap > margin].mean()) for margin in CLEAR}


def gate(
    encoder: TorchEncoder,
    tasks: tuple[Task[Any], ...],
    *,
    count: int = 4000,
    seed: int = 900_001,
    camera: float = 0.05,
    light: float = 0.20,
) -> dict[str, Any]:
    """Every figure of the gate as one JSON-able dict; ``seed`` is disjoint from training's.

    ValueError for a task none of whose goals is a caption: there nothing could judge.
    """
    report: dict[str, Any] = {"encoder": encoder.name, "states": count, "seed": seed}
    worst: dict[str, float] = {}
    for task in tasks:
        check_sayable(task)
        env = BatchEnv(task, ROWS, seed=seed)
        states, signals = judged_states(env, count, seed)
        view = env.camera(encoder.camera)
        rng = np.random.default_rng(seed)
        moved = Look(**jitter(rng, len(states), view, camera=camera, light=light))
        for label, look in (("plain", None), ("jitter", moved)):
            frames = env.render_states(states, encoder.camera, look=look)
            rows = judge(env, states, encoder.encode(frames), encoder)
            report[f"{task.name}/{label}"] = [vars(row) for row in rows]
            worst[f"{task.name}/{label}/auc"] = min(row.auc for row in rows)
            worst[f"{task.name}/{label}/spearman"] = min(row.spearman for row in rows)
        if task is tasks[0]:
            few = slice(0, SWAPPED)
            part = {name: s[few] for name, s in signals.items()}
            for label, look in (("plain", Look()), ("jitter", moved.rows(few))):
                for margin, share in swap_rates(env, states[few], part, encoder, look).items():
                    key = f"{task.name}/{label}/swap beyond {100 * margin:.0f} cm"
                    worst[key] = share
            worst["text_cosine"] = text_cosine(env, encoder)
            report["frames_per_s"] = speed(encoder, frames[:256])
        env.close()
    report["worst"] = worst
    return report


def check_sayable(task: Task[Any]) -> None:
    """ValueError where no goal of the task is a caption of the embedded CLIP."""
    things_of(task)
    if not sayable(task):
        goals = "; ".join(goal.sentence for goal in task.goals().values())
        raise ValueError(
            f"no goal of task {task.name!r} ({goals}) is a caption that the embedded CLIP learns "
            "(where gripper and objects are from one another): nothing could judge one trained on "
            "it; use reward code (--reward offline)"
        )


def text_cosine(env: BatchEnv, encoder: TorchEncoder) -> float:
    """Largest cosine between the captions of one relation and two different objects."""
    by_relation: dict[str, list[str]] = {}
    for sentence in sayable(env.task).values():
        by_relation.setdefault(sentence.rsplit("the", 1)[0], []).append(sentence)
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
