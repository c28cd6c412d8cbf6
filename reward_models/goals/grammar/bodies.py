"""Sentences about a body without a gripper: "please walk forward", "the ant waves a leg".

What a body can be asked is a closed list of actions, each a pattern over whole sentences: after
what only introduces it ("I want", "the hopper should") nothing may be left over.
"""

from __future__ import annotations

import re
from functools import cache

from reward_models.base import Entity, TaskCard
from reward_models.goals.formula import Atom, Formula, Joined
from reward_models.goals.grammar.lexicon import ARTICLES, LEXICON, UNSUPPORTED, inflected
from reward_models.goals.grammar.phrases import PHRASES, Table, expand, table
from reward_models.goals.grammar.refusals import Refuser
from reward_models.goals.grammar.words import Token, match, split_words
from reward_models.goals.predicates import role

_GOING = (
    "(walk|run|hop|jump|leap|gallop|trot|march|stride|crawl|sprint|jog|race|bound|skip|move|go|"
    "travel|head|advance|proceed|swim)"
)
_MAKING = "(do|make|perform|execute|complete|land|turn)"
_FRONT, _BACK = "(front|forward|forwards)", "(back|backward|backwards)"
_LEG = "(leg|legs|one leg|one of [its|your] legs|your leg|its leg|one of [its|your] feet)"
_ARMS = "[both|both of|two] [its|your|his|her|their] arms"
_ABOVE = (
    "[in air|into air|high|above [its|your|his|her] head|over [its|your|his|her] head|overhead]"
)
# Shorter lists for the rarer words: every choice multiplies what must be expanded.
_HANDS = "[both|your|its|both your|both its] (hands|arms)"
_HIGH = "(up|high|overhead|in air|into air|to sky|to ceiling|towards sky|towards ceiling)"
_ON_KNEES = "on [to] [its|your|his|her|both] knees"
_ACTIONS = {  # verbs as stems, without articles
    f"{_GOING} [straight] (forward|forwards|ahead|onward|onwards)": "forward",
    "make (your|its) way [straight] (forward|forwards|ahead|onward|onwards)": "forward",
    f"(show|give) (me|us) {_FRONT} (flip|somersault)": "front_flip",
    f"(show|give) (me|us) {_BACK} (flip|somersault)": "back_flip",
    "(show|give) (me|us) backflip": "back_flip",
    "(show|give) (me|us) frontflip": "front_flip",
    f"{_FRONT} (flip|somersault)": "front_flip",
    f"{_BACK} (flip|somersault)": "back_flip",
    f"{_MAKING} (flip|somersault) {_FRONT}": "front_flip",
    f"{_MAKING} (flip|somersault) {_BACK}": "back_flip",
    f"(flip|somersault) (yourself|itself) [over] {_FRONT}": "front_flip",
    f"(flip|somersault) (yourself|itself) [over] {_BACK}": "back_flip",
    f"{_MAKING} {_FRONT} (flip|somersault)": "front_flip",
    f"(flip|somersault) [over] {_FRONT}": "front_flip",
    f"{_MAKING} {_BACK} (flip|somersault)": "back_flip",
    f"{_MAKING} (backflip|back flip)": "back_flip",
    f"{_MAKING} frontflip": "front_flip",
    f"(flip|somersault) [over] {_BACK}": "back_flip",
    "backflip": "back_flip",
    "frontflip": "front_flip",
    f"wave [with] {_LEG} [in air|about|around|back and forth|at me|to me]": "wave",
    f"(give|do) [me|us] wave with {_LEG}": "wave",
    "lie down [flat] [on [its|your] back|on (ground|floor)]": "lie_down",
    "lie [flat] on (ground|floor)": "lie_down",
    "(get|roll|turn|flop|drop|go) [over|down] (on|onto|on to) [its|your] back": "lie_down",
    "(roll|turn|flop) [over] (on|onto|on to) [its|your] back and stay there": "lie_down",
    "lie flat": "lie_down",
    "lie [flat] on [its|your] back": "lie_down",
    "lower [its|your] (body|BODY) [down] to (ground|floor)": "lie_down",
    "(stand|get|rise|come) [back] up [on [to] [its|your] feet]": "stand_up",
    "(stand|get|rise|come) [back] up onto [its|your] feet": "stand_up",
    "(get|come|rise) [up] (to|into) standing [position]": "stand_up",
    "stand tall": "stand_up",
    "(stand|rise) [upright|up straight|up tall]": "stand_up",
    "(get|rise) (to|on|onto) [its|your|his|her] feet": "stand_up",
    "kneel [down]": "kneel",
    f"(get|go|drop|sink|fall|come) [down] {_ON_KNEES}": "kneel",
    f"(lower|drop|get) (yourself|itself) [down] {_ON_KNEES}": "kneel",
    "(get|go|drop|sink) [down] onto [its|your|his|her|both] knees": "kneel",
    f"be [down] {_ON_KNEES}": "kneel",
    f"(raise|lift) [up] {_ARMS} [up] {_ABOVE}": "raise_arms",
    f"(put|hold|throw|keep) {_ARMS} [up] {_ABOVE}": "raise_arms",
    f"(raise|lift) {_HANDS} [up]": "raise_arms",
    f"(raise|lift|put|hold|keep|throw|stretch|reach) {_HANDS} [up] {_HIGH}": "raise_arms",
    f"(hold|keep|have) {_ARMS} raised [up] {_ABOVE}": "raise_arms",
}
_VERBS = (
    "walk run hop jump leap gallop trot march stride crawl sprint jog race bound skip move go "
    "travel head advance proceed swim do make perform execute complete land turn flip somersault "
    "wave lie lower stand get rise kneel drop sink fall raise lift put hold throw keep have be "
    "come roll flop stretch reach show give start begin continue"
).split()
_GOES_ON = ("be", "keep", "start", "begin", "continue", "get", "try")  # "keep walking forward"
_STEM = inflected(_VERBS) | {"raised": "raised", "does": "do", "stood": "stood", "back": "back"}
_OPENERS = table(
    {p: s for p, s in PHRASES.items() if set(s.split()) <= {"POLITE", "WANT", "SURE", "MODAL"}}
)
_JOINERS = table({p: s for p, s in PHRASES.items() if s == "THEN"})
_OPENING = re.compile(
    r"(?:(?:WANT|SURE|MODAL) (?:that )?(?=(?:WANT|SURE|MODAL|BODY) ))*"
    r"(?:(?:WANT|SURE) )?(?:BODY (?:to |MODAL |SURE )*|MODAL BODY )?(?:SURE |to )*"
)


@cache
def _meaning() -> Table:
    """Every clause, and the action that it asks for."""
    empty = set(expand(f"(put|hold|throw|keep) {_ARMS}"))  # alone it does not say where
    found = table(_ACTIONS)
    return {words: name for words, name in found.items() if " ".join(words) not in empty}


def only_body(card: TaskCard) -> Entity | None:
    """The body that a sentence is about, where the card has no gripper and just one body."""
    roles = [role(entity) for entity in card.entities]
    if "gripper" in roles or roles.count("body") != 1:
        return None
    return card.entities[roles.index("body")]


def read_body(text: str, card: TaskCard, body: Entity) -> Formula:
    """The formula of a sentence about the card's only body."""
    refuse = Refuser(text, f"known: {'; '.join(card.goals.values())}", frozenset(body.aliases))
    called = {split_words(name) for name in (body.name, *body.aliases, card.task, "you", "robot")}
    raw = [word for word in split_words(text) if word not in ARTICLES]
    tokens = match(match([Token(word, word) for word in raw], _JOINERS), _OPENERS)
    symbols = [token.symbol for token in tokens if token.symbol != "POLITE"]
    symbols = ["BODY" if (symbol,) in called else symbol for symbol in symbols]
    asks = len(symbols) < len(tokens) or {"WANT", "SURE"} & set(symbols)
    if not symbols or (text.rstrip(" .!").endswith("?") and not asks):
        raise refuse("no_goal", "a question or an empty sentence is not a goal")
    steps: list[Formula] = []
    for part in re.split(r"(?:^| )(?:, )*THEN(?: ,)*(?= |$)", " ".join(symbols).strip(" ,")):
        steps.append(Atom.of(_action(part.strip(" ,"), refuse), body.name))
    return steps[0] if len(steps) == 1 else Joined("then", tuple(steps))


def _action(part: str, refuse: Refuser) -> str:
    """The action of one clause; every word after what introduces it must belong to it."""
    clause = re.sub(r"^BODY ,|, BODY$", "", part).strip(" ,")
    opening = _OPENING.match(clause)
    assert opening is not None  # it may be empty
    words = clause[opening.end() :].split()
    stems = tuple(_STEM.get(word, word) for word in words)
    meaning = _meaning()
    for tried in (stems, stems[1:] if stems[:1] and stems[0] in _GOES_ON else stems):
        if tried in meaning:
            return meaning[tried][0]
    if not words:
        raise refuse("no_goal", "it asks for nothing")
    known = {word for phrase in meaning for word in phrase}
    for word, stem in zip(words, stems, strict=True):
        if word in UNSUPPORTED and stem not in known:
            raise refuse("unsupported", f"{UNSUPPORTED[word]} ({word!r}) is not understood")
        if stem not in known and word not in LEXICON and not word.isupper() and word != ",":
            raise refuse.unknown(word, "unknown_word")
    raise refuse("unsupported", "these words are not understood in this order")
