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
    out: list[Token] = []
    wrong: list[Refusal] = []

    def symbol(i: int) -> str:
        return tokens[i].symbol if i < len(tokens) else ""

    def noun_at(i: int) -> tuple[str, ...]:
        word = symbol(i)
        key = tuple(word[1:].split("~")) if word.startswith("~") else (word,)
        if key not in names.nouns and key[0] not in GENERIC:
            return ()
        return () if key[0] in NOT_NOUNS and word[:1] != "~" else key

    def colour_after(i: int) -> tuple[str, int]:
        """The colour said after a noun ("that is red", "coloured red", "of red colour"), and where
        it ends."""
        if symbol(i) in ("that", "which") and symbol(i + 1) == "is":
            if symbol(i + 2) in names.colours:
                return symbol(i + 2), i + 3 + (symbol(i + 3) in COLOUR_WORDS)
        if symbol(i) in COLOUR_WORDS and symbol(i + 1) in names.colours:
            return symbol(i + 1), i + 2
        if symbol(i) in ("with", "of") and symbol(i + 1) in names.colours:
            if symbol(i + 2) in COLOUR_WORDS:
                return symbol(i + 1), i + 3
        return "", i

    def unfinished(i: int) -> bool:
        """Whether a colour alone is followed by one with a noun: "red and blue ball"."""
        if symbol(i) in ("AND", "and", ",", "or"):
            named = symbol(i + 1).strip("~").split("~")
            whole = len(named) > 1 or bool(noun_at(i + 2))
            return named[0] in names.colours and whole
        return False

    i = 0
    while i < len(tokens):
        start = i
        while symbol(i) in DETERMINERS:
            i += 1
        colour = ""
        bare = i == start
        i += symbol(i) in BRIGHT and symbol(i + 1).strip("~").split("~")[0] in names.colours
        if symbol(i) in names.colours and (noun_at(i + 1) or not noun_at(i)):
            colour = symbol(i)
            i += 1
        if symbol(i) in COLOUR_WORDS:
            i += 1
        noun = noun_at(i)
        if not noun and not colour:
            pronouns = [t for t in tokens[start : start + 1] if t.symbol in PRONOUNS]
            if pronouns and symbol(start - 1) not in ("WANT", "AND", "and"):
                wrong.append(refuse("ambiguous", f"what is {pronouns[0].text!r}?"))
                out.append(Token("IT", pronouns[0].text))
            elif symbol(start) not in DETERMINERS:
                out.append(tokens[start])
            i = start + 1
            continue
        if noun:
            i += 1
            if symbol(i) in SHAPED and noun[0] in GENERIC and symbol(i + 1) == "like":
                if likeness := noun_at(i + 2):  # a thing shaped like a cube
                    noun, i = likeness, i + 3
            elif symbol(i) in SHAPED and symbol(i + 1) in GENERIC:
                i += 2  # the cube-shaped thing
            while noun_at(i) and names.nouns.get(noun_at(i)) == names.nouns.get(noun) == [
                names.hand.name
            ]:
                i += 1  # "robot hand"
            if not colour:
                colour, i = colour_after(i)
        text = " ".join(t.text.replace("~", " ").strip() for t in tokens[start:i])
        fits = names.resolve(colour, noun)
        if noun == ("one",) and not colour and noun_at(i):
            wrong.append(refuse("unsupported", "a quantity ('one') is not understood"))
        elif not fits:
            wrong.append(refuse("unknown_object", f"no such object here: {text!r}"))
        elif not noun and (not bare or unfinished(i)):
            wrong.append(refuse("ambiguous", f"{text!r} what? Say {text} thing or its name"))
        elif len(fits) > 1:
            wrong.append(refuse("ambiguous", f"{text!r} may be any of {', '.join(fits)}"))
        name = fits[0] if fits else "none"
        out.append(Token("HAND" if name == names.hand.name else f"#{name}", text))
    return out, wrong


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
