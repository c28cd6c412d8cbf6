"""What joins clauses, bounds them and goes along with them, and the small words inside them: data,
as tables of phrases (``words.Table``)."""

from __future__ import annotations

from reward_models.goals.grammar.patterns import PhraseTable
from reward_models.goals.grammar.wordings import ANYWHERE, HERE, START, STAY

# ------------------------------------------------------------------------- between clauses

THEN = PhraseTable(
    "[,] [and] (finish|end) [up|off] by; [,] and [,] after that [,]; [,] and [,] when done [,]; "
    "[,] (second|third) [,]; [,] and [,] when you are done [,]; "
    "[,] [and|but] [only] then [,]; [,] [and] (afterwards|afterward|subsequently|thereafter) [,]; "
    "[,] [and] [only] after (that|this|which) [,]; [,] [and] (next|finally|lastly) [,]; "
    "[,] (and|then|and then) later [,]; [,] [and] [,] (once|when) there [,]; "
    "[,] [and] only (afterwards|afterward|thereafter) [,]; "
    "[,] [and] (when|once|as soon as) ((it|this|that) is (there|in place)|"
    "you have|done|that is done|you are done|it is done|you have done (so|that|it)|this is done|"
    "you did) [,] [then]; [,] followed by; "
    "[,] [and] then (finally|afterwards|next) [,]; [,] [and] (secondly|thirdly) [,]; , then"
)
AND = PhraseTable(
    "[,] and [also]; [,] as well as; [,] and [,] (at same time|at once|simultaneously) [,]; [,] &"
)
AT_ONCE = PhraseTable("[both] at (same time|once); simultaneously")
BUT = PhraseTable("[,] but [also|still]; [,] and (still|yet); [,] yet; [,] though")
OR = PhraseTable("[,] or [else]")
BEFORE = PhraseTable("[,] before; [,] prior to")
AFTER = PhraseTable(
    "[,] [but|and] [only] after; [,] but first; [,] once; [,] as soon as; [,] but before that [,]"
)
JOINS = {"then": THEN, "and": AND, "but": BUT, "or": OR, "before": BEFORE, "after": AFTER}
# Behind a goal that is joined by "and": it comes after.
LATER = PhraseTable(
    "[,] (afterwards|afterward|after that|later|next|thereafter|subsequently|last|lastly|finally|"
    "at [very] end|in end)"
)
ANY_ONE = PhraseTable(
    "[,] (either|any) [one|of them] (will do|is fine|is ok|works|does); [,] (whichever|whatever) "
    "[one] you (like|want|prefer|please|choose); [,] it does not matter "
    "which [one]; [,] (either|both) (one|way|ways|of them) [is|are] (fine|ok|okay|good)"
)
SOMETIME = PhraseTable("[,] at some (moment|point|time|stage) [,]; [,] at least once")
TWO = PhraseTable("either")
END = PhraseTable(
    "[,] (and|to) (end up|finish up|finish|end) [being|with]; [,] ending [up] [with]; "
    "[,] finishing [up] [with]"
)
COMMA = PhraseTable(",")
JOINS |= {"end": END, ",": COMMA}
ALL_ALONG = PhraseTable(
    "all time; at all times; throughout; whole time; entire time; whole way; all along; all way "
    "through; from start to finish; from beginning to end; during [whole|entire] (time|episode|"
    "move|movement|run|motion|task|trial|test|walk|operation); "
    "for (whole|entire) (time|episode); always; whole while; all while; "
    "the whole time; all the time; as you go; in process; while doing so; while you do; "
    "while you do so; while you do it; meanwhile; along way; on way; at every moment; "
    "at any (time|moment|point); ever; without (interruption|a break|pause)"
)
THERE = PhraseTable("[on] (way|route) (there|to it); while going there; en route; on way over")
SLOWLY = PhraseTable(
    "[move|go|moving] [very] slowly; at [a] slow (speed|pace); [at] [a] slow speed"
)
IN_ORDER = PhraseTable(
    "[,] in (this|that|given|said) (order|sequence); [,] in order; [,] in turn; [,] one after "
    "(another|other); [,] one by one; [,] successively; [,] in sequence; [,] consecutively"
)
ANY_ORDER = PhraseTable(
    "[,] in (any|whatever|whichever|either) order [you (like|want|please)]; [,] no matter (in "
    "which|which|in what|what) order; [,] order does not matter; [,] in whatever order; "
    "[,] whichever [one|of them] [comes] first; [,] regardless of order"
)
UNTOUCHED = PhraseTable("untouched|off limits|taboo")
FIRST = PhraseTable(
    "first [of all] [,]; initially; firstly [,]; to begin with [,]; to start with [,]; start by; "
    "begin by; start with; begin with; start off by; at first [,]"
)
TIDY = PhraseTable("and; ,")
TO = PhraseTable("that; to; ,")
SO_NOW = PhraseTable("[,] so; ,")
HAVING = PhraseTable("you have; having; gripper has")
NOT = PhraseTable("not [ever]; never")
WHILE_YOU = PhraseTable("[,] (while|whilst|when|as) you [are]")
AS_YOU = PhraseTable("[,] (while|whilst|when|as) [you [are]]")
SEVERAL = frozenset("fingers fingertips claws jaws pincers tips".split())
ENDS = frozenset("end finish".split())
THIS = (("that",), ("this",))
MODIFIERS = {
    "slowly": SLOWLY,
    "order": IN_ORDER,
    "loose": ANY_ORDER,
    "along": ALL_ALONG,
    "either": ANY_ONE,
    "there": THERE,
    "once": SOMETIME,
}

# What bounds goals or goes along with them: (how it takes part; none: as its clause says, what is
# said). Slots are clauses: DO in plain form, ACTING, SAID with a subject, BIT without a verb, ...
_NEVER = (
    "(never [ever|once]|do not [ever]|not ever|(must|should) (never|not) [ever]|[and] at no "
    "(time|point|moment|stage)|and never|you must not|(make sure|take care|be careful|try) not to|"
    "never at any time|make sure you never|make sure to never|make sure you do not|avoid|nor|"
    "it must never|without it ever|may never|not|in no case|on no account|under no circumstances)"
)
_NEVER_ING = (
    "(without [ever|once|at any time]|[while] avoiding|avoid|not once|never|not|[and] at no "
    "(time|point|moment|stage))"
)
EVER = "(always|at all times|all the time|throughout|constantly|permanently)"
_WHILE = "((while|whilst) [you are|still] [always|constantly]|all while|as you are)"
_CONTACT = "([any] [direct|physical] contact (with|to)|touch of)"
_FORBIDDEN = (
    "[is|are] [strictly] (forbidden|prohibited|not (allowed|permitted)|banned|off limits|taboo)"
)
_SPEED = (
    "([at|with] [a|its|your] (speed|pace|velocity) [of|at|always|kept|staying|limited to]|at|with|"
    "with a|at a|always|(staying|moving|going) [always])"
)
CONSTRAINTS: tuple[tuple[str, str], ...] = (
    ("never", f"[,] {_NEVER} DO"),
    ("never", f"[,] {_NEVER_ING} ACTING"),
    ("never", "[,] (never|nor) BIT"),
    ("not", "[,] [but] not RELATED"),  # "next to it, not on it"
    ("never", "[,] but not NAMED"),
    ("", f"[,] [{EVER}] MOODED"),  # "the can must not be touched"
    ("always", ", KEPT"),  # ", it must stay upright"
    (
        "never",
        f"[,] (without [any]|with no|no|avoiding) {_CONTACT} S [[is|are] (allowed|permitted)]",
    ),
    ("never", f"[,] {_CONTACT} S {_FORBIDDEN}"),
    ("never", f"[,] ACTING {_FORBIDDEN}"),  # "touching it is forbidden"
    ("never", "[,] at no (time|point|moment|stage) (may|must|should|shall|can) SUFFERS"),
    ("always", f"[,] {EVER} ACTING"),
    ("always", f", {EVER} BEING"),  # ", always at least 5 cm from it"
    ("always", f"[,] [{_SPEED}] PACE"),
    ("always", "MANNER|, PACED"),  # "moving slower than 5 cm/s", ", gripper below 5 cm/s"
    ("while", f"[,] {_WHILE} (ACTING|TOLD|RELATION)"),
    ("while not", f"[,] {_WHILE} (not [ever]|never) (ACTING|TOLD)"),
    ("", f"[,] {_WHILE} MOODED"),  # "while avoiding it"
    ("while", ", STAYING"),  # ", staying at least 5 cm above it"
    ("until", "[,] (until|till) TIMED"),
)
# How long, and by when.
_LASTING = (
    "([continuously] for [a total of|a duration of|a full|full|a whole|no less than]|dwelling "
    "[for]|[,] [and|then|and then] (maintain|sustain|keep up|dwell|hold) [it|this|that|them|"
    "contact|position|pose|state|(this|that) (position|state|pose)|there] [there|steadily|"
    "continuously] [for]|[,] [with] [a] (dwell|dwell time|hold time|holding time|hold duration) "
    "[is|of]|[,] (maintaining|sustaining) (it|this|that|them|contact) [for]|[,] [and|then|and "
    "then] (keep|hold|stay|remain|linger|rest|leave|have) [it|them|contact|yourself|that|this|"
    "everything|[this|that] position] [stay|remain] [there|in place|like that|like this|that way|"
    "so|in position|at that height|put|still there|this way|in contact|in that position|up|up "
    "there|open|closed|pressed|down] [for]|[,] [and] do so for|[,] (keeping|holding|staying|"
    "remaining) [it|them] [there|so] [for])"
)
_WAIT = (
    "([,] [and|then|and then] (wait|pause) [there|here|in place] [for]|[,] waiting [there] [for])"
)
_WITHOUT_A_BREAK = "[there|straight|in row|continuously|without interruption|non stop]"
_WITHIN = (
    "([all|[and] do (it|this|that|so|all this)] within [first|a time of]|[all] in|inside [of]|you "
    "(have|get)|in under|in less than|[in] no more than|(no|not) later than|after at [very] "
    "(most|latest)|at [very] latest [after|in|within])"
)
_PASSED = "[have|has] (passed|elapsed|gone by|are over|is over|are up|is up)"
_TOTAL = "(in total|altogether|overall|in all|(of|from|after) start)"
TIMES: tuple[tuple[str, str], ...] = (
    ("for", f"{_LASTING} LASTS {_WITHOUT_A_BREAK}"),
    ("wait", f"{_WAIT} LASTS {_WITHOUT_A_BREAK}"),
    ("within", f"[by|taking|with [a]|[and] (take|takes|use|need)] ATMOST [{_TOTAL}]"),
    ("within", f"{_WITHIN} ENDS [{_PASSED}|{_TOTAL}]|before ENDS {_PASSED}"),
)
YOU_HAVE = "(you have|you get|there are) ENDS to"

# -------------------------------------------------------------------------- inside a clause

STAND = frozenset("be stay hold keep stand remain hover hang wait float rest".split())
ORDERED = PhraseTable("in (this|following) (order|sequence) ,")
ANYWHERE = PhraseTable(ANYWHERE)
FROM_START = PhraseTable(f"[[away] from|of] {START}")
FROM_HERE = PhraseTable(f"[[away] from|of] ({HERE}|here|there)")
FROM_ABOVE = "[[,] [as] [seen|viewed|looking|looked at] from (above|top)]"
TURNS = {
    -1.0: PhraseTable(f"clockwise {FROM_ABOVE}"),
    1.0: PhraseTable(
        f"(counterclockwise|anticlockwise|counter clockwise|anti clockwise) {FROM_ABOVE}"
    ),
}
MODAL = (
    "(should|must|shall|will|has to|have to|needs to|need to|ought to|(is|are) [supposed|meant|"
    "required|going] to)"
)
MODALS = PhraseTable(f"{MODAL}|to")
PERFECT = PhraseTable("has|should have|must have|should have been|has been")
# What says of a subject that it is never, or always, to do what follows: in its plain form.
MOODS = {
    "never": PhraseTable(
        f"({MODAL}|may|can) (not|never|at no time|under no circumstances|at no "
        f"(point|moment|stage)) [ever]|"
        "(is|are) (not|never) [ever] to|(does|do) not [ever]"
    ),
    "always": PhraseTable(f"{MODAL} {EVER}|(is|are) {EVER} to"),
}
PLAINLY = {
    "never": PhraseTable("never [ever]|at no (time|point|moment|stage)"),
    "always": PhraseTable(EVER),
}
OF_BODIES = ("still", "slower", "faster", "at_height")
SITUATED = frozenset(
    "located situated positioned found placed seated lodged perched poised suspended parked "
    "nestled centred centered snuggled".split()
)
BY = PhraseTable(
    "by|at|at [a] (height|distance) of|[with] [a|its] (gap|clearance|distance|height|separation) "
    "[is|of|being]|[and] [at] [a] distance [is|of]"
)
AWAY = PhraseTable(
    "[away] from (it|there)|away|up|off|high|apart|[of] (clearance|gap|distance|space|between "
    "them)|[in] between"
)
BESIDE = frozenset("above below left_of right_of in_front_of behind far".split())
EACH_OTHER = PhraseTable("[each other|one another]")
SO_THAT = PhraseTable("until|till|so [that]|such that")
UP_TO = PhraseTable("[up|over|all way|right [up]] to")
OVER = PhraseTable("[over|along|across|around|round|across table|along table|up|down|in]")
BUMPS = frozenset(
    "touch|contact|reach|meet|make contact with|come into contact with|lean against|bump into|"
    "be in contact with|press against".split("|")
)
# What bounds a height or a speed, and no way from where a thing was.
HEIGHTS = frozenset("higher lower above below faster slower quicker".split())
# Verbs with which a length alone is no way from where a thing was.
NO_WAY = STAY | frozenset("retreat|withdraw|back off|back away|back|pull back|pull away".split("|"))
