"""What goes without saying: ends of a sentence that ask for nothing that its goal does not hold.

"Above the ball without touching it", "walk forward without falling", "put it on the target and let
go" ask for what success already is; the same words after another goal ask for more. So each ending
counts only after goals of the predicates it is listed for. What the goal is about is "it" here.
"""

from __future__ import annotations

_NOT = "(without|do not|not|never) [ever]"
_OFF = "[,] [and|but|while|then|, and|, but|, then]"
_FALL = "(fall|falling|fall over|falling over|fall down|falling down|tip over|tipping over|topple|"
_FALL += "toppling|topple over|toppling over|trip|tripping|stumble|stumbling|tumble|tumbling)"
_RELEASE = (
    "(release [it]|releasing [it]|let go [of it]|letting go [of it]|let it go|leave it [there]|"
    "leaving it there|HAND away|HAND off|HAND off it|move away|withdraw|retreat|open HAND|"
    "move HAND away|remove HAND|retract HAND|put it down|set it down|let it rest|it stays there|"
    "keep it there|let it stay there)"
)
_THERE = "(there|like that|like this|that way|so|still|in place|in that pose|in that position)"

# Predicates, their endings.
_ENDINGS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("touch", "above", "left_of", "right_of", "far", "open", "closed"),
        (f"{_OFF} (hold|holding|keep|keeping) [it|HAND] {_THERE}", f"{_OFF} hold it"),
    ),
    (
        ("above", "left_of", "right_of", "far"),
        (
            f"{_OFF} {_NOT} [{{ANYHOW}}] (touch|touching|contact|contacting|hit|hitting|bump|"
            "bumping|bump into|bumping into|make contact|making contact|collide|colliding|"
            "brush|brushing) [with|into|against] [it|anything]",
            f"{_OFF} (without|no|with no|avoid|avoiding) [any|making|physical|direct] "
            "(contact|touch|touching|collision) [with] [it]",
            f"{_OFF} (stay|stays|staying|remain|wait|hold|keep) {_THERE}",
        ),
    ),
    (
        ("forward",),
        (
            f"{_OFF} {_NOT} {_FALL}",
            f"{_OFF} {_NOT} (lose|losing) [its|your] balance",
            f"{_OFF} (stay|staying|keep|keeping|remain|remaining) "
            "(upright|balanced|up|standing|on its feet|on your feet|in balance|stable)",
            "[,] as (fast|quickly|quick|far|long) as (possible|it can|you can|HAND can|it is able "
            "to)",
            "[,] (fast|quickly|rapidly|swiftly|steadily|continuously|upright|smoothly)",
            "[,] at (full|top|high|maximum|max) speed",
            f"{_OFF} (keep|keeps|carry on) (going|moving|walking|running|hopping|swimming)",
        ),
    ),
    (
        ("front_flip", "back_flip"),
        (
            f"{_OFF} (land|landing|lands|landed) [it|again|back|safely|upright] [on] [its|your|one|"
            "both] [foot|feet|leg|legs] [again]",
            "once",
            f"{_OFF} {_NOT} {_FALL}",
        ),
    ),
    (
        ("wave", "lie_down", "stand_up", "kneel", "raise_arms", "balanced"),
        (
            f"{_OFF} (stay|stays|staying|remain|remains|keep|hold|wait) {_THERE}",
            f"{_OFF} (stay|remain|keep) (down|up|standing|kneeling|lying|upright|on it)",
            f"{_OFF} (hold|keep) (it|that|them) [there|up|like that]",
            f"{_OFF} {_NOT} {_FALL}",
        ),
    ),
    (
        ("lifted",),
        (
            f"{_OFF} {_NOT} (drop|dropping|lose|losing|let go of|letting go of|letting) [it] "
            "[fall|drop|go]",
            f"{_OFF} (hold|holding|keep|keeping) [it] [there|up|still|up there|in air|in hand|"
            "lifted|raised|above table|off table]",
        ),
    ),
    (
        ("on", "at", "inside"),
        (
            f"{_OFF} {_RELEASE}",
            f"{_OFF} {_NOT} (drop|dropping) it [on way]",
            "[,] (completely|fully|all way|entirely)",
            "[,] after opening (it|drawer)",
        ),
    ),
    (("open",), ("[,] (completely|fully|entirely|all way|as far as (possible|it goes|you can))",)),
    (("closed",), ("[,] (completely|fully|entirely|tightly|all way|again|properly)",)),
    (
        ("pressed",),
        (
            "[,] (completely|fully|all way|entirely)",
            f"{_OFF} (hold|keep) it [down|pressed|pressed down|in|there]",
        ),
    ),
)

ANYHOW = "actually|even|ever|directly|physically"
IMPLIED: dict[str, list[str]] = {}
for _predicates, _patterns in _ENDINGS:
    for _predicate in _predicates:
        IMPLIED.setdefault(_predicate, []).extend(_patterns)
