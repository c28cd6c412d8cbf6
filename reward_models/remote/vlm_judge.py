"""A vision-language model as a judge of films: asks, reads strictly, asks again, counts silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from reward_models.remote import questions
from reward_models.remote.cassette import Message, Transport
from reward_models.remote.questions import FIRST, LEAST, MOST, SECOND, UNSURE, BadAnswer

Array = np.ndarray
T = TypeVar("T")

NO_ANSWER = "no answer"
MAX_TOKENS = 800  # of an answer; a description takes some hundred


@dataclass(frozen=True)
class JudgeAnswer:
    """What a judge said; without a value ``why`` there is none: "unsure" or "no answer"."""

    value: Any = None
    why: str = ""
    more: Mapping[str, Array] = field(default_factory=dict)  # beside it, by name


class VideoJudge(Protocol):
    """Who can be asked about films (k, H, W, 3) uint8 and a sentence."""

    @property
    def name(self) -> str:
        """Who answers, as labels and tables have it."""
        ...

    def compare(self, first: Array, second: Array, goal: str) -> JudgeAnswer:
        """Compares two films (k, H, W, 3) uint8; the ``value`` is FIRST, SECOND or TIE."""
        ...

    def rate(self, frames: Array, goal: str) -> JudgeAnswer:
        """Rates a film (k, H, W, 3) uint8; the answer's ``value`` from 0 to 1 is how far the goal
        is met at the end."""
        ...

    def progress(self, frames: Array, goal: str) -> JudgeAnswer:
        """Judges each frame of (k, H, W, 3) uint8; the answer's ``value`` (k,) from 0 to 1 is how
        far the goal is met in it."""
        ...


@dataclass
class VLMJudge:
    """Asks a model. A bad answer is asked for ``again`` times with what was wrong about it, and
    then is "no answer". ModelError and BudgetSpent are the transport's."""

    transport: Transport
    again: int = 2
    side: int = 448  # px, the longer side of a picture that is sent
    max_tokens: int = MAX_TOKENS

    @property
    def name(self) -> str:
        """The name of the judge, with its model."""
        return f"vlm:{self.transport.model}"

    def compare(self, first: Array, second: Array, goal: str) -> JudgeAnswer:
        """Compares two films (k, H, W, 3) uint8; see ``VideoJudge``.

        Which film is shown first is random, because models prefer a place.
        """
        turned = questions.question_rng(goal, first, second).random() < 0.5
        shown = (second, first) if turned else (first, second)
        asked = questions.comparison_messages(*shown, goal, self.side)
        description = self._ask(asked, questions.parse_description)
        if description is None:
            return JudgeAnswer(why=NO_ANSWER)
        said = self._ask(questions.verdict_messages(description, goal), questions.parse_verdict)
        if turned and said in (FIRST, SECOND):
            said = SECOND if said == FIRST else FIRST
        return _answer_from(said)

    def rate(self, frames: Array, goal: str) -> JudgeAnswer:
        """Rates a film (k, H, W, 3) uint8 as (rating - 1) / 4; see ``VideoJudge``."""
        said = self._ask(questions.rating_messages(frames, goal, self.side), questions.parse_rating)
        return _answer_from((said - LEAST) / (MOST - LEAST) if isinstance(said, int) else said)

    def progress(self, frames: Array, goal: str) -> JudgeAnswer:
        """Judges each frame of (k, H, W, 3) uint8; see ``VideoJudge``.

        The frames are shown in a random order: a model that knows their order reports progress. The
        first is also shown as the start, where 0 % is done.
        """
        order = questions.question_rng(goal, frames).permutation(len(frames))
        asked = questions.progress_messages(frames[0], frames[order], goal, self.side)
        said = self._ask(asked, lambda text: questions.parse_progress(text, len(frames)))
        if said is None:
            return JudgeAnswer(why=NO_ANSWER)
        value = np.empty(len(frames))
        value[order] = said
        return JudgeAnswer(value)

    def _ask(self, asked: Sequence[Message], read: Callable[[str], T]) -> T | None:
        messages = list(asked)
        for _ in range(1 + self.again):
            reply = self.transport.complete(messages, self.max_tokens)
            try:
                if not reply.finished:
                    raise BadAnswer(f"the answer was cut at {self.max_tokens} tokens: shorten it")
                return read(reply.text)
            except BadAnswer as wrong:
                again = f"That is no answer: {wrong}. Reply again."
                messages += [
                    {"role": "assistant", "content": reply.text or "(nothing)"},
                    {"role": "user", "content": again},
                ]
        return None


def _answer_from(value: Any) -> JudgeAnswer:
    if value is None:
        return JudgeAnswer(why=NO_ANSWER)
    return (
        JudgeAnswer(why=UNSURE)
        if isinstance(value, str) and value == UNSURE
        else JudgeAnswer(value)
    )
