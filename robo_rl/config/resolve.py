"""resolve(): a config's task, its goal as read and the settled config, made once for a whole run.

Presets choose defaults by the goal, rewards are made of it and success is judged by it: all of them
take the one reading that is made here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from reward_models.base import TaskCard
from reward_models.goals import Refusal
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import SettledConfig, TrainConfig
from robo_rl.goals.external_task import ExternalTask
from robo_rl.goals.goal_task import GoalTask, observes_automaton
from robo_rl.goals.reading import ReadGoal, StatedGoal
from sims.core.multi_goal import ANY
from sims.core.task import Task
from sims.external.gymnasium_env import PREFIX

OF_EACH = ("clip", "task", "sparse", "constant")  # rewards that there are of several goals at once


@dataclass(frozen=True)
class ResolvedRun:
    """A run's resolved settings, with its task and its parsed goal."""

    config: SettledConfig
    # As the policy observes it, with the goal's success judge if there is one.
    task: Task[Any] | ExternalTask
    goal: ReadGoal  # its key is empty where there is no success judge

    @property
    def judged(self) -> bool:
        """Whether the goal has a success judge; else ``task``'s own goal is another one."""
        return bool(self.goal.key)

    @property
    def external(self) -> bool:
        """Whether the task is an external env, which is judged by its own return."""
        return isinstance(self.task, ExternalTask)

    def with_config(self, **changes: Any) -> ResolvedRun:
        """The same goal on the same task, with other settings, such as another seed or name."""
        return replace(self, config=replace(self.config, **changes))


def resolve(config: TrainConfig, stated: StatedGoal | None = None) -> ResolvedRun:
    """Returns the task, the goal and the settled config that ``config`` asks for.

    Args:
        config: a run as it is asked for, or as it is stored.
        stated: the config's goal, if it has been read already.

    Raises:
        ValueError: the task is unknown, or the reward cannot be of the goal.
        FormulaError: the formula means nothing on the task.
    """
    stated = stated or StatedGoal.of(vars(config))
    settled = with_presets(config, stated)
    if config.task.startswith(PREFIX):
        task = ExternalTask.of(vars(config))
        why = Refusal("unsupported", f"{task.name} names no objects")
        card = TaskCard(task.name, (), (), {}, (), math.nan, math.nan)
        return ResolvedRun(settled, task, ReadGoal(config.goal, None, why, "", card))
    return ResolvedRun(settled, *_judged_task(settled, stated))


def _judged_task(config: SettledConfig, stated: StatedGoal) -> tuple[Task[Any], ReadGoal]:
    """The task with the goal's ground truth, if it has one, as the policy observes it, and the
    goal."""
    if config.goal == ANY and config.reward not in OF_EACH:
        raise ValueError(
            f"--goal {ANY} changes the goal every episode, --reward {config.reward} has one: "
            f"give --reward {', '.join(OF_EACH[:-1])} or {OF_EACH[-1]}"
        )
    if config.reward == "task" and config.goal != ANY:  # it is of the task's own goals
        goal = stated.read
        return replace(stated.plain_task, goal=goal.key or stated.plain_task.goal), goal
    task, goal = stated.judged
    if isinstance(task, GoalTask) and not observes_automaton(vars(config)):
        task = task.inner
    return task, goal
