"""Which arms there are, and all that is particular to one: a file for each, loaded when asked for.

A new arm is its model (sims/robots), its driver, its emulator and a file here that names the two;
its name in ``ARMS`` is all that changes elsewhere. Commands offer it, and the tests of the drivers'
contract run on it (tests/test_arms.py sees to it that nothing else names an arm).

May import: nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sims.utils.did_you_mean import unknown_name_error

ARMS = ("so101", "ur5e", "koch", "fr3")


@dataclass(frozen=True, kw_only=True)
class ArmSpec:
    """How an arm is reached, driven and emulated; classes are named as module:class."""

    driver: str
    emulator: str
    client: str  # module of the vendor's client, which the driver imports
    extra: str  # extra of robo-rl that installs that client
    found_by: Literal["port", "host"]
    apart: bool = False  # its client blocks the interpreter: the emulator needs another process
    calibrated: bool = False  # needs calibration by hand: robo-rl calibrate NAME
    settings: tuple[str, ...] = ()  # deploy options that its driver takes
    emulator_settings: tuple[str, ...] = ()  # arguments of its emulator
    unhurried: Mapping[str, float] = field(default_factory=dict)  # the driver's, where time waits
    paced: Mapping[str, float] = field(default_factory=dict)  # the driver's, within a period
    views: tuple[float, float] = (0.0, 1.2)  # rad from the front, of two cameras that see it work


def spec(name: str) -> ArmSpec:
    """The arm called ``name``; ValueError lists the known names."""
    if name not in ARMS:
        raise unknown_name_error(f"unknown arm {name!r}", name, ARMS)
    return importlib.import_module(f"{__name__}.{name}").ARM


def load(path: str) -> Any:
    """The class that ``path`` names."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)
