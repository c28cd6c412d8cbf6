"""Push from its sentence beside the dense reward, at equal steps."""

from __future__ import annotations

from dataclasses import replace

from robo_rl.experiments import Options, Row
from robo_rl.experiments.training import policies, policy, seeded
from robo_rl.presets import preset
from robo_rl.rewards import ClipConfig


def rows(options: Options) -> list[Row]:
    """The sentence is scored by the distilled encoder."""
    base = preset("push", goal="red_cube_next_to_blue_ball")
    cases = {
        "sentence alone": replace(base, reward="clip", scoring=ClipConfig(distill=True)),
        "dense reward (ceiling)": replace(base, reward="task"),
    }
    expert = policy("scripted expert", base, options, kind="expert")
    return [*seeded(options, (0,), cases), expert]


EXPERIMENT = policies(rows)
