"""From what was said to a formula: what is to be reached, what is to be kept up, and in what order.

``coreference.py`` knows which things a clause is about, ``atoms.py`` which numbers it takes, and
``consistency.py`` which formulas fit beside each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from reward_models.base import TaskCard
from reward_models.goals.formula import (
    Atom,
    Formula,
    Joined,
    Term,
    atoms,
    fill,
    formula_kind,
    join,
    parts_of,
)
from reward_models.goals.grammar import consistency
from reward_models.goals.grammar.atoms import MOVING, Refuse
from reward_models.goals.grammar.clauses import Clause
from reward_models.goals.grammar.connectives import BUMPS
from reward_models.goals.grammar.consistency import join_parts, without_operator
from reward_models.goals.grammar.coreference import ReferenceResolver, has_pronoun
from reward_models.goals.grammar.noun_phrases import Anaphor, EntityNames, Referent
from reward_models.goals.grammar.sentences import Element, Elements
from reward_models.goals.predicates import AFTER, BODY, PREDICATES

_PLAIN = frozenset({"touch", "above", "left_of", "right_of", "far", "next_to"})
_WAYS = frozenset("left_of right_of in_front_of behind".split())
_SEEN = frozenset({"left_of", "right_of", "touch"})  # what is said of a picture
_ENDS = frozenset({"end up", "end", "finish", "finish up"})
_ALONG = frozenset({"while", "never", "always", "until"})
_BOUNDS = frozenset({"apart", "near", "away"})
_PUTS = frozenset({"put", "place", "set", "lay", "deposit"})
_PASSES = frozenset({"forward", "backward", "front_flip", "back_flip", "wave"})


@dataclass
class _Part:
    """A goal of the sentence, joined ``by`` a word to the one before."""

    by: str
    formula: Formula
    clause: Clause
    slow: bool = False
    timed: bool = False  # it has a deadline of its own
    avoided: list[Formula] = field(default_factory=list)


class SemanticInterpreter:
    """One reading of one sentence; remembers what was said so far."""

    def __init__(self, things: EntityNames, card: TaskCard, refuse: Refuse) -> None:
        self.things, self.card, self.refuse = things, card, refuse
        self.mentions = ReferenceResolver(things, card, refuse)
        self.actor = self.mentions.actor
        self.parts: list[_Part] = []
        self.constraints: list[Formula] = []
        self.waiting: list[Callable[[], None]] = []  # what leads, for the first goal
        self.deadline: float | None = None  # s, of the whole
        self.turn: tuple[str, int] | None = None  # of "after A, B": by what, and before which part
        self.slowly = False  # the whole
        self.sometime = self.throughout = False  # the next goal is to be so
        self.led = ""  # by what the goal is joined that an earlier one only led to
        self.kept = False  # the goal before became a constraint
        self.said: set[str] = set()  # what is only said, and asks nothing

    def formula(self, elements: Elements) -> Formula:
        """Returns the formula of a reading.

        Raises:
            Refusal: The reading has no meaning on the card.
        """
        hows = [element.how for element in elements]
        if "first" in hows and not {"then", "before", "after"} & {e.by for e in elements}:
            raise self.refuse("ambiguous", "'first' needs a following 'then'")
        elements = self._with_pronouns_after_names(elements)
        for at, element in enumerate(elements):
            self.before, self.rest = elements[:at], elements[at + 1 :]
            match element.how:
                case "turn":
                    self.turn = element.by, len(self.parts)
                case "order" | "loose":
                    self._set_order(element.how)
                case "topic" | "remark":
                    self.said.add(element.how)
                    self.mentions.beside |= element.how == "remark"
                    for phrase in element.clause.objects if element.clause else ():
                        self.mentions.terms(phrase)
                case "either":
                    self.said.add(element.by or "two")
                case "view" | "at_once" | "first":
                    self.said.add(element.how)
                case how:
                    getattr(self, f"_{how}")(element)
        self._require_complete()
        made = self._whole_formula()
        if self.waiting:
            raise self.refuse("ambiguous", "a duration or 'while' has no goal that it applies to")
        if self.parts and all(part.clause.predicate == "returned" for part in self.parts):
            raise self.refuse(
                "ambiguous", "the object starts where it shall return to: say what comes before"
            )
        if "view" in self.said and any(a.predicate not in _SEEN for a in atoms(made)):
            raise self.refuse("ambiguous", "a viewpoint applies only to 'left' and 'right'")
        if "remark" in self.said and not (isinstance(made, Atom) and not made.numbers):
            raise self.refuse(
                "unsupported", "a sentence with a remark can hold only one goal, without numbers"
            )
        if "at_once" in self.said and len(list(atoms(made))) < 2:
            raise self.refuse("ambiguous", "'at the same time' needs two goals")
        return made

    def _require_complete(self) -> None:
        """Refuses what was said beside the goals where the goal that it is about did not come."""
        of_two = [p for p in self.parts if p.by == "or" and not p.clause.bare]
        ors = [p for p in self.parts if len(parts_of(p.formula, "or")) > 1]
        if "two" in self.said and not of_two or "any" in self.said and not (of_two or ors):
            raise self.refuse("ambiguous", "'either' needs two alternatives, joined by 'or'")
        if "topic" in self.said and not self.mentions.backward:
            raise self.refuse("ambiguous", "the sentence names a topic but no goal for it")

    def _formula_of(self, element: Element, by: str) -> tuple[Clause, Formula, bool]:
        """An element's clause, its formula, and whether it is to be avoided."""
        assert element.clause is not None
        return element.clause, *self.mentions.clause(element.clause, by)

    def _avoided(self, element: Element, by: str) -> tuple[Clause, Formula]:
        """An element's clause, and what is not to be. Things that are to touch are pushed until one
        is beside the other; those that are not may well be beside each other."""
        clause, made, _ = self._formula_of(element, by)
        if clause.predicate in ("against", "in_touch") or clause.verb in BUMPS:
            made = consistency.with_contact(made)
        return clause, made

    def _require_state(self, formula: Formula, why: str) -> None:
        if formula_kind(formula) != "state":
            raise self.refuse("unsupported", why)

    # --------------------------------------------------------------------------------- goals

    def _goal(self, element: Element) -> None:
        if self._only_prepares(element.clause) and self._is_prepared():
            self.led = element.by if self.parts else ""
            return
        by, self.led = self.led or element.by, ""  # "then fetch it and put it there"
        clause, made, negated = self._formula_of(element, by)
        self.kept = True
        if negated:
            if by in ("before", "after", "or"):
                raise self.refuse("unsupported", f"a goal after {by!r} cannot be negated")
            self.constraints += consistency.never_formulas(made)
            return
        self._require_clear(clause, made, by)
        bound = clause.much is not None and not clause.much.just
        follows = by == "," and bound and self.parts and not self.parts[-1].clause.lasting
        if clause.lasting and (
            by == "but" and not self._is_plain_relation(clause, made) or follows
        ):
            self.constraints.append(consistency.always_formula(made))
            return
        self.kept = False
        if self.sometime:
            made, self.sometime = self._eventually(made), False
        if self.throughout:
            self.throughout = False
            self.constraints.append(consistency.always_formula(made))
            return
        if by == "and" and clause.verb in _ENDS:
            by = "end"
        if by == "and" and clause.predicate == "returned":
            by = "then"
        # "above the ball, at least 10 cm from the can"; "the cube left of it, the can right of it"
        goes_on = clause.bare and bound and clause.predicate in _BOUNDS
        if by == "," and (goes_on or clause.verb == "likewise"):
            by = "and"
        self.parts.append(_Part(by, made, clause))
        for apply in self.waiting:
            apply()
        self.waiting.clear()

    def _require_clear(self, clause: Clause, made: Formula, by: str) -> None:
        """Refuses a goal of which it is not clear how it goes on from what was said before."""
        before = self.before[-1].how if self.before else ""
        if clause.bare and by in ("and", "or", "") and before in _ALONG:
            raise self.refuse(
                "ambiguous", f"unclear whether the last part belongs to {before!r} or to the goal"
            )
        if not self.parts:
            return
        last = self.parts[-1]
        if by == "but" and all(
            isinstance(f, Atom) and f.predicate == "touch" for f in (last.formula, made)
        ):
            raise self.refuse("ambiguous", "simultaneous or in sequence? Say 'then' for a sequence")
        told = last.clause.told
        if clause.predicate == "still":
            told |= not last.clause.verb and last.clause.subject is not None
        if told and by in ("and", "but") and clause.subject is None and not clause.bare:
            raise self.refuse("ambiguous", "the second half names no subject: gripper or object?")
        # "right of it, at least 7 cm from it" is rather how far to the right
        side = isinstance(last.formula, Atom) and last.formula.predicate in _WAYS
        if side and not last.formula.numbers and by == "," and clause.bare:
            if clause.objects == (Anaphor("it"),):
                raise self.refuse("ambiguous", "distance to that side, or total distance?")

    def _only_prepares(self, clause: Clause | None) -> bool:
        """Whether a clause takes hold of what is no thing to carry: "grab the handle and pull"."""
        assert clause is not None
        if clause.predicate == "leads":
            for phrase in (clause.subject, *clause.objects):
                if phrase is not None:
                    self.mentions.terms(phrase)
            return True
        if clause.predicate != "grasped" or not isinstance(clause.subject, Referent):
            return False
        return "pull" in self.card.entity(str(clause.subject.term)).affordances

    def _is_prepared(self) -> bool:
        """Whether a goal follows that may be what was led up to."""
        following = next((e for e in self.rest if e.how == "goal"), None)
        if following is None or following.clause is None:
            return False
        if following.clause.predicate == "released":
            return False  # "grip it and let it go": the first is asked for too
        return following.by in ("and", "then", ",", "")

    def _with_pronouns_after_names(self, elements: Elements) -> Elements:
        """With what leads and speaks of "it" behind the goal that names it: "without lifting it,
        push the cube to the ball"."""

        def about_it(element: Element) -> bool:
            clause = element.clause
            said = (clause.subject, *clause.objects) if clause else ()
            return any(phrase is not None and has_pronoun(phrase) for phrase in said)

        goals = [at for at, element in enumerate(elements) if element.how == "goal"]
        at = goals[0] if goals else 0
        lead, goal = elements[:at], elements[at]
        ahead = any(e.how == "never" and about_it(e) for e in lead)
        if not ahead or any(e.how not in ("never", "always") for e in lead):
            return elements
        if about_it(goal) or len(goals) > 1:
            return elements
        return (goal, *lead, *elements[at + 1 :])

    # ------------------------------------------------------------------------ what goes along

    def _never(self, element: Element) -> None:
        _, made = self._avoided(element, element.by)
        later = any(e.by == "then" for e in self.rest if e.how == "goal")
        there = [e.how for e in self.rest[:1]] == ["there"] and len(self._sequence_steps()) > 1
        if self.parts and (later and element.by in ("", ",") or there):
            self.parts[-1].avoided += consistency.negations(made)
        else:
            self.constraints += consistency.never_formulas(made)

    def _always(self, element: Element) -> None:
        _, made, negated = self._formula_of(element, element.by)
        self.constraints += (
            consistency.never_formulas(made) if negated else [consistency.always_formula(made)]
        )

    def _not(self, element: Element) -> None:
        _, made = self._avoided(element, element.by)
        if not self.parts or formula_kind(self.parts[-1].formula) != "state":
            raise self.refuse(
                "unsupported", "'not' has no state to negate; say 'never' to forbid something"
            )
        last = self.parts[-1]
        last.formula = join("and", *parts_of(last.formula, "and"), *consistency.negations(made))

    def _while(self, element: Element) -> None:
        clause, made, negated = self._formula_of(element, "and")
        if [e.how for e in self.rest[:1]] == ["along"] and not element.negated:
            self.constraints += (
                consistency.never_formulas(made) if negated else [consistency.always_formula(made)]
            )
            return
        negated |= element.negated
        self._after_goal(element, clause, lambda: self._accompany(clause, made, negated))

    def _after_goal(self, element: Element, clause: Clause, apply: Callable[[], None]) -> None:
        """Applies what goes along with a goal, once that goal was said."""
        if self.parts:
            apply()
            return
        if element.by:
            raise self.refuse("ambiguous", f"{element.how!r} needs a goal before it")

        def lead() -> None:
            keeps = clause.much or clause.verb not in ("", "be") or self.parts[-1].clause.lasting
            if not keeps:
                raise self.refuse(
                    "ambiguous", "'while': a description, or a state to keep? Say 'keep'"
                )
            apply()

        self.waiting.append(lead)

    def _until(self, element: Element) -> None:
        clause, made, _ = self._formula_of(element, "and")
        if self.before and self.before[-1].how == "never":  # "do not touch it until ..."
            last, shunned = self._avoided(self.before[-1], "")
            nots = consistency.negations(shunned)
            del self.constraints[-len(nots) :]
            self.parts.append(_Part("", join("until", join_parts("and", nots), made), last))
            return

        def bound() -> None:
            last = self.parts[-1]
            if formula_kind(last.formula) != "state" or not last.clause.lasting:
                raise self.refuse(
                    "unsupported",
                    "'until' needs a state to keep before it, as in 'stay left of it'",
                )
            last.formula = join("until", last.formula, made)

        self._after_goal(element, clause, bound)

    def _accompany(self, clause: Clause, made: Formula, negated: bool) -> None:
        """What is to be so while the last part comes about."""
        last = self.parts[-1]
        self._require_state(made, "'while' needs a state, not an event")
        if any(a.predicate in _PASSES for a in atoms(made)):
            raise self.refuse(
                "unsupported", "'while' cannot take a goal that spans the whole episode"
            )
        manner = clause.predicate in ("slower", "faster")
        if last.clause.lasting and clause.verb and not (clause.lasting or negated or manner):
            # "keep it upright while pushing the cube": what lasts is what goes along
            self._require_state(last.formula, "'while' needs a state, not an event")
            last.formula = join("while", made, last.formula)
            return
        if negated:
            made = join_parts("and", consistency.negations(made))
        elif consistency.contradicts([last.formula, *parts_of(made, "and")]):
            raise self.refuse("ambiguous", "these cannot hold at the same time")
        elif self._is_plain_relation(clause, made) and isinstance(last.formula, Atom):
            if last.formula.terms[0] != self.actor:
                raise self.refuse(
                    "ambiguous", "all the time, or only at the end? Say 'always' or 'and'"
                )
            last.formula = join("and", last.formula, *parts_of(made, "and"))
            return
        if clause.told and clause.predicate == "lifted":
            raise self.refuse(
                "ambiguous", "all the time, or only at the end? Say 'always' or 'and'"
            )
        last.formula = join("while", last.formula, made)

    @staticmethod
    def _is_plain_relation(clause: Clause, made: Formula) -> bool:
        """A relation without a number, which is only another thing that is to hold in the end."""
        return clause.much is None and all(a.predicate in _PLAIN for a in atoms(made))

    def _along(self, element: Element) -> None:
        """ "all the time"."""
        before = self.before[-1].how if self.before else ""
        if not before and self.rest:
            self.throughout = self.rest[0].how not in _ALONG
        elif before == "goal" and self.kept or before in _ALONG:
            return  # "but keep it upright all the time", "never touching it at any time"
        elif before == "goal" and self.parts:
            self.constraints.append(consistency.always_formula(self.parts.pop().formula))
        else:
            raise self.refuse("ambiguous", "'all the time' needs a state to keep")

    def _there(self, element: Element) -> None:
        if self.before[-1:] and self.before[-1].how == "never" and self.parts:
            return
        raise self.refuse("ambiguous", "'on the way' needs a state to keep or to avoid")

    def _implied(self, element: Element) -> None:
        """What success of the goal before holds besides."""
        last = self.parts[-1].formula if self.parts else None
        if not isinstance(last, Atom) or last.predicate not in element.by.split():
            raise self.refuse("unsupported", "the remark asks for more than the goal states")

    def _slowly(self, element: Element) -> None:
        if element.by == "lead" and self.parts:
            self.parts[-1].slow = True
        else:
            self.slowly = True

    # -------------------------------------------------------------------------- time and order

    def _once(self, element: Element) -> None:
        self.sometime = not self.parts
        if self.parts:
            self.parts[-1].formula = self._eventually(self.parts[-1].formula)

    def _eventually(self, formula: Formula) -> Formula:
        self._require_state(formula, "only a state can be required at some moment, not an event")
        return join("once", formula)

    def _within(self, element: Element) -> None:
        assert element.much is not None and element.much.most is not None
        if element.by == "part" and self.deadline is not None and len(self.parts) == 2:
            self._with_deadline(self.parts[0], self.deadline)  # "within 4 s A and within 8 s B"
            self.deadline = None
        after = any(e.how == "goal" for e in self.rest)
        if self.parts and (
            after or element.by == "part" or any(part.timed for part in self.parts[:-1])
        ):
            self._with_deadline(self.parts[-1], element.much.most)
        elif self.deadline is not None:
            raise self.refuse("ambiguous", "two deadlines: give one, or one for each goal")
        else:
            self.deadline = element.much.most

    @staticmethod
    def _with_deadline(part: _Part, seconds: float) -> None:
        """Within a time; "at some moment within 3 s" is no more than that."""
        part.formula = join("within", without_operator(part.formula, "once"), seconds=seconds)
        part.timed = True

    def _for(self, element: Element) -> None:
        assert element.much is not None and element.much.least is not None
        seconds = element.much.least
        if element.by == "wait" and self.parts:
            if any(a.terms[0] != self.actor for a in atoms(self.parts[-1].formula)):
                raise self.refuse(
                    "unsupported", "'wait' needs a state of the gripper to hold: name it"
                )
        goals = [e for e in (*self.before, *self.rest) if e.how == "goal"]
        if not self.parts and element.by == "for" and len(goals) == 1:
            self.waiting.append(lambda: self._hold_for(seconds))  # "for 2 seconds, stay ..."
        else:
            self._hold_for(seconds)

    def _hold_for(self, seconds: float) -> None:
        if not self.parts:
            raise self.refuse("ambiguous", "a duration needs a state to hold: name it")
        last = self.parts[-1]
        if last.clause.bare and last.by in ("and", "or", ","):
            raise self.refuse(
                "ambiguous", "does the duration apply to all of it, or to the last part?"
            )
        self._require_state(last.formula, "only a state can be held for a time")
        if any(a.predicate in _PASSES for a in atoms(last.formula)):
            raise self.refuse(
                "unsupported", "a goal that spans the whole episode cannot be held for a time"
            )
        held = last.formula
        if (
            isinstance(held, Atom)
            and held.predicate == "still"
            and last.by == "and"
            and self.parts[1:]
        ):
            before = self.parts[-2]  # "put it there and let it lie still for a second": both
            own = all(a.terms[0] == held.terms[0] for a in atoms(before.formula))
            if own and formula_kind(before.formula) == "state":
                self.parts.pop()
                before.formula = join("and", *parts_of(before.formula, "and"), held)
                last = before
        last.formula = join("hold", last.formula, seconds=seconds)

    def _set_order(self, how: str) -> None:
        """ "in this order", "in any order"."""
        steps = self._sequence_steps()
        step = steps[-1] if steps else []
        found = [p for part in step for p in parts_of(part.formula, "and")]
        if len(steps) > 1 and how == "order" and len(found) < 2:
            return  # "first ..., then ..., in this order"
        if len(found) < 2 or len(steps) > 1 and how == "loose":
            raise self.refuse("ambiguous", "an order needs two goals or more")
        if how == "loose":
            made = join(
                "and", *(join("once", f) if formula_kind(f) == "state" else f for f in found)
            )
        else:
            made = join("then", *(without_operator(f, "once") for f in found))
        self.parts[len(self.parts) - len(step) :] = [_Part(step[0].by, made, step[0].clause)]

    def _sequence_steps(self) -> list[list[_Part]]:
        """The parts, cut where one is to follow the other."""
        steps: list[list[_Part]] = []
        for part in self.parts:
            if part.by == "then" or not steps:
                steps.append([])
            steps[-1].append(part)
        return steps

    # ------------------------------------------------------------------------------- the whole

    def _whole_formula(self) -> Formula:
        """All parts, with what is to be kept up."""
        if not self.parts and not any(without_operator(f, "always") != f for f in self.constraints):
            raise self.refuse(
                "unsupported", "a negation alone is not a goal: also say what to reach"
            )
        self._apply_manners()
        if not self.parts:
            return join_parts("and", self.constraints)
        self._commas_as_then()
        goal = self._relative_to_there(self._sequence())
        if self.deadline is not None:
            goal = join("within", without_operator(goal, "once"), seconds=self.deadline)
        if isinstance(goal, Atom) and goal.predicate == "balanced":
            goal = join("always", goal)  # to balance is to keep doing it
        self._require_possible(goal)
        if self.constraints:
            return join("and", *parts_of(goal, "and"), *dict.fromkeys(self.constraints))
        return goal

    def _apply_manners(self) -> None:
        """How fast, and what a part is to avoid, as what goes along with it."""
        manners = [
            part
            for part in (self.parts if len(self.parts) > 1 else [])
            if part.clause.predicate
            in ("slower", "faster")  # "... slower than 5 cm/s and touch it"
            and part.by in ("", "and", ",", "but")
            and part.clause.verb in MOVING | {"keep", "hold", "stay", "travel", ""}
        ]
        self.constraints += [consistency.always_formula(part.formula) for part in manners]
        after = [part for part in self.parts if part not in manners]
        if manners and after:
            after[0].by = ""
            self.parts = after
        slow = Atom.of("slower", self.actor)
        slowly = self.slowly or len(self.parts) == 1 and self.parts[0].slow
        for part in self.parts:
            if part.slow and not slowly:
                part.formula = join("while", part.formula, slow)
            if part.avoided:
                part.formula = join("while", part.formula, join_parts("and", part.avoided))
        if not slowly:
            return
        if self.things.actor is not None and self.things.actor.kind == BODY:
            raise self.refuse(
                "unsupported", "'slowly' has no set speed here: give one, as in 'at 0.5 m/s'"
            )
        if self.slowly and len(self._sequence_steps()) > 1:
            raise self.refuse("ambiguous", "does 'slowly' apply to all of it, or to one part?")
        bounds = [a for f in self.constraints for a in atoms(f) if a.predicate == "slower"]
        if not any(a.terms == slow.terms for a in bounds):
            self.constraints.append(join("always", slow))

    def _commas_as_then(self) -> None:
        """Commas before a "then" are as good as it: "open it, put it inside, then close it"."""
        parts = self.parts
        for at in range(len(parts) - 1, 1, -1):
            if parts[at].by == "then" and parts[at - 1].by == ",":
                parts[at - 1].by = "then"
                held = parts[at - 1].formula
                if isinstance(held, Joined) and held.parts[0] == parts[at - 2].formula:
                    del parts[at - 2]  # "touch it, wait there for a second, then ..."

    def _sequence(self) -> Formula:
        """The steps, one after the other."""
        parts, steps = self.parts, self._sequence_steps()
        timed = [at for at, part in enumerate(parts) if part.by in ("before", "after")]
        if not self.turn and not timed:
            formulas = consistency.without_implied_steps(
                [self._step_formula(step) for step in steps]
            )
            return join_parts("then", [p for f in formulas for p in parts_of(f, "then")])
        if len(steps) > 1 or len(timed) > 1:
            raise self.refuse(
                "ambiguous", "'after' or 'before' cannot be combined with 'then': use 'then' alone"
            )
        if self.turn:
            by, at = self.turn
            forward = by == "then"
        else:
            at = timed[0]
            forward = parts[at].by == "before"
            if any(not part.clause.bare for part in parts[at + 1 :]):
                raise self.refuse(
                    "ambiguous", f"unclear which goals {parts[at].by!r} orders: use 'then'"
                )
        first, second = self._step_formula(parts[:at]), self._step_formula(parts[at:])
        if timed and first == second and self.mentions.it:
            raise self.refuse("ambiguous", "the goals before and after are the same")
        return join("then", first, second) if forward else join("then", second, first)

    def _step_formula(self, parts: list[_Part]) -> Formula:
        """What one step asks for: its parts at once, or one of them."""
        parts = _without_lift_before_placing(parts)
        joins = {part.by for part in parts[1:]} - {"before", "after"}
        found = consistency.without_repeats([part.formula for part in parts])
        if len(found) == 1:
            if "and" in joins and len({p.clause.verb or p.clause for p in parts}) == 1:
                raise self.refuse("ambiguous", "the same goal is named twice: name it once")
            return found[0]
        if "or" in joins:
            if parts[0].by == "then" and any(p.clause.bare for p in parts[1:]):
                raise self.refuse("ambiguous", "does 'or' apply to the last part, or to all of it?")
            if joins != {"or"}:
                raise self.refuse("ambiguous", "'and' and 'or' cannot be combined: use one of them")
            return join("or", *found)
        if joins == {","}:
            verbs = all(p.clause.verb and not p.clause.lasting and not p.clause.told for p in parts)
            if verbs and consistency.is_sequential(found):
                return join("then", *(p.formula for p in parts))  # "touch it, go away from it"
            raise self.refuse("ambiguous", "only a comma joins two goals: say 'then' or 'and'")
        if parts[-1].by == "end":
            before = self._step_formula(parts[:-1])
            own = all(a.terms[0] == self.actor for a in atoms(before))  # a thing stays put
            before = join("once", before) if formula_kind(before) == "state" and own else before
            return join("and", before, parts[-1].formula)
        return self._together(
            parts,
            joins,
            consistency.without_implied_steps(consistency.simplify_conjuncts(found), at_once=True),
        )

    def _together(self, parts: list[_Part], joins: set[str], found: list[Formula]) -> Formula:
        """What is to hold together; what cannot, and can only come in turn, does that."""
        if len(found) > 1 and consistency.contradicts(
            [p for f in found for p in parts_of(f, "and")]
        ):
            released = isinstance(found[-1], Atom) and found[-1].predicate == "released"
            if len(found) == 2 and released:
                return join("then", *found)  # what is let go was held before
            if len(found) > 2 and all(isinstance(f, Atom) for f in found) and "," in joins:
                return join("then", *found)  # "open it, put the cube inside and close it"
            raise self.refuse(
                "ambiguous", "these cannot hold at the same time: say 'then' for a sequence"
            )
        own = [f for f in found if isinstance(f, Atom) and f.terms[0] == self.actor]
        if len({PREDICATES[f.predicate].compares for f in own}) > 1:  # "go up 5 cm and touch it"
            raise self.refuse("ambiguous", "simultaneous or in sequence? Say 'then' for a sequence")
        reached = any(f.predicate in ("touch", "above") for f in own)
        if self.mentions.it and reached and len(found) > 1:
            ordered = [p.clause for p in parts if p.formula in found]
            if any(clause.verb and not clause.lasting for clause in ordered[1:]):
                raise self.refuse(
                    "ambiguous", "simultaneous or in sequence? Say 'then' for a sequence"
                )
        return join_parts("and", found)

    def _number_of(self, atom: Formula, name: str) -> float:
        """A number of an atom, said or not."""
        [filled] = atoms(fill(atom, self.card))
        return filled[name]

    def _relative_to_there(self, goal: Formula) -> Formula:
        """A way of what something was done to before begins where it is by then: "touch it, then
        go up 5 cm"; unless where it began is said."""
        then = isinstance(goal, Joined) and goal.operator == "then"
        done: set[Term] = set()
        parts = []
        for count, part in enumerate(parts_of(goal, "then")):
            parts.append(_relative_to_part(part, done, count))
            done |= {self.actor, *(atom.terms[0] for atom in atoms(part))}
        return join("then", *parts) if then else parts[0]

    def _require_possible(self, goal: Formula) -> None:
        """Refuses a constraint that its own goal, or how everything begins, breaks."""
        wanted = set(atoms(goal))
        lasting = [
            a
            for one in self.constraints
            for a in parts_of(without_operator(one, "always"), "and")
            if without_operator(one, "always") != one
        ]
        if consistency.contradicts([*parts_of(goal, "and"), *lasting]):
            raise self.refuse("ambiguous", "these cannot hold at the same time")
        paces = [
            self._number_of(a, "pace") for a in wanted if a.predicate in ("forward", "backward")
        ]
        slow = [self._number_of(a, "speed") for a in lasting if a.predicate == "slower"]
        if slow and paces and min(slow) <= max(paces):
            raise self.refuse(
                "ambiguous",
                f"the speed limit of {min(slow):g} m/s conflicts with the pace of {max(paces):g} "
                f"m/s: give a pace below the limit, as in 'at {min(slow) / 2:.3g} m/s'",
            )
        handled = {a.terms[0] for a in wanted if a.terms[0] != self.actor}
        for one in self.constraints:
            kept = without_operator(one, "always") != one
            for atom in atoms(one):
                if kept:  # all begins at rest; into what stays shut nothing comes
                    opened = any(a.predicate in ("inside", "open") for a in wanted)
                    broken = atom.predicate == "faster" or atom.predicate == "closed" and opened
                else:
                    touched = atom.predicate == "touch" and atom.terms[-1] in handled
                    broken = atom in wanted or touched or atom.predicate in ("still", "slower")
                if broken:
                    raise self.refuse(
                        "unsupported", f"{one} conflicts with the goal or with the initial state"
                    )


def _without_lift_before_placing(parts: list[_Part]) -> list[_Part]:
    """Without the lifting of what is put down right after: "pick it up and put it on the left"."""
    return [
        part
        for part, after in zip(parts, (*parts[1:], None), strict=True)
        if not (
            after is not None
            and after.clause.verb in _PUTS
            and after.by == "and"
            and isinstance(part.formula, Atom)
            and isinstance(after.formula, Atom)
            and part.formula.predicate in ("lifted", "grasped")
            and not part.formula.numbers
            and PREDICATES[after.formula.predicate].level
            and after.formula.terms[0] == part.formula.terms[0]
        )
    ]


def _relative_to_part(formula: Formula, done: set[Term], after: int) -> Formula:
    """The formula with what is said of things that are ``done`` compared with the end of part
    ``after``."""
    if isinstance(formula, Joined):
        parts = (_relative_to_part(part, done, after) for part in formula.parts)
        return Joined(formula.operator, tuple(parts), formula.numbers)
    numbers = dict(formula.numbers)
    ways = [value for name, value in numbers.items() if name != "tolerance"]
    told = numbers.pop(AFTER, None) is not None or ways and not any(ways)  # "back"
    if PREDICATES[formula.predicate].compares and formula.terms[0] in done and not told:
        numbers[AFTER] = float(after)
    return Atom(formula.predicate, formula.terms, tuple(numbers.items()))
