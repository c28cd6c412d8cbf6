"""From a clause and the things that it is about to the atom that it asks for, held against the
card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reward_models.base import TaskCard
from reward_models.goals.formula import Atom, EntityChoice, Formula, Term, check, join
from reward_models.goals.grammar.clauses import Clause
from reward_models.goals.grammar.consistency import join_parts
from reward_models.goals.grammar.noun_phrases import EntityNames
from reward_models.goals.grammar.quantities import Quantity
from reward_models.goals.grammar.wordings import BODY_OF
from reward_models.goals.predicates import AFTER, BODY, FURNITURE, GRIPPER, MARKS, PREDICATES, SIDES
from reward_models.goals.refusal import Refusal

Refuse = Callable[[str, str], Refusal]
_BEING = frozenset({"", "be", "touch", "contact", "reach", "meet", "lie", "stand", "sit", "rest"})
MOVING = frozenset("push|move|slide|shove|nudge|roll|drag|pull|carry|send|take|go|come".split("|"))
_LIFTING = frozenset({"lift", "raise", "lower", "drop"})
_MOVES = frozenset({"push", "place", "insert", "lift"})
_AMOUNTS = {
    "m": "a length (5 cm)",
    "1": "a share (halfway, 60 %)",
    "rad": "an angle (30 degrees)",
    "m/s": "a speed (10 cm/s)",
}
_BOUNDS = {
    "least": "a minimum",
    "most": "a maximum",
    "just": "an exact value",
    "tolerance": "a tolerance",
}


_CORNERS = [(x, y) for x in ("at_front", "at_back") for y in ("on_left", "on_right")]


def _rounded(value: float) -> float:
    """Without what binary fractions add: 7 cm are .07 m."""
    return round(value, 9) if abs(round(value, 9) - value) < 1e-12 else value


def _default_number(predicate: str, number: str, said: bool = False) -> float:
    """A number of a predicate where it was not said; ``said``: another was."""
    [found] = [n.meant((), said, False) for n in PREDICATES[predicate].numbers if n.name == number]
    assert found is not None
    return found


class AtomBuilder:
    """What one card has for clauses."""

    def __init__(self, things: EntityNames, card: TaskCard, refuse: Refuse) -> None:
        self.things, self.card, self.refuse = things, card, refuse
        assert things.actor is not None
        self.actor = things.actor.name

    def several(
        self, clause: Clause, how: str, subjects: list[Term], sides: list[tuple[str, list[Term]]]
    ) -> Formula | None:
        """Predicates that take several things at once; None: it is none of these."""
        things = [t for _, terms in sides for t in terms]
        match clause.predicate:
            case "together" | "in_touch" | "apart" | "away" | "parted" if not sides:
                if len(subjects) != 2 or how in ("or", "nor"):
                    raise self.refuse(
                        "ambiguous", "'together' and 'apart' need exactly two objects"
                    )
                pair = subjects if subjects[1] != self.actor else subjects[::-1]
                if clause.predicate in ("apart", "away"):
                    return self._at_distance(clause, *pair)
                beside = "touch" if pair[0] == self.actor else "next_to"
                name, terms = ("far" if clause.predicate == "parted" else beside), pair
            case "stacked":
                if len(subjects) != 2 or how in ("or", "nor"):
                    raise self.refuse(
                        "ambiguous", "unclear which of the two is on top: say 'A on B'"
                    )
                return self.either_way(replace(clause, predicate="on"), subjects)
            case "on" | "on_top" if clause.verb.split(" ")[0] in ("stack", "pile") and (
                len(subjects) > 1 and how not in ("or", "nor") and len(things) == 1
            ):  # one of them there, and the other on top
                if len(subjects) > 2:
                    raise self.refuse(
                        "ambiguous", "unclear which of the two is on top: say 'A on B'"
                    )
                on = replace(clause, predicate="on")
                piles = (
                    (self.one(on, (a, things[0])), self.one(on, (b, a)))
                    for a, b in (subjects, subjects[::-1])
                )
                return join("or", *(join("and", *pile) for pile in piles))
            case "tower":
                blocks = [e.name for e in self.card.entities if "stack" in e.affordances]
                top = things[0]
                under = [t for t in (things if len(things) == 2 else blocks) if t != top]
                if len(under) != 1:
                    raise self.refuse(
                        "ambiguous", "unclear which object is on top and which below: say 'A on B'"
                    )
                name, terms = "on", [top, *under]
            case "in_line":
                name, terms = "in_line", [*subjects, *things]
                if len(terms) != 3:
                    raise self.refuse("unsupported", "a line needs exactly three objects")
            case "between" if len(subjects) == 1:
                name, terms = "between", [*subjects, *things]
                if len(things) != 2:
                    raise self.refuse("ambiguous", "'between' needs exactly two objects")
            case _:
                return None
        return self._checked(Atom.of(name, *terms), clause)

    def either_way(self, clause: Clause, pair: list[Term]) -> Formula:
        """Returns the formula of a clause about a pair that does not say which is which."""
        first, second = (self.one(clause, (a, b)) for a, b in (pair, pair[::-1]))
        same = isinstance(first, Atom) and PREDICATES[first.predicate].mirror == first.predicate
        return first if same else join("or", first, second)

    def one(self, clause: Clause, terms: tuple[Term, ...]) -> Formula:
        """Returns the atom of a clause about these things."""
        name, first = clause.predicate, terms[0]
        hand = first == self.actor
        if clause.verb in _LIFTING and not hand:
            lifts = self._affords(first, "lift")
            placed = (
                name in ("on", "on_top", "inside", "far", "lifted") or name == "above" and lifts
            )
            dropped = clause.verb.startswith("drop") and name in ("to", "at")
            if len(terms) == 2 and not placed and not dropped:
                raise self.refuse(
                    "unsupported", f"{clause.verb!r} needs a place: say where to put the object"
                )
            if not lifts:
                raise self.refuse("unsupported", f"the {first} cannot be lifted")
        match name:
            case "to" | "against" | "at":
                return self._contact_or_place(clause, terms)
            case "toward":
                name = "touch" if hand else "nearer"
            case "by":
                if clause.verb in MOVING and not hand:
                    raise self.refuse(
                        "unsupported", "'by': past it, or beside it? Say 'next to' for beside"
                    )
                name = "next_to"
            case "touch" if clause.verb == "give" and self.kind(terms[-1]) == "button":
                name, terms = "pressed", terms[-1:]
            case "touch" if hand and self.things.actor.kind == BODY:
                name = "at"
            case "holds":
                hole = self.kind(first)
                name = {"hole": "inserted", "drawer": "inside"}.get(hole, "on")
                terms = (terms[1], first)
            case "stowed":
                rooms = [e.name for e in self.card.entities if e.kind == "drawer"]
                if len(rooms) != 1:
                    raise self.refuse(
                        "unsupported", "'put away' needs exactly one drawer: name the place"
                    )
                name, terms = "inside", (first, rooms[0])
            case "apart" | "away":
                return self._at_distance(clause, *terms)
            case "next_to" if hand or terms[-1] == self.actor:
                raise self.refuse(
                    "unsupported",
                    "'next to' the gripper has no distance: say 'within 5 cm of', or a side",
                )
            case "on" if hand and self.things.actor.kind == BODY:
                name = "at"
            case "on" if hand:
                if clause.verb not in ("put", "place", "rest", "lay", "set", "get", "keep", "have"):
                    raise self.refuse(
                        "ambiguous", f"'on the {terms[1]}': touch it, or be above it?"
                    )
                name = "touch"
            case "on_top":
                name = "above" if hand else "on"
            case "inside":
                hole = self.kind(terms[1]) == "hole"
                name = "inserted" if hole else "inside"
            case "inserted":
                holes = [e.name for e in self.card.entities if e.kind == "hole"]
                if len(holes) != 1:
                    raise self.refuse("unsupported", "'insert' needs exactly one hole in the scene")
                if len(terms) == 1:
                    terms = (*terms, holes[0])
            case "below":
                if terms[1] != self.actor:
                    raise self.refuse(
                        "unsupported", "objects cannot be placed below one another in this scene"
                    )
                name, terms = "above", (terms[1], terms[0])
            case "above" if not hand and not self._affords(first, "lift", "place", "insert"):
                raise self.refuse(
                    "unsupported", f"the {first} cannot be lifted, so it cannot be above something"
                )
            case "upright" if "balance" in self.card.entity(str(first)).affordances:
                name = "balanced"
            case "moved" | "displaced":
                made = self._displacement(clause, first)
                since = ((AFTER, 0.0),) if clause.began else ()
                return Atom(made.predicate, made.terms, (*made.numbers, *since))
            case "at_point":
                return self._at_point(clause, first)
            case "corner":
                return join("or", *(self._in_corner(clause, first, *ends) for ends in _CORNERS))
            case _ if " " in name:
                return self._in_corner(clause, first, *name.split())
            case "at_height" if clause.much is None:
                raise self.refuse("ambiguous", "no height is given: say '15 cm above the table'")
            case "at_height" if clause.much.just and self.kind(first) == GRIPPER:
                return self._over_table(clause, first)
            case "returned":
                there = [self._with_numbers("moved", (first,), {"left": 0.0, "front": 0.0})]
                there += [self._with_numbers("raised", (first,), {"height": 0.0})] if hand else []
                return join_parts("and", [self._checked(atom, clause) for atom in there])
            case "lowered":
                said = dict(self._with_quantity("raised", terms, clause.much).numbers)
                said["height"] = -said.get("height", _default_number("raised", "height"))
                return self._checked(self._with_numbers("raised", terms, said), clause)
            case "touch" if len(terms) == 2 and terms[1] == self.actor:
                terms = (terms[1], terms[0])
        if terms[-1] == self.actor and not hand and clause.verb and not clause.lasting:
            if clause.verb not in _BEING:
                raise self.refuse(
                    "unsupported", "an object cannot move to the gripper: say 'go to' or 'touch'"
                )
        if name in ("left_of", "right_of", "in_front_of", "behind", "far", "near"):
            if len(terms) == 2 and terms[1] == self.actor:  # the ball is left of the gripper
                name, terms = PREDICATES[name].mirror, (terms[1], terms[0])
        atom: Formula = self._with_quantity(name, terms, clause.much)
        made = self._checked(atom, clause)
        if clause.also:
            return join("and", made, Atom.of(clause.also, first))
        return made

    def _contact_or_place(self, clause: Clause, terms: tuple[Term, ...]) -> Formula:
        """ "to" and "against": the gripper touches; a thing is beside another, or on a mark."""
        first, target = terms
        if clause.predicate == "at" and first != self.actor and self.kind(target) not in MARKS:
            raise self.refuse("ambiguous", f"'at the {target}': on it, or beside it?")
        if target == self.actor and clause.predicate == "against" and clause.verb in _BEING:
            first, target = target, first
        if target == self.actor:
            raise self.refuse(
                "unsupported", "an object cannot move to the gripper: say 'go to' or 'touch'"
            )
        if first == self.actor:
            reach = "at" if self.things.actor.kind == BODY else "touch"
            return self._checked(Atom.of(reach, first, target), clause)
        where = self.kind(target)
        if clause.predicate in ("to", "at") and where in MARKS:
            return self._checked(Atom.of("on", first, target), clause)
        beside = clause.verb == "push" and where in ("handle", "button")
        beside &= self.kind(first) not in FURNITURE
        hollow = where in FURNITURE and not beside
        if clause.predicate == "to" and (hollow or clause.verb in ("put", "place")):
            raise self.refuse("ambiguous", f"'to the {target}': in it, on it or beside it?")
        return self._checked(Atom.of("next_to", first, target), clause)

    def _at_distance(self, clause: Clause, first: Term, second: Term) -> Formula:
        """Two things with a distance between them that is bounded."""
        much = clause.much
        assert much is not None
        if second == self.actor:
            if clause.verb in MOVING and not clause.lasting:
                raise self.refuse(
                    "unsupported",
                    "only the gripper moves relative to an object: name the gripper first",
                )
            first, second = second, first
        if much.just and clause.predicate != "away":
            raise self.refuse(
                "ambiguous", "is the distance a minimum or a maximum? Say 'at least' or 'at most'"
            )
        least, most = much.least, None if much.just else much.most
        found: list[Formula] = []
        if least is not None:
            found.append(
                self._checked(self._with_numbers("far", (first, second), {"least": least}), clause)
            )
        if most is not None:
            found.append(
                self._checked(self._with_numbers("near", (first, second), {"within": most}), clause)
            )
        return found[0] if len(found) == 1 else join("and", *found)

    def _displacement(self, clause: Clause, first: Term) -> Atom:
        much = clause.much
        assert much is not None
        if clause.predicate == "displaced":
            if much.just:
                raise self.refuse(
                    "ambiguous", "the direction is missing: say 'to the left', 'forward', ..."
                )
            if clause.verb in _LIFTING:
                raise self.refuse("unsupported", "lifting takes a minimum height, not a maximum")
            bounded = self._with_quantity("displaced", (first,), much)
            if much.least is None:
                bounded = Atom.of("displaced", first, least=0.0, **dict(bounded.numbers))
            return self._checked(bounded, clause)
        if not much.just:
            raise self.refuse(
                "unsupported",
                "'moved' takes one length, not a minimum or maximum; add 'give or take'",
            )
        numbers = {name: value for name, value in clause.numbers if value}
        if much.tolerance is not None:
            numbers["tolerance"] = much.tolerance
        return self._checked(self._with_numbers("moved", (first,), numbers), clause)

    def _in_corner(self, clause: Clause, first: Term, *ends: str) -> Formula:
        """In the outermost part of a table to two of its sides."""
        return join("and", *(self._checked(Atom.of(end, first), clause) for end in ends))

    def _over_table(self, clause: Clause, first: Term) -> Formula:
        """ "20 cm above the table", as nearly as above a thing."""
        much = clause.much
        assert much is not None
        usual = _default_number("above", "tolerance", said=True)
        off = usual if much.tolerance is None else much.tolerance
        numbers = {"least": max(much.value - off, 0.0), "most": much.value + off}
        return self._checked(self._with_numbers("at_height", (first,), numbers), clause)

    def _at_point(self, clause: Clause, first: Term) -> Formula:
        numbers = dict(clause.numbers)
        if clause.much is not None:
            numbers["within"] = clause.much.most or clause.much.value
        return self._checked(self._with_numbers("at_point", (first,), numbers), clause)

    def _with_quantity(self, name: str, terms: tuple[Term, ...], much: Quantity | None) -> Atom:
        """The atom with a quantity in the number that takes it."""
        if much is None:
            return self._with_numbers(name, terms, {})
        if much.unit == "m" and name in ("open", "pressed"):
            much = self._as_share(terms[0], much)
        slots = {n.said: n for n in PREDICATES[name].numbers if n.said and n.unit == much.unit}
        if name == "closed" and much.just:
            much = Quantity(much.unit, None, 1 - much.value)  # 80 % closed is 20 % open
        if not slots:
            takes = [_AMOUNTS.get(n.unit, n.name) for n in PREDICATES[name].numbers if n.said]
            raise self.refuse(
                "unsupported",
                f"{name} takes no number in {much.unit or 'that unit'}; "
                f"it takes {' or '.join(dict.fromkeys(takes)) or 'none'}",
            )
        said: dict[str, float | None] = {"least": much.least, "most": much.most}
        if "just" not in slots and much.just:
            said = {"least" if "least" in slots else "most": much.value}
        elif much.just:
            said = {"just": much.value}
        elif "just" in slots:
            if much.least is None or much.most is None:
                raise self.refuse(
                    "unsupported",
                    f"{name} takes one {slots['just'].name}, not a "
                    "minimum or maximum; say it with 'give or take'",
                )
            said = {
                "just": round((much.least + much.most) / 2, 9),
                "tolerance": round((much.most - much.least) / 2, 9),
            }
        if much.tolerance is not None:
            said["tolerance"] = much.tolerance
        numbers: dict[str, float] = {}
        for bound, value in said.items():
            if value is not None:
                if bound not in slots:
                    raise self.refuse(
                        "unsupported",
                        f"{name} does not take {_BOUNDS[bound]}; "
                        f"it takes {' and '.join(_BOUNDS[slot] for slot in slots)}",
                    )
                numbers[slots[bound].name] = value
        return self._with_numbers(name, terms, numbers)

    def _as_share(self, term: Term, much: Quantity) -> Quantity:
        """A length as a share of the way that a thing slides; itself where no card says how far."""
        joint = f"{self.card.entity(str(term)).body}_joint"
        way = next((s.range[1] for s in self.card.signals if s.name == joint), 0.0)
        if not way:
            return much
        if max(much.least or 0.0, much.most or 0.0) > way:
            raise self.refuse("unsupported", f"the {term} slides at most {100 * way:.3g} cm")
        least, most = (None if n is None else n / way for n in (much.least, much.most))
        return replace(much, unit="1", least=least, most=most)

    def _with_numbers(self, name: str, terms: tuple[Term, ...], numbers: dict[str, float]) -> Atom:
        units = {n.name: n.unit for n in PREDICATES[name].numbers}
        rounded = {k: v if units[k] == "rad" else _rounded(v) for k, v in numbers.items()}
        return Atom.of(name, *terms, **rounded)

    def _checked(self, atom: Formula, clause: Clause) -> Atom:
        """The atom, held against the card; FormulaError where that has no such thing."""
        assert isinstance(atom, Atom)
        known = PREDICATES[atom.predicate]
        apart = self.things.objects and self.things.actor.kind == BODY
        if apart and known.name not in ("on", "at"):
            raise self.refuse("unsupported", f"{known.name} is not measured in this task")
        if known.name in SIDES and not self.card.area:
            raise self.refuse("unsupported", "the scene has no table with known sides")
        if atom.predicate in BODY_OF and atom.terms[0] != BODY_OF[atom.predicate]:
            raise self.refuse(
                "unsupported", f"{atom.predicate} does not apply to the {atom.terms[0]}"
            )
        check(atom, self.card)
        mover = atom.terms[0]
        moved = known.arity > 1 or known.level or atom.predicate in ("turned", "toppled")
        if moved and mover != self.actor and not self._affords(mover, *_MOVES):
            raise self.refuse("unsupported", f"the {mover} cannot be moved")
        return atom

    def kind(self, term: Term) -> str:
        """Returns the kind of a term's entity, or of the first that a choice is among."""
        return self.card.entity(term.among[0] if isinstance(term, EntityChoice) else term).kind

    def _affords(self, term: Term, *what: str) -> bool:
        """Whether a thing affords one of these; where no card says what anything does, that it is
        no furniture."""
        told = any(e.affordances for e in self.card.entities)
        for name in term.among if isinstance(term, EntityChoice) else (term,):
            entity = self.card.entity(name)
            if told and (entity.kind in FURNITURE | MARKS or not {*what} & {*entity.affordances}):
                return False
        return told or "push" in what
