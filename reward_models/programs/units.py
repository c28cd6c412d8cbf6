"""Physical units as exponents of base units, for "adds metres to radians" to be a finding.

A number written in a program has no unit of its own (``None``): it takes the one it is used with.
A radian counts as a plain number where an angle meets one, as it does in physics.
"""

from __future__ import annotations

import re

Unit = tuple[tuple[str, float], ...] | None  # (("m", 1.0), ("s", -1.0)), sorted; None: any

PLAIN: Unit = ()
ANGLE: Unit = (("rad", 1.0),)
_PART = re.compile(r"([A-Za-z%]+)(?:\^?(-?\d+))?")


def parse_unit(text: str) -> Unit:
    """Reads a unit.

    Args:
        text: ``"m/s"``, ``"N m"``, ``"m/s^2"``, or ``"1"`` for a plain number.

    Returns:
        The unit; None, which fits any, for a mixed one such as ``"m, rad"``.

    Raises:
        ValueError: The text has something else than names and exponents.
    """
    if "," in text:
        return None
    total: dict[str, float] = {}
    for index, side in enumerate(text.replace("*", " ").split("/")):
        for word in side.split():
            if word == "1":
                continue
            match = _PART.fullmatch(word)
            if match is None:
                raise ValueError(f"unit {text!r}: expected names such as m/s^2, got {word!r}")
            power = float(match[2] or 1) * (-1 if index else 1)
            total[match[1]] = total.get(match[1], 0.0) + power
    return _unit(total)


def _unit(total: dict[str, float]) -> Unit:
    return tuple(sorted((name, power) for name, power in total.items() if power))


def product_unit(a: Unit, b: Unit, sign: float = 1.0) -> Unit:
    """Returns the unit of a product; of a quotient with ``sign`` -1."""
    if a is None or b is None:
        return None
    total = dict(a)
    for name, power in b:
        total[name] = total.get(name, 0.0) + sign * power
    return _unit(total)


def power_unit(a: Unit, exponent: float) -> Unit:
    """Returns the unit of a power."""
    return None if a is None else _unit({name: p * exponent for name, p in a})


def compatible(a: Unit, b: Unit) -> bool:
    """Returns whether two quantities may be added or compared."""
    return a is None or b is None or without_angle(a) == without_angle(b)


def without_angle(a: Unit) -> Unit:
    """Returns a unit without its radians, which count as plain numbers."""
    return None if a is None else tuple((name, p) for name, p in a if name != "rad")


def common_unit(a: Unit, b: Unit) -> Unit:
    """Returns the unit of a sum of compatible quantities."""
    return b if a is None or (not a and b) else a


def spell_unit(unit: Unit) -> str:
    """Returns a unit as text, such as ``"m/s"``; ``"a plain number"`` without one."""
    if unit is None:
        return "any"
    if not unit:
        return "a plain number"

    def side(sign: int) -> str:
        return " ".join(
            name if abs(p) == 1 else f"{name}^{abs(p):g}" for name, p in unit if p * sign > 0
        )

    return side(1) + (f"/{side(-1)}" if side(-1) else "") if side(1) else f"1/{side(-1)}"
