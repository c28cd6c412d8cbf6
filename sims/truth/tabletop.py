"""Predicates of the tabletop, one function each, as docs/reference/goal-language.md has them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sims.core.terms import norm
from sims.truth.predicate import EpisodeClock, TruthPredicate, history_predicate, state_predicate
from sims.truth.world import GRIPPER, World

Array = np.ndarray

LEFT, FRONT = np.array([0.0, -1.0]), np.array([1.0, 0.0])  # in x and y, as the picture shows them


def flat(x: Array) -> Array:
    """(N,) length in x and y of vectors (N, 3) or (N, 2)."""
    return norm(x[..., :2])


def touch(w: World, a: str, b: str, *, within: float) -> Array:
    return w.clearance(a, b, within) <= within


def _over(w: World, a: str, b: str, height: float, tolerance: float, over: float) -> Array:
    under = w.point(a)[:, 2] - (w.half_height(a) if a != GRIPPER else 0.0)
    above = under - (w.point(b)[:, 2] + w.half_height(b))
    return (np.abs(above - height) <= tolerance) & (flat(w.point(a) - w.point(b)) <= over)


def above(w: World, a: str, b: str, *, height: float, tolerance: float, over: float) -> Array:
    return _over(w, a, b, height, tolerance, over)


def below(w: World, a: str, b: str, *, height: float, tolerance: float, over: float) -> Array:
    top = w.point(a)[:, 2] + (w.half_height(a) if a != GRIPPER else 0.0)
    over_it = (w.point(b)[:, 2] - w.half_height(b)) - top
    return (np.abs(over_it - height) <= tolerance) & (flat(w.point(a) - w.point(b)) <= over)


def _beside(way: Array) -> Callable[..., Array]:
    def beside(w: World, a: str, b: str, *, gap: float, most: float, abreast: float) -> Array:
        off = (w.point(a) - w.point(b))[:, :2]
        along, across = off @ way, off @ way[::-1]
        return (along >= gap) & (along <= most) & (np.abs(across) <= abreast)

    return beside


def near(w: World, a: str, b: str, *, within: float) -> Array:
    return norm(w.point(a) - w.point(b)) <= within


def far(w: World, a: str, b: str, *, least: float) -> Array:
    return norm(w.point(a) - w.point(b)) >= least


def next_to(w: World, a: str, b: str, *, within: float, standing: float) -> Array:
    stand = [np.abs(w.point(t)[:, 2] - w.half_height(t)) < standing for t in (a, b)]
    return (flat(w.point(a) - w.point(b)) <= within) & stand[0] & stand[1]


def between(w: World, a: str, b: str, c: str, *, off: float, ends: float) -> Array:
    way = (w.point(c) - w.point(b))[:, :2]
    from_start = (w.point(a) - w.point(b))[:, :2]
    length = flat(way)
    unit = way / np.maximum(length, 1e-12)[:, None]
    share = np.einsum("ni,ni->n", from_start, unit) / np.maximum(length, 1e-12)
    aside = np.abs(from_start[:, 0] * unit[:, 1] - from_start[:, 1] * unit[:, 0])
    return (length >= 1e-3) & (share >= ends) & (share <= 1 - ends) & (aside <= off)


def in_line(w: World, a: str, b: str, c: str, *, off: float) -> Array:
    spots = np.stack([w.point(name)[:, :2] for name in (a, b, c)], axis=1)  # (N, 3, 2)
    sides = np.stack([flat(spots[:, i] - spots[:, (i + 1) % 3]) for i in range(3)], axis=1)
    first, second = spots[:, 1] - spots[:, 0], spots[:, 2] - spots[:, 0]
    twice_area = np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    return twice_area <= off * sides.max(axis=1)


def on(w: World, a: str, b: str, *, aside: float, tolerance: float, clear: float) -> Array:
    first, second = w.point(a), w.point(b)
    there = (flat(first - second) <= aside) & ~touch(w, GRIPPER, a, within=clear)
    if not w.is_thing(b):
        return there & (np.abs(first[:, 2] - w.half_height(a)) <= tolerance)
    lying = (first[:, 2] - w.half_height(a)) - (second[:, 2] + w.half_height(b))
    stands = np.abs(second[:, 2] - w.half_height(b)) <= tolerance
    return there & (np.abs(lying) <= tolerance) & stands


def inside(w: World, a: str, b: str, *, below: float, clear: float) -> Array:
    off = np.abs(w.point(a) - w.point(b))
    wide, deep = w.half(b)[:2]
    within = (off[:, 0] <= wide) & (off[:, 1] <= deep)
    low = w.point(a)[:, 2] <= below
    return within & low & ~touch(w, GRIPPER, a, within=clear)


def inserted(w: World, a: str, b: str, *, aside: float, deep: float, upright: float) -> Array:
    up = w.axes(a)[:, :, 2]
    end = w.point(a) - w.half_height(a) * up - w.point(b)
    return (flat(end) <= aside) & (-end[:, 2] >= deep) & (up[:, 2] > upright)


def lifted(w: World, a: str, *, height: float, hand: float) -> Array:
    high = w.point(a)[:, 2] - w.half_height(a) >= height
    return high & (norm(w.point(a) - w.grip_point()) < hand)


def at_height(w: World, a: str, *, least: float, most: float) -> Array:
    height = w.point(a)[:, 2]
    return (height >= least) & (height <= most)


def at(w: World, a: str, b: str, *, within: float) -> Array:
    return flat(w.point(a) - w.point(b)) <= within


def at_point(w: World, a: str, *, x: float, y: float, within: float) -> Array:
    return flat(w.point(a)[:, :2] - (x, y)) <= within


def _to_a_side(axis: int, sign: int) -> Callable[..., Array]:
    """In the outermost share of the area in which things lie, to that end of an axis."""

    def to_a_side(w: World, a: str, *, share: float) -> Array:
        low, high = w.area[axis]
        inner = high - share * (high - low) if sign > 0 else low + share * (high - low)
        return sign * (w.point(a)[:, axis] - inner) >= 0.0

    return to_a_side


def in_middle(w: World, a: str, *, share: float) -> Array:
    middle, size = w.area.mean(axis=1), np.diff(w.area, axis=1)[:, 0]
    return (np.abs(w.point(a)[:, :2] - middle) <= 0.5 * share * size).all(axis=1)


def upright(w: World, a: str, *, cosine: float) -> Array:
    return w.axes(a)[:, 2, 2] >= cosine


def toppled(w: World, a: str, *, cosine: float) -> Array:
    return np.abs(w.axes(a)[:, 2, 2]) <= cosine


def opened(w: World, a: str, *, share: float) -> Array:
    return w.joint_share(a) >= share


def closed(w: World, a: str, *, share: float) -> Array:
    return w.joint_share(a) <= share


def grasped(w: World, a: str, *, within: float) -> Array:
    touching = [w.gap(finger, a, within) <= within for finger in w.fingers]
    one, other = w.finger_middles()
    across, to = other - one, w.point(a) - one
    along, whole = (np.einsum("ni,ni->n", way, across) for way in (to, across))
    return touching[0] & touching[1] & (along >= 0.0) & (along <= whole)


def released(w: World, a: str, *, clear: float) -> Array:
    return ~touch(w, GRIPPER, a, within=clear)


# Those that compare steps: what is recorded at each, and what follows from the record (S, N, k).
def _place(w: World, a: str, **numbers: float) -> Array:
    return w.point(a)


def moved(
    track: Array, clock: EpisodeClock, *, left: float, front: float, tolerance: float
) -> Array:
    way = (track - track[0])[..., :2]
    return flat(way - (left * LEFT + front * FRONT)) <= tolerance


def raised(track: Array, clock: EpisodeClock, *, height: float, tolerance: float) -> Array:
    return np.abs((track - track[0])[..., 2] - height) <= tolerance


def _distance(w: World, a: str, b: str, **numbers: float) -> Array:
    return norm(w.point(a) - w.point(b))[:, None]


def nearer(track: Array, clock: EpisodeClock, *, by: float) -> Array:
    return (track[0] - track)[..., 0] >= by


def displaced(track: Array, clock: EpisodeClock, *, least: float, most: float) -> Array:
    way = flat(track - track[0])
    return (way >= least) & (way <= most)


def _quarter(w: World, a: str, **numbers: float) -> Array:
    """(N, 1) rad: how a cube is turned, up to a quarter: of its two axes that lie flattest."""
    axes = w.axes(a).transpose(0, 2, 1)  # (N, axis, xyz)
    flattest = np.argsort(np.abs(axes[:, :, 2]), axis=1)[:, 0]
    edge = axes[np.arange(len(axes)), flattest]
    return np.arctan2(edge[:, 1], edge[:, 0])[:, None]


def turned(track: Array, clock: EpisodeClock, *, angle: float, tolerance: float) -> Array:
    off = (track - track[0])[..., 0] - angle
    quarter = np.pi / 2
    return np.abs((off + quarter / 2) % quarter - quarter / 2) <= tolerance


def pace(track: Array, clock: EpisodeClock) -> Array:
    """(S, N) m/s from each step's point (S, N, 3) and the one before; 0 at the first."""
    return norm(np.diff(track, axis=0, prepend=track[:1])) / clock.dt


def slower(track: Array, clock: EpisodeClock, *, speed: float) -> Array:
    return pace(track, clock) <= speed


def faster(track: Array, clock: EpisodeClock, *, speed: float) -> Array:
    return pace(track, clock) >= speed


PREDICATES: dict[str, TruthPredicate] = {
    "touch": state_predicate(touch),
    "above": state_predicate(above),
    "below": state_predicate(below),
    "left_of": state_predicate(_beside(LEFT)),
    "right_of": state_predicate(_beside(-LEFT)),
    "in_front_of": state_predicate(_beside(FRONT)),
    "behind": state_predicate(_beside(-FRONT)),
    "near": state_predicate(near),
    "far": state_predicate(far),
    "next_to": state_predicate(next_to),
    "between": state_predicate(between),
    "in_line": state_predicate(in_line),
    "on": state_predicate(on),
    "inside": state_predicate(inside),
    "inserted": state_predicate(inserted),
    "lifted": state_predicate(lifted),
    "moved": history_predicate(_place, moved),
    "raised": history_predicate(_place, raised),
    "nearer": history_predicate(_distance, nearer),
    "displaced": history_predicate(_place, displaced),
    "at_height": state_predicate(at_height),
    "at": state_predicate(at),
    "on_left": state_predicate(_to_a_side(1, -1)),
    "on_right": state_predicate(_to_a_side(1, 1)),
    "at_front": state_predicate(_to_a_side(0, 1)),
    "at_back": state_predicate(_to_a_side(0, -1)),
    "in_middle": state_predicate(in_middle),
    "at_point": state_predicate(at_point),
    "upright": state_predicate(upright),
    "toppled": state_predicate(toppled),
    "turned": history_predicate(_quarter, turned),
    "open": state_predicate(opened),
    "closed": state_predicate(closed),
    "pressed": state_predicate(opened),
    "grasped": state_predicate(grasped),
    "released": state_predicate(released),
    "still": history_predicate(_place, slower),
    "slower": history_predicate(_place, slower),
    "faster": history_predicate(_place, faster),
}
