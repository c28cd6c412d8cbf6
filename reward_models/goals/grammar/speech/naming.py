"""The things of a sentence, on cards with and without a gripper.

Noun phrases become ``#name``, whoever acts becomes HAND. A phrase that may be two things, or none,
ends the reading: what is left of it in the sentence no pattern knows.
"""

from __future__ import annotations

import re

from reward_models.base import TaskCard
from reward_models.goals.grammar.lexicon import COLOUR_WORDS, COLOURS, HANDS, SHADES
from reward_models.goals.grammar.words import split_words
from reward_models.goals.predicates import role

_SLANG = {
    "wanna": "want to", "gonna": "going to", "gotta": "got to", "gimme": "give me",
    "lemme": "let me", "lets": "let us", "pls": "please", "plz": "please", "plse": "please",
    "thx": "thanks", "ya": "you", "u": "you", "lil": "little", "robo": "robot", "bot": "robot",
    "midair": "mid air", "righthand": "right hand", "lefthand": "left hand", "ontop": "on top",
    "plox": "please", "y'all": "you", "thankyou": "thank you", "can't": "can not",
}  # fmt: skip
_THE = frozenset("the a an".split())
_MINE = frozenset("this that these those my our your its his her their some".split())
_LOOKS = frozenset(  # what a thing may be called besides its colour; it tells no two things apart
    "little small nice lovely cute dear old bright whole good pretty poor sweet trusty".split()
)
_VAGUE = frozenset("thing one object item piece guy fellow thingy toy shape".split())
_ACTORS = frozenset(  # other names of a body that moves itself
    "robot machine creature critter animal thing body guy fellow character agent figure model bot "
    "simulation athlete person man woman human dude buddy puppet beast bug insect spider crawler "
    "cat kitty soldier".split()
)
_OWN_ACTORS = {  # and of some bodies only
    "humanoid": "human man woman person figure humanoid guy body character human~figure "
    "human~body human~being android human~robot",
    "ant": "ant spider bug insect critter quadruped four~legged~robot crawler spider~robot "
    "four~legged~creature four~legged~thing little~ant ant~robot four~legged~ant",
    "cheetah": "cheetah cat kitty big~cat kitty~cat half~cheetah feline leopard robot~cheetah",
    "hopper": "hopper bouncer jumper monopod hopping~robot one~legged~robot pogo~stick "
    "one~legged~hopper one~legged~thing hopper~robot",
    "walker": "walker biped two~legged~robot walking~robot two~legged~walker two~legged~thing "
    "walker~robot bipedal~robot",
    "swimmer": "swimmer snake worm eel fish swimming~robot snake~robot swimmer~robot",
    "pole": "pole pendulum stick rod inverted~pendulum beam broomstick broom mast bar",
    "fingertip": "fingertip tip finger arm robot robot~arm end~of~arm tip~of~arm arm~tip hand "
    "finger~tip arm~end end~effector tip~of~finger end~of~robot~arm reacher robotic~arm "
    "end~of~finger tip~of~robot tip~of~robot~arm arm~'s~tip robot~'s~tip point~of~finger "
    "robot~'s~fingertip fingertip~of~arm arm~'s~fingertip fingertip~of~robot end~of~reacher",
    "arm": "arm robot tip hand robot~arm pusher arm~tip robotic~arm gripper end~effector "
    "tip~of~arm robot~hand finger",
}
_THINGS = {  # kind -> other names
    "cube": "cube block box brick",
    "target": "target goal disc disk spot mark pad marker circle zone goal~spot target~spot "
    "target~area target~zone target~position target~location goal~position goal~area goal~zone "
    "target~disc target~pad target~mark target~marker landing~pad target~circle target~point "
    "goal~marker goal~location target~place goal~disc goal~pad goal~mark dot marked~disc "
    "marked~disk marked~spot marked~place marked~position marked~area marked~circle marked~point "
    "marked~location marked~zone marked~target",
    "disc": "disc disk goal target spot circle goal~disc target~disc mark marker pad target~spot "
    "goal~spot target~area goal~area dot target~zone goal~zone target~position goal~position",
    "ball": "ball sphere orb globe",
    "cylinder": "cylinder can tube puck",
    "button": "button switch knob push~button pushbutton buzzer press~button",
    "drawer": "drawer tray compartment drawer~box",
    "handle": "handle bar grip drawer~handle knob",
    "peg": "peg pin dowel rod stick",
    "hole": "hole slot opening socket peg~hole block hole~of~block hole~in~block "
    "hole~in~the~block block~'s~hole block~hole block~with~hole block~with~the~hole",
}
_GOAL_BALL = (
    "target ball goal point sphere spot dot marker target~ball goal~ball target~point "
    "target~sphere target~spot mark goal~point circle target~position goal~position target~marker"
)
_FIXED = frozenset("target disc hole drawer handle button".split())  # nobody carries these
_VERBISH = frozenset(  # nouns that are orders too: "grip the cube", "slot it in"
    "stick grip bar slot pin opening can tip touch tool box block mark spot pad point ball circle "
    "arm press finger hand switch goal target robot".split()
)
_HOW = frozenset("open opened closed shut close pressed press lifted raised inserted".split())
_BEFORE_NOUN = frozenset(
    "of above over from to beside near on onto in into inside at by with under against and below "
    "beneath atop upon within touch touching".split()
)


def plain_words(text: str) -> list[str]:
    """Lower-case words, articles kept, commas for every stop."""
    # "#" marks what a word was found to name; nobody's sentence may say it.
    words = ["?" if w[0] == "#" else w for w in split_words(text)]
    words = [w for i, w in enumerate(words) if not (w in _THE and i and words[i - 1] == "of")]
    return [part for word in words for part in _SLANG.get(word, word).split()]


class Naming:
    """What may be called what on one card."""

    def __init__(self, card: TaskCard) -> None:
        hands = [e for e in card.entities if role(e) == "gripper"]
        bodies = [e for e in card.entities if role(e) == "body"]
        self.actor = (hands or bodies)[0].name if len(hands or bodies) == 1 else ""
        self.things = [e for e in card.entities if role(e) == "object"]
        self.colour = {e.name: " ".join(split_words(e.colour)) for e in card.entities}
        self.nouns: dict[tuple[str, ...], set[str]] = {}
        for entity in self.things:
            extra = _GOAL_BALL if bodies and entity.kind == "ball" else _THINGS.get(entity.kind, "")
            names = [split_words(n) for n in (entity.name, entity.kind, *entity.aliases)]
            for key in (*names, *(tuple(n.split("~")) for n in extra.split())):
                self.nouns.setdefault(key, set()).add(entity.name)
        actor = card.entity(self.actor) if self.actor else None
        called = [split_words(n) for n in (actor.name, *actor.aliases)] if actor else []
        called += HANDS if hands else ()
        called += [tuple(n.split("~")) for n in _OWN_ACTORS.get(self.actor, "").split()]
        if not hands and not self.things and self.actor != "pole":
            called += [(n,) for n in _ACTORS - {"leg"}]
        taken = {"leg"} if actor and actor.name == "hopper" else set()
        for key in called:
            if key not in self.nouns and not taken & set(key):
                self.nouns[key] = {"HAND"}
        if not hands and len(self.things) == 1:
            self.nouns[("thing",)] = {"HAND"}
        loose = {e.name for e in self.things if e.kind not in _FIXED}
        if len(loose) == 1 and not taken:
            self.nouns.setdefault(("object",), loose)
            self.nouns.setdefault(("item",), loose)
        self.longest = max(map(len, self.nouns), default=1)
        self.colours = COLOURS | set(self.colour.values()) - {""}

    def read(self, words: list[str]) -> list[str] | None:
        """The words with things as ``#name``, without articles; None where one is not certain."""
        if _HANDING.search(" ".join(words)):
            return None
        shades = {w for w in words if w in SHADES}
        words = ["grey" if w == "gray" else SHADES.get(w, w) for w in words]
        self.shaded = bool(shades)
        out: list[str] = []
        i = 0
        while i < len(words):
            found = self._phrase(words, i)
            if found is None:
                return None
            name, end = found
            if name:
                out.append(name)
            elif words[i] not in _THE or self._state_of(words, i + 1):
                out.append(words[i])  # "go to the open drawer": how it is, and no order
            i = end
        return _joined(out)

    def _state_of(self, words: list[str], i: int) -> bool:
        """Whether a word tells of the thing named after it how it is."""
        return (
            words[i - 1] == "the"
            and words[i : i + 1] != []
            and words[i] in _HOW
            and bool(self._noun(words, i + 1))
        )

    def _phrase(self, words: list[str], start: int) -> tuple[str, int] | None:
        """The thing named from here on and where its name ends; '' where none is."""
        i, colour, certain = start, "", False
        while i < len(words) and words[i] in _THE | _MINE:
            i, certain = i + 1, True
        while i < len(words):
            word = words[i]
            if word in self.colours and not colour and not self._noun(words, i):
                colour, certain = word, True
            elif word in COLOUR_WORDS and colour:
                pass
            elif word in _LOOKS and self._noun_ahead(words, i):
                certain = True
            else:
                break
            i += 1
        key = self._noun(words, i)
        if not key and colour and i < len(words) and words[i] in _VAGUE:
            return self._chosen(set(self.colour), colour, i + 1)
        if not key:
            if not colour:
                return "", start + 1
            following = words[i] if i < len(words) else ","
            named = words[start] in self.colours and not self.shaded
            if following in _PLAIN_AFTER and named:  # "red on blue"
                return self._chosen(set(self.colour), colour, i)
            return None
        if not certain and len(key) == 1 and key[0] in _VERBISH and self._order(words, i, start):
            return "", start + 1
        end = i + len(key)
        names = self.nouns[key]
        if end < len(words) and words[end] in _VAGUE and words[end] != "piece":
            end += 1  # "the spider thing"
        if not colour:
            colour, end = self._colour_after(words, end)
        if names == {"HAND"}:
            own = self.colour.get(self.actor, "")
            return ("HAND", end) if not colour or colour == own else None
        return self._chosen(names, colour, end)

    def _order(self, words: list[str], i: int, start: int) -> bool:
        """Whether a word that is also a verb is one here."""
        before = words[start - 1] if start else ""
        after = words[i + 1] if i + 1 < len(words) else ""
        if before in _BEFORE_NOUN and before not in ("to", "and"):
            return False
        follows = after in _THE | _MINE | {"it", "down", "up", "on"} or after in self.colours
        return follows or bool(self._noun(words, i + 1)) and before != "the"

    def _chosen(self, names: set[str], colour: str, end: int) -> tuple[str, int] | None:
        things = {e.name for e in self.things}
        fits = [n for n in names & things if not colour or self.colour[n] == colour]
        return (f"#{fits[0]}", end) if len(fits) == 1 else None

    def _noun(self, words: list[str], i: int) -> tuple[str, ...]:
        for n in range(min(self.longest, len(words) - i), 0, -1):
            if (key := tuple(words[i : i + n])) in self.nouns:
                return key
            bare = tuple(w for w in words[i : i + n] if w not in _THE)
            if bare in self.nouns and bare and words[i] not in _THE and len(bare) == n:
                return bare
        return ()

    def _noun_ahead(self, words: list[str], i: int) -> bool:
        """Whether looks and colours from here on lead to a noun."""
        while i < len(words) and words[i] in _LOOKS | self.colours | COLOUR_WORDS:
            i += 1
        return bool(self._noun(words, i)) or (i < len(words) and words[i] in _VAGUE)

    def _colour_after(self, words: list[str], end: int) -> tuple[str, int]:
        """ "of red", "of green color", "that is red", "in red", "coloured red"."""
        rest = " ".join(words[end : end + 4]) + " "
        shades = "|".join(map(re.escape, self.colours))
        said = "coloured|colored|colour|color"
        for pattern in (
            rf"(?:that|which) is (?:{said} )?({shades}) (?:(?:{said}) )?",
            rf"(?:of|in|with) (?:the )?(?:(?:{said}) )?({shades}) (?:(?:{said}) )?(?!\w+ \w+ one)",
            rf"(?:{said}) ({shades}) ",
        ):
            if match := re.match(pattern, rest):
                after = words[end + len(match[0].split()) :][:1]
                if after and (after[0] in _VAGUE or self._noun(after, 0)):
                    continue  # "the cube in green drawer": another thing's
                return match[1], end + len(match[0].split())
        return "", end


# "hand over the ball", "tip over the can": verbs, unless something stands before them.
_HANDING = re.compile(
    r"(?<!the )(?<!a )(?<!your )(?<!its )(?<!arm )(?<!finger )(?<!robot )(?<!s )(?<!r )"
    r"\b(?:hand|tip) over\b"
)
_PLAIN_AFTER = frozenset(
    "on onto upon atop over above under below beneath underneath at and , goes is should must be "
    "to up in stacked placed sits rests first top bottom please supports carries ends".split()
)


def _joined(tokens: list[str]) -> list[str]:
    """ "the hand of the robot", "the robot's hand": one that acts."""
    s = " ".join(tokens)
    s = re.sub(r"(?<!\S)HAND(?: (?:'s|of|on))? HAND(?!\S)", "HAND", s)
    s = re.sub(r"(?<!\S)(?:end|part|tip|edge) of HAND(?!\S)", "HAND", s)
    s = re.sub(r"(?<!\S)(#drawer)(?: 's| of)? #handle(?!\S)", "#handle", s)
    s = re.sub(r"(?<!\S)#handle (?:of|on|'s) #drawer(?!\S)", "#handle", s)
    return s.split()
