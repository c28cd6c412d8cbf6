"""Rewards that are not seen: the task's own, programs, and the control that teaches nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reward_models.base import TaskCard
from reward_models.programs import Program, ProgramReward, Refused, errors, load
from reward_models.scorers.constant import Constant
from reward_models.writers.staged import write_staged
from reward_models.writers.template_writer import write_program
from robo_rl.goals.goal_task import GoalTask
from robo_rl.goals.reading import NotRead, ReadGoal
from robo_rl.rewards.base import BuiltReward, RewardRequest
from robo_rl.runtime.sandbox import Job, preflight
from sims.core.task import Task
from sims.external.gymnasium_env import GymnasiumEnv

SIGNALS = "the task's signals"


def task_reward(request: RewardRequest) -> BuiltReward:
    """The task's dense reward, or the external env's own; ValueError where no goal of the task was
    asked for."""
    if isinstance(request.env, GymnasiumEnv):
        return BuiltReward(None, "the env's own", "everything")
    if not request.goal.key:
        raise ValueError(f"--reward task needs a goal of the task: {request.goal.truth}")
    return BuiltReward(None, f"hand-written dense reward of {request.goal.key}", "everything")


def sparse(request: RewardRequest) -> BuiltReward:
    """Returns the success judge's reward; ValueError where the goal has no judge."""
    if not request.goal.key:
        raise ValueError(f"--reward sparse needs a goal with a success judge: {request.goal.truth}")
    return BuiltReward(None, "1 where the goal holds, else 0", "success alone")


def constant(request: RewardRequest) -> BuiltReward:
    """0 everywhere."""
    return BuiltReward(Constant(), "constant 0", "nothing")


def template_reward(request: RewardRequest) -> BuiltReward:
    """A program written by templates from what a sentence was read as, or from a formula whose
    account the task keeps; ValueError if it was not understood."""
    goal, text = request.goal, template_program(request.env.task, request.goal)
    return _program(load(f"# {goal.text}\n{text}", goal.card), request)


def template_program(task: Task[Any], goal: ReadGoal) -> str:
    """The text of ``template_reward``'s program; ValueError where the goal was not understood."""
    if isinstance(task, GoalTask):
        return write_staged(task.measured, task.automaton)
    if goal.formula is None:
        if goal.key:
            raise ValueError(
                f"--reward offline is written from a parsed goal, and {goal.text!r} was not "
                f"parsed: {goal.refusal}; give --reward task, sparse or code:FILE"
            )
        raise NotRead(goal)
    return write_program(goal.formula, goal.card)


def from_file(request: RewardRequest) -> BuiltReward:
    """The program in a file, checked."""
    return _program(checked_program(Path(request.argument), request.goal.card), request)


def _program(program: Program, request: RewardRequest) -> BuiltReward:
    model = ProgramReward(program, episode_steps=request.env.max_steps)
    return BuiltReward(model, program.text, SIGNALS, program=program)


def checked_program(path: Path, card: TaskCard) -> Program:
    """The program in a file, read and run on probes; ValueError names the file and the findings."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file: {error}") from None
    try:
        program = load(text, card)
    except Refused as refused:
        raise ValueError(f"{path} is refused: {refused}") from None
    [found] = preflight([Job(text)], card)
    if errors(found):
        raise ValueError(f"{path} is refused: {'; '.join(map(str, found))}")
    return program
