"""The formula of a sentence's symbols: cut at THEN and AND, pronouns and ellipsis filled in."""

from __future__ import annotations

import itertools
import re

from reward_models.goals.formula import Atom, Formula, Joined
from reward_models.goals.grammar.clauses import (
    BESIDE,
    CLAUSES,
    NAME_OF,
    RELATION,
    THING,
    VERB,
    any_of,
)
from reward_models.goals.grammar.lexicon import (
    APPROACH,
    GO,
    MAKE,
    PUSH,
    PUT,
    PUT_HAND,
    TOUCH,
    VERBS,
)
from reward_models.goals.grammar.names import Names
from reward_models.goals.grammar.refusals import Refusal, Refuser
from reward_models.goals.predicates import PREDICATES

# "the ball moved away": a tale, where "the ball is moved away" and "pushed away" are wishes
_WENT = re.compile(rf"^#\w+ {any_of(f'{GO} roll')}_ed ")


class Composer:
    """Formula of one sentence's symbols; remembers what was said so far, for "it" and ellipsis."""

    def __init__(self, names: Names, refuse: Refuser) -> None:
        self.hand, self.refuse = names.hand.name, refuse
        self.said: list[str] = []  # objects and, where named, the hand, as symbols
        self.last: Atom | None = None
        self.subject = "HAND"  # of a clause that names none; "" where it would be a guess
        self.mover = "HAND"  # of a relation alone ("and left of it"): who the last clause was about
        self.listed = False  # "both the ball and the can"
        self.shared = False  # a name alone ("and the ball") shares the last clause's relation
        self.told = False  # the last subject was said to do something, not that it should
        self.verbless = False  # the last clause was a subject and a relation, without a verb
        self.ordered = False  # this clause is an order: "touch", not "touches" or "touching"
        self.opened = ""  # what introduced this clause, "I want" or "make sure"
        self.used_it = False
        self.placed = False  # the last clause placed an object somewhere

    def formula(self, s: str) -> Formula:
        if {"ONCE", "WHEN"} & set(s.split()):
            raise self.refuse("unsupported", "a condition ('when', 'once') is not understood")
        if match := re.fullmatch(r"after (.+?) , (.+)", s):
            return self.sequence([match[1], f"MAIN {match[2]}"])
        if match := re.fullmatch(r"before (.+?) , (?:FIRST )?(.+)", s):
            return self.sequence([match[2], match[1]])
        if match := re.fullmatch(r"AND (.+?) , (.+)", s):  # "while ..., ..."
            return self.together(f"{match[1]} AND MAIN {match[2]}")
        if match := re.fullmatch(r"(.+?) BUT_FIRST (.+)|(.+?) AND ((?:ORDER|HAND) .+) FIRST", s):
            last, first = match[1] or match[3], match[2] or match[4]
            if {"THEN", "IT", "AND", "FIRST"} & {*last.split(), *first.split()}:
                raise self.refuse("ambiguous", "in which order? Say 'first ... then ...'")
            return self.sequence([first, last])
        if s.endswith(" IN_ORDER") and "THEN" not in s.split():
            listed = self.together(s.removesuffix(" IN_ORDER"))
            if not isinstance(listed, Joined):
                raise self.refuse("ambiguous", "in which order? Name two goals or more")
            return Joined("then", listed.parts)
        s = s.removesuffix(" IN_ORDER")
        ordered = re.split(r" (?:, )?(before|after) ", s)
        if len(ordered) == 3:
            if "THEN" in s.split():
                raise self.refuse("ambiguous", "'before' or 'after' together with 'then'")
            first, word, second = ordered
            first = first.removeprefix("FIRST ")
            if re.search(rf"(?<!\S)AND (?!{THING}(?: AND| ,|$))", second):
                raise self.refuse("ambiguous", f"what is {word!r} about? Say 'then'")
            if word == "before":
                return self.sequence([first, second])
            main = self.together(first)
            return Joined("then", (self.together(second), main))
        parts = re.split("(?:^| )THEN(?= |$)", s)
        first = parts[0].split()
        if "FIRST" in first:
            if len(parts) == 1:
                raise self.refuse("ambiguous", "'first' what, and then what?")
            at = first.index("FIRST")
            parts[0] = " ".join(first[:at] + first[at + 1 :])
        return self.sequence(parts)

    def sequence(self, parts: list[str]) -> Formula:
        formulas = [self.together(part) for part in parts]
        return formulas[0] if len(formulas) == 1 else Joined("then", tuple(formulas))

    def together(self, s: str) -> Formula:
        words = s.split()
        self.listed = False
        if "both" in words:
            if words.count("both") > 1 or "AND" not in words[words.index("both") :]:
                raise self.refuse("unsupported", "a quantity ('both') is not understood: name each")
            at = words.index("both")
            self.listed = words[at + 1] == "HAND" or words[at + 1][:1] == "#"
            del words[at]
        if "ALSO" in words:
            if "AND" not in words:
                raise self.refuse("ambiguous", "at the same time as what?")
            words = [w for w in words if w != "ALSO"]
        s = " ".join(words).strip(" ,")
        if " AND " in s:
            s = s.replace(" , ", " AND ")  # the commas of a list
        self.used_it = False
        atoms = list(dict.fromkeys(self.atom(part) for part in re.split("(?:^| )AND(?= |$)", s)))
        if len(atoms) == 1:
            return atoms[0]
        if self.used_it:
            raise self.refuse("ambiguous", "at once or one after the other? Say 'then'")
        for a, b in itertools.combinations(atoms, 2):
            if {a.subject, a.object} == {b.subject, b.object}:
                seen = b.predicate if a.subject == b.subject else PREDICATES[b.predicate].mirror
                pair = {a.predicate, seen}
                opposed = "far" in pair and pair & {"touch", "above", "next_to"}
                if opposed or pair in ({"left_of", "right_of"}, {"above", "touch"}):
                    raise self.refuse("ambiguous", f"{a} and {b} at once? Say 'then'")
        return Joined("and", tuple(atoms))

    def atom(self, part: str) -> Atom:
        part = part.strip(" ,")
        if part.startswith("MAIN "):  # after a clause of time; the arm is meant again
            self.subject, self.told = "HAND", False
            self.mover = "HAND" if self.mover == "HAND" else ""
        words = part.split()
        self.opened = " ".join(word for word in words if word in ("SURE", "WANT", "use"))
        self.ordered = "ORDER" in words or bool(self.opened)
        part = self.open(" ".join(word for word in words if word not in ("MAIN", "ORDER")))
        if not part:
            raise self.refuse("ambiguous", "something is missing beside 'then' or 'and'")
        if " UNTIL " in f" {part} ":
            atom = self.until(part)
        else:
            part = self.resolve_it(part)
            atom = self.clause(part)
        for word in part.split():
            if (word == "HAND" or word[0] == "#") and word not in self.said:
                self.said.append(word)
        self.last = atom
        return atom

    def open(self, s: str) -> str:
        """The clause without what only introduces it: "I want", "make sure", "use the arm to"."""
        if self.last is not None:
            s = re.sub(rf"^to (?={VERB} )", "", s)  # "... and then to touch it"
        before = ""
        while s != before:
            before = s
            s = re.sub(r"^HAND_CALLED |(?: , HAND)$", "", s)
            s = re.sub(r"^(?:HAND )?(?:SURE|MODAL SURE) (?:that )?|^, ", "", s)
            s = re.sub(r"^HAND MODAL (?:SURE|make sure) ", "", s)
            s = re.sub(
                rf"^(?:HAND )?WANT (?:that )?({THING}) to (?={VERB} |{RELATION} )", r"\1 MODAL ", s
            )
            s = re.sub(r"^(?:HAND )?WANT (?:(?:that|to) )?", "", s)
            s = re.sub(rf"^MODAL ({THING}) (?=be |{VERB} |{RELATION} )", r"\1 MODAL ", s)
            s = re.sub(r"^(?:HAND (?:MODAL )?)?use HAND (?:to|AND) (?!#)", "", s)
            s = re.sub(r"^(?:with|using|use) (?:HAND_CALLED|HAND(?: ,)?) ", "", s)
            s = re.sub(rf" (?:with|using|use) HAND(?=$| to | UNTIL | {RELATION} )", "", s)
        return s

    def resolve_it(self, s: str) -> str:
        words = s.split()
        if "IT" not in words:
            return s
        at = words.index("IT")
        moved = at > 0 and words[at - 1] in (PUT + " " + PUT_HAND + " " + MAKE).split()
        could = [x for x in self.said if x != "HAND" or moved]
        if at == 0 or words.count("IT") > 1 or len(could) != 1:
            raise self.refuse("ambiguous", "what is 'it'? Name it")
        if "HAND" in self.said and not moved and self.fits([*words[:at], "HAND", *words[at + 1 :]]):
            raise self.refuse("ambiguous", "'it' may be the gripper or the object: name it")
        words[at] = could[0]
        self.used_it = True
        return " ".join(words)

    def fits(self, words: list[str]) -> bool:
        """Whether these symbols would be a clause, which is tried and forgotten."""
        before = dict(vars(self))
        try:
            self.clause(" ".join(words))
        except Refusal:
            return False
        finally:
            vars(self).update(before)
        return True

    def until(self, s: str) -> Atom:
        """``move the claw (to the ball) until it touches (the ball)``: the last part counts."""
        match = re.fullmatch(
            rf"(?:HAND (?:MODAL )?)?(?:{any_of(PUT + ' ' + PUT_HAND)} (?P<any>{THING})|"
            rf"{any_of(PUSH)} (?P<obj>#\w+)|{any_of(GO)}|{APPROACH}(?= #))"
            r"(?P<dest> (?:(?:to|towards) )?#\w+)? UNTIL "
            rf"(?:(?P<who>{THING}|IT) )?(?:MODAL |to )?(?P<goal>.+)",
            s,
        )
        if match is None:
            raise self.refuse("unsupported", "only a movement goes on 'until' something holds")
        mover = match["any"] or match["obj"] or "HAND"
        target = (match["dest"] or "").split()[-1:]
        who = mover if match["who"] in (None, "IT") else match["who"]
        goal = match["goal"]
        if mover != "HAND" and "HAND" in goal.split():
            raise self.refuse("unsupported", "only the gripper can go to an object")
        if target and goal == "touch":
            goal = f"touch {target[0]}"
        goal = re.sub(r"\bIT$", target[0] if target else "IT", goal)
        atom = self.clause(f"{who} {goal}")
        if target and atom != self.make("TOUCHING", mover, target[0]):
            raise self.refuse("ambiguous", "the two halves around 'until' do not agree")
        if (self.hand if mover == "HAND" else mover[1:]) not in (atom.subject, atom.object):
            raise self.refuse("ambiguous", "what moves is not what 'until' is about")
        self.told = False
        return atom

    def clause(self, s: str) -> Atom:
        last = self.last
        if last is not None and (match := re.fullmatch(rf"(?:to )?({THING})", s)):
            if not self.opened and self.mover == self.symbol(last.subject):
                if s[:3] == "to " and last.predicate in ("touch", "next_to"):
                    return self.make("TOUCHING", self.mover, match[1])
            if self.listed and self.mover and s[:3] != "to ":
                return self.make(last.predicate, self.mover, match[1])
            if not self.opened and self.shared and s[:3] != "to ":
                return self.make(last.predicate, "HAND", match[1])
            raise self.refuse("ambiguous", "say what each object is to do")
        if last is not None and (match := re.fullmatch(rf"(be )?({RELATION}) ({THING})", s)):
            mover = self.actor(self.mover) if match[1] else self.mover
            if not mover:
                raise self.refuse("ambiguous", "who or what is the second half about?")
            self.shared = self.shared and mover == self.mover
            return self.make(match[2], mover, match[3])
        if match := BESIDE.fullmatch(s):
            return self.matched("statement", {**match.groupdict(), "rel": "NEXT_TO"}, s)
        if self.placed and (match := re.fullmatch(rf"(#\w+) ({RELATION}|to) (#\w+)", s)):
            relation = "TOUCHING" if match[2] == "to" else match[2]  # "and the can left of it"
            self.mover, self.shared = match[1], False
            return self.make(relation, match[1], match[3])
        for kind, patterns in CLAUSES.items():
            for pattern in patterns:
                if match := pattern.fullmatch(s):
                    return self.matched(kind, match.groupdict(), s)
        raise self.unreadable(s)

    def actor(self, subject: str) -> str:
        """Who does what a clause without a subject says: after "the cube is ...", "touch the ball"
        is an order to the arm, whereas "touches the ball" is still about the cube."""
        if not self.ordered or subject == "HAND":
            return subject
        if not self.told:
            raise self.refuse("ambiguous", "who or what is the second half about?")
        return "HAND"

    def matched(self, kind: str, got: dict[str, str | None], s: str) -> Atom:
        if kind == "passive" and "WANT" not in self.opened and _WENT.search(s):
            raise self.refuse("ambiguous", "did it happen, or is it to happen? Say 'should'")
        touched = got.get("touched")
        named = touched or got.get("subj")
        words = s.split()
        verbless = kind in ("statement", "passive") and bool(named) and "MODAL" not in words
        verbless &= not any(word in VERBS for word in words)
        if verbless and self.last is not None and not self.verbless:
            # "touch the ball and the cube left of the can": a third thing, or where it is to be?
            raise self.refuse("ambiguous", f"a verb is missing after {named!r}; say 'is'")
        subject = named or self.actor(self.subject)
        if not subject:
            raise self.refuse("ambiguous", "who or what is the second half about?")
        told = kind in ("statement", "passive") and not verbless and "MODAL" not in words
        self.told = told and "WANT" not in self.opened and (bool(named) or self.told)
        self.verbless = verbless
        self.placed = kind == "placing" and "HAND" not in (subject, got.get("obj"))
        self.mover = subject
        self.shared = (subject == "HAND" or bool(touched)) and "by HAND" not in s
        if touched:
            self.subject = touched
            return self.make("TOUCHING", "HAND", touched)
        target = got["obj"]
        assert target is not None  # every other pattern has one
        relation = got.get("rel") or "TOUCHING"
        if got.get("to") == "towards" and subject != "HAND":
            raise self.refuse("unsupported", "a direction ('towards') is no goal; say 'to'")
        if kind in ("placing", "making") or got.get("to"):
            if target == "HAND":
                raise self.refuse("unsupported", "only the gripper can go to an object")
        if kind in ("statement", "passive"):
            self.subject = subject
        else:  # "push the cube to the ball and stay ...": the arm; "make it touch and stay": who?
            self.subject = "" if kind == "making" and subject != "HAND" else "HAND"
        return self.make(relation, subject, target)

    def symbol(self, name: str) -> str:
        return "HAND" if name == self.hand else f"#{name}"

    def make(self, relation: str, subject: str, target: str) -> Atom:
        """The atom of a relation or predicate between two symbols, swapped where only that fits."""
        if relation == "BELOW":
            relation, subject, target = "ABOVE", target, subject
        name = NAME_OF.get(relation, relation)
        if subject == target:
            raise self.refuse("unsupported", "a thing in relation to itself")
        objects = subject != "HAND" and target != "HAND"
        if name in ("touch", "next_to") and relation != "NEXT_TO":
            name = "next_to" if objects else "touch"
        if target == "HAND":
            subject, target = target, subject
            name = PREDICATES[name].mirror
        allowed = PREDICATES[name].spoken if name else frozenset()
        if ("object" if objects else "gripper") not in allowed:
            who = "two objects" if objects else "the gripper and an object"
            raise self.refuse("unsupported", f"that relation of {who} is not measured here")
        return Atom.of(name, *(self.hand if s == "HAND" else s[1:] for s in (subject, target)))

    def unreadable(self, s: str) -> Refusal:
        words = s.split()
        if "LASTING" in words:
            return self.refuse("ambiguous", "where is 'there'?")
        if "," in words:
            raise self.refuse("ambiguous", "only a comma between two goals: say 'then' or 'and'")
        relation = re.search(RELATION, s)
        verb = any(word.removesuffix("_ed") in VERBS for word in words)
        if not relation and not verb and not {"left", "right", "far"} & set(words):
            return self.refuse("no_goal", "it names no relation that could hold")
        if {"left", "right"} & set(words):
            return self.refuse("ambiguous", "left or right of what?")
        things = len(re.findall(THING, s))
        if words[-1] in (*NAME_OF, *TOUCH.split()) and things < 2:
            return self.refuse("ambiguous", "the sentence stops before its last object")
        return self.refuse("unsupported", "these words are not understood in this order")
