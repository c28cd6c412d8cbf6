"""The demo's reward from frames and distilled, beside its ceiling and the controls of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks import BenchmarkRow, Options
from benchmarks.training import policies, policy
from robo_rl.config.presets import preset
from robo_rl.config.train_config import TrainConfig
from robo_rl.rewards import ClipConfig

GOAL, OTHER = "touch_red_cube", "touch_green_cylinder"
SEEDS = (0, 1, 2, 3, 4)


def rows(options: Options) -> list[BenchmarkRow]:
    """All of one seed before any of the next; the expert is one and the same for all."""
    base = preset("reach", goal=GOAL)
    made = [row for seed in options.seeds or SEEDS for row in _seed(base, options, seed)]
    return [*made, policy("scripted expert", base, options, kind="expert")]


def _seed(base: TrainConfig, options: Options, seed: int) -> Iterator[BenchmarkRow]:
    variants = {
        "every frame drawn": ClipConfig(distill=False),
        "distilled": ClipConfig(distill=True),
    }
    for variant, clip in variants.items():
        one = replace(base, reward="clip", scoring=clip)
        yield policy(f"{variant}, seed {seed}", one, options, seed)
        name = f"{variant}, another goal's sentence, seed {seed}"
        yield policy(name, replace(one, goal=OTHER), options, seed, judged_as=GOAL)
    for reward, name in (("task", "dense reward (ceiling)"), ("constant", "constant reward")):
        yield policy(f"{name}, seed {seed}", replace(base, reward=reward), options, seed)


EXPERIMENT = policies(rows)
