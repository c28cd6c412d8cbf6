"""`robo-rl reward label`: which of two stretches is better, or how far one is, asked in the
terminal, on a page, or of a model."""

from __future__ import annotations

import contextlib
import getpass
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
import tyro

from reward_models.remote.transport import Budget
from reward_models.remote.vlm_judge import JudgeAnswer, VideoJudge
from robo_rl.commands.options import SceneOptions
from robo_rl.goals.reading import read_goal, task_of_config
from robo_rl.labelling.page import LabelPage
from robo_rl.labelling.queries import QueryConfig, sample_segments
from robo_rl.labelling.store import (
    RATED,
    RATINGS,
    SAID,
    SKIP,
    Label,
    LabelStore,
    agreement,
    answer_code,
    labelled_scene,
)
from robo_rl.runtime.progress_bars import stderr_console
from robo_rl.runtime.remote_models import (
    SHOWN,
    JudgeConfig,
    collect_answers,
    frame_size,
    is_judge,
    make_judge,
)
from robo_rl.vision.episodes import EpisodesConfig, play_task_episodes
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

PAIR_KEYS = {"1": "first", "2": "second", "t": "tie", "s": SKIP}
RATING_KEYS = {**{word: word for word in RATINGS}, "s": SKIP}
KEYS = {"pair": PAIR_KEYS, "rating": RATING_KEYS}


@dataclass(frozen=True, kw_only=True)
class LabelCommand(SceneOptions):
    """Shows two segments of a few frames and asks which is closer to the goal, or one segment to
    rate. Every answer is stored at once; run the command again to continue."""

    store: tyro.conf.Positional[Path]  # folder of labels; created if missing
    task: str = "reach"  # as `robo-rl list tasks` shows
    goal: str = ""  # goal of the questions (sentence); empty: the task's first
    ask: Literal["pair", "rating"] = "pair"  # choose the better of two; or rate one, 1 to 5
    page: bool = False  # answer in a browser with videos, not in the terminal
    questions: int = 20  # new questions (random actions) if none is open
    length: int = QueryConfig.length  # frames of a segment
    labeller: str = ""  # empty: you; vlm:MODEL or robometer:URL: a remote model
    height: int = 0  # px, height of frames; 0: the camera's own; 288 on a page or for a model
    seed: int = 0  # seed of the episodes
    model: JudgeConfig = field(default_factory=JudgeConfig)  # the remote model and its budget


def main(argv: Sequence[str]) -> int:
    """Asks the open questions until all are answered or the input ends; returns the exit code 0.

    It also prints how often two labellers gave the same answer.

    Args:
        argv: The words after ``robo-rl reward label``.

    Raises:
        ValueError: ``--page`` is given with a labeller that is a model.
    """
    command = tyro.cli(LabelCommand, args=list(argv), prog="robo-rl reward label")
    if command.page and is_judge(command.labeller):
        raise ValueError(
            f"--page is for human labellers, got --labeller {command.labeller}: leave out --page"
        )
    task = task_of_config(vars(command))
    text = read_goal(task, command.goal or next(iter(task.goals()))).text
    judge, budget = (
        make_judge(command.labeller, command.model) if is_judge(command.labeller) else (None, None)
    )
    by = judge.name if judge else command.labeller or getpass.getuser()
    store, scene = LabelStore(command.store), labelled_scene(task, task.cameras[0].name)

    def left() -> list[Label]:
        return [
            Label(*question)
            for question, answers in store.answered().items()
            if question[2:] == (text, scene)
            and bool(question[1]) == (command.ask == "pair")
            and all(answer.by != by for answer in answers)
        ]

    if not left():
        for question in sample_questions(task, text, scene, store, command):
            store.append(question)
    if judge is not None and budget is not None:
        answered = model_answers(judge, left(), store, command.model, budget)
    elif command.page:
        answered = page_answers(left(), store, text, KEYS[command.ask])
    else:
        answered = typed_answers(left(), store, text, KEYS[command.ask])
    counts = Counter[str]()
    for question, word in answered:
        store.append(Label(question.first, question.second, text, scene, word, by))
        counts[word] += 1
    same, of = agreement(store)
    agreed = f"; asked the same, two said the same {same} times of {of}" if of else ""
    if judge is not None:
        words = SAID if command.ask == "pair" else RATED
        print(f"{by}: {', '.join(f'{word} {counts[word]}' for word in words)}")
    print(f"{sum(map(len, store.answered().values()))} answers in {store.path}{agreed}")
    return 0


def typed_answers(
    questions: list[Label], store: LabelStore, text: str, keys: Mapping[str, str]
) -> Iterator[tuple[Label, str]]:
    """(question, what is typed), as a store has it; a picture of each question lies beside it."""
    image = store.folder / "asked.png"
    print(f"{question_text(text, keys)} It is shown in {image}")
    hint = ", ".join(
        key if key == word or key.isdigit() else f"{key} ({word})" for key, word in keys.items()
    )
    for number, question in enumerate(questions, 1):
        rows = []
        for row, names in enumerate(question.films, 1):
            frames = np.concatenate(list(store.frames(names)), axis=1)
            scale = SHOWN / frames.shape[0]
            rows.append(cv2.resize(frames, None, fx=scale, fy=scale))
            if question.second:
                draw_number(rows[-1], str(row))
        cv2.imwrite(str(image), np.concatenate(rows)[..., ::-1])
        answer_text = read_answer(f"{number}/{len(questions)}  {hint} or q (quit): ", keys)
        if not answer_text:
            return
        yield question, answer_text


def draw_number(picture: np.ndarray, number: str) -> None:
    """Writes a number into the corner of a picture (H, W, 3)."""
    for thick, shade in ((6, 0), (2, 255)):
        cv2.putText(
            picture,
            number,
            (8, 34),
            cv2.FONT_HERSHEY_SIMPLEX,
            1.1,
            (shade,) * 3,
            thick,
            cv2.LINE_AA,
        )


def question_text(text: str, keys: Mapping[str, str]) -> str:
    """The question, as a person is asked it."""
    if keys is RATING_KEYS:
        return f"how far is the end of this film, from 1 (nothing done) to 5 (met): {text}?"
    return f"which is nearer to: {text}?"


def page_answers(
    questions: list[Label], store: LabelStore, text: str, keys: Mapping[str, str]
) -> Iterator[tuple[Label, str]]:
    """(question, what is clicked), as a store has it, on a page that this machine alone can see."""
    with LabelPage(questions, store, question_text(text, keys), keys) as page:
        print(f"open {page.url} in a browser on this machine (Ctrl-C ends it)")
        with contextlib.suppress(KeyboardInterrupt):
            yield from page.answers()


def model_answers(
    judge: VideoJudge,
    questions: list[Label],
    store: LabelStore,
    config: JudgeConfig,
    budget: Budget,
) -> Iterator[tuple[Label, str]]:
    """(question, what a model says), as a store has it, in the order in which it does."""

    def ask(question: Label) -> JudgeAnswer:
        films = map(store.frames, question.films)
        return (judge.compare if question.second else judge.rate)(*films, question.goal)

    for question, reply in collect_answers(
        ask, questions, len(questions), config, budget, stderr_console()
    ):
        yield question, answer_code(reply)


def read_answer(prompt: str, keys: Mapping[str, str]) -> str:
    """Returns the typed answer as the store writes it; empty at the end of the input or after q."""
    while True:
        try:
            typed = input(prompt).strip().lower()
        except EOFError:
            return ""
        if typed == "q":
            return ""
        if typed in keys:
            return keys[typed]
        print(f"got {typed!r}; expected one of {', '.join((*keys, 'q'))}")


def sample_questions(
    task: Task, text: str, scene: str, store: LabelStore, command: LabelCommand
) -> list[Label]:
    """Questions about episodes of random moves, their frames kept in the store."""
    half = max(1, command.questions)
    config = EpisodesConfig(
        demonstrations=0, lost=0, random=half, random_starts=half, seed=command.seed
    )
    played, rng = play_task_episodes(task, config), np.random.default_rng(command.seed)
    env, questions, films = BatchEnv(task, 1), [], 2 if command.ask == "pair" else 1
    height = command.height or (SHOWN if command.page or is_judge(command.labeller) else 0)
    size = frame_size(env.camera(), height)
    for _ in range(command.questions):
        sides = [
            store.keep(env.render_states(played.states[stretch], size=size))
            for stretch in sample_segments(played.episode, command.length, films, rng)
        ]
        questions.append(Label(sides[0], sides[1] if films == 2 else (), text, scene))
    env.close()
    return questions
