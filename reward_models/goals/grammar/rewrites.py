"""The symbols of a sentence, and what is rewritten in them before the sentence is cut."""

from __future__ import annotations

import re

from reward_models.goals.grammar.clauses import RELATION, THING, VERB, any_of
from reward_models.goals.grammar.lexicon import FORMS, GO, HOVER, PUSH, TOUCH, VERBS
from reward_models.goals.grammar.words import Token

# Rewriting of the symbols before the sentence is cut, in this order.
REWRITES = tuple(
    (re.compile(rf"(?<!\S){pattern}(?!\S)"), replacement)
    for pattern, replacement in (
        (r"POLITE", ""),
        (r",(?: ,)+", ","),
        (r"^,? ?RIGHT_NOW|RIGHT_NOW(?: ,)?$", ""),  # elsewhere it may be the direction
        (r"HAND(?: (?:'s|of) HAND)+", "HAND"),  # the tip of the arm, the robot's hand
        (rf"(?:(?:to|on|onto|at|by|in|towards) )?({THING}|IT) 'S_(LEFT|RIGHT)", r"\2_OF \1"),
        (rf"AS_FAR ({THING}|IT) AS_POSSIBLE", r"FAR \1"),
        (rf"KEEP_BETWEEN ({THING}) AND ({THING})", r"keep \1 FAR \2"),
        (rf"(?:give|leave) ({THING}|IT) BERTH", r"be FAR \1"),
        (r",(?= (?:stay|keep|remain)_ing )", "AND"),  # ", keeping far from it"
        (rf"PLACE(?= {RELATION} )", ""),
        (rf"try(?= {VERB}_ing )", "SURE"),
        (rf"(?:be )?({VERB})_ing", r"\1"),  # is touching, (would you mind) touching
        (r"be(?: be)+", "be"),
        (rf"go to(?= {RELATION} )", "go"),  # go back to the left of it
        (rf"{any_of(GO)} to(?= {any_of(TOUCH + ' ' + HOVER)} )", ""),  # move to touch it
        (rf"keep(?= {any_of(GO + ' ' + PUSH)} )", ""),  # keep moving to it
        # "go" and "keep" before another verb only say that it starts or lasts
        (rf"(?:go|come|keep|stay|remain)(?= {any_of(TOUCH + ' ' + HOVER)} )", ""),
        # two things that are in a relation "with each other"
        (rf"({THING}) AND ({THING})((?: MODAL)?(?: {VERB})?) EACH_NEXT", r"\1\3 TOUCHING \2"),
        (rf"({THING}) AND ({THING})((?: MODAL)?(?: {VERB})?) EACH_FAR", r"\1\3 FAR \2"),
        (rf"({THING}) AND ({THING})((?: MODAL)?) touch(?= ,|$)", r"\1\3 touch \2"),
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
        going = verb in ("proceed", "continue") and (following == "HAND" or following[:1] == "#")
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
