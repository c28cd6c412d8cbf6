"""Environments by name: ``make``, ``make_task``, ``register``, and their ids in Gymnasium."""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import TYPE_CHECKING, Any

import gymnasium

from sims.core.multi_goal import ANY, MultiGoalTask
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.tasks import REMOVED, TASKS
from sims.utils import plugins
from sims.utils.did_you_mean import unknown_name_error

if TYPE_CHECKING:
    from sims.external.gymnasium_env import GymnasiumEnv

_BATCH_OPTIONS = inspect.signature(BatchEnv).parameters.keys() - {"task", "num_envs", "seed"}


def make_task(
    name: str, *, robot: str | None = None, goal: str | list[Any] | None = None, **params: Any
) -> Task[Any]:
    """The task called ``name``; ValueError lists the known names.

    ``goal`` is the key of one of its goals, any formula as data
    (docs/reference/goal-language.md), or ``any``: all of them, one an episode.
    """
    if name in REMOVED and name not in TASKS:
        raise ValueError(
            f"task {name!r} was removed: use Gymnasium's own environment "
            f"(robo-rl train {REMOVED[name]} --reward task)"
        )
    if name not in TASKS:
        wrong = unknown_name_error(f"unknown task {name!r}", name, TASKS, "available tasks")
        own = "To add a task: robo-rl --import FILE.py, docs/tutorials/your-own-task.md"
        raise ValueError(f"{wrong} {own}")
    given = {"robot": robot, "goal": json.dumps(goal) if isinstance(goal, list) else goal}
    params |= {key: value for key, value in given.items() if value is not None}
    known = [f.name for f in dataclasses.fields(TASKS[name])]
    for key in params:
        if key not in known:
            hint = "; task 'tabletop' has it" if key in ("things", "scene") else ""
            raise ValueError(
                f"task {name!r} has no parameter {key!r}; available: {', '.join(known)}{hint}"
            )
    if params.get("goal") == ANY:
        del params["goal"]
        return MultiGoalTask(inner=TASKS[name](**params))
    return TASKS[name](**params)


def make(
    name: str,
    num_envs: int,
    seed: int = 0,
    robot: str | None = None,
    goal: str | None = None,
    **options: Any,
) -> BatchEnv | GymnasiumEnv:
    """``num_envs`` rows of a task, or of the Gymnasium env ``gym:ID``.

    ``options`` are BatchEnv's (GymnasiumEnv's) own, such as ``num_threads``, and parameters of the
    task, such as ``tip_step``; ValueError lists the parameters where one is neither.
    """
    # It imports Gymnasium, and whoever imports that loads this module.
    from sims.external.gymnasium_env import PREFIX, GymnasiumEnv

    if name.startswith(PREFIX):
        if robot or goal:
            raise ValueError(
                f"{name} is a Gymnasium env and takes no robot or goal; got {robot or goal!r}"
            )
        return GymnasiumEnv(name, num_envs, seed=seed, **options)
    of_batch = {key: options.pop(key) for key in _BATCH_OPTIONS & options.keys()}
    task = make_task(name, robot=robot, goal=goal, **options)
    return BatchEnv(task, num_envs, seed=seed, **of_batch)


def register(task: type[Task[Any]]) -> type[Task[Any]]:
    """Makes a task known by its name, here and to Gymnasium; ValueError if the name is taken."""
    if task.name in TASKS:
        raise ValueError(f"task {task.name!r} is already registered; choose another name")
    TASKS[task.name] = task
    _register_with_gymnasium(task.name)
    return task


def gymnasium_id(name: str) -> str:
    """What Gymnasium calls the task: ``robo/PickPlace-v0``."""
    return f"robo/{name.title().replace('_', '')}-v0"


def _register_with_gymnasium(name: str) -> None:
    gymnasium.register(
        gymnasium_id(name),
        entry_point="sims.envs.gym_env:GymEnv",
        vector_entry_point="sims.envs.gym_env:GymVectorEnv",
        kwargs={"task": name},
    )


for _name in TASKS:
    _register_with_gymnasium(_name)
plugins.import_announced_plugins()  # last: such a module imports this package
