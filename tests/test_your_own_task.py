"""docs/your_own_task.md as written: the code on the page is taken from it and run."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sims

PAGE = Path(__file__).parents[1] / "docs" / "your_own_task.md"


@pytest.fixture(scope="module")
def roll():
    """The task of the page, forgotten afterwards."""
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S).group(1)
    assert len(code.splitlines()) <= 100  # a person can read all of it
    module = types.ModuleType("roll_page")
    sys.modules["roll_page"] = module
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    yield module.Roll
    del sims.TASKS["roll"], gymnasium.registry["robo/Roll-v0"], sys.modules["roll_page"]


def test_its_expert_solves_it(roll) -> None:
    env = sims.make("roll", 32, seed=1)
    env.reset()
    rng = np.random.default_rng(0)
    start = env.distance()
    for _ in range(env.max_steps):
        result = env.step(env.task.expert(env.views, rng))
    assert result.info["success"].mean() > 0.95 and (start > 0).mean() > 0.8


def test_everything_else_knows_it(roll) -> None:
    check_env(gymnasium.make("robo/Roll-v0").unwrapped)
    wide, alone = sims.make("roll", 8, seed=3), sims.make("roll", 1, seed=3, rows=[5])
    assert (wide.reset()[5] == alone.reset()[0]).all()
    assert wide.render().std() > 5
    assert wide.card["goals"] == {"middle": "the ball is in the middle"}


def test_names_are_taken_once(roll) -> None:
    with pytest.raises(ValueError, match="a task called 'roll' is registered already"):
        sims.register(roll)
