"""Which task a sentence is about, where nobody says."""

from __future__ import annotations

import sims
from robo_rl.goals.reading import read_goal
from sims.tasks.arranged import Arranged


def task_for(sentence: str) -> str:
    """The task that has what ``sentence`` asks for among its goals; else the first on whose table
    it can be read; "" where it is read on none. ValueError where several have that goal.

    Things of one's own are of no table but their own, so task ``tabletop`` is never found.
    """
    goals = {
        name: read_goal(sims.make_task(name), sentence)
        for name in sims.TASKS
        if name != Arranged.name
    }
    if own := [name for name, goal in goals.items() if goal.key]:
        if len(own) > 1:
            raise ValueError(f"{sentence!r} is a goal of {', '.join(own)}: say of which")
        return own[0]
    return next((name for name, goal in goals.items() if goal.formula is not None), "")
