"""Which task a sentence is about, where nobody says."""

from __future__ import annotations

import sims
from reward_models.goals.grammar.noun_phrases import EntityNames
from reward_models.goals.predicates import GRIPPER
from reward_models.goals.suggestions.proposer import sentence_features
from robo_rl.goals.reading import NotRead, ReadGoal, read_goal
from sims.tasks.custom_tabletop import CustomTabletop

STRANGE = ("unknown_word", "unknown_object")  # refusals of who does not know what it is about


def task_for(sentence: str, *, own: bool, typed: str) -> str:
    """The task that has what ``sentence`` asks for among its goals; else the first on whose table
    it can be read; "" where no task knows what it speaks of.

    ValueError where several have that goal, or where it names neither the robot nor a thing.
    NotRead where a task that knows all it speaks of does not read it, or that knows most of the
    things and has a suggestion for the unknown words.

    ``own``: it is about somebody's own things, which are on the table of task ``tabletop``.
    ``typed``: how a task is named beside a sentence, with {task} and {sentence}.
    """
    if own:
        return CustomTabletop.name
    goals = {
        name: read_goal(sims.make_task(name), sentence)
        for name in sims.TASKS
        if name != CustomTabletop.name
    }
    known = [name for name, goal in goals.items() if goal.key]
    read = known or [name for name, goal in goals.items() if goal.formula is not None]
    named = [name for name in read if _names_what_is_there(goals[name])]
    if named and len(known) < 2:
        return named[0]
    if read:
        one = typed.format(task=read[0], sentence=sentence)
        unnamed = "" if named else " and does not name the robot"
        raise ValueError(
            f"{sentence!r} is a goal of {', '.join(read)}{unnamed}: name the task, such as {one}"
        )
    knows = {
        name: NotRead(goal, f"as a goal of {name}: ")
        for name, goal in goals.items()
        if goal.refusal is not None and goal.refusal.code not in STRANGE
    }
    if knows:  # who lacks but a word, or has something to offer, or has one of what is named
        one = {name: not goals[name].refusal.among for name in knows}
        lacks = {name: one[name] and goals[name].refusal.code == "ambiguous" for name in knows}
        name = max(knows, key=lambda name: (lacks[name], bool(knows[name].offers), one[name]))
        raise knows[name]
    named = {name: _known_mentions(goal) for name, goal in goals.items()}
    for name in sorted((n for n in named if named[n]), key=lambda n: -named[n]):
        strange = NotRead(goals[name], f"as a goal of {name} (--things puts others on a table): ")
        if strange.offers:
            raise strange
    return ""


def _names_what_is_there(goal: ReadGoal) -> bool:
    """Whether a task has a gripper, which needs no name, or its sentence names an entity of it: a
    body that no word names is not guessed."""
    things = EntityNames(goal.card)
    hand = things.actor is not None and things.actor.kind == GRIPPER
    return hand or things.names_any(goal.text)


def _known_mentions(goal: ReadGoal) -> int:
    """Returns how many of a task's objects a sentence names, also in words that are only partly
    known."""
    things = EntityNames(goal.card)
    if goal.refusal is None or goal.refusal.code != "unknown_word" or things.actor is None:
        return 0
    return len(sentence_features(goal.text, things).things)
