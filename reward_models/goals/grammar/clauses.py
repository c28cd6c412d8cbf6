"""ClauseParser: what a verb, a relation or a state asks for, with its things and quantities as
said.

A clause is read in every way that its words allow; which things "it" may mean, and whether the
card has what is asked, ``semantics.py`` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from reward_models.goals.grammar import connectives
from reward_models.goals.grammar.noun_phrases import Anaphor, Phrase, Referent, ReferentList
from reward_models.goals.grammar.patterns import pattern
from reward_models.goals.grammar.relations import Clause, Found, RelationParser
from reward_models.goals.grammar.slots import verb_forms_of
from reward_models.goals.grammar.wordings import (
    BODY_DEEDS,
    DEEDS,
    DIRECTIONS,
    MEASURED,
    POSES,
    RELATIONS,
    STATEMENTS,
    STATES,
    STAY,
    UPRIGHT_WAYS,
)


def _any_clause(clause: Clause) -> bool:
    return True


def _is_plain(clause: Clause) -> bool:
    return not clause.mood


def _is_manner(clause: Clause) -> bool:
    return clause.predicate in ("slower", "faster", "at_height") and clause.much is not None


# Slots that are clauses: how they are said, and which of those are meant.
_SAID: dict[str, tuple[str, Callable[[Clause], bool]]] = {
    "DO": ("base", _is_plain),
    "ACTING": ("ing", _is_plain),
    "STAYING": ("ing", lambda clause: clause.lasting),
    "TOLD": ("statement", _is_plain),
    "MOODED": ("base ing statement", lambda clause: bool(clause.mood)),
    "KEPT": (
        "base ing statement",
        lambda clause: clause.lasting and clause.told and _is_plain(clause),
    ),
    "SUFFERS": ("plain", _is_plain),
    "RELATION": ("relation", _any_clause),
    "BEING": ("relation state pose", _any_clause),
    "BIT": ("fragment", _any_clause),
    "NAMED": ("fragment", lambda clause: not clause.predicate),
    "RELATED": ("fragment", lambda clause: clause.predicate not in ("", "against")),
    "TIMED": ("timed fragment", _is_plain),
    "PACE": ("pace", _any_clause),
    "MANNER": ("ing", _is_manner),
    "PACED": ("verbless", _is_manner),
}


@cache
def vocabulary() -> frozenset[str]:
    """Returns every word of the patterns of clauses."""
    texts = [t for table in (RELATIONS, STATES, POSES) for rows in table.values() for t in rows]
    texts += [*DIRECTIONS, *(rest for _, _, rest in (*DEEDS, *BODY_DEEDS))]
    found = {word for text in texts for word in pattern(text).literals()}
    for kind in ("deed", "body", "place", "hand", "go", "make", "goes", "pose"):
        for form in ("base", "s", "ing", "ed"):
            for rows in verb_forms_of(kind, form).values():
                found |= {word for words, *_ in rows for word in words}
    return frozenset(found)


class ClauseParser(RelationParser):
    """The clauses of one sentence."""

    def _slot(self, name: str, i: int) -> Iterator[tuple[Any, int]]:
        if name not in _SAID:
            yield from super()._slot(name, i)
            return
        said, meant = _SAID[name]
        yield from ((clause, end) for clause, end in self.said(said, i) if meant(clause))

    def said(self, forms: str, i: int) -> Iterator[Found]:
        """Clauses at ``i`` in any of these forms: of a verb, or a method's name."""
        for form in forms.split():
            verbs = form in ("base", "ing")
            yield from self.clause(form, i) if verbs else getattr(self, form)(i)

    def clause(self, form: str, i: int) -> list[Found]:
        """Clauses that begin with a verb in a form: base "touch", ing "touching"."""
        return self._memo("clause", form, i, lambda: self._clause(form, i))

    def _clause(self, form: str, i: int) -> Iterator[Found]:
        for stem, predicate, rest, start in self.verb("body" if self.body else "deed", form, i):
            assert rest is not None
            for slots, end in self.filled(rest, start):
                lasting = stem.split()[0] in STAY and stem != "hold up"
                yield from self._with_slots(
                    Clause(predicate, verb=stem, lasting=lasting), slots, end
                )
        if self.body:
            for stem, _, _, start in self.verb("pose", form, i):
                for found, end in self.pose(start):
                    yield replace(found, verb=stem), end
        else:
            yield from self._placement(form, i)
            yield from self._motion(form, i)
        for stem, _, _, start in self.verb("make", form, i):
            for phrase, end in self.phrases.at(start):
                for found, last in self._finite(phrase, end, ("base", "ing")):
                    yield replace(found, verb=stem, told=not self.acting(phrase)), last

    def _placement(self, form: str, i: int) -> Iterator[Found]:
        """A thing is put somewhere: "push the cube 5 cm to the left", "keep it upright"."""
        verbs = [(v, False) for v in self.verb("place", form, i)]
        for (stem, _, _, start), hand in [*verbs, *((v, True) for v in self.verb("hand", form, i))]:
            lasting = stem in ("keep", "hold", "leave", "have")
            for phrase, end in self.phrases.at(start):
                if hand and not self.acting(phrase):
                    continue
                if stem in ("keep", "hold", "leave", "have", "get"):
                    for found, last in (*self._located(phrase, end), *self._passive(phrase, end)):
                        yield replace(found, subject=phrase, verb=stem, lasting=lasting), last
                for at in self._past_tool(end):
                    for found, last in self._destination(at, stem):
                        yield replace(found, subject=phrase, verb=stem, lasting=lasting), last
                    if not lasting:
                        yield from self._result(phrase, stem, at)
                if self.word(end) == "to" and self.acting(phrase) and not hand:
                    for found, last in self.clause("base", end + 1):  # "move the arm to touch it"
                        if found.predicate == "touch" and found.verb in connectives.BUMPS:
                            yield replace(found, verb=stem), last

    def _past_tool(self, i: int) -> Iterator[int]:
        """``i``, and behind "with the claw" at ``i``."""
        yield i
        for text in ("(with|using) HAND",):
            for _, end in self.filled(pattern(text), i):
                if self.word(end) not in ("left", "right"):
                    yield end

    def _result(self, phrase: Phrase, stem: str, i: int) -> Iterator[Found]:
        """What is to be in the end: "push it until it is left of the ball"."""
        for at in connectives.OVER.ends(self.words, i):
            for start in connectives.SO_THAT.ends(self.words, at):
                for found, last in self.statement(start):
                    about = found.subject in (Anaphor("it"), phrase)
                    about |= found.subject is None and self.acting(phrase)
                    if about:
                        yield replace(found, subject=phrase, verb=stem), last
                    elif self.acting(phrase) and Anaphor("it") in found.objects:
                        it = tuple(phrase if o == Anaphor("it") else o for o in found.objects)
                        yield replace(found, objects=it, verb=stem, told=False), last
        for slots, end in self.filled(pattern("(to|towards|toward|away from) O"), i):
            both = ReferentList("and", (phrase, slots["O"]))
            for start in connectives.SO_THAT.ends(self.words, end):
                for found, last in self._finite(both, start + 1, ("be", "base")):
                    pair = found.predicate in ("together", "in_touch", "apart")
                    if pair and self.word(start) == "they":
                        yield replace(found, verb=stem), last

    def _motion(self, form: str, i: int) -> Iterator[Found]:
        actor = self.things.actor
        for stem, _, _, start in self.verb("go", form, i):
            if actor is not None and stem in ("move", "go", "come", "shift", "retreat"):
                yield from self._result(Referent(actor.name), stem, start)
            lasting = stem.split()[0] in STAY or self.word(start) in ("no", "not")
            yield from (
                (replace(found, verb=stem, lasting=lasting), end)
                for at in self._past_tool(start)
                for found, end in self._destination(at, stem)
                if stem != "stop" or found.predicate != "against"  # "stop touching it"
            )
            for state, end in (
                self.state(start) if stem in connectives.STAND else ()
            ):  # "still beside it"
                if state.predicate == "still":
                    for found, last in self.relation(end):
                        yield replace(found, verb=stem, lasting=lasting, also="still"), last

    def _destination(self, i: int, verb: str) -> Iterator[Found]:
        """What a verb of place is followed by: a relation, a state, a way, a goal."""
        back = i + 1 if self.word(i) in ("over", "back", "up", "down", "both") else i
        either = i + (self.word(i) == "either" and "or" in self.words[i:])
        for start in dict.fromkeys((i, back, either, *connectives.OVER.ends(self.words, i))):
            yield from self.relation(start)
            for after in connectives.UP_TO.ends(self.words, start):
                for phrase, end in self.phrases.at(after):
                    yield Clause("to", None, (phrase,)), end
        there = i + 1 if self.word(i) == "down" else i
        if self.word(there) == "there":
            yield Clause("there"), there + 1
        if self.word(i) in ("inside", "in") and not self.phrases.one(i + 1):
            yield Clause("inside", None, (Anaphor("room"),)), i + 1
        yield from self.ways(i)
        state_verbs = (
            "be",
            "stay",
            "remain",
            "keep",
            "hold",
            "leave",
            "stand",
            "get",
            "end up",
            "set",
            "have",
            "finish",
            "come",
        )
        if verb in state_verbs:
            yield from self.state(i)
        by = i + 1 if self.word(i) == "by" else i
        for found, end in self.much(by) if verb not in connectives.NO_WAY else ():
            if found.unit == "m" and not connectives.HEIGHTS.isdisjoint(self.words[by:end]):
                yield Clause("height", None, (), found), end  # and no way over the table
            elif found.unit == "m":
                yield Clause("displaced", None, (), found), end
                for last in connectives.ANYWHERE.ends(self.words, end):
                    yield Clause("displaced", None, (), found), last
                for last in connectives.FROM_START.ends(self.words, end):
                    yield Clause("displaced", None, (), found, began=True), last

    # ------------------------------------------------------------------------------ statements

    def statement(self, i: int) -> list[Found]:
        """Parses a subject and what it is or does at word ``i``: "the cube is left of the ball"."""
        return self._memo("statement", "", i, lambda: self._statement(i))

    def _statement(self, i: int) -> Iterator[Found]:
        yield from self._distance(i)
        if self.word(i) == "you":
            yield from self.clause("base", i + 1)
        for phrase, end in self.phrases.at(i):
            for found, last in self._finite(phrase, end, ("s", "be", "modal", "perfect")):
                yield replace(found, told=not self.acting(phrase)), last
            for mood, found, last in self._modal(phrase, end):
                if not found.mood or mood == "always":  # "it must always be untouched"
                    told, mood = not self.acting(phrase), found.mood or mood
                    yield replace(found, told=told, mood=mood), last

    def _modal(self, phrase: Phrase, i: int) -> Iterator[tuple[str, Clause, int]]:
        """What a subject is never, or always, to be: "must not be touched", "always stays up"."""
        for mood, table in connectives.MOODS.items():
            for after in table.ends(self.words, i):
                yield from ((mood, *found) for found in self.plainly(phrase, after))
        be = i + (self.word(i) in ("is", "are", "stays", "stay", "remains", "remain"))
        for mood, table in connectives.PLAINLY.items():
            for after in table.ends(self.words, be):
                there = () if be > i else self._finite(phrase, after, ("s", "be"))
                yield from ((mood, *found) for found in (*there, *self._copula(phrase, after)))

    def plain(self, i: int) -> Iterator[Found]:
        """Parses a subject with a plain verb at word ``i``: "the cube be touched"."""
        for phrase, end in self.phrases.at(i):
            yield from self.plainly(phrase, end)

    def timed(self, i: int) -> Iterator[Found]:
        """Parses a clause of time at word ``i``: "touching it", "you have touched it", "the cube is
        left of it"."""
        yield from self.clause("ing", i)
        yield from self.statement(i)
        yield from self.having(i)
        if self.word(i) == "you":
            yield from self.clause("base", i + 1)

    def having(self, i: int) -> Iterator[Found]:
        """Parses a perfect clause at word ``i``: "you have touched it", "having touched it"."""
        for start in connectives.HAVING.ends(self.words, i + (self.word(i) == "when")):
            yield from self.clause("ed", start)

    def pace(self, i: int) -> Iterator[Found]:
        """Parses a speed at word ``i``: "at most 5 cm/s"."""
        for found, end in self.much(i):
            if found.unit == "m/s" and not found.just:
                yield Clause("slower" if found.least is None else "faster", much=found), end

    def plainly(self, phrase: Phrase, i: int) -> Iterator[Found]:
        """Parses what follows a subject with a plain verb at word ``i``: "be touched", "touch
        it"."""
        if (
            isinstance(phrase, ReferentList)
            and phrase.how == "nor"
            and self.word(i) in ("may", "can")
        ):
            i += 1
        yield from self._active(phrase, "base", i)
        if self.word(i) == "be":
            yield from self._active(phrase, "ing", i + 1)
            yield from self._copula(phrase, i + 1)

    def beside(self, i: int) -> Iterator[tuple[str, Clause, int]]:
        """Parses an accompanying clause at word ``i``: "with the gripper always above it", "without
        the cube touching it"."""
        opening = self.word(i)
        for phrase, end in self.phrases.at(i + 1) if opening in ("with", "without") else ():
            starts = [("never", end + (self.word(end) == "ever"))]
            if opening == "with":
                starts = [
                    (m, at)
                    for m, t in connectives.PLAINLY.items()
                    for at in t.ends(self.words, end)
                ]
                starts.append(("", end))
            for mood, start in starts:
                lasting = self.word(start) in ("staying", "kept", "remaining", "being")
                how = mood or ("while" if lasting else "always")
                after = start + lasting
                for found, last in (*self.relation(after), *self.state(after)):
                    if mood or lasting or found.much is not None:
                        yield how, replace(found, subject=phrase), last
                for found, last in self._active(phrase, "ing", start) if mood else ():
                    yield how, found, last

    def verbless(self, i: int) -> Iterator[Found]:
        """Parses a subject and a relation or state at word ``i``: "red cube left of the ball", "the
        drawer open"."""
        for phrase, end in self.phrases.at(i):
            if isinstance(phrase, Anaphor) and phrase.how != "it":
                continue  # "both left of it and far from that"
            if self.word(end) == "over" and self.word(i) in ("hand", "tip") and i not in self.named:
                continue  # "hand over the ball"
            if self.acting(phrase):
                for found, last in self.clause("ing", end):  # "cheetah running forwards"
                    yield replace(found, subject=found.subject or phrase), last
                yield from self.pose(end)
            states = self.state(end)
            if self.body and self.acting(phrase):
                states = [(f, e) for f, e in states if f.predicate in connectives.OF_BODIES]
            if i in self.named and self.word(end).endswith("ed"):
                states = []  # "the drawer closed" tells what happened
            for found, last in (*self.relation(end), *states, *self.ways(end)):
                if self.word(end) == "clear" and self.acting(phrase) and found.much is None:
                    continue  # "fingers clear of it": far, or only not touching?
                yield replace(found, subject=phrase), last
            yield from self._located(phrase, end)
            if i not in self.named and not self.acting(phrase):  # "peg inserted in the hole"
                yield from self._passive(phrase, end)
            if self.word(end) == "to" and i not in self.named:
                for target, last in self.phrases.one(end + 1):
                    yield Clause("to", phrase, (target,)), last
        yield from self.pose(i)

    def wanted(self, i: int) -> Iterator[Found]:
        """Parses what may follow "I would like" at word ``i``: "the cube pushed to the ball", "you
        to walk"."""
        for phrase, end in self.phrases.at(i):
            yield from self._finite(phrase, end, ("base", "ing", "past"))
        yield from self._clause("ed", i) if self.words[i - 1 : i] == ("you",) else ()
        yield from self._noun_clause(i)

    def _noun_clause(self, i: int) -> Iterator[Found]:
        """What is wanted as a noun: "contact with the ball", "a big gap between them"."""
        for stem in ("have", "keep", "give"):
            for predicate, verbs, rest in DEEDS:
                if stem in verbs.split("|") and predicate in ("touch", "in_touch", "parted"):
                    if rest[0] in "[(":
                        for slots, end in self.filled(pattern(rest), i):
                            yield from self._with_slots(Clause(predicate), slots, end)

    def _finite(self, phrase: Phrase, i: int, how: tuple[str, ...]) -> Iterator[Found]:
        """What a subject that ends at ``i`` is or does."""
        word = self.word(i)
        if word in ("please", "first", "now"):
            i, word = i + 1, self.word(i + 1)
        if "be" in how and word in ("is", "are", "be", "stays", "remains", "stay", "sits", "gets"):
            yield from self._copula(phrase, i + 1)
        if "past" in how:
            yield from self._active(phrase, "ed", i)
            if word in ("was", "were", "got", "gets", "be"):
                yield from self._copula(phrase, i + 1)
            if word in ("could", "would", "can", "will", "should"):
                yield from self._active(phrase, "base", i + 1)
        if "s" in how:
            yield from self._active(phrase, "s", i)
            several = self.acting(phrase) and self.word(i - 1) in connectives.SEVERAL
            if isinstance(phrase, ReferentList) or phrase == Anaphor("them") or several:
                yield from self._active(phrase, "base", i)
            if self.word(i + 1) and word in ("is", "are"):
                yield from self._active(phrase, "ing", i + 1)
        if "ing" in how:
            yield from self._active(phrase, "ing", i)
        if "base" in how:
            yield from self._active(phrase, "base", i + 1 if word == "to" else i)
            yield from self._copula(phrase, i)
        if "modal" in how:
            for start in (i, *connectives.MODALS.ends(self.words, i)):
                if start == i and not (isinstance(phrase, ReferentList) and phrase.how == "nor"):
                    continue
                yield from self.plainly(phrase, start + (self.word(start) == "first"))
        if "perfect" in how:  # "has been moved", "has moved"
            for start in connectives.PERFECT.ends(self.words, i):
                been = self.word(start - 1) == "been"
                yield from (
                    self._copula(phrase, start) if been else self._active(phrase, "ed", start)
                )

    def _copula(self, phrase: Phrase, i: int) -> Iterator[Found]:
        states = self.state(i)
        if self.body and self.acting(phrase):  # to stand or be upright is another thing there
            states = [(f, e) for f, e in states if f.predicate in connectives.OF_BODIES]
            states += self.pose(i)
        for found, end in (*self.relation(i), *states):
            yield replace(found, subject=phrase), end
        for end in connectives.UNTOUCHED.ends(self.words, i) if not self.body else ():
            yield Clause("touch", None, (phrase,), mood="never"), end
        yield from self._located(phrase, i)
        for found, end in self._passive(phrase, i):
            for last in self._past_agent(end):
                yield replace(found, ended=last > end and found.predicate == "touch"), last

    def _located(self, phrase: Phrase, i: int) -> Iterator[Found]:
        """Where a thing is, with how it is there: "sitting on the disc", "located beside it"."""
        starts = [start for _, _, _, start in self.verb("goes", "ing", i)]
        for start in [*starts, *([i + 1] if self.word(i) in connectives.SITUATED else [])]:
            for found, end in self.relation(start):
                yield replace(found, subject=phrase, verb="be"), end

    def _passive(self, phrase: Phrase, i: int) -> Iterator[Found]:
        """What is done to a thing: "touched", "pushed to the ball", "pulled out"."""
        for stem, predicate, rest, start in self.verb("deed", "ed", i):
            if rest is None or predicate == "unclear":
                continue
            if predicate == "touch" and rest.text == "O":
                yield Clause("touch", None, (phrase,), verb=stem), start
            elif rest.text == "S" or rest.text.startswith("S "):
                for slots, end in self.filled(pattern(rest.text[1:].strip()), start):
                    yield from self._with_slots(
                        Clause(predicate, verb=stem), {**slots, "S": phrase}, end
                    )
        verbs = [(v, False) for v in self.verb("place", "ed", i)]
        for (stem, _, _, start), hand in [*verbs, *((v, True) for v in self.verb("hand", "ed", i))]:
            if hand and not self.acting(phrase):
                continue
            for at in self._past_agent(start):
                for found, end in self._destination(at, stem):
                    yield replace(found, subject=phrase, verb=stem), end

    def _past_agent(self, i: int) -> Iterator[int]:
        """``i``, and behind "by the gripper" at ``i``."""
        yield i
        if self.word(i) == "by":
            yield from (end for phrase, end in self.phrases.one(i + 1) if self.acting(phrase))

    def _active(self, phrase: Phrase, form: str, i: int) -> Iterator[Found]:
        """Of whoever acts every deed; of a thing only where it goes and what it touches."""
        if self.acting(phrase):
            for found, end in self.clause(form, i):
                yield replace(found, subject=found.subject or phrase), end
            return
        for stem, _, _, start in self.verb("goes", form, i):
            lasting = stem in STAY
            for found, end in self._copula(phrase, start):
                yield replace(found, verb=found.verb or stem, lasting=lasting), end
            for found, end in self._destination(start, stem):
                if stem != "be" and (found.predicate != "inside" or found.objects):
                    yield replace(found, subject=phrase, verb=stem, lasting=lasting), end
        for stem, predicate, rest, start in self.verb("deed", form, i):
            if predicate == "touch" and rest is not None and stem in connectives.BUMPS:
                for slots, end in self.filled(rest, start):
                    if "O" in slots:
                        yield Clause("against", phrase, (slots["O"],), verb=stem), end
                if isinstance(phrase, ReferentList) or phrase == Anaphor("them"):
                    for end in connectives.EACH_OTHER.ends(self.words, start):
                        yield Clause("in_touch", phrase, verb=stem), end

    def _distance(self, i: int) -> Iterator[Found]:
        """ "the distance between A and B is at least 20 cm", "there is contact between them"."""
        for name, text in STATEMENTS if not MEASURED.isdisjoint(self.words) else ():
            for slots, end in self.filled(pattern(text), i):
                if "MUCH" not in slots or slots["MUCH"].unit == "m":
                    yield from self._with_slots(Clause(name), slots, end)

    def continued(self, i: int) -> Iterator[Found]:
        """Parses a further clause about the subject of the clause before, at word ``i``: "and
        touches the can"."""
        for start in connectives.MODALS.ends(self.words, i) if self.word(i) != "to" else ():
            yield from self.clause("base", start)
        for stem, _, _, start in self.verb("goes", "s", i):
            for found, end in self._destination(start, stem):
                yield replace(found, bare=True, lasting=stem in STAY), end
        for stem, predicate, rest, start in self.verb("deed", "s", i):
            if predicate == "touch" and rest is not None and stem in connectives.BUMPS:
                for slots, end in self.filled(rest, start):
                    yield Clause("against", None, (slots["O"],), verb=stem, bare=True), end

    def fragment(self, i: int) -> Iterator[Found]:
        """Parses a clause without its verb at word ``i``: "then the ball", "and left of the cube",
        "then to the can"."""
        for phrase, end in self.phrases.at(i):
            if not (isinstance(phrase, Anaphor) and phrase.how == "it"):
                yield Clause("", None, (phrase,), bare=True), end
        for found, end in (*self.relation(i), *self.ways(i)):
            yield replace(found, bare=True), end
        for subject, at in self.phrases.one(i):  # "put A left of B and C right of B"
            for found, end in self.relation(at):
                if self.word(at) == "clear" and self.acting(subject) and found.much is None:
                    continue
                yield replace(found, subject=subject, bare=True, verb="likewise"), end
            for found, end in self.ways(at):
                yield replace(found, subject=subject, bare=True, verb="likewise"), end
            if self.word(at) == "to":
                for phrase, end in self.phrases.one(at + 1):
                    yield Clause("to", subject, (phrase,), bare=True, verb="likewise"), end
        if self.word(i) in ("from", "of"):  # "far from the ball and from the can"
            for phrase, end in self.phrases.one(i + 1):
                yield Clause("", None, (phrase,), bare=True, verb="from"), end
        if self.word(i) == "to":
            for phrase, end in self.phrases.at(i + 1):
                yield Clause("to", None, (phrase,), bare=True), end
        for name, texts in UPRIGHT_WAYS.items():
            for slots, end in self.filled(pattern(texts), i):
                if slots["MUCH"].unit == "m":
                    yield from self._with_slots(Clause(name, bare=True), slots, end)
        for found, end in self.state(i):
            if found.predicate in ("slower", "faster", "still"):
                yield replace(found, bare=True), end
        if not self.body:
            yield from ((replace(found, bare=True), end) for found, end in self.pace(i))
