"""Words by what they do in a sentence: verbs by what they take, closed classes, and words that are
known but that no formula can say."""

from __future__ import annotations

from collections.abc import Iterable

from reward_models.goals.grammar.phrases import PHRASE_WORDS, SINGLE_WORDS

# Verbs by what they take; see the clause patterns below.
BE = (
    "be stay remain stand sit rest lie wait keep linger hang settle park pause appear hover float "
    "lean"
)
GO = (
    "go move come get travel head drive navigate steer proceed shift return fly slide maneuver "
    "step drift glide slip swing rise retreat withdraw retract back relocate manoeuvre"
)
TOUCH = "touch tap poke contact reach"
HOVER = "hover float levitate"
PUT = (
    "put place position set bring move get keep take shift send have lead direct relocate "
    "reposition station situate park"
)
PUT_HAND = (  # with the gripper only
    "hold steer guide drive navigate park maneuver manoeuvre hover rest lay slide extend stretch "
    "raise lower lift elevate press lean swing sweep slip transfer pull draw retract float hang "
    "suspend dangle plant center centre align"
)
PUT_BY = "put place position set bring get keep have station situate"  # "move by" may be past
PUT_ON = "put place rest lay set get keep hold have plant press"  # the hand on a thing
PUSH = "push slide shove nudge roll drag pull scoot guide steer drive"  # with objects only
MAKE = "make let have get keep allow cause"
APPROACH = "approach"
OTHER = "use give leave distance"  # only in the rewrites below
VERBS = tuple(
    dict.fromkeys(
        " ".join((BE, GO, TOUCH, HOVER, PUT, PUT_HAND, PUSH, MAKE, APPROACH, OTHER)).split()
    )
)
IRREGULAR = {
    "is": "be", "are": "be", "am": "be", "being": "be", "been": "be_ed",
    "has": "have", "having": "have", "had": "have_ed",
    "held": "hold_ed", "brought": "bring_ed", "kept": "keep_ed", "taken": "take_ed",
    "slid": "slide_ed", "sent": "send_ed", "led": "lead_ed", "laid": "lay_ed", "lying": "lie",
    "driven": "drive_ed", "made": "make_ed", "located": "place_ed", "situated": "place_ed",
    "goes": "go", "went": "go_ed", "gone": "go_ed", "came": "come_ed", "got": "get_ed",
    "swung": "swing_ed", "hung": "hang_ed", "drawn": "draw_ed", "found": "place_ed",
    "poised": "place_ed", "stood": "stand_ed", "sat": "sit_ed", "meets": "touch", "meet": "touch",
}  # fmt: skip

# Known, but not something this grammar can say. word -> what kind of thing it is
UNSUPPORTED = {
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

PRONOUNS = frozenset("that this these those them they there here something someone him her".split())
ASKING = frozenset(
    "what which who whose whom where why how is are was were am do does did had has shall should "
    "may might must will".split()
)
FUNCTION = frozenset(
    "to towards of from by with using for and before after both left right use which that who "
    "so than then as at on in i we my you your its".split()
)
ARTICLES = frozenset({"the", "a", "an"})
DETERMINERS = ARTICLES | {"this", "that", "your", "its", "these", "those"}
GENERIC = frozenset({"object", "thing", "one", "item", "piece", "shape", "toy", "body", "part"})
GENERIC_PLURAL = frozenset(f"{word}s" for word in GENERIC)
COLOUR_WORDS = frozenset({"coloured", "colored", "colour", "color"})
BRIGHT = frozenset({"bright", "vivid", "brightly"})  # say nothing that tells two colours apart
SHADES = {
    shade: colour
    for colour, shades in {
        "red": "scarlet crimson ruby vermilion cherry",
        "blue": "navy azure cobalt sapphire",
        "green": "emerald lime",
    }.items()
    for shade in shades.split()
}
SHAPED = frozenset({"shaped"})
# They only colour a movement that says where it goes: "push it up to", "set it down beside".
PARTICLES = frozenset("down up along across back round around".split())
SCENERY = frozenset(  # things of the scene that are no entities
    "table tabletop desk floor ground camera picture image screen".split()
)
COLOURS = frozenset(
    "red green blue yellow orange purple pink black white grey gray brown cyan magenta violet "
    "turquoise beige gold silver golden".split()
)
# Words for the part of any arm that acts, beside those its card lists.
HANDS = tuple(
    tuple(name.split())
    for name in (
        "gripper", "hand", "claw", "claws", "arm", "robot", "finger", "fingers", "fingertip",
        "fingertips", "tip", "tips", "tool", "end effector", "effector", "endeffector",
        "manipulator", "robotic arm", "robotic hand", "robotic gripper", "tool tip",
        "tool center point", "tcp",
        "jaw", "jaws", "pincer", "pincers", "gripper tip", "finger tip", "finger tips", "robot arm",
        "arm tip", "one finger", "one fingertip", "single finger", "one of your fingers",
        "end of the arm", "end of the robot", "end of the robot arm", "robot hand",
        "robot gripper", "robot tool",
    )
)  # fmt: skip


DOUBLED = frozenset(
    "put get set tap sit drag slip step run hop skip jog trot drop flip swim".split()
)


def inflected(verbs: Iterable[str]) -> dict[str, str]:
    """Every form of a verb -> its stem; the past participle -> stem + "_ed"."""
    forms = dict(IRREGULAR)
    for verb in verbs:
        stem = verb + verb[-1] if verb in DOUBLED else verb
        bare = verb[:-1] if verb.endswith("e") and verb != "be" else stem
        s = verb + "es" if verb.endswith(("sh", "ch", "s", "o")) else verb + "s"
        if verb.endswith("y") and verb not in ("stay", "lay"):
            s = verb[:-1] + "ies"
        for form in (verb, s, bare + "ing"):
            forms.setdefault(form, verb)
        forms.setdefault(bare + "ed", verb + "_ed")
    return forms


FORMS = inflected(VERBS)
# A noun of the card that is also one of these ("can") is a noun only where a noun must stand.
NOT_NOUNS = frozenset(FORMS) | SINGLE_WORDS | FUNCTION
VERBS_AND_NOUNS = frozenset(
    "position place rest touch contact way tap poke center centre back distance".split()
)
# What cannot follow an article; the rest are verbs that are nouns too ("a position above").
NEVER_NAMED = (FORMS.keys() - VERBS_AND_NOUNS) | (
    DETERMINERS | set("to of from and then , is".split())
)
GOVERNS_NOUN = frozenset({"of", "above", "over", "from", "to", "beside", "near"}) | {
    form for form, stem in FORMS.items() if stem in TOUCH.split()
}
LEXICON = (
    PHRASE_WORDS
    | FORMS.keys()
    | UNSUPPORTED.keys()
    | PRONOUNS
    | FUNCTION
    | DETERMINERS
    | GENERIC
    | GENERIC_PLURAL
    | COLOUR_WORDS
    | BRIGHT
    | SHAPED
    | PARTICLES
    | COLOURS
    | ASKING
    | {"'s"}
)
