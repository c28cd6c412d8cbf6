"""That a sentence was not read, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

CODES = ("unknown_word", "unknown_object", "ambiguous", "unsupported", "no_goal")


class Refusal(ValueError):
    """The sentence was not read: in what way (``code``, one of ``CODES``), ``why``, and what is
    ``known`` instead, if anything is; ``str`` says both. ``among``: things of which it names one,
    and nobody knows which."""

    def __init__(self, code: str, why: str, known: str = "", among: Sequence[str] = ()) -> None:
        said = why if why.endswith("?") else f"{why}."
        super().__init__(f"{said} Available: {known}" if known else said)
        self.code, self.why, self.known, self.among = code, why, known, tuple(among)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: what it was made of, not the text that it shows."""
        return Refusal, (self.code, self.why, self.known, self.among)
