"""Phrases that mean one symbol of the grammar, longest match first.

[x] may be left out, (x|y) is a choice; articles are dropped before. Capitals are symbols of the
grammar; "be", "go", "touch" and "to" stand for themselves.
"""

from __future__ import annotations

import itertools
import re

AT = "[over|up|off|around|round] (to|on|onto|at|by|towards|toward|in)"
POSITION = "(position|place|spot|point|location|area|space|region|pose)"
WISH = "(want|need|wish|prefer|require|expect|request|command|ask|order)"
FAR_ADJECTIVE = (
    "(safe|good|long|great|large|big|fair|wide|certain|considerable|generous|healthy|decent|clear|"
    "respectful|huge|sizeable)"
)
# Noun phrases, found first: they are words of the phrases below.
GAPS = {
    f"{FAR_ADJECTIVE} (distance|gap|space|separation|clearance|margin|room)": "GAP",
    "(plenty|lots|lot|loads) of (distance|space|room|clearance)": "GAP",
    "(some|ample) (distance|space|room|clearance)": "GAP",
    f"{FAR_ADJECTIVE} (way|ways)": "GAP",
    "as much (distance|space|room) as (possible|you can|it can)": "GAP",
}
THERE_IS = "[let] there (is|be|should be|must be|has to be|needs to be|ought to be|shall be)"
BARE = "[directly|right|straight|up|just|immediately|vertically|squarely]"  # exactly there
TASK = "(task|goal|job|mission|aim|objective|assignment|target|purpose)"
PHRASES = {
    # Relations
    f"[directly|just|immediately|well|straight|off] [{AT}] left [hand] [side] of": "LEFT_OF",
    f"[directly|just|immediately|well|straight|off] [{AT}] right [hand] [side] of": "RIGHT_OF",
    "'s left [hand] [side]": "'S_LEFT",
    "'s right [hand] [side]": "'S_RIGHT",
    "(leftward|leftwards) of": "LEFT_OF",
    "(rightward|rightwards) of": "RIGHT_OF",
    f"{BARE} (above|over|atop)": "ABOVE",
    f"{BARE} (below|under|underneath|beneath)": "BELOW",
    "(to|at|in|into) [directly|straight|just|up|air] (above|over|atop)": "ABOVE",
    f"{BARE} (on|onto|to|at|over) top of": "ABOVE",
    "over to": "to",
    "toward": "towards",
    "over (toward|towards)": "towards",
    "[very|well|quite|really|so] far [away|off|apart|removed] from": "FAR",
    "too (far|close|near|distant|left|right) [away] [from|to]": "TOO_MUCH",
    "(distant|remote) from": "FAR",
    "(wide berth|GAP)": "BERTH",
    "(at|with|to) (GAP|distance) [away] from": "FAR",
    "(at|with) (GAP|distance) [away] to": "FAR",
    "[at] (GAP|distance) (away|off) from": "FAR",
    "GAP from": "FAR",
    "(keep|maintain|hold|leave) [your|its] (GAP|distance) [away] (from|to)": "be FAR",
    "(keeps|maintains) [its] (GAP|distance) [away] (from|to)": "be FAR",
    "(keeping|maintaining) [your|its] (GAP|distance) [away] (from|to)": "be FAR",
    "(keep|leave|maintain|have|put|ensure|create|keeps|maintains) (GAP|space|distance) between": (
        "KEEP_BETWEEN"
    ),
    f"{THERE_IS} (GAP|space|distance) between": "KEEP_BETWEEN",
    "(GAP|space) between": "GAP_BETWEEN",
    "distance between": "DISTANCE_BETWEEN",
    "(be|is|are) (large|big|great|considerable|long)": "be LARGE",
    f"{THERE_IS} [direct|physical] contact between": "CONTACT_BETWEEN",
    "(make|establish|maintain|keep|have|ensure|keeps|makes) [direct|physical] contact between": (
        "CONTACT_BETWEEN"
    ),
    "as far [away] from": "AS_FAR",
    "as far [away] as (possible|you can|it can) [away] from": "FAR",
    "as (possible|you can|it can)": "AS_POSSIBLE",
    "[well|safely] away from": "FAR",
    "[well|safely] clear of": "FAR",
    "distance (yourself|itself) from": "go FAR",
    "(back|backs|backing) (off|away|up) from": "go FAR",
    "(move|moves|moving|pull|pulls|draw|step|steps|get|gets|go) (back|off) from": "go FAR",
    "(pull|draw|step) away from": "go FAR",
    "(stay|stays|staying|keep|keeps|keeping|stand|stands) (back|off) from": "be FAR",
    "(retreat|retreats|retreating|withdraw|withdraws|withdrawing|retract|flee) [away] from": (
        "go FAR"
    ),
    "[right|directly|just|immediately] next to": "NEXT_TO",
    "[right|directly|just] (beside|alongside|besides)": "NEXT_TO",
    "[right|directly] adjacent to": "NEXT_TO",
    "(close|near|nearby|closely) to": "NEXT_TO",
    "[right] near": "NEXT_TO",
    "(by|at) side of": "NEXT_TO",
    "[right|close] by": "by",
    "[right] [up] against": "TOUCHING",  # touch, or of two objects next to
    "side by side with": "NEXT_TO",
    "(move|go) on to": "SURE",
    "(in|into|in to) [direct|physical] (contact|touch) with": "TOUCHING",
    "[direct|physical] contact with": "touch",
    "(make|makes|making|have|has|having|get|gets) [direct|physical] contact with": "touch",
    "(establish|keep|keeps|keeping|maintain|maintains) [direct|physical] contact with": ("touch"),
    "(come|comes|coming|get|gets) (in|into) (contact|touch) with": "touch",
    "(together|close together|side by side|in contact|adjacent)": "EACH_NEXT",
    "[in contact with|next to|right next to|beside|against|close to|near|adjacent to|alongside] "
    "(each other|one another)": "EACH_NEXT",
    "[far|well|wide|GAP] apart [from each other|from one another]": "EACH_FAR",
    "[far] away from (each other|one another)": "EACH_FAR",
    "far from (each other|one another)": "EACH_FAR",
    f"(to|at|in|into|on|for|towards) [some|any] {POSITION} [that is|which is]": "PLACE",
    f"{POSITION} (above|over)": "ABOVE",
    "[to|at] somewhere": "PLACE",
    f"(hold|take|take up|keep|hold your|keep your|take your|assume|occupy|maintain) {POSITION}": (
        "be"
    ),
    # Verbs of several words
    "(end|ends|ending|finish|finishes|finishing) [up] [being|positioned|located]": "be",
    "(wind|winds) up": "be",
    "(come|comes) to (stop|halt|rest)": "be",
    "(has|have|having) been": "be",
    "(be|get|gets|stay|stays|remain|remains) (positioned|placed|located|situated|parked|"
    "poised|suspended|stationed|centred|centered|aligned|found)": "be",
    "(hold|stay|keep|remain|stand) (still|steady|put|in place|stationary|motionless)": "be",
    "(end|ends|finish|finishes|wind|winds) [up] with": "have",
    # What only says that the end lasts
    "(stay|stays|remain|remains|hold|holds|wait|stop|stops|keep|linger|pause|rest) (there|put|"
    "in place|in position|in that position)": "LASTING",
    "and (stop|wait)": "AND LASTING",
    "(stay|remain) in contact": "LASTING",
    "(stay|stays|staying|remain|remains|keep|keeps|be) in (contact|touch) with": "touch",
    "(hover|hovers|float) there": "HOVER_THERE",
    "(end|in end|by end|at end|at end of episode)": "LAST_OF_ALL",
    # Where all things are, and whose left and right it is
    "[that is|which is] [sitting|lying|standing|resting|placed|located] (on|upon) (table|tabletop|"
    "table top|desk)": "HERE",
    "(across|along) (table|tabletop|desk)": "HERE",
    "[that is|which is] over there": "HERE",
    "[as] (seen|viewed) (from|by|in|on|through) [front] camera [view|image|picture|frame]": "VIEW",
    "(in|on) [front] [camera|camera 's] (image|picture|view|frame)": "VIEW",
    "from [front] camera ['s] [view|perspective|point of view|viewpoint|side|angle]": "VIEW",
    "as [front] camera (sees|shows) [it|this|them]": "VIEW",
    "(reach|reaches|reaching|reach out|reaches out|reaching out) (for|to|towards|toward)": "touch",
    "(reach|reaches) over (to|for)": "touch",
    "(bump|bumps|bumping|brush|brushes|brushing) (into|against)": "touch",
    "(press|presses|pressing|lean|leans|leaning) against": "touch",
    "(move|come|go|reach|stretch|head|lean) (out|in|over|down|up) and": "SURE",
    "(run|runs|flee|flees|shy|turn|veer) away from": "go FAR",
    "(reach|reaches) (out to|out and|and) touch": "touch",
    "(tap|taps|tapping) on": "touch",
    "(poke|pokes|poking) at": "touch",
    "(go|move|come|get|walk|head|drive|travel|steer|go on|come on|goes|moves|comes) up to": (
        "go to"
    ),
    "(head|heads|heading|make|makes|go|goes) [straight] for": "go to",
    "make (your|its) way [over|across] to": "go to",
    "(arrive|arrives|arriving) at": "go to",
    "(go|move|come|get|head|goes|moves|comes) back to": "go to",
    "all way [over|up] to": "to",
    "(straight|directly) to": "to",
    "right (up|over|down|along) to": "to",
    # Joining
    "[and|but] [only] then": "THEN",
    "[and] after (that|this|which)": "THEN",
    "[and] (afterwards|afterward|subsequently|thereafter)": "THEN",
    "[and] (finally|lastly|next|later|secondly|thirdly|once done|when done)": "THEN",
    "[and] once (that is done|you are done|done)": "THEN",
    "followed by": "THEN",
    "[and] [then] (finish|end|conclude) [up|off] by": "THEN",
    ", [and] (second|third|fourth) [,]": "THEN",
    "only (after|once)": "after",
    "once": "ONCE",
    "as soon as": "ONCE",
    "when": "WHEN",
    "[,] but first": "BUT_FIRST",
    "in (that|this|given|said) (order|sequence)": "IN_ORDER",
    "one after (another|other)": "IN_ORDER",
    "(in turn|one by one|in order|successively|consecutively)": "IN_ORDER",
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
    "(has|have|needs|need|ought|is|are|wants|has got|have got) to": "MODAL",
    "(is|are) (going|supposed|meant) to": "MODAL",
    "(is|are) (required|expected|asked|requested|told|ordered|instructed) to": "MODAL",
    f"(i|we) [do|really|just|now|also] {WISH} [for|to see]": "WANT",
    "(i|we) would [really|just|also] (like|love|prefer|want) [for|to see]": "WANT",
    "(i am|we are) (asking|telling|ordering|instructing|requesting)": "WANT",
    "[all|thing] (what|all|thing) (i|we) (want|need|would like) [you to do] is [for|that]": "WANT",
    "what you (should|must|have to|need to) do is [to]": "WANT",
    "(i|we) would (like|love|prefer|appreciate) it if": "WISH",
    "(i|we) would (be [very|really|most|so] (grateful|happy|glad|thankful|pleased)) if": "WISH",
    "[it] would be (nice|great|good|lovely|helpful|wonderful|perfect|ideal) if": "WISH",
    f"[your|my|our|today 's|current|new|next] {TASK} is [for]": "WANT",
    f"[your|my|our|today 's|current|new|next] {TASK} ,": "WANT",
    "(make|making) (sure|certain) [that|to]": "SURE",
    "be (sure|certain) (that|to)": "SURE",
    "do not forget to": "SURE",
    "(ensure|guarantee) [that]": "SURE",
    "see to it that": "SURE",
    "do your best to": "SURE",
    "make it so": "SURE",
    "(see|arrange|make it so|make it happen) that": "SURE",
    "take care (that|to)": "SURE",
    "(try|attempt|proceed|manage|remember|aim|strive|continue|start|begin) to": "SURE",
    "(try|go|come|go ahead|go on) and": "SURE",
    "(go ahead|feel free to|be ready to|get ready to)": "SURE",
    "let us": "POLITE",
    "so": "SO",
    "(would|will|could|might) you be (able|willing) to": "POLITE",
    # Politeness: the closed list of words that carry no meaning
    "(please|kindly|thanks|hey|hi|hello|hiya|yo|greetings|ok|okay|alright|all right)": "POLITE",
    "(hey|hi|hello) there": "POLITE",
    "thank you [very much|so much|kindly|in advance]": "POLITE",
    "thanks [a lot|so much|in advance|very much]": "POLITE",
    "(now|just|simply|maybe|perhaps|if possible|well then|now then|well|oh|um|uh)": ("POLITE"),
    "right now": "RIGHT_NOW",
    "for (me|us)": "POLITE",
    "if you (would|could|can|please|will|like|want|wish|would like|would please)": "POLITE",
    "if you (would not|do not) mind": "POLITE",
    "(i|we) would [really] (appreciate|love) it if you (could|would)": "POLITE",
    "why do not you": "POLITE",
    "(go on|go ahead|come on) ,": "POLITE",
    "as (best|well) [as] you can": "POLITE",
    "[it is] time to": "SURE",
    "see (if|whether) you can [manage to]": "SURE",
    "let us see": "WANT",
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
    "(could|would) you": "POLITE",
    "do me favour and": "POLITE",
    "do me favor and": "POLITE",
    "[my] (friend|buddy|mate|dear|sir)": "POLITE",
    "(you|yourself)": "HAND",
    "itself": "IT",
    "it": "IT",
}


def expand(pattern: str) -> list[str]:
    """All phrases of a pattern of PHRASES."""
    phrases, _ = _expanded(_PARTS.findall(pattern), 0)
    return [" ".join(phrase.split()) for phrase in phrases]


_PARTS = re.compile(r"[\[\]()|]|[^\[\]()|]+")


def _expanded(parts: list[str], at: int) -> tuple[list[str], int]:
    """What the parts from ``at`` to the closing bracket may say, and where that stands."""
    done, said = [], [""]
    while at < len(parts) and parts[at] not in "])":
        part = parts[at]
        if part == "|":
            done, said = done + said, [""]
        elif part in "[(":
            inner, at = _expanded(parts, at + 1)
            inner += [""] * (part == "[")
            said = [before + choice for before in said for choice in inner]
        else:
            said = [before + part for before in said]
        at += 1
    return done + said, at


Table = dict[tuple[str, ...], tuple[str, ...]]


def table(patterns: dict[str, str]) -> Table:
    """The symbols of each phrase; of two patterns with the same phrase the first counts."""
    found: Table = {}
    for pattern, symbols in patterns.items():
        for phrase in expand(pattern):
            found.setdefault(tuple(phrase.split()), tuple(symbols.split()))
    return found


TABLES = (table(GAPS), table(PHRASES))  # in the order in which they are applied
PHRASE_WORDS = frozenset(itertools.chain.from_iterable(itertools.chain(*TABLES)))
SINGLE_WORDS = frozenset(phrase[0] for phrase in TABLES[-1] if len(phrase) == 1)
