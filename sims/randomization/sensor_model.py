"""SensorModel: what an arm would make of a state, in error as its sensors and its camera are.

A joint's zero is off for a whole episode, and so is where the camera believes that it stands; looks
tremble, come late, and some are lost. Every error is made once, where it is made on an arm: the tip
is off because the joints are, and whatever is told of a thing's place is told of the same wrong
place, filtered as the bridge filters it (``sims/core/pose_filter.py``). Observations are sums of
what is sensed (``Task.obs_parts``), so that their errors are sums of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims.core.pose_filter import DRIFT, kalman_update
from sims.core.task import Task

Array = np.ndarray


class SensorModel:
    """The errors of a batch's observations, for tasks that say what those are made of."""

    def __init__(self, task: Task[Any], views: Any, batch: Batch, columns: Mapping[str, Array]):
        model = batch.model
        self._views, self._batch, self._dt = views, batch, task.control_dt
        self.joints = views.qpos.shape[1]
        seen = [doc for doc in task.signal_docs() if not doc.on_robot]
        entities = {e.pose_signal: model.body(e.body) for e in task.entities()}
        # What is looked at: things and furniture, and what slides in furniture.
        self.bodies: list[int] = []
        self._slides: list[tuple[int, int, int]] = []  # its joint, its place and furniture's above
        width = {"qpos": self.joints, "qvel": self.joints, "tip": 3}
        source: dict[str, tuple[int, int]] = {}  # signal: its thing or furniture, slide or -1
        for doc in seen:
            body = entities.get(doc.name)
            joint = _joint_named(model, doc.name)
            if body is None and joint is None:
                if doc.unit == "1":
                    width[doc.name] = doc.shape[0]  # how a thing is turned
                continue
            slide = joint if joint is not None else _slide_of(model, int(body.id))
            at = body if body is not None else model.body(int(model.jnt_bodyid[joint]))
            source[doc.name] = self._place(int(at.rootid[0])), self._slide(model, slide)
            width[doc.name] = doc.shape[0]
        self._turns = [n for n in width if n not in source and n not in ("qpos", "qvel", "tip")]
        self._source = source
        ends = np.cumsum(list(width.values()))
        self._at = {n: slice(e - w, e) for (n, w), e in zip(width.items(), ends, strict=True)}
        self._weight = self._weights(task, columns, int(ends[-1]))  # (errors, obs_dim)
        n, k = batch.qpos.shape[0], len(self.bodies)
        self._error = np.zeros((n, int(ends[-1])))
        self._off, self._slid = np.zeros((n, k, 3)), np.zeros((n, len(self._slides)))  # m
        self.known, self.variance = np.zeros((n, k, 3)), np.zeros((n, k))
        self._since = np.zeros((n, k))  # s since each was last seen
        turned = sum(width[name] for name in self._turns)
        self.draws = 2 * self.joints + 4 * k + turned  # of a standard normal, a look

    def _place(self, body: int) -> int:
        if body not in self.bodies:
            self.bodies.append(body)
        return self.bodies.index(body)

    def _slide(self, model: Any, joint: int | None) -> int:
        if joint is None:
            return -1
        known = [j for j, _, _ in self._slides]
        if joint not in known:
            body = int(model.jnt_bodyid[joint])
            self._slides.append(
                (joint, self._place(body), self._place(int(model.body_rootid[body])))
            )
            known.append(joint)
        return known.index(joint)

    def _weights(self, task: Task[Any], columns: Mapping[str, Array], errors: int) -> Array:
        """What an error of each sensed number is worth in each column of the observation."""
        weight, first = np.zeros((errors, sum(c.shape[1] for c in columns.values()))), 0
        parts = task.obs_parts()
        for name, column in columns.items():
            if name not in parts:  # what is remembered is no sum
                first += column.shape[1]
                continue
            for part in parts[name]:
                for sensed, sign in ((part.plus, 1.0), (part.minus, -1.0)):
                    if sensed in self._at:
                        rows = np.arange(errors)[self._at[sensed]][: part.size]
                        weight[rows, first + np.arange(len(rows))] += sign * part.scale
                first += part.size
        return weight

    def places(self) -> Array:
        """Returns the true positions (N, k, 3) m of the bodies whose positions are measured."""
        return self._batch.xpos[:, self.bodies]

    def begin(self, ids: Array) -> None:
        """Forgets all measurements of rows ``ids`` (n,), whose episode begins."""
        self.variance[ids], self._since[ids] = np.inf, 0.0

    def measure(
        self,
        ids: Array,
        places: Array,
        normal: Array,
        drawn: Mapping[str, Array],
        size: Mapping[str, float],
    ) -> Array:
        """Errors (n, obs_dim) of the observations of rows ``ids``.

        Args:
            places: (n, k, 3) m, ``places`` of some time ago: looks come late.
            normal: (n, draws) from a standard normal distribution.
            drawn: ``joint_zero`` (n, joints) rad and ``pose_bias`` (n, 3 k) m of the episode.
            size: standard deviations ``joint_noise`` rad, ``speed_noise`` rad/s, ``pose_noise`` m,
                ``turn_noise``, and ``pose_lost``, a normal number above which a look is lost.
        """
        v, joints, k = self._views, self.joints, len(self.bodies)
        turned = normal[:, 2 * joints + 4 * k :]
        white = normal[:, 2 * joints : 2 * joints + 3 * k].reshape(-1, k, 3)
        lost = normal[:, 2 * joints + 3 * k : 2 * joints + 4 * k] > size["pose_lost"]
        error = self._error[ids]
        angle = drawn["joint_zero"] + size["joint_noise"] * normal[:, :joints]
        error[:, self._at["qpos"]] = angle
        error[:, self._at["qvel"]] = size["speed_noise"] * normal[:, joints : 2 * joints]
        arm = v.tip[ids, None] - v.anchor[ids]
        error[:, self._at["tip"]] = np.einsum("nj,njx->nx", angle, _cross(v.axis[ids], arm))
        if k:
            seen = places + drawn["pose_bias"].reshape(-1, k, 3) + size["pose_noise"] * white
            off = self._filtered(ids, seen, lost, size["pose_noise"]) - self.places()[ids]
            slid = [
                np.einsum("nx,nx->n", self._batch.xaxis[ids, joint], off[:, own] - off[:, root])
                for joint, own, root in self._slides
            ]
            self._off[ids], self._slid[ids] = off, np.array(slid).reshape(-1, len(ids)).T
            for name, (place, slide) in self._source.items():
                columns = self._at[name]
                if columns.stop - columns.start == 1:
                    error[:, columns] = slid[slide][:, None]
                    continue
                error[:, columns] = off[:, place]
                if slide >= 0:
                    joint = self._slides[slide][0]
                    error[:, columns] += slid[slide][:, None] * self._batch.xaxis[ids, joint]
        for name in self._turns:
            columns = self._at[name]
            some, turned = np.split(turned, [columns.stop - columns.start], axis=1)
            error[:, columns] = size["turn_noise"] * some
        self._error[ids] = error
        return error @ self._weight

    def estimate(self, views: Any, batch: Batch, ids: Array) -> None:
        """Writes the newest estimate of rows ``ids`` into another batch of the same model.

        As on the bridge, objects are at rest in the estimate. Their orientation is the true one.

        Args:
            views: the task's views of ``batch``.
            batch: the batch that is written.
            ids: (n,) the rows.
        """
        batch.state[ids] = self._batch.state[ids]
        views.qpos[ids] += self._error[ids, self._at["qpos"]]
        views.qvel[ids] += self._error[ids, self._at["qvel"]]
        model = batch.model
        for place, body in enumerate(self.bodies):
            joint, off = int(model.body_jntadr[body]), self._off[ids, place]
            if (mocap := int(model.body_mocapid[body])) >= 0:
                batch.mocap_pos[ids, mocap] += off
            elif joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
                at, speed = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
                batch.qpos[ids, at : at + 3] += off
                batch.qvel[ids, speed : speed + 6] = 0.0
        for slide, (joint, _, _) in enumerate(self._slides):
            batch.qpos[ids, int(model.jnt_qposadr[joint])] += self._slid[ids, slide]
            batch.qvel[ids, int(model.jnt_dofadr[joint])] = 0.0

    def _filtered(self, ids: Array, seen: Array, lost: Array, noise: float) -> Array:
        known, variance, since = self.known[ids], self.variance[ids], self._since[ids] + self._dt
        first = np.isinf(variance)
        noise = max(noise, 1e-6)
        pos, less, _ = kalman_update(
            known, np.where(first, 0.0, variance), seen, since, noise, DRIFT
        )
        lost &= ~first
        pos = np.where(first[..., None], seen, np.where(lost[..., None], known, pos))
        self.known[ids] = pos
        self.variance[ids] = np.where(first, noise**2, np.where(lost, variance, less))
        self._since[ids] = np.where(lost, since, 0.0)
        return pos

    def state_dict(self) -> dict[str, Array]:
        """Returns the filter's state: positions (N, k, 3) m, variances and ages (N, k), by name."""
        kept = {"known": self.known, "variance": self.variance, "since": self._since}
        return {name: array.copy() for name, array in kept.items()}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from what ``state_dict`` returned, arrays (N, k, ...) by name."""
        self.known[:], self.variance[:] = saved["known"], saved["variance"]
        self._since[:] = saved["since"]


def _joint_named(model: Any, name: str) -> int | None:
    names = [model.joint(j).name for j in range(model.njnt)]
    return names.index(name) if name in names else None


def _slide_of(model: Any, body: int) -> int | None:
    """The joint in furniture that carries ``body``."""
    while body and body != model.body_rootid[body]:
        if model.body_jntnum[body]:
            return int(model.body_jntadr[body])
        body = int(model.body_parentid[body])
    return None


def _cross(a: Array, b: Array) -> Array:
    """(..., 3); numpy's own takes five times as long."""
    x, y, z = (a[..., i] for i in range(3))
    u, v, w = (b[..., i] for i in range(3))
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)
