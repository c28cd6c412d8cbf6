"""`robo-rl reward write`: the program that a sentence becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from reward_models.base import TaskCard, from_dict
from reward_models.programs import Diagnostic, errors, explain, load
from robo_rl.commands.options import SceneOptions
from robo_rl.goals.reading import judged_goal, read_goal, task_of_config
from robo_rl.reward_analysis.screening import screen_program
from robo_rl.rewards.code import template_program
from robo_rl.runtime.progress_bars import stderr_console
from robo_rl.runtime.sandbox import Job, preflight
from robo_rl.search.llm_writer import ModelConfig, make_writer
from sims.core.task import Task


@dataclass(frozen=True, kw_only=True)
class WriteCommand(SceneOptions):
    """Writes a reward program for a sentence: by templates over what the grammar reads in it, or by
    a language model, whose answers go through the same checks until they pass."""

    task: str  # task with the objects of the goal
    goal: str  # goal sentence, or the key of a goal of the task
    writer: str = "offline"  # offline (no network, no model), llm, text2reward, eureka or card
    model: ModelConfig = field(default_factory=ModelConfig)  # for writers that use a language model
    out: Path | None = None  # file to write; default: print it
    explain: bool = False  # also say in plain language what each component rewards


def main(argv: Sequence[str]) -> int:
    """Prints the program, or writes it; ValueError says what in the sentence is not understood."""
    command = tyro.cli(WriteCommand, args=list(argv), prog="robo-rl reward write")
    if command.out is not None and command.out.exists():
        raise ValueError(f"{command.out} exists already; give a new one")
    task = task_of_config(vars(command))
    card = from_dict(task.card())
    sentence = card.goals.get(command.goal, command.goal)
    if command.writer == "offline":
        judged, goal = judged_goal(task, sentence)
        text, card = template_program(judged, goal), goal.card
    else:
        text = _llm_program(command, task, card, sentence)
    text = f"# {sentence}\n{text}"
    program = load(text, card)
    if command.out is None:
        print(text, end="")
    else:
        command.out.write_text(text)
        print(command.out)
    if command.explain:
        print("\n" + explain(program))
    return 0


def _llm_program(command: WriteCommand, task: Task[Any], card: TaskCard, sentence: str) -> str:
    """A language model's program that passed every check; ValueError with what was left to find."""
    key = read_goal(task, sentence).key
    judged = task_of_config(vars(command), goal=key) if key and command.writer == "card" else None

    def found(text: str, card: TaskCard) -> list[Diagnostic]:
        [diagnostics] = preflight([Job(text)], card)
        if judged is not None and not errors(diagnostics):
            diagnostics += screen_program(load(text, card), judged).diagnostics
        return diagnostics

    writer, budget = make_writer(command.writer, command.model, found)
    [draft] = writer.propose(card, sentence, 1)
    stderr_console().print(str(budget), highlight=False)
    if wrong := errors(writer.findings(draft.text, card)):
        raise ValueError(
            f"after {command.model.repairs} repairs the program of the model is still "
            f"refused: {'; '.join(map(str, wrong))}"
        )
    return draft.text
