"""What templates are made of: the lines of a program as they are collected, and its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from reward_models.base import CardEntity, CardSignal, TaskCard
from reward_models.goals.formula import Formula
from reward_models.goals.margins import signal_arguments

# What a template answers with: how far it holds (0 to 1), what is left (0 where it holds with
# margin; empty: it has no end), and its terms {name: (weight, text that is 1 at its best)}.
Realised = tuple[str, str, dict[str, tuple[float, str]]]


class NoTemplate(ValueError):
    """A formula that the templates cannot realise."""


def no_template(formula: Formula, reason: str) -> NoTemplate:
    """Returns the error of a formula that the templates cannot realise for that reason."""
    return NoTemplate(
        f"no reward template for {formula}: {reason}; write its reward code by hand or with a "
        "language model (robo-rl reward write --writer llm)"
    )


@dataclass
class ProgramLines:
    """Lines of a program as they are collected."""

    signals: dict[str, None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    components: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def let(self, stem: str, expression: str) -> str:
        """Assigns an expression to a new name, and returns the name."""
        self.count += 1
        name = f"{stem}_{self.count}"
        self.lines.append(f"    {name} = {expression}")
        return name

    def say(self, words: str) -> None:
        """Adds a comment."""
        self.lines.append(f"    # {words}")

    def read(self, entity: CardEntity) -> str:
        """Returns the pose signal of an entity, which becomes an argument of the program."""
        self.signals[entity.pose_signal] = None
        return entity.pose_signal

    def reading(self, text: str, card: TaskCard) -> str:
        """Returns ``text``, and makes its signals arguments of the program."""
        self.signals |= dict.fromkeys(signal_arguments([text], card))
        return text

    def before(self, entity: CardEntity) -> str:
        """Returns the position of an entity before the action."""
        self.signals[name := f"prev_{entity.pose_signal}"] = None
        return name

    def joint(self, signal: CardSignal, before: bool = False) -> str:
        """Returns the only number of a signal, such as a joint's."""
        self.signals[name := f"prev_{signal.name}" if before else signal.name] = None
        return f"{name}[0]"

    def vector(self, signal: CardSignal) -> str:
        """Returns all numbers of a signal as a vector."""
        self.signals[signal.name] = None
        return signal.name

    def text(self) -> str:
        """Returns the whole program."""
        body = "\n".join(self.lines)
        entries = "".join(f'        "{k}": {v},\n' for k, v in self.components.items())
        return f"def reward({', '.join(self.signals)}):\n{body}\n    return {{\n{entries}    }}\n"


@dataclass(frozen=True)
class TemplateNumbers:
    """Every number of the templates; what a search may change. Lengths in m."""

    wide: float = 0.15  # slope that leads there from afar
    tight: float = 0.03  # slope at the end
    wide_share: float = 0.5
    bonus: float = 0.5  # where everything holds
    behind: float = 0.045  # from an object's centre to where it is pushed from
    low: float = 0.016  # height of the tip that pushes
    behind_scale: float = 0.05
    behind_gate: float = 0.10  # how exactly the gripper must stand behind for a push to count
    push_scale: float = 0.07
    push_weight: float = 1.5
    room: float = 0.006  # within the tolerances, where a push is to end
    behind_weight: float = 0.5
    ungated: float = 0.3  # share of a push's pay that needs no gripper behind
    reach_weight: float = 0.5  # the hand where it can handle a thing
    close_weight: float = 0.3  # the jaws around it
    move_weight: float = 1.5  # the thing's own way to its goal, or the body's
    place_weight: float = 3.0  # what is carried let down, and let go of
    pace: float = 2.0  # m/s of a body that goes somewhere, above which more pays nothing
    upright_weight: float = 0.5  # a body that does not fall
    effort: float = 0.0  # weight of the cost of actions

    def mutated(self, rng: np.random.Generator, spread: float = 0.35) -> TemplateNumbers:
        """Returns a copy in which about half of the numbers are scaled at random (log-normal)."""
        changed = {
            f.name: float(f"{getattr(self, f.name) * np.exp(rng.normal(0.0, spread)):.3g}")
            for f in fields(self)
            if rng.random() < 0.5
        }
        for share in ("wide_share", "ungated"):
            if share in changed:
                changed[share] = min(changed[share], 1.0)
        return replace(self, **changed)


def rounded(value: float) -> str:
    """Returns a number as programs write it."""
    return repr(round(float(value), 6))


def signal_of(card: TaskCard, name: str) -> CardSignal:
    """Returns the card's signal of that name.

    Raises:
        NoTemplate: The card has no such signal.
    """
    for signal in card.signals:
        if signal.name == name:
            return signal
    raise NoTemplate(f"task {card.task!r} has no signal {name!r}, which the template reads")
