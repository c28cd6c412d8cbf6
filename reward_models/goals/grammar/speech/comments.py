"""Where a sentence is cut, and which of its parts only give a reason.

A comment may have words that no table knows, so it is one only where its first words mark it
("because", "I need my", "so that I can") and where none of its words could change the goal: no
negation, number, measure, manner, condition, contrast, correction or order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_DANGER = frozenset(
    """
    not never no none nothing without neither nor except unless avoid stop quit cease refrain
    prevent instead rather nowhere hardly dont ignore cannot excluding other another else
    two three four five six seven eight nine ten eleven twelve twenty thirty hundred half quarter
    third second twice thrice double times every each either everything anything several few pair
    only halfway midway degrees degree percent cm mm m centimeter centimeters centimetre
    centimetres millimeter millimeters millimetre millimetres meter meters metre metres inch inches
    foot feet seconds minute minutes hour hours forever constantly briefly longer exactly precisely
    immediately asap repeatedly quickly slowly gently carefully softly firmly faster slower
    slow quick lightly rapidly swiftly smoothly steadily strongly quietly cautiously delicately
    forcefully harder gentle careful slightly barely nearly almost partly partially higher lower
    closer nearer farther further tightly loosely roughly aggressively fast slowest fastest
    or if whenever whether although provided assuming otherwise unless until till than but
    mean meant changed mind kidding joking joke cancel scratch wrong mistake opposite actually lied
    lying pretend wait should must shall ought hate forbid refuse dislike doubt prohibit warn
    please instead then after before first later again afterwards next finally also too both
    kilometres kilometers km kilometre speed least most maximum minimum exact approximately about
    backward backwards reverse sideways undo however though yet still rather nope nah scrap
    forget disregard kill destroy break smash burn throw delete
    shouldn mustn supposed hopefully let make do does would could want wants wanted
    """.split()
)
_GIVEN = frozenset("about most exactly".split())
_I = r"(?:i|we|he|she|they|everyone|everybody|somebody|someone|my \w+|our \w+|his \w+|her \w+)"
_BE = r"(?:is|are|was|were|looks?|seems?|feels?|gets?|has been|have been)"
_AFFECTED = (
    "worried|scared|afraid|sick|tired|proud|fond|nervous|curious|bored|excited|happy|sad|anxious|"
    "concerned|allergic|thirsty|hungry|cold|busy|late|ready|lazy|old|keen|sure|glad|thrilled"
)
_PAST = (
    "painted|dropped|lost|left|cleaned|polished|washed|bought|built|found|spilled|spilt|wiped|"
    "repaired|fixed|made|got|glued|oiled|charged|finished|brought|heard|told|promised|paid|forgot|"
    "emptied|filled|tidied|misplaced|broke|saw|noticed|knocked"
)
_KNOWING = (
    "think|bet|know|believe|feel|love|like|have|had|am|are|was|were|need|keep|will|can|just|really|"
    "guess|promise|told|said|always|got|work|live|wonder|miss|admire|enjoy|trust|see|hear|owe|"
    "cannot wait|adore|depend|rely|study|teach|train|brought|came|grew|go|run|own|has|saw|heard"
)
_THING = r"(?:#\w+|it|that \w+|this \w+|HAND)"
_HEADS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:because|since|as|cause|for|seeing that|given that|now that|in case) {_I} .+",
        rf"(?:because|since|as|cause|given that|now that) {_THING} {_BE} .+",
        r"(?:because|since|as|cause|given that) (?:it|that|this|there) (?:is|was|makes|looks|gets|"
        r"helps|would) .+",
        r"(?:because|since|as|cause) (?:of )?(?:my|our|the|his|her|these|those|today) .+",
        rf"(?:just )?(?:so|so that|in order that) {_I} (?:can|may|will|am|get|have|could|might|is|"
        r"are|stop|do not) .+",
        r"(?:just )?(?:so|so that) (?:it|that|this|#\w+) (?:looks|feels|will look|is nicer|is "
        r"prettier|is tidy|is neat) .+",
        r"(?:just |only )?(?:to|in order to|so as to) (?:see|hear|check|test|show|impress|know|"
        r"find "
        r"out|prove|celebrate|cheer|entertain|amuse|help|please|practise|practice|warm up|exercise|"
        r"demonstrate|learn|try out|train|win|delight|surprise|greet|tidy|save) .+",
        r"(?:i|we) (?:would like|want|need|would love) to (?:see|hear|check|test|show|know|find "
        r"out|"
        r"watch|learn|look|prove|take|film|photograph) .+",
        rf"(?:and )?(?:i|we) (?:{_KNOWING}) .+",
        rf"(?:i|we|somebody|someone|my \w+|our \w+) (?:just |have |had |have just |recently )*"
        rf"(?:{_PAST}) .+",
        rf"(?:i|we) (?:am|are|was|were) (?:so |a |little |bit |very |really |quite |rather |all )*"
        rf"(?:{_AFFECTED})(?: .+)?",
        rf"(?:{_THING}) makes me \w+",
        rf"(?:{_THING}) {_BE} (?:so |very |really |quite |too |all |a |bit |little |looking |"
        rf"getting )*\w+(?: and \w+)?",
        r"(?:my|our|his|her|the) (?!hand|arm|claw)\w+ (?:is|are|was|were|loves?|likes?|needs?|"
        r"says?|said|"
        r"told|has|have|will|hopes?|wonders?|thinks?|bets?|asks?|asked|would like|keeps?|gets?|"
        r"cheers?|came|comes|waits?) .+",
        r"(?:it|that|this) (?:is|will be|would be|was|makes) (?:my|our|so|such|a|an|very|really|"
        r"where|what|how|for|important|fun|nice|good|great|lovely|easy|better|best|late|time|hot|"
        r"cold|getting|dinner|bedtime|nicer|safer|tidier|prettier|the)(?: .+)?",
        r"(?:it|that|this|they) (?:is|was|are|looks?|seems?|feels?) (?:(?!#|HAND)\w+ ?){1,6}",
        r"(?:the )?(?!#|HAND|you|there|what|this|that|it|success|goal|done)\w+(?: time)? (?:is|are"
        r"|was|"
        r"looks?) (?:so |very |really )?(?!to |at |on |in )\w+(?: today| now| here)?",
        r"i would hate to .+",
        r"you (?:are|must be|look|seem|have been) (?:so |very |really |a |such |my |the |our |all "
        r")*"
        r"(?:\w+)(?: \w+)?",
        r"you (?:can do|have got|know|have done|did) .+",
        r"(?:everyone|everybody|people|the crowd|crowd|fans|kids|the kids|children|audience) "
        r"(?:is|are|wants? to see|loves?|likes?|will|cheers?|waits?) .+",
        r"there (?:is|are) (?:a|an|some|my|nobody|somebody|someone|treasure|something) .+",
        r"(?:dinner|lunch|breakfast|food|time|school|class|today|tomorrow|summer|spring|winter) "
        r"(?:is|has|starts|begins) .+",
    )
)
# A comment must say nothing that an order or a wish of its own would say.
_ORDERED = re.compile(r"(?<!\S)(?:to be|be) (?:#|HAND)|(?<!\S)(?:and|,) (?:you|HAND) ")


def is_comment(segment: list[str]) -> bool:
    """Whether a segment only gives a reason or a remark."""
    if segment[-2:] == ["after", "all"]:
        segment = segment[:-2]
    if not segment:
        return False
    words = [w for w in segment if w not in ("and", "so") or w != segment[0]]
    text = " ".join(words)
    if any(w in _DANGER - {"about"} or w[0].isdigit() for w in _harmless(text).split()):
        return False
    if _ORDERED.search(text) or sum(w[0] == "#" for w in words) > 1:
        return False
    needed = r"(?:my |our |some |his |her |to see |to get )?\w+(?: \w+)?$"
    if re.match(rf"(?:i|we) need (?!{needed})", text):
        return False  # "I need my socks", and not "I need it high up on the ..."
    if re.match(r"(?:i|we) .*(?<!\S)need .*(?:#|HAND|it(?!\S))", text):
        return False
    if any(w[0] == "#" for w in words) and _ACTS.search(text) and not _REASON.match(text):
        return False
    return any(head.fullmatch(text) for head in _HEADS)


# Harmless though they hold a word that is not elsewhere.
_HARMLESS = re.compile(
    r"(?<!\S)(?:i would hate to (?:lose|miss|forget|trip|step)|"
    r"do not you worry|you must be|i would like to|we would like to|would love to|want to (?:see|"
    r"hear|"
    r"check|test|show|know|find out|watch|learn|look|prove|take|film|photograph)|"
    r"wants to see|would be|where i want it|where i want HAND|want to see|it would|i would|"
    r"for my (?:second|third) \w+)(?!\S)"
)


def _harmless(text: str) -> str:
    return _HARMLESS.sub(" ", text)


_REASON = re.compile(
    r"(?:because|since|as|cause|so|so that|to|in order to|just so|just to|i|we|my|our|somebody) "
)
_ACTS = re.compile(
    r"(?<!\S)(?:next to|beside|far from|touching|touch|touches|above|over|left of|right of|inside|"
    r"into|onto|on top of|lifted|near)(?!\S)"
)
_CUT = re.compile(
    r"(?<!\S)(?:(?=(?:because|cause) )|(?=since (?:i|we|that|it|my|our|he|she|they) )|"
    r"(?=as (?:i|we|my|our) )|(?=so (?:that )?(?:i|we|my \w+|our \w+|everyone|he|she|they) (?:can|"
    r"may|will|could|might|get|have) )|(?<!want )(?<!like )(?<!love )(?<!need )(?<!wish )(?<!going"
    r" )(?<!hope )(?<!excited )(?<!wants )"
    r"(?=(?:just )?(?:in order )?to (?:see (?:if|what|how)|hear|"
    r"check|test|impress|amuse|entertain|celebrate) )|"
    r"(?:and )?so (?=(?:please|could|can|would|will|let|why|be|just|now|you|kindly|it would|i want|"
    r"i would|put|push|pull|move|bring|lift|pick|open|close|shut|press|hit|go|get|take|touch|stay|"
    r"keep|walk|run|swim|hop|stand|rise|kneel|lie|raise|wave|do|make) )|"
    r"and (?=i (?:wish|want|would like|hope|need) )|(?:,|:) )"
)


def segments(tokens: list[str]) -> list[list[str]]:
    """The sentence cut at stops, and where a reason begins or ends."""
    out: list[list[str]] = []
    for part in _split(tokens, ","):
        text = " ".join(part)
        for piece in re.split(r" ?\n ?", _CUT.sub("\n", text)):
            if words := piece.split():
                out.append(words)
    return out


def clauses(tokens: list[str]) -> list[list[str]]:
    """The clauses of one order after another."""
    out: list[list[str]] = []
    for part in _split(tokens, ","):
        at = 0
        for i, word in enumerate(part):
            if word in ("and", "then"):
                out.append(part[at:i])
                at = i + 1
        out.append(part[at:])
    return [part for part in out if part]


def _split(tokens: list[str], stop: str) -> Iterator[list[str]]:
    part: list[str] = []
    for token in [*tokens, stop]:
        if token != stop:
            part.append(token)
        elif part:
            yield part
            part = []
