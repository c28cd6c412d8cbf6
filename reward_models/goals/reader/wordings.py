"""What the predicates are called in sentences: data, read by ``clauses.py``.

Patterns as ``words.py`` has them. Slots: S the first entity, O the second, T the third, MUCH a
quantity, PART a share, TIMES a count. Quantities fill the number of their unit that takes them
(``Number.said``), in every row alike. Names in braces stand for the lists below.
"""

from __future__ import annotations

_EXACT = "[directly|right|straight|just|exactly|vertically|immediately|squarely]"
_SIDE = "[directly|just|immediately|right|straight] [to|on|at|over to|by|onto|into|towards]"
_TO = "(to|on|at|over to|onto|towards)"
_AT = "[to|at|in|into] [a [point|spot|place|position|height|distance] [that is] [of]]"
_BY = "[by MUCH] [,] [TOL]"
_OFF = (
    "(off|off of|above|over|from|up from|up off|clear of) (table|tabletop|desk|ground|floor|"
    "surface)|(in|into|up in|up into) [the] air|aloft"
)
_UP = f"[up] [high] [{_OFF}]"
_HIGH = f"{_UP} [by|to|at|above|over] [a height of] [MUCH] [up] [high] [{_OFF}]"

# What stands between the subject and the object.
RELATIONS: dict[str, tuple[str, ...]] = {
    "above": (f"{_AT} [MUCH] {_EXACT} (above|over) O {_BY}",),
    "below": (f"{_AT} [MUCH] {_EXACT} (below|under|underneath|beneath) O {_BY}",),
    "left_of": (
        f"{_AT} [MUCH] {_SIDE} left [hand] [side] of O {_BY}",
        f"[MUCH] {_TO} O 's left [hand] [side] {_BY}",
        f"{_AT} [MUCH] [further] left of O {_BY}",
        "(beside|by) O on its left [hand] [side]",
    ),
    "right_of": (
        f"{_AT} [MUCH] {_SIDE} right [hand] [side] of O {_BY}",
        f"[MUCH] {_TO} O 's right [hand] [side] {_BY}",
        "(beside|by) O on its right [hand] [side]",
    ),
    "in_front_of": (f"{_AT} [MUCH] {_EXACT} (in|to) [the] front of O {_BY}",),
    "behind": (
        f"{_AT} [MUCH] {_EXACT} behind O {_BY}",
        f"{_AT} [MUCH] (in|at|to) [the] back of O {_BY}",
    ),
    "near": (f"{_AT} [to] within MUCH (of|from|to) O", "MUCH (to|of) O"),
    "apart": (f"{_AT} MUCH [away|off] from O", "[away] from O by MUCH"),
    "away": (
        "MUCH away from O",
        "MUCH clear of O",
        "away from O by MUCH",
        "with MUCH (distance|clearance|space) (from|to) O",
    ),
    "far": (
        "[well|safely] (far away|far|far off|away|clear|well clear) (from|of) O",
        "at a [safe|good|long|great|large] distance from O",
        "as far [away] from O as (possible|you can)",
        "as far [away] as (possible|you can) from O",
    ),
    "next_to": (
        "[right|directly|just|immediately|up|right up] (next to|beside|alongside|adjacent to|"
        "close to|close by|near|near to|nearby|by side of|at side of)  O",
    ),
    "against": ("[right] [up] against O", "(in|into) [direct] contact with O", "touching O"),
    "on": ("[back] [down|over|up] (on|onto|on to|upon) O",),
    "on_top": ("[back] [down|over|up] (on|onto|to|at) top of O", "[right] atop O"),
    "inside": ("[back] [down|over] (in|into|in to|inside|inside of) O",),
    "between": ("[in] [midway|halfway|the middle] between O [and T]",),
    "in_line": ("in [a] [straight] line with O and T",),
    "at_point": ("[at|to] [point] [at] x X [and|,] y Y",
                 "MUCH from [point] [at] x X [and|,] y Y"),
}  # fmt: skip

# What a thing may be by itself.
STATES: dict[str, tuple[str, ...]] = {
    "upright": ("upright", "standing [upright|up]", "vertical", "on its feet"),
    "toppled": ("toppled [over]", "tipped over", "knocked (over|down)", "overturned",
                "[lying] on its side", "fallen [over]", "lying down"),
    "still": ("[perfectly|completely] (still|motionless|stationary|steady|unmoving)", "at rest",
              "not moving"),
    "open": ("[all the way|fully|completely|wide] open", "[all the way] pulled out", "opened",
             "PART open [ed]", "MUCH open", "open (by|to) (MUCH|PART)", "open PART", "open MUCH"),
    "closed": ("[all the way|fully|completely] (closed|shut)", "pushed (in|shut)",
               "PART (closed|shut)"),
    "pressed": ("pressed [down|in]", "pushed (in|down)", "held down", "depressed", "down"),
    "lifted": (f"[lifted|raised|held] [up] ({_OFF}) [by MUCH]",
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
    ("touch", "touch|tap|poke|contact|reach|make contact with|get in contact with|get into contact"
     " with|come into contact with|reach for|reach out for|reach out and touch|have contact with|"
     "be in contact with|stay in contact with|remain in contact with|keep in contact with|"
     "keep contact with|tap on|visit|keep touching|reach and touch|stay in touch with|go and touch|"
     "get hold of contact with|lay a finger on", "O"),
    ("lifted", "lift|raise|hoist|elevate|pick up|lift up|raise up", f"S {_HIGH}"),
    ("lifted", "pick", f"S up {_HIGH}"),
    ("lifted", "hold|keep|bring|get|take|move", f"S ({_OFF})"),
    ("lifted", "hold|keep|bring|get|take|move", f"S [up] MUCH ({_OFF})"),
    ("lifted", "hold|keep", "S up [at MUCH]"),
    ("lifted", "hold|keep|lift|raise", "S [at] MUCH (high|up)"),
    ("open", "open|open up|pull open|slide open|draw open|pull out|slide out",
     "S [up] [all the way|fully|completely|wide] [by|to] [MUCH|PART] [with (handle|hand|gripper)]"),
    ("open", "pull|slide|draw|push", "S (open|out) [by|to] [MUCH|PART]"),
    ("open", "pull|slide|draw|push|leave|get|have", "S PART open"),
    ("closed", "close|shut|push shut|slide shut|push in",
     "S [up] [all the way|fully|completely] [PART]"),
    ("closed", "push|slide|move", "S (shut|closed|in|back in)"),
    ("pressed", "press|push|depress|click|press down|push down|press down on|press on|press in",
     "S [down|in] [all the way|fully|PART]"),
    ("inserted", "insert|plug|fit", "S [[all the way] (in|into|inside) O]"),
    ("toppled", "topple|topple over|tip over|knock over|knock down|overturn|push over|upset|"
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
    ("together", "bring|put|push|move", "S next to each other"),
    ("apart", "push|bring|move|put|slide|place|get|keep|hold|pull|drag|leave|stay",
     "S [at least] MUCH (apart|away from each other|from each other)"),
    ("apart", "keep|leave|maintain|have|put|hold|ensure",
     "MUCH [of] [distance|space|room|gap|clearance] [free] between S"),
    ("apart", "keep|maintain|hold|leave|stay", "[your|its|a] (distance|gap|clearance) of MUCH "
     "(from|to) O"),
    ("apart", "keep|maintain|hold|leave|stay", "MUCH [of] (distance|gap|clearance|space) (from|to) "
     "O"),
    ("slower", "move|go|travel|be|stay|keep|get|run|walk|hop|crawl", "[at] [a speed of] SLOW"),
    ("slower", "keep|hold|have", "[your|its|gripper 's] speed [at|to] SLOW"),
    ("faster", "move|go|travel|be|stay|keep|get|run|walk|hop|crawl", "[at] [a speed of] FAST"),
    ("still", "stop moving|freeze|come to a stop|come to rest|stand still|hold still|keep still|"
     "stay still|hold your position|hold position|stay put|hold steady|not move", ""),
    ("apart", "avoid", "(coming|getting|going) NEARER"),
    ("touch", "avoid", "SHUNNED"),
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
    "head|bound|leap|race"
)
_UPRIGHT = "(upright|vertical|balanced)"
_PACE = "[with|at] [a] [pace|speed] [of] [MUCH]"
_LEG = "(a|one) (leg|foot)|(its|your) leg|one of (its|your) legs|leg"
_ARMS = "[both] [of] [its|your] (arms|hands)|two arms"
BODY_DEEDS: tuple[tuple[str, str, str], ...] = (
    ("forward", _STRIDE, f"[straight] (forward|forwards|ahead|onward|onwards) {_PACE}"),
    ("backward", _STRIDE, f"[straight] (backward|backwards|back|in reverse) {_PACE}"),
    ("front_flip", "do|make|perform|turn", "[a|one] (front|forward|forwards) (flip|somersault)"),
    ("back_flip", "do|make|perform|turn",
     "[a|one] ((back|backward|backwards) (flip|somersault)|backflip)"),
    ("front_flip", "flip|somersault", "[over] (forward|forwards)"),
    ("back_flip", "flip|somersault", "[over] (backward|backwards)"),
    ("wave", "wave", f"[with] ({_LEG}) [TIMES]"),
    ("lie_down", "lie|lie down|roll over|roll|get", "[down] [flat] (on|onto) [its|your] back"),
    ("lie_down", "lie down", "[flat]"),
    ("lie_down", "lower", "[its|your] [body] [down] to (ground|floor)"),
    ("stand_up", "stand up|get up|rise", "[on|onto|to] [its|your] [feet]"),
    ("kneel", "kneel|kneel down", ""),
    ("kneel", "get|go|drop|sink", "[down] (on|onto|to) [its|your|both] knees"),
    ("raise_arms", "raise|lift|hold up|put up", f"({_ARMS}) [up] [high]"),
    ("raise_arms", "hold|put|keep", f"({_ARMS}) (up|raised|high)"),
    ("at_height", "get|keep|have|hold|stay|be|bring|raise|lower|rise|move|go",
     "[your|its] [torso|body|head|yourself|itself|S] HEIGHT"),
    ("still", "stand still|stop moving|stop|freeze|hold still|stay still|keep still|do not move",
     ""),
    ("upright", "stay|keep|remain|hold", f"[your|its] [body|torso|yourself|S] {_UPRIGHT}"),
    ("upright", "balance", "S"),
    ("slower", "move|go|travel|be|stay|keep|get|run|walk|hop|crawl", "[at] [a speed of] SLOW"),
    ("faster", "move|go|travel|be|stay|keep|get|run|walk|hop|crawl", "[at] [a speed of] FAST"),
)  # fmt: skip
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

# Verbs of motion. With a thing or the gripper, and of the gripper alone.
PLACE = (
    "move|push|put|place|bring|slide|shove|nudge|set|position|get|take|drag|pull|carry|shift|keep|"
    "hold|have|leave|roll|send|transport|transfer|deliver|lay|stack|drop|rest|store|guide|steer|"
    "lead|drive|park|relocate|stow|pop|pile|sit|raise|lower|hover|hang|stop|lift|deposit"
)
GO = (
    "go|move|come|get|be|stay|remain|hover|hang|wait|rest|travel|drive|head|float|stop|stand|pause|"
    "keep|hold|sit|park|linger|fly|shift|visit|rise|descend|end up|finish|settle|start|begin|"
    "slide|place yourself|position yourself|end|return|glide|"
    "retreat|withdraw|back off|back away|pull back|pull away|climb|lower yourself|keep yourself|"
    "finish up|start out|start off|be located|be positioned|hold position|line up"
)
STAY = frozenset("be stay remain keep hold hover hang wait rest stand sit float linger".split())
MAKE = "make|let|have|get"
