"""What the card's entities can be called."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from reward_models.base import TaskCard
from reward_models.goals.grammar.lexicon import (
    COLOURS,
    DETERMINERS,
    FUNCTION,
    GENERIC,
    HANDS,
    SHADES,
)
from reward_models.goals.grammar.words import split_words
from reward_models.goals.predicates import role

PLAIN = FUNCTION | DETERMINERS | GENERIC  # words of longer names that are no name themselves


class Names:
    """What the card's entities can be called."""

    def __init__(self, card: TaskCard) -> None:
        self.card = card
        hands = [e for e in card.entities if role(e) == "gripper"]
        if len(hands) != 1:
            raise ValueError(
                f"task {card.task!r}: expected one entity of kind 'gripper', got {len(hands)}; "
                "a sentence must know who acts"
            )
        self.hand = hands[0]
        self.nouns: dict[tuple[str, ...], list[str]] = {}
        for entity in card.entities:
            for name in (entity.name, entity.kind, *entity.aliases):
                key = split_words(name)
                known = self.nouns.setdefault(key, [])
                if key and entity.name not in known and not GENERIC.issuperset(key):
                    known.append(entity.name)
        for name in HANDS:
            self.nouns.setdefault(name, [self.hand.name])
        self.nouns = {key: names for key, names in self.nouns.items() if names}
        self.colour = {e.name: " ".join(split_words(e.colour)) for e in card.entities}
        self.colours = COLOURS | set(self.colour.values()) - {""}
        self.objects = [e.name for e in card.entities if role(e) == "object"]
        self.words = frozenset(itertools.chain.from_iterable(self.nouns)) - PLAIN | self.colours

    def shaded(self, words: Sequence[str]) -> list[str]:
        """The words with "scarlet" as "red", where the card does not tell the two apart."""
        out: list[str] = []
        for before, word in itertools.pairwise(["", *words]):
            base = SHADES.get(word, word)
            if SHADES.get(before) == word and before not in self.words:
                continue  # "navy blue"
            out.append(word if word in self.words else base)
        return out

    def resolve(self, colour: str, noun: tuple[str, ...]) -> list[str]:
        """The entities that agree with both; no noun, or one such as "thing", fits any object."""
        named = self.nouns.get(noun, self.objects)
        return [name for name in named if not colour or self.colour[name] == colour]
