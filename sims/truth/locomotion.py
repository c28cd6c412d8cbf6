"""Predicates of bodies, one function each, as docs/reference/goal-language.md has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sims.core.terms import norm
from sims.tasks import ant, half_cheetah, hopper, humanoid, walker2d
from sims.truth import tabletop
from sims.truth.predicate import EpisodeClock, TruthPredicate, history_predicate, state_predicate
from sims.truth.world import World

Array = np.ndarray


def _fallen(w: World) -> Array:
    """(N,) bool: what ends an episode of Gymnasium's own task."""
    v: Any = w.views
    task = w.task
    if isinstance(task, hopper.Hopper):
        flung = (np.abs(np.concatenate([v.qpos[:, 2:], v.qvel], axis=1)) >= 100.0).any(axis=1)
        return (v.qpos[:, 1] <= 0.7) | (np.abs(v.qpos[:, 2]) >= 0.2) | flung
    if isinstance(task, walker2d.Walker2d):
        height = v.qpos[:, 1]
        return (height <= 0.8) | (height >= 2.0) | (np.abs(v.qpos[:, 2]) >= 1.0)
    if isinstance(task, ant.Ant):
        return (v.qpos[:, 2] < 0.2) | (v.qpos[:, 2] > 1.0)
    if isinstance(task, humanoid.Humanoid):
        return (v.qpos[:, 2] <= 1.0) | (v.qpos[:, 2] >= 2.0)
    return np.zeros(len(v.qpos), bool)


def _up(w: World) -> Array:
    """(N,) height of the torso's own unit z axis."""
    v: Any = w.views
    if isinstance(w.task, hopper.Hopper | walker2d.Walker2d | half_cheetah.HalfCheetah):
        return np.cos(v.qpos[:, 2])
    q = v.qpos[:, 3:7] / norm(v.qpos[:, 3:7])[:, None]
    return 1.0 - 2.0 * (q[:, 1] ** 2 + q[:, 2] ** 2)


def _torso_speed(w: World) -> Array:
    return norm(w.views.qvel[:, :3])


# Going somewhere: the torso's x and whether it has fallen.
def _going(w: World, body: str, **numbers: float) -> Array:
    return np.column_stack([w.views.qpos[:, 0], _fallen(w)])


def _gone(sign: float) -> Callable[..., Array]:
    def gone(record: Array, clock: EpisodeClock, *, pace: float) -> Array:
        way = sign * (record[:, :, 0] - record[0, :, 0])
        return (way >= pace * clock.length) & (record[:, :, 1] < 0.5)

    return gone


# Flips of the hopper: pitch, and heights of the torso's middle and of its top.
def _flipping(w: World, body: str) -> Array:
    height, pitch = w.views.qpos[:, 1], w.views.qpos[:, 2]
    return np.column_stack([pitch, height, height + 0.2 * np.cos(pitch)])


def _flipped(sign: float) -> Callable[..., Array]:
    def flipped(record: Array, clock: EpisodeClock) -> Array:
        turn = sign * record[:, :, 0]
        over = (np.abs(turn - np.pi) < 0.6) & (record[:, :, 2] > 0.1)
        over[0] = False  # steps 1 on count
        landed = (np.abs(turn - 2 * np.pi) < 0.5) & (record[:, :, 1] > 0.7)
        return np.logical_or.accumulate(np.logical_or.accumulate(over) & landed)

    return flipped


# Waving: of each leg its foot's height and its hip's angle, then the torso's up.
def _waving(w: World, body: str, **numbers: float) -> Array:
    v: Any = w.views
    feet = w.task.feet(v)[:, :, 2]
    return np.column_stack([feet, v.qpos[:, v.hips], _up(w)])


def waved(record: Array, clock: EpisodeClock, *, swings: float) -> Array:
    """Returns whether the ant has waved a leg by each step, (S, N) bool.

    Args:
        record: (S, N, 9): at each step the height of each foot in m, the angle of each hip in rad,
            and the height of the torso's own z axis.
        clock: the time of the episode.
        swings: times that one leg must swing to the other side before its foot is down again.
    """
    feet, hips, up = record[:, :, :4], record[:, :, 4:8], record[:, :, 8:]
    aloft = (feet > 0.18) & (up > 0.5)
    side, count = np.zeros(feet.shape[1:]), np.zeros(feet.shape[1:])
    most = np.zeros(feet.shape[:2])
    for step in range(1, len(record)):
        turned = np.abs(hips[step]) > 0.2
        now_on = np.where(aloft[step], np.where(turned, np.sign(hips[step]), side), 0.0)
        swung = aloft[step] & (now_on != 0) & (now_on != side)
        count = np.where(aloft[step], count + swung, 0.0)
        side = now_on
        most[step] = np.maximum(most[step - 1], count.max(axis=1))
    return most >= swings


def lie_down(w: World, body: str, *, cosine: float, speed: float) -> Array:
    """Returns whether the ant lies on its back, (N,) bool.

    Args:
        w: the scene.
        body: the ant.
        cosine: most height of the torso's own z axis.
        speed: m/s, most speed of the torso.
    """
    return (_up(w) <= cosine) & (_torso_speed(w) <= speed)


def stand_up(w: World, body: str, *, height: float, speed: float) -> Array:
    """Returns whether the humanoid stands on both feet, upright, (N,) bool.

    Args:
        w: the scene.
        body: the humanoid.
        height: m, least height of the torso.
        speed: m/s, most speed of the torso.
    """
    feet = w.task.limbs(w.views, "foot")[:, :, 2]
    low = (feet <= 0.25).all(axis=1)
    high = w.views.qpos[:, 2] >= height
    return high & low & (_up(w) >= 0.85) & (_torso_speed(w) <= speed)


def kneel(w: World, body: str, *, speed: float) -> Array:
    """Returns whether the humanoid kneels on both knees, upright, (N,) bool.

    Args:
        w: the scene.
        body: the humanoid.
        speed: m/s, most speed of the torso.
    """
    knees = (w.task.limbs(w.views, "shin")[:, :, 2] <= 0.15).all(axis=1)
    torso = w.views.qpos[:, 2]
    sits = (torso >= 0.5) & (torso <= 1.05)
    return knees & sits & (_up(w) >= 0.85) & (_torso_speed(w) <= speed)


def raise_arms(w: World, body: str, *, speed: float) -> Array:
    """Returns whether the humanoid stands with both hands over its head, (N,) bool.

    Args:
        w: the scene.
        body: the humanoid.
        speed: m/s, most speed of the torso.
    """
    torso = w.views.qpos[:, 2]
    hands = (w.task.hands(w.views)[:, :, 2] >= torso[:, None] + 0.19).all(axis=1)
    return hands & (torso >= 1.0) & (_up(w) >= 0.85) & (_torso_speed(w) <= speed)


def upright(w: World, body: str, *, cosine: float) -> Array:
    """Returns whether the height of the torso's z axis is at least ``cosine``, (N,) bool."""
    return _up(w) >= cosine


def _place(w: World, body: str, **numbers: float) -> Array:
    return w.point(body)[:, :2].copy()


BODIES = ("hopper", "walker2d", "half_cheetah", "ant", "humanoid")

# name: (predicate, tasks in which it means something)
WORDS: dict[str, tuple[TruthPredicate, tuple[str, ...]]] = {
    "forward": (history_predicate(_going, _gone(1.0)), BODIES),
    "backward": (history_predicate(_going, _gone(-1.0)), BODIES),
    "front_flip": (history_predicate(_flipping, _flipped(1.0)), ("hopper",)),
    "back_flip": (history_predicate(_flipping, _flipped(-1.0)), ("hopper",)),
    "wave": (history_predicate(_waving, waved), ("ant",)),
    "lie_down": (state_predicate(lie_down), ("ant",)),
    "stand_up": (state_predicate(stand_up), ("humanoid",)),
    "kneel": (state_predicate(kneel), ("humanoid",)),
    "raise_arms": (state_predicate(raise_arms), ("humanoid",)),
    "upright": (state_predicate(upright), BODIES),
    "at_height": (tabletop.PREDICATES["at_height"], BODIES),
    "still": (history_predicate(_place, tabletop.slower), BODIES),
    "slower": (history_predicate(_place, tabletop.slower), BODIES),
    "faster": (history_predicate(_place, tabletop.faster), BODIES),
}


def locomotion_predicates(task: str) -> dict[str, TruthPredicate]:
    """The predicates that mean something in a body's task."""
    return {name: predicate for name, (predicate, tasks) in WORDS.items() if task in tasks}
