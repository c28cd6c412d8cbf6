"""The patterns that one clause can match, over the symbols of the grammar."""

from __future__ import annotations

import re

from reward_models.goals.grammar.lexicon import (
    APPROACH,
    BE,
    GO,
    HOVER,
    MAKE,
    PUSH,
    PUT,
    PUT_BY,
    PUT_HAND,
    PUT_ON,
    TOUCH,
    VERBS,
)


def any_of(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


THING = r"(?:HAND|#\w+)"
RELATION = any_of("ABOVE BELOW LEFT_OF RIGHT_OF FAR NEXT_TO TOUCHING")
NAME_OF = {
    "ABOVE": "above",
    "BELOW": "below",  # of an object and the gripper: the gripper is above it
    "LEFT_OF": "left_of",
    "RIGHT_OF": "right_of",
    "FAR": "far",
    "NEXT_TO": "next_to",
    "TOUCHING": "touch",
}
WHERE = rf"(?:(?P<rel>{RELATION})|(?P<to>to|towards)) (?P<obj>{THING})"
MOVED = rf"(?:{'|'.join(f'{v}_ed' for v in (PUT + ' ' + PUSH).split())}|put|set)"
HAND_MOVED = rf"(?:{'|'.join(f'{v}_ed' for v in (PUT + ' ' + PUT_HAND).split())}|put|set)"
PREDICATE = (  # what a subject does or is
    rf"(?:{any_of(BE + ' ' + GO)} )?(?P<rel>{RELATION}) (?P<obj>{THING})",  # (stays) left of it
    rf"(?:{any_of(GO)} (?P<to>to|towards)|{APPROACH}) (?P<obj>{THING})",  # goes to it
    rf"{any_of(TOUCH)} (?P<obj>{THING})",  # touches it
    rf"{any_of(HOVER)} (?P<rel>ABOVE) (?P<obj>{THING})",  # hovers over it
)
BY = "(?: by HAND)?"
ORDER = "(?:HAND (?:MODAL )?)?"  # "the hand (should)" bring something somewhere
CLAUSES: dict[str, tuple[re.Pattern[str], ...]] = {
    kind: tuple(re.compile(p) for p in patterns)
    for kind, patterns in {
        "statement": tuple(rf"(?:(?P<subj>{THING}) (?:MODAL )?)?{vp}" for vp in PREDICATE),
        "passive": (
            rf"(?P<touched>#\w+) (?:MODAL )?(?:(?:be|get) )?{any_of(TOUCH)[:-1]})_ed{BY}",
            rf"(?P<subj>#\w+) (?:MODAL )?(?:(?:be|get) )?{MOVED}{BY} {WHERE}{BY}",
            rf"(?P<subj>HAND) (?:MODAL )?{any_of(BE + ' get')} {HAND_MOVED} {WHERE}",
        ),
        "placing": (
            rf"{ORDER}{any_of(PUT)} (?P<subj>{THING}) {WHERE}",
            rf"{ORDER}{any_of(PUSH)} (?P<subj>#\w+) {WHERE}",
            rf"{ORDER}{any_of(PUT_BY)} (?P<subj>#\w+) by (?P<obj>#\w+)",
            rf"{ORDER}{any_of(PUT_HAND)} (?P<subj>HAND) {WHERE}",
            rf"{any_of(PUT_ON)} (?P<subj>HAND) on (?P<obj>#\w+)",
        ),
        "making": tuple(
            rf"{ORDER}{any_of(MAKE)} (?P<subj>{THING}) (?:MODAL |to )?{vp}" for vp in PREDICATE
        ),
    }.items()
}
# "... and the cube touching the ball": the cube that touches it, or is it to touch it?
PARTICIPLE = re.compile(
    rf"(?<!\S)(?:THEN|AND|,)(?: (?:AND|ALSO|,))* #\w+ {any_of(' '.join(VERBS))}_ing "
    rf"(?:{RELATION} |to )?{THING}"
)
BESIDE = re.compile(rf"(?P<subj>#\w+) (?:MODAL )?{any_of(BE)} by (?P<obj>#\w+)")

VERB = any_of(" ".join(VERBS))
