"""What the predicates are called in sentences: data, read by ``clauses.py``.

Patterns as ``patterns.py`` has them. Slots: S the first entity, O the second, T the third, MUCH a
quantity, PART a share, TIMES a count. Quantities fill the number of their unit that takes them
(``Number.said``), in every row alike. Names in braces stand for the lists below.
"""

from __future__ import annotations

_EXACT = "[directly|right|straight|just|exactly|vertically|immediately|squarely]"
_SIDE = (
    "[directly|just|immediately|right|straight|well] [to|on|at|over to|by|onto|into|towards|off to]"
)
_TO = "(to|on|at|over to|onto|towards)"
_AT = (
    "[off|round|around|over|up] [to|at|in|into] [a|some|any|your] [point|spot|place|position|space|"
    "air|height|distance|somewhere] [that is] [of]"
)
_WIDE = (
    "[good|very|quite] (safe|good|long|great|large|big|fair|wide|generous|decent|clear|respectful|"
    "huge|considerable)"
)
_ROOM = "(distance|gap|space|room|clearance|separation)"
START = (
    "(where (it|you|they) (was|were|started|starts|start|began) [at start]|"
    "[its|your] (start|starting (point|position|place)|(original|initial) (position|place)))"
)
HERE = "(where (it|you|they) (are|is) [now])"
ANYWHERE = (
    "[,] (in|into) (any|whatever) (direction|way) [you (like|want|please)]|[,] (whichever|no "
    f"matter which|whatever) (way|direction)|[away] from {HERE}|anywhere"
)
_EACH = "(each other|one another)"
_POINT = ("([point|position|coordinates] [at|with] x [=] X [and|,] y [=] Y|"
          "(point|position|coordinates) X [,|and] Y)")  # fmt: skip
_TABLE = "table|tabletop|desk|bench"
_ONTO = "[over|all way] (to|on|in|at|into|onto|towards|along)"
# The parts of a table, and what they are called.
_SIDES = {"on_left": "left", "on_right": "right", "at_front": "front", "at_back": "back|rear"}
_OFF = (
    f"(off|off of|above|over|from|up from|up off|clear of) ({_TABLE}|ground|floor|surface)|"
    "(in|into|up in|up into|high in) air|aloft"
)
_UP = f"[up] [high] [{_OFF}]"
_HIGH = f"{_UP} [by|to|at|above|over] [a height of] [MUCH] [up] [high] [{_OFF}]"
_UPWARDS, _DOWNWARDS = "up|upward|upwards|higher", "down|downward|downwards|lower"

# What stands between the subject and the object.
_PLACE = (
    "[(to|in|at|into) [a|some|any] (position|place|spot|point|space) [that is]|[to|at] somewhere]"
)
RELATIONS: dict[str, tuple[str, ...]] = {
    "above": (f"{_AT} [MUCH] {_EXACT} (above|over) O",
              "[right|straight|up] over [the] top of O", "[directly] overhead of O",
              "up [above|over] O"),
    "below": (f"{_AT} [MUCH] {_EXACT} (below|under|underneath|beneath) O",),
    "at_height": (f"{_AT} [a height of] MUCH [up|high] (above|over|off|clear of) ({_TABLE})",
                  f"[up] (high|well|far|way|low|just) (above|over) ({_TABLE})"),
    **{name: (
           f"{_ONTO} ({way}) [hand] (side|end|edge|part|area|region|third) of ({_TABLE})",
           f"{_ONTO} ({way}) PART of ({_TABLE})",
           f"{_ONTO} ({_TABLE}) 's ({way}) [hand] [side|end|edge|part|PART]",
           f"(to|on|onto|at) ({way}) of ({_TABLE})",  # "in front of it" is not on it
       ) for name, way in _SIDES.items()},
    "in_middle": (f"{_ONTO} [very|exact|dead] (middle|centre|center) [part|third] of ({_TABLE})",
                  f"{_ONTO} ({_TABLE}) 's (middle|centre|center)"),
    **{f"{one} {other}": (
           f"{_ONTO} (({_SIDES[one]}) ({_SIDES[other]})|({_SIDES[other]}) ({_SIDES[one]})) "
           f"[hand] corner [of ({_TABLE})]",)
       for one in ("at_front", "at_back") for other in ("on_left", "on_right")},
    "corner": (f"{_ONTO} (a|one|any|some) corner [of ({_TABLE})]",),
    "left_of": (
        f"{_AT} [MUCH] {_SIDE} left [hand] [side] of O",
        f"[MUCH] {_TO} O 's left [hand] [side]",
        f"{_AT} [MUCH] [further] left of O",
        "(beside|by) O on its left [hand] [side]",
        "(to|on|at|by) ITS left [hand] [side]",
        "(leftward|leftwards) of O",
    ),
    "right_of": (
        f"{_AT} [MUCH] {_SIDE} right [hand] [side] of O",
        f"[MUCH] {_TO} O 's right [hand] [side]",
        "(beside|by) O on its right [hand] [side]",
        "(to|on|at|by) ITS right [hand] [side]",
        "(rightward|rightwards) of O",
    ),
    "in_front_of": (f"{_AT} [MUCH] {_EXACT} (in|to) [the] front of O",),
    "behind": (
        f"{_AT} [MUCH] {_EXACT} behind O",
        f"{_AT} [MUCH] (in|at|to) [the] back of O",
    ),
    "near": (f"{_PLACE} {_AT} [to] within MUCH (of|from|to) O", "MUCH (to|of) O"),
    "displaced": (f"within NEAR (of|from) {START}", f"MUCH [away] from {START}",
                  f"[away] from {START} by MUCH", f"MUCH [away] from {HERE}"),
    "nearer": ("[MUCH] [any|much|slightly|a bit|a little] (closer|nearer) [to|towards] O",
               "[any|slightly|a bit|a little] (closer|nearer) (to|towards) O by MUCH"),
    "toward": ("(towards|toward|in direction of) O",),
    "returned": (f"[right|all way] [back] (to|at|in) {START}|[right|all way] back {START}",),
    "apart": (f"{_AT} MUCH [away|off] from O", "[away] from O by MUCH",
              "BOUND (to|from|away from|off|of) T"),  # "at least 10 cm away from them"
    "away": (
        "[to|at|by] MUCH away from O",
        "MUCH clear of O",
        "(away from|clear of) O by MUCH",
        "with MUCH (distance|clearance|space) (from|to) O",
    ),
    "far": (
        f"{_PLACE} [well|safely|very|quite|really|so|right|a long way] (far away|far|far far away|"
        "far off|away|clear|well clear|well away|distant|remote|apart) (from|of) O",
        f"{_PLACE} [at|to|with] [a|some] [{_WIDE}|plenty of|lots of|lot of] (distance|way|ways|gap|"
        "space) [away|off|back] (from|to|of|off from) O",
        "as far [away] from O as (possible|you can)",
        "as far [away] as (possible|you can) from O",
    ),
    "by": (f"{_PLACE} [right|close|over] by O",),
    "next_to": (
        f"{_PLACE} [right|directly|just|immediately|up|right up|in|over] (next to|beside|alongside|"
        "adjacent to|close to|close by|near|near to|nearby|side by side with|close beside) O",
        "(by|at|to) [the] side of O|(at|by|to) O 's side|(at|by|to) ITS side",
        "neighbour of O|a neighbour of O",
    ),
    "against": (f"{_PLACE} [right] [up] against O", "(in|into) [direct|physical] (contact|touch) "
                "with O", "touching O"),
    "at": ("[right|over] at O", "[right|over] [to] where O is"),
    "on": ("[back|right] [down|over|up|off] (on|onto|on to|upon) O",),
    "on_top": ("[back|right] [down|over|up] (on|onto|to|at) top of O", "[right] atop O"),
    "holds": ("(filled|covered|topped|capped) (by|with) O", "(supporting|carrying|holding|"
    "bearing) O [on (it|top)]",
              "with O (on|in|inside) (it|top)", "(receiving|containing) O [on (it|top)]"),
    "inside": ("MUCH deep (in|into|inside) O",
               "[back|away|all the way|safely|snugly|fully|home] [down|over] (in|into|in to|inside|"
               "inside of) O",),
    "between": ("[in] [midway|halfway|the middle] between O [and T]",
                "(to|at|in|into|on) (midpoint|middle|centre|center|space|gap|middle point|halfway "
                "point) (between|of) O [and T]",
                "[to|at|in] [a] (point|place|spot|position) [exactly|right] (midway|halfway) "
                "between O [and T]"),
    "in_line": ("in [a] [straight] line with O and T",),
    "at_point": (f"[at|to] {_POINT}", f"MUCH from {_POINT}", f"[to] within MUCH of {_POINT}"),
}  # fmt: skip

# What a thing may be by itself.
STATES: dict[str, tuple[str, ...]] = {
    "in_touch": (f"(touching|meeting) [{_EACH}]", f"in (contact|touch) [with {_EACH}]"),
    "together": (f"[right] (next to|close to|near|beside|against|in contact with) {_EACH}",
                 "[close] together|side by side|adjacent"),
    "parted": (f"[far|well|wide|a long way|very far] (apart|away from {_EACH})|far from {_EACH}",),
    "stowed": ("(put|stowed|stored|tucked|packed) away",),
    "upright": ("upright", "standing [upright|up]", "vertical", "on its feet"),
    "toppled": ("toppled [over]", "tipped over", "knocked (over|down)", "overturned",
                "[lying] on its side", "fallen [over]", "lying down"),
    "still": ("[standing|perfectly|completely] (still|motionless|stationary|steady|unmoving)",
              "at rest",
              "still there",
              "not moving"),
    "open": ("[all the way|fully|completely|wide] [standing] open", "[all the way] (pulled|slid) "
             "(out|open)", "opened", "[in|to] [an] open (state|position)|out",
             "PART (open [ed]|out)", "MUCH open", "open (by|to) (MUCH|PART)", "open PART",
             "open MUCH"),
    "closed": ("[all the way|fully|completely|nicely] (closed|shut)", "pushed (in|shut)",
               "[back|in] [to] [its|a] closed (state|position)",
               "PART (closed|shut)"),
    "pressed": ("[all the way|fully] (pressed|pushed) [down|in]", "held down", "depressed", "down"),
    "apart": (f"MUCH apart [from {_EACH}]", "apart by MUCH"),
    "at_height": ("HEIGHT",),
    "lifted": ("up MUCH|MUCH up", f"[lifted|raised|held] [up] ({_OFF}) [by MUCH]",
               f"(lifted|raised|picked up|held up|up) [{_OFF}]",
               f"[lifted|raised|held] [by|to|at] [a height of] MUCH ({_OFF})",
               f"(lifted|raised) (by|to) [a height of] MUCH [{_OFF}]"),
    "grasped": ("grasped", "gripped", "grabbed"),
    "released": ("released", "let go of"),
    "slower": ("[at] [a speed of] SLOW", "slow"),
    "faster": ("[at] [a speed of] FAST",),
    "turned": ("(turned|rotated) [by] MUCH [WAY]",),
}  # fmt: skip

_TURN = "[WAY] [by] MUCH [WAY]"
# What is done to a thing, or by a body: (predicate, verbs, what follows).
DEEDS: tuple[tuple[str, str, str], ...] = (
    ("touch", "touch|tap|poke|contact|reach|meet|make contact with|get in contact with|get into "
     "contact with|come into contact with|come in contact with|reach for|reach out for|reach out "
     "to|reach out and touch|have contact with|hold contact with|be in contact with|"
     "stay in contact with|remain "
     "in contact with|keep in contact with|keep contact with|tap on|visit|keep touching|reach and "
     "touch|stay in touch with|be in touch with|get in touch with|go and touch|reach towards and "
     "touch|bump into|lean against|press against|brush against|establish contact with|lay a finger "
     "on|ensure contact with|maintain contact with|arrive at|approach and touch|head for and touch",
     "O"),
    ("touch", "approach|go to|move to|go towards|move towards|head for|head towards|go up "
     "to|move up to|"
     "reach for|close in on",
     "O until (contact [is made]|[you are] touching (it|them)|you (touch|reach|contact|make "
     "contact with) "
     "(it|them)|you (touch|make contact)|(it|they) (is|are) touched)"),
    ("touch", "give", "O a [little|quick|light] (tap|poke|touch|pat)"),
    ("touch", "put|lay|place", "HAND [right] on O"),
    ("touch", "get|have|make", "[direct] contact with O"),
    ("far", "steer clear of|avoid being near", "O"),
    ("far", "retreat|withdraw|retract|flee|back away|back off|back up|move off|draw back|shy away|"
     "stand off|stand back|keep back|stay back|keep off|stay off|pull back|pull away|step away|"
     "step back|go back|move back|get back", "[well|far] [away|off] from O"),
    ("far", "distance|withdraw|retract|back|remove|pull|draw|keep",
     "HAND [well|far] [away|off|back] from O"),
    ("far", "keep|hold|maintain|leave",
     f"[your|its|a] [{_WIDE}|some|plenty of|lots of] distance (from|to) O"),
    ("far", "give|leave", f"O ((plenty of|lots of|some) (space|room)|[a] {_WIDE} (berth|{_ROOM})|"
     "as much (space|room) as possible)"),
    ("parted", "keep|leave|maintain|have|put|ensure|create|make|want",
     f"(a|{_WIDE}|a {_WIDE}|some|plenty of|lots of|a lot of) {_ROOM} between S"),
    ("parted", "put", f"{_ROOM} between S"),
    ("in_touch", "make|establish|maintain|keep|have|ensure|get",
     "[direct|physical] contact between S"),
    ("parted", "keep|hold|move|push|pull|drive|slide|get|leave|put|bring",
     f"S [far|well|a long way] (apart|away from {_EACH})"),
    ("lifted", "lift|raise|hoist|elevate|pick up|lift up|raise up|scoop up|hold up|heave|levitate|"
     "take hold of and lift|grab and lift|grasp and lift|pluck", f"S {_HIGH}"),
    ("lifted", "give", "S a [little] lift [up]"),
    ("lifted", "up with", "S"),
    ("lifted", "pick|scoop|hoist|heave|take|bring", f"S up {_HIGH}"),
    ("lifted", "hold|keep|bring|get|take|move", f"S ({_OFF})"),
    ("lifted", "hold|keep|bring|get|take|move", f"S [up] MUCH ({_OFF})"),
    ("lifted", "hold|keep", "S up [at MUCH]"),
    ("lifted", "hold|keep|lift|raise", "S [at] MUCH (high|up)"),
    ("returned", "come back|return|go home|return home|come home", "[again]"),
    ("raised", "raise|lift|hoist|elevate|lift up|raise up",
     "HAND [up|upward|upwards|higher] [by] [MUCH] [up|higher]"),
    *((name, "move|bring|shift|take|pull|push|get|put|drive|send|draw",
       f"HAND ({way}) [by] [MUCH]|HAND [by] MUCH ({way})")
      for name, way in (("raised", _UPWARDS), ("lowered", _DOWNWARDS))),
    *((name, "go|move|come|shift|travel|drive", f"({way}) [by] [MUCH]|[by] MUCH ({way})")
      for name, way in (("raised", _UPWARDS), ("lowered", _DOWNWARDS))),
    ("raised", "rise|ascend|climb", "[by] MUCH [up]"),
    ("lowered", "lower|sink|drop", "HAND [down] [by] [MUCH]"),
    ("lowered", "descend|sink|drop", "[by] MUCH [down]"),
    ("open", "open|open up|pull open|slide open|draw open|pull out|slide out|tug open|draw out",
     "S [up] [all the way|fully|completely|wide] [by|to] [MUCH|PART]"),
    ("open", "pull|slide|draw|push|tug|yank", "S [all the way] (open|out) [by|to] [MUCH|PART]"),
    ("open", "pull|tug|pull on|tug on|open", "AID (until|till|so [that]) S (is|comes|slides) "
     "[PART] (open|out)"),
    ("open", "pull", "S (open|out) (by|with) [its] AID"),
    ("open", "pull|use|tug on|grab|pull on", "AID to (open|pull open|open up) S"),
    ("open", "pull|tug", "S [out] (towards|toward) (you|yourself) [until it is open]"),
    ("closed", "push|use|press on", "AID to (close|shut) S|AID to get S (closed|shut)"),
    ("open", "pull out|pull open|open", "S (by|with) [pulling] [its] AID"),
    ("open", "pull|slide|draw|push|leave|get|have", "S PART (open|out)"),
    ("closed", "close|shut|push shut|slide shut|push in|push closed|slide closed|shove shut|"
     "shove in|slide in", "S [up] [again] [all the way|fully|completely] [PART]"),
    ("closed", "push|slide|move|shove|bring|give", "S [all the way] [a shove|a push] (shut|closed|"
     "in|back in) [again]"),
    ("pressed", "press|push|depress|click|press down|push down|press down on|push down on|push on|"
     "press on|press in|push in|hit|punch|smack|mash|activate|press and hold", "S [down|in] [all "
     "the way|fully|PART]"),
    ("pressed", "press|push|depress|press down|push down", "S (PART|MUCH) [way] (down|in)|S "
     "[down|in] by (PART|MUCH)"),
    ("pressed", "poke", "S (in|down)"),
    ("pressed", "give", "S a [little|good] (press|push|click|hit)"),
    ("inserted", "insert|plug|fit|slot|seat|stick|dock|install",
     "S [snugly|all the way|fully|home] [[by|at] MUCH [deep]] [(in|into|inside) [O]]"),
    ("inserted", "insert|plug|fit|slot|seat|push|put|slide", "S MUCH deep"),
    ("inserted", "slide|push|put|lower|drop|guide", "S [all the way] (in|inside)"),
    ("inserted", "fill|plug|close|stop up", "O (with|using|by) S"),
    ("on", "cover|cap|top|crown", "O (with|using) S"),
    ("inside", "stow|stash|store|tuck|pack|file|stick|insert|slip|fit|put away|pack away|tuck away",
     "S [away|back] (in|into|inside) O"),
    ("stowed", "stow|stash|store|tuck|put", "S away"),
    ("stowed", "put away|store away|tuck away|stow away", "S"),
    ("on", "pile|stack up|pile up|plop|plonk|pop|balance|drop off|set down|put down|lay down",
     "S (on|onto|on top of|atop|down on|down onto) O"),
    ("to", "drop off|drop", "S [off] at O"),
    ("tower", "build|make|stack", "[a] [little] (tower|stack|cubes|blocks|two cubes) [,] [with] T "
     "[one|being|sitting|is|goes] (at bottom|below|underneath|on bottom) [and|,] O [one] (above|on "
     "top|at top|over it)"),
    ("tower", "build|make|stack", "[a] [little] (tower|stack|cubes|blocks|two cubes) [,] [with] O "
     "[one|being|sitting|is|goes] (above|on top|at top) [and|,] T [one] (at bottom|below|"
     "underneath)"
     ),
    ("tower", "build|make|stack", "[a] [little] (tower|stack|cubes|blocks|two cubes) [,] [with] O "
     "[one|being|sitting|is|goes] (on top|at top|on top of T|sitting on T|on T|uppermost)"),
    ("stacked", "stack|stack up|pile|pile up|put|place",
     f"S [up] (on|onto|on top of|over) {_EACH}"),
    ("stacked", "stack|stack up|pile|pile up", "S [up]"),
    ("toppled", "topple|topple over|tip|tip over|knock over|knock down|overturn|push over|upset|"
     "tumble|flip over|turn over", "S"),
    ("toppled", "topple|tip|knock|push|turn", "S (over|down) [on its side|onto its side]"),
    ("toppled", "lay|put|tip|turn|knock", "S [down|over] (on|onto) its side"),
    ("turned", "turn|rotate|spin|twist|swivel|yaw", f"S [round|around] {_TURN}"),
    ("grasped", "grasp|grab|grip|seize|clutch|take hold of|get hold of|get a grip on|hold on to|"
     "hold onto|pinch|clasp|catch hold of|close hand around|close fingers around|close gripper on",
     "S"),
    ("released", "release|let go of|let loose|free|ungrasp", "S"),
    ("released", "let", "S go"),
    ("in_line", "line up|align|put in line|put in a line|arrange in a line|arrange in line|line",
     "S"),
    ("in_line", "put|arrange|place|bring|move|push|get|set|form|line", "S (in|into|up in) [a] "
     "[straight] (line|row)"),
    ("in_line", "line", "S up"),
    ("together", "push|bring|move|put|slide|place|get|shove|nudge|draw|keep",
     "S [close] (together|side by side)"),
    ("together", "bring|put|push|move|position|get", f"S [up] (next|close) to {_EACH}"),
    ("together", "bring together|push together|put together|gather|gather up", "S"),
    ("leads", "take|get|find|fetch|go get|collect|grip|take hold of", "S"),
    ("leads", "steer|move|drive|bring|guide", "HAND (towards|toward) O"),
    ("leads", "head for|head towards|reach towards|reach for|go towards|move towards", "O"),
    ("apart", "push|bring|move|put|slide|place|get|keep|hold|pull|drag|leave|stay",
     "S [at least] MUCH (apart|away from each other|from each other)"),
    ("apart", "keep|leave|maintain|have|put|hold|ensure",
     "MUCH [of] [distance|space|room|gap|clearance] [free] between S"),
    ("apart", "keep|maintain|hold|leave|stay", "[your|its|a] (distance|gap|clearance) of MUCH "
     "(from|to) O"),
    ("apart", "keep|maintain|hold", "[your|its|a] (distance|gap|clearance) (from|to) O [at|of|to] "
     "MUCH"),
    ("apart", "keep|maintain|hold|leave|stay", "MUCH [of] (distance|gap|clearance|space) (from|to) "
     "O"),
    ("slower", "move|go|travel|be|stay|keep|get|run|walk|hop|crawl",
     "[HAND] [at] [a speed of] SLOW"),
    ("slower", "keep|hold|have", "[your|its|HAND|HAND 's] (speed|velocity) [of HAND] [at|to] SLOW"),
    ("slower", "limit|restrict|cap", "[your|its|HAND|HAND 's] (speed|velocity) [of HAND] (to|at) "
     "CAP"),
    ("faster", "move|go|travel|be|stay|keep|get|run|walk|hop|crawl", "[at] [a speed of] FAST"),
    ("still", "stop moving|freeze|come to a stop|come to rest|come to a halt|come to a standstill|"
     "stand still|hold still|keep still|"
     "stay still|hold your position|hold position|stay put|hold steady|not move", ""),
    ("touch", "avoid", "[[any] contact with] SHUNNED"),
    ("touch", "leave|keep", "SHUNNED untouched"),
    ("touch", "leave|let", "SHUNNED [well|completely] (alone|in peace)"),
    ("near", "reduce|decrease|shrink|bring|get|keep|hold", "[your|its] (distance|gap) to O "
     "[to|at|down to] UNDER"),
    ("near", "approach|go near|come near|get near", "O ([to] within|to) NEAR|O UNDER"),
    ("displaced", "displace|shift", f"S [by] MUCH [{ANYWHERE}]"),
    ("apart", "separate|pull apart|push apart|move apart|part|space", "S [apart] by MUCH"),
    ("apart", "make", "[a] (gap|distance|space) between S MUCH"),
    ("turned", "give", "S [a] (turn|rotation) of MUCH [WAY]"),
    ("faster", "exceed", "[a] [speed of] SPEED"),
)  # fmt: skip

# What is said of two things at once.
_THERE = "[let] there (is|be|are|should be|must be|has to be)"
_SPAN = "(distance|gap|space|clearance|separation)"
_AMOUNTS = (
    "[should|must|shall|will|may|has to|is to|needs to] [EVER] [is|be|are|stays|stay|remain|"
    "remains|to be|of|drop|drops|fall|falls|go|goes|being|kept|staying] [EVER] [of]"
)
_OF_HAND = "[your|its|HAND|HAND 's] (speed|velocity|pace) [of HAND]"
# One of these is in each of them.
MEASURED = frozenset(
    "distance gap space room clearance separation between contact speed velocity pace".split()
)
STATEMENTS: tuple[tuple[str, str], ...] = (
    ("apart", f"[there is] [a] {_SPAN} (between|from) S [to O] {_AMOUNTS} MUCH"),
    ("apart", "[there is|there are] MUCH [of] [space|room|distance] between S"),
    ("apart", f"[a|your|its|HAND] {_SPAN} (to|from) O {_AMOUNTS} MUCH"),
    ("slower", f"{_OF_HAND} {_AMOUNTS} SLOW"),
    ("faster", f"{_OF_HAND} {_AMOUNTS} FAST"),
    ("faster", f"{_OF_HAND} [must|may|should|can|will] EVER (exceed|exceeds) SPEED"),
    ("parted", f"[a] {_ROOM} (between|from) S [should|must] (be|is) (large|big|great)"),
    ("parted", f"{_THERE} [a|{_WIDE}|a {_WIDE}|some|plenty of|lots of] {_ROOM} between S"),
    ("in_touch", f"{_THERE} [direct|physical] contact between S"),
)  # fmt: skip

# What may be taken for something that it is not: understood, and refused.
UNCLEAR: tuple[tuple[str, str, str], ...] = (
    ("unclear", "keep|bring|get|hold|move|have|leave|put|pull|push", "S close"),
    ("unclear", "pull|push|slide|draw|move", "(open|opened|closed|shut) S"),
    ("unclear", "lift|raise|hoist|elevate|pick up", "S [up] (at|by|near|beside|next to) O"),
    ("unclear", "push|press", "S (across|along|around) (table|desk)"),
    ("unclear", "leave", "S"),
    ("unclear", "move|push|put|bring|slide|get", "S (under|below|beneath|underneath) O"),
    ("unclear", "jump|leap|hop|rise", "up"),
)  # fmt: skip

_STRIDE = (
    "walk|run|hop|jump|move|go|travel|march|crawl|sprint|jog|swim|trot|gallop|stride|advance|skip|"
    "head|bound|leap|race|step|stroll|bounce|dash|proceed|propel yourself|propel itself|"
    "make your way|make its way|wriggle|carry on|press on|take steps|take some steps|take a few "
    "steps|take a walk|take a stroll|go for a walk|go for a swim|go for a run|walk it|drive "
    "yourself|amble|charge"
)
_AHEAD = (
    "[on|along|straight|off] (forward|forwards|ahead|onward|onwards|straight ahead|to front|"
    "in forward direction|in direction of front|straight forward)"
)
_GAIT = (
    "[(on|with) (foot|legs|all fours|(its|your) (leg|legs|foot|feet|four legs|two legs)|all "
    "[four] legs|two legs|those legs|four legs|leg|those two legs of yours)|through water|in "
    "water|by (hopping|jumping|swimming|walking|jumping on leg)|in hops|one hop after another|"
    "like a kangaroo|at a run|walking|running|with [your|its|his] legs|in hops]"
)
_UPRIGHT = (
    "(upright|vertical|balanced|in balance|standing|up|straight up|standing upright|standing "
    "straight up|steady|up straight)"
)
_PACE = "[with|at] [a] [pace|speed] [of] [MUCH]"
_LEG = "([a|one] [of] [your|its] (leg|foot)|one of (its|your|the|four) [four] (legs|feet))|leg"
_AT_US = (
    "[in air|about|around|hello|hi|goodbye] [(at|to) (me|us|camera|crowd|fans|everyone|people)]"
)
_ARMS = "[both] [of] [its|your|two] [two] (arms|hands)"
_UPWARD = (
    "[raised|lifted|held|stretched] (up|raised|high|up high|overhead|lifted|[up|high] in air|[up|"
    "high] (above|over) [your|its|his] head|aloft)"
)
_KNEES = "[down] (on|onto|to) [its|your|his] [both|two] knees"
_FEET = "[on|onto|to|upon] [its|your|his] [both|two] [own] feet"
_FLIP = "(flip|somersault|salto)"
BODY_DEEDS: tuple[tuple[str, str, str], ...] = (
    ("forward", _STRIDE, f"{_AHEAD} {_GAIT} {_PACE}"),
    ("forward", _STRIDE, f"{_GAIT} {_AHEAD} {_PACE}"),
    ("forward", "walk|run|swim|gallop|sprint|jog|march", ""),  # where else would it go?
    ("forward", "advance|proceed|make headway|make progress|march on|press on", _GAIT),
    ("backward", _STRIDE, f"[straight] (backward|backwards|back|in reverse) {_PACE}"),
    ("front_flip", "flip|somersault|flip over|turn a flip|jump and flip", "[over] (forward|"
     "forwards|frontwards|to front) [in air|through air]"),
    ("back_flip", "flip|somersault|flip over|turn a flip|jump and flip", "[over] (backward|"
     "backwards|to back|to rear) [in air|through air]"),
    ("back_flip", "backflip", ""), ("front_flip", "frontflip", ""),
    ("wave", "wave|waggle|wiggle", f"[hello|hi] [with] ({_LEG}) {_AT_US} [[,] [so that "
     "it makes|making|with] TIMES]"),
    ("wave", "wave", f"TIMES {_AT_US} [with ({_LEG})]"),
    ("wave", "wave", f"{_AT_US} [with ({_LEG})]"),
    ("wave", "lift|raise", f"({_LEG}) [up] [in air] and (wave|wave it|wave with it) {_AT_US}"),
    ("wave", "say hello|say hi|greet us", f"[{_AT_US}] (with ({_LEG})|by waving ({_LEG}))"),
    ("lie_down", "lie|lie down|roll over|roll|get|flop|flip|flip over|turn over|be|settle",
     "[down] [flat] (on|onto) [its|your] back"),
    ("lie_down", "roll over and lie|get onto your back and lie|flip onto its back and lie|roll "
     "over onto your back and lie|roll over onto its back and lie", "[down|there] [on (its|your) "
     "back]"),
    ("lie_down", "lie down|lie flat", "[flat|on (ground|floor|(its|your) back)]"),
    ("lie_down", "lie|lie down|roll over", "(belly|tummy|legs) up|with [its|your] (belly|tummy) "
     "(up|to sky)"),
    ("at_height", "let", "[your|its] [torso|body|head|S] (drop|fall|sink|go|come|rise|get) HEIGHT"),
    ("lie_down", "lower", "[its|your] [body] [down] to (ground|floor)"),
    ("stand_up", "stand up|get up|rise|rise up|get back up", f"[from (floor|ground)|off (floor|"
     f"ground)] [{_FEET}]"),
    ("stand_up", "stand|get|be|rise", f"[back] [up] {_FEET}"),
    ("stand_up", "get up|rise|get|stand up", "[from (floor|ground)|off (floor|"
     "ground)] and (stand [up|upright|tall]|be standing)"),
    ("stand_up", "stand", "[up] (upright|tall|straight)|up"),
    ("kneel", "kneel|kneel down", f"[on (floor|ground)|{_KNEES}]"),
    ("kneel", "get|go|drop|sink|be", _KNEES),
    ("raise_arms", "raise|lift|hold up|put up|lift up|throw up", f"({_ARMS}) [{_UPWARD}]"),
    ("raise_arms", "hold|put|keep|get|have|bring|stretch|lift|raise", f"({_ARMS}) {_UPWARD}"),
    ("at_height", "get|keep|have|hold|stay|be|bring|raise|lower|rise|move|go|drop|fall|sink|dip",
     "[your|its] [torso|body|head|yourself|itself|S] HEIGHT"),
    # "stop" alone calls off, and says nothing that is to be reached
    ("still", "stand still|stop moving|freeze|hold still|stay still|keep still", ""),
    ("upright", "stay|keep|remain|hold", f"[your|its] [body|torso|yourself|S] {_UPRIGHT} [on "
     f"cart]"),
    ("upright", "balance", "S [upright] [on cart]"),
    ("upright", "keep|stop|prevent", "S from (falling|tipping|toppling) [over|down]"),
    ("upright", "move", f"cart to keep S {_UPRIGHT}"),
    ("upright", "move", "cart so [that] S does not fall [over]"),
    ("upright", "do not let", "S (fall|topple|tip) [over]"),
    ("slower", "move|go|travel|be|stay|keep|get|run|walk|hop|crawl", "[at] [a speed of] SLOW"),
    ("faster", "move|go|travel|be|stay|keep|get|run|walk|hop|crawl", "[at] [a speed of] FAST"),
)  # fmt: skip
# What a body is or does, without a verb: "a front flip", "arms up", "on its knees".
POSES: dict[str, tuple[str, ...]] = {
    "front_flip": (f"[a|one|nice|full|complete] [nice|full] ((front|forward|forwards) {_FLIP}|"
                   "frontflip)", f"{_FLIP} (forward|forwards|to front)"),
    "back_flip": (f"[a|one|nice|full|complete] [nice|full] ((back|backward|backwards) {_FLIP}|"
                  "backflip)", f"[a] {_FLIP} (backward|backwards|to (back|rear))"),
    "wave": (f"[a] [friendly] wave [with ({_LEG})] {_AT_US}", "[a] [friendly] leg wave",
             f"({_LEG}) waving"),
    "lie_down": ("[flat|lying|lying down] on [its|your] back", "(belly|tummy) up|upside down",
                 "(lying|lying down) with belly (to sky|up)"),
    "stand_up": ("standing [up|upright|tall]", f"[up] {_FEET}", "up on [its|your] feet",
                 "[in|to] [a] standing (position|pose|posture)",
                 "upright [on (its|your) [two] feet]", "upright and standing"),
    "kneel": (_KNEES, "kneeling [down] [on (floor|ground)]",
              "[in|into|to] [a] kneeling (position|pose|posture)"),
    "raise_arms": (f"({_ARMS}) {_UPWARD}",),
    "forward": ("forward (walking|hopping|swimming|running) [gait|motion]",
                f"[a] (walk|run|swim|stroll|swimming|walking|running) {_AHEAD}", "forward hops",
                f"[legs|yourself] (going|moving|walking|running|swimming) {_AHEAD} {_GAIT}"),
    "upright": (f"{_UPRIGHT}",),
}  # fmt: skip
POSE_VERBS = (
    "do|make|perform|turn|complete|get|be|have|hold|go for|take|try|finish|end up|drop|rise|end|"
    "throw yourself into|stay|remain|attempt|execute|become|keep"
)
# The bodies that these acts are for.
OF = {
    "front_flip": "hopper", "back_flip": "hopper", "wave": "ant", "lie_down": "ant",
    "stand_up": "humanoid", "kneel": "humanoid", "raise_arms": "humanoid",
}  # fmt: skip

# Ways from where a thing was: (metres to the left, metres to the front) of one metre.
DIRECTIONS: dict[str, tuple[int, int]] = {
    "[to|toward|towards] left [hand side|side]|leftward|leftwards": (1, 0),
    "[to|toward|towards] right [hand side|side]|rightward|rightwards": (-1, 0),
    "forward|forwards|to [the] front|[to|toward|towards] camera|away from (base|robot 's base|"
    "robot base)|toward camera|towards front|frontward|frontwards|closer to camera|"
    "in direction of camera": (0, 1),
    "backward|backwards|back|to [the] back|[further] away from camera|(toward|towards) base|"
    "(toward|towards) back|rearward|rearwards|(toward|towards) robot 's base": (0, -1),
}

# Ways up and down without a verb: "then up 5 cm".
UPRIGHT_WAYS = {name: f"({way}) [by] MUCH|[by] MUCH ({way})"
                for name, way in (("raised", _UPWARDS), ("lowered", _DOWNWARDS))}  # fmt: skip

# Verbs of motion. With a thing or the gripper, with the gripper alone, and of whoever acts.
PLACE = (
    "move|push|put|place|bring|slide|shove|nudge|set|position|get|take|drag|pull|carry|shift|keep|"
    "hold|have|leave|roll|send|transport|transfer|deliver|lay|stack|drop|rest|store|guide|steer|"
    "lead|drive|park|relocate|stow|pop|pile|sit|raise|lower|hover|hang|stop|lift|deposit|scoot|"
    "direct|land|stand|pick up and move|pick up and carry|balance|settle|sweep|draw|plop|"
    "bring back|gather|collect"
)
PLACE_HAND = (
    "press|lean|extend|stretch|reach|plant|suspend|dangle|float|navigate|maneuver|manoeuvre|"
    "station|center|centre|align|swing|sweep|slip|retract|withdraw|back|elevate|fly|line|"
    "reposition|line up"
)
GO = (
    "go|move|come|get|be|stay|remain|hover|hang|wait|rest|travel|drive|head|float|stop|stand|pause|"
    "keep|hold|sit|park|linger|fly|shift|visit|rise|descend|end up|finish|settle|start|begin|"
    "slide|place yourself|position yourself|end|return|glide|"
    "retreat|withdraw|back off|back away|pull back|pull away|climb|lower yourself|keep yourself|"
    "finish up|start out|start off|be located|be positioned|hold position|line up|proceed|step|"
    "drift|swing|slip|relocate|reposition yourself|station yourself|navigate|steer|maneuver|"
    "manoeuvre|manoeuvre yourself|maneuver yourself|walk|levitate|come to rest|come to a stop|"
    "come to a halt|wind up|take a position|take up position|assume a position|get into position|"
    "get in position|maintain a position|remain positioned|stay positioned|stay put|be hovering|"
    "keep hovering|run|pull|draw|back|make your way|advance|go straight|find itself|find yourself|"
    "be situated|be found|appear|be poised|be suspended|be centred|be centered|be placed|lie|"
    "be parked|be stationed|roam|scoot|dash|reach|stretch"
)
# What a thing does by itself to be somewhere.
GOES = (
    "be|go|come|move|belong|shift|end up|wind up|finish|finish up|land|get|rest|sit|lie|stand|live|"
    "settle|lean|travel|slide|roll|come to rest|stay|remain|keep|hang|stop|end|wait|hover|find "
    "itself|appear|arrive|drop|fit|become"
)
STAY = frozenset("be stay remain keep hold hover hang wait rest stand sit float linger".split())
MAKE = "make|let|have|get"

# ---------------------------------------------------------------------------------- sentences

_GOOD = (
    "(nice|great|good|lovely|helpful|wonderful|perfect|ideal|fantastic|cool|best|neat|excellent)"
)
_HAPPY = "(happy|glad|grateful|thankful|pleased|delighted|satisfied|thrilled|overjoyed)"
_TASK = "(task|goal|job|mission|aim|objective|assignment|target|purpose|result|outcome|routine)"
_WISH = "(want|need|wish|prefer|require|expect|request|ask|order|hope|desire|like|love|appreciate)"
# What carries no meaning, before a goal or behind it.
POLITE: tuple[str, ...] = (
    "[oh] (please|kindly|thanks|ok|okay|alright|all right|right now|just|simply|maybe|perhaps|"
    "possibly|well|steady now|oh|um|uh|again|once more|today)|[please] do it",
    "hey [there|you]|hi [there]|hello [there]|yo|greetings|now then|well then|come on|go on|come "
    "now|if possible|good (morning|day|evening)|and (please|thanks)",
    "thank you [very much|so much|kindly|in advance]|thanks [a lot|so much|in advance]|cheers",
    "(for|to) (me|us|everyone|my kids|fun|team|class)|if you (would|could|can|please|will|like|"
    "want|wish|feel like it)|if you (would not|do not) mind|if (i|we) may [ask]|if it pleases you",
    "if that is (ok|okay|all right|alright)|if you would be so kind|(could|can|would|will) you",
    "when (you|we) are (done|finished|ready)|when you can|when everything is finished|is that ok",
    "[and] that would be " + _GOOD + "|as (well|best) [as] you can|for now|off you go|let us go",
    "[my|you|little|dear|old|mister|big|robot] [little|four legged] (friend|buddy|pal|mate|champ|"
    "sir|sweetheart|love|dear|honey|sweetie|soldier|athlete|player|one|bug|team|friends|class|"
    "fella|kitty|fellow|cat|robo|spider)",
    "(at|by|in) [very] (end|finish) [of (episode|run|trial|test|time)]|when "
    "(episode|run|trial|test|time) "
    "(ends|is over)|easy does it|there you go|could you see to that",
)
# What may only stand at the begin.
LEADING: tuple[str, ...] = (
    "(finish|end) [up|off] with|then|next|so|and|now|right|to begin|to start|in short|both|time to",
)
# What introduces a goal in any form.
OPENERS: tuple[str, ...] = (
    "(can|could|would)|(can|could|would|will|might) (you|we|i) [please|kindly|just|now|maybe|"
    "perhaps|possibly|also] [try to|go and|go ahead and|help me|have|get|see|be so kind [as] to|"
    "be (kind|good|nice) enough to|be so (kind|good|nice) as to|be (able|willing|ready) to|be a "
    "dear and]",
    "(please|you) to|please you|please make|may i ask [you]|(may|might|could|can) i (ask|have|get) "
    "[for|you]",
    "(would|do|could|will|might) you [please] mind|would it be (possible|ok|okay|all right|fine) "
    "[for you] [to|if you]|[any|is there any] chance (of|you could)",
    "(how|what) about [you|we]|why (do|not) [not] [you|we] [go|go and|try|all|just]",
    "let us [just|now|please|see|have|get|go and|try and|try to|watch]|let (me|us|everyone) [see|"
    "watch|have|hear]|show (me|us|everyone) [how you]|give (me|us)",
    "(i|we) [do|really|just|now|also|would|would really|would just|would very much|would kindly|"
    "have always|was|am|will|would so|so] (hoping|wanting|asking|looking|wanted|waiting|"
    + _WISH
    + ") [it] [that|for|to see|to watch|to find|to have|seeing|watching|you to|to observe|it if|"
    "when|to get|to make] [you] [to|could|would|can|will]",
    "(i|we) would be [so|very|really|most] " + _HAPPY + " (if|to see|to find|to have|when|with) "
    "[you] [could|would]",
    "[it] (would|will|could) be [so|very|really|just] " + _GOOD + " (if|to|to see|when|to have) "
    "[you] [could|would]",
    "it would (please|help|delight) [me|us] [a lot] (if|when|to see)",
    "(i|we) was wondering (if|whether) you (could|might|would)",
    "[your|my|our|current|next|only|new] [little] " + _TASK + " [now|today|here] (is|,) [to|that|"
    "for|now to] [you]",
    "(what|all|thing) (i|we) (want|need|would like|am asking|ask|wish|hope) [for] [to see|you to "
    "do] [at end] is [for|that|to]|what you (should|must|have to|need to) do is [to]",
    "(success|done|finished|goal|target|end|final|desired) (means|state|looks like) [,] [that]",
    "(you|we) (should|must|have to|need to|are to|shall|will|ought to|have got to|are supposed to|"
    "are (asked|required|requested|expected|told|ordered) to|had better|should have seen)",
    "[to|and] (make|making) (sure|certain) [that|to] [you]|make it so [that]|be (sure|certain) "
    "(that|to)|see to it [that]|(ensure|guarantee|arrange|see) [that]|take care (that|to)|do not "
    "forget to|do your best to|make that|it (should|must|has to) be [so] that",
    "(try|attempt|proceed|manage|remember|aim|strive|continue|start|begin|get ready|prepare|want|"
    "feel free|be ready|be so kind as|be nice enough|work) (to|and|by)|go ahead and|be ("
    "kind|nice|good|a dear|a pal|so nice|so kind) and|(go|come|go on|try) and|(go|move|come) (on|"
    "ahead|over|up|down|straight|in|out) and|(reach|stretch|lean) (out|over) and|[it is] [your] "
    "(time|turn) (to|for [you] [to])|(teach|cause|allow|help)",
    "see (if|whether) you can [manage to]|move on to",
)
# What only says that what follows begins or lasts.
STARTERS = ("keep [on]|start|begin|carry on|go on|set off|get|try|come|go|be",)
# Left and right are as the picture shows them: said, and nothing added.
VIEWS: tuple[str, ...] = (
    "[as] [seen|viewed] (from|by|through) [front] camera ['s] [view|image|picture|frame|"
    "perspective|point of view|viewpoint|side|angle]",
    "(in|on) [front] [camera] ['s] (image|picture|view|frame)|as [front] camera (sees|shows) [it|"
    "this]",
)
# What goes without saying behind goals of these predicates.
_SO = "[,] [and|but|while] "
_FALLING = (
    f"{_SO} (without|do not|not|never) [ever] (falling|fall|tipping|tip|toppling) [over|down]"
)
_STAY = (
    f"{_SO} (stay|stays|staying|remain|keep|hold|wait) [it|that|them|lying|on it] [there|like "
    "that|still|in place|up|down|standing|kneeling|lying|upright|in that pose]"
)
_WHOLLY = "(completely|fully|entirely|all the way|tightly|again|properly)"
IMPLIED: tuple[tuple[str, str], ...] = (
    (
        "forward",
        f"{_FALLING}|[,] as (fast|quickly|quick|far) as (possible|it can|you can)|[,] "
        f"upright|[,] at (full|top|high) speed|{_SO} (stay|keep|"
        f"remain) (upright|balanced|standing|going|walking|running|moving)",
    ),
    ("front_flip back_flip", f"{_FALLING}|once|{_SO} (land|landing) [on] [your|its] [feet|foot]"),
    ("wave lie_down stand_up kneel raise_arms balanced", f"{_FALLING}|{_STAY}"),
    ("touch", f"{_SO} (stay|remain|keep) (in contact|there)"),
    ("left_of right_of above far open closed", f"{_SO} (stay|hold|keep) [it] there"),
    (
        "lifted",
        f"{_SO} (hold|keep) it [there|up|still|up there|in air|lifted]|{_SO} (do not|"
        "without) (drop|dropping) it",
    ),
    (
        "on inside",
        f"{_SO} [then] (release|let go|let it go|let go of it|release it|leave it|leave "
        f"it there|HAND off)|{_WHOLLY}",
    ),
    ("open closed pressed inserted", f"[,] {_WHOLLY}"),
    ("pressed", f"{_SO} (hold|keep) it [down|pressed|in|there]"),
)
# Reasons and remarks, which ask for nothing: ANY is what is said there, of plain words alone.
REASONS: tuple[str, ...] = (
    "(because|since|as|cause|in case|now that) [of] (i|we|my|our|it|that|this|she|he|they|there|"
    "you) ANY",
    "so [that] (i|we|my|everyone|they) (can|may|could|do not|am|will) ANY",
    "(i|we) (am|are|was|were|have|had|keep|just|think|believe|paid|always|dropped|lost|"
    "live|do not|guess|promise|hate|love) ANY",
    "(my|our|class|guests|grandma|kids|people|everyone|coach) ANY",
    "i will ANY",
    "(i|we) (need (my|our|his|her|some)|want to see|want to hear|want to look|want to know|would "
    "like to (see|take|look|hear|know)|would hate to|like|like to) ANY",
    "(it|that|this|they) (is|was|are|looks|look|seems|will be|makes) ANY",
    "(you|he|she) (look|looks|must be|can make it|are|seem) ANY",
    "THING (is|looks|was|are|makes me|seems) [so|very|too|all|really] ANY",
    "(someone|somebody) (left|has left) ANY",
)
# The gripper is what everything is done with.
TOOLS: tuple[str, ...] = ("(with|using|use) HAND [,|to|and]", "(with|by) [one|tip|end] of HAND")
