"""From what was said to a formula: which things are meant, which numbers, and what holds when."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from reward_models.base import TaskCard
from reward_models.goals.formula import (
    Atom,
    Choice,
    Formula,
    FormulaError,
    Joined,
    Term,
    atoms,
    check,
    join,
    kind,
    parts_of,
)
from reward_models.goals.predicates import BODY, FURNITURE, MARKS, PREDICATES
from reward_models.goals.reader.clauses import Clause
from reward_models.goals.reader.quantities import Much
from reward_models.goals.reader.sentences import Element, Elements
from reward_models.goals.reader.things import Many, Phrase, Said, Thing, Things
from reward_models.goals.reader.wordings import OF
from reward_models.goals.refusal import Refusal

Refuse = Callable[[str, str], Refusal]
_PLAIN = frozenset({"touch", "above", "left_of", "right_of", "far", "next_to"})
# Predicates that say the same the other way round: "never closer than" is "always at least".
_CONVERSE = {"near": "far", "far": "near", "slower": "faster", "faster": "slower"}
# What one thing cannot be at once, or two things to each other.
_OPPOSED = tuple(
    set(pair.split("/"))
    for pair in (
        "left_of/right_of in_front_of/behind above/touch far/touch far/above far/next_to "
        "open/closed upright/toppled on/lifted inside/lifted inserted/lifted grasped/released "
        "lifted/released still/faster kneel/raise_arms kneel/stand_up lie_down/forward "
        "kneel/forward lie_down/stand_up forward/backward front_flip/back_flip lie_down/wave "
        "still/forward"
    ).split()
)
_FROM = frozenset({"far", "apart", "away", "left_of", "right_of"})
_SIDES = {"left_of", "right_of"}
_WAYS = frozenset("left_of right_of in_front_of behind".split())
# Where a thing may be put: what one verb says of two things.
_PLACED = _FROM | frozenset("near next_to in_front_of behind on on_top inside between".split())
_ONE_WAY = frozenset("on inside inserted above left_of right_of in_front_of behind".split())
_SEEN = frozenset({"left_of", "right_of", "touch"})  # what is said of a picture
_BEING = frozenset({"", "be", "touch", "contact", "reach", "meet", "lie", "stand", "sit", "rest"})
_MOVING = frozenset("push|move|slide|shove|nudge|roll|drag|pull|carry|send|take|go|come".split("|"))
_ENDS = frozenset({"end up", "end", "finish", "finish up"})
_ALONG = frozenset({"while", "never", "always", "until"})
# What is not so yet when an episode begins.
_BROUGHT = frozenset("touch on inside inserted grasped lifted pressed moved toppled".split())
_BOUNDS = frozenset({"apart", "near", "away"})
_PASSES = frozenset({"forward", "backward", "front_flip", "back_flip", "wave"})
_LIFTING = frozenset({"lift", "raise", "lower", "drop"})
_MOVES = frozenset({"push", "place", "insert", "lift"})


@dataclass
class _Part:
    """A goal of the sentence, joined ``by`` a word to the one before."""

    by: str
    formula: Formula
    clause: Clause
    slow: bool = False
    avoided: list[Formula] = field(default_factory=list)


def _short(value: float) -> float:
    """Without what binary fractions add: 7 cm are .07 m."""
    return round(value, 9) if abs(round(value, 9) - value) < 1e-12 else value


class Meaning:
    """One reading of one sentence; remembers what was said so far."""

    def __init__(self, things: Things, card: TaskCard, refuse: Refuse) -> None:
        self.things, self.card, self.refuse = things, card, refuse
        assert things.actor is not None
        self.actor = things.actor.name
        self.said: list[Term] = []
        self.last: Clause | None = None  # with what it was about filled in
        self.mover: Phrase = Thing(self.actor)
        self.it = False  # the clause said "it"
        self.beside = False  # a remark named things
        self.backward = False  # something spoke of what was said before
        self.above = False  # the clause asks for a place above something
        # the one who acts was named, and may be "it"; a body alone is
        self.named = not things.objects

    # ------------------------------------------------------------------------------- sentences

    def formula(self, elements: Elements) -> Formula:
        """The formula of a reading; Refusal where it has none."""
        parts: list[_Part] = []
        always: list[Formula] = []
        lead: list[Element] = []
        whole: Much | None = None
        turn, split_at = "", 0
        views = at_once = remarked = once = topic = False
        either = ""
        hows = [element.how for element in elements]
        along: list[tuple[Element, Formula, bool]] = []  # "while staying above it, ..."
        throughout = kept = False
        led = ""
        elements = self._looking_ahead(elements)
        first_hold: float | None = None
        if "first" in hows and not {"then", "before", "after"} & {e.by for e in elements}:
            raise self.refuse("ambiguous", "'first' what, and then what?")
        for at, element in enumerate(elements):
            rest = elements[at + 1 :]
            match element.how:
                case "turn":
                    turn, split_at = element.by, len(parts)
                case "goal":
                    if self._leads_only(element.clause) and self._led_to(rest):
                        led = element.by if parts else ""
                        continue
                    if led:  # "then fetch it and put it there"
                        element, led = replace(element, by=led), ""
                    made, negated = self.clause(element.clause, element.by)
                    if negated:
                        if element.by in ("before", "after", "or"):
                            raise self.refuse("unsupported", f"nothing is done {element.by!r} it")
                        always += self._never(made)
                        kept = True
                        continue
                    clause = element.clause
                    assert clause is not None
                    if element.by == "but" and parts and self._touches(parts[-1].formula, made):
                        raise self.refuse("ambiguous", "at once or one after the other? Say 'then'")
                    told = bool(parts) and parts[-1].clause.told and element.by in ("and", "but")
                    if parts and clause.predicate == "still" and element.by in ("and", "but"):
                        told |= not parts[-1].clause.verb and parts[-1].clause.subject is not None
                    if told and clause.subject is None and not clause.bare:
                        raise self.refuse("ambiguous", "who or what is the second half about?")
                    before = elements[at - 1].how if at else ""
                    if self._apart_again(clause, element.by, parts):
                        raise self.refuse("ambiguous", "so far to that side, or so far at all?")
                    if clause.bare and element.by in ("and", "or", "") and before in _ALONG:
                        raise self.refuse("ambiguous", f"does that go on with {before!r}?")
                    bound = clause.much is not None and not clause.much.just
                    if clause.lasting and (
                        element.by == "but"
                        and not self._plain(clause, made)
                        or element.by == ","
                        and bound
                        and parts
                        and not parts[-1].clause.lasting
                    ):
                        always.append(self._always(made))
                        kept = True
                        continue
                    kept = False
                    if once:
                        made, once = self._once(made), False
                    by = "end" if element.by == "and" and clause.verb in _ENDS else element.by
                    if by == "," and clause.bare and bound and clause.predicate in _BOUNDS:
                        by = "and"  # "above the ball, at least 10 cm from the can"
                    if clause.verb == "likewise" and by == ",":
                        by = "and"  # "the cube left of it, the can right of it"
                    if throughout:
                        throughout = False
                        always.append(self._always(made))
                        continue
                    parts.append(_Part(by, made, clause))
                    if first_hold is not None:
                        self._hold(parts, first_hold)
                        first_hold = None
                    for waiting in along:
                        self._along(waiting[0], parts, *waiting[1:])
                    along.clear()
                case "never" | "always":
                    assert element.clause is not None
                    made, negated = self.clause(element.clause, element.by)
                    if element.how == "always" and not negated:
                        always.append(self._always(made))
                        continue
                    later = any(e.by == "then" for e in rest if e.how == "goal")
                    there = [e.how for e in rest[:1]] == ["there"] and len(self._steps(parts)) > 1
                    if parts and (later and element.by in ("", ",") or there):
                        parts[-1].avoided += self._not(made)
                    else:
                        always += self._never(made)
                case "not":
                    assert element.clause is not None
                    made, _ = self.clause(element.clause, element.by)
                    if not parts or kind(parts[-1].formula) != "state":
                        raise self.refuse("unsupported", "'not' what? Say 'never'")
                    found = parts_of(parts[-1].formula, "and")
                    parts[-1].formula = join("and", *found, *self._not(made))
                case "until" if at and elements[at - 1].how == "never":
                    # "do not touch it until the cube is there"
                    made, _ = self.clause(element.clause, "and")
                    last = elements[at - 1].clause
                    assert last is not None
                    shunned = self._not(self.clause(last, "")[0])
                    del always[-len(shunned) :]
                    kept = shunned[0] if len(shunned) == 1 else join("and", *shunned)
                    parts.append(_Part("", join("until", kept, made), last))
                case "while" if [e.how for e in rest[:1]] == ["along"] and not element.negated:
                    made, negated = self.clause(element.clause, "and")
                    always += self._never(made) if negated else [self._always(made)]
                case "while" | "until":
                    assert element.clause is not None
                    made, negated = self.clause(element.clause, "and")
                    if not parts and element.by == "":
                        along.append((replace(element, by="lead"), made, negated))
                        continue
                    if not parts:
                        raise self.refuse("ambiguous", f"{element.how!r} what?")
                    self._along(element, parts, made, negated)
                case "for":
                    assert element.much is not None and element.much.least is not None
                    if element.by == "wait" and parts:
                        if any(a.terms[0] != self.actor for a in atoms(parts[-1].formula)):
                            raise self.refuse("unsupported", "wait how? Say what is to be held")
                    if not parts and element.by == "for" and hows.count("goal") == 1:
                        first_hold = element.much.least  # "for 2 seconds, stay ..."
                        continue
                    self._hold(parts, element.much.least)
                case "within":
                    assert element.much is not None and element.much.most is not None
                    after = any(e.how == "goal" for e in rest)
                    timed = [p for p in parts[:-1] if any(q.operator == "within" for q in
                             self._joints(p.formula))]  # fmt: skip
                    if element.by == "part" and whole is not None and len(parts) == 2:
                        first = parts[0]  # "within 4 s A and within 8 s B"
                        first.formula = join("within", first.formula, seconds=whole.most or 0.0)
                        whole, timed = None, [first]
                    if parts and (after or timed or element.by == "part"):
                        last = parts[-1]
                        last.formula = self._by_then(last.formula, element.much.most)
                    elif whole is not None:
                        raise self.refuse("ambiguous", "two deadlines: which one counts?")
                    else:
                        whole = element.much
                case "slowly":
                    if element.by == "lead" and parts:
                        parts[-1].slow = True
                    else:
                        lead.append(element)
                case "along" if at == 0 and rest:
                    throughout = rest[0].how not in _ALONG
                case "along":
                    if elements[at - 1].how == "goal" and kept:
                        continue  # "but keep it upright all the time"
                    if elements[at - 1].how in _ALONG:
                        continue  # "never touching it at any time"
                    if not parts or elements[at - 1].how != "goal":
                        raise self.refuse("ambiguous", "what is to hold all the time?")
                    always.append(self._always(parts.pop().formula))
                case "there":
                    if elements[at - 1].how != "never" or not parts:
                        raise self.refuse("ambiguous", "what is to be on the way?")
                case "once":
                    once = not parts
                    if parts:
                        parts[-1].formula = self._once(parts[-1].formula)
                case "either":
                    either = element.by or "two"
                case "topic":
                    topic = True
                    for phrase in element.clause.objects if element.clause else ():
                        self._terms(phrase)
                case "implied":
                    if not parts or not self._implies(parts[-1].formula, element.by.split()):
                        raise self.refuse("unsupported", "that asks for more than the goal is")
                case "remark":
                    remarked = self.beside = True
                    for phrase in element.clause.objects if element.clause else ():
                        self._terms(phrase)
                case "view":
                    views = True
                case "at_once":
                    at_once = True
                case "order" | "loose":
                    self._ordered(parts, element.how)
        if either and not any(
            p.by == "or"
            and not p.clause.bare
            or either == "any"
            and len(parts_of(p.formula, "or")) > 1
            for p in parts
        ):
            raise self.refuse("ambiguous", "either what, or what?")
        if topic and not self.backward:
            raise self.refuse("ambiguous", "what comes first: what of it?")
        made = self._joined(parts, always, lead, whole, turn, split_at)
        if views and any(a.predicate not in _SEEN for a in atoms(made)):
            raise self.refuse("ambiguous", "only left and right are as the picture shows them")
        if remarked and not (isinstance(made, Atom) and not made.numbers):
            raise self.refuse("unsupported", "only one plain goal is read beside a remark")
        if along:
            raise self.refuse("ambiguous", f"{along[0][0].how!r} what?")
        if first_hold is not None:
            raise self.refuse("ambiguous", "hold what?")
        if at_once and len(list(atoms(made))) < 2:
            raise self.refuse("ambiguous", "at the same time as what?")
        return made

    def _once(self, formula: Formula) -> Formula:
        if kind(formula) != "state":
            raise self.refuse("unsupported", "only a state is to be at some moment")
        return join("once", formula)

    @staticmethod
    def _by_then(formula: Formula, seconds: float) -> Formula:
        """Within a time; "at some moment within 3 s" is no more than that."""
        if isinstance(formula, Joined) and formula.operator == "once":
            formula = formula.parts[0]
        return join("within", formula, seconds=seconds)

    def _joints(self, formula: Formula) -> Iterator[Joined]:
        if isinstance(formula, Joined):
            yield formula
            for part in formula.parts:
                yield from self._joints(part)

    @staticmethod
    def _implies(formula: Formula, predicates: list[str]) -> bool:
        """Whether a goal is one of these, whose success holds what is said besides."""
        return isinstance(formula, Atom) and formula.predicate in predicates

    def _joined(
        self,
        parts: list[_Part],
        always: list[Formula],
        lead: list[Element],
        whole: Much | None,
        turn: str,
        split_at: int,
    ) -> Formula:
        if not parts and not any(f.operator == "always" for f in always if isinstance(f, Joined)):
            raise self.refuse(
                "unsupported", "a negation alone gives nothing to do: say what is to be reached too"
            )
        for part in parts if len(parts) > 1 else []:  # "move slower than 5 cm/s and touch it"
            if part.clause.predicate in ("slower", "faster") and part.by in ("", "and", ",", "but"):
                if part.clause.verb in _MOVING | {"keep", "hold", "stay", "travel", ""}:
                    always.append(self._always(part.formula))
                    part.by = "manner"
        after = [p for p in parts if p.by != "manner"]
        if parts and after and len(after) < len(parts):
            after[0].by = ""
            parts[:] = after
        single = len(parts) == 1
        slow = Atom.of("slower", self.actor)
        for part in parts:
            if part.slow and not single:
                part.formula = join("while", part.formula, slow)
            if part.avoided:
                nots = part.avoided
                together = nots[0] if len(nots) == 1 else join("and", *nots)
                part.formula = join("while", part.formula, together)
        slowly = bool(lead) or (single and parts[0].slow)
        if slowly and self.things.actor is not None and self.things.actor.kind == BODY:
            raise self.refuse("unsupported", "'slowly' how fast? Say a pace, as in 'at 0.5 m/s'")
        if lead and len(self._steps(parts)) > 1:
            raise self.refuse("ambiguous", "'slowly' what: all of it, or one part?")
        bounds = [a for f in always for a in atoms(f) if a.predicate == "slower"]
        if slowly and not any(a.terms == slow.terms for a in bounds):
            always.append(join("always", slow))
        if not parts:
            return always[0] if len(always) == 1 else join("and", *always)
        for at in range(len(parts) - 1, 1, -1):  # "open it, put it inside, then close it"
            if parts[at].by == "then" and parts[at - 1].by == ",":
                parts[at - 1].by = "then"
                held = parts[at - 1].formula
                if isinstance(held, Joined) and held.parts[0] == parts[at - 2].formula:
                    del parts[at - 2]  # "touch it, wait there for a second, then ..."
        steps = self._steps(parts)
        if turn:
            if len(steps) > 1:
                raise self.refuse("ambiguous", "'after' or 'before' together with 'then'")
            first, second = parts[:split_at], parts[split_at:]
            pair = [self._together(first), self._together(second)]
            goal: Formula = join("then", *(pair if turn == "then" else pair[::-1]))
        elif any(p.by in ("before", "after") for p in parts):
            at = next(k for k, p in enumerate(parts) if p.by in ("before", "after"))
            if len(steps) > 1 or sum(p.by in ("before", "after") for p in parts) > 1:
                raise self.refuse("ambiguous", "'after' or 'before' together with 'then'")
            if len(parts) - at > 1 and any(not p.clause.bare for p in parts[at + 1 :]):
                raise self.refuse("ambiguous", f"what is {parts[at].by!r} about? Say 'then'")
            pair = [self._together(parts[:at]), self._together(parts[at:])]
            if pair[0] == pair[1] and self.it:
                raise self.refuse("ambiguous", "the same before and after?")
            goal = join("then", *(pair if parts[at].by == "before" else pair[::-1]))
        else:
            formulas = [self._together(step) for step in steps]
            formulas = self._led(formulas)
            goal = formulas[0] if len(formulas) == 1 else join("then", *self._flat(formulas))
        if whole is not None:
            assert whole.most is not None
            goal = self._by_then(goal, whole.most)
        if isinstance(goal, Atom) and goal.predicate == "balanced":
            goal = join("always", goal)  # to balance is to keep doing it
        self._possible(goal, always)
        if always:
            return join("and", *parts_of(goal, "and"), *dict.fromkeys(always))
        return goal

    def _possible(self, goal: Formula, always: list[Formula]) -> None:
        """Refuses a constraint that its own goal, or how everything begins, breaks."""
        wanted = set(atoms(goal))
        kept = [a for one in always if isinstance(one, Joined) and one.operator == "always"
                for a in parts_of(one.parts[0], "and")]  # fmt: skip
        if self._contradict([*parts_of(goal, "and"), *kept]):
            raise self.refuse("ambiguous", "these cannot be at once")
        handled = {a.terms[0] for a in wanted if a.terms[0] != self.actor}
        for one in always:
            assert isinstance(one, Joined)
            for atom in atoms(one):
                kept = one.operator == "always"
                undone = not kept and (
                    atom in wanted or (atom.predicate == "touch" and atom.terms[-1] in handled)
                )
                still = atom.predicate == ("faster" if kept else "still")
                still |= not kept and atom.predicate == "slower"
                shut = (
                    kept
                    and atom.predicate == "closed"
                    and any(a.predicate in ("inside", "open") for a in wanted)
                )
                if undone or still or shut:
                    raise self.refuse("unsupported", f"{one} cannot be kept here")

    def _touches(self, *formulas: Formula) -> bool:
        """Whether all of these are that the gripper touches something."""
        return all(isinstance(f, Atom) and f.predicate == "touch" for f in formulas)

    @staticmethod
    def _led_to(rest: Elements) -> bool:
        """Whether a goal follows that may be what was led up to."""
        following = next((e for e in rest if e.how == "goal"), None)
        if following is not None and following.clause is not None:
            if following.clause.predicate == "released":
                return False  # "grip it and let it go": the first is asked for too
        return following is not None and following.by in ("and", "then", ",", "")

    def _leads_only(self, clause: Clause | None) -> bool:
        """Whether a clause takes hold of what is no thing to carry: "grab the handle and pull"."""
        if clause is not None and clause.predicate == "leads":
            for phrase in (clause.subject, *clause.objects):
                if phrase is not None:
                    self._terms(phrase)
            return True
        if clause is None or clause.predicate != "grasped" or not isinstance(clause.subject, Thing):
            return False
        return "pull" in self.card.entity(str(clause.subject.term)).affordances

    @staticmethod
    def _flat(formulas: list[Formula]) -> Iterator[Formula]:
        for formula in formulas:
            yield from parts_of(formula, "then")

    @staticmethod
    def _steps(parts: list[_Part]) -> list[list[_Part]]:
        """The parts, cut where one is to follow the other."""
        steps: list[list[_Part]] = []
        for part in parts:
            if part.by == "then" or not steps:
                steps.append([])
            steps[-1].append(part)
        return steps

    def _together(self, parts: list[_Part]) -> Formula:
        """What one step asks for: its parts at once, or one of them."""
        joins = {part.by for part in parts[1:]} - {"before", "after"}
        found = list(dict.fromkeys(part.formula for part in parts))
        found = [f for f in found if not any(self._told_again(f, g) for g in found)]
        if len(found) == 1:
            if "and" in joins and len({p.clause.verb or p.clause for p in parts}) == 1:
                raise self.refuse("ambiguous", "the same twice? It counts once")
            return found[0]
        if "or" in joins:
            if parts[0].by == "then" and any(p.clause.bare for p in parts[1:]):
                raise self.refuse("ambiguous", "'or' what: the last part, or all of it?")
            if joins != {"or"}:
                raise self.refuse("ambiguous", "'and' together with 'or': say one of them alone")
            return join("or", *found)
        verbs = all(p.clause.verb and not p.clause.lasting and not p.clause.told for p in parts)
        if joins == {","} and verbs and self._follow(found):
            return join("then", *(p.formula for p in parts))  # "touch it, go away from it"
        if joins == {","}:
            raise self.refuse("ambiguous", "only a comma between two goals: say 'then' or 'and'")
        if parts[-1].by == "end":
            before = self._together(parts[:-1])
            own = all(a.terms[0] == self.actor for a in atoms(before))  # a thing stays put
            before = join("once", before) if kind(before) == "state" and own else before
            return join("and", before, parts[-1].formula)
        found = self._led(self._held(self._one_way(found)), at_once=True)
        if len(found) == 1:
            return found[0]
        flat = [p for f in found for p in parts_of(f, "and")]
        ordered = [p for p in parts if p.formula in found]
        if self._contradict(flat):
            last = found[-1]
            if len(found) == 2 and isinstance(last, Atom) and last.predicate == "released":
                return join("then", *found)  # what is let go was held before
            if len(found) > 2 and all(isinstance(f, Atom) for f in found) and "," in joins:
                return join("then", *found)  # "open it, put the cube inside and close it"
            raise self.refuse("ambiguous", "these cannot be at once: say 'then' if one follows")
        reached = any(isinstance(f, Atom) and f.predicate in ("touch", "above") and
                      f.terms[0] == self.actor for f in found)  # fmt: skip
        if self.it and reached and len(found) > 1:
            if any(p.clause.verb and not p.clause.lasting for p in ordered[1:]):
                raise self.refuse("ambiguous", "at once or one after the other? Say 'then'")
        return found[0] if len(found) == 1 else join("and", *found)

    def _follow(self, found: list[Formula]) -> bool:
        """Whether each of these can only come after the one before."""
        if len(self._led(found, at_once=True)) < len(found):
            return False  # "pick it up, put it there" asks for no lifting
        bare = [f.parts[0] if isinstance(f, Joined) and f.operator == "hold" else f for f in found]
        return all(self._contradict([a, b]) for a, b in itertools.pairwise(bare))

    @staticmethod
    def _apart_again(clause: Clause, by: str, parts: list[_Part]) -> bool:
        """ "right of it, at least 7 cm from it", which is rather how far to the right."""
        last = parts[-1].formula if parts else None
        side = isinstance(last, Atom) and last.predicate in _WAYS and not last.numbers
        return side and by == "," and clause.bare and clause.objects == (Said("it"),)

    def _looking_ahead(self, elements: Elements) -> Elements:
        """With what leads and speaks of "it" behind the goal that names it: "without lifting it,
        push the cube to the ball"."""
        at = next((k for k, e in enumerate(elements) if e.how == "goal"), 0)
        lead = elements[:at]
        if not any(e.how == "never" and self._about_it(e.clause) for e in lead):
            return elements
        if any(e.how not in ("never", "always") for e in lead) or self._about_it(
            elements[at].clause
        ):
            return elements
        if any(e.how == "goal" for e in elements[at + 1 :]):
            return elements
        return (elements[at], *lead, *elements[at + 1 :])

    def _about_it(self, clause: Clause | None) -> bool:
        phrases = (clause.subject, *clause.objects) if clause else ()
        return any(p is not None and self._has_it(p) for p in phrases)

    @staticmethod
    def _told_again(less: Formula, more: Formula) -> bool:
        """Whether the second says the first with a number: "behind it, 5 to 8 cm behind it"."""
        pair = isinstance(less, Atom) and isinstance(more, Atom)
        return (
            pair
            and not less.numbers
            and more.numbers
            and ((less.predicate, less.terms) == (more.predicate, more.terms))
        )

    @staticmethod
    def _one_way(found: list[Formula]) -> list[Formula]:
        """With ways of one thing along two axes as one: "7 cm left and 4 cm forward"."""
        ways = [f for f in found if isinstance(f, Atom) and f.predicate == "moved"]
        if len(ways) == 2 and ways[0].terms == ways[1].terms:
            both = [dict(w.numbers) for w in ways]
            if not both[0].keys() & both[1].keys():
                one = Atom.of("moved", *ways[0].terms, **both[0], **both[1])
                return [one, *(f for f in found if f not in ways)]
        return found

    @staticmethod
    def _held(found: list[Formula]) -> list[Formula]:
        """Without a state that another part holds for a time."""
        held = [f.parts[0] for f in found if isinstance(f, Joined) and f.operator == "hold"]
        held += [Atom(f.predicate, f.terms) for f in held if isinstance(f, Atom)]
        return [f for f in found if f not in held]

    def _contradict(self, found: list[Formula]) -> bool:
        for a, b in itertools.combinations([f for f in found if isinstance(f, Atom)], 2):
            if {a.predicate, b.predicate} == {"near", "far"} and {*a.terms} == {*b.terms}:
                said = dict((*a.numbers, *b.numbers))
                if said.get("within", 0.0) < said.get("least", 0.0):
                    return True
            if (
                {*a.terms} == {*b.terms}
                or a.terms[0] == b.terms[0]
                and "lifted" in (a.predicate, b.predicate)
            ):
                seen = b.predicate
                if a.predicate == seen in _ONE_WAY and a.terms == b.terms[::-1]:
                    return True
                if a.terms != b.terms:
                    seen = PREDICATES[seen].mirror or seen
                if "far" in (a.predicate, seen):  # 3 cm away may well be above, or touched
                    far = a if a.predicate == "far" else b
                    if dict(far.numbers).get("least", 1.0) <= 0.05:
                        continue
                if any({a.predicate, seen} == pair for pair in _OPPOSED):
                    return True
        return False

    def _led(self, found: list[Formula], at_once: bool = False) -> list[Formula]:
        """Without what only leads to the next goal: what is put somewhere was grasped before, and
        a drawer into which something is put was opened. "Pick it up and put it there" asks for no
        lifting; "then" in its place does, but for the drawer."""
        out: list[Formula] = []
        for formula, after in itertools.zip_longest(found, found[1:]):
            if isinstance(formula, Atom) and isinstance(after, Atom):
                first, thing = formula.terms[0], after.terms[0]
                placed = after.predicate in ("on", "inside", "inserted", "next_to")
                if formula.predicate == "grasped" and first == thing and at_once:
                    if placed or after.predicate == "lifted":
                        continue
                if formula.numbers:
                    pass  # what it says is asked for
                elif formula.predicate == "lifted" and first == thing and placed and at_once:
                    continue
                elif formula.predicate == "open" and after.predicate == "inside":
                    if len(found) == 2 and after.terms[1] == first:
                        continue
            if out and at_once and isinstance(formula, Atom) and formula.predicate == "released":
                before = out[-1]
                if isinstance(before, Atom) and before.predicate in ("on", "inside"):
                    if before.terms[0] == formula.terms[0]:
                        continue  # to be on or in something is to be let go
            out.append(formula)
        return out

    def _along(self, element: Element, parts: list[_Part], made: Formula, negated: bool) -> None:
        clause = element.clause
        assert clause is not None
        last = parts[-1]
        keeps = clause.much or clause.verb not in ("", "be")
        if element.by == "lead" and not keeps and not last.clause.lasting:
            raise self.refuse("ambiguous", "'while': is that so, or to be so?")
        if element.how == "until":
            if kind(last.formula) != "state" or not last.clause.lasting:
                raise self.refuse(
                    "unsupported", "'until' follows what is to be kept up, as in 'stay left of it'"
                )
            last.formula = join("until", last.formula, made)
            return
        if kind(made) != "state":
            raise self.refuse("unsupported", "what goes on 'while' must be a state")
        manner = clause.predicate in ("slower", "faster")
        if last.clause.lasting and clause.verb and not (clause.lasting or negated or manner):
            # "keep it upright while pushing the cube": what lasts is what goes along
            if kind(last.formula) != "state" or element.negated:
                raise self.refuse("unsupported", "what goes on 'while' must be a state")
            last.formula = join("while", made, last.formula)
            return
        if element.negated or negated:
            nots = self._not(made)
            made = nots[0] if len(nots) == 1 else join("and", *nots)
        elif self._contradict([last.formula, *parts_of(made, "and")]):
            raise self.refuse("ambiguous", "these cannot be at once")
        elif self._plain(clause, made) and isinstance(last.formula, Atom):
            if last.formula.terms[0] != self.actor:
                raise self.refuse("ambiguous", "all the time, or in the end? Say 'always' or 'and'")
            last.formula = join("and", last.formula, *parts_of(made, "and"))
            return
        if clause.told and clause.predicate == "lifted":
            raise self.refuse("ambiguous", "all the time, or in the end? Say 'always' or 'and'")
        last.formula = join("while", last.formula, made)

    @staticmethod
    def _plain(clause: Clause, made: Formula) -> bool:
        """A relation without a number, which is only another thing that is to hold in the end."""
        return clause.much is None and all(a.predicate in _PLAIN for a in atoms(made))

    def _hold(self, parts: list[_Part], seconds: float) -> None:
        if not parts:
            raise self.refuse("ambiguous", "hold what?")
        last = parts[-1]
        if last.clause.bare and last.by in ("and", "or", ","):
            raise self.refuse("ambiguous", "for so long what: all of it, or the last part?")
        if kind(last.formula) != "state":
            raise self.refuse("unsupported", "only a state can be held for a time")
        if any(a.predicate in _PASSES for a in atoms(last.formula)):
            raise self.refuse("unsupported", "that takes the whole episode and cannot be held")
        held = last.formula
        if isinstance(held, Atom) and held.predicate == "still" and last.by == "and" and parts[1:]:
            before = parts[-2]  # "put it there and let it lie still for a second": both
            if kind(before.formula) == "state" and all(
                a.terms[0] == held.terms[0] for a in atoms(before.formula)
            ):
                parts.pop()
                before.formula = join("and", *parts_of(before.formula, "and"), held)
                last = before
        last.formula = join("hold", last.formula, seconds=seconds)

    def _ordered(self, parts: list[_Part], how: str) -> None:
        if not parts:
            raise self.refuse("ambiguous", "in which order?")
        steps = self._steps(parts)
        step = steps[-1]
        found = [p for part in step for p in parts_of(part.formula, "and")]
        if len(found) < 2 or len(steps) > 1 and how == "loose":
            if len(steps) > 1 and how == "order":
                return  # "first ..., then ..., in this order"
            raise self.refuse("ambiguous", "in which order? Name two goals or more")
        if how == "loose":
            onces = [join("once", f) if kind(f) == "state" else f for f in found]
            made: Formula = join("and", *onces)
        else:
            plain = [f.parts[0] if isinstance(f, Joined) and f.operator == "once" else f
                     for f in found]  # fmt: skip
            made = join("then", *plain)
        first = step[0]
        del parts[len(parts) - len(step) :]
        parts.append(_Part(first.by, made, first.clause))

    # ------------------------------------------------------------------------------ constraints

    def _always(self, made: Formula) -> Formula:
        if kind(made) != "state":
            raise self.refuse("unsupported", "only a state can be kept all the time")
        if any(a.predicate in _BROUGHT and not a.numbers for a in atoms(made)):
            raise self.refuse("unsupported", "that is not so at the start: when is it to be?")
        return join("always", made)

    def _never(self, made: Formula) -> list[Formula]:
        """What is never to be, one constraint for each thing."""
        found: list[Formula] = []
        for part in self._each(made):
            converse = self._converse(part)
            found.append(join("always", converse) if converse else join("never", part))
        return found

    def _not(self, made: Formula) -> list[Formula]:
        return [self._converse(part) or join("not", part) for part in self._each(made)]

    def _each(self, made: Formula) -> list[Formula]:
        if kind(made) != "state":
            inner = [p.parts[0] if isinstance(p, Joined) and p.operator == "once" else p
                     for p in parts_of(made, "and")]  # fmt: skip
            if any(kind(p) != "state" for p in inner):
                raise self.refuse("unsupported", "only a state can be avoided")
            return inner
        return [p for part in parts_of(made, "or") for p in parts_of(part, "and")]

    def _converse(self, made: Formula) -> Formula | None:
        """What holds where a bound does not: "closer than 5 cm" -> at least 5 cm."""
        if not isinstance(made, Atom) or not made.numbers:
            return None
        said = dict(made.numbers)
        if made.predicate in _CONVERSE:
            [number] = [n.name for n in PREDICATES[_CONVERSE[made.predicate]].numbers]
            [value] = said.values()
            return Atom.of(_CONVERSE[made.predicate], *made.terms, **{number: value})
        if made.predicate == "at_height" and len(said) == 1:
            [(name, value)] = said.items()
            other = "least" if name == "most" else "most"
            return Atom.of("at_height", *made.terms, **{other: value})
        return None

    # ---------------------------------------------------------------------------------- clauses

    def clause(self, clause: Clause | None, by: str) -> tuple[Formula, bool]:
        """The formula of a clause, and whether it is to be avoided."""
        assert clause is not None
        if clause.verb == "likewise" and self.last is not None and len(self.last.objects) == 1:
            same = {Said("it"): self.last.objects[0]}  # "... left of it and the can right of it"
            clause = replace(clause, objects=tuple(same.get(o, o) for o in clause.objects))
        clause = self._completed(clause, by)
        phrases = [p for p in (clause.subject, *clause.objects) if p is not None]
        if not any(self._has_it(p) for p in phrases):
            return self._made(clause)
        self.it = self.backward = True
        found: dict[tuple[Formula, bool], tuple[list[Term], Clause]] = {}
        wrong: Refusal | None = None
        for name in [*self.said, *([self.actor] if self.named else [])]:
            before = list(self.said)
            tried = self._with_it(clause, name)
            try:
                found[self._made(tried)] = list(self.said), tried
            except Refusal as error:
                wrong = wrong or error
            self.said = before
        if len(found) != 1:
            if not found and wrong is not None and len(self.said) == 1:
                raise wrong
            raise self.refuse("ambiguous", "what is 'it'? Name it")
        [(made, (self.said, tried))] = found.items()
        self.last = tried
        self.mover = tried.subject or Thing(self.actor)
        return made

    def _completed(self, clause: Clause, by: str) -> Clause:
        """The clause with what it leaves out, from the one before."""
        last = self.last
        if clause.verb == "likewise" and clause.subject == Thing(self.actor):
            return replace(clause, bare=False, verb="")  # "..., hand at least 20 cm from it"
        if clause.verb == "likewise":
            if last is None or not last.verb or last.subject in (None, Thing(self.actor)):
                if last is not None and not last.verb and last.subject not in (None, self.actor):
                    return replace(clause, bare=False, verb="")
                raise self.refuse("ambiguous", "a verb is missing; say 'is', or 'push' again")
            pair = {clause.predicate, last.predicate}
            sides = pair <= _SIDES or by == "and" and pair <= _PLACED
            if len(pair) > 1 and not sides:
                raise self.refuse("unsupported", "these words are not understood in this order")
            return replace(clause, bare=False, verb=last.verb)
        if clause.verb == "from" and (last is None or last.predicate not in _FROM):
            raise self.refuse("unsupported", "what is 'from' or 'of' about?")
        if clause.predicate == "there" and last is not None and last.objects:
            return replace(last, subject=clause.subject)
        if not clause.bare and clause.predicate != "there":
            return clause
        if clause.predicate in ("slower", "faster", "still"):
            return clause
        if clause.predicate == "there":
            raise self.refuse("ambiguous", "where is 'there'?")
        if last is None:
            raise self.refuse("no_goal", "it names no relation that could hold")
        if last.ended:
            raise self.refuse("ambiguous", "say what each object is to do")
        if clause.predicate:
            if last.predicate == "moved" != clause.predicate:
                raise self.refuse("ambiguous", "from where it was, or beside something?")
            return replace(clause, subject=clause.subject or last.subject, bare=False)
        if last.subject not in (None, Thing(self.actor)):
            if not last.objects and last.predicate in PREDICATES:
                return replace(last, subject=clause.objects[0], bare=False)
            raise self.refuse("ambiguous", "say what each object is to do")
        if len(last.objects) != 1:
            raise self.refuse("ambiguous", "say what each object is to do")
        return replace(last, objects=clause.objects, bare=False, also="")

    def _has_it(self, phrase: Phrase) -> bool:
        if isinstance(phrase, Many):
            return any(self._has_it(p) for p in phrase.parts)
        return isinstance(phrase, Said) and phrase.how == "it"

    def _with_it(self, clause: Clause, name: Term) -> Clause:
        def put(phrase: Phrase | None) -> Phrase | None:
            if isinstance(phrase, Many):
                parts = tuple(p for part in phrase.parts if (p := put(part)) is not None)
                return replace(phrase, parts=parts)
            if isinstance(phrase, Said) and phrase.how == "it":
                return Thing(name)
            return phrase

        objects = tuple(p for o in clause.objects if (p := put(o)) is not None)
        return replace(clause, subject=put(clause.subject), objects=objects)

    def _made(self, clause: Clause) -> tuple[Formula, bool]:
        """The formula of a clause that says what it is about."""
        if clause.predicate in ("unclear", "leads"):
            said = f"{clause.verb!r} and how it goes on" if clause.verb else "what comes first"
            raise self.refuse("ambiguous", f"{said} may mean several things; say it otherwise")
        subject = clause.subject or Thing(self.actor)
        self.above = clause.predicate == "above"
        how, subjects = self._terms(subject)
        if clause.subject is not None or clause.objects:
            self.named |= Thing(self.actor) in (clause.subject, *clause.objects)
        sides: list[tuple[str, list[Term]]] = [self._terms(o) for o in clause.objects]
        self.last, self.mover = replace(clause, subject=subject), subject
        many = [side for side in ((how, subjects), *sides) if len(side[1]) > 1]
        negated = any(h == "nor" for h, _ in many)
        if made := self._special(clause, how, subjects, sides):
            return made, negated
        if any(self.actor in terms and how != "or" for how, terms in many):
            raise self.refuse("ambiguous", "the gripper and a thing at once: say one by one")
        if clause.predicate == "to" and clause.subject is not None and len(many) == 1:
            if len(subjects) == 1 and many[0][0] != "or":
                raise self.refuse("ambiguous", "say what each object is to do")
        if len(many) > 1:
            raise self.refuse("ambiguous", "several things on both sides: say one after the other")
        made = [
            self._atom(clause, terms)
            for terms in itertools.product(subjects, *(terms for _, terms in sides))
        ]
        found = list(dict.fromkeys(made))
        if len(found) == 1:
            return found[0], negated
        joiner = many[0][0]
        if joiner == "list":
            return join("and", *found), negated  # its order is to be said
        if joiner == "or":
            return join("or", *found), negated
        if joiner == "each" and all(isinstance(f, Atom) and f.predicate in ("touch", "pressed")
                                    and f.terms[0] == self.actor for f in found):  # fmt: skip
            return join("and", *(join("once", f) for f in found)), negated
        return join("and", *found), negated

    def _terms(self, phrase: Phrase) -> tuple[str, list[Term]]:
        """How several things are meant, and which they are."""
        if isinstance(phrase, Thing):
            self._mention(phrase.term)
            return "one", [phrase.term]
        self.backward |= isinstance(phrase, Said)
        if isinstance(phrase, Many):
            terms = [t for part in phrase.parts for t in self._terms(part)[1]]
            if len(set(terms)) < len(terms):
                raise self.refuse("ambiguous", "one thing is named twice")
            return phrase.how, terms
        if phrase.how == "other":
            found = [n for n in phrase.of if n not in self.said]
            wrong = self.beside or phrase.count and len(found) != phrase.count
            if wrong or not found or len(found) == len(phrase.of):
                raise self.refuse("ambiguous", "which other one? Name it")
            for name in found:
                self._mention(name)
            return ("each" if len(found) > 1 else "one"), list(found)
        if phrase.how == "room":
            rooms = [n for n in self.said if self._kind(n) in ("drawer", "hole")]
            if len(rooms) != 1:
                raise self.refuse("ambiguous", "in what?")
            return "one", list(rooms)
        found = list(self.said)
        if phrase.how == "them" and self.above:
            raise self.refuse("ambiguous", "above which of them?")
        if len(found) < 2 or phrase.count and len(found) != phrase.count:
            raise self.refuse("ambiguous", "which of them? Name each")
        return ("each" if phrase.how == "each" else "and"), list(found)

    def _mention(self, term: Term) -> None:
        if term != self.actor and term not in self.said:
            self.said.append(term)

    def _special(
        self, clause: Clause, how: str, subjects: list[Term], sides: list[tuple[str, list[Term]]]
    ) -> Formula | None:
        """Predicates that take several things at once; None: it is none of these."""
        things = [t for _, terms in sides for t in terms]
        match clause.predicate:
            case "together" | "apart" | "away" | "parted" if not sides:
                if len(subjects) != 2 or how in ("or", "nor"):
                    raise self.refuse("ambiguous", "two things are together or apart: name both")
                pair = subjects if subjects[1] != self.actor else subjects[::-1]
                if clause.predicate == "parted":
                    return self._checked(Atom.of("far", *pair), clause)
                if clause.predicate == "together":
                    name = "touch" if pair[0] == self.actor else "next_to"
                    return self._checked(Atom.of(name, *pair), clause)
                return self._apart(clause, *pair)
            case "tower":
                blocks = [e.name for e in self.card.entities if "stack" in e.affordances]
                top = things[0]
                under = [t for t in (things if len(things) == 2 else blocks) if t != top]
                if len(under) != 1:
                    raise self.refuse("ambiguous", "which is on top, and which below?")
                return self._checked(Atom.of("on", top, under[0]), clause)
            case "in_line":
                line = [*subjects, *things]
                if len(line) != 3:
                    raise self.refuse("unsupported", "three things make a line: name three")
                return self._checked(Atom.of("in_line", *line), clause)
            case "between":
                if len(subjects) != 1:
                    return None
                if len(things) != 2:
                    raise self.refuse("ambiguous", "between which two?")
                return self._checked(Atom.of("between", *subjects, *things), clause)
        return None

    def _atom(self, clause: Clause, terms: tuple[Term, ...]) -> Formula:
        """The atom of a clause about these things."""
        name, first = clause.predicate, terms[0]
        hand = first == self.actor
        match name:
            case _ if (
                clause.verb in _LIFTING
                and not hand
                and len(terms) == 2
                and (name != "above" or not self._can(first, frozenset({"lift"})))
                and name not in ("on", "on_top", "inside", "far", "lifted")
                and not (clause.verb.startswith("drop") and name in ("to", "at"))
            ):
                raise self.refuse("unsupported", f"{clause.verb!r} it, then say where it goes")
            case _ if (
                clause.verb in _LIFTING and not hand and not self._can(first, frozenset({"lift"}))
            ):
                raise self.refuse("unsupported", f"the {first} cannot be lifted")
            case "to" | "against" | "at":
                return self._reached(clause, terms)
            case "by":
                if clause.verb in _MOVING and not hand:
                    raise self.refuse("unsupported", "past it, or beside it? Say 'next to'")
                name = "next_to"
            case "touch" if clause.verb == "give" and self._kind(terms[-1]) == "button":
                name, terms = "pressed", terms[-1:]
            case "touch" if hand and self.things.actor.kind == BODY:
                name = "at"
            case "holds":
                hole = self._kind(first)
                name = {"hole": "inserted", "drawer": "inside"}.get(hole, "on")
                terms = (terms[1], first)
            case "filled" if self._kind(terms[1]) != "hole":
                raise self.refuse("unsupported", "only a hole is filled")
            case "filled":
                name = "inserted"
            case "covered":
                name = "on"
            case "stowed":
                rooms = [e.name for e in self.card.entities if e.kind == "drawer"]
                if len(rooms) != 1:
                    raise self.refuse("unsupported", "put it away where?")
                name, terms = "inside", (first, rooms[0])
            case "apart" | "away":
                return self._apart(clause, *terms)
            case "next_to" if hand or terms[-1] == self.actor:
                raise self.refuse("unsupported", "how near? Say 'within 5 cm of', or on which side")
            case "on" if hand and self.things.actor.kind == BODY:
                name = "at"
            case "on" if hand:
                if clause.verb not in ("put", "place", "rest", "lay", "set", "get", "keep", "have"):
                    raise self.refuse("ambiguous", f"touch the {terms[1]}, or be above it?")
                name = "touch"
            case "on_top":
                name = "above" if hand else "on"
            case "inside":
                hole = self._kind(terms[1]) == "hole"
                name = "inserted" if hole else "inside"
            case "inserted":
                holes = [e.name for e in self.card.entities if e.kind == "hole"]
                if len(holes) != 1:
                    raise self.refuse("unsupported", "there is no hole here")
                if len(terms) == 1:
                    terms = (*terms, holes[0])
            case "below":
                if terms[1] != self.actor:
                    raise self.refuse("unsupported", "nothing here can be below a thing")
                name, terms = "above", (terms[1], terms[0])
            case "above" if not hand and not self._can(first, {"lift", "place", "insert"}):
                raise self.refuse("unsupported", f"the {first} cannot be lifted above something")
            case "upright" if "balance" in self.card.entity(str(first)).affordances:
                name = "balanced"
            case "moved" | "displaced":
                return self._moved(clause, first)
            case "at_point":
                return self._point(clause, first)
            case "touch" if len(terms) == 2 and terms[1] == self.actor:
                terms = (terms[1], terms[0])
        if terms[-1] == self.actor and not hand and clause.verb and not clause.lasting:
            if clause.verb not in _BEING:
                raise self.refuse("unsupported", "only the gripper can go to an object")
        if name in ("left_of", "right_of", "in_front_of", "behind", "far", "near"):
            if len(terms) == 2 and terms[1] == self.actor:  # the ball is left of the gripper
                name, terms = PREDICATES[name].mirror, (terms[1], terms[0])
        atom: Formula = self._numbered(name, terms, clause.much)
        made = self._checked(atom, clause)
        if clause.also:
            return join("and", made, Atom.of(clause.also, first))
        return made

    def _reached(self, clause: Clause, terms: tuple[Term, ...]) -> Formula:
        """ "to" and "against": the gripper touches; a thing is beside another, or on a mark."""
        first, target = terms
        if clause.predicate == "at" and first != self.actor and self._kind(target) not in MARKS:
            raise self.refuse("ambiguous", f"at the {target}: on it, or beside it?")
        if target == self.actor and clause.predicate == "against" and clause.verb in _BEING:
            first, target = target, first
        if target == self.actor:
            raise self.refuse("unsupported", "only the gripper can go to an object")
        if first == self.actor:
            reach = "at" if self.things.actor.kind == BODY else "touch"
            return self._checked(Atom.of(reach, first, target), clause)
        where = self._kind(target)
        if clause.predicate in ("to", "at") and where in MARKS:
            return self._checked(Atom.of("on", first, target), clause)
        beside = clause.verb == "push" and where in ("handle", "button")
        beside &= self._kind(first) not in FURNITURE
        hollow = where in FURNITURE and not beside
        if clause.predicate == "to" and (hollow or clause.verb in ("put", "place")):
            raise self.refuse("ambiguous", f"to the {target}: in it, on it or beside it?")
        return self._checked(Atom.of("next_to", first, target), clause)

    def _apart(self, clause: Clause, first: Term, second: Term) -> Formula:
        """Two things with a distance between them that is bounded."""
        much = clause.much
        assert much is not None
        if second == self.actor:
            first, second = second, first
        if much.just and clause.predicate != "away":
            raise self.refuse("ambiguous", "at least so far, or at most? Say which")
        least, most = much.least, None if much.just else much.most
        found: list[Formula] = []
        if least is not None:
            found.append(self._checked(self._of("far", (first, second), {"least": least}), clause))
        if most is not None:
            found.append(self._checked(self._of("near", (first, second), {"within": most}), clause))
        return found[0] if len(found) == 1 else join("and", *found)

    def _moved(self, clause: Clause, first: Term) -> Formula:
        much = clause.much
        assert much is not None
        if clause.predicate == "displaced":
            if much.just:
                raise self.refuse("ambiguous", "which way? Say 'to the left', 'forward', ...")
            if clause.verb in _LIFTING:
                raise self.refuse("unsupported", "lifted so high at most? It takes a least height")
            bounded = self._numbered("displaced", (first,), much)
            if much.least is None:
                bounded = Atom.of("displaced", first, least=0.0, **dict(bounded.numbers))
            return self._checked(bounded, clause)
        if not much.just:
            raise self.refuse("unsupported", "'moved' takes one length, with 'give or take'")
        numbers = {name: value for name, value in clause.numbers if value}
        if much.tolerance is not None:
            numbers["tolerance"] = much.tolerance
        return self._checked(self._of("moved", (first,), numbers), clause)

    def _point(self, clause: Clause, first: Term) -> Formula:
        numbers = dict(clause.numbers)
        if clause.much is not None:
            numbers["within"] = clause.much.most or clause.much.value
        return self._checked(self._of("at_point", (first,), numbers), clause)

    def _numbered(self, name: str, terms: tuple[Term, ...], much: Much | None) -> Atom:
        """The atom with a quantity in the number that takes it."""
        if much is None:
            return self._of(name, terms, {})
        slots = {n.said: n for n in PREDICATES[name].numbers if n.said and n.unit == much.unit}
        numbers: dict[str, float] = {}
        if name == "closed" and much.just:
            much = Much(much.unit, None, 1 - much.value)  # 80 % closed is 20 % open
        if not slots:
            takes = [f"{n.name} in {n.unit}" for n in PREDICATES[name].numbers if n.said]
            raise self.refuse(
                "unsupported",
                f"{name} takes no number in {much.unit or 'that unit'}; "
                f"it takes {', '.join(takes) or 'none'}",
            )
        if much.just and "just" in slots:
            numbers[slots["just"].name] = much.value
        elif much.just:
            slot = slots.get("least") or slots["most"]
            numbers[slot.name] = much.value
        elif "just" in slots:
            if much.least is None or much.most is None or "tolerance" not in slots:
                raise self.refuse("unsupported", f"{name} takes one {slots['just'].name}, not a "
                                  "least or a most; say it with 'give or take'")  # fmt: skip
            numbers[slots["just"].name] = round((much.least + much.most) / 2, 9)
            numbers[slots["tolerance"].name] = round((much.most - much.least) / 2, 9)
        else:
            for bound, value in (("least", much.least), ("most", much.most)):
                if value is not None:
                    if bound not in slots:
                        raise self.refuse("unsupported", f"{name} takes no {bound} number")
                    numbers[slots[bound].name] = value
        if much.tolerance is not None:
            if "tolerance" not in slots:
                raise self.refuse("unsupported", f"{name} takes no tolerance")
            numbers[slots["tolerance"].name] = much.tolerance
        return self._of(name, terms, numbers)

    def _of(self, name: str, terms: tuple[Term, ...], numbers: dict[str, float]) -> Atom:
        units = {n.name: n.unit for n in PREDICATES[name].numbers}
        rounded = {k: v if units[k] == "rad" else _short(v) for k, v in numbers.items()}
        try:
            return Atom.of(name, *terms, **rounded)
        except FormulaError as error:
            raise self.refuse("unsupported", str(error)) from None

    def _checked(self, atom: Formula, clause: Clause) -> Formula:
        """The atom, held against the card."""
        assert isinstance(atom, Atom)
        known = PREDICATES[atom.predicate]
        if (
            self.things.objects
            and self.things.actor.kind == BODY
            and known.name not in ("on", "at")
        ):
            raise self.refuse("unsupported", f"{known.name} is not measured here")
        if atom.predicate in OF and atom.terms[0] != OF[atom.predicate]:
            raise self.refuse("unsupported", f"the {atom.terms[0]} cannot do that")
        try:
            check(atom, self.card)
        except FormulaError as error:
            raise self.refuse("unsupported", str(error)) from None
        mover = atom.terms[0]
        moved = known.arity > 1 or atom.predicate in ("moved", "displaced", "turned", "toppled")
        if moved and mover != self.actor and not self._can(mover, _MOVES):
            raise self.refuse("unsupported", f"the {mover} cannot be moved to something")
        return atom

    def _kind(self, term: Term) -> str:
        return self.card.entity(term.among[0] if isinstance(term, Choice) else term).kind

    def _can(self, term: Term, what: set[str] | frozenset[str]) -> bool:
        """Whether a thing affords one of these; where no card says what anything does, that it is
        no furniture."""
        names = term.among if isinstance(term, Choice) else (term,)
        for name in names:
            entity = self.card.entity(name)
            told = any(e.affordances for e in self.card.entities)
            if told and entity.kind in FURNITURE | MARKS:
                return False
            if told and not what & set(entity.affordances):
                return False
            if not told and "push" not in what:
                return False
        return True
