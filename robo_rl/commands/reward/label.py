"""`robo-rl reward label`: which of two stretches is better, asked in the terminal or of a model."""

from __future__ import annotations

import getpass
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import tyro
from rich.console import Console

from reward_models.wire.judge import Judge, Said
from reward_models.wire.transport import Budget
from robo_rl.commands.options import Table
from robo_rl.goals.reading import read_goal, task_of
from robo_rl.visual.asking import AskConfig, stretches
from robo_rl.visual.episodes import EpisodesConfig, play
from robo_rl.visual.label_store import SAID, SKIP, Answer, LabelStore, agreement, said_of, scene_of
from robo_rl.wire import SHOWN, JudgeConfig, drawn_at, is_judge, judge_of, told
from sims.batch_env import BatchEnv
from sims.task import Task

KEYS = {"1": "first", "2": "second", "t": "tie", "s": SKIP}


@dataclass(frozen=True, kw_only=True)
class LabelCommand(Table):
    """Shows two stretches of a few frames in a picture and asks which is nearer to the goal. Every
    answer is kept at once; who stops goes on with the questions that are left."""

    store: tyro.conf.Positional[Path]  # folder of labels, made if there is none
    task: str = "reach"  # as `robo-rl list tasks` shows
    goal: str = ""  # the sentence that the question is about; empty: the task's first
    questions: int = 20  # drawn where none is open: of random moves
    length: int = AskConfig.length  # frames of a stretch
    by: str = ""  # who answers; empty: the user; vlm:MODEL or robometer:URL: a model behind a wire
    height: int = 0  # px, of frames that are drawn; 0: the camera's own, 288 for a model
    seed: int = 0  # of the episodes
    model: JudgeConfig = field(default_factory=JudgeConfig)  # where that is, and what it may cost


def main(argv: Sequence[str]) -> int:
    """Asks what is open until all is answered or the input ends; says how often two agree."""
    command = tyro.cli(LabelCommand, args=list(argv), prog="robo-rl reward label")
    task = task_of(vars(command))
    text = read_goal(task, command.goal or next(iter(task.goals()))).text
    judge, budget = judge_of(command.by, command.model) if is_judge(command.by) else (None, None)
    by = judge.name if judge else command.by or getpass.getuser()
    store, scene = LabelStore(command.store), scene_of(task, task.cameras[0].name)

    def left() -> list[Answer]:
        return [
            Answer(*question, scene)
            for question, answers in store.answered().items()
            if question[2] == text and all(answer.by != by for answer in answers)
        ]

    if not left():
        for question in drawn(task, text, scene, store, command):
            store.append(question)
    if judge is None or budget is None:
        said = typed(left(), store, text)
    else:
        said = told_by(judge, left(), store, command.model, budget)
    counts = Counter[str]()
    for question, word in said:
        store.append(Answer(question.first, question.second, text, scene, word, by))
        counts[word] += 1
    same, of = agreement(store)
    agreed = f"; asked the same, two said the same {same} times of {of}" if of else ""
    if judge is not None:
        print(f"{by}: {', '.join(f'{word} {counts[word]}' for word in SAID)}")
    print(f"{sum(map(len, store.answered().values()))} answers in {store.path}{agreed}")
    return 0


def typed(asked: list[Answer], store: LabelStore, text: str) -> Iterator[tuple[Answer, str]]:
    """(question, what is typed), as a store has it; a picture of each question lies beside it."""
    shown = store.folder / "asked.png"
    print(f"which is nearer to: {text}? The first stretch is the upper row of {shown}")
    for number, question in enumerate(asked, 1):
        rows = [np.concatenate(list(store.frames(names)), axis=1)
                for names in (question.first, question.second)]  # fmt: skip
        height = SHOWN / rows[0].shape[0]
        picture = cv2.resize(np.concatenate(rows), None, fx=height, fy=height)
        cv2.imwrite(str(shown), picture[..., ::-1])
        said = answer_of(f"{number}/{len(asked)}  1, 2, t (tie), s (skip) or q (quit): ")
        if not said:
            return
        yield question, said


def told_by(
    judge: Judge, asked: list[Answer], store: LabelStore, config: JudgeConfig, budget: Budget
) -> Iterator[tuple[Answer, str]]:
    """(question, what a model says), as a store has it, in the order in which it does."""

    def ask(question: Answer) -> Said:
        sides = store.frames(question.first), store.frames(question.second)
        return judge.compare(*sides, question.goal)

    for question, said in told(ask, asked, len(asked), config, budget, Console(stderr=True)):
        yield question, said_of(said)


def answer_of(prompt: str) -> str:
    """What was typed, as a store has it; empty at the end of the input or where one quits."""
    while True:
        try:
            typed = input(prompt).strip().lower()
        except EOFError:
            return ""
        if typed == "q":
            return ""
        if typed in KEYS:
            return KEYS[typed]
        print(f"got {typed!r}: type one of {', '.join((*KEYS, 'q'))}")


def drawn(
    task: Task, text: str, scene: str, store: LabelStore, command: LabelCommand
) -> list[Answer]:
    """Questions about episodes of random moves, their frames kept in the store."""
    half = max(1, command.questions)
    config = EpisodesConfig(
        demonstrations=0, lost=0, random=half, scattered=half, seed=command.seed
    )
    played, rng = play(task, config), np.random.default_rng(command.seed)
    env, questions = BatchEnv(task, 1), []
    height = command.height or (SHOWN if is_judge(command.by) else 0)
    size = drawn_at(env.camera(), height)
    for _ in range(command.questions):
        sides = [
            store.keep(env.render_states(played.states[stretch], size=size))
            for stretch in stretches(played.episode, command.length, 2, rng)
        ]
        questions.append(Answer(*sides, text, scene))
    env.close()
    return questions
