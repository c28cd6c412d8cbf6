"""Noun phrases: which entity each one means, or why none."""

from __future__ import annotations

from reward_models.goals.grammar.clauses import NAME_OF
from reward_models.goals.grammar.lexicon import (
    BRIGHT,
    COLOUR_WORDS,
    DETERMINERS,
    FORMS,
    GENERIC,
    GO,
    GOVERNS_NOUN,
    NOT_NOUNS,
    PARTICLES,
    PRONOUNS,
    PUSH,
    PUT,
    SHAPED,
)
from reward_models.goals.grammar.names import Names
from reward_models.goals.grammar.refusals import Refusal, Refuser
from reward_models.goals.grammar.words import Token


def mark_nouns(words: list[str], names: Names) -> list[str]:
    """Names of several words joined by ~, and ~ before a noun that might be taken for another word
    (the second of "can you touch the can")."""
    before_noun = DETERMINERS | names.colours | COLOUR_WORDS | GOVERNS_NOUN
    longest = max(map(len, names.nouns))
    marked: list[str] = []
    i = 0
    while i < len(words):
        for n in range(min(longest, len(words) - i), 0, -1):
            key = tuple(words[i : i + n])
            if key not in names.nouns:
                continue
            if n > 1:
                marked.append("~" + "~".join(key))
            elif key[0] in NOT_NOUNS and i > 0 and words[i - 1] in before_noun:
                marked.append("~" + key[0])
            else:
                continue
            break
        else:
            marked.append(words[i])
            n = 1
        i += n
    return marked


def match_entities(
    tokens: list[Token], names: Names, refuse: Refuser
) -> tuple[list[Token], list[Refusal]]:
    """Noun phrases as #name or HAND; what was wrong with the others, to be raised in its turn."""
    phrases = _Phrases(tokens, names, refuse)
    i = 0
    while i < len(tokens):
        i = phrases.read(i)
    return phrases.out, phrases.wrong


class _Phrases:
    """Noun phrases of a sentence, from left to right."""

    def __init__(self, tokens: list[Token], names: Names, refuse: Refuser):
        self.tokens, self.names, self.refuse = tokens, names, refuse
        self.out: list[Token] = []
        self.wrong: list[Refusal] = []

    def read(self, start: int) -> int:
        """Reads what begins at ``start``, a noun phrase or one other word; where the next does."""
        i = start
        while self._symbol(i) in DETERMINERS:
            i += 1
        bare = i == start
        colour, i = self._colour_before(i)
        noun = self._noun(i)
        if not noun and not colour:
            return self._other_word(start)
        if noun:
            noun, i = self._shaped(noun, i + 1)
            if not colour:
                colour, i = self._colour_after(i)
        text = " ".join(t.text.replace("~", " ").strip() for t in self.tokens[start:i])
        fits = self.names.resolve(colour, noun)
        if noun == ("one",) and not colour and self._noun(i):
            self._refuse("unsupported", "a quantity ('one') is not understood")
        elif not fits:
            self._refuse("unknown_object", f"no such object here: {text!r}")
        elif not noun and (not bare or self._unfinished(i)):
            self._refuse("ambiguous", f"{text!r} what? Say {text} thing or its name")
        elif len(fits) > 1:
            self._refuse("ambiguous", f"{text!r} may be any of {', '.join(fits)}")
        name = fits[0] if fits else "none"
        self.out.append(Token("HAND" if name == self.names.hand.name else f"#{name}", text))
        return i

    def _refuse(self, code: str, why: str) -> None:
        self.wrong.append(self.refuse(code, why))

    def _symbol(self, i: int) -> str:
        return self.tokens[i].symbol if 0 <= i < len(self.tokens) else ""

    def _noun(self, i: int) -> tuple[str, ...]:
        """The words of the noun at ``i``; () where there is none."""
        word = self._symbol(i)
        key = tuple(word[1:].split("~")) if word.startswith("~") else (word,)
        if key not in self.names.nouns and key[0] not in GENERIC:
            return ()
        return () if key[0] in NOT_NOUNS and word[:1] != "~" else key

    def _other_word(self, i: int) -> int:
        """Takes the word at ``i`` over as it is: articles alone mean nothing, pronouns too much."""
        token = self.tokens[i]
        if token.symbol in PRONOUNS and self._symbol(i - 1) not in ("WANT", "AND", "and"):
            self._refuse("ambiguous", f"what is {token.text!r}?")
            self.out.append(Token("IT", token.text))
        elif token.symbol not in DETERMINERS:
            self.out.append(token)
        return i + 1

    def _colour_before(self, i: int) -> tuple[str, int]:
        """The colour said before a noun ("bright red coloured"), and where it ends."""
        colours, colour = self.names.colours, ""
        i += self._symbol(i) in BRIGHT and self._symbol(i + 1).strip("~").split("~")[0] in colours
        if self._symbol(i) in colours and (self._noun(i + 1) or not self._noun(i)):
            colour, i = self._symbol(i), i + 1
        return colour, i + (self._symbol(i) in COLOUR_WORDS)

    def _colour_after(self, i: int) -> tuple[str, int]:
        """The colour said after a noun ("that is red", "coloured red", "of red colour"), and where
        it ends."""
        symbol, colours = self._symbol, self.names.colours
        if symbol(i) in ("that", "which") and symbol(i + 1) == "is":
            if symbol(i + 2) in colours:
                return symbol(i + 2), i + 3 + (symbol(i + 3) in COLOUR_WORDS)
        if symbol(i) in COLOUR_WORDS and symbol(i + 1) in colours:
            return symbol(i + 1), i + 2
        if symbol(i) in ("with", "of") and symbol(i + 1) in colours:
            if symbol(i + 2) in COLOUR_WORDS:
                return symbol(i + 1), i + 3
        return "", i

    def _shaped(self, noun: tuple[str, ...], i: int) -> tuple[tuple[str, ...], int]:
        """The noun with what belongs to it, and where that ends."""
        if self._symbol(i) in SHAPED and noun[0] in GENERIC and self._symbol(i + 1) == "like":
            if likeness := self._noun(i + 2):  # a thing shaped like a cube
                noun, i = likeness, i + 3
        elif self._symbol(i) in SHAPED and self._symbol(i + 1) in GENERIC:
            i += 2  # the cube-shaped thing
        nouns, hand = self.names.nouns, [self.names.hand.name]
        while self._noun(i) and nouns.get(self._noun(i)) == nouns.get(noun) == hand:
            i += 1  # "robot hand"
        return noun, i

    def _unfinished(self, i: int) -> bool:
        """Whether a colour alone is followed by one with a noun: "red and blue ball"."""
        if self._symbol(i) in ("AND", "and", ",", "or"):
            named = self._symbol(i + 1).strip("~").split("~")
            whole = len(named) > 1 or bool(self._noun(i + 2))
            return named[0] in self.names.colours and whole
        return False


def without_particles(tokens: list[Token]) -> list[Token]:
    """The tokens without "down", "up", "along" or "over" between a movement and where it goes."""
    goals = {*NAME_OF, "BELOW", "to", "towards", "UNTIL", "SO", "PLACE"}
    out: list[Token] = []
    for i, token in enumerate(tokens):
        before = out[-1].symbol if out else ""
        after = tokens[i + 1].symbol if i + 1 < len(tokens) else ""
        thing = before == "HAND" or before[:1] == "#"
        moving = FORMS.get(before, "").removesuffix("_ed") in f"{GO} {PUT} {PUSH}".split()
        if token.symbol in PARTICLES or token.text == "over":
            if after in goals and (thing or moving):
                continue
        out.append(token)
    return out
