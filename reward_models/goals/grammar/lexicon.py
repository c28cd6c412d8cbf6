"""Words by what they are: colours, things of no kind, hands, how verbs change, and words that are
known but that no formula can say. Data."""

from __future__ import annotations

CONTRACTIONS = (
    (r"\bcan't\b", "can not"),
    (r"\bcannot\b", "can not"),
    (r"\bwon't\b", "will not"),
    (r"n't\b", " not"),
    (r"\bdont\b", "do not"),
    (r"\blet's\b", "let us"),
    (r"\b(it|that|what|there|here|who|where|how)'s\b", r"\1 is"),
    (r"'d\b", " would"),
    (r"'ll\b", " will"),
    (r"'re\b", " are"),
    (r"'ve\b", " have"),
    (r"'m\b", " am"),
    (r"'s\b", " 's "),
    (r"\bgray\b", "grey"),
    (r"\bpls\b", "please"),
    (r"\b(left|right)hand\b", r"\1 hand"),
    (r"'(?!s\b)", " "),
)

DETERMINERS = frozenset("a an this that these those my your its our".split())
COLOURS = frozenset(
    "red green blue yellow orange purple pink black white grey brown cyan magenta violet "
    "turquoise beige gold silver golden".split()
)
SHADES = {
    shade: colour
    for colour, shades in {
        "red": "scarlet crimson ruby vermilion cherry",
        "blue": "navy azure cobalt sapphire",
        "green": "emerald lime",
    }.items()
    for shade in shades.split()
}
LOOKS = frozenset("bright vivid brightly little".split())  # tell nothing apart
COLOUR_WORDS = frozenset({"coloured", "colored", "colour", "color"})
GENERIC = frozenset({"object", "thing", "one", "item", "piece", "shape", "toy", "body", "part"})
GENERIC_PLURAL = frozenset(f"{word}s" for word in GENERIC)
# Things of the scene that no card lists.
SCENERY = frozenset("table tabletop desk floor ground camera picture image screen base".split())
# The part of any arm that acts, beside the names on its card.
HANDS = tuple(
    tuple(name.split())
    for name in (
        "gripper|hand|claw|claws|arm|robot|finger|fingers|fingertip|fingertips|tip|tips|tool|"
        "end effector|effector|endeffector|manipulator|robotic arm|robotic hand|robotic gripper|"
        "tool tip|tool center point|tcp|jaw|jaws|pincer|pincers|gripper tip|finger tip|finger tips|"
        "robot arm|arm tip|one finger|robot hand|robot gripper|robot tool|end of arm|end of robot"
    ).split("|")
)
# Kind or name of an entity -> what it is called besides the names on its card.
ALSO_CALLED = {
    "target": "disk|marker|circle|zone|dot|marked disc|marked spot|marked position|marked place",
    "disc": "disk|spot|circle|mark|marker|pad|dot",
    "button": "push button|pushbutton|buzzer",
    "ball": "dot|spot|marker|orb|sphere|circle",
    "cylinder": "tube|puck|can",
    "drawer": "drawer box",
    "hole": "block|peg hole|hole of block|hole in block|block 's hole",
    "humanoid": "human|man|woman|person|figure|human figure|character",
    "handle": "drawer handle",
    "ant": "spider|bug|insect|four legged robot",
    "cheetah": "cat|kitty|big cat|half cheetah",
    "hopper": "one legged robot",
    "walker": "biped|two legged robot",
    "swimmer": "snake|worm",
    "pole": "pendulum|stick|rod|inverted pendulum",
    "fingertip": "hand|finger tip|end effector|arm tip|reacher|tip of arm|end of arm",
    "arm": "hand|gripper|pusher|end effector|robot arm|tip of arm",
}
BODIES = ("torso", "robot", "body", "machine", "creature")  # what any body is called
PLACES = frozenset("spot position location area place point marker zone area".split())

DOUBLED = frozenset(
    "put get set tap sit drag slip step run hop skip jog trot drop flip swim stop pop plug fit "
    "plop tug hug shut hit pin let tip knot stir".split()
)
# stem -> past forms that are not regular
IRREGULAR = {
    "put": "put",
    "set": "set",
    "lay": "laid",
    "stick": "stuck",
    "leave": "left",
    "sit": "sat",
    "stand": "stood",
    "bring": "brought",
    "take": "took|taken",
    "get": "got",
    "send": "sent",
    "lead": "led",
    "drive": "drove|driven",
    "draw": "drew|drawn",
    "fit": "fit|fitted",
    "slide": "slid",
    "run": "ran|run",
    "go": "went|gone",
    "come": "came|come",
    "hold": "held",
    "keep": "kept",
    "hit": "hit",
    "shut": "shut",
    "let": "let",
    "have": "had",
    "make": "made",
    "meet": "met",
    "swing": "swung",
    "rise": "rose|risen",
    "fly": "flew|flown",
    "be": "was|were|been",
    "hang": "hung",
    "swim": "swam|swum",
    "lie": "lay|lain",
    "kneel": "knelt|kneeled",
    "do": "did|done",
    "give": "gave|given",
    "find": "found",
    "end": "ended",
    "wind": "wound",
    "become": "became|become",
    "spin": "spun",
}

# Known, but nothing that a formula says. kind -> words
UNSUPPORTED = {
    word: kind
    for kind, words in {
        "negation": "not never no none nothing without neither nor except unless avoid avoiding "
        "quit refrain prevent instead rather hardly ignore excluding",
        "a quantity": "two three four five six seven eight nine ten twelve twenty hundred half "
        "twice thrice double times several few pair only degrees percent anything something bit",
        "a time": "hour hours forever briefly long longer moment soon repeatedly asap",
        "a manner": "quickly gently carefully softly firmly hard fast quick lightly rapidly "
        "swiftly smoothly steadily strongly quietly cautiously harder gentle careful slightly "
        "barely nearly almost partly little lot much very really quite too tightly loosely roughly",
        "an unknown action": "throw throws throwing toss drop drops release shake pour "
        "squeeze kick kicks punch smash crush swap exchange sort juggle break destroy cut paint "
        "clean wipe point look looks watch face circle orbit follow remove hide cover clear grab "
        "grabs grasp lift lifts raise pick open close hit knock press rotate turn spin flip "
        "tilt stack insert carry catch fetch separate slap",
        "a relation that is not measured": "between behind front beyond below under beneath inside "
        "within into out off around through across along past middle corner edge top bottom up "
        "down backward backwards back forward forwards opposite parallel outside side facing "
        "near nearest closest nearer farther further nowhere shaped",
        "a choice or a condition": "or if when whenever because since although provided else",
    }.items()
    for word in words.split()
}
ASKING = frozenset(
    "what which who whose whom where why how is are was were am does did has".split()
)
# What stands between things and verbs and is no word of any pattern.
FUNCTION = frozenset(
    "to towards of from by with using for and before after both left right use which that who "
    "so than then as at on in i we my you your its should may might must will shall can could "
    "would do is are was were has have had am be there here they them him her".split()
)
# What no reason and no remark says: what denies, orders, counts, bounds or corrects.
TELLING = frozenset(UNSUPPORTED) - frozenset(
    "very really quite little lot long much hard in into up down out because since under look "
    "inside looks back off through around moment soon fast watch cut paint clean".split()
) | frozenset(
    ", please must shall ought should but mean meant mistake wrong actually pretend hate forbid "
    "then all slowly above over left right far beside near next touch touches touching before "
    "after first later next finally also until till want wants do does make makes least most "
    "exactly cm m mm metre metres second seconds minute minutes".split()
)
