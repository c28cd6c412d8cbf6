"""Captions that the table of predicates writes for a task's card, and how true each is of a state.

Every relation of the table that one frame shows, of all things on the card that it may be about,
with its usual numbers and in the words of ``goals/text.py``. How true it is: the mean of
exp(-d) and of the same a good deal sharper, of the distance d from holding with room to spare,
which ``goals/margins.py`` measures by the card's signals, each condition of a relation in units of
its own softness: the one tells from afar, the other a hand around a cube from one that holds it. A
cube is lifted by centimetres and by a hand that may be decimetres away: in one unit the first would
hardly tell. The judge of policies, ``sims/truth``, shares no code with that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from reward_models.base import CardEntity, TaskCard
from reward_models.goals.captions import visible_in_frame
from reward_models.goals.formula import Atom, Formula, FormulaError, atoms, fill
from reward_models.goals.margins import MarginEvaluator, NoMargin, formula_margins
from reward_models.goals.predicates import GRIPPER, PREDICATES, role, roles
from reward_models.goals.text import to_sentence

Array = np.ndarray

SOFTNESS = 0.05  # m, at which a caption is true to 1/e, or less where its distances are smaller
SHARP = 0.15  # of the softness, of the half of the truth that tells what is close
SMALL = 0.4  # of a condition's distance that one state in ten exceeds
ROOM = 0.1  # of the softness, inside the judge's edge: there a frame may be misread either way
ENDS = 0.005, 0.985  # no caption is quite false, none quite true


@dataclass(frozen=True)
class TableCaptions:
    """Captions of atoms, and what measures how far each is from holding."""

    card: TaskCard
    texts: tuple[str, ...]
    atoms: tuple[Atom, ...]
    measures: tuple[MarginEvaluator, ...]
    # m, of each condition of each caption; of those that are not named, SOFTNESS.
    softness: tuple[Array, ...] = ()

    def margins(self, signals: Mapping[str, Array]) -> Iterator[Array]:
        """Yields each caption's margins (M, conditions) m of states {name: (M, k)}, at least 0
        where a condition holds."""
        for of in self.measures:
            (margins,) = of(signals, {})[0].values()
            yield np.nan_to_num(margins, nan=-1e3)

    def missing(self, signals: Mapping[str, Array]) -> Array:
        """Returns how far each caption is from holding, (M, captions) m, of states {name: (M,
        k)}."""
        return np.stack([_off(margins) for margins in self.margins(signals)], axis=1)

    def truth(
        self, signals: Mapping[str, Array], hidden: Mapping[str, Array] | None = None
    ) -> Array:
        """Returns how true each caption is.

        Args:
            signals: {name: (M, k)} signals of the states.
            hidden: {pose signal: (M,) bool} what a frame does not show; captions about it are
                false.

        Returns:
            (M, captions) in (0, 1).
        """
        softness = self.softness or (SOFTNESS,) * len(self.measures)
        off = np.stack(
            [
                _off(margins / soft - ROOM)
                for margins, soft in zip(self.margins(signals), softness, strict=True)
            ],
            axis=1,
        )
        grade = 0.5 * (np.exp(-off) + np.exp(-off / SHARP))
        if hidden:
            grade[self.unseen(hidden)] = 0.0
        return np.clip(grade, *ENDS).astype(np.float32)

    def unseen(self, hidden: Mapping[str, Array]) -> Array:
        """Returns which captions are about something hidden, (M, captions) bool, of ``hidden``
        {pose signal: (M,) bool}."""
        rows = len(next(iter(hidden.values())))
        out = np.zeros((rows, len(self.atoms)), bool)
        for column, atom in enumerate(self.atoms):
            for term in atom.terms:
                signal = self.card.entity(str(term)).pose_signal
                if signal in hidden:
                    out[:, column] |= hidden[signal]
        return out

    def softened(self, signals: Mapping[str, Array]) -> TableCaptions:
        """Returns the captions with each condition as soft as its distances in some states allow.

        A button moves a centimetre, an arm half a metre.

        Args:
            signals: {name: (M, k)} signals of the states.
        """

        def soft(margins: Array) -> Array:
            most = np.quantile(np.maximum(-margins, 0.0), 0.9, axis=0)
            return np.maximum(
                np.where(most > 0, np.minimum(SOFTNESS, SMALL * most), SOFTNESS), 1e-4
            )

        return replace(self, softness=tuple(map(soft, self.margins(signals))))

    def some(self, rng: np.random.Generator, pairs: int) -> TableCaptions:
        """Returns the captions about one thing and the gripper, and a random choice of ``pairs`` of
        those about several things."""
        loose = {e.name for e in self.card.entities if role(e) != GRIPPER}
        of = [len(loose.intersection(map(str, atom.terms))) for atom in self.atoms]
        several = [column for column, things in enumerate(of) if things > 1]
        drawn = set(rng.permutation(several)[:pairs].tolist())
        kept = [column for column, things in enumerate(of) if things <= 1 or column in drawn]
        columns = ("texts", "atoms", "measures", "softness")
        parts = {name: getattr(self, name) for name in columns}
        return replace(self, **{n: tuple(p[k] for k in kept) if p else p for n, p in parts.items()})

    def repainted(self, colours: Mapping[str, str]) -> TableCaptions:
        """Returns the captions of a scene in which entities have other ``colours``, {entity:
        colour}, and so other names."""
        called = {e.name: _called(e, colours.get(e.name, "")) for e in self.card.entities}
        names = {old: new.name for old, new in called.items()}
        moved = tuple(replace(a, terms=tuple(names[str(t)] for t in a.terms)) for a in self.atoms)
        card = replace(self.card, entities=tuple(called.values()))
        return replace(
            self, card=card, atoms=moved, texts=tuple(to_sentence(a, card) for a in moved)
        )


def table_captions(card: TaskCard, formulas: Iterable[Formula] = ()) -> TableCaptions:
    """Returns the captions of a card.

    Args:
        card: The task's card.
        formulas: Goals whose atoms are added where a frame shows them.

    Raises:
        ValueError: No caption can be made of the card.
    """
    asked = [
        atom
        for formula in formulas
        for atom in atoms(fill(formula, card))
        if visible_in_frame(atom)
    ]
    measures: dict[Atom, MarginEvaluator] = {}
    for atom in (*_usual(card), *asked):
        try:
            meant = fill(atom, card)
            measures[meant] = MarginEvaluator(formula_margins(meant, card))
        except (FormulaError, NoMargin):
            continue  # the card does not measure it
    if not measures:
        raise ValueError(
            f"no relation of the goal language is visible in frames of {card.task}: give graded "
            "captions (--captions FILE.toml)"
        )
    return TableCaptions(
        card,
        tuple(to_sentence(atom, card) for atom in measures),
        tuple(measures),
        tuple(measures.values()),
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


def _off(margins: Array) -> Array:
    """(M,) how far margins (M, conditions) are from all holding."""
    return np.linalg.norm(np.maximum(-margins, 0.0), axis=1)


def _called(entity: CardEntity, colour: str) -> CardEntity:
    """An entity as it is called in another colour."""
    if not colour:
        return entity
    return replace(entity, name=f"{colour}_{entity.kind}", colour=colour)
