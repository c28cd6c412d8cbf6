"""Cloning: demonstrations in, a run with a bundle out, which is a base like any other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import robo_rl
import sims
from real_robot.policy.bundle import PolicyBundle
from robo_rl.cli import main
from robo_rl.datasets.demonstrations import CloneConfig
from robo_rl.learners import ResidualPPOConfig
from robo_rl.learners.learner import make_learner
from robo_rl.runs.policy import load_policy


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("demos") / "reach-v0"
    asked = ["--episodes", "24", "--num-envs", "24", "--failures", "0.2"]
    assert main(["demos", "reach", str(to), "--goal", "touch_blue_ball", *asked]) == 0
    return to


@pytest.fixture(scope="module")
def run(demos: Path, training_seed: int, short_video: None) -> Path:
    asked = ["--updates", "400", "--demos", "12", "--episodes", "60", "--name", "clone"]
    asked += ["--seed", str(training_seed)]
    assert main(["clone", str(demos), "--runs", str(demos.parent), *asked]) == 0
    return demos.parent / "clone"


def test_clone_imitates_demonstrations_and_is_a_run(run, capsys, outcome):
    done = robo_rl.load(run)
    assert done.evaluation.goal == "touch_blue_ball"
    outcome("success", done.evaluation.success, above=0.25)
    assert done.evaluation.above_floor  # as of 60 episodes any such success is
    bundle = PolicyBundle.load(done.bundle)
    assert bundle.manifest.reward.model == "none" and "12 episodes" in bundle.manifest.reward.text
    assert bundle.manifest.training["learner"] == "clone"
    same = ["--episodes", "60", "--eval-seeds", "validation", "--json"]
    assert main(["evaluate", str(run), *same]) == 0
    judged = json.loads(capsys.readouterr().out)
    assert abs(judged["success"] - done.evaluation.success) <= 0.05
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "learner clone" in page and "cloned from 12 episodes of the scripted expert" in page
    rows = done.run.metrics()
    outcome("error, of the first", rows["error"][-1] / rows["error"][0], below=0.6)
    outcome("error on held-out steps", rows["error_held_out"][-1], below=0.15)


def test_clone_can_be_a_residual_base(run):
    env = sims.make("reach", 8, seed=3)
    learner = make_learner(ResidualPPOConfig(num_envs=8, net=(16,), base=str(run)), env)
    obs = env.reset()
    np.testing.assert_array_equal(learner.act(obs), load_policy(run).act(obs))
    env.close()


def test_clone_errors_are_one_line(run, demos, tmp_path, capsys):
    def refused(*args: str) -> str:
        assert main([*args, "--runs", str(tmp_path)]) == 1
        (line,) = capsys.readouterr().err.strip().splitlines()
        return line

    capsys.readouterr()
    assert "is not a Minari dataset" in refused("clone", str(tmp_path))
    assert "episodes that succeed, expected --demos 24" in refused(
        "clone", str(demos), "--demos", "24"
    )
    with pytest.raises(ValueError, match="episodes must be above 0, got 0"):
        CloneConfig(episodes=0)
    other = tmp_path / "other"
    (other / "data").mkdir(parents=True)
    (other / "data" / "main_data.hdf5").touch()
    (other / "data" / "metadata.json").write_text(json.dumps({"env_spec": "{}"}))
    assert "robo-rl demos TASK FOLDER" in refused("clone", str(other))
    told = json.loads((demos / "data" / "metadata.json").read_text())
    told["obs_names"][0] = "wrist[0]"
    (other / "data" / "metadata.json").write_text(json.dumps(told))
    assert "write it again with robo-rl demos" in refused("clone", str(other))
    assert main(["train", "--resume", str(run), "--env-steps", "9"]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"--learner residual-sac --base {run}" in line
    assert not (tmp_path / "other-clone-0").exists()
