"""resolve(): a config's goal is read once, and what it says goes to all that a run does."""

from __future__ import annotations

import pickle

import pytest

from robo_rl.config.resolve import resolve
from robo_rl.config.train_config import TrainConfig
from robo_rl.goals import reading
from robo_rl.goals.reading import StatedGoal
from sims.core.multi_goal import ANY
from sims.envs.batch_env import BatchEnv

SEQUENCE = "touch the red cube, then the blue ball"


def test_the_goal_of_a_run_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    read = reading.read_goal

    def counted(task: reading.Task, text: str) -> reading.ReadGoal:
        texts.append(text)
        return read(task, text)

    monkeypatch.setattr(reading, "read_goal", counted)
    asked = TrainConfig(goal=SEQUENCE, reward="offline")
    stated = StatedGoal.of(vars(asked))
    resolved = resolve(asked, stated)
    assert texts == [SEQUENCE]
    assert resolved.goal.key == resolved.task.goal and resolved.config.reward == "offline"
    assert resolve(resolved.config, stated).goal == resolved.goal and texts == [SEQUENCE]


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (TrainConfig(), "touch_red_cube"),
        (TrainConfig(task="drawer", goal=ANY, reward="sparse"), ANY),
        (TrainConfig(task="gym:Pendulum-v1", reward="task"), ""),
        (TrainConfig(goal="the robot bakes a cake"), ""),
    ],
)
def test_there_is_a_success_judge_or_there_is_none(asked: TrainConfig, key: str) -> None:
    resolved = resolve(asked)
    assert resolved.goal.key == key and resolved.judged is bool(key)
    other = resolved.with_config(seed=5)
    assert other.config.seed == 5 and other.goal is resolved.goal


def test_a_resolved_run_goes_to_another_process_after_its_task_was_simulated() -> None:
    resolved = resolve(TrainConfig(goal=SEQUENCE, reward="offline"))
    env = BatchEnv(resolved.task, 2)
    env.reset()
    env.close()
    assert pickle.loads(pickle.dumps(resolved)) == resolved


def test_a_run_of_an_external_env_goes_to_another_process() -> None:
    resolved = resolve(TrainConfig(task="gym:CartPole-v1", env_kwargs='{"x": 1}', reward="task"))
    again = pickle.loads(pickle.dumps(resolved))
    assert again.task == resolved.task and again.task.kwargs == {"x": 1}
    assert again.goal.refusal.why == resolved.goal.refusal.why == "gym:CartPole-v1 names no objects"
