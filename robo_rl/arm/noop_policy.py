"""NoOpPolicy: a bundle without a policy, for sessions in which a person alone drives."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np

from real_robot import Manifest, PolicyBundle
from real_robot.core.arm_layout import robot_of
from real_robot.core.manifest import ActionSpec
from robo_rl.bundles.manifests import inputs_of, limits_of, park_of, sensed_of, starts_of
from sims.core.task import Task

Array = np.ndarray

NOBODY = "nobody"  # who learned, in its manifest


class NoOpPolicy(PolicyBundle):
    """Stands by: it sees what a policy of the task would see, and moves nothing."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.sha256 = hashlib.sha256(manifest.to_json().encode()).hexdigest()

    def act(self, obs: Array, state: Array | None = None) -> tuple[Array, Array]:
        """Returns the action 0 (act_dim,), which is never sent as a target."""
        return np.zeros(self.manifest.action.dim, np.float32), np.zeros((1, 0), np.float32)


def make_noop_policy(task: Task[Any], perceives: bool) -> NoOpPolicy:
    """Nobody, beside a person on the arm of ``task``; ``perceives``: objects are seen.

    Where they are not, no observation in the log means anything but the arm's own columns.
    """
    robot = robot_of(task)
    inputs = inputs_of(task)
    if not perceives:
        inputs = tuple(dataclasses.replace(one, source="joints") for one in inputs)
    return NoOpPolicy(
        Manifest(
            task=task.name,
            task_config=task.card()["params"],
            arm=robot.name,
            joints=robot.joints,
            goal=task.goal,
            inputs=inputs,
            action=ActionSpec(
                dim=task.act_dim,
                low=(-1.0,) * task.act_dim,
                high=(1.0,) * task.act_dim,
                kind="none",
                meaning=task.action_doc(),
            ),
            sensed=sensed_of(task),
            control_dt=task.control_dt,
            start=starts_of(task),
            park=park_of(task),
            limits=limits_of(robot, ()),
            training={"learner": NOBODY},
        )
    )
