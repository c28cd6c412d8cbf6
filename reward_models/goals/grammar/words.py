"""A sentence as lower-case words and commas, and as tokens once its phrases are found."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from reward_models.goals.grammar.phrases import LONGEST, PHRASE_TABLE

CONTRACTIONS = (
    (r"\bcan't\b", "can not"),
    (r"\bwon't\b", "will not"),
    (r"n't\b", " not"),
    (r"\blet's\b", "let us"),
    (r"\b(it|that|what|there|here|who|where|how)'s\b", r"\1 is"),
    (r"'d\b", " would"),
    (r"'ll\b", " will"),
    (r"'re\b", " are"),
    (r"'ve\b", " have"),
    (r"'m\b", " am"),
    (r"'s\b", " 's "),
    (r"\bgray\b", "grey"),
    (r"'(?!s\b)", " "),
)


@dataclass(frozen=True)
class Token:
    """A symbol of the grammar and the words it was read from."""

    symbol: str
    text: str


def split_words(text: str) -> list[str]:
    """Lower-case words and commas; other punctuation separates, other signs are words."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub("[\u2018\u2019\u02bc`]", "'", text)
    for pattern, replacement in CONTRACTIONS:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"[.,;:!?\u2026]+", " , ", text)
    text = re.sub(r"""[-_"()\[\]{}*\u2010-\u2015\u201c\u201d\u00ab\u00bb]+""", " ", text)
    return re.findall(r"'s\b|[^\W_]+|\S", text)


def match_phrases(words: list[str]) -> list[Token]:
    tokens: list[Token] = []
    i = 0
    while i < len(words):
        for n in range(min(LONGEST, len(words) - i), 0, -1):
            symbols = PHRASE_TABLE.get(tuple(words[i : i + n]))
            if symbols:
                text = " ".join(words[i : i + n])
                tokens += [Token(symbol, text) for symbol in symbols]
                break
        else:
            tokens.append(Token(words[i], words[i]))
            n = 1
        i += n
    return tokens
