"""What a sentence that was not read may have meant: a few formulas, the likeliest first.

A linear model over words, pairs and triples of words and parts of words tells which predicate a
sentence may speak of, and whether it asks for anything; every name of a thing is its role, so what
it learned on one scene serves any other. The card tells of which things that can be said, and the
reader's own rules what its quantities are. Nothing is ever trained on a proposal that nobody said
yes to.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from reward_models.base import TaskCard
from reward_models.goals.formula import (
    Atom,
    Formula,
    FormulaError,
    Term,
    atoms,
    fill,
    join,
    parts_of,
)
from reward_models.goals.grammar import quantities, read
from reward_models.goals.grammar.clauses import Clause
from reward_models.goals.grammar.connectives import THEN
from reward_models.goals.grammar.lexicon import UNSUPPORTED
from reward_models.goals.grammar.noun_phrases import EntityNames, NounPhraseParser, Referent
from reward_models.goals.grammar.patterns import split, without_articles
from reward_models.goals.grammar.quantities import Quantity
from reward_models.goals.grammar.refusals import RefusalBuilder
from reward_models.goals.grammar.semantics import SemanticInterpreter
from reward_models.goals.grammar.sentences import Element, phrase_ends
from reward_models.goals.predicates import PREDICATES, role, roles
from reward_models.goals.refusal import Refusal
from reward_models.goals.suggestions.repair import repaired_readings

SHIPPED = Path(__file__).parent / "weights" / "proposer.safetensors"
NOTHING = "nothing"  # the kind of a sentence that asks for nothing that could be done
WIDTH = 8192  # features; more of them share a column where it is less
NAMED = 1.5  # for each thing that is named, and against each that is not
KNOWN = 1.0  # for what the task is known for
SWAPPED = 1.0  # against things in another order than they were named in
WORTH = 1.5  # how much less likely than nothing a proposal may be
DISPLACED = PREDICATES["displaced"].numbers[0].default  # m, where nobody says how far
# Whatever these turn round or leave out, a proposal would not.
_LASTING = frozenset("for hold stay keep wait pause there".split())
_JOINING = frozenset("and without while but within for in until slowly always never".split())
# What may speak of the part that is guessed.
_BACK = frozenset("it its them they each both other others there this that one ones".split())
_REVERSED = frozenset(word for word, kind in UNSUPPORTED.items() if kind == "negation")


@dataclass(frozen=True)
class SentenceFeatures:
    """A sentence as the model sees it, and as its candidates do."""

    features: tuple[int, ...]  # in [0, WIDTH), each once
    things: tuple[str, ...]  # entities that it names beside who acts, in order
    much: Quantity | None = None  # its quantity
    time: Element | None = None  # how long it is to hold, or by when
    clear: bool = True  # it has one quantity and one time at most, and a goal can have that time


def sentence_features(text: str, things: EntityNames) -> SentenceFeatures:
    """Returns the features of a sentence, in which things are their roles and every quantity is one
    word."""
    words, named = without_articles(split(text))
    phrases = NounPhraseParser(words, named, things)
    said: list[str] = []
    mentioned: list[str] = []
    amounts: list[Quantity] = []
    times: list[Element] = []
    unsaid = False  # "for at most 1 s", "-5 cm": no goal can have that
    at = 0
    while at < len(words):
        term, end = _longest(phrases, at)
        amount = max(quantities.quantities_at(words, at), key=lambda found: found[1], default=None)
        if term:
            entity = things.card.entity(term)
            acts = things.actor is not None and term == things.actor.name
            kind = "thing" if "thing" in roles(entity) else entity.kind
            said.append("<actor>" if acts else f"<{kind}>")
            mentioned += [] if acts else [term]
            at = end
        elif amount is not None:
            much, end = amount
            if much.unit == "s":
                lasts = at > 0 and words[at - 1] in _LASTING
                times.append(Element("for" if lasts else "within", much=much))
                unsaid |= (much.least if lasts else much.most) is None
            else:
                amounts.append(much)
            said.append(f"<{much.unit}>")
            at = end
        else:
            said.append(words[at])
            unsaid |= words[at] == "-" and any(quantities.quantities_at(words, at + 1))
            at += 1
    return SentenceFeatures(
        _features(said),
        tuple(dict.fromkeys(mentioned)),
        next(iter(amounts), None),
        next(iter(times), None),
        max(len(amounts), len(times)) < 2 and not unsaid,
    )


def _longest(phrases: NounPhraseParser, at: int) -> tuple[str, int]:
    """The entity that the longest phrase at a place names, and where it ends; "" for none."""
    found = [
        (p.term, end)
        for p, end in phrases.one(at)
        if isinstance(p, Referent) and isinstance(p.term, str)
    ]
    return max(found, key=lambda one: one[1], default=("", at))


def _features(said: Sequence[str]) -> tuple[int, ...]:
    framed = ["^", *said, "$"]
    found = {*said, *map(" ".join, zip(framed, framed[1:], strict=False))}
    found |= {*map(" ".join, zip(framed, framed[1:], framed[2:], strict=False))}
    for word in said:
        if word[0] != "<" and len(word) > 3:  # "hovering" and "hover" share most of their parts
            whole = f"#{word}#"
            found |= {f"~{whole[i : i + n]}" for n in (3, 4, 5) for i in range(len(whole) - n + 1)}
    return tuple(sorted({zlib.crc32(one.encode()) % WIDTH for one in found}))


def atom_kind(atom: Atom, card: TaskCard) -> str:
    """Returns the class of an atom: its predicate and the role of its first entity."""
    subject = atom.terms[0] if isinstance(atom.terms[0], str) else atom.terms[0].among[0]
    return f"{atom.predicate}/{role(card.entity(subject))}"


class Proposer:
    """The model, as it was trained: ``kinds`` K, ``weight`` (WIDTH, K), ``bias`` (K,)."""

    def __init__(self, kinds: Sequence[str], weight: np.ndarray, bias: np.ndarray) -> None:
        """Takes the trained model.

        Args:
            kinds: K kinds of atoms.
            weight: (WIDTH, K) weights of the features.
            bias: (K,) biases.

        Raises:
            ValueError: The shapes do not fit, or the kind for no goal is missing.
        """
        shapes = weight.shape, bias.shape
        if NOTHING not in kinds or shapes != ((WIDTH, len(kinds)), (len(kinds),)):
            raise ValueError(
                f"expected weights ({WIDTH}, kinds) and {NOTHING!r} among the kinds, got "
                f"{weight.shape}, {bias.shape} and {len(kinds)} kinds"
            )
        self.kinds = {kind: i for i, kind in enumerate(kinds)}
        self.weight, self.bias = weight, bias

    @classmethod
    def load(cls, path: Path = SHIPPED) -> Proposer:
        """Reads the weights that ``save`` wrote.

        Raises:
            ValueError: The file holds something else.
        """
        try:
            arrays = load(path.read_bytes())
            return cls(json.loads(bytes(arrays["kinds"])), arrays["weight"], arrays["bias"])
        except (SafetensorError, KeyError, ValueError) as error:
            raise ValueError(f"{path} does not hold proposer weights: {error}") from None

    def save(self) -> bytes:
        """Returns the weights as the bytes of a file, in half precision."""
        kinds = np.frombuffer(json.dumps(list(self.kinds)).encode(), np.uint8)
        arrays = {"weight": self.weight.astype(np.float16), "bias": self.bias.astype(np.float16)}
        return save({**arrays, "kinds": kinds})

    def propose(self, text: str, card: TaskCard, most: int = 3) -> list[Formula]:
        """Proposes formulas for a sentence that was refused.

        The reading of a repaired sentence (``repair.py``) comes first. Each part of a sequence is
        read or proposed by itself, and so is what accompanies a part ("without touching the ball",
        "while ...", "for 2 s"); none is left out.

        Args:
            text: The sentence.
            card: The task's card.
            most: The largest number of proposals.

        Returns:
            Formulas, the likeliest first; none where the sentence likely asks for nothing.
        """
        near = repaired_readings(text, card)
        best: list[tuple[float, tuple[Formula, ...]]] = [(0.0, ())]
        parts = _parts(text, card)
        for part in parts:
            found = self._part(part, card, most, alone=len(parts) == 1)
            longer = [
                (worth + more, (*before, one)) for worth, before in best for more, one in found
            ]
            best = sorted(longer, key=lambda one: -one[0])[:most]
        found = [made for _, formulas in best if (made := _then(formulas, card))]
        return [*near, *(made for made in found if made not in near)][:most]

    def _part(
        self, text: str, card: TaskCard, most: int, alone: bool
    ) -> list[tuple[float, Formula]]:
        if not alone and (made := _read(text, card)):
            return [(0.0, made)]
        for guess, around, stand_in in _frames(text, card):
            if likely := self._likely(guess, card, most):
                made = ((worth, _instead(around, stand_in, one, card)) for worth, one in likely)
                return [(worth, whole) for worth, whole in made if whole]
        return self._likely(text, card, most)

    def _likely(self, text: str, card: TaskCard, most: int) -> list[tuple[float, Formula]]:
        things = EntityNames(card)
        if things.actor is None:
            return []
        words = sentence_features(text, things)
        if not words.clear or not _REVERSED.isdisjoint(split(text)):
            return []
        known = {atom for goal in card.goals.values() for atom in _known(goal, card)}
        scores = self.weight[list(words.features)].sum(0, dtype=np.float32)
        scores = scores / math.sqrt(max(len(words.features), 1)) + self.bias

        ranked: list[tuple[float, Atom]] = []
        for atom in candidate_atoms(card):
            if (kind := self.kinds.get(atom_kind(atom, card))) is not None:
                own = KNOWN if (atom.predicate, atom.terms) in known else 0.0
                ranked.append(
                    (float(scores[kind]) + _naming_score(atom, words, things) + own, atom)
                )
        found: dict[Formula, tuple[float, Formula]] = {}
        for worth, atom in sorted(ranked, key=lambda one: -one[0]):
            if worth + WORTH < scores[self.kinds[NOTHING]] or len(found) == most:
                break
            if formula := _meant(atom, words, things):
                found.setdefault(fill(formula, card), (worth, formula))
        return list(found.values())


@cache
def load_shipped() -> Proposer:
    """Returns the proposer with the weights of this package."""
    return Proposer.load()


def _known(goal: str, card: TaskCard) -> Iterator[tuple[str, tuple[Term, ...]]]:
    """What a goal of the task itself is about."""
    try:
        yield from ((atom.predicate, atom.terms) for atom in atoms(read(goal, card)))
    except Refusal:
        return


def _parts(text: str, card: TaskCard) -> list[str]:
    """The sentence, cut where one thing is to follow another."""
    words = split(text)
    phrases = NounPhraseParser(words, frozenset(), EntityNames(card))
    parts: list[list[str]] = [[]]
    at = 0
    while at < len(words):
        after = next(phrase_ends(phrases, at, THEN), len(words))
        if parts[-1] and after < len(words):
            parts.append([])
            at = after
        else:
            parts[-1].append(words[at])
            at += 1
    return [" ".join(part) for part in parts]


def _read(text: str, card: TaskCard) -> Formula | None:
    try:
        return read(text, card)
    except Refusal:
        return None


def _frames(text: str, card: TaskCard) -> Iterator[tuple[str, Formula, Atom]]:
    """What is to be guessed of a sentence, and the rest as it is read around a goal of the task
    that stands in for it; the longest rest first."""
    words = split(text)
    known = [goal for goal in card.goals.values() if isinstance(_read(goal, card), Atom)]
    goals = dict.fromkeys(goal for k in (0, len(known) // 2, -1) for goal in known[k:][:1])
    for at in range(1, len(words)):
        before, after = " ".join(words[:at]), " ".join(words[at:])
        sides = [(before, words[at:], "{} " + after)] if words[at] in _JOINING else []
        if words[at] == "and":
            sides.append((" ".join(words[at + 1 :]), words[:at], before + " and {}"))
        for guess, rest, said in sides:
            for goal in goals if _BACK.isdisjoint(rest) else ():
                stand_in, around = read(goal, card), _read(said.format(goal), card)
                if isinstance(stand_in, Atom) and around and around != stand_in:
                    if list(atoms(around)).count(stand_in) == 1:
                        yield guess, around, stand_in
                        break


def _instead(around: Formula, stand_in: Atom, one: Formula, card: TaskCard) -> Formula | None:
    """The formula with another one where the goal stood that stood in for it; None where it may not
    stand there."""

    def made(part: Formula) -> Formula:
        if isinstance(part, Atom):
            return one if part == stand_in else part
        return join(part.operator, *map(made, part.parts), **dict(part.numbers))

    try:
        whole = made(around)
    except FormulaError:
        return None
    return whole if _then([whole], card) else None


def _then(formulas: Sequence[Formula], card: TaskCard) -> Formula | None:
    """One after the other; of one that is itself. None where a part may stand in no sequence."""
    try:
        parts = [part for formula in formulas for part in parts_of(formula, "then")]
        made = parts[0] if len(parts) == 1 else join("then", *parts)
        fill(made, card)
        return made
    except FormulaError:
        return None


def _naming_score(atom: Atom, words: SentenceFeatures, things: EntityNames) -> float:
    """For an atom's things that were named, against those that were not."""
    actor = things.actor.name if things.actor else ""
    own = [term for term in atom.terms if isinstance(term, str) and term != actor]
    kept = [term for term in words.things if term in own]
    wrong = len(own) + len(words.things) - 2 * len(kept)
    turned = kept != [term for term in own if term in kept]
    return NAMED * (len(kept) - wrong) - SWAPPED * turned


def candidate_atoms(card: TaskCard) -> Iterator[Atom]:
    """Yields every atom of one or two things that a sentence may be about."""
    for row in PREDICATES.values():
        for subject in card.entities:
            fits = roles(subject) & row.roles[0]
            if not fits or row.spoken and not roles(subject) & row.spoken or row.arity > 2:
                continue
            if row.needs or any(number.default is None for number in row.numbers):
                continue  # a way, a place, an angle: what the reader does not read is not guessed
            if row.arity == 1:
                yield Atom.of(row.name, subject.name)
                continue
            for other in card.entities:
                if other != subject and roles(other) & row.roles[1]:
                    yield Atom.of(row.name, subject.name, other.name)


def _meant(atom: Atom, words: SentenceFeatures, things: EntityNames) -> Formula | None:
    """What the reader's rules make of an atom and the sentence's quantity; None where they refuse,
    or the quantity would be left out."""
    subject, *objects = (Referent(term) for term in atom.terms)
    much = words.much
    if atom.predicate == "displaced":  # a length alone says no way: at least so far
        much = much or Quantity("m", DISPLACED, None)
        much = replace(much, most=None, just=False) if much.just else much
    clause = Clause(atom.predicate, subject, tuple(objects), much)
    try:
        meaning = SemanticInterpreter(things, things.card, RefusalBuilder("", things))
        formula = meaning.formula((Element("goal", clause), *filter(None, [words.time])))
        fill(formula, things.card)
        return formula
    except (Refusal, FormulaError):
        return None
