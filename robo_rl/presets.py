"""What a task needs that the defaults do not give: an entry for each task that needs something.

Where the goals of a task need different things, an entry is named "task goal". A preset only
changes defaults; every option that is typed stays as typed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from robo_rl.config import TrainConfig
from robo_rl.learners.config import LEARNERS, PPOConfig


@dataclass(frozen=True)
class Preset:
    """Other defaults of one task, or of one of its goals."""

    run: dict[str, Any]  # of TrainConfig
    ppo: dict[str, Any] = field(default_factory=dict)  # of PPOConfig


PRESETS: dict[str, Preset] = {
    # The way round to the far side of the object is found by large first steps or not at all.
    "push": Preset({"env_steps": 600_000, "checkpoint_every": 100_000}, {"log_std_init": -0.5}),
    "drawer": Preset({"env_steps": 200_000}),
    # A cube is first held by chance, which needs jaws that move far enough to close on it.
    "lift": Preset({"env_steps": 200_000}, {"log_std_init": -0.7}),
}


def preset(
    task: str, learner: str = "ppo", base: TrainConfig | None = None, goal: str = ""
) -> TrainConfig:
    """``base`` (the defaults) with what ``task`` and ``goal`` (a key) need, for ``learner``.

    A learner other than PPO gets its own defaults and the preset's ``run`` alone.
    """
    if learner not in LEARNERS:
        raise ValueError(f"unknown learner {learner!r}; known: {', '.join(LEARNERS)}")
    base = replace(base or TrainConfig(), task=task, learner=learner, tuning=LEARNERS[learner]())
    base = replace(base, goal=goal or base.goal)
    found = PRESETS.get(f"{task} {goal}") or PRESETS.get(task)
    if found is None:
        return base
    tuning = replace(base.tuning, **found.ppo) if type(base.tuning) is PPOConfig else base.tuning
    return replace(base, tuning=tuning, **found.run)
