"""The whole line on real parts: sentence, frames, reward, policy, bundle, simulated arm."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reward_models.config import DistillConfig
from robo_rl.config import TrainConfig, from_json
from robo_rl.learners import PPOConfig
from robo_rl.rewards import ClipConfig
from robo_rl.visual.scene import SceneConfig

SMALL = ClipConfig(
    distill=True,
    scene=SceneConfig(frames=1000, holdout=100, distill=DistillConfig(members=2, steps=500)),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory):
    import os

    from robo_rl.training import train

    folder = tmp_path_factory.mktemp("line")
    os.environ["ROBO_RL_CACHE"] = str(folder / "cache")
    config = TrainConfig(
        goal="Please stay left of the green can",
        scoring=SMALL,
        env_steps=48_000,
        episodes=200,
        runs=folder,
        name="line",
    )
    yield train(config)
    del os.environ["ROBO_RL_CACHE"]


def test_a_sentence_trains_a_policy_from_frames_alone(trained) -> None:
    result = json.loads((trained.run.path / "result.json").read_text())
    assert trained.evaluation.goal == "left_of_green_cylinder"
    assert trained.evaluation.success > 0.75, trained.evaluation.line()
    assert result["frames"]["scene"] == 1000 and result["frames"]["training"] == 0
    assert result["captions"] == "the gripper is left of the green cylinder"


def test_the_run_folder_is_complete(trained) -> None:
    names = {p.name for p in trained.run.path.iterdir()}
    assert {"config.json", "versions.json", "metrics.csv", "result.json", "report.html"} <= names
    assert {"video.webm", "bundle", "checkpoints", "scene.json"} <= names
    report = (trained.run.path / "report.html").read_text()
    assert "data:video/webm;base64," in report and "Please stay left" in report
    written = re.sub(r"base64,[A-Za-z0-9+/=]+", "", report)  # whose letters may be any, "http" too
    assert "http" not in written.replace("http-equiv", ""), "the report must be self-contained"
    stored = from_json(TrainConfig, trained.run.config)
    assert stored.scoring == SMALL and isinstance(stored.tuning, PPOConfig)


def test_the_bundle_succeeds_on_the_simulated_arm(trained) -> None:
    from robo_rl.arm.episodes import run_emulated

    arm = run_emulated(trained.bundle, episodes=10, noise=0.0)
    assert arm.ended == {"done": 10}, arm.reasons
    assert arm.successes >= 6


def test_a_second_goal_needs_no_frame(trained, tmp_path: Path) -> None:
    from robo_rl.training import train

    config = TrainConfig(
        goal="stay far from the red cube", scoring=SMALL, env_steps=6_400, episodes=100, labels=0,
        runs=tmp_path, name="second",
    )  # fmt: skip
    second = train(config)
    frames = json.loads((second.run.path / "result.json").read_text())["frames"]
    assert frames == {"scene": 0, "training": 0, "labels": 0, "looks": 0}


def test_evaluate_and_report_commands(trained, capsys: pytest.CaptureFixture[str]) -> None:
    from robo_rl.cli import main
    from robo_rl.evaluate import SELECT_SEED

    same = ["--episodes", "200", "--judge", "select", "--json"]
    assert main(["evaluate", str(trained.run.path), *same]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["seed"] == trained.evaluation.seed == SELECT_SEED
    assert again["floors"] == trained.evaluation.floors.as_dict()
    # The bundle's graph is not the policy bit for bit, but it is the policy.
    assert abs(again["success"] - trained.evaluation.success) < 0.02
    assert main(["report", str(trained.run.path)]) == 0
    assert main(["reward", "score", str(trained.run.path), "--json"]) == 0
    lines = capsys.readouterr().out
    figures = json.loads(lines[lines.index("{") :])
    assert len(figures["score"]) == 51 and np.isfinite(figures["score"]).all()


def test_a_tampered_bundle_is_refused(trained, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    command = [sys.executable, "-m", "robo_rl.cli"]
    done = subprocess.run([*command, "export", trained.run.path, copy], capture_output=True)
    assert done.returncode == 0, done.stderr
    policy = bytearray((copy / "policy.onnx").read_bytes())
    policy[len(policy) // 2] ^= 1
    (copy / "policy.onnx").write_bytes(policy)
    bad = subprocess.run(
        [*command, "deploy", copy, "--emulate"], capture_output=True, text=True, check=False
    )
    assert bad.returncode == 1
    assert len(bad.stderr.strip().splitlines()) == 1 and "policy.onnx" in bad.stderr
