"""TASKS: name -> task class, one line each."""

from __future__ import annotations

from typing import Any

from sims.task import Task
from sims.tasks.push import Push
from sims.tasks.reach import Reach

TASKS: dict[str, type[Task[Any]]] = {task.name: task for task in (Reach, Push)}
