"""Reads what the plain grammar did not: whole sentences as people say them, of one goal.

1. Comments, calls and cheers are dropped, segment by segment (``comments``, ``openings``).
2. What only introduces a wish is taken off the front, what only rounds it off from the end.
3. What is left must be, word for word, one order or one state of ``deeds`` or ``poses``.
4. All ways to do this must end in the same goal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from reward_models.base import Entity, TaskCard
from reward_models.goals.formula import Atom, check
from reward_models.goals.grammar.speech import comments, deeds, openings, poses
from reward_models.goals.grammar.speech.implied import IMPLIED
from reward_models.goals.grammar.speech.naming import Naming, plain_words
from reward_models.goals.grammar.speech.patterns import Automaton, members
from reward_models.goals.grammar.speech.verbs import CLASSES, forms_of
from reward_models.goals.predicates import role

MAX_WORDS = 60
_OF_THE_HAND = ("touch", "above", "left_of", "right_of", "far")
_ASKING = frozenset(
    "could can would will might may why how please want like love need wish let shall possible "
    "mind chance hope what".split()
)
_WISHING = frozenset("if wish wished hoping hoped wanted imagine when wondering".split())
_PRONOUNS = ("it", "this", "that", "its")
# What an opening may not end in where a thing follows: then that thing is only where to go ("go
# to the ball next to the cube"), and no state of it is asked for.
_PLACING = frozenset(
    "to at on onto upon into in by toward towards near over around against through past".split()
)
_AIMING = frozenset(
    "go going come coming head reach target try aim aiming approach move moving work working shoot "
    "strive run walk proceed start started begin continue use using prepare concentrate focus "
    "touch hurry seek".split()
)
_BY_SIGHT = frozenset("watch look consider practise practice demonstrate be execute".split())


def into(where: Entity) -> str:
    """The predicate that being in a thing is: a hole holds what is in it upright."""
    return "inserted" if where.kind == "hole" else "inside"


@cache
def _automata() -> dict[str, Automaton]:
    modal = (
        "[,] (should|must|shall|will|to|has to|have to|needs to|need to|ought to|is to|are to|is "
        "going to|is supposed to|is meant to|are supposed to|had better|better|is required to|is "
        "expected to|has got to|wants to|want to|needs|is asked to|is requested to|will have to|"
        "should please|is told to|must now|should now|should be made to|needs to be made to|must "
        "be made to|should try to|tries to|try to|should go and|goes and|manages to|should start "
        "to|starts to|starts|begins|begins to|is able to|shall please|has managed to|please|"
        "should manage to|must try to|has orders to|should come to|comes to|is instructed to|is "
        "ordered to|will please|succeeds to|should proceed to|proceeds to|gets to|to please|to go"
        " and|to try to|to try and|to start|to begin to|to begin|to start to|go|to go|do|does|did"
        "|keeps|should keep|to keep|must keep|continues to|in state of|itself) [please|now|also|"
        "finally|simply|just|then]"
    )
    be = (
        "[now|also|finally|just|then|safely|both|itself|,] ({MADE}|{MADE_S}|{MADE_ING}|are|"
        "being|been|has been|have been|is being|be being|having been|has become|has got|"
        "has ended up|has to be|have to be|is now|is to be|to be|is left|is kept|is found|"
        "is seen|has come to be|it is|it be|it must be|it should be|it has to be|it becomes|"
        "it must become|must become|it ends up|it should become|it needs to be|it gets|"
        "have become|is made|be made|be made to be|get made|is brought|find itself|finds itself|"
        "it should find itself|it should end up|it must end up|it should be found) "
        "[being|to be|now|nicely|safely|just|all|left|standing]"
    )
    return {
        "orders": Automaton(deeds.ORDERS),
        "states": Automaton(deeds.STATES),
        "poses": Automaton(poses.ORDERS),
        "openings": Automaton({"": openings.OPENINGS}),
        "closings": Automaton({"": openings.CLOSINGS}),
        "calls": Automaton({"": openings.CALLS}),
        "modal": Automaton({"": (modal,)}),
        "would": Automaton({"": ("(would|could|can|might|may|were to) [please]",)}),
        "be": Automaton({"": (be,)}),
        "letting": Automaton({"": ("(have|make|let|get|see|watch) (it|this|that)",)}),
        "bare": Automaton(deeds.BARE),
        "was": Automaton({"": ("(was|were|became|got|went|ended up|came|stayed|sat|rested)",)}),
        "motion": Automaton({"carry": _CARRYING, "push": _MOTION}),
        "joint": Automaton({"": _JOINTS}),
        "each": Automaton({"": _EACH}),
        "implied": Automaton(IMPLIED),
    }


_WAY = (
    "[on] ANY [{ALONG}|around|up|down|in|out|closer|along table|across table|toward Y|towards Y|"
    "to Y|over to Y|against Y|forward|back|back in|off table|on|away|upwards|downwards|inwards|"
    "outwards|toward you|towards you|all way|over table|about]"
)
_CARRYING = (  # what may be done with things that can be held until something holds
    "({SHOVE}|{CARRY}|{PUT}|{LIFT}|{PICK}|{INSERT}|{DRAW}|{SHUTTING}|{DIP}|{GRASP}|{STOW}) " + _WAY,
    "(align|line up) X (with|to|over|above) Y",
)
_MOTION = (  # and with any thing
    "({SHOVE}|go to|move to|reach for|reach|approach|go over to|head to|go get) " + _WAY,
    "({LEADHAND}) HAND [{ALONG}|around|up|down|closer|forward|toward X|"
    "towards X|to X|over to X|near X|sideways|out]",
    "({GO}) [{ALONG}|around|up|down|closer|forward|toward X|towards X|to X|over to X|out]",
    "(use|move|work) [your|its] (legs|arms|body)",
)
_JOINTS = (
    "(so|so that|such that|until|till|in such way that|in way that|in order that|in such manner "
    "that|so as|and make sure that|and make sure|making sure that|making sure|and see that|"
    "up to where|to point where|to where|until you see that|until you see|till you see|"
    "until at last|to such point that|, so that|, so|, until|, till|, and make sure that|"
    ", and make sure|, such that|until finally|and keep going until|and do not stop until|"
    "and continue until|and keep on until|far enough that|far enough so that|far enough so|"
    "just so|just until|, just until|with result that|to get|to have|to make|to leave|"
    "and leave|and have|and get|to see|and so|leaving|making|getting|and let)",
)

_EACH = (  # of two things
    "(are|be|is|stand|sit|lie|end up|come to be|become|get) [right|both|finally|standing|all] "
    "(side by side|next to each other|next to one another|beside each other|beside one another|"
    "adjacent|adjacent to each other|neighbours|neighbors|together|touching|touching each other|"
    "in contact|close together|close to each other|near each other)",
    "(touch|meet|touch each other|touch one another|meet each other|come together)",
)


@cache
def _stems() -> dict[str, str]:
    """-ing and -s forms of every verb -> its stem."""
    words = {
        part.split()[0]
        for name in CLASSES
        for part in members(name).split("|")
        if part.strip() and part.split()[0].isalpha()
    } | set(
        "do make perform execute complete wave wiggle shake say greet raise lift put hold throw "
        "stretch reach lie lay stand get rise kneel drop sink fall roll flop turn flip somersault "
        "build create give have keep let use balance hover stay remain straighten adopt assume "
        "take climb jump show maintain apply join unite cover top fill plug swing sit crouch "
        "backflip frontflip stabilise stabilize steady prevent stop tumble arise kiss greet bend "
        "point stick land settle relax rest recline sprawl advance distance steer separate "
        "construct form tuck occupy propel".split()
    )
    found: dict[str, str] = {}
    for verb in words:
        for form in ("s", "ing"):
            for said in forms_of(verb)[form]:
                found.setdefault(said, verb)
    return found | {"has": "have", "does": "do", "is": "be", "being": "be", "having": "have"}


def read_speech(text: str, card: TaskCard) -> Atom | None:
    """The one goal of a sentence on this card; None where it is not certain."""
    naming = Naming(card)
    words = plain_words(text)
    if not naming.actor or not words or len(words) > MAX_WORDS:
        return None
    tokens = naming.read(words)
    if not tokens:  # None: a word that is not known; []: articles alone
        return None
    asked = text.rstrip(" .!)\"'").endswith("?")
    # "drawer closed": as under a picture, where "the drawer closed" tells what happened
    caption = tokens[0][0] == "#" and words[0] not in ("the", "this", "that", "my", "your")
    return _Reading(card, naming, asked, caption).sentence(tokens)


class _Reading:
    def __init__(self, card: TaskCard, naming: Naming, asked: bool, caption: bool) -> None:
        self.card, self.naming, self.asked = card, naming, asked
        self.auto = _automata()
        self.things = [f"#{e.name}" for e in naming.things]
        self.handled = any(
            {"lift", "place", "open", "close", "press", "insert"} & set(e.affordances)
            for e in card.entities
        )
        self.body = role(card.entity(naming.actor)) == "body"
        self.mentioned: list[str] = []
        self.framed = False
        self.caption = caption

    def sentence(self, tokens: list[str]) -> Atom | None:
        kept: list[list[str]] = []
        parts = comments.segments(tokens)
        uncalled = [t for p in parts if p == ["HAND"] or not self._call(p) for t in p]
        self.mentioned = [t for t in dict.fromkeys(uncalled) if t[0] == "#" or t == "HAND"]
        for segment in parts:
            called = self._call(segment)
            if called or (comments.is_comment(segment) and self._goal(segment) is None):
                self.framed |= called
            else:
                kept.append(segment)
        if not kept or len(kept) > 5:
            return None
        whole = [t for i, s in enumerate(kept) for t in ([","] if i else []) + s]
        if self.asked:  # a question that asks for something
            self.asked = not any(asking for *_, asking in self._cores(whole))
        self._several = False
        found = self._goal(whole)
        if found is not None or self._several:
            return found
        if (plain := self._implied(whole)) is not None:
            return plain
        if len(kept) == 2 and _is_so(kept[0]):  # "the drawer is shut and I wish it was open"
            return self._goal(kept[1])
        if len(kept) > 1 and (topic := self._topic(kept)) is not None:
            return topic
        return self._chain(whole)

    _several = False

    def _implied(self, tokens: list[str]) -> Atom | None:
        """A goal, and after it what goes without saying."""
        for i in range(1, len(tokens)):
            tail = ["it" if t[0] == "#" or t == "that" else t for t in tokens[i:]]
            predicates = self.auto["implied"].whole(tail)
            if not predicates:
                continue
            goal = self._goal(tokens[:i]) or self._chain(tokens[:i])
            if goal is None or goal.predicate not in predicates:
                continue
            about = {f"#{goal.subject}", f"#{goal.object}"}
            if about.issuperset(t for t in tokens[i:] if t[0] == "#"):
                return goal
        return None

    def _call(self, segment: list[str]) -> bool:
        cores = (core for core, *_ in self._cores(segment))
        return any(self.auto["calls"].whole(core) for core in cores)

    def _topic(self, kept: list[list[str]]) -> Atom | None:
        """ "for the green can, stand at its right"; "the gripper, it should be above the ball"."""
        for at, rest in ((kept[0], kept[1:]), (kept[-1], kept[:-1])):
            bare = [t for t in at if t not in ("for", "about", "regarding", "with", "as", "of",
                    "concerning", "take", "see", "to", "on", "and", "so", "now")]  # fmt: skip
            sent = {"to", "on", "see"} & set(at) and "as" not in at  # "to the ball, ..."
            if len(bare) == 1 and (bare[0][0] == "#" or bare[0] == "HAND") and not sent:
                said = [t for i, s in enumerate(rest) for t in ([","] if i else []) + s]
                named = _with_pronoun(said, bare[0])
                tried = [named] if named != said else []
                if (
                    "," not in said and at is kept[0] and "take" not in at
                ):  # "cube, go next to the can"
                    tried += [["let", bare[0], *said], [bare[0], *said]]
                elif said[0] == "up":
                    tried += [[*said, bare[0]]]
                for words in tried:
                    if (found := self._goal(words)) is not None:
                        return found
        return None

    def _chain(self, tokens: list[str]) -> Atom | None:
        """Several clauses that all come to one goal: "grip it, carry it over, put it in"."""
        parts = comments.clauses(tokens[tokens[0] == "first" :])
        if len(parts) < 2:
            return None
        goals: list[Atom] = []
        led: list[list[str]] = []
        for part in parts:
            goal = self._goal(part)
            if goal is None and self.body and self._call(part):
                continue  # "fire up those legs and ..."
            if goal is not None:
                if led and led[-1][-1] in ("HAND", *self.things) and part[0][0] == "#":
                    return None  # "move the hand and the ball next to the cube"
                goals.append(goal)
            elif self._several or goals or not self._leading(part):
                return None
            else:
                led.append(part)
        if not goals or not all(g == goals[-1] or _leads(g, goals[-1]) for g in goals):
            return None
        named = {t for part in led for t in part if t[0] == "#"}
        about = {f"#{goals[-1].subject}", f"#{goals[-1].object}"}
        bodies = {self.card.entity(t[1:]).body for t in named}
        fits = bodies <= {self.card.entity(t[1:]).body for t in about if t != "#"}
        return goals[-1] if fits else None

    def _leading(self, part: list[str]) -> bool:
        """Whether a clause only leads up to a goal: "go over to the cube", "grip it"."""
        for core, framed, wishing, _ in self._cores(part):
            for words, _kind in self._moods(core, framed, wishing):
                if any(self._moves(shaped) for shaped, _ in self._shapes(words)):
                    return True
        return False

    def _moves(self, shaped: list[str]) -> bool:
        """Whether these words only move something that this card lets move."""
        labels = self.auto["motion"].whole(_as_thing(shaped))
        return bool(labels & {"push", "carry"} if self.handled else labels & {"push"})

    def _goal(self, tokens: list[str]) -> Atom | None:
        found: set[Atom] = set()
        cores = [*self._cores(tokens)]
        for pronouns in (False, True):  # as it stands, then with every thing that "it" may be
            for core, framed, wishing, asking in cores:
                if asking or not self.asked:
                    for variant in self._resolved(core) if pronouns else [core]:
                        found |= self._deeds(variant, framed or self.framed, wishing)
            if not found:
                for variant in self._resolved(tokens) if pronouns else [tokens]:
                    found |= self._results(variant)
            if found:
                break
        self._several = len(found) > 1
        return found.pop() if len(found) == 1 else None

    def _resolved(self, tokens: list[str]) -> Iterator[list[str]]:
        if not set(tokens) & set(_PRONOUNS):
            return
        things = [t for t in self.mentioned if t[0] == "#"]  # "lift it" alone names nothing
        for name in (*things, *(["HAND"] if "HAND" in self.mentioned or self.body else [])):
            yield _with_pronoun(tokens, name)

    def _cores(self, tokens: list[str]) -> Iterator[tuple[list[str], bool, bool, bool]]:
        """What is left when openings and closings are taken off, in every way."""
        n = len(tokens)
        starts, todo = {0}, [0]
        while todo:
            start = todo.pop()
            found = [end for end, _ in self.auto["openings"].ends(tokens, start)]
            if self.body and not self.things:  # "have it jump"
                found += [end for end, _ in self.auto["letting"].ends(tokens, start)]
            for end in found:
                if end not in starts and end < n:
                    starts.add(end)
                    todo.append(end)
        closed: dict[int, list[int]] = {}
        for i in range(1, n):
            for end, _ in self.auto["closings"].ends(tokens, i):
                closed.setdefault(end, []).append(i)
            if tokens[i] == ",":
                closed.setdefault(i + 1, []).append(i)
        ends, todo = {n}, [n]
        while todo:
            for i in closed.get(todo.pop(), ()):
                if i not in ends:
                    ends.add(i)
                    todo.append(i)
        for start in sorted(starts):
            if _goes_to(tokens, start):
                continue
            for end in sorted(ends, reverse=True):
                if start < end:
                    frame = {*tokens[:start], *tokens[end:]}
                    yield (
                        tokens[start:end],
                        bool(frame - {","}),
                        bool(_WISHING & frame),
                        bool(_ASKING & frame),
                    )

    def _results(self, tokens: list[str]) -> set[Atom]:
        """ "move it over until it touches": the goal is what holds in the end."""
        found: set[Atom] = set()
        for i in range(1, len(tokens) - 1):
            for j, _ in self.auto["joint"].ends(tokens, i):
                for head, *_ in self._cores(tokens[:i]):
                    heads = [s for s, _ in self._shapes(head)]
                    if not any(map(self._moves, heads)):
                        continue
                    moved = [t for t in head if t[0] == "#" or t == "HAND"][:1] or ["HAND"]
                    tail = tokens[j:]
                    named = [t for t in head if t[0] == "#"]
                    mutual = self.auto["each"].whole(tail[1:])
                    if mutual and tail[0] == "they" and len(named) == 2:
                        tail = [named[0], "be", "next", "to", named[1]]
                    for variant in (tail, _with_pronoun(tail, moved[0])):
                        for core, *_ in self._cores(variant):
                            for atom in self._deeds(core, True, False):
                                if self._same(moved[0], atom):
                                    found.add(atom)
        return found

    def _same(self, moved: str, atom: Atom) -> bool:
        """Whether what is moved is what the goal is about."""
        if moved == "HAND":
            return atom.subject == self.naming.actor or not atom.object
        return self.card.entity(moved[1:]).body == self.card.entity(atom.subject).body

    def _deeds(self, core: list[str], framed: bool, wishing: bool) -> set[Atom]:
        if len(core) == 1 and core[0][0] == "#":
            return set()
        found: set[Atom] = set()
        for words, kind in self._moods(core, framed, wishing):
            for shaped, names in self._shapes(words):
                tables = ["states"] if kind == "state" else ["orders", "states"]
                tables += ["poses"] * self.body + ["bare"] * framed
                for table in tables:
                    for label in self.auto[table].whole(shaped):
                        if (atom := self._atom(label, names)) is not None:
                            found.add(atom)
        return found

    def _moods(
        self, core: list[str], framed: bool, wishing: bool
    ) -> Iterator[tuple[list[str], str]]:
        """The clause as an order that begins with a stem, or as a state "X be ..."."""
        first = core[0]
        yield core, "any"
        stems = _stems()
        if first.endswith("ing") and first in stems:
            yield [stems[first], *core[1:]], "any"
        subjects = [1] if first == "HAND" or first[0] == "#" or first == "you" else []
        if len(core) > 3 and core[1] == "and" and core[2][0] in "#H" and first[0] in "#H":
            subjects.append(3)
        for n in subjects:
            who, rest = core[:n], core[n:]
            if not rest:
                continue
            rests = [(rest, False)]
            if wishing:
                rests += [(rest[end:], True) for end, _ in self.auto["would"].ends(rest)]
            rests += [(rest[end:], True) for end, _ in self.auto["modal"].ends(rest)]
            for said, told in rests:
                yield from self._said(who, said, told, framed, wishing)

    def _said(
        self, who: list[str], said: list[str], told: bool, framed: bool, wishing: bool
    ) -> Iterator[tuple[list[str], str]]:
        if not said:
            return
        stems = _stems()
        acts = who in (["HAND"], ["you"])
        verb = said[0]
        if acts:
            if told or (framed and verb not in stems):
                yield said, "any"
            if verb in stems:
                yield [stems[verb], *said[1:]], "any"
            if verb in ("is", "be", "are") and said[1:] and said[1] in stems and \
                    said[1].endswith("ing"):  # fmt: skip
                yield [stems[said[1]], *said[2:]], "any"
            if verb in ("is", "be", "stays", "stay", "remains", "ends"):
                yield ["be", *said[1:]], "any"
            if wishing or verb in ("has", "have", "having", "been"):
                past = said[1:] if verb in ("has", "have", "having") else said
                if past and (stem := _past().get(past[0])):
                    yield [stem, *past[1:]], "any"
        if told:
            yield [*who, *said], "state"
        for end, _ in self.auto["be"].ends(said):
            if said[end:]:
                yield [*who, "be", *said[end:]], "state"
                if acts:
                    yield ["be", *said[end:]], "any"
        if wishing:
            for end, _ in self.auto["was"].ends(said):
                yield [*who, "be", *said[end:]], "state"
                if acts:
                    yield ["be", *said[end:]], "any"
            if (stem := _past().get(verb)) is not None:
                yield [*who, stem, *said[1:]], "state"
        if framed or verb not in _past() or (self.caption and not acts):
            yield [*who, "be", *said], "state"
            if acts:
                yield ["be", *said], "any"

    def _shapes(self, words: list[str]) -> Iterator[tuple[list[str], dict[str, str]]]:
        """The words with X and Y for things, in both ways."""
        words = ["HAND" if w in ("you", "i") and w == "you" else w for w in words]
        named = list(dict.fromkeys(w for w in words if w[0] == "#"))
        if "#handle" in named and len(named) > 1:
            rest = [n for n in named if n != "#handle"]
            yield from self._shapes(["HANDLE" if w == "#handle" else w for w in words])
            if len(rest) > 1:
                return
        if len(named) > 2:
            return
        for order in [named, named[::-1]] if len(named) == 2 else [named]:
            names = dict(zip("XY", order, strict=False))
            back = {name: letter for letter, name in names.items()}
            shaped = [back.get(w, w) for w in words]
            yield shaped, names
            marks = {
                x for x, n in names.items() if self.card.entity(n[1:]).kind in ("target", "disc")
            }
            if "Y" in marks:
                yield ["M" if w == "Y" else w for w in shaped], names

    def _atom(self, label: str, names: dict[str, str]) -> Atom | None:
        actor = self.naming.actor
        x, y = (names.get(letter, "#")[1:] for letter in "XY")
        balance = "balance" in self.card.entity(actor).affordances
        if balance != (label == "balanced"):
            return None
        atom: Atom | None = None
        if label in poses.ORDERS:
            fits = self.body and not self.things
            atom = Atom.of(label, actor) if fits and not names else None
        elif label in _OF_THE_HAND and x and not y:
            if self.body:
                atom = Atom.of("at", actor, x) if label == "touch" else None
            elif not self.handled:
                atom = Atom.of(label, actor, x)
        elif label == "next_to" and x and y and not self.handled and not self.body:
            atom = Atom.of(label, x, y)
        elif label == "under" and x and y:
            atom = Atom.of("on", y, x)
        elif label == "uppermost" and x and not y:
            others = [t[1:] for t in self.things if t != f"#{x}"]
            atom = Atom.of("on", x, others[0]) if len(others) == 1 else None
        elif label in ("on", "inside", "inserted") and x:
            if label == "inserted" and "insert" not in self.card.entity(x).affordances:
                return None
            hollow = [e.name for e in self.card.entities if e.kind in ("hole", "drawer")]
            where = y or (hollow[0] if len(hollow) == 1 and label != "on" else "")
            fits = where not in ("", x)
            in_it = into(self.card.entity(where)) if fits else ""
            atom = Atom.of("on" if label == "on" else in_it, x, where) if fits else None
        elif label in ("lifted", "open", "closed", "pressed") and x and not y:
            atom = Atom.of(label, x)
        if atom is None:
            return None
        try:
            check(atom, self.card)
        except ValueError:
            return None
        return atom


@cache
def _past() -> dict[str, str]:
    """Past forms of every verb -> its stem."""
    found: dict[str, str] = {}
    for verb in set(_stems().values()):
        for said in forms_of(verb)["ed"]:
            found.setdefault(said, verb)
    return found


def _goes_to(tokens: list[str], start: int) -> bool:
    """Whether what stands before ``start`` sends somebody to the thing that is named there."""
    if not start or start >= len(tokens):
        return False
    thing = tokens[start]
    if not (thing[0] == "#" or thing in ("HAND", "tower", *_PRONOUNS)):
        return False
    last, before = tokens[start - 1], tokens[start - 2] if start > 1 else ""
    if thing in _PRONOUNS and (tokens[start + 1 : start + 2] or " ")[0][0] in "#H":
        return False  # "see to it the pole stays up"
    if last in ("and", "for", "with") and before in _AIMING | {"HAND", "it"}:
        return True
    if last == "be" and before:
        return False  # "it would be"
    return last in _PLACING | _AIMING | _BY_SIGHT


def _is_so(part: list[str]) -> bool:
    """ "The drawer is shut": how things are, in three words."""
    return len(part) == 3 and part[0][0] == "#" and part[1] in ("is", "was", "looks")


def _leads(first: Atom, then: Atom) -> bool:
    """What is put somewhere was lifted before, and a drawer that takes something was opened."""
    if then.predicate not in ("on", "inside", "inserted"):
        return False
    lifted = first == Atom.of("lifted", then.subject)
    return lifted or first == Atom.of("open", then.object)


def _with_pronoun(tokens: list[str], name: str) -> list[str]:
    out: list[str] = []
    for i, t in enumerate(tokens):
        after = tokens[i + 1] if i + 1 < len(tokens) else ""
        if t == "it" or (t in ("this", "that") and (after in ("", ",") or i == 0)):
            out.append(name)
        elif t == "there" and i and tokens[i - 1] not in ("is", "be"):
            out.append(t)
        elif t == "its" and after in ("left", "right", "side"):
            out += [name, "'s"]
        else:
            out.append(t)
    return out


def _as_thing(words: Sequence[str]) -> list[str]:
    return [("X" if w in ("HANDLE", "it") else w) for w in words]
