"""A body without an arm goes through the same line: sentence, training, policy, evaluation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import sims
from robo_rl.cli import main
from robo_rl.config.presets import preset
from robo_rl.goals.reading import read_goal
from robo_rl.training.run_envs import training_env
from sims.envs.batch_env import BatchEnv
from sims.tasks import BODIES


def test_run_evaluates_again_to_the_same_result(
    short_video: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--env-steps 1024 --episodes 20 --name pushed --tuning.horizon-s 5 --eval-points 1"
    options += " --tuning.num-envs 16 --tuning.net 16"
    asked = ["hopper", "--reward", "task", "--goal", "The hopper hops forward!"]
    assert main(["train", *asked, *options.split(), "--runs", str(tmp_path)]) == 0
    run = tmp_path / "pushed"
    assert {"policy.onnx", "report.html", "video.webm", "result.json"} <= {
        path.name for path in run.iterdir()
    }
    assert not (run / "bundle").exists()
    judged = json.loads((run / "result.json").read_text())["evaluation"]
    assert judged["goal"] == "forward" and judged["episodes"] == 20
    capsys.readouterr()
    same = ["--episodes", "20", "--eval-seeds", "validation", "--json"]
    assert main(["evaluate", str(run), *same]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["successes"] == judged["successes"]
    assert again["distance_median"] == pytest.approx(judged["distance_median"], abs=0.1)
    assert main(["export", str(run), str(tmp_path / "out")]) == 1
    assert "has no robot arm and so no bundle" in capsys.readouterr().err
    assert main(["evaluate", str(run), "--episodes", "5", "--expert"]) == 1
    assert "'hopper' has no scripted expert" in capsys.readouterr().err


@pytest.mark.parametrize("kind", BODIES)
def test_body_goal_is_found_by_sentence_and_key(kind: type) -> None:
    task = sims.make_task(kind.name)
    for key, goal in task.goals().items():
        for said in (goal.sentence, key, f"  {goal.sentence.upper()}. "):
            assert read_goal(task, said).key == key
    other = read_goal(task, "the robot bakes a cake")
    assert not other.key and other.formula is None and "Available: " in str(other.refusal)


def test_training_episodes_may_be_shorter_than_evaluation() -> None:
    task = sims.make_task("ant", goal="lie_down")
    config = preset("ant", goal="lie_down")
    env = training_env(task, config, 1)
    assert env.max_steps * env.control_dt == pytest.approx(config.episode_s)
    assert env.max_steps < BatchEnv(task, 1).max_steps  # what `evaluate` plays
    whole = training_env(task, replace(config, episode_s=0.0), 1)
    assert whole.max_steps * whole.control_dt == pytest.approx(task.episode_s)
    with pytest.raises(ValueError, match="whole number of 0.05 s"):
        training_env(task, replace(config, episode_s=4.01), 1)
