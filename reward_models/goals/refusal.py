"""That a sentence was not read, and why."""

from __future__ import annotations

CODES = ("unknown_word", "unknown_object", "ambiguous", "unsupported", "no_goal")


class Refusal(ValueError):
    """The sentence was not read; ``code`` (one of ``CODES``) says in what way, ``str`` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
