"""Where a goal was not fulfilled, the part that was missing is named."""

from __future__ import annotations

import numpy as np
import pytest

import sims
from reward_models.goals import parse
from robo_rl.evaluation.evaluate import Evaluation, summarize, summary_line
from robo_rl.goals.goal_task import make_goal_task
from robo_rl.rollout.episode_runner import run_episode
from sims.envs.batch_env import BatchEnv

RED, BLUE = "the gripper touches the red cube", "the gripper touches the blue ball"
TOUCHED = {"red": "touch(gripper, red_cube)", "blue": "touch(gripper, blue_ball)"}


def after(goal: str, text: str) -> Evaluation:
    """What the expert of one of reach's goals comes to where a formula is asked for."""
    task = make_goal_task(sims.make_task("reach"), parse(text))
    expert, rng = sims.make_task("reach", goal=goal), np.random.default_rng(0)
    env = BatchEnv(task, 32, seed=1)

    def choose(obs: np.ndarray, active: np.ndarray) -> np.ndarray:
        return expert.expert(env.views, rng) if goal else np.zeros((32, env.act_dim), np.float32)

    found = summarize(env, run_episode(env, choose))
    env.close()
    return found


@pytest.mark.parametrize(
    ("goal", "missing"), [("", RED), ("touch_red_cube", BLUE), ("touch_blue_ball", RED)]
)
def test_failure_of_a_sequence_names_the_unreached_part(goal: str, missing: str) -> None:
    found = after(goal, "then({red}, {blue})".format(**TOUCHED))
    assert found.misses[missing] >= 0.8 * (found.episodes - found.successes) > 0
    assert sum(found.misses.values()) == found.episodes - found.successes
    assert (
        summary_line(found)
        .splitlines()[0]
        .startswith(f"not fulfilled: {found.misses[missing]} times")
    )
    assert Evaluation.from_dict(found.as_dict()) == found


def test_violated_constraints_precede_unreached_parts() -> None:
    never = "and({blue}, never({red}))".format(**TOUCHED)
    found = after("touch_red_cube", never)
    assert found.misses == {f"never: {RED} (within 0.4 cm)": 32}
    found = after("touch_blue_ball", never)
    assert found.successes >= 28 and found.misses.get(BLUE, 0) <= 1
