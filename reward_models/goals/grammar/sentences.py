"""SentenceParser: clauses with what joins them, bounds them and goes along with them.

A sentence is a list of elements in the order of saying: goals, constraints ("without touching
it") and modifiers ("for a second", "slowly"), each with the word that joins it to what was before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from reward_models.goals.grammar import connectives
from reward_models.goals.grammar.clauses import Clause, ClauseParser
from reward_models.goals.grammar.noun_phrases import (
    Anaphor,
    EntityNames,
    NounPhraseParser,
    Referent,
    ReferentList,
)
from reward_models.goals.grammar.patterns import PhraseTable, pattern, patterns
from reward_models.goals.grammar.quantities import Quantity
from reward_models.goals.grammar.wordings import (
    IMPLIED,
    LEADING,
    OPENERS,
    POLITE,
    REASONS,
    STARTERS,
    TOOLS,
    VIEWS,
)


@dataclass(frozen=True)
class Element:
    """One element: ``how`` it takes part, its clause or quantity, and ``by`` what it is joined.

    ``how``: goal, never, always, while, until; for, within, slowly, order, loose, at_once, view
    (modifiers); implied by the predicates in ``by``; remark; first and turn, of an order.
    ``by``: ``""`` (nothing), ``,``, and, but, or, then, before, after, end.
    """

    how: str
    clause: Clause | None = None
    much: Quantity | None = None
    by: str = ""
    negated: bool = False  # of while: "while not touching it"


Elements = tuple[Element, ...]


@cache
def vocabulary() -> frozenset[str]:
    """Returns every word that joins, bounds or accompanies clauses."""
    texts = (*POLITE, *LEADING, *OPENERS, *STARTERS, *VIEWS, *TOOLS, *REASONS)
    texts += tuple(text for _, text in (*IMPLIED, *connectives.CONSTRAINTS, *connectives.TIMES))
    return PhraseTable.words.union(*(pattern(text).literals() for text in texts))


def strip_politeness(words: tuple[str, ...], things: EntityNames) -> tuple[str, ...]:
    """Returns the words without polite phrases at their beginning and end."""
    spoken = SentenceParser(ClauseParser(words, frozenset(), things))
    starts = [i for i, opened in spoken._goal_starts(0).items() if not opened]
    ends = spoken._can_end()
    return words[max(starts) : min(e for e in (*ends, len(words)) if e >= max(starts))]


def phrase_ends(phrases: NounPhraseParser, i: int, table: PhraseTable) -> Iterator[int]:
    """Yields where each phrase of the table that stands at word ``i`` ends, the longest first."""
    words = phrases.words
    for end in table.ends(words, i):
        if words[end - 1 : end + 1] == ("next", "to"):
            continue
        if words[end - 1] in ("that", "this") and end not in phrases.named and phrases.one(end):
            continue  # "after that cube"
        yield end


class SentenceParser:
    """The ways to read one sentence as elements."""

    def __init__(self, clauses: ClauseParser) -> None:
        self.clauses, self.words = clauses, clauses.words
        self.known: dict[int, list[tuple[Elements, int]]] = {}
        self.ended: dict[tuple[tuple[str, ...], int], list[int]] = {}
        self.bounds: dict[int, list[tuple[Element, int]]] = {}
        # where goals begin that a remark stands before, and end that one follows
        self.remarked: set[int] = set()
        self.followed: set[int] = set()

    def whole(self) -> list[Elements]:
        """Returns every reading of all the words."""
        found: dict[Elements, None] = {}
        ends = self._can_end()
        first = any(w == "first" and i not in self.clauses.named for i, w in enumerate(self.words))
        told = (Element("first"),) if first else ()
        ordered = any(
            next(connectives.ORDERED.ends(self.words, i), 0) for i in range(len(self.words))
        )
        for start in self._goal_starts(0, LEADING):
            for elements, end in self._chain(start):
                if end in ends:
                    about = self._remark_subjects(start) if start in self.remarked else ()
                    after = (Element("remark"),) if end in self.followed else ()
                    after = (*after, Element("order")) if ordered else after
                    found[*told, *about, *elements, *after] = None
        return list(found)

    def _can_end(self) -> set[int]:
        """Where the sentence may end: behind it stands only what says nothing."""
        ends = {len(self.words), len(self.words) - (self.words[-1:] == ("now",))}
        for at in range(len(self.words) - 1, 0, -1):
            start = at + (self.words[at] == ",")
            said = {*self._matches_end(start, (*POLITE, *TOOLS)), *self._past_address(start)}
            if start in ends or ends & said:
                ends.add(at)
                self.followed |= {at} if start in self.followed else set()
            elif ends & {*self._past_remarks(at)}:
                ends.add(at)
                self.followed.add(at)
        return ends

    def _past_address(self, i: int) -> Iterator[int]:
        """Who is called: "robot", "little ant"."""
        for text in ("[my|little|dear|mister] HAND", "[you] [little] HAND"):
            for slots, end in self.clauses.filled(pattern(text), i):
                if self.words[i] != "you" and slots["HAND"]:
                    yield end

    def _matches_end(self, i: int, texts: tuple[str, ...]) -> list[int]:
        """Where what some of these patterns say at ``i`` ends."""
        key = texts, i
        if key not in self.ended:
            fit = patterns(*texts).at(self.clauses.word(i))
            found = (end for _, what in fit for _, end in self.clauses.filled(what, i))
            named = self.clauses.named
            if i and ("can",) in self.clauses.things.nouns and self.clauses.word(i + 1) != "you":
                named |= {i}  # "and can right of it"
            cans = [k for k in named if self.clauses.word(k) == "can"]
            self.ended[key] = [e for e in dict.fromkeys(found) if not any(i <= k < e for k in cans)]
        return self.ended[key]

    def _remark_subjects(self, i: int) -> Elements:
        """What a remark that ends at ``i`` speaks of: "the ball is hot, so stay away from it"."""
        found = [p for at in range(i) for p, _ in self.clauses.phrases.one(at)[:1]]
        things = tuple(dict.fromkeys(p for p in found if isinstance(p, Referent)))
        return (Element("remark", Clause("leads", None, things)),)

    def _past_remarks(self, i: int) -> list[int]:
        """Where reasons and remarks at ``i`` end; what may be a goal itself is none."""
        start = i + (self.clauses.word(i) == ",")
        if start == i and i and self.clauses.word(i) not in ("because", "since", "so"):
            return []
        goals = {end for _, end in self.clauses.statement(start)}
        return [end for end in self._matches_end(start, REASONS) if end not in goals]

    def _longest_phrase_end(self, i: int, phrases: PhraseTable) -> int:
        """Where the longest of the phrases at ``i`` ends; 0: none stands there."""
        return next(phrases.ends(self.words, i), 0)

    def _phrase_ends(self, i: int, table: PhraseTable) -> Iterator[int]:
        return phrase_ends(self.clauses.phrases, i, table)

    def _goal_starts(self, i: int, leading: tuple[str, ...] = ()) -> dict[int, bool]:
        """Where a goal may begin that is introduced at ``i``, and whether more than politely."""
        found, todo = {i: False}, [i]
        while todo:
            at = todo.pop()
            said = (*POLITE, *VIEWS, *TOOLS, *leading)
            ends = [(end, found[at]) for end in self._matches_end(at, said)]
            ends += [
                (end, found[at]) for end in self._past_address(at) if self.clauses.word(end) == ","
            ]
            ends += [(end, True) for end in self._matches_end(at, OPENERS)]
            for end in self._past_remarks(at) if leading and not found[at] else ():
                ends += [(after, False) for after in self._phrase_ends(end, connectives.SO_NOW)]
                self.remarked |= {*self._phrase_ends(end, connectives.SO_NOW)}
            for end, more in ends:
                if at in self.remarked:
                    self.remarked.add(end)
                    self.remarked |= {self._longest_phrase_end(end, connectives.TO)} - {0}
                for start in (end, self._longest_phrase_end(end, connectives.TO)):
                    if start and found.get(start) is not False and start not in found:
                        found[start] = more
                        todo.append(start)
        return found

    # --------------------------------------------------------------------------------- chains

    def _chain(self, i: int) -> Iterator[tuple[Elements, int]]:
        """The first elements at ``i``, and all that may follow."""
        for lead, start in self._before_goal(i):
            if lead and start == len(self.words):
                yield lead, start  # a negation alone
            for elements, end in self._element(start, "", first=True):
                # what leads is joined to what it leads by nothing or a comma
                for rest, last in self._after_element(end):
                    yield (*lead, *elements, *rest), last

    def _before_goal(self, i: int) -> Iterator[tuple[Elements, int]]:
        """What may stand before the first goal: "slowly", "within 3 seconds,", "never ..., and"."""
        yield (), i
        for element, end in (*self._modifier(i), *self._constraint(i)):
            lasts = element.clause is not None and element.clause.lasting and element.clause.told
            if element.how in ("order", "loose") or lasts and element.how == "always":
                continue
            if element.how == "along":
                comma = self._longest_phrase_end(end, connectives.COMMA) or end
                yield from (((element, *more), last) for more, last in self._before_goal(comma))
            after = self._longest_phrase_end(end, connectives.TIDY)
            clause = element.clause
            bounded = clause is None or clause.much is not None or clause.verb in ("avoid", "leave")
            for last in self._matches_end(
                end, TOOLS
            ):  # "without touching it with the gripper, ..."
                if element.how == "never" and (
                    after_tool := self._longest_phrase_end(last, connectives.COMMA)
                ):
                    yield (element,), after_tool
            ends = (
                self.clauses.word(end) == "and" and self.clauses.word(end + 1) in connectives.ENDS
            )
            if element.how in ("never", "always"):  # "never touch it while you ..."
                told = self.clauses.phrases.at(i)  # "it never does while touching": only then?
                for last in self._phrase_ends(
                    end, connectives.WHILE_YOU if told else connectives.AS_YOU
                ):
                    yield (element,), last
            if not bounded and not ends and self.clauses.word(end) not in (",", ""):
                continue  # "do not open it and put it away": is that not to be either?
            yield (element,), end
            if after:
                yield (element,), self._longest_phrase_end(after, connectives.TIDY) or after
        for after in self._phrase_ends(i, connectives.TWO):
            yield (Element("either"),), after
        for phrase, end in self.clauses.phrases.at(i):
            if after := self._longest_phrase_end(end, connectives.COMMA):  # "the cube: touch it"
                yield (Element("topic", Clause("leads", None, (phrase,))),), after
        for slots, end in self.clauses.filled(pattern(connectives.YOU_HAVE), i):
            yield (Element("within", much=slots["ENDS"]),), end  # "you have 3 seconds to touch it"
        for word in ("after", "before", "once", "when", "having"):
            if self.words[i : i + 1] == (word,):
                having = word in ("when", "having")
                for clause, end in self.clauses.having(i) if having else self.clauses.timed(i + 1):
                    by = "before" if word == "before" else "then"
                    goal, turn = Element("goal", clause), Element("turn", by=by)
                    if after := self._longest_phrase_end(end, connectives.COMMA):
                        yield (goal, turn), after
                    for more, last in self._modifier(end):
                        if more.how == "for" and (
                            after := self._longest_phrase_end(last, connectives.COMMA)
                        ):
                            yield (goal, more, turn), after

    def _after_element(self, i: int) -> list[tuple[Elements, int]]:
        """All that may follow an element that ends at ``i``."""
        if i not in self.known:
            found: dict[tuple[Elements, int], None] = {((), i): None}
            for elements, end in self._next_elements(i):
                for rest, last in self._after_element(end):
                    found[(*elements, *rest), last] = None
            self.known[i] = list(found)
        return self.known[i]

    def _next_elements(self, i: int) -> Iterator[tuple[Elements, int]]:
        comma = i + (self.clauses.word(i) == ",")
        for end in (*self._matches_end(i, TOOLS), *self._matches_end(comma, POLITE)):
            yield (), end
        for end in self._matches_end(i, VIEWS):
            yield (Element("view"),), end
        for predicates, text in IMPLIED:
            for _, end in self.clauses.filled(pattern(text), i):
                if end > i:
                    yield (Element("implied", by=predicates),), end
        end = self._longest_phrase_end(i, connectives.FIRST)
        if end and end < len(self.words):
            yield (), end
        if end := self._longest_phrase_end(comma, connectives.AT_ONCE):
            yield (Element("at_once"),), end
        for element, end in self._modifier(i):
            yield (element,), end
        for element, end in self._constraint(i):
            yield (element,), end
        if end := self._longest_phrase_end(i, connectives.COMMA):
            for element, last in self._modifier(end):
                yield (element,), last
        for by, phrases in connectives.JOINS.items():
            for start in self._phrase_ends(i, phrases):
                if by in ("before", "after") and self.words[start : start + 1] in connectives.THIS:
                    continue  # "before that, the ball", or before that ball?
                yield from self._element(start, by)

    def _element(self, i: int, by: str, first: bool = False) -> Iterator[tuple[Elements, int]]:
        """One goal or constraint; "and touch it afterwards" is as good as "then touch it"."""
        for elements, end in self._plain_element(i, by, first):
            yield elements, end
            if by in ("and", ",", "then") and not first and elements[-1].how == "goal":
                for last in self._phrase_ends(end, connectives.LATER):
                    yield (replace(elements[-1], by="then"),), last

    def _plain_element(self, i: int, by: str, first: bool) -> Iterator[tuple[Elements, int]]:
        """One goal or constraint with what only introduces it."""
        starts = {i: False}
        if end := self._longest_phrase_end(i, connectives.FIRST) if first else 0:
            starts[end] = False
        for start in list(starts):
            starts = {**self._goal_starts(start), **starts}
        for start, opened in starts.items():
            for element, end in self._constraint(start):
                if not first and by != "end":
                    yield (replace(element, by=by),), end
                for until, last in self._constraint(end) if element.how == "never" else ():
                    if until.how == "until":  # "do not touch it until ..."
                        yield (replace(element, by=by), until), last
            after = self._longest_phrase_end(start, connectives.SLOWLY)
            for clause, end in self._goal_clauses(after, by, first, opened) if after else ():
                yield (Element("goal", clause, by=by), Element("slowly", by="lead")), end
            introduced = start > i or first and start > 0
            if self.clauses.word(start) in ("never", "not"):
                continue
            if introduced and self.words[start - 1] == "to":  # an order follows, nothing else
                for clause, end in self.clauses.clause("base", start):
                    if not clause.mood:
                        yield (Element("goal", clause, by=by),), end
                continue
            for clause, end in self._goal_clauses(start, by, first, opened):
                if not (opened and clause.bare):
                    yield (Element("goal", clause, by=by),), end
            for element, at in self._modifier(start) if by in ("and", "then") else ():
                if element.how == "within":  # "and within 8 s the cube"
                    after = self._longest_phrase_end(at, connectives.COMMA) or at
                    for clause, end in self._goal_clauses(after, by, first, opened):
                        yield (Element("goal", clause, by=by), replace(element, by="part")), end
            for after in self._matches_end(start, STARTERS):
                going = self.words[start:after] in (("go",), ("come",))
                for clause, end in self.clauses.clause("base" if going else "ing", after):
                    if not clause.mood:
                        yield (Element("goal", clause, by=by),), end

    def _goal_clauses(
        self, i: int, by: str, first: bool, opened: bool
    ) -> Iterator[tuple[Clause, int]]:
        """The clauses that may stand for a goal here."""
        for clause, end in self._any_goal(i, by, first, opened):
            nothing_but = by in ("but", "and", ",") and clause.bare and not clause.predicate
            nors = [o for o in clause.objects if isinstance(o, ReferentList) and o.how == "nor"]
            # "just this, and nothing else" is no "never"; "but neither of these" is
            nothing_but &= (
                by == "but"
                and not nors
                or any(isinstance(p, Anaphor) and not p.count for o in nors for p in o.parts)
            )
            if not clause.mood and not nothing_but:
                yield clause, end

    def _any_goal(self, i: int, by: str, first: bool, opened: bool) -> Iterator[tuple[Clause, int]]:
        forms = "base statement" + " wanted" * opened
        if first or opened:
            forms += " ing verbless relation" + " ways" * first
        elif by != "end":
            forms += " fragment continued" + " ing" * (by in ("and", "then"))
            forms += " timed" * (by in ("before", "after"))
            if by in ("and", "then") and self.clauses.word(i) == "to":
                yield from self.clauses.clause("base", i + 1)
        yield from self.clauses.said(forms, i)

    # ------------------------------------------------------------------------ what goes along

    def _modifier(self, i: int) -> Iterator[tuple[Element, int]]:
        """ "for a second", "within 3 s", "slowly", "in this order", "all the time"."""
        for how, text in connectives.TIMES:
            for slots, end in self.clauses.filled(pattern(text), i):
                [much] = slots.values()
                yield Element("for" if how == "wait" else how, much=much, by=how), end
        for how, phrases in connectives.MODIFIERS.items():
            if end := self._longest_phrase_end(i, phrases):
                yield Element(how, by="any" if how == "either" else ""), end

    def _constraint(self, i: int) -> list[tuple[Element, int]]:
        """ "without touching it", "never go near it", "while staying above it", "until ..."."""
        if i not in self.bounds:
            self.bounds[i] = list(dict.fromkeys(self._bounds(i)))
        return self.bounds[i]

    def _bounds(self, i: int) -> Iterator[tuple[Element, int]]:
        for how, text in connectives.CONSTRAINTS:
            for slots, end in self.clauses.filled(pattern(text), i):
                [(slot, said)] = slots.items()
                clause = Clause("touch", None, (said,)) if slot == "S" else said
                named, _, negated = (how or clause.mood).partition(" ")
                yield Element(named, clause, negated=bool(negated)), end
        for start in {i, self._longest_phrase_end(i, connectives.COMMA) or i}:
            for how, clause, end in self.clauses.beside(start):
                yield Element(how, clause), end
