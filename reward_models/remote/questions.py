"""Questions about frames and a sentence, and what counts as an answer to each.

- which of two films is better, in two stages: pictures are described, the description is judged
  (RL-VLM-F, arXiv:2402.03681); a tie and "cannot tell" are two answers, and stay so
- how far one is, from 1 to 5 (ERL-VLM, arXiv:2506.12822; RoboReward's scale has as many steps)
- percent done in each of a few shuffled frames (GVL, arXiv:2411.04549)

An answer is one line, the last: ``ANSWER: ...``. Anything else is a ``BadAnswer`` that says what
was expected; nothing is guessed from prose, and nothing stands for an answer that was not given.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from reward_models.remote.cassette import Message

Array = np.ndarray

FIRST, SECOND, TIE, UNSURE = "first", "second", "tie", "unsure"
LEAST, MOST = 1, 5  # of a rating
_PROMPTS = Path(__file__).parents[1] / "prompts"
_ANSWER = re.compile(r"\s*ANSWER:(.*)", re.I)
_NUMBER = re.compile(r"\d{1,3}(\.\d+)?")
_VERDICTS = {"1": FIRST, "2": SECOND, "tie": TIE, "unsure": UNSURE}


class BadAnswer(ValueError):
    """What was said is no answer; the message is for who said it."""


def comparison_messages(first: Array, second: Array, goal: str, side: int) -> list[Message]:
    """Returns the messages of stage 1, which asks for a description of two films (k, H, W, 3)
    uint8."""
    parts = [
        part
        for number, film in ((1, first), (2, second))
        for part in [_text(f"Film {number}:"), *_pictures(film, side)]
    ]
    return _message("compare", {"pictures": parts}, goal=goal)


def verdict_messages(description: str, goal: str) -> list[Message]:
    """Returns the messages of stage 2, which asks for a verdict on the description, without
    pictures."""
    return _message("verdict", {}, goal=goal, description=description)


def rating_messages(frames: Array, goal: str, side: int) -> list[Message]:
    """Returns the messages that ask for a rating of one film (k, H, W, 3) uint8."""
    return _message("rating", {"pictures": _pictures(frames, side)}, goal=goal)


def progress_messages(start: Array, shuffled: Array, goal: str, side: int) -> list[Message]:
    """Returns the messages that ask for the progress in each of some frames.

    Args:
        start: (H, W, 3) uint8, the frame where 0 % is done.
        shuffled: (k, H, W, 3) uint8, the frames in a random order.
        goal: The sentence.
        side: The longer side of the pictures, px.
    """
    parts = [
        part
        for number, picture in enumerate(_pictures(shuffled, side), 1)
        for part in (_text(f"Picture {number}:"), picture)
    ]
    shown = {"start": _pictures(start[None], side), "pictures": parts}
    return _message("progress", shown, goal=goal, count=str(len(shuffled)))


def parse_description(text: str) -> str:
    """Reads the reply of stage 1.

    Raises:
        BadAnswer: The reply is empty.
    """
    if not text.strip():
        raise BadAnswer("the description was empty")
    return text.strip()


def parse_verdict(text: str) -> str:
    """Reads which film is better: ``first``, ``second``, ``tie`` or ``unsure``.

    Raises:
        BadAnswer: The reply does not end with one of them.
    """
    said = _answer(text)
    if said not in _VERDICTS:
        raise BadAnswer(f"expected ANSWER: and one of {', '.join(_VERDICTS)}, got {said[:40]!r}")
    return _VERDICTS[said]


def parse_rating(text: str) -> int | str:
    """Reads a rating from 1 to 5, or ``unsure``.

    Raises:
        BadAnswer: The reply does not end with one of them.
    """
    said = _answer(text)
    if said == UNSURE:
        return UNSURE
    if said not in [str(number) for number in range(LEAST, MOST + 1)]:
        raise BadAnswer(
            f"expected ANSWER: and one whole number from {LEAST} to {MOST}, or unsure, "
            f"got {said[:40]!r}"
        )
    return int(said)


def parse_progress(text: str, count: int) -> Array:
    """Reads the progress in several pictures.

    Args:
        text: The reply, with a percentage for each picture.
        count: The number of pictures.

    Returns:
        (count,) shares from 0 to 1, in the order in which the pictures were shown.

    Raises:
        BadAnswer: The reply does not end with so many numbers from 0 to 100.
    """
    said = [part.strip() for part in _answer(text).split(",")]
    if wrong := [s for s in said if not _NUMBER.fullmatch(s) or float(s) > 100]:
        raise BadAnswer(f"expected numbers from 0 to 100 and commas, got {wrong[0][:40]!r}")
    if len(said) != count:
        raise BadAnswer(f"expected {count} numbers, one for each picture, got {len(said)}")
    return np.array([float(s) for s in said]) / 100.0


def question_rng(goal: str, *films: Array) -> np.random.Generator:
    """Returns a generator that is a function of the question alone.

    The order in which pictures are shown is random, and the same when the same is asked again.

    Args:
        goal: The sentence.
        films: Frames (k, H, W, 3) uint8 each.
    """
    content = hashlib.sha256(goal.encode())
    for film in films:
        content.update(str(film.shape).encode() + np.ascontiguousarray(film).tobytes())
    return np.random.default_rng(list(content.digest()))


def evenly_spaced(count: int, most: int) -> Array:
    """Returns the indices (k,) of at most ``most`` of ``count`` entries, evenly spaced, with both
    ends."""
    return np.unique(np.linspace(0, count - 1, min(count, max(2, most))).round().astype(int))


def _answer(text: str) -> str:
    """What stands behind ANSWER: in the last line."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    found = [match[1] for line in lines if (match := _ANSWER.fullmatch(line))]
    if len(found) != 1 or not _ANSWER.fullmatch(lines[-1]):
        raise BadAnswer(
            f"expected one line that begins with ANSWER: and is the last, got {len(found)}"
        )
    return found[0].strip().casefold()


def _message(name: str, shown: dict[str, list[dict[str, Any]]], **given: str) -> list[Message]:
    """One message: a prompt in which braces name what is filled in and what is shown. Not
    str.format: a sentence may have braces of its own."""
    text = (_PROMPTS / f"{name}.txt").read_text(encoding="utf-8").strip()
    content: list[dict[str, Any]] = []
    written = ""
    for number, piece in enumerate(re.split(r"{(\w+)}", text)):
        if number % 2 and piece in shown:
            content += [_text(written.strip()), *shown[piece]]
            written = ""
        else:
            written += given[piece] if number % 2 else piece
    if written.strip():
        content.append(_text(written.strip()))
    return [{"role": "user", "content": content if shown else content[0]["text"]}]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _pictures(frames: Array, side: int) -> list[dict[str, Any]]:
    """Frames (k, H, W, 3) uint8 as PNG, the longer side ``side`` px."""
    height, width = frames.shape[1:3]
    scale = side / max(height, width)
    size = max(1, round(scale * width)), max(1, round(scale * height))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    out = []
    for frame in frames:
        shown = frame if scale == 1 else cv2.resize(frame, size, interpolation=how)
        data = cv2.imencode(".png", np.ascontiguousarray(shown[..., ::-1]))[1].tobytes()
        url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        out.append({"type": "image_url", "image_url": {"url": url}})
    return out
