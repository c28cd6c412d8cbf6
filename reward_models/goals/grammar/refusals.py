"""What is not read is refused, with a code and a reason."""

from __future__ import annotations

import difflib

from reward_models.goals.grammar.lexicon import LEXICON
from reward_models.goals.refusal import Refusal


class Refuser:
    """Builds the refusals of one sentence."""

    def __init__(self, text: str, understood: str, words: frozenset[str]) -> None:
        quoted = " ".join(text.split())
        self.quoted = quoted if len(quoted) <= 80 else quoted[:77] + "..."
        self.understood = understood
        self.words = words  # the names of the card's things

    def __call__(self, code: str, why: str) -> Refusal:
        return Refusal(code, f'did not understand "{self.quoted}": {why}. {self.understood}')

    def unknown(self, word: str, code: str) -> Refusal:
        known = sorted(self.words | (LEXICON if code == "unknown_word" else set()))
        close = difflib.get_close_matches(word, [w for w in known if len(w) > 1], 1, 0.7)
        hint = f"; nearest known word: {close[0]!r}" if close else ""
        if code == "unknown_object" and close:  # rather a slip of the pen than another thing
            code = "unknown_word"
        word = word if len(word) <= 40 else word[:37] + "..."
        what = "no such object here" if code == "unknown_object" else "unknown word"
        return self(code, f"{what}: {word!r}{hint}")
