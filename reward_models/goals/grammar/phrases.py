"""Phrases that mean one symbol of the grammar, longest match first.

[x] may be left out, (x|y) is a choice; articles are dropped before. Capitals are symbols of the
grammar; "be", "go", "touch" and "to" stand for themselves.
"""

from __future__ import annotations

import itertools
import re

AT = "[over|up|off|around|round] (to|on|onto|at|by|towards|toward|in)"
DISTANCE = "[safe|good|long|great|large|big|fair|certain|considerable|generous|healthy|some]"
POSITION = "(position|place|spot|point|location|area|space|region|pose)"
WISH = "(want|need|wish|prefer|require|expect|request|command|ask|order)"
TASK = "(task|goal|job|mission|aim|objective|assignment|target|purpose)"
PHRASES = {
    # Relations
    f"[{AT}] left [hand] [side] of": "LEFT_OF",
    f"[{AT}] right [hand] [side] of": "RIGHT_OF",
    "'s left [hand] [side]": "'S_LEFT",
    "'s right [hand] [side]": "'S_RIGHT",
    "[directly|straight|right|just|up] (above|over|atop)": "ABOVE",
    "(to|at|in|into) [directly|straight|just|up|air] (above|over|atop)": "ABOVE",
    "[directly|right|straight|up] (on|onto|to|at|over) top of": "ABOVE",
    "over to": "to",
    "toward": "towards",
    "over (toward|towards)": "towards",
    "[very|well|quite|really|so] far [away|off|apart|removed] from": "FAR",
    "too (far|close|near|distant|left|right) [away] [from|to]": "TOO_MUCH",
    "(distant|remote) from": "FAR",
    "(wide berth|some space|some room)": "BERTH",
    "as far [away] from": "AS_FAR",
    "as far [away] as (possible|you can|it can) [away] from": "FAR",
    "as (possible|you can|it can)": "AS_POSSIBLE",
    "[well|safely] away from": "FAR",
    "[well|safely] clear of": "FAR",
    f"(at|with) {DISTANCE} distance [away] (from|to)": "FAR",
    f"[at] {DISTANCE} (distance|way|ways) (away|off) from": "FAR",
    f"{DISTANCE} (way|ways) from": "FAR",
    f"(keep|maintain|hold|leave) [your|its] {DISTANCE} distance [away] (from|to)": "be FAR",
    f"(keeps|maintains) [its] {DISTANCE} distance [away] (from|to)": "be FAR",
    f"(keeping|maintaining) [your|its] {DISTANCE} distance [away] (from|to)": "be FAR",
    "distance (yourself|itself) from": "go FAR",
    f"(keep|leave|maintain|have|put) {DISTANCE} distance between": "KEEP_BETWEEN",
    "(back|backs|backing) (off|away|up) from": "go FAR",
    "(move|moves|moving|pull|pulls|draw|step|steps|get|gets|go) (back|off) from": "go FAR",
    "(pull|draw|step) away from": "go FAR",
    "(stay|stays|staying|keep|keeps|keeping|stand|stands) (back|off) from": "be FAR",
    "(retreat|retreats|retreating|withdraw|withdraws|withdrawing) [away] from": "go FAR",
    "[right|directly|just|immediately] next to": "NEXT_TO",
    "[right|directly|just] (beside|alongside|besides)": "NEXT_TO",
    "[right|directly] adjacent to": "NEXT_TO",
    "(close|near|nearby|closely) to": "NEXT_TO",
    "[right] near": "NEXT_TO",
    "(by|at) side of": "NEXT_TO",
    "[right|close] by": "by",
    "[up|right] against": "NEXT_TO",
    "(in|into|in to) [direct|physical] (contact|touch) with": "TOUCHING",
    "(make|makes|making|have|has|having|establish|establishes) [direct|physical] contact with": (
        "touch"
    ),
    "(keep|keeps|keeping|maintain|maintains) [direct|physical] contact with": "touch",
    "(come|comes|coming|get|gets) (in|into) (contact|touch) with": "touch",
    "(together|side by side|in contact|adjacent)": "EACH_NEXT",
    "[in contact with|next to|beside|against|close to] each other": "EACH_NEXT",
    "[in contact with|next to|beside|against|close to] one another": "EACH_NEXT",
    "[far|well] apart [from each other|from one another]": "EACH_FAR",
    "[far] away from (each other|one another)": "EACH_FAR",
    "far from (each other|one another)": "EACH_FAR",
    f"(to|at|in|into|on|for|towards) {POSITION} [that is|which is]": "PLACE",
    f"{POSITION} (above|over)": "ABOVE",
    "[to|at] somewhere": "PLACE",
    f"(hold|take|take up|keep|hold your|keep your|take your|assume|occupy) {POSITION}": "be",
    # Verbs of several words
    "(end|ends|ending|finish|finishes|finishing) [up] [being|positioned|located]": "be",
    "(wind|winds) up": "be",
    "(come|comes) to (stop|halt|rest)": "be",
    "(has|have|having) been": "be",
    "(be|get|gets) (positioned|placed|located|situated)": "be",
    "(reach|reaches|reaching|reach out|reaches out|reaching out) (for|to|towards|toward)": "touch",
    "(reach|reaches) over (to|for)": "touch",
    "(reach|reaches) (out to|out and|and) touch": "touch",
    "(tap|taps|tapping) on": "touch",
    "(poke|pokes|poking) at": "touch",
    "(go|move|come|get|walk|head|drive|travel|steer|go on|come on|goes|moves|comes) up to": (
        "go to"
    ),
    "(head|heads|heading|make|makes|go|goes) [straight] for": "go to",
    "make (your|its) way to": "go to",
    "(arrive|arrives|arriving) at": "go to",
    "(go|move|come|get|head|goes|moves|comes) back to": "go to",
    "all way [over|up] to": "to",
    "(straight|directly) to": "to",
    # Joining
    "[and|but] [only] then": "THEN",
    "[and] after (that|this|which)": "THEN",
    "[and] (afterwards|afterward|subsequently|thereafter)": "THEN",
    "[and] (finally|lastly|next|later|secondly|thirdly|once done|when done)": "THEN",
    "[and] once (that is done|you are done|done)": "THEN",
    "followed by": "THEN",
    "(first|firstly|first of all|at first|to begin with|to start with|initially|start by)": "FIRST",
    "(start|begin) [out|off]": "FIRST be",
    "(begin by|start off by|begin with|start with|start off with)": "FIRST",
    "(while|whilst|all while|but|as well as|yet|but also)": "AND",
    "and [also|still|yet]": "AND",
    "&": "AND",
    "(at same time|simultaneously|at once|both at once|too|also|as well)": "ALSO",
    "(until|till|so that|such that|so as to|in order to|in such way that)": "UNTIL",
    # Modals and wishes
    "(should|must|shall|will|would|can|could|may|might)": "MODAL",
    "(has|have|needs|need|ought|is|are|wants|has got) to": "MODAL",
    "(is|are) (going|supposed|meant) to": "MODAL",
    "(is|are) (required|expected|asked) to": "MODAL",
    f"(i|we) [do|really|just|now|also] {WISH} [for|to see]": "WANT",
    "(i|we) would [really|just|also] (like|love|prefer|want) [for|to see]": "WANT",
    "(i am|we are) (asking|telling|ordering|instructing|requesting)": "WANT",
    "(all|what|thing) (i|we) (want|need) is": "WANT",
    f"[your|my|our|today 's|current|new|next] {TASK} is [for]": "WANT",
    f"[your|my|our|today 's|current|new|next] {TASK} ,": "WANT",
    "(make|making) (sure|certain) [that|to]": "SURE",
    "be (sure|certain) (that|to)": "SURE",
    "do not forget to": "SURE",
    "(ensure|guarantee) [that]": "SURE",
    "see to it that": "SURE",
    "(see|arrange|make it so|make it happen) that": "SURE",
    "take care (that|to)": "SURE",
    "(try|attempt|proceed|manage|remember|aim|strive|continue|start|begin) to": "SURE",
    "(try|go|come|go ahead|go on) and": "SURE",
    "(go ahead|feel free to|be ready to|get ready to)": "SURE",
    "let us": "POLITE",
    # Politeness: the closed list of words that carry no meaning
    "(please|kindly|thanks|hey|hi|hello|hiya|yo|greetings|ok|okay|alright|all right)": "POLITE",
    "(hey|hi|hello) there": "POLITE",
    "thank you [very much|so much|kindly|in advance]": "POLITE",
    "thanks [a lot|so much|in advance|very much]": "POLITE",
    "(now|just|simply|maybe|perhaps|if possible|well then|now then|so|well|oh|um|uh)": ("POLITE"),
    "right now": "RIGHT_NOW",
    "for (me|us)": "POLITE",
    "if you (would|could|can|please|will|like|want|wish|would like|would please)": "POLITE",
    "if you (would not|do not) mind": "POLITE",
    "it would be (nice|great|good|lovely|helpful|wonderful) if you (could|would)": "POLITE",
    "it would be (nice|great|good|lovely|helpful|wonderful) to": "POLITE",
    "that would be (nice|great|good|lovely|helpful|wonderful)": "POLITE",
    "would it be possible [for you] to": "POLITE",
    "if (i|we) may [ask]": "POLITE",
    "[do|would|could|will] you mind": "POLITE",
    "(could|can|would|will|might) you [please|kindly|just|maybe|perhaps|possibly|try to|also]": (
        "POLITE"
    ),
    "(could|can|would|will) you [please] be [so|very] (kind|good|nice) [as] to": "POLITE",
    "(could|can|would|will) you [please] be (kind|good|nice) enough to": "POLITE",
    "(could|can) (i|we) (ask|get|have)": "WANT",
    "(may i|might i) ask": "WANT",
    "be [so] (kind|good|nice) [as|enough] to": "POLITE",
    "(i|we) would (be [very|really|most|so] (grateful|happy|glad|thankful)|appreciate it) if you": (
        "POLITE"
    ),
    "(i|we) would (be [very|really|most|so] (grateful|happy|glad|thankful)|appreciate it) if": (
        "POLITE"
    ),
    "(could|would) you": "POLITE",
    "do me favour and": "POLITE",
    "do me favor and": "POLITE",
    "[my] (friend|buddy|mate|dear|sir)": "POLITE",
    "(you|yourself)": "HAND",
    "itself": "IT",
    "it": "IT",
}


def expand(pattern: str) -> list[str]:
    """All phrases of a pattern of PHRASES, innermost brackets first."""
    bracket = re.search(r"\[([^\[\]()]*)\]|\(([^\[\]()]*)\)", pattern)
    if bracket is None:
        return [" ".join(pattern.split())]
    inside = bracket[1] if bracket[1] is not None else bracket[2]
    choices = inside.split("|") + ([""] if bracket[1] is not None else [])
    before, after = pattern[: bracket.start()], pattern[bracket.end() :]
    return [p for choice in choices for p in expand(f"{before}{choice}{after}")]


PHRASE_TABLE: dict[tuple[str, ...], tuple[str, ...]] = {}
for _pattern, _symbol in PHRASES.items():
    for _phrase in expand(_pattern):
        PHRASE_TABLE.setdefault(tuple(_phrase.split()), tuple(_symbol.split()))
LONGEST = max(map(len, PHRASE_TABLE))
PHRASE_WORDS = frozenset(itertools.chain.from_iterable(PHRASE_TABLE))
