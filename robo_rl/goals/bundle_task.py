"""The task that a bundle's policy was trained on, made of its manifest."""

from __future__ import annotations

from typing import Any

from real_robot.core.manifest import Manifest
from robo_rl.goals.goal_task import ACCOUNT, GoalTask
from sims import make_task
from sims.core.multi_goal import ASKED, MultiGoalTask
from sims.core.task import Task


def task_of_bundle(manifest: Manifest) -> Task[Any]:
    """The task that a bundle was trained on, with its parameters and its goal, and with what the
    policy observes of that: the account of a formula, or which of several it is."""
    params = {k: v for k, v in manifest.task_config.items() if k not in ("robot", "goal")}
    task = make_task(manifest.task, robot=manifest.arm, goal=manifest.goal or None, **params)
    observed = {spec.name for spec in manifest.inputs}
    if ASKED in observed:
        return MultiGoalTask(inner=task, only=manifest.goal)
    return GoalTask(inner=task) if ACCOUNT in observed else task
