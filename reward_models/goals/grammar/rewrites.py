"""The symbols of a sentence, and what is rewritten in them before the sentence is cut."""

from __future__ import annotations

import re

from reward_models.goals.grammar.clauses import RELATION, THING, VERB, any_of
from reward_models.goals.grammar.lexicon import (
    FORMS,
    GO,
    HOVER,
    PUSH,
    PUT,
    PUT_HAND,
    TOUCH,
    VERBS,
)
from reward_models.goals.grammar.words import Token

REACH = any_of(f"{TOUCH} {HOVER}")
PLACE_HAND = any_of(f"{PUT} {PUT_HAND}")
PLACE = any_of(f"{PUT} {PUT_HAND} {PUSH}")
# Rewriting of the symbols before the sentence is cut, in this order.
REWRITES = tuple(
    (re.compile(rf"(?<!\S){pattern}(?!\S)"), replacement)
    for pattern, replacement in (
        (r"POLITE", ""),
        (r",(?: ,)+", ","),
        (r"(?:, )?VIEW(?: ,)?", ""),  # left and right are the camera's anyway
        (r"(#\w+) HERE", r"\1"),
        (r"(?:^|, )LAST_OF_ALL(?: ,)?|(?:, )?LAST_OF_ALL$", ""),
        (r"(?:(?:AND|THEN|,) )+LASTING(?= ,|$| AND| THEN)", ""),
        (r"(ABOVE #\w+) (?:(?:AND|THEN|,) )+(?:ORDER )?HOVER_THERE(?= ,|$| THEN)", r"\1"),
        (r"^(?:, )?SO(?: ,)?", ""),
        (r"SO", "UNTIL"),
        (r"^HAND ,", "HAND_CALLED"),
        # "it would be nice if the arm touched it"
        (rf"WISH ({THING}) (?:were|was)", r"WANT \1 to be"),
        (rf"WISH ({THING}) (?:MODAL )?({VERB})(?:_ed)?", r"WANT \1 to \2"),
        # "once you have touched it", "after you touch it": the arm's clauses of time
        (rf"(?:after|ONCE|WHEN) HAND have ({VERB})_ed", r"after \1"),
        (rf"(after|before) HAND ({VERB})", r"\1 \2"),
        (rf"ONCE HAND(?= {any_of(GO + ' ' + TOUCH)} )", "after"),
        (rf"(?:^(?:ORDER )?|after )have_ing ({VERB})_ed", r"after \1"),
        (rf"ONCE(?= #\w+ (?:have )?(?:be|get) {any_of(TOUCH)}_ed)", "after"),
        (rf"have (be|{any_of(GO)})(?:_ed)?(?= {RELATION} | to )", r"\1"),  # has moved away from it
        (rf"have reach_ed(?= {THING})", "touch"),
        (rf"(?:go|carry) on(?= {VERB}_ing)", "keep"),
        (
            rf"{PLACE_HAND} HAND to(?= {REACH} )",
            "make HAND",
        ),
        # "have it parked above that": how it got there is no part of the goal
        (
            rf"({any_of('have keep get')} {THING}) {PLACE}_ed"
            rf"(?= {RELATION} | to )",
            r"\1",
        ),
        (rf"WANT (?:GAP|DISTANCE)_BETWEEN ({THING}) AND ({THING})", r"WANT \1 be FAR \2"),
        (rf"needs ({VERB})_ing", r"MODAL be \1_ed"),
        (rf"(?:ORDER )?(?:give|give_ing) (#\w+) {any_of('tap touch poke')}", r"ORDER touch \1"),
        (rf"CONTACT_BETWEEN ({THING}) AND ({THING})", r"\1 touch \2"),
        (rf"DISTANCE_BETWEEN ({THING}) AND ({THING}) (?:MODAL )?be LARGE", r"\1 be FAR \2"),
        (rf"distance from ({THING}) to ({THING}) (?:MODAL )?be LARGE", r"\1 be FAR \2"),
        (rf"{any_of('withdraw retract back distance')} HAND (?:away |off )?(?:FAR|from)", "be FAR"),
        (rf"({any_of('pull draw move take get keep hold')} HAND) back from", r"\1 FAR"),
        # one relation of several things: "far from it and from that"
        (rf"FAR ({THING}) (AND|THEN) from(?= {THING})", r"FAR \1 \2 FAR"),
        (rf"(LEFT_OF|RIGHT_OF) ({THING}) (AND|THEN) of(?= {THING})", r"\1 \2 \3 \1"),
        (rf"({VERB}) EACH_NEXT ({THING}) AND ({THING})", r"\1 \2 TOUCHING \3"),
        (r"^,? ?RIGHT_NOW|RIGHT_NOW(?: ,)?$", ""),  # elsewhere it may be the direction
        (r"HAND(?: (?:'s|of) HAND)+", "HAND"),  # the tip of the arm, the robot's hand
        (
            rf"(?!^{THING} )(?:(?:to|on|onto|at|by|in|towards) )?({THING}|IT) 'S_(LEFT|RIGHT)",
            r"\2_OF \1",
        ),
        (rf"AS_FAR ({THING}|IT) AS_POSSIBLE", r"FAR \1"),
        (rf"KEEP_BETWEEN ({THING}) AND ({THING})", r"keep \1 FAR \2"),
        (rf"(?:give|leave) ({THING}|IT) BERTH", r"be FAR \1"),
        (r",(?= (?:stay|keep|remain)_ing )", "AND"),  # ", keeping far from it"
        (rf"PLACE(?= {RELATION} )", ""),
        (rf"try(?= {VERB}_ing )", "SURE"),
        (rf"(?:be )?({VERB})_ing", r"\1"),  # is touching, (would you mind) touching
        (r"be(?: be)+", "be"),
        (rf"go to(?= {RELATION} )", "go"),  # go back to the left of it
        (rf"{any_of(GO)} to(?= {REACH} )", ""),  # move to touch it
        (rf"keep(?= {any_of(GO + ' ' + PUSH)} )", ""),  # keep moving to it
        # "go" and "keep" before another verb only say that it starts or lasts
        (rf"(?:go|come|keep|stay|remain)(?= {REACH} )", ""),
        # two things that are in a relation "with each other"
        (rf"({THING}) AND ({THING})((?: MODAL)?(?: {VERB})?) EACH_NEXT", r"\1\3 TOUCHING \2"),
        (
            rf"({THING}) AND ({THING})((?: MODAL)?(?: be)?(?: {VERB}(?:_ed)?)?) EACH_FAR",
            r"\1\3 FAR \2",
        ),
        (rf"({THING}) AND ({THING})((?: MODAL| to)?) touch(?= ,|$)", r"\1\3 touch \2"),
        (r"touch TOUCHING", "touch"),
        (r"(?:, )?(?:AND )?(?:, )?ALSO(?: ,)? AND(?: ,)?", "AND"),
        (r"AND(?: ,)?(?: ALSO)(?: ,)?", "AND"),
        (r"(?:, )*(?:AND )*(?:, )*THEN(?: ,)*(?: ALSO)?(?: ,)*", "THEN"),
        (r"(?:, )*AND(?:(?: ,)* AND)*(?: ,)*", "AND"),
        (r"FIRST ,", "FIRST"),
        (r"HAND ,", "HAND_CALLED"),
    )
)


def symbols_of(tokens: list[Token]) -> list[str]:
    """The symbols with verbs as stems, and ORDER before one that opens a clause as an order."""
    out: list[str] = []
    opens = True
    for i, token in enumerate(tokens):
        symbol, following = (
            stem_of(token.symbol),
            tokens[i + 1].symbol if i + 1 < len(tokens) else "",
        )
        verb = token.text.split()[0]
        going = verb in ("proceed", "continue", "move", "go") and (
            following == "HAND" or following[:1] == "#"
        )
        if symbol == "SURE" and going and token.text.endswith(" to"):
            out += ["ORDER"] * opens + ["go", "to"]
            opens = False
            continue
        if symbol in VERBS and opens and FORMS.get(verb, verb) == verb and verb[-1] != "s":
            out.append("ORDER")
        if symbol not in ("POLITE", "ALSO", "FIRST", "RIGHT_NOW"):
            opens = symbol in ("THEN", "AND", ",")
        out.append(symbol)
    return out


def stem_of(word: str) -> str:
    """A verb's stem, marked "_ed" or "_ing" where it was that form."""
    stem = FORMS.get(word, word)
    return f"{stem}_ing" if word.endswith("ing") and stem in VERBS and word != stem else stem
