"""Answers on disk: which of two stretches is better, or how far one is; who said so, and the frames
they saw.

A folder: ``labels.jsonl`` has an answer a line, appended and synced before the next one is asked
for, so that nobody is asked twice; ``frames/`` the pictures by the hash of their content, so that a
label says what was looked at whatever became of the simulator. A line that a crash cut is dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from reward_models.remote.questions import LEAST, MOST, UNSURE
from reward_models.remote.vlm_judge import NO_ANSWER, JudgeAnswer
from robo_rl.runs.run_dir import atomic_write
from robo_rl.vision.distilled_scene import objects_hash
from sims.core.task import Task

Array = np.ndarray

ANSWERS = {"first": 1.0, "second": 0.0, "tie": 0.5}
RATINGS = {str(n): n for n in range(LEAST, MOST + 1)}  # of one stretch; the most: its goal is met
# Of these nothing is learned: who was asked cannot tell, or said nothing that is an answer.
SKIP = "skip"
SAID = (*ANSWERS, SKIP, NO_ANSWER)
RATED = (*RATINGS, SKIP, NO_ANSWER)


Question = tuple[tuple[str, ...], tuple[str, ...], str, str]


@dataclass(frozen=True)
class Label:
    """One answer, or a question while ``said`` is empty."""

    first: tuple[str, ...]  # names of its frames
    second: tuple[str, ...]  # (): the first is rated, not compared
    goal: str  # the sentence that it is about
    scene: str  # task, robot and camera
    said: str = ""  # one of ``may_be``
    by: str = ""  # who said so

    @property
    def question(self) -> Question:
        """What was asked."""
        return self.first, self.second, self.goal, self.scene

    @property
    def films(self) -> tuple[tuple[str, ...], ...]:
        """Names of the frames of both, or of the one."""
        return (self.first, self.second) if self.second else (self.first,)

    @property
    def may_be(self) -> tuple[str, ...]:
        """What can be said."""
        return SAID if self.second else RATED


class LabelStore:
    """The answers in a folder, and their frames."""

    def __init__(self, folder: Path):
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file: expected a folder, in which answers are kept")
        self.folder, self.path = folder, folder / "labels.jsonl"
        (folder / "frames").mkdir(parents=True, exist_ok=True)

    def keep(self, frames: Array) -> tuple[str, ...]:
        """Names of frames (k, H, W, 3) uint8, which are written if they are new."""
        names = []
        for frame in frames:
            name = hashlib.sha256(str(frame.shape).encode() + frame.tobytes()).hexdigest()[:20]
            path = self.folder / "frames" / f"{name}.png"
            if not path.exists():
                atomic_write(path, cv2.imencode(".png", frame[..., ::-1])[1].tobytes())
            names.append(name)
        return tuple(names)

    def frames(self, names: tuple[str, ...]) -> Array:
        """(k, H, W, 3) uint8; ValueError names the picture that is missing."""
        out = []
        for name in names:
            frame = cv2.imread(str(self.folder / "frames" / f"{name}.png"))
            if frame is None:
                raise ValueError(f"{self.folder} lacks frame {name}, which has a label")
            out.append(frame[..., ::-1])
        return np.ascontiguousarray(np.stack(out))

    def append(self, answer: Label) -> None:
        """Writes a line, which is on the disk when this returns."""
        with self.path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            whole = self.path.read_bytes().rfind(b"\n") + 1
            if whole < size:
                file.truncate(whole)  # of a line that a crash cut
            file.write(json.dumps(asdict(answer)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> list[Label]:
        """All lines, questions too; ValueError names one that is none."""
        return list(self._lines())

    def answered(self) -> dict[Question, list[Label]]:
        """{question: what was said to it, in the order in which it was}."""
        found: dict[Question, list[Label]] = {}
        for answer in self._lines():
            found.setdefault(answer.question, [])
            if answer.said:
                found[answer.question].append(answer)
        return found

    def _lines(self) -> Iterator[Label]:
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
            try:
                entry = json.loads(line)
                for side in ("first", "second"):
                    entry[side] = tuple(entry[side])
                answer = Label(**entry)
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"{self.path}, line {number} is not a label: {error}") from None
            if answer.said and answer.said not in answer.may_be:
                raise ValueError(
                    f"{self.path}, line {number}: said must be {', '.join(answer.may_be)}, got "
                    f"{answer.said!r}"
                )
            yield answer


def agreement(store: LabelStore) -> tuple[int, int]:
    """Returns (how often two labellers of the same question agreed, number of such pairs)."""
    same = of = 0
    for answers in store.answered().values():
        answer_by = {a.by: a.said for a in answers if a.said in (*ANSWERS, *RATINGS)}
        values = list(answer_by.values())
        for i, one in enumerate(values):
            same += sum(one == other for other in values[i + 1 :])
            of += len(values) - i - 1
    return same, of


def answer_code(text: JudgeAnswer) -> str:
    """What a model said, as a store has it; a share of the goal as the nearest rating."""
    if text.value is None:
        return SKIP if text.why == UNSURE else NO_ANSWER
    if isinstance(text.value, str):
        return text.value
    return str(LEAST + round((MOST - LEAST) * text.value))


def labelled_scene(task: Task[Any], camera: str) -> str:
    """Returns the name by which labels refer to their scene."""
    about = task.name, getattr(task, "robot", ""), camera, objects_hash(task)
    return " ".join(filter(None, about))
