"""Sentences with what each means: the sets of tests/data, whose README says how they were made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import sims
from reward_models.base import TaskCard, from_dict
from reward_models.goals.formula import Formula, parse
from robo_rl.goals.reading import read_card_goal

DATA = Path(__file__).parents[1] / "tests" / "data"
# Set: how it was made. The first eight were kept out of the making of the readers.
SETS = {
    "typed_fresh": "every task, typed at a command line, held out",
    "heldout": "reach and push, held out",
    "fresh": "reach and push, written later",
    "suite_fresh": "the task suite, talk",
    "wide_fresh": "every task, talk in three registers",
    "talk_fresh": "every task, talk in four further registers",
    "formulas_fresh": "every task, what only formulas can say",
    "numbers_fresh": "every task, numbers, order, constraints, manner",
    "typed_dev": "the other half of those typed, for development",
    "dev": "reach and push, for development",
    "extra": "reach and push, wordings easily misread, for development",
    "probe": "reach and push, wordings and near misses, for development",
    "suite_dev": "the task suite, short, for development",
    "suite_talk": "the task suite, openings of talk, for development",
    "wide_dev": "every task, talk in three registers, for development",
    "wide_near": "every task, near misses, for development",
    "talk_dev": "every task, talk in four further registers, for development",
    "formulas": "every task, what only formulas can say, for development",
    "numbers": "every task, numbers, order, constraints, manner, for development",
    "numbers_own": "the same, written along with the reader, for development",
    "numbers_more": "the same, written later without the reader, for development",
}
UNSEEN = 8  # sets at the head, which are summed up and never learned from

# The sets were written before most tasks: their keys -> the tasks' own.
OWN_KEYS = {"ant/wave_leg": "wave", "humanoid/raise_arms": "arms_raised"}
_ENTITIES = (  # of the scene that sets of formulas speak of: name, aliases, colour, kind
    ("gripper", "gripper hand claw fingers arm robot end~effector", "", "gripper"),
    ("red_cube", "cube block box brick", "red", "cube"),
    ("blue_ball", "ball sphere orb", "blue", "ball"),
    ("green_cylinder", "cylinder can tube", "green", "cylinder"),
)


def path_of(name: str) -> Path:
    """The file of a set; ValueError where this is not a checkout with its tests."""
    path = DATA / f"goal_sentences_{name}.json"
    if not path.exists():
        raise ValueError(f"cannot find {path}: the sentence sets are in tests/data of a checkout")
    return path


@cache
def card_of(task: str) -> TaskCard:
    """The card of a task; of a body that was removed, the recorded one: its sentences stay."""
    recorded = json.loads((DATA / "gymnasium_cards.json").read_text(encoding="utf-8"))
    return from_dict(recorded.get(task) or sims.make_task(task).card())


@cache
def corpus_card() -> TaskCard:
    """The scene that sets of formulas speak of."""
    entities = [
        {
            "name": name,
            "aliases": [a.replace("~", " ") for a in aliases.split()],
            "colour": colour,
            "kind": kind,
            "affordances": [],
            "body": name,
            "pose_signal": f"{name}_pose",
        }
        for name, aliases, colour, kind in _ENTITIES
    ]
    return from_dict(
        {
            "task": "corpus",
            "signals": [],
            "entities": entities,
            "goals": {},
            "cameras": [],
            "control_dt": 0.05,
            "episode_s": 2.5,
        }
    )


def own_key(line: Mapping[str, str]) -> str:
    """The goal of the line's task that its sentence means; empty: it is to be refused."""
    goal = line.get("goal", "")
    return OWN_KEYS.get(goal, goal.removeprefix(f"{line['task']}/"))


@cache
def goal_of(task: str, key: str) -> Formula | None:
    """What a goal that a task is known for asks for."""
    return read_card_goal(card_of(task), key).formula


def labelled(name: str) -> Iterator[tuple[str, TaskCard, Formula | None]]:
    """(sentence, card, what it is to be read as) of every line of a set; None: it is to be
    refused."""
    for line in json.loads(path_of(name).read_text(encoding="utf-8")):
        if "read" in line:
            best = line["read"][0]
            wanted = None if best.startswith("refuse:") else parse(best)
            yield line["text"], corpus_card(), wanted
            continue
        wanted = parse(line["formula"]) if "formula" in line else None
        if wanted is None and (key := own_key(line)):
            wanted = goal_of(line["task"], key)
        yield line["sentence"], card_of(line["task"]), wanted
