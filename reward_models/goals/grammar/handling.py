"""Sentences about handling: "pick up the cube and put it on the target", "pull the drawer open".

Like a body's actions these are a closed list of patterns over whole clauses, with X for the thing
that is handled and Y for where it goes. What may be done to a thing is what its card affords, so
"push the button" presses it and "push the cube" is left to the grammar of the tabletop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reward_models.base import Entity, TaskCard
from reward_models.goals.captions import describe_vocabulary
from reward_models.goals.formula import Atom, Formula, Joined, atoms
from reward_models.goals.grammar.entities import mark_nouns, match_entities
from reward_models.goals.grammar.lexicon import ARTICLES, LEXICON, UNSUPPORTED
from reward_models.goals.grammar.names import Names
from reward_models.goals.grammar.phrases import PHRASES, Table, expand, table
from reward_models.goals.grammar.refusals import Refusal, Refuser
from reward_models.goals.grammar.words import Token, match, split_words
from reward_models.goals.predicates import PREDICATES, role, roles

_UP = (
    "(in air|into air|up in air|up into air|off table|up off table|off [of] ground|from table|"
    "up from table|above table|off surface|off floor)"
)
_ON = "(on|onto|on to|upon|on top of|onto top of|atop)"
_IN = "(in|into|in to|inside|inside of|within|in its|into its|inside its)"
_AT = "(to|at|over to|onto|on|on to)"
_PUT = "(put|place|set|lay|rest|position|deposit)"
_CARRY = "(move|bring|carry|take|transport|transfer|deliver|get)"
_STORE = "(store|stow|stash|keep|insert|fit|push|slide|drop|pop|slip|tuck|slot|stick|plug)"
_BE = "(be|stay|remain)"
_LYING = "(be|stay|remain|stand|sit|rest|lie)"
_BY = "[by Y|using Y|with Y|by pulling Y|by pulling on Y]"
_SHUT = "(shut|closed|in|back in|back into place)"
# Verbs as stems, no articles; X and Y are the first and the second thing of the clause.
_CLAUSES = {
    f"(lift|raise|hoist|elevate) X [up] [{_UP}]": "lifted",
    f"(lift|raise) up X [{_UP}]": "lifted",
    f"pick X up [{_UP}]": "lifted",
    f"pick up X [{_UP}]": "lifted",
    f"(pick|hold|keep|get|bring|take|move) X {_UP}": "lifted",
    "(hold|keep) X (up|lifted|raised)": "lifted",
    "hold up X": "lifted",
    f"X {_BE} [held] {_UP}": "lifted",
    f"X {_BE} (lifted|raised|picked up|held up|lifted up|hoisted) [{_UP}]": "lifted",
    f"{_PUT} X [down] {_ON} Y": "on",
    f"(set|put|lay) down X {_ON} Y": "on",
    f"{_CARRY} X [over] {_ON} Y": "on",
    f"(stack|pile) X [up] {_ON} Y": "on",
    f"X {_LYING} [down] {_ON} Y": "on",
    f"X {_BE} (placed|put|set|stacked|laid) [down] {_ON} Y": "on",
    f"{_CARRY} X [over] {_AT} Y": "at",
    f"(push|slide|drag|shove|nudge|pull) X [over] {_AT} Y": "at",
    f"{_PUT} X [down] at Y": "at",
    f"X {_LYING} at Y": "at",
    f"X {_BE} (placed|put|set|moved|brought|carried) {_AT} Y": "at",
    f"{_PUT} X [down] {_IN} Y": "inside",
    f"{_CARRY} X {_IN} Y": "inside",
    f"({_PUT}|tuck|pack) X (away|back) {_IN} Y": "inside",
    f"(pop|stick) X [down] {_ON} Y": "on",
    f"{_STORE} X {_IN} Y": "inside",
    f"X {_LYING} {_IN} Y": "inside",
    f"X {_BE} (placed|put|set|stored|stowed|inserted|fitted) {_IN} Y": "inside",
    "insert X": "inserted",
    f"X {_BE} inserted": "inserted",
    f"(open|open up) X {_BY}": "open",
    f"(pull|slide|draw|drag|tug) X (open|out) {_BY}": "open",
    f"(pull|slide|draw) (open|out) X {_BY}": "open",
    "(make|get|leave|keep|have|hold|push) X open": "open",
    f"X {_BE} (open|opened|pulled open|pulled out)": "open",
    f"(close|shut) X {_BY}": "closed",
    f"(push|slide|press|move|shove) X {_SHUT} {_BY}": "closed",
    "(push|slide|press) (shut|in) X": "closed",
    f"(make|get|leave|keep|have) X {_SHUT}": "closed",
    f"X {_BE} (closed|shut|pushed in|pushed shut)": "closed",
    "(press|push|hit|click|depress) X [down|in]": "pressed",
    "(press|push) down [on] X": "pressed",
    "(press|push) on X": "pressed",
    "(hold|keep) X (down|pressed|pressed down)": "pressed",
    "give X (press|push|click) [down]": "pressed",
    "(tap|punch|push|press) X (in|down)": "pressed",
    "hold down X": "pressed",
    f"X {_BE} (pressed|pressed down|pushed|pushed down|pushed in|depressed|hit|down)": "pressed",
}
_MEANING: Table = table(_CLAUSES)
_TOWER = "(build|make) tower with X (below|at bottom|on bottom) and Y (above|at top|on top)"
_TOWERS = {tuple(phrase.split()) for phrase in expand(_TOWER)}  # Y is on X
_GRASPS = {
    tuple(phrase.split())
    for phrase in expand("(grasp|grab|grip|take|take hold of|get hold of|close hand around) X")
}  # no goals themselves; they lead to one
_DOWN_THERE = {tuple(p.split()) for p in expand(f"{_PUT} X [down] THERE")}
_PUT_IN = {tuple(p.split()) for p in expand(f"({_PUT}|{_CARRY}|{_STORE}) X inside")}

# The forms of a verb: the stem of an order or after "should"; others only in their places.
_STEMS = (
    "lift raise hoist elevate pick hold keep get bring take move put place set lay rest position "
    "deposit carry transport transfer deliver stack pile store stow stash insert fit push slide "
    "drop open pull draw drag tug close shut press hit click depress shove make leave have build "
    "grasp grab grip be stand sit lie stay remain pop slip tuck slot stick plug pack give tap punch"
).split()
_PLACES = {"be", "stand", "sit", "lie", "stay", "remain", "rest"}  # what a thing does by itself
_THIRD: dict[str, str] = {"is": "be", "are": "be", "has": "have", "carries": "carry"}
_GOING: dict[str, str] = {"lying": "lie", "being": "be"}
for _verb in _STEMS:
    _es = _verb.endswith(("ss", "sh", "ch", "x"))
    _THIRD.setdefault(_verb + ("es" if _es else "s"), _verb)
    for _stem in (_verb, _verb.removesuffix("e"), _verb + _verb[-1]):
        _GOING.setdefault(f"{_stem}ing", _verb)
_WORDS = (
    frozenset(
        word
        for phrase in (*_MEANING, *_TOWERS, *_GRASPS, *_DOWN_THERE, *_PUT_IN)
        for word in phrase
    )
    | _THIRD.keys()
)
_OWN = _WORDS - (LEXICON - UNSUPPORTED.keys())  # words that only this list understands
_OPENERS = table(
    {
        "there": "THERE",
        "it": "IT",
        **{p: s for p, s in PHRASES.items() if set(s.split()) <= {"POLITE", "WANT", "SURE"}},
        **{p: s for p, s in PHRASES.items() if s in ("MODAL", "THEN", "FIRST")},
        "and [also]": "AND",
        "you": "HAND",
    }
)
# "all the way open": as far as open goes there is no more of it.
_WHOLLY = re.compile(r"(?<!\S)(?:all way|fully|completely|entirely|wide) "
                     r"(?=(?:open|closed|shut|in|out|down|back|up)(?!\S))")  # fmt: skip
_POSSIBLE = {"can", "could", "may", "might", "would"}
_HANDLED = frozenset({"lift", "place", "open", "close", "press", "insert"})


def handled(card: TaskCard) -> bool:
    """Whether something on the card can be handled, not only touched and pushed."""
    return any(_HANDLED.intersection(entity.affordances) for entity in card.entities)


def read_handling(text: str, card: TaskCard) -> Formula | None:
    """The formula of a sentence about handling; None where it is for the tabletop's grammar.

    ``Refusal`` where only this list knows its words and still does not understand it.
    """
    names = Names(card)
    refuse = Refuser(text, f"Understood: {describe_vocabulary(card)}", names.words)
    raw = [word for word in names.shaded(split_words(text)) if word not in ARTICLES]
    tokens = [Token(word, word) for word in mark_nouns(raw, names)]
    # "on the target, then": no "target, ..." that introduces a wish
    openers = {p: symbols for p, symbols in _OPENERS.items() if p[0] not in names.words}
    tokens, wrong = match_entities(match(tokens, openers), names, refuse)
    asks = any(token.symbol in ("POLITE", "WANT") for token in tokens)
    possible = any(t.symbol == "MODAL" and t.text.split()[0] in _POSSIBLE for t in tokens)
    question = bool(re.search(r"\?[^\w]*$", text)) and not asks
    marks = "#" in raw  # the reader's own, which nobody may type
    if not (wrong or possible or question or marks):
        formula = _Reader(names, refuse).formula([token.symbol for token in tokens])
        if formula is not None:
            return formula
    if _OWN.intersection(raw) and not question:
        if wrong:
            raise wrong[0]
        raise _unreadable(raw, names, refuse)
    return None


def check_movers(formula: Formula, card: TaskCard, refuse: Refuser) -> None:
    """Refuses a relation of two things of which the first stands where it is, as furniture does."""
    for atom in atoms(formula):
        thing = card.entity(atom.subject)
        if atom.object and role(thing) == "object" and "place" not in thing.affordances:
            raise refuse("unsupported", f"the {thing.name} cannot be moved to something")


def _unreadable(raw: Sequence[str], names: Names, refuse: Refuser) -> Refusal:
    """Why a sentence about handling was not read."""
    known = LEXICON | names.words | _WORDS | {"table", "ground", "floor", "surface", ","}
    for word in raw:
        if word not in known:
            return refuse.unknown(word, "unknown_object" if word.isalpha() else "unknown_word")
    for word in raw:
        if word in UNSUPPORTED and word not in _WORDS | names.words:
            return refuse("unsupported", f"{UNSUPPORTED[word]} ({word!r}) is not understood")
    return refuse("unsupported", "these words are not understood in this order")


class _Reader:
    """The clauses of one sentence; remembers what was said, for "it" and "there"."""

    def __init__(self, names: Names, refuse: Refuser) -> None:
        self.card, self.hand, self.refuse = names.card, names.hand.name, refuse
        self.said: list[str] = []  # things that were named
        self.grasped = ""  # what the last clause grasped, which is no goal of its own
        self.atoms: list[Atom] = []

    def formula(self, symbols: Sequence[str]) -> Formula | None:
        s = " ".join(s for s in symbols if s != "POLITE")
        polite = len(s.split()) < len(symbols)
        s = re.sub(r"(?:, )*(?:AND )?(?:, )*THEN(?: ,)*", "THEN", s)
        s = re.sub(r"(?:, )*AND(?: ,)*", "AND", s).strip(" ,")
        s = _WHOLLY.sub("", s)
        for target in (e.name for e in self.card.entities if e.kind == "target"):
            s = re.sub(rf"(#{target}) (?:spot|area|zone|location|position|place)(?!\S)", r"\1", s)
        tower = re.sub("AND", "and", s)
        if words := self.words(tower, polite):
            things = [w[1:] for w in words if w[0] == "#"]
            shape = _shape(words)
            if shape in _TOWERS and len(things) == 2:
                return self.atom("on", things[1], things[0])
        if "FIRST" in s.split():
            if "THEN" not in s.split() or s.split().index("FIRST") > s.split().index("THEN"):
                return None
            s = re.sub(r"(?:, )?FIRST(?: ,)?", "", s, count=1)
        steps: list[list[Atom]] = [[]]
        for part in re.split(r"(?<!\S)(AND|THEN)(?!\S)", s):
            if part == "THEN":
                steps.append([])
            elif part != "AND":
                atom = self.clause(part.strip(" ,"), polite)
                if atom is None and not self.grasped:
                    return None
                if atom is not None:
                    self.means(atom, steps)
                    if atom not in steps[-1]:
                        steps[-1].append(atom)
        if self.grasped:  # it led to nothing
            return None
        return self.joined([step for step in steps if step])

    def joined(self, steps: list[list[Atom]]) -> Formula | None:
        for step in steps:
            things = [atom.subject for atom in step]
            if len(set(things)) < len(things):
                raise self.refuse("ambiguous", f"{step[0]} and {step[1]} at once? Say 'then'")
        parts: list[Formula] = [s[0] if len(s) == 1 else Joined("and", tuple(s)) for s in steps]
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else Joined("then", tuple(parts))

    def means(self, atom: Atom, steps: list[list[Atom]]) -> None:
        """Forgets the last goal where it only led to this one: what is put somewhere was lifted
        before, and a drawer into which something is put was opened."""
        carried = atom.predicate in ("on", "inside", "inserted")
        led = {Atom.of("lifted", atom.subject)} if carried else set()
        if atom.predicate == "inside" and "open" in self.card.entity(atom.object).affordances:
            led.add(Atom.of("open", atom.object))
        for step in steps[-2:]:
            step[:] = [one for one in step if one not in led]
        if self.grasped == atom.subject:
            self.grasped = ""

    def clause(self, part: str, polite: bool) -> Atom | None:
        """The atom of one clause; None where it is no goal (or only grasps)."""
        words = self.words(part, polite)
        if not words or words.count("IT") > 1:
            return None
        if "IT" not in words:
            return self.meant(words)
        before = self.grasped
        found: dict[str, tuple[Atom, str]] = {}
        for name in self.said:
            self.grasped = before
            atom = self.meant([f"#{name}" if word == "IT" else word for word in words])
            if atom is not None:
                found[str(atom)] = atom, self.grasped
        self.grasped = before
        if len(found) != 1:
            return None
        [(atom, self.grasped)] = found.values()
        return atom

    def words(self, part: str, polite: bool) -> list[str]:
        """The clause without what only introduces it, its verb as a stem; empty: not understood."""
        opening = re.match(r"(?:(?:WANT|SURE) (?:that )?)*", part)
        assert opening is not None  # it may be empty
        words = part[opening.end() :].split()
        wanted = bool(opening[0])
        if words[:1] == ["HAND"]:  # "the gripper lifts", "should lift", "to lift", "is lifting"
            words = words[1:]
            if words[:1] == ["MODAL"] or (wanted and words[:1] == ["to"]):
                words = words[1:]
                return words if words[:1] and words[0] in _STEMS else []
            if words[:1] == ["is"] and len(words) > 1 and words[1] in _GOING:
                return [_GOING[words[1]], *words[2:]]
            if words[:1] and words[0] in _THIRD:
                return [_THIRD[words[0]], *words[1:]]
            return [] if words[:1] == ["be"] else words if words[:1] != [","] else words[1:]
        if words[:1] and (words[0][0] == "#" or words[0] == "IT") and len(words) > 1:
            thing, verb, rest = words[0], words[1], words[2:]
            if verb == "MODAL" or (wanted and verb == "to"):
                if rest and rest[0] in _PLACES:
                    return [thing, *rest]
                return []
            if verb == "be":
                return []
            if wanted and _GOING.get(verb, "") in _PLACES - {"be"}:  # "I want it lying on the box"
                return [thing, _GOING[verb], *rest]
            if verb in _THIRD and _THIRD[verb] in _PLACES:
                going = _GOING.get(rest[0], "") if rest and verb == "is" else ""
                return (
                    [thing, going, *rest[1:]] if going in _PLACES else [thing, _THIRD[verb], *rest]
                )
            return [thing, "be", verb, *rest] if wanted else []  # "I want the drawer open"
        if wanted and words[:1] == ["to"]:
            words = words[1:]
        if polite and words[:1] and words[0] in _GOING:  # "would you mind opening it"
            words = [_GOING[words[0]], *words[1:]]
        return words

    def meant(self, words: list[str]) -> Atom | None:
        things = [word[1:] for word in words if word[0] == "#"]
        if not things or len(things) > 2 or "HAND" in words:
            return None
        self.said += [name for name in things if name not in self.said]
        shape, thing = _shape(words), self.card.entity(things[0])
        if shape in _GRASPS and "lift" in thing.affordances:
            self.grasped = thing.name
            return None
        if shape in _DOWN_THERE:
            return self.again(thing)
        if shape in _PUT_IN:
            opened = [name for name in self.said if "open" in self.card.entity(name).affordances]
            return self.atom("inside", thing.name, opened[0]) if len(opened) == 1 else None
        for predicate, words_of in _CANDIDATES.items():
            if shape in words_of and (atom := self.placed(predicate, things)):
                self.atoms.append(atom)
                return atom
        return None

    def again(self, thing: Entity) -> Atom | None:
        """ "... and put it down there": what was just said of it."""
        last = self.atoms[-1] if self.atoms else None
        return last if last and last.object and last.subject == thing.name else None

    def placed(self, predicate: str, things: list[str]) -> Atom | None:
        """The atom of a pattern, where the card affords it."""
        where = self.card.entity(things[1]) if len(things) == 2 else None
        if predicate == "inserted":
            holes = [e.name for e in self.card.entities if e.kind == "hole"]
            return self.atom("inserted", things[0], holes[0]) if len(holes) == 1 else None
        if predicate == "at":  # of a mark on the table "at" is "on"
            fits = where is not None and where.kind == "target"
            return self.atom("on", *things) if fits else None
        if PREDICATES[predicate].arity == 2:
            return self.atom(predicate, *things)
        own = where is None or where.body == self.card.entity(things[0]).body  # its handle
        return self.atom(predicate, things[0]) if own else None

    def atom(self, predicate: str, subject: str, target: str = "") -> Atom | None:
        if predicate == "inside":
            predicate = into(self.card.entity(target))
        known, thing = PREDICATES[predicate], self.card.entity(subject)
        if role(thing) != "object" or not known.spoken & roles(thing) or subject == target:
            return None
        if target and not known.roles[1] & roles(self.card.entity(target)):
            return None
        return Atom.of(predicate, subject, *([target] if target else []))


def into(where: Entity) -> str:
    """The predicate that being in a thing is: a hole holds what is in it upright."""
    return "inserted" if where.kind == "hole" else "inside"


def _shape(words: Sequence[str]) -> tuple[str, ...]:
    """The words with X and Y for the first and the second thing."""
    names = iter("XYZ")
    return tuple(next(names, "Z") if word[0] == "#" else word for word in words)


_CANDIDATES: dict[str, set[tuple[str, ...]]] = {}
for _pattern, _name in _CLAUSES.items():
    _CANDIDATES.setdefault(_name, set()).update(tuple(p.split()) for p in expand(_pattern))
