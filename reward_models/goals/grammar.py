"""Reads a sentence into a formula over a task's entities, or refuses and says why.

Reading goes in five steps, each a short table and a short function:

1. words        lower case, contractions opened, articles dropped
2. phrases      "to the left hand side of" -> LEFT_OF, "could you" -> POLITE, "after that" -> THEN
3. entities     "the red-coloured box" -> #red_cube, "the robot's hand" -> HAND, verbs -> their stem
4. composition  the sentence is cut at THEN and AND, pronouns and ellipsis are filled in
5. clauses      what is left must match one clause pattern from its first to its last word

Every word must be accounted for: by a table, by the card, or by the closed list of polite words.
A word that is not is a refusal, never a guess, because a policy trained on a misread sentence is
worse than a question. The entities come from the card; no object is known here.
"""

from __future__ import annotations

import difflib
import itertools
import re
import unicodedata
from dataclasses import dataclass

from reward_models.base import TaskCard
from reward_models.goals.captions import describe_vocabulary
from reward_models.goals.predicates import PREDICATES, And, Atom, Formula, Then, role

CODES = ("unknown_word", "unknown_object", "ambiguous", "unsupported", "no_goal")
MAX_WORDS = 80


class Refusal(ValueError):
    """The sentence was not read; ``code`` (one of ``CODES``) says in what way, ``str`` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


# ---------------------------------------------------------------------------------- vocabulary

# Phrases, longest match first. [x] may be left out, (x|y) is a choice; articles are dropped before.
# Capitals are symbols of the grammar, "be", "go", "touch" and "to" stand for themselves.
_AT = "[over|up|off|around|round] (to|on|onto|at|by|towards|toward|in)"
_DISTANCE = "[safe|good|long|great|large|big|fair|certain|considerable|generous|healthy|some]"
_POSITION = "(position|place|spot|point|location|area|space|region|pose)"
_WISH = "(want|need|wish|prefer|require|expect|request|command|ask|order)"
_TASK = "(task|goal|job|mission|aim|objective|assignment|target|purpose)"
_PHRASES = {
    # Relations
    f"[{_AT}] left [hand] [side] of": "LEFT_OF",
    f"[{_AT}] right [hand] [side] of": "RIGHT_OF",
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
    f"(at|with) {_DISTANCE} distance [away] (from|to)": "FAR",
    f"[at] {_DISTANCE} (distance|way|ways) (away|off) from": "FAR",
    f"{_DISTANCE} (way|ways) from": "FAR",
    f"(keep|maintain|hold|leave) [your|its] {_DISTANCE} distance [away] (from|to)": "be FAR",
    f"(keeps|maintains) [its] {_DISTANCE} distance [away] (from|to)": "be FAR",
    f"(keeping|maintaining) [your|its] {_DISTANCE} distance [away] (from|to)": "be FAR",
    "distance (yourself|itself) from": "go FAR",
    f"(keep|leave|maintain|have|put) {_DISTANCE} distance between": "KEEP_BETWEEN",
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
    f"(to|at|in|into|on|for|towards) {_POSITION} [that is|which is]": "PLACE",
    f"{_POSITION} (above|over)": "ABOVE",
    "[to|at] somewhere": "PLACE",
    f"(hold|take|take up|keep|hold your|keep your|take your|assume|occupy) {_POSITION}": "be",
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
    f"(i|we) [do|really|just|now|also] {_WISH} [for|to see]": "WANT",
    "(i|we) would [really|just|also] (like|love|prefer|want) [for|to see]": "WANT",
    "(i am|we are) (asking|telling|ordering|instructing|requesting)": "WANT",
    "(all|what|thing) (i|we) (want|need) is": "WANT",
    f"[your|my|our|today 's|current|new|next] {_TASK} is [for]": "WANT",
    f"[your|my|our|today 's|current|new|next] {_TASK} ,": "WANT",
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

# Verbs by what they take; see the clause patterns below.
_BE = "be stay remain stand sit rest lie wait keep linger hang settle park"
_GO = "go move come get travel head drive navigate steer proceed shift return fly slide"
_TOUCH = "touch tap poke contact reach"
_HOVER = "hover float"
_PUT = (
    "put place position set bring move get keep take shift send have lead direct relocate "
    "reposition station situate"
)
_PUT_HAND = (  # with the gripper only
    "hold steer guide drive navigate park maneuver manoeuvre hover rest lay slide extend stretch "
    "raise lower"
)
_PUT_BY = "put place position set bring get keep have station situate"  # "move by" may be past
_PUSH = "push slide shove nudge roll drag pull scoot"  # with objects only
_MAKE = "make let have get keep allow cause"
_APPROACH = "approach"
_OTHER = "use give leave"  # only in the rewrites below
_VERBS = tuple(
    dict.fromkeys(
        " ".join(
            (_BE, _GO, _TOUCH, _HOVER, _PUT, _PUT_HAND, _PUSH, _MAKE, _APPROACH, _OTHER)
        ).split()
    )
)
_IRREGULAR = {
    "is": "be", "are": "be", "am": "be", "being": "be", "been": "be_ed",
    "has": "have", "having": "have", "had": "have_ed",
    "held": "hold_ed", "brought": "bring_ed", "kept": "keep_ed", "taken": "take_ed",
    "slid": "slide_ed", "sent": "send_ed", "led": "lead_ed", "laid": "lay_ed", "lying": "lie",
    "driven": "drive_ed", "made": "make_ed", "located": "place_ed", "situated": "place_ed",
    "goes": "go", "went": "go_ed", "gone": "go_ed", "came": "come_ed", "got": "get_ed",
    "stood": "stand_ed", "sat": "sit_ed", "meets": "touch", "meet": "touch",
}  # fmt: skip

# Known, but not something this grammar can say. word -> what kind of thing it is
_UNSUPPORTED = {
    word: kind
    for kind, words in {
        "negation": """
            not never no none nothing without neither nor except unless avoid avoids avoiding stop
            stops quit cease refrain prevent prevents instead rather nowhere hardly dont alone
            ignore ignores cannot wont excluding other another
        """,
        "a quantity": """
            two three four five six seven eight nine ten eleven twelve twenty thirty hundred half
            quarter third second twice thrice double times all every each any either everything
            anything some most many several few pair only halfway midway degrees degree percent
        """,
        "a measure or a time": """
            cm mm m centimeter centimeters centimetre centimetres millimeter millimeters millimetre
            millimetres meter meters metre metres inch inches foot feet seconds minute minutes hour
            hours forever always constantly briefly long longer moment exactly precisely
            immediately asap soon again repeatedly
        """,
        "a manner": """
            quickly slowly gently carefully softly firmly hard fast faster slower slow quick
            lightly rapidly swiftly smoothly steadily strongly quietly cautiously delicately
            violently forcefully harder gentle careful slightly barely nearly almost completely
            fully partly partially bit little lot much very really quite too higher lower closer
            nearer farther further high low tightly loosely safely roughly aggressively
        """,
        "an action on an object that is not pushing": """
            lift lifts lifting lifted raise raises raised raising pick picks picking picked grab
            grabs grabbing grabbed grasp grasps grasping grasped grip grips gripping seize seizes
            seized seizing catch catches catching caught throw throws throwing thrown toss tosses
            tossing drop drops dropping dropped release releases releasing open opens opening close
            closes closing shut rotate rotates rotating rotated turn turns turning turned spin
            spins spinning flip flips flipping tilt tilts tilting shake shakes shaking stack stacks
            stacking stacked insert inserts inserting pour pours squeeze squeezes squeezing kick
            kicks kicking hit hits hitting knock knocks knocking strike strikes punch smash crush
            press presses pressing pressed bump bumps bumping carry carries carrying carried clench
            pinch clutch snatch fetch deliver swap exchange sort align line arrange balance
            juggle break destroy cut paint clean wipe draw draws wave point points pointing look
            looks looking watch face faces circle circles orbit follow follows lowers lowering
            lowered remove removes removing hide cover covers leaves leaving clear topple
            fling lob hurl swing scratch stroke pet rub pat slap hug kiss tie untie build screw
            unscrew load unload empty fill tidy separate separates
        """,
        "a relation that is not measured here": """
            between behind front beyond below under underneath beneath inside within into onto out
            off around round through across along upon past middle center centre corner edge top
            bottom up down upward upwards downward downwards back backward backwards forward
            forwards ahead away opposite parallel surrounding outside aside side facing level
            height diagonal diagonally near nearest closest
        """,
        "a choice or a condition": """
            or if when whenever whether because since though although once provided assuming
            otherwise else
        """,
    }.items()
    for word in words.split()
}

_PRONOUNS = frozenset(
    "that this these those them they there here something someone him her".split()
)
_ASKING = frozenset(
    "what which who whose whom where why how is are was were am do does did had has shall should "
    "may might must will".split()
)
_FUNCTION = frozenset(
    "to towards of from by with using for and before after both left right use which that who "
    "so than then as at on in i we my you your its".split()
)
_ARTICLES = frozenset({"the", "a", "an"})
_DETERMINERS = _ARTICLES | {"this", "that", "your", "its", "these", "those"}
_GENERIC = frozenset({"object", "thing", "one", "item", "piece", "shape", "toy", "body", "part"})
_GENERIC_PLURAL = frozenset(f"{word}s" for word in _GENERIC)
_COLOUR_WORDS = frozenset({"coloured", "colored", "colour", "color"})
_COLOURS = frozenset(
    "red green blue yellow orange purple pink black white grey gray brown cyan magenta violet "
    "turquoise beige gold silver golden".split()
)
# Words for the part of any arm that acts, beside those its card lists.
_HANDS = tuple(
    tuple(name.split())
    for name in (
        "gripper", "hand", "claw", "claws", "arm", "robot", "finger", "fingers", "fingertip",
        "fingertips", "tip", "tips", "tool", "end effector", "effector", "endeffector",
        "manipulator", "robotic arm", "robotic hand", "robotic gripper", "tool tip",
        "tool center point", "tcp",
        "jaw", "jaws", "pincer", "pincers", "gripper tip", "finger tip", "finger tips", "robot arm",
        "arm tip", "robot hand", "robot gripper", "robot tool",
    )
)  # fmt: skip
_CONTRACTIONS = (
    (r"\bcan't\b", "can not"),
    (r"\bwon't\b", "will not"),
    (r"n't\b", " not"),
    (r"\blet's\b", "let us"),
    (r"\b(it|that|what|there|here|who|where|how)'s\b", r"\1 is"),
    (r"'d\b", " would"),
    (r"'ll\b", " will"),
    (r"'re\b", " are"),
    (r"'ve\b", " have"),
    (r"'m\b", " am"),
    (r"'s\b", " 's "),
    (r"\bgray\b", "grey"),
    (r"'(?!s\b)", " "),
)


def _expand(pattern: str) -> list[str]:
    """All phrases of a pattern of _PHRASES, innermost brackets first."""
    bracket = re.search(r"\[([^\[\]()]*)\]|\(([^\[\]()]*)\)", pattern)
    if bracket is None:
        return [" ".join(pattern.split())]
    inside = bracket[1] if bracket[1] is not None else bracket[2]
    choices = inside.split("|") + ([""] if bracket[1] is not None else [])
    before, after = pattern[: bracket.start()], pattern[bracket.end() :]
    return [p for choice in choices for p in _expand(f"{before}{choice}{after}")]


def _inflections() -> dict[str, str]:
    """Every form of a verb -> its stem; the past participle -> stem + "_ed"."""
    doubled = {"put", "get", "set", "tap", "sit", "drag"}
    forms = dict(_IRREGULAR)
    for verb in _VERBS:
        stem = verb + verb[-1] if verb in doubled else verb
        bare = verb[:-1] if verb.endswith("e") and verb != "be" else stem
        s = verb + "es" if verb.endswith(("sh", "ch", "s", "o")) else verb + "s"
        if verb.endswith("y") and verb not in ("stay", "lay"):
            s = verb[:-1] + "ies"
        for form in (verb, s, bare + "ing"):
            forms.setdefault(form, verb)
        forms.setdefault(bare + "ed", verb + "_ed")
    return forms


_PHRASE_TABLE: dict[tuple[str, ...], tuple[str, ...]] = {}
for _pattern, _symbol in _PHRASES.items():
    for _phrase in _expand(_pattern):
        _PHRASE_TABLE.setdefault(tuple(_phrase.split()), tuple(_symbol.split()))
_LONGEST = max(map(len, _PHRASE_TABLE))
_FORMS = _inflections()
_PHRASE_WORDS = frozenset(itertools.chain.from_iterable(_PHRASE_TABLE))
# A noun of the card that is also one of these ("can") is a noun only where a noun must stand.
_NOT_NOUNS = frozenset(_FORMS) | {p[0] for p in _PHRASE_TABLE if len(p) == 1} | _FUNCTION
# What cannot follow an article; the rest are verbs that are nouns too ("a position above").
_NEVER_NAMED = (_FORMS.keys() - {"position", "place", "rest", "touch", "contact", "way"}) | (
    _DETERMINERS | set("to of from and then , is".split())
)
_GOVERNS_NOUN = frozenset({"of", "above", "over", "from", "to", "beside", "near"}) | {
    form for form, stem in _FORMS.items() if stem in _TOUCH.split()
}
_LEXICON = (
    _PHRASE_WORDS
    | _FORMS.keys()
    | _UNSUPPORTED.keys()
    | _PRONOUNS
    | _FUNCTION
    | _DETERMINERS
    | _GENERIC
    | _GENERIC_PLURAL
    | _COLOUR_WORDS
    | _COLOURS
    | _ASKING
    | {"'s"}
)


# ----------------------------------------------------------------------------- words and entities


@dataclass(frozen=True)
class _Token:
    """A symbol of the grammar and the words it was read from."""

    symbol: str
    text: str


class _Names:
    """What the card's entities can be called."""

    def __init__(self, card: TaskCard) -> None:
        self.card = card
        hands = [e for e in card.entities if role(e) == "gripper"]
        if len(hands) != 1:
            raise ValueError(
                f"task {card.task!r}: expected one entity of kind 'gripper', got {len(hands)}; "
                "a sentence must know who acts"
            )
        self.hand = hands[0]
        self.nouns: dict[tuple[str, ...], list[str]] = {}
        for entity in card.entities:
            for name in (entity.name, entity.kind, *entity.aliases):
                key = tuple(_words(name))
                known = self.nouns.setdefault(key, [])
                if key and entity.name not in known and not _GENERIC.issuperset(key):
                    known.append(entity.name)
        for name in _HANDS:
            self.nouns.setdefault(name, [self.hand.name])
        self.nouns = {key: names for key, names in self.nouns.items() if names}
        self.colour = {e.name: " ".join(_words(e.colour)) for e in card.entities}
        self.colours = _COLOURS | set(self.colour.values()) - {""}
        self.objects = [e.name for e in card.entities if role(e) == "object"]
        self.words = frozenset(itertools.chain.from_iterable(self.nouns)) | self.colours

    def resolve(self, colour: str, noun: tuple[str, ...]) -> list[str]:
        """The entities that agree with both; no noun, or one such as "thing", fits any object."""
        named = self.nouns.get(noun, self.objects)
        return [name for name in named if not colour or self.colour[name] == colour]


def _words(text: str) -> list[str]:
    """Lower-case words and commas; other punctuation separates, other signs are words."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub("[\u2018\u2019\u02bc`]", "'", text)
    for pattern, replacement in _CONTRACTIONS:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"[.,;:!?\u2026]+", " , ", text)
    text = re.sub(r"""[-_"()\[\]{}*\u2010-\u2015\u201c\u201d\u00ab\u00bb]+""", " ", text)
    return re.findall(r"'s\b|[^\W_]+|\S", text)


class _Refuser:
    """Builds the refusals of one sentence."""

    def __init__(self, text: str, names: _Names) -> None:
        quoted = " ".join(text.split())
        self.quoted = quoted if len(quoted) <= 80 else quoted[:77] + "..."
        self.names = names

    def __call__(self, code: str, why: str) -> Refusal:
        known = describe_vocabulary(self.names.card)
        return Refusal(code, f'did not understand "{self.quoted}": {why}. Understood: {known}')

    def unknown(self, word: str, code: str) -> Refusal:
        known = sorted(self.names.words | (_LEXICON if code == "unknown_word" else set()))
        close = difflib.get_close_matches(word, [w for w in known if len(w) > 1], 1, 0.7)
        hint = f"; nearest known word: {close[0]!r}" if close else ""
        if code == "unknown_object" and close:  # rather a slip of the pen than another thing
            code = "unknown_word"
        word = word if len(word) <= 40 else word[:37] + "..."
        what = "no such object here" if code == "unknown_object" else "unknown word"
        return self(code, f"{what}: {word!r}{hint}")


def _mark_nouns(words: list[str], names: _Names) -> list[str]:
    """Names of several words joined by ~, and ~ before a noun that might be taken for another word
    (the second of "can you touch the can")."""
    before_noun = _DETERMINERS | names.colours | _COLOUR_WORDS | _GOVERNS_NOUN
    longest = max(map(len, names.nouns))
    marked: list[str] = []
    i = 0
    while i < len(words):
        for n in range(min(longest, len(words) - i), 0, -1):
            key = tuple(words[i : i + n])
            if key not in names.nouns:
                continue
            if n > 1:
                marked.append("~" + "~".join(key))
            elif key[0] in _NOT_NOUNS and i > 0 and words[i - 1] in before_noun:
                marked.append("~" + key[0])
            else:
                continue
            break
        else:
            marked.append(words[i])
            n = 1
        i += n
    return marked


def _match_phrases(words: list[str]) -> list[_Token]:
    tokens: list[_Token] = []
    i = 0
    while i < len(words):
        for n in range(min(_LONGEST, len(words) - i), 0, -1):
            symbols = _PHRASE_TABLE.get(tuple(words[i : i + n]))
            if symbols:
                text = " ".join(words[i : i + n])
                tokens += [_Token(symbol, text) for symbol in symbols]
                break
        else:
            tokens.append(_Token(words[i], words[i]))
            n = 1
        i += n
    return tokens


def _match_entities(
    tokens: list[_Token], names: _Names, refuse: _Refuser
) -> tuple[list[_Token], list[Refusal]]:
    """Noun phrases as #name or HAND; what was wrong with the others, to be raised in its turn."""
    out: list[_Token] = []
    wrong: list[Refusal] = []

    def symbol(i: int) -> str:
        return tokens[i].symbol if i < len(tokens) else ""

    def noun_at(i: int) -> tuple[str, ...]:
        word = symbol(i)
        key = tuple(word[1:].split("~")) if word.startswith("~") else (word,)
        if key not in names.nouns and key[0] not in _GENERIC:
            return ()
        return () if key[0] in _NOT_NOUNS and word[:1] != "~" else key

    i = 0
    while i < len(tokens):
        start = i
        while symbol(i) in _DETERMINERS:
            i += 1
        colour = ""
        if symbol(i) in names.colours and (noun_at(i + 1) or not noun_at(i)):
            colour = symbol(i)
            i += 1
        if symbol(i) in _COLOUR_WORDS:
            i += 1
        noun = noun_at(i)
        if not noun and not colour:
            pronouns = [t for t in tokens[start : start + 1] if t.symbol in _PRONOUNS]
            if pronouns and symbol(start - 1) not in ("WANT", "AND", "and"):
                wrong.append(refuse("ambiguous", f"what is {pronouns[0].text!r}?"))
                out.append(_Token("IT", pronouns[0].text))
            elif symbol(start) not in _DETERMINERS:
                out.append(tokens[start])
            i = start + 1
            continue
        if noun:
            i += 1
            while noun_at(i) and names.nouns.get(noun_at(i)) == names.nouns.get(noun) == [
                names.hand.name
            ]:
                i += 1  # "robot hand"
            if not colour and symbol(i) in ("that", "which") and symbol(i + 1) == "is":
                if symbol(i + 2) in names.colours:
                    colour = symbol(i + 2)
                    i += 3 + (symbol(i + 3) in _COLOUR_WORDS)
        text = " ".join(t.text.replace("~", " ").strip() for t in tokens[start:i])
        fits = names.resolve(colour, noun)
        if noun == ("one",) and not colour and noun_at(i):
            wrong.append(refuse("unsupported", "a quantity ('one') is not understood"))
        elif not fits:
            wrong.append(refuse("unknown_object", f"no such object here: {text!r}"))
        elif not noun:
            wrong.append(refuse("ambiguous", f"{text!r} what? Say {text} thing or its name"))
        elif len(fits) > 1:
            wrong.append(refuse("ambiguous", f"{text!r} may be any of {', '.join(fits)}"))
        name = fits[0] if fits else "none"
        out.append(_Token("HAND" if name == names.hand.name else f"#{name}", text))
    return out, wrong


def _check_words(raw: list[str], tokens: list[_Token], names: _Names, refuse: _Refuser) -> None:
    """Refuses what is no goal at all, what is known to be out of reach, and unknown words."""
    meaningful = [t for t in tokens if t.symbol not in ("POLITE", ",")]
    if not meaningful:
        raise refuse("no_goal", "it asks for nothing")
    opening = [w for t in meaningful[:2] for w in t.text.split()]
    asking = opening[0] in _ASKING - {"do"} or opening[:2] in (["do", "you"], ["do", "i"])
    if asking and opening[1:2] != ["not"]:
        raise refuse("no_goal", "a question is not a goal")
    unsupported = _UNSUPPORTED.keys() - _FUNCTION - _FORMS.keys()
    for token in meaningful:
        word = token.symbol
        if any(c.isdigit() for c in word) and not word.startswith("#"):
            raise refuse("unsupported", f"a quantity ({word!r}) is not understood")
        if word in unsupported - _PHRASE_WORDS:
            raise refuse("unsupported", f"{_UNSUPPORTED[word]} ({word!r}) is not understood")
        if word in _GENERIC_PLURAL or (word[:-1],) in names.nouns and word.endswith("s"):
            if (word,) not in names.nouns and word not in _LEXICON - _GENERIC_PLURAL:
                raise refuse("unsupported", f"several things at once ({word!r}): name each")
    for word, following in itertools.pairwise([*raw, ","]):
        if word in _ARTICLES and following in _NEVER_NAMED and (following,) not in names.nouns:
            raise refuse("ambiguous", f"a word is missing between {word!r} and {following!r}")
    for i, word in enumerate(raw):
        plural = word.endswith("s") and (word[:-1],) in names.nouns
        if word == "," or word in _LEXICON or word in names.words or plural:
            continue
        described = i > 0 and raw[i - 1] in names.colours | _COLOUR_WORDS
        described |= i > 1 and raw[i - 1] in _DETERMINERS and raw[i - 2] in _GOVERNS_NOUN
        raise refuse.unknown(word, "unknown_object" if described else "unknown_word")
    for token in meaningful:  # last, as a phrase may only have been broken by an unknown word
        if (word := token.symbol) in unsupported:
            raise refuse("unsupported", f"{_UNSUPPORTED[word]} ({word!r}) is not understood")


# ------------------------------------------------------------------------------------- clauses


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_T = r"(?:HAND|#\w+)"
_REL = _any("ABOVE LEFT_OF RIGHT_OF FAR NEXT_TO TOUCHING")
_PREDICATE = {
    "ABOVE": "above",
    "LEFT_OF": "left_of",
    "RIGHT_OF": "right_of",
    "FAR": "far",
    "NEXT_TO": "next_to",
    "TOUCHING": "touch",
}
_WHERE = rf"(?:(?P<rel>{_REL})|(?P<to>to|towards)) (?P<obj>{_T})"
_MOVED = rf"(?:{'|'.join(f'{v}_ed' for v in (_PUT + ' ' + _PUSH).split())}|put|set)"
_HAND_MOVED = rf"(?:{'|'.join(f'{v}_ed' for v in (_PUT + ' ' + _PUT_HAND).split())}|put|set)"
_VP = (  # what a subject does or is
    rf"(?:{_any(_BE + ' ' + _GO)} )?(?P<rel>{_REL}) (?P<obj>{_T})",  # (stays) left of it
    rf"(?:{_any(_GO)} (?P<to>to|towards)|{_APPROACH}) (?P<obj>{_T})",  # goes to it
    rf"{_any(_TOUCH)} (?P<obj>{_T})",  # touches it
    rf"{_any(_HOVER)} (?P<rel>ABOVE) (?P<obj>{_T})",  # hovers over it
)
_BY = "(?: by HAND)?"
_ORDER = "(?:HAND (?:MODAL )?)?"  # "the hand (should)" bring something somewhere
_CLAUSES: dict[str, tuple[re.Pattern[str], ...]] = {
    kind: tuple(re.compile(p) for p in patterns)
    for kind, patterns in {
        "statement": tuple(rf"(?:(?P<subj>{_T}) (?:MODAL )?)?{vp}" for vp in _VP),
        "passive": (
            rf"(?P<touched>#\w+) (?:MODAL )?(?:(?:be|get) )?{_any(_TOUCH)[:-1]})_ed{_BY}",
            rf"(?P<subj>#\w+) (?:MODAL )?(?:(?:be|get) )?{_MOVED}{_BY} {_WHERE}{_BY}",
            rf"(?P<subj>HAND) (?:MODAL )?(?:be|get) {_HAND_MOVED} {_WHERE}",
        ),
        "placing": (
            rf"{_ORDER}{_any(_PUT)} (?P<subj>{_T}) {_WHERE}",
            rf"{_ORDER}{_any(_PUSH)} (?P<subj>#\w+) {_WHERE}",
            rf"{_ORDER}{_any(_PUT_BY)} (?P<subj>#\w+) by (?P<obj>#\w+)",
            rf"{_ORDER}{_any(_PUT_HAND)} (?P<subj>HAND) {_WHERE}",
            rf"{_any('put place rest lay set keep hold have')} (?P<subj>HAND) on (?P<obj>#\w+)",
        ),
        "making": tuple(rf"{_ORDER}{_any(_MAKE)} (?P<subj>{_T}) (?:MODAL |to )?{vp}" for vp in _VP),
    }.items()
}
# "... and the cube touching the ball": the cube that touches it, or is it to touch it?
_PARTICIPLE = re.compile(
    rf"(?<!\S)(?:THEN|AND|,)(?: (?:AND|ALSO|,))* #\w+ {_any(' '.join(_VERBS))}_ing "
    rf"(?:{_REL} |to )?{_T}"
)
_BESIDE = re.compile(rf"(?P<subj>#\w+) (?:MODAL )?{_any(_BE)} by (?P<obj>#\w+)")

_VERB = _any(" ".join(_VERBS))
# Rewriting of the symbols before the sentence is cut, in this order.
_REWRITES = tuple(
    (re.compile(rf"(?<!\S){pattern}(?!\S)"), replacement)
    for pattern, replacement in (
        (r"POLITE", ""),
        (r",(?: ,)+", ","),
        (r"^,? ?RIGHT_NOW|RIGHT_NOW(?: ,)?$", ""),  # elsewhere it may be the direction
        (r"HAND(?: (?:'s|of) HAND)+", "HAND"),  # the tip of the arm, the robot's hand
        (rf"(?:(?:to|on|onto|at|by|in|towards) )?({_T}|IT) 'S_(LEFT|RIGHT)", r"\2_OF \1"),
        (rf"AS_FAR ({_T}|IT) AS_POSSIBLE", r"FAR \1"),
        (rf"KEEP_BETWEEN ({_T}) AND ({_T})", r"keep \1 FAR \2"),
        (rf"(?:give|leave) ({_T}|IT) BERTH", r"be FAR \1"),
        (r",(?= (?:stay|keep|remain)_ing )", "AND"),  # ", keeping far from it"
        (rf"PLACE(?= {_REL} )", ""),
        (rf"try(?= {_VERB}_ing )", "SURE"),
        (rf"(?:be )?({_VERB})_ing", r"\1"),  # is touching, (would you mind) touching
        (r"be(?: be)+", "be"),
        (rf"go to(?= {_REL} )", "go"),  # go back to the left of it
        (rf"{_any(_GO)} to(?= {_any(_TOUCH + ' ' + _HOVER)} )", ""),  # move to touch it
        (rf"keep(?= {_any(_GO + ' ' + _PUSH)} )", ""),  # keep moving to it
        # "go" and "keep" before another verb only say that it starts or lasts
        (rf"(?:go|come|keep|stay|remain)(?= {_any(_TOUCH + ' ' + _HOVER)} )", ""),
        # two things that are in a relation "with each other"
        (rf"({_T}) AND ({_T})((?: MODAL)?(?: {_VERB})?) EACH_NEXT", r"\1\3 TOUCHING \2"),
        (rf"({_T}) AND ({_T})((?: MODAL)?(?: {_VERB})?) EACH_FAR", r"\1\3 FAR \2"),
        (rf"({_T}) AND ({_T})((?: MODAL)?) touch(?= ,|$)", r"\1\3 touch \2"),
        (r"touch TOUCHING", "touch"),
        (r"(?:, )?(?:AND )?(?:, )?ALSO(?: ,)? AND(?: ,)?", "AND"),
        (r"AND(?: ,)?(?: ALSO)(?: ,)?", "AND"),
        (r"(?:, )*(?:AND )*(?:, )*THEN(?: ,)*(?: ALSO)?(?: ,)*", "THEN"),
        (r"(?:, )*AND(?:(?: ,)* AND)*(?: ,)*", "AND"),
        (r"FIRST ,", "FIRST"),
        (r"HAND ,", "HAND_CALLED"),
    )
)


class _Composer:
    """Formula of one sentence's symbols; remembers what was said so far, for "it" and ellipsis."""

    def __init__(self, names: _Names, refuse: _Refuser) -> None:
        self.hand, self.refuse = names.hand.name, refuse
        self.said: list[str] = []  # objects and, where named, the hand, as symbols
        self.last: Atom | None = None
        self.subject = "HAND"  # of a clause that names none; "" where it would be a guess
        self.mover = "HAND"  # of a relation alone ("and left of it"): who the last clause was about
        self.shared = False  # a name alone ("and the ball") shares the last clause's relation
        self.told = False  # the last subject was said to do something, not that it should
        self.verbless = False  # the last clause was a subject and a relation, without a verb
        self.ordered = False  # this clause is an order: "touch", not "touches" or "touching"
        self.opened = ""  # what introduced this clause, "I want" or "make sure"
        self.used_it = False

    def formula(self, s: str) -> Formula:
        if match := re.fullmatch(r"after (.+?) , (.+)", s):
            return self.sequence([match[1], f"MAIN {match[2]}"])
        if match := re.fullmatch(r"before (.+?) , (?:FIRST )?(.+)", s):
            return self.sequence([match[2], match[1]])
        if match := re.fullmatch(r"AND (.+?) , (.+)", s):  # "while ..., ..."
            return self.together(f"{match[1]} AND MAIN {match[2]}")
        ordered = re.split(r" (?:, )?(before|after) ", s)
        if len(ordered) == 3:
            if "THEN" in s.split():
                raise self.refuse("ambiguous", "'before' or 'after' together with 'then'")
            first, word, second = ordered
            first = first.removeprefix("FIRST ")
            if re.search(rf"(?<!\S)AND (?!{_T}(?: AND| ,|$))", second):
                raise self.refuse("ambiguous", f"what is {word!r} about? Say 'then'")
            if word == "before":
                return self.sequence([first, second])
            main = self.together(first)
            return Then((self.together(second), main))
        parts = re.split("(?:^| )THEN(?= |$)", s)
        first = parts[0].split()
        if "FIRST" in first:
            if len(parts) == 1:
                raise self.refuse("ambiguous", "'first' what, and then what?")
            at = first.index("FIRST")
            parts[0] = " ".join(first[:at] + first[at + 1 :])
        return self.sequence(parts)

    def sequence(self, parts: list[str]) -> Formula:
        formulas = [self.together(part) for part in parts]
        return formulas[0] if len(formulas) == 1 else Then(tuple(formulas))

    def together(self, s: str) -> Formula:
        words = s.split()
        if "both" in words:
            if words.count("both") > 1 or "AND" not in words[words.index("both") :]:
                raise self.refuse("unsupported", "a quantity ('both') is not understood: name each")
            words.remove("both")
        if "ALSO" in words:
            if "AND" not in words:
                raise self.refuse("ambiguous", "at the same time as what?")
            words = [w for w in words if w != "ALSO"]
        s = " ".join(words).strip(" ,")
        if " AND " in s:
            s = s.replace(" , ", " AND ")  # the commas of a list
        self.used_it = False
        atoms = list(dict.fromkeys(self.atom(part) for part in re.split("(?:^| )AND(?= |$)", s)))
        if len(atoms) == 1:
            return atoms[0]
        if self.used_it:
            raise self.refuse("ambiguous", "at once or one after the other? Say 'then'")
        for a, b in itertools.combinations(atoms, 2):
            if {a.subject, a.object} == {b.subject, b.object}:
                seen = b.predicate if a.subject == b.subject else PREDICATES[b.predicate].mirror
                pair = {a.predicate, seen}
                opposed = "far" in pair and pair & {"touch", "above", "next_to"}
                if opposed or pair in ({"left_of", "right_of"}, {"above", "touch"}):
                    raise self.refuse("ambiguous", f"{a} and {b} at once? Say 'then'")
        return And(tuple(atoms))

    def atom(self, part: str) -> Atom:
        part = part.strip(" ,")
        if part.startswith("MAIN "):  # after a clause of time; the arm is meant again
            self.subject, self.told = "HAND", False
            self.mover = "HAND" if self.mover == "HAND" else ""
        words = part.split()
        self.opened = " ".join(word for word in words if word in ("SURE", "WANT", "use"))
        self.ordered = "ORDER" in words or bool(self.opened)
        part = self.open(" ".join(word for word in words if word not in ("MAIN", "ORDER")))
        if not part:
            raise self.refuse("ambiguous", "something is missing beside 'then' or 'and'")
        if " UNTIL " in f" {part} ":
            atom = self.until(part)
        else:
            part = self.resolve_it(part)
            atom = self.clause(part)
        for word in part.split():
            if (word == "HAND" or word[0] == "#") and word not in self.said:
                self.said.append(word)
        self.last = atom
        return atom

    def open(self, s: str) -> str:
        """The clause without what only introduces it: "I want", "make sure", "use the arm to"."""
        before = ""
        while s != before:
            before = s
            s = re.sub(r"^HAND_CALLED |(?: , HAND)$", "", s)
            s = re.sub(r"^(?:HAND )?(?:SURE|MODAL SURE) (?:that )?|^, ", "", s)
            s = re.sub(r"^HAND MODAL (?:SURE|make sure) ", "", s)
            s = re.sub(
                rf"^(?:HAND )?WANT (?:that )?({_T}) to (?={_VERB} |{_REL} )", r"\1 MODAL ", s
            )
            s = re.sub(r"^(?:HAND )?WANT (?:(?:that|to) )?", "", s)
            s = re.sub(rf"^MODAL ({_T}) (?=be |{_VERB} |{_REL} )", r"\1 MODAL ", s)
            s = re.sub(r"^(?:HAND (?:MODAL )?)?use HAND (?:to|AND) ", "", s)
            s = re.sub(r"^(?:with|using) HAND (?:, )?", "", s)
            s = re.sub(rf" (?:with|using|use) HAND(?=$| to | {_REL} )", "", s)
        return s

    def resolve_it(self, s: str) -> str:
        words = s.split()
        if "IT" not in words:
            return s
        at = words.index("IT")
        moved = at > 0 and words[at - 1] in (_PUT + " " + _PUT_HAND + " " + _MAKE).split()
        could = [x for x in self.said if x != "HAND" or moved]
        if at == 0 or words.count("IT") > 1 or len(could) != 1:
            raise self.refuse("ambiguous", "what is 'it'? Name it")
        if "HAND" in self.said and not moved and self.fits([*words[:at], "HAND", *words[at + 1 :]]):
            raise self.refuse("ambiguous", "'it' may be the gripper or the object: name it")
        words[at] = could[0]
        self.used_it = True
        return " ".join(words)

    def fits(self, words: list[str]) -> bool:
        """Whether these symbols would be a clause, which is tried and forgotten."""
        before = dict(vars(self))
        try:
            self.clause(" ".join(words))
        except Refusal:
            return False
        finally:
            vars(self).update(before)
        return True

    def until(self, s: str) -> Atom:
        """``move the claw (to the ball) until it touches (the ball)``: the last part counts."""
        match = re.fullmatch(
            rf"(?:HAND (?:MODAL )?)?(?:{_any(_PUT + ' ' + _PUT_HAND)} (?P<any>{_T})|{_any(_PUSH)} "
            rf"(?P<obj>#\w+)|{_any(_GO)}|{_APPROACH}(?= #))"
            r"(?P<dest> (?:(?:to|towards) )?#\w+)? UNTIL "
            rf"(?:(?P<who>{_T}|IT) )?(?:MODAL |to )?(?P<goal>.+)",
            s,
        )
        if match is None:
            raise self.refuse("unsupported", "only a movement goes on 'until' something holds")
        mover = match["any"] or match["obj"] or "HAND"
        target = (match["dest"] or "").split()[-1:]
        who = mover if match["who"] in (None, "IT") else match["who"]
        goal = match["goal"]
        if target and goal == "touch":
            goal = f"touch {target[0]}"
        goal = re.sub(r"\bIT$", target[0] if target else "IT", goal)
        atom = self.clause(f"{who} {goal}")
        if target and atom != self.make("TOUCHING", mover, target[0]):
            raise self.refuse("ambiguous", "the two halves around 'until' do not agree")
        if (self.hand if mover == "HAND" else mover[1:]) not in (atom.subject, atom.object):
            raise self.refuse("ambiguous", "what moves is not what 'until' is about")
        self.told = False
        return atom

    def clause(self, s: str) -> Atom:
        last = self.last
        if last is not None and (match := re.fullmatch(rf"(?:to )?({_T})", s)):
            if not self.opened and self.mover == self.symbol(last.subject):
                if s[:3] == "to " and last.predicate in ("touch", "next_to"):
                    return self.make("TOUCHING", self.mover, match[1])
            if not self.opened and self.shared and s[:3] != "to ":
                return self.make(last.predicate, "HAND", match[1])
            raise self.refuse("ambiguous", "say what each object is to do")
        if last is not None and (match := re.fullmatch(rf"(be )?({_REL}) ({_T})", s)):
            mover = self.actor(self.mover) if match[1] else self.mover
            if not mover:
                raise self.refuse("ambiguous", "who or what is the second half about?")
            self.shared = self.shared and mover == self.mover
            return self.make(match[2], mover, match[3])
        if match := _BESIDE.fullmatch(s):
            return self.matched("statement", {**match.groupdict(), "rel": "NEXT_TO"}, s)
        for kind, patterns in _CLAUSES.items():
            for pattern in patterns:
                if match := pattern.fullmatch(s):
                    return self.matched(kind, match.groupdict(), s)
        raise self.unreadable(s)

    def actor(self, subject: str) -> str:
        """Who does what a clause without a subject says: after "the cube is ...", "touch the ball"
        is an order to the arm, whereas "touches the ball" is still about the cube."""
        if not self.ordered or subject == "HAND":
            return subject
        if not self.told:
            raise self.refuse("ambiguous", "who or what is the second half about?")
        return "HAND"

    def matched(self, kind: str, got: dict[str, str | None], s: str) -> Atom:
        touched = got.get("touched")
        named = touched or got.get("subj")
        words = s.split()
        verbless = kind in ("statement", "passive") and bool(named) and "MODAL" not in words
        verbless &= not any(word in _VERBS for word in words)
        if verbless and self.last is not None and not self.verbless:
            # "touch the ball and the cube left of the can": a third thing, or where it is to be?
            raise self.refuse("ambiguous", f"a verb is missing after {named!r}; say 'is'")
        subject = named or self.actor(self.subject)
        if not subject:
            raise self.refuse("ambiguous", "who or what is the second half about?")
        told = kind in ("statement", "passive") and not verbless and "MODAL" not in words
        self.told = told and "WANT" not in self.opened and (bool(named) or self.told)
        self.verbless = verbless
        self.mover = subject
        self.shared = (subject == "HAND" or bool(touched)) and "by HAND" not in s
        if touched:
            self.subject = touched
            return self.make("TOUCHING", "HAND", touched)
        target = got["obj"]
        assert target is not None  # every other pattern has one
        relation = got.get("rel") or "TOUCHING"
        if got.get("to") == "towards" and subject != "HAND":
            raise self.refuse("unsupported", "a direction ('towards') is no goal; say 'to'")
        if kind in ("placing", "making") or got.get("to"):
            if target == "HAND":
                raise self.refuse("unsupported", "only the gripper can go to an object")
        if kind in ("statement", "passive"):
            self.subject = subject
        else:  # "push the cube to the ball and stay ...": the arm; "make it touch and stay": who?
            self.subject = "" if kind == "making" and subject != "HAND" else "HAND"
        return self.make(relation, subject, target)

    def symbol(self, name: str) -> str:
        return "HAND" if name == self.hand else f"#{name}"

    def make(self, relation: str, subject: str, target: str) -> Atom:
        """The atom of a relation or predicate between two symbols, swapped where only that fits."""
        name = _PREDICATE.get(relation, relation)
        if subject == target:
            raise self.refuse("unsupported", "a thing in relation to itself")
        objects = subject != "HAND" and target != "HAND"
        if name in ("touch", "next_to") and relation != "NEXT_TO":
            name = "next_to" if objects else "touch"
        if target == "HAND":
            subject, target = target, subject
            name = PREDICATES[name].mirror
        allowed = PREDICATES[name].subjects if name else frozenset()
        if ("object" if objects else "gripper") not in allowed:
            who = "two objects" if objects else "the gripper and an object"
            raise self.refuse("unsupported", f"that relation of {who} is not measured here")
        return Atom(name, *(self.hand if s == "HAND" else s[1:] for s in (subject, target)))

    def unreadable(self, s: str) -> Refusal:
        words = s.split()
        if "," in words:
            raise self.refuse("ambiguous", "only a comma between two goals: say 'then' or 'and'")
        relation = re.search(_REL, s)
        verb = any(word.removesuffix("_ed") in _VERBS for word in words)
        if not relation and not verb and not {"left", "right", "far"} & set(words):
            return self.refuse("no_goal", "it names no relation that could hold")
        if {"left", "right"} & set(words):
            return self.refuse("ambiguous", "left or right of what?")
        things = len(re.findall(_T, s))
        if words[-1] in (*_PREDICATE, *_TOUCH.split()) and things < 2:
            return self.refuse("ambiguous", "the sentence stops before its last object")
        return self.refuse("unsupported", "these words are not understood in this order")


def read(text: str, card: TaskCard) -> Formula:
    """The formula a sentence means on this card; ``Refusal`` where that is not certain."""
    names = _Names(card)
    refuse = _Refuser(text, names)
    raw = _words(text)
    if len(raw) > MAX_WORDS:
        raise refuse("unsupported", f"{len(raw)} words, at most {MAX_WORDS} are read")
    marked = _mark_nouns(raw, names)
    tokens = _match_phrases([word for word in marked if word not in _ARTICLES])
    asks = any(t.symbol in ("POLITE", "WANT") for t in tokens)
    tokens, wrong = _match_entities(tokens, names, refuse)
    _check_words(raw, tokens, names, refuse)
    if wrong:
        raise wrong[0]
    if re.search(r"\?[^\w]*$", text) and not asks:
        if next(t.symbol for t in tokens if t.symbol != ",") != "MODAL":
            raise refuse("no_goal", "a question is not a goal")
    _check_readings(raw, tokens, names, refuse)
    s = " ".join(_symbols(tokens))
    if _PARTICIPLE.search(s):
        raise refuse("ambiguous", "a thing that does something, or what it is to do? Say 'is'")
    for pattern, replacement in _REWRITES:
        s = " ".join(pattern.sub(replacement, s).split()).strip(" ,")
    return _Composer(names, refuse).formula(s)


def _symbols(tokens: list[_Token]) -> list[str]:
    """The symbols with verbs as stems, and ORDER before one that opens a clause as an order."""
    out: list[str] = []
    opens = True
    for i, token in enumerate(tokens):
        symbol, following = _verb(token.symbol), tokens[i + 1].symbol if i + 1 < len(tokens) else ""
        verb = token.text.split()[0]
        going = verb in ("proceed", "continue") and (following == "HAND" or following[:1] == "#")
        if symbol == "SURE" and going and token.text.endswith(" to"):
            out += ["ORDER"] * opens + ["go", "to"]
            opens = False
            continue
        if symbol in _VERBS and opens and _FORMS.get(verb, verb) == verb and verb[-1] != "s":
            out.append("ORDER")
        if symbol not in ("POLITE", "ALSO", "FIRST", "RIGHT_NOW"):
            opens = symbol in ("THEN", "AND", ",")
        out.append(symbol)
    return out


def _check_readings(raw: list[str], tokens: list[_Token], names: _Names, refuse: _Refuser) -> None:
    """Refuses wordings that can be read in two ways, where the symbols no longer show it."""

    def unsure(what: str) -> Refusal:
        return refuse("ambiguous", f"{what!r} can be read in two ways")

    def noun(word: str) -> bool:
        return word in (names.words | _GENERIC) - _NOT_NOUNS

    padded = [",", *raw, "", ""]
    for i, word in enumerate(raw):
        before, after, last = padded[i], padded[i + 2], padded[i + 3]
        if word in ("before", "after") and after in ("that", "this"):
            if noun(last) == (word == "after"):  # after that cube; before that, the cube
                raise unsure(" ".join(raw[i : i + 3]))
        named = before in _DETERMINERS | names.words | _FORMS.keys() | {"'s"}
        if word in ("hand", "tip") and after == "over" and not named:
            raise unsure(f"{word} over")
    symbols = [t.symbol for t in tokens]
    padded = ["", *symbols, "", ""]
    for i, token in enumerate(tokens):
        before, after, last = padded[i], padded[i + 2], padded[i + 3]
        things = [s == "HAND" or s[:1] == "#" for s in (before, after)]
        words = token.text.split()
        if token.symbol == "THEN" and "then" not in words and words[0] != "and":
            if things[0] and after == ",":  # touch the cube later, (but now) the ball
                raise unsure(token.text)
        if token.text in ("so as to", "in order to") and any(s[:1] == "#" for s in symbols[:i]):
            raise unsure(token.text)  # the thing that is pushed, or the arm?
        if token.symbol == "AND" and words[0] == "but" and things[1] and last in ("", ","):
            raise unsure(token.text)
        if token.symbol == "AND" and words[-1] in ("while", "whilst"):
            rest = [s for s in symbols[i:] if s != ","]
            following = rest[rest.index("THEN") + 1 :][:1] if "THEN" in rest else []
            if any(s == "HAND" or s[:1] == "#" or s.endswith("ing") for s in following):
                raise unsure("while ... then")
        possible = token.symbol == "MODAL" and words[0] in ("can", "could", "may", "might", "would")
        if possible and things[0] and not {"WANT", "SURE", "UNTIL"} & set(symbols[:i]):
            raise refuse("ambiguous", f"{token.text!r}: is it to be, or only possible?")
        if token.symbol in ("with", "using", "use") and before[:1] == "#" and after == "HAND":
            if last in _PREDICATE and tokens[i + 2].text.split()[0] != "to":
                raise unsure(f"{token.text} {tokens[i + 1].text} {tokens[i + 2].text}")


def _verb(word: str) -> str:
    """A verb's stem, marked "_ed" or "_ing" where it was that form."""
    stem = _FORMS.get(word, word)
    return f"{stem}_ing" if word.endswith("ing") and stem in _VERBS and word != stem else stem
