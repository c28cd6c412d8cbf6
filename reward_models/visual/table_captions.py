"""Captions that the table of predicates writes for a task's card, and how true each is of a state.

Every relation of the table that one frame shows, of all things on the card that it may be about,
with its usual numbers and in the words of ``goals/say.py``. How true it is: the mean of
exp(-d / softness) and of the same a good deal sharper, of the distance d from holding with room to
spare, which ``goals/margins.py`` measures by the card's signals: the one tells from afar, the other
a hand around a cube from one that holds it. The judge of policies, ``sims/truth.py``, shares no
code with that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reward_models.base import Entity, TaskCard
from reward_models.goals.captions import shown
from reward_models.goals.formula import Atom, Formula, FormulaError, atoms, fill
from reward_models.goals.margins import Measures, NoMargin, measured
from reward_models.goals.predicates import PREDICATES, roles
from reward_models.goals.say import say

Array = np.ndarray

SOFTNESS = 0.05  # m, at which a caption is true to 1/e, or less where its distances are smaller
SHARP = 0.15  # of the softness, of the half of the truth that tells what is close
SMALL = 0.4  # of the distance that one state in ten exceeds
ROOM = 0.1  # of the softness, inside the judge's edge: there a frame may be misread either way
ENDS = 0.005, 0.985  # no caption is quite false, none quite true


@dataclass(frozen=True)
class TableCaptions:
    """Captions of atoms, and what measures how far each is from holding."""

    card: TaskCard
    texts: tuple[str, ...]
    atoms: tuple[Atom, ...]
    measures: tuple[Measures, ...]
    softness: tuple[float, ...]  # m, of each caption

    def missing(self, signals: Mapping[str, Array], room: Sequence[float] = ()) -> Array:
        """(M, captions) m, >= 0, of states {name: (M, k)}: 0 where it holds, by ``room`` m or more
        for each caption."""
        columns = []
        for of, least in zip(self.measures, room or (0.0,) * len(self.measures), strict=True):
            (margins,) = of(signals, {})[0].values()
            columns.append(np.linalg.norm(np.maximum(least - margins, 0.0), axis=1))
        return np.nan_to_num(np.stack(columns, axis=1), nan=1e3)

    def truth(self, signals: Mapping[str, Array]) -> Array:
        """(M, captions) in (0, 1) of states {name: (M, k)}."""
        soft = np.asarray(self.softness)
        off = self.missing(signals, tuple(ROOM * soft)) / soft
        grade = 0.5 * (np.exp(-off) + np.exp(-off / SHARP))
        return np.clip(grade, *ENDS).astype(np.float32)

    def softened(self, signals: Mapping[str, Array]) -> TableCaptions:
        """The same, each as soft as its distances in such states allow: a button moves a
        centimetre, an arm half a metre."""
        most = np.quantile(self.missing(signals), 0.9, axis=0)
        soft = np.where(most > 0, np.minimum(SOFTNESS, SMALL * most), SOFTNESS)
        return replace(self, softness=tuple(np.maximum(soft, 1e-4).tolist()))

    def repainted(self, colours: Mapping[str, str]) -> TableCaptions:
        """The same of a scene whose entities have other ``colours``, {entity: colour}: their names
        say so."""
        called = {e.name: _called(e, colours.get(e.name, "")) for e in self.card.entities}
        names = {old: new.name for old, new in called.items()}
        moved = tuple(replace(a, terms=tuple(names[str(t)] for t in a.terms)) for a in self.atoms)
        card = replace(self.card, entities=tuple(called.values()))
        return replace(self, card=card, atoms=moved, texts=tuple(say(a, card) for a in moved))


def table_captions(card: TaskCard, formulas: Iterable[Formula] = ()) -> TableCaptions:
    """The captions of a card, and of what ``formulas`` ask for that a frame shows; ValueError where
    the card has nothing to say."""
    asked = [atom for formula in formulas for atom in atoms(fill(formula, card)) if shown(atom)]
    measures: dict[Atom, Measures] = {}
    for atom in (*_usual(card), *asked):
        try:
            meant = fill(atom, card)
            measures[meant] = Measures(measured(meant, card))
        except (FormulaError, NoMargin):
            continue  # the card does not measure it
    if not measures:
        raise ValueError(
            f"no relation of the goal language is seen in a frame of {card.task}: grade captions "
            "of your own (--captions FILE.toml)"
        )
    return TableCaptions(
        card,
        tuple(say(atom, card) for atom in measures),
        tuple(measures),
        tuple(measures.values()),
        (SOFTNESS,) * len(measures),
    )


def _usual(card: TaskCard) -> Iterator[Atom]:
    """The table's rows over a card's entities, with no number said."""
    for row in PREDICATES.values():
        if row.seen != "frame" or not row.margin or row.needs:
            continue
        if any(number.default is None for number in row.numbers):
            continue
        fitting = [[e.name for e in card.entities if fits & roles(e)] for fits in row.roles]
        for names in itertools.product(*fitting):
            if len(set(names)) == len(names):
                yield Atom.of(row.name, *names)


def _called(entity: Entity, colour: str) -> Entity:
    """An entity as it is called in another colour."""
    if not colour:
        return entity
    return replace(entity, name=f"{colour}_{entity.kind}", colour=colour)
