"""From what a person typed to what is trained and what is judged.

The sentence is read by the grammar into a formula. The formula's captions make the reward; the
ground truth is the task's own goal whose sentence reads to the same formula, or there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import sims
from reward_models.base import TaskCard, from_dict
from reward_models.goals import FormulaError, Refusal, fill, parse, read
from reward_models.goals.captions import Plan, stages, visible_in_frame
from reward_models.goals.formula import Formula, atoms, check
from reward_models.goals.margins import NoMargin
from reward_models.goals.text import to_sentence
from robo_rl.goals.goal_task import GoalTask, make_goal_task, with_formula_goal
from sims.core.multi_goal import ALL, ANY, MultiGoalTask
from sims.core.task import Task

OF_TASK = ("robot", "things", "scene")  # of a config: what its task is made of, where it says so


def task_of_config(config: Mapping[str, Any], **more: Any) -> Task[Any]:
    """The task that a config means, with the arm and the things on its table."""
    given = {name: config[name] for name in OF_TASK if config.get(name)}
    return sims.make_task(config["task"], **given, **more)


@dataclass(frozen=True)
class Offer:
    """A suggestion for a sentence that could not be parsed."""

    understood: str  # the interpretation as a sentence with numbers
    option: str  # --goal if a sentence expresses it, else --formula
    value: str


class NotRead(ValueError):
    """A sentence was not read, and ``why``; ``offers`` are what it may have meant, the likeliest
    first."""

    def __init__(self, goal: ReadGoal, before: str = "") -> None:
        self.said, self.goal, self.before = goal.text, goal, before
        self.offer(goal.offers())

    def offer(self, offers: tuple[Offer, ...]) -> None:
        """Replaces the suggested goals, and the message that lists them."""
        goal, before, self.offers = self.goal, self.before, offers
        assert goal.refusal is not None
        why = goal.refusal.why
        self.why = f"{before}{why}" if why.endswith("?") else f"{before}{why}."
        ways = "; ".join(f"{i}: {offer.understood}" for i, offer in enumerate(self.offers, 1))
        # What may be meant says more than all that could be said.
        message = f"{self.why} Did you mean {ways}? Write one of these." if ways else self.why
        if not ways and goal.refusal.known:
            message = f"{message} Available: {shorten_list(goal.refusal.known.split('; '))}"
        self.args = (message,)


def shorten_list(sentences: Sequence[str], most: int = 5) -> str:
    """Returns ``sentences`` in one line, the first ``most`` of them and how many more there are."""
    more = len(sentences) - most
    told = "; ".join(sentences[:most])
    return f"{told}; and {more} more (robo-rl list tasks)" if more > 0 else told


@dataclass(frozen=True)
class ReadGoal:
    """A sentence as understood."""

    text: str
    formula: Formula | None  # None: not parsed (some rewards need no formula)
    refusal: Refusal | None  # why it was not parsed; None if it was
    key: str  # equivalent task goal, or formula data; empty: no success judge
    card: TaskCard

    def offers(self) -> tuple[Offer, ...]:
        """Returns up to three goals that a sentence that was not read may have meant."""
        if self.formula is not None:
            return ()
        from reward_models.goals.suggestions.proposer import load_shipped  # as heavy as the reader

        found = load_shipped().propose(self.text, self.card)
        return self.offered(found)

    def offered(self, formulas: Iterable[Formula]) -> tuple[Offer, ...]:
        """Returns each formula as an offer: a goal of the task, a sentence, or the formula."""
        return tuple(_offer(formula, self.card) for formula in formulas)

    @property
    def plan(self) -> Plan:
        """The atoms to reward, in order; NotRead when nothing was read."""
        if self.formula is None:
            raise NotRead(self)
        if actions := [str(a) for a in atoms(self.formula) if not visible_in_frame(a)]:
            raise ValueError(
                f"{self.text!r} asks for {', '.join(actions)}: an action cannot be seen in one "
                "frame; expected --reward task, offline or code:FILE"
            )
        return stages(self.formula, self.card)

    @property
    def understood(self) -> str:
        """The parsed goal as one sentence with its numbers; NotRead where it was not parsed."""
        if self.formula is None:
            raise NotRead(self)
        return to_sentence(fill(self.formula, self.card), self.card)

    @property
    def truth(self) -> str:
        """A sentence for people about how success will be judged."""
        if self.key.startswith("["):
            return f"judged by that: {self.understood}"
        if self.key:
            return f"judged by the ground truth of {self.key!r}"
        known = shorten_list([*self.card.goals.values()])
        return f"no ground truth for this sentence; available goals: {known}"


@dataclass(frozen=True, kw_only=True)
class StatedGoal:
    """The goal that a config states; its sentence is read when first needed, and only once."""

    task: str
    goal: str = ""  # a sentence, a key or ``any``; empty: the task's first goal, or ``formula``
    formula: str = ""
    robot: str = ""
    things: str = ""
    scene: str = ""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> StatedGoal:
        """The goal that ``config``, a run's or a command's options by name, states."""
        return cls(**{f.name: config[f.name] for f in fields(cls) if config.get(f.name)})

    @cached_property
    def plain_task(self) -> Task[Any]:
        """The task with its arm and things, before this goal is put to it."""
        return task_of_config(vars(self))

    @cached_property
    def read(self) -> ReadGoal:
        """The goal as read. FormulaError where a formula means nothing on the task."""
        task = self.plain_task
        if not (self.formula or self.goal == ANY):
            return read_goal(task, self.goal or next(iter(task.goals())))
        card = from_dict(task.card())
        if self.goal == ANY:
            return ReadGoal(ALL, None, None, ANY, card)
        formula = parse(self.formula)
        check(formula, card)
        return ReadGoal(self.formula, formula, None, "", card)

    @cached_property
    def judged(self) -> tuple[Task[Any], ReadGoal]:
        """The task with the goal's success judge if there is one, and the goal with its key."""
        if self.goal == ANY:
            return all_goals(self.plain_task)
        put = with_formula if self.formula else with_judge
        return put(self.plain_task, self.read)


def read_goal(task: Task[Any], text: str) -> ReadGoal:
    """Reads ``text`` against a task: a sentence, or the key of one of its goals."""
    return read_card_goal(from_dict(task.card()), text)


def read_card_goal(card: TaskCard, text: str) -> ReadGoal:
    """Reads ``text`` against a task's card: a sentence, or the key of one of its goals."""
    text = card.goals.get(text, text)
    formula, refusal = _read(text, card)
    meant, key = None if formula is None else _meant(formula, card), ""
    for name, sentence in card.goals.items():
        same = _plain(sentence) == _plain(text)
        if not same and meant is not None and (own := _read(sentence, card)[0]) is not None:
            same = meant == _meant(own, card)
        if same:
            key = name
            break
    return ReadGoal(text, formula, refusal, key, card)


def formula_goal(task: Task[Any], text: str) -> tuple[GoalTask, ReadGoal]:
    """The task with a goal that was written as a formula; FormulaError where it means nothing."""
    return with_formula(task, ReadGoal(text, parse(text), None, "", from_dict(task.card())))


def all_goals(task: Task[Any]) -> tuple[MultiGoalTask, ReadGoal]:
    """The task with all its goals, one an episode; ValueError where it has but one."""
    made = MultiGoalTask(inner=task)
    return made, ReadGoal(ALL, None, None, ANY, from_dict(made.card()))


def single_goal(task: Task[Any], text: str) -> MultiGoalTask:
    """A task with several goals at once, with that one alone which ``text``, a sentence or a key,
    means; ValueError where it has one goal, or not this one."""
    if not isinstance(task, MultiGoalTask):
        raise ValueError(
            f"this policy has one goal, {task.goal}: leave out --goal, or train with --goal {ANY}"
        )
    return replace(task, only=_own_goal(read_goal(task.inner, text)).key)


def known_goal(config: Mapping[str, Any], text: str) -> tuple[Task[Any], ReadGoal]:
    """The task that a config means, with a goal of its own, and that goal as read: the sentence or
    key ``text``, "" for the task's first. ValueError where it is no goal of the task's own."""
    task = task_of_config(config)
    goal = _own_goal(read_goal(task, text or next(iter(task.goals()))))
    return task_of_config(config, goal=goal.key), goal


def demonstrated_task(config: Mapping[str, Any], text: str) -> Task[Any]:
    """The task that a config means, to be shown by an expert or a person: ``known_goal``, or what
    no sentence says: ``any``, and a formula as data."""
    if text == ANY or text.startswith("["):
        return task_of_config(config, goal=text)
    return known_goal(config, text)[0]


def judged_goal(task: Task[Any], text: str) -> tuple[Task[Any], ReadGoal]:
    """``with_judge`` of the sentence or key ``text``."""
    return with_judge(task, read_goal(task, text))


def with_judge(task: Task[Any], goal: ReadGoal) -> tuple[Task[Any], ReadGoal]:
    """The task with the ground truth of a goal that was read on it, and the goal with its key.

    That is the task's own goal which means the same; else what the sentence was read as, with an
    account of it where the task's signals measure how far that is; else there is none.
    """
    if goal.key or goal.formula is None:
        return replace(task, goal=goal.key or task.goal), goal
    try:
        return with_formula(task, goal)
    except NoMargin:  # success can be told, and how far it is cannot
        made = with_formula_goal(task, goal.formula)
        return made, replace(goal, key=made.goal)
    except FormulaError:
        return task, goal


def _own_goal(goal: ReadGoal) -> ReadGoal:
    """``goal``; ValueError where it is no goal of the task's own."""
    if not goal.key:
        raise NotRead(goal) if goal.refusal else ValueError(goal.truth)
    return goal


def _offer(formula: Formula, card: TaskCard) -> Offer:
    """The way to say it that is read as just that: a goal of the task, a sentence, the formula."""
    understood = to_sentence(fill(formula, card), card)
    for sentence in (*card.goals.values(), understood):
        if _meant(_read(sentence, card)[0], card) == _meant(formula, card):
            return Offer(understood, "--goal", sentence)
    return Offer(understood, "--formula", str(formula))


def with_formula(task: Task[Any], goal: ReadGoal) -> tuple[GoalTask, ReadGoal]:
    """The task with a goal's formula to be judged by, and the goal with every number in place.

    NoMargin where the task's signals do not measure how far the goal is, FormulaError where it
    means nothing.
    """
    assert goal.formula is not None
    made = make_goal_task(task, goal.formula)
    return made, ReadGoal(goal.text, made.goal_formula, None, made.goal, from_dict(made.card()))


def _read(text: str, card: TaskCard) -> tuple[Formula | None, Refusal | None]:
    """The formula of a sentence, or None and why it was not read."""
    try:
        return read(text, card), None
    except Refusal as error:
        return None, error


def _meant(formula: Formula | None, card: TaskCard) -> Formula | None:
    """The formula with every number, where the card has what it speaks of; else as it was said."""
    try:
        return fill(formula, card) if formula is not None else None
    except FormulaError:
        return formula


def _plain(sentence: str) -> str:
    """Words alone, in lower case: what two sentences that say the same word for word share."""
    return " ".join(re.findall(r"\w+", sentence.lower()))
