"""`robo-rl reward read`: how a sentence is understood, or why not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import tyro

from robo_rl.commands.options import Json, SceneOptions
from robo_rl.goals.reading import NotRead, read_goal, task_of_config, with_judge
from robo_rl.goals.task_lookup import task_for
from robo_rl.rewards.clip import captions_of, describe_captions, shipped_clip_knows


@dataclass(frozen=True, kw_only=True)
class ReadCommand(SceneOptions):
    """Shows how a sentence is understood."""

    text: tyro.conf.Positional[str]  # the sentence
    task: str = ""  # task with its objects; empty: the first task that parses it
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Prints a sentence's formula, meaning, captions and ground truth; returns the exit code 0.

    Args:
        argv: The words after ``robo-rl reward read``.

    Raises:
        NotRead: the sentence was not understood; the command line then exits with 1.
    """
    command = tyro.cli(ReadCommand, args=list(argv), prog="robo-rl reward read")
    if not command.task:
        own = bool(command.things or command.scene)
        found = task_for(command.text, own=own, typed="--task {task}")
        command = replace(command, task=found or "reach")
    task = task_of_config(vars(command))
    goal = read_goal(task, command.text)
    _, judged = with_judge(task, goal)
    if goal.formula is None:
        raise NotRead(goal)
    steps: list[list[str]] | None = None
    never: list[str] = []
    known = False  # to the CLIP inside the package
    try:
        plan = captions_of(goal, raw=False)
        steps = [[c.text for c in step] for step in plan if not step[0].shunned]
        never = [c.text for step in plan for c in step if c.shunned]
        captions = describe_captions(plan)
        known = shipped_clip_knows(task, [*never, *(text for step in steps for text in step)])
        if not known:
            captions += " (the embedded CLIP was not trained on these: --reward offline, or train "
            captions += "one with robo-rl reward train)"
    except ValueError as error:  # read, but no sentence about gripper and objects in one frame
        captions = f"none: {error}"
    if command.as_json:
        entry = {
            "formula": str(goal.formula),
            "understood": goal.understood,
            "captions": steps,
            "never": never,
            "embedded_clip": known,
            "truth": judged.key,
        }
        print(json.dumps(entry, indent=1))
    else:
        print(f"{goal.formula}\nunderstood: {goal.understood}\ncaptions: {captions}")
        print(judged.truth)
    return 0
