"""Which things a clause is about: "it", "them", "the other one", and what a clause leaves out that
the one before said."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from reward_models.base import TaskCard
from reward_models.goals.formula import Atom, Formula, FormulaError, Term, join
from reward_models.goals.grammar.atoms import AtomBuilder, Refuse
from reward_models.goals.grammar.clauses import Clause
from reward_models.goals.grammar.noun_phrases import (
    Anaphor,
    EntityNames,
    Phrase,
    Referent,
    ReferentList,
)
from reward_models.goals.predicates import PREDICATES, SIDES
from reward_models.goals.refusal import Refusal

_FROM = frozenset({"far", "apart", "away", "left_of", "right_of"})
_SIDES = {"left_of", "right_of"}
_WAYS = frozenset({"moved", "raised", "lowered"})
# Where a thing may be put: what one verb says of two things.
_PLACED = _FROM | frozenset("near next_to in_front_of behind on on_top inside between".split())


class ReferenceResolver:
    """The things that one reading has spoken of so far."""

    def __init__(self, things: EntityNames, card: TaskCard, refuse: Refuse) -> None:
        self.atoms, self.refuse = AtomBuilder(things, card, refuse), refuse
        self.actor = self.atoms.actor
        self.said: list[Term] = []
        self.last: Clause | None = None  # with what it was about filled in
        self.it = False  # some clause said "it"
        self.beside = False  # a remark named things
        self.backward = False  # something spoke of what was said before
        # the one who acts was named, and may be "it"; a body alone is
        self.named = not things.objects

    def clause(self, clause: Clause | None, by: str) -> tuple[Formula, bool]:
        """Returns the formula of a clause, and whether it is to be avoided."""
        assert clause is not None
        if clause.verb == "likewise" and self.last is not None and len(self.last.objects) == 1:
            same = {Anaphor("it"): self.last.objects[0]}  # "... left of it and the can right of it"
            clause = replace(clause, objects=tuple(same.get(o, o) for o in clause.objects))
        clause = self._with_ellipsis_filled(clause, by)
        phrases = [p for p in (clause.subject, *clause.objects) if p is not None]
        if not any(has_pronoun(p) for p in phrases):
            return self._resolved(clause)
        self.it = self.backward = True
        found: dict[tuple[Formula, bool], tuple[list[Term], Clause]] = {}
        wrong: Refusal | FormulaError | None = None
        for name in [*self.said, *([self.actor] if self.named else [])]:
            before = list(self.said)
            tried = self._about_pronoun(clause, name)
            try:
                found[self._resolved(tried)] = list(self.said), tried
            except (Refusal, FormulaError) as error:
                wrong = wrong or error
            self.said = before
        if len(found) != 1:
            if not found and wrong is not None and len(self.said) == 1:
                raise wrong
            raise self.refuse("ambiguous", "unclear what 'it' refers to: name the object")
        [(made, (self.said, tried))] = found.items()
        self.last = tried
        return made

    def _with_ellipsis_filled(self, clause: Clause, by: str) -> Clause:
        """The clause with what it leaves out, from the one before."""
        last, hand = self.last, Referent(self.actor)
        if clause.verb == "likewise":
            if clause.subject == hand or last is not None and not last.verb:
                return replace(clause, bare=False, verb="")  # "..., hand at least 20 cm from it"
            if last is None or last.subject == hand:
                raise self.refuse(
                    "ambiguous", "the last part has no verb: say 'is', or repeat 'push'"
                )
            pair = {clause.predicate, last.predicate}
            placed = by == "and" and pair <= _PLACED | SIDES
            if len(pair) > 1 and not (pair <= _SIDES or placed):
                raise self.refuse(
                    "unsupported", "no known sentence pattern matches these words; rephrase it"
                )
            return replace(clause, bare=False, verb=last.verb)
        if clause.verb == "from" and (last is None or last.predicate not in _FROM):
            raise self.refuse(
                "unsupported", "unclear what 'from' or 'of' refers to: say the verb again"
            )
        if clause.predicate == "there":
            if last is None or not last.objects:
                raise self.refuse("ambiguous", "unclear which place 'there' refers to: name it")
            return replace(last, subject=clause.subject)
        if not clause.bare or clause.predicate in ("slower", "faster", "still"):
            return clause
        if last is None:
            raise self.refuse("no_goal", "it names no goal relation, such as 'touch' or 'on'")
        each = self.refuse("ambiguous", "say for each object what shall happen to it")
        if last.ended:
            raise each
        if clause.predicate:
            if last.predicate == "moved" and clause.predicate not in _WAYS:
                raise self.refuse("ambiguous", "relative to its start, or beside another object?")
            return replace(clause, subject=clause.subject or last.subject, bare=False)
        if last.subject != hand and not last.objects and last.predicate in PREDICATES:
            return replace(last, subject=clause.objects[0], bare=False)
        if last.subject != hand or len(last.objects) != 1:
            raise each
        return replace(last, objects=clause.objects, bare=False, also="")

    def _about_pronoun(self, clause: Clause, name: Term) -> Clause:
        def put(phrase: Phrase | None) -> Phrase | None:
            if isinstance(phrase, ReferentList):
                parts = tuple(p for part in phrase.parts if (p := put(part)) is not None)
                return replace(phrase, parts=parts)
            if isinstance(phrase, Anaphor) and phrase.how == "it":
                return Referent(name)
            return phrase

        objects = tuple(p for o in clause.objects if (p := put(o)) is not None)
        return replace(clause, subject=put(clause.subject), objects=objects)

    def _resolved(self, clause: Clause) -> tuple[Formula, bool]:
        """The formula of a clause that says what it is about."""
        if clause.predicate in ("unclear", "leads"):
            said = f"{clause.verb!r} with the words after it" if clause.verb else "what comes first"
            raise self.refuse("ambiguous", f"{said} has several meanings; rephrase it")
        if clause.predicate == "height":
            raise self.refuse(
                "unsupported",
                "the height has no reference: say '10 cm above the table', or name an object",
            )
        subject = clause.subject or Referent(self.actor)
        self.above = clause.predicate == "above"
        how, subjects = self.terms(subject)
        if clause.subject is not None or clause.objects:
            self.named |= Referent(self.actor) in (clause.subject, *clause.objects)
        self.last = replace(clause, subject=subject)
        if (
            how == "or"
            and len(subjects) == 2
            and self._means_other_of_pair(clause.objects, subjects)
        ):
            return self.atoms.either_way(clause, subjects), False
        sides: list[tuple[str, list[Term]]] = [self.terms(o) for o in clause.objects]
        many = [side for side in ((how, subjects), *sides) if len(side[1]) > 1]
        negated = any(h == "nor" for h, _ in many)
        if made := self.atoms.several(clause, how, subjects, sides):
            return made, negated
        if any(self.actor in terms and how != "or" for how, terms in many):
            raise self.refuse(
                "ambiguous", "the gripper and an object share one verb: say a goal for each"
            )
        if clause.predicate == "to" and clause.subject is not None and len(many) == 1:
            if len(subjects) == 1 and many[0][0] != "or":
                raise self.refuse("ambiguous", "say for each object what shall happen to it")
        if len(many) > 1:
            raise self.refuse(
                "ambiguous", "several objects on both sides of the relation: say a goal for each"
            )
        made = (
            self.atoms.one(clause, terms)
            for terms in itertools.product(subjects, *(terms for _, terms in sides))
        )
        found = list(dict.fromkeys(made))
        if len(found) == 1:
            return found[0], negated
        joiner = many[0][0]
        if joiner == "each" and all(
            isinstance(f, Atom) and f.predicate in ("touch", "pressed") and f.terms[0] == self.actor
            for f in found
        ):
            found = [join("once", f) for f in found]  # not all at once
        return join("or" if joiner == "or" else "and", *found), negated

    @staticmethod
    def _means_other_of_pair(objects: Sequence[Phrase], pair: Sequence[Term]) -> bool:
        """Whether "the other" of a pair is meant, of which one was said: "put one on the other"."""
        other = objects[0] if len(objects) == 1 else None
        if not isinstance(other, Anaphor) or other.how != "other" or other.count != 1:
            return False
        return {*pair} <= {*other.of}

    def terms(self, phrase: Phrase) -> tuple[str, list[Term]]:
        """Returns how several things are meant, and which things they are."""
        if isinstance(phrase, Referent):
            self._remember(phrase.term)
            return "one", [phrase.term]
        self.backward |= isinstance(phrase, Anaphor)
        if isinstance(phrase, ReferentList):
            terms = [t for part in phrase.parts for t in self.terms(part)[1]]
            if len(set(terms)) < len(terms):
                raise self.refuse("ambiguous", "the same object is named twice")
            return phrase.how, terms
        if phrase.how == "other":
            found = [n for n in phrase.of if n not in self.said]
            wrong = self.beside or phrase.count and len(found) != phrase.count
            if wrong or not found or len(found) == len(phrase.of):
                raise self.refuse(
                    "ambiguous", "unclear which object 'the other' refers to: name it"
                )
            for name in found:
                self._remember(name)
            return ("each" if len(found) > 1 else "one"), list(found)
        if phrase.how == "room":
            rooms = [n for n in self.said if self.atoms.kind(n) in ("drawer", "hole")]
            if len(rooms) != 1:
                raise self.refuse(
                    "ambiguous", "unclear what to put it into: name the drawer or hole"
                )
            return "one", list(rooms)
        found = list(self.said)
        if phrase.how == "them" and self.above:
            raise self.refuse("ambiguous", "unclear which of them it shall be above: name it")
        if len(found) < 2 or phrase.count and len(found) != phrase.count:
            raise self.refuse("ambiguous", "unclear which objects are meant: name each")
        return ("each" if phrase.how == "each" else "and"), list(found)

    def _remember(self, term: Term) -> None:
        if term != self.actor and term not in self.said:
            self.said.append(term)


def has_pronoun(phrase: Phrase) -> bool:
    """Returns whether a phrase holds the pronoun "it"."""
    if isinstance(phrase, ReferentList):
        return any(has_pronoun(p) for p in phrase.parts)
    return isinstance(phrase, Anaphor) and phrase.how == "it"
