"""What bodies do from their hand-written dense reward, with the defaults of their goals."""

from __future__ import annotations

from dataclasses import replace

from robo_rl.experiments import Options, Row
from robo_rl.experiments.training import policies, seeded
from robo_rl.presets import preset

BODIES = (("ant", "lie_down"), ("hopper", "forward"), ("hopper", "front_flip"), ("ant", "forward"))


def rows(options: Options) -> list[Row]:
    cases = {f"{t} {goal}": replace(preset(t, goal=goal), reward="task") for t, goal in BODIES}
    return seeded(options, (0,), cases)


EXPERIMENT = policies(rows)
