"""Numbers with units, as people say them: "two inches", "half a second", "at least 5 cm"."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reward_models.goals.grammar.patterns import PhraseTable

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBERS = {word: float(i) for i, word in enumerate(_ONES)}
NUMBERS |= {word: 10.0 * i for i, word in enumerate(_TENS, 2)}
PARTS = {
    "half": 1 / 2,
    "third": 1 / 3,
    "quarter": 1 / 4,
    "fifth": 1 / 5,
    "tenth": 1 / 10,
    "sixth": 1 / 6,
    "eighth": 1 / 8,
}
_FRACTIONS = {*PARTS.values(), 3 / 4, 2 / 3}
_LENGTHS = {
    1.0: "m metre metres meter meters",
    0.1: "dm decimetre decimetres decimeter decimeters",
    0.01: "cm cms centimetre centimetres centimeter centimeters",
    0.001: "mm millimetre millimetres millimeter millimeters",
    0.0254: "inch inches in",
    0.3048: "foot feet",
}
_TIMES = {
    1.0: "s sec secs second seconds",
    0.001: "ms millisecond milliseconds",
    60.0: "min mins minute minutes",
}
_ANGLES = {
    math.pi / 180: "degree degrees deg \u00b0",
    1.0: "rad radian radians",
    2 * math.pi: "turn turns revolution revolutions",
}
_SHARES = {0.01: "% percent"}
_SPEEDS = {1.0: "m/s", 0.01: "cm/s", 0.001: "mm/s", 1 / 3.6: "km/h"}
_SYSTEM = {"m": _LENGTHS, "s": _TIMES, "rad": _ANGLES, "1": _SHARES, "m/s": _SPEEDS}
UNITS = {
    (word,): (unit, value)
    for unit, table in _SYSTEM.items()
    for value, words in table.items()
    for word in words.split()
} | {("per", "cent"): ("1", 0.01)}
for _word, (_unit, _value) in [(w, u) for (w, *_), u in list(UNITS.items()) if u[0] == "m"]:
    for _per in ("per", "a", "each"):
        UNITS[_word, _per, "second"] = ("m/s", _value)
for _word in "km kilometre kilometres kilometer kilometers".split():
    for _per in ("per", "an", "a"):
        UNITS[_word, _per, "hour"] = ("m/s", 1 / 3.6)
_FULL = {(w,) for w in "full whole entire complete consecutive uninterrupted".split()}
_SECONDS = {(w,) for words in _TIMES.values() for w in words.split()}
_UNIT_WORDS = {word for unit in UNITS for word in unit}
_NO = "(no|not|not any|never)"
_WHAT = "distance|gap|clearance|separation|spacing|height|depth|speed|velocity|time|duration"
LEAST = PhraseTable(
    f"at [the] [very] least|{_NO} less than|more than|greater than|[a] minimum [{_WHAT}] "
    f"[of]|min [{_WHAT}] [of]|{_NO} "
    f"(under|below)|{_NO} fewer than|(farther|further) [away] "
    f"than|(higher|faster|quicker|longer|larger|"
    f"bigger) than|{_NO} (closer|nearer|lower|slower|smaller|shorter|less) than|over|> [=]|\u2265|"
    "(above|exceeding)"
)
MOST = PhraseTable(
    f"at [the] [very] most|[a] (time|speed|distance) limit [of|is]|[a] deadline [of|is]|{_NO} "
    f"more than|less than|fewer than|[a] maximum [{_WHAT}] [of]|max [{_WHAT}] [of]|under|"
    f"(closer|nearer|lower|slower|smaller|shorter) than|{_NO} (farther|further) [away] than|{_NO} "
    "(higher|faster|quicker|longer|larger|greater|bigger) than|up to|below|< [=]|\u2264|"
    f"{_NO} (over|above|exceeding)"
)
ABOUT = PhraseTable(
    "about|around|roughly|approximately|approx|circa|exactly|precisely|just|a distance of|~"
)
_OR_MORE = PhraseTable(
    "or (more|farther|further|higher|faster|longer)|at [the] [very] least|at a minimum|minimum|min"
)
_OR_LESS = PhraseTable(
    "or (less|fewer|closer|nearer|lower|slower)|at [the] [very] most|at a maximum|"
    "maximum|max|tops|at latest"
)
_SIGNS = PhraseTable("give or take|plus or minus|plus minus|\u00b1|+-|+/-")
GIVE_OR_TAKE = PhraseTable(
    "give or take|plus or minus|plus minus|\u00b1|+-|+/-|[with|within|and] [a] tolerance [of] "
    "[+/-|\u00b1]|to within"
)
_BUT = PhraseTable("[,] (but|and) [also]")
WORDS = frozenset(
    [*NUMBERS, *PARTS, "hundred", "halfway", "halves", "quarters", "thirds", "couple"]
) | {w for unit in UNITS for w in unit}


@dataclass(frozen=True)
class Quantity:
    """A quantity in SI units with its bounds; equal bounds: just that."""

    unit: str
    least: float | None
    most: float | None
    tolerance: float | None = None
    just: bool = False  # a number alone, without a word that says which way it is a bound

    @property
    def value(self) -> float:
        """The number of one that is exact."""
        assert self.least is not None
        return self.least

    def at_least(self) -> Quantity:
        """Returns this quantity as a lower bound."""
        return replace(self, most=None, just=False)

    def at_most(self) -> Quantity:
        """Returns this quantity as an upper bound."""
        return Quantity(self.unit, None, self.most)


Words = tuple[str, ...]


def numbers_at(words: Words, at: int) -> Iterator[tuple[float, int]]:
    """Yields the numbers at ``at``, whole or broken, in digits or words, with their ends."""
    word = words[at] if at < len(words) else ""
    following = words[at + 1] if at + 1 < len(words) else ""
    if word and (word[0].isdigit() or (word[0] == "." and len(word) > 1)):
        yield float(word), at + 1
        over = at + 1 if "/" in words[at : at + 2] else at + 2  # "1/2", "2 1/2"
        if words[over : over + 1] == ("/",) and words[over + 1 : over + 2]:
            above, below = words[over - 1], words[over + 1]
            if above.isdigit() and below.isdigit() and 0 < int(above) < int(below):
                yield (float(word) if over > at + 1 else 0.0) + int(above) / int(below), over + 2
    elif word in NUMBERS:
        value, end = NUMBERS[word], at + 1
        if word in _TENS and 0 < NUMBERS.get(following, 99) < 10:
            value, end = value + NUMBERS[following], at + 2
        if words[end : end + 1] == ("hundred",):
            value, end = value * 100, end + 1
        yield value, end
        if words[end : end + 3] == ("and", "a", "half"):
            yield value + 0.5, end + 3
        if words[end : end + 1] == ("point",) and words[end + 1 : end + 2]:
            if NUMBERS.get(words[end + 1], 99) < 10:
                yield value + NUMBERS[words[end + 1]] / 10, end + 2
        part = words[end].removesuffix("s") if end < len(words) else ""
        if part in PARTS and value * PARTS[part] in _FRACTIONS:  # "three quarters", "one third"
            yield value * PARTS[part], end + 1
    elif word in ("a", "an"):
        if following == "hundred":
            yield 100.0, at + 2
        elif following in PARTS:
            yield PARTS[following], at + 2
        else:
            yield 1.0, at + 1
    elif word in PARTS and word in ("half", "quarter"):
        yield PARTS[word], at + 1


def unit_quantities(words: Words, at: int) -> Iterator[tuple[str, float, int]]:
    """Yields (unit, value in SI, end): "5 cm", "half a second", "a quarter of a metre", "a metre
    and a half"."""
    for value, end in numbers_at(words, at):
        if value in _FRACTIONS:  # "a quarter of a metre"
            end += words[end : end + 1] == ("of",)
            end += words[end : end + 1] in (("a",), ("an",))
        end += words[end : end + 1] in _FULL and words[end + 1 : end + 2] in _SECONDS
        for unit, (kind, one) in UNITS.items():
            if words[end : end + len(unit)] == unit:
                if any(len(u) > len(unit) and words[end : end + len(u)] == u for u in UNITS):
                    continue
                after = end + len(unit)
                yield kind, value * one, after
                if words[after : after + 3] == ("and", "a", "half"):
                    yield kind, (value + 0.5) * one, after + 3
        if end > at and words[end : end + 2] == ("right", "angle"):
            yield "rad", value * math.pi / 2, end + 2


def shares_at(words: Words, at: int) -> Iterator[tuple[Quantity, int]]:
    """Yields parts of a whole, which need no unit, with their ends: "halfway", "a third", "three
    quarters"."""
    for phrase in (("halfway",), ("half", "way"), ("half",)):
        if words[at : at + len(phrase)] == phrase:
            yield Quantity("1", 0.5, 0.5, just=True), at + len(phrase)
    for value, end in numbers_at(words, at):
        if end > at and value in _FRACTIONS and words[at] != "half":
            yield Quantity("1", value, value, just=True), end
            if words[end : end + 2] == ("of", "way"):
                yield Quantity("1", value, value, just=True), end + 2


def quantities_at(words: Words, at: int) -> Iterator[tuple[Quantity, int]]:
    """Yields quantities with their bounds, and their ends: "at least 5 cm", "5 cm or more", "five
    to ten centimetres"."""
    for found, end in _bounded(words, at):
        yield found, end
        yield from with_tolerance(found, words, end)


def with_tolerance(found: Quantity, words: Words, at: int) -> Iterator[tuple[Quantity, int]]:
    """Yields a quantity with the tolerance that stands at ``at``, and its end: "give or take 1
    cm"."""
    start = at + (words[at : at + 1] == (",",))
    if found.just and found.tolerance is None and words[at - 1] not in _UNIT_WORDS:
        yield from _one_sided(found, words, at)  # "5 cm left of it or more"
    for after in GIVE_OR_TAKE.ends(words, start) if found.just else ():
        for unit, value, last in unit_quantities(words, after):
            if unit == found.unit and found.tolerance is None:
                yield replace(found, tolerance=value), last


def _one_sided(found: Quantity, words: Words, at: int) -> Iterator[tuple[Quantity, int]]:
    """ "or more", "at most" behind a number."""
    yield from ((found.at_least(), end) for end in _OR_MORE.ends(words, at))
    yield from ((found.at_most(), end) for end in _OR_LESS.ends(words, at))


def _bounded(words: Words, at: int) -> Iterator[tuple[Quantity, int]]:
    for found, end in _once(words, at):
        yield found, end
        for after in _BUT.ends(words, end):  # "at least 5 cm but no more than 10 cm"
            for other, last in _once(words, after):
                low, high = (found, other) if found.most is None else (other, found)
                if (low.unit, low.most, high.least) == (high.unit, None, None):
                    if low.least is not None and high.most is not None and low.least < high.most:
                        yield Quantity(low.unit, low.least, high.most), last


def _once(words: Words, at: int) -> Iterator[tuple[Quantity, int]]:
    for end in ABOUT.ends(words, at):
        for found, last in _once(words, end):
            if found.just:
                yield found, last
    for end in LEAST.ends(words, at):
        for unit, value, last in unit_quantities(words, end):
            yield Quantity(unit, value, None), last
    for end in MOST.ends(words, at):
        for unit, value, last in unit_quantities(words, end):
            yield Quantity(unit, None, value), last
    for unit, value, end in unit_quantities(words, at):
        just = Quantity(unit, value, value, just=True)
        yield just, end
        yield from _one_sided(just, words, end)
    for value, end in numbers_at(words, at):  # "5 \u00b1 1 cm"
        for after in _SIGNS.ends(words, end):
            for unit, off, last in unit_quantities(words, after):
                for plain, ended in numbers_at(words, after):
                    if ended < last and plain:
                        one = off / plain
                        yield Quantity(unit, value * one, value * one, off, just=True), last
    yield from _range(words, at)


def _range(words: Words, at: int) -> Iterator[tuple[Quantity, int]]:
    """ "five to ten centimetres", "between 5 and 10 cm", "from 5 cm to 10 cm"."""
    opening = words[at] if words[at : at + 1] in (("between",), ("from",)) else ""
    start = at + 1 if opening else at
    joiner = "and" if opening == "between" else "to"
    lows = [(None, value, end) for value, end in numbers_at(words, start)]
    lows += [(unit, value, end) for unit, value, end in unit_quantities(words, start)]
    for unit, low, end in lows:
        if words[end : end + 1] != (joiner,):
            continue
        for kind, high, last in unit_quantities(words, end + 1):
            if unit not in (None, kind):
                continue
            # one unit for both: the first number is scaled as the second is
            plain = [v for v, e in numbers_at(words, end + 1) if e < last]
            scale = high / plain[-1] if plain and plain[-1] else 1.0
            least = low if unit else low * scale
            if least < high:
                yield Quantity(kind, least, high), last
