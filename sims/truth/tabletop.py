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
    """Returns the length (N,) in x and y of vectors (N, 3) or (N, 2)."""
    return norm(x[..., :2])


def touch(w: World, a: str, b: str, *, within: float) -> Array:
    """Returns whether the surfaces of two entities are at most ``within`` m apart, (N,) bool.

    The surface of the gripper is that of its fingers, and furniture counts as its point.
    """
    return w.clearance(a, b, within) <= within


def _over(w: World, a: str, b: str, height: float, tolerance: float, over: float) -> Array:
    under = w.point(a)[:, 2] - (w.half_height(a) if a != GRIPPER else 0.0)
    above = under - (w.point(b)[:, 2] + w.half_height(b))
    return (np.abs(above - height) <= tolerance) & (flat(w.point(a) - w.point(b)) <= over)


def above(w: World, a: str, b: str, *, height: float, tolerance: float, over: float) -> Array:
    """Returns whether ``a`` is above ``b``, (N,) bool.

    Args:
        w: the scene.
        a: an object, of which the underside counts, or the gripper, of which the tip counts.
        b: the entity below it, of which the top counts.
        height: m, of ``a`` over ``b``.
        tolerance: m, by which the height may differ from ``height``.
        over: m, most horizontal distance of their points.
    """
    return _over(w, a, b, height, tolerance, over)


def below(w: World, a: str, b: str, *, height: float, tolerance: float, over: float) -> Array:
    """Returns whether ``a`` is below ``b``, (N,) bool.

    Args:
        w: the scene.
        a: an object, of which the top counts, or the gripper, of which the tip counts.
        b: the entity above it, of which the underside counts.
        height: m, of ``b`` over ``a``.
        tolerance: m, by which the height may differ from ``height``.
        over: m, most horizontal distance of their points.
    """
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
    """Returns whether the points of two entities are at most ``within`` m apart, (N,) bool."""
    return norm(w.point(a) - w.point(b)) <= within


def far(w: World, a: str, b: str, *, least: float) -> Array:
    """Returns whether the points of two entities are at least ``least`` m apart, (N,) bool."""
    return norm(w.point(a) - w.point(b)) >= least


def next_to(w: World, a: str, b: str, *, within: float, standing: float) -> Array:
    """Returns whether two entities stand next to each other, (N,) bool.

    Args:
        w: the scene.
        a: an entity.
        b: another.
        within: m, most horizontal distance of their points.
        standing: m, by which the height of each point may differ from that of an object that
            stands on the table.
    """
    stand = [np.abs(w.point(t)[:, 2] - w.half_height(t)) < standing for t in (a, b)]
    return (flat(w.point(a) - w.point(b)) <= within) & stand[0] & stand[1]


def between(w: World, a: str, b: str, c: str, *, off: float, ends: float) -> Array:
    """Returns whether ``a`` is between ``b`` and ``c`` as seen from above, (N,) bool.

    Args:
        w: the scene.
        a: an entity.
        b: where the line begins.
        c: where the line ends; less than 1 mm from ``b`` nothing is between them.
        off: m, most horizontal distance of ``a`` from the line.
        ends: the share of the line at either end that does not count.
    """
    way = (w.point(c) - w.point(b))[:, :2]
    from_start = (w.point(a) - w.point(b))[:, :2]
    length = flat(way)
    unit = way / np.maximum(length, 1e-12)[:, None]
    share = np.einsum("ni,ni->n", from_start, unit) / np.maximum(length, 1e-12)
    aside = np.abs(from_start[:, 0] * unit[:, 1] - from_start[:, 1] * unit[:, 0])
    return (length >= 1e-3) & (share >= ends) & (share <= 1 - ends) & (aside <= off)


def in_line(w: World, a: str, b: str, c: str, *, off: float) -> Array:
    """Returns whether three objects are in line as seen from above, (N,) bool.

    Args:
        w: the scene.
        a: an object.
        b: an object.
        c: an object.
        off: m, most distance of one from the line through the two that are farthest apart.
    """
    spots = np.stack([w.point(name)[:, :2] for name in (a, b, c)], axis=1)  # (N, 3, 2)
    sides = np.stack([flat(spots[:, i] - spots[:, (i + 1) % 3]) for i in range(3)], axis=1)
    first, second = spots[:, 1] - spots[:, 0], spots[:, 2] - spots[:, 0]
    twice_area = np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    return twice_area <= off * sides.max(axis=1)


def on(w: World, a: str, b: str, *, aside: float, tolerance: float, clear: float) -> Array:
    """Returns whether object ``a`` lies on ``b`` and the fingers are off it, (N,) bool.

    Args:
        w: the scene.
        a: an object.
        b: an object, which must itself stand on the table, or a mark on the table.
        aside: m, most horizontal distance of their points.
        tolerance: m, by which heights may differ from those of objects that lie on each other.
        clear: m, the fingers are farther than this from ``a``.
    """
    first, second = w.point(a), w.point(b)
    there = (flat(first - second) <= aside) & ~touch(w, GRIPPER, a, within=clear)
    if not w.is_thing(b):
        return there & (np.abs(first[:, 2] - w.half_height(a)) <= tolerance)
    lying = (first[:, 2] - w.half_height(a)) - (second[:, 2] + w.half_height(b))
    stands = np.abs(second[:, 2] - w.half_height(b)) <= tolerance
    return there & (np.abs(lying) <= tolerance) & stands


def inside(w: World, a: str, b: str, *, below: float, clear: float) -> Array:
    """Returns whether object ``a`` lies inside drawer ``b`` and the fingers are off it, (N,) bool.

    Args:
        w: the scene.
        a: an object.
        b: the drawer.
        below: m, most height of the object's point.
        clear: m, the fingers are farther than this from ``a``.
    """
    off = np.abs(w.point(a) - w.point(b))
    wide, deep = w.half(b)[:2]
    within = (off[:, 0] <= wide) & (off[:, 1] <= deep)
    low = w.point(a)[:, 2] <= below
    return within & low & ~touch(w, GRIPPER, a, within=clear)


def inserted(w: World, a: str, b: str, *, aside: float, deep: float, upright: float) -> Array:
    """Returns whether peg ``a`` is in hole ``b``, (N,) bool.

    Args:
        w: the scene.
        a: the peg.
        b: the hole.
        aside: m, most horizontal distance of the peg's lower end from the hole's point.
        deep: m, least depth of that end below the hole's point.
        upright: the height of the peg's own unit z axis is more than this.
    """
    up = w.axes(a)[:, :, 2]
    end = w.point(a) - w.half_height(a) * up - w.point(b)
    return (flat(end) <= aside) & (-end[:, 2] >= deep) & (up[:, 2] > upright)


def lifted(w: World, a: str, *, height: float, hand: float) -> Array:
    """Returns whether the gripper holds object ``a`` in the air, (N,) bool.

    Args:
        w: the scene.
        a: an object.
        height: m, least height of its underside over the table.
        hand: m, its point is less than this from the middle of the open jaws.
    """
    high = w.point(a)[:, 2] - w.half_height(a) >= height
    return high & (norm(w.point(a) - w.grip_point()) < hand)


def at_height(w: World, a: str, *, least: float, most: float) -> Array:
    """Returns whether the height of a point is from ``least`` to ``most`` m, (N,) bool."""
    height = w.point(a)[:, 2]
    return (height >= least) & (height <= most)


def at(w: World, a: str, b: str, *, within: float) -> Array:
    """Returns whether two points are horizontally at most ``within`` m apart, (N,) bool."""
    return flat(w.point(a) - w.point(b)) <= within


def at_point(w: World, a: str, *, x: float, y: float, within: float) -> Array:
    """Returns whether a point is horizontally at most ``within`` m from (x, y) m, (N,) bool."""
    return flat(w.point(a)[:, :2] - (x, y)) <= within


def _to_a_side(axis: int, sign: int) -> Callable[..., Array]:
    """In the outermost share of the area in which things lie, to that end of an axis."""

    def to_a_side(w: World, a: str, *, share: float) -> Array:
        low, high = w.area[axis]
        inner = high - share * (high - low) if sign > 0 else low + share * (high - low)
        return sign * (w.point(a)[:, axis] - inner) >= 0.0

    return to_a_side


def in_middle(w: World, a: str, *, share: float) -> Array:
    """Returns whether an entity is in the middle of the area in which objects lie, (N,) bool.

    Args:
        w: the scene.
        a: an entity.
        share: of the area's width, in x and in y, that counts as the middle.
    """
    middle, size = w.area.mean(axis=1), np.diff(w.area, axis=1)[:, 0]
    return (np.abs(w.point(a)[:, :2] - middle) <= 0.5 * share * size).all(axis=1)


def upright(w: World, a: str, *, cosine: float) -> Array:
    """Returns whether the height of an object's unit z axis is at least ``cosine``, (N,) bool."""
    return w.axes(a)[:, 2, 2] >= cosine


def toppled(w: World, a: str, *, cosine: float) -> Array:
    """Returns whether an object lies on its side, (N,) bool.

    Args:
        w: the scene.
        a: an object.
        cosine: most height of its own unit z axis, either way up.
    """
    return np.abs(w.axes(a)[:, 2, 2]) <= cosine


def opened(w: World, a: str, *, share: float) -> Array:
    """Returns whether the joint of ``a`` is at ``share`` of its range or further, (N,) bool."""
    return w.joint_share(a) >= share


def closed(w: World, a: str, *, share: float) -> Array:
    """Returns whether the joint of ``a`` is at ``share`` of its range or less far, (N,) bool."""
    return w.joint_share(a) <= share


def grasped(w: World, a: str, *, within: float) -> Array:
    """Returns whether an object is between the fingers and both touch it, (N,) bool.

    Args:
        w: the scene.
        a: an object.
        within: m, most distance of its surface from each finger's.
    """
    touching = [w.gap(finger, a, within) <= within for finger in w.fingers]
    one, other = w.finger_centers()
    across, to = other - one, w.point(a) - one
    along, whole = (np.einsum("ni,ni->n", way, across) for way in (to, across))
    return touching[0] & touching[1] & (along >= 0.0) & (along <= whole)


def released(w: World, a: str, *, clear: float) -> Array:
    """Returns whether the fingers are farther than ``clear`` m from an object, (N,) bool."""
    return ~touch(w, GRIPPER, a, within=clear)


# Those that compare steps: what is recorded at each, and what follows from the record (S, N, k).
def _place(w: World, a: str, **numbers: float) -> Array:
    return w.point(a)


def moved(
    track: Array, clock: EpisodeClock, *, left: float, front: float, tolerance: float
) -> Array:
    """Returns at which steps a point has moved by the given way, (S, N) bool.

    Args:
        track: (S, N, 3) m, the point at each step.
        clock: the time of the episode.
        left: m, the way to the left, -y.
        front: m, the way to the front, +x.
        tolerance: m, by which the horizontal way since the first step may differ from it.
    """
    way = (track - track[0])[..., :2]
    return flat(way - (left * LEFT + front * FRONT)) <= tolerance


def raised(track: Array, clock: EpisodeClock, *, height: float, tolerance: float) -> Array:
    """Returns at which steps a point has been raised by ``height``, (S, N) bool.

    Args:
        track: (S, N, 3) m, the point at each step.
        clock: the time of the episode.
        height: m, over the height at the first step; negative is down.
        tolerance: m, by which it may differ.
    """
    return np.abs((track - track[0])[..., 2] - height) <= tolerance


def _distance(w: World, a: str, b: str, **numbers: float) -> Array:
    return norm(w.point(a) - w.point(b))[:, None]


def nearer(track: Array, clock: EpisodeClock, *, by: float) -> Array:
    """Returns at which steps a distance is at least ``by`` m less than at first, (S, N) bool.

    Args:
        track: (S, N, 1) m, the distance of two points at each step.
        clock: the time of the episode.
        by: m.
    """
    return (track[0] - track)[..., 0] >= by


def displaced(track: Array, clock: EpisodeClock, *, least: float, most: float) -> Array:
    """Returns at which steps a point is displaced from where it began, (S, N) bool.

    Args:
        track: (S, N, 3) m, the point at each step.
        clock: the time of the episode.
        least: m, least horizontal distance from the point at the first step.
        most: m, most such distance.
    """
    way = flat(track - track[0])
    return (way >= least) & (way <= most)


def _quarter(w: World, a: str, **numbers: float) -> Array:
    """(N, 1) rad: how a cube is turned, up to a quarter: of its two axes that lie flattest."""
    axes = w.axes(a).transpose(0, 2, 1)  # (N, axis, xyz)
    flattest = np.argsort(np.abs(axes[:, :, 2]), axis=1)[:, 0]
    edge = axes[np.arange(len(axes)), flattest]
    return np.arctan2(edge[:, 1], edge[:, 0])[:, None]


def turned(track: Array, clock: EpisodeClock, *, angle: float, tolerance: float) -> Array:
    """Returns at which steps a cube has been turned by ``angle``, (S, N) bool.

    Args:
        track: (S, N, 1) rad, its yaw at each step, known up to a quarter turn.
        clock: the time of the episode.
        angle: rad, from the yaw at the first step.
        tolerance: rad, by which it may differ.
    """
    off = (track - track[0])[..., 0] - angle
    quarter = np.pi / 2
    return np.abs((off + quarter / 2) % quarter - quarter / 2) <= tolerance


def pace(track: Array, clock: EpisodeClock) -> Array:
    """Returns the speed (S, N) m/s of a point during the step that led to each; 0 at the first.

    Args:
        track: (S, N, k) m, the point at each step.
        clock: the time of the episode.
    """
    return norm(np.diff(track, axis=0, prepend=track[:1])) / clock.dt


def slower(track: Array, clock: EpisodeClock, *, speed: float) -> Array:
    """Returns at which steps the speed of a point is at most ``speed``, (S, N) bool.

    Args:
        track: (S, N, k) m, the point at each step; k is 2 for bodies and else 3.
        clock: the time of the episode.
        speed: m/s.
    """
    return pace(track, clock) <= speed


def faster(track: Array, clock: EpisodeClock, *, speed: float) -> Array:
    """Returns at which steps the speed of a point is at least ``speed``, (S, N) bool.

    Args:
        track: (S, N, k) m, the point at each step; k is 2 for bodies and else 3.
        clock: the time of the episode.
        speed: m/s.
    """
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
