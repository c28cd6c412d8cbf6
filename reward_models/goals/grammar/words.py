"""A sentence as lower-case words and commas, and as tokens once its phrases are found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from reward_models.goals.grammar.phrases import TABLES, Table

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
    (r"\b(left|right)hand\b", r"\1 hand"),
    (r"'(?!s\b)", " "),
)


@dataclass(frozen=True)
class Token:
    """A symbol of the grammar and the words it was read from."""

    symbol: str
    text: str


@lru_cache(maxsize=1024)  # a card's names are split for every sentence
def split_words(text: str) -> tuple[str, ...]:
    """Lower-case words and commas; other punctuation separates, other signs are words."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub("[\u2018\u2019\u02bc`]", "'", text)
    for pattern, replacement in CONTRACTIONS:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"[.,;:!?\u2026]+", " , ", text)
    text = re.sub(r"""[-_"()\[\]{}*\u2010-\u2015\u201c\u201d\u00ab\u00bb]+""", " ", text)
    return tuple(re.findall(r"'s\b|[^\W_]+|\S", text))


def match_phrases(words: Iterable[str]) -> list[Token]:
    """The words with every phrase as its symbols, the longest first."""
    tokens = [Token(word, word) for word in words]
    for table in TABLES:
        tokens = match(tokens, table)
    return tokens


def match(tokens: list[Token], table: Table) -> list[Token]:
    """The tokens with every phrase of one table as its symbols, the longest first."""
    out: list[Token] = []
    longest = max(map(len, table))
    i = 0
    while i < len(tokens):
        for n in range(min(longest, len(tokens) - i), 0, -1):
            symbols = table.get(tuple(token.symbol for token in tokens[i : i + n]))
            if symbols:
                text = " ".join(token.text for token in tokens[i : i + n])
                out += [Token(symbol, text) for symbol in symbols]
                break
        else:
            out.append(tokens[i])
            n = 1
        i += n
    return out
