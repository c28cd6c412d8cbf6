"""`robo-rl reward check`, and training on a program: what is checked is what runs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sims
from reward_models.base import from_dict
from reward_models.programs import load
from robo_rl.cli import main
from robo_rl.config.resolve import resolve
from robo_rl.config.train_config import TrainConfig
from robo_rl.learners import PPOConfig
from robo_rl.training.train import run_path, train

GOOD = """def reward(tip, red_cube_pos, action):
    gap = norm(tip - red_cube_pos)
    return {"near": near(gap, 0.05), "effort": 0.01 * effort(action)}
"""
BAD = "import os\ndef reward(tip, qpos):\n    return {'a': norm(tip) + norm(qpos)}\n"


def test_reward_check_prints_one_json_object_per_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, unit = (tmp_path / name for name in ("good.py", "bad.py", "unit.py"))
    good.write_text(GOOD)
    bad.write_text(BAD)
    unit.write_text(BAD.removeprefix("import os\n"))
    files = [str(p) for p in (good, bad, unit)]
    assert main(["reward", "check", *files, "--task", "reach", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [f["file"] for f in found] == files
    assert [f["ok"] for f in found] == [True, False, False]
    assert [[d["code"] for d in f["diagnostics"]] for f in found] == [[], ["import"], ["unit"]]
    [finding] = found[2]["diagnostics"]
    assert finding["line"] == 2 and "adds metres and radians" in finding["message"]
    assert main(["reward", "check", str(good), "--task", "reach", "--explain"]) == 0
    out = capsys.readouterr().out
    assert "ok" in out and "where gap is the length of (tip - red_cube_pos)" in out


def test_reward_check_loads_no_torch_and_hides_the_environment(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text(GOOD)
    code = (
        "import sys\nfrom robo_rl.cli import main\n"
        f"status = main(['reward', 'check', {str(tmp_path / 'r.py')!r}, '--task', 'push'])\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\nsys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no_such_file.py", "--task", "reach"], "no_such_file.py"),
        (["--task", "reach"], "give the files"),
        ([__file__, "--task", "fly"], "unknown task 'fly'"),
    ],
)
def test_reward_check_errors_name_what_is_missing(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reward", "check", *arguments]) == 1
    assert says in capsys.readouterr().err


def test_refused_reward_program_leaves_no_run(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    config = TrainConfig(
        task="reach",
        goal="touch_red_cube",
        reward=f"code:{tmp_path / 'bad.py'}",
        runs=tmp_path / "runs",
        tuning=PPOConfig(num_envs=4),
    )
    with pytest.raises(ValueError, match="bad.py is refused: line 1: imports are not allowed"):
        train(config)
    assert not (tmp_path / "runs").exists()


def test_training_with_a_reward_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "write_rollout_video",
        "write_report",
    ):  # which take longer than so little training
        monkeypatch.setattr(f"robo_rl.training.train.{name}", lambda *_: None)
    file = tmp_path / "my reward.py"
    file.write_text(GOOD)
    config = TrainConfig(
        task="reach",
        goal="touch_red_cube",
        reward=f"code:{file}",
        env_steps=1600,
        episodes=8,
        eval_points=0,
        runs=tmp_path / "runs",
        tuning=PPOConfig(num_envs=16),
    )
    trained = train(config)
    run = trained.run.path
    assert run.name == "reach-touch-red-cube-code-my-reward-ppo-0"
    assert (run / "reward.py").read_text() == GOOD
    manifest = json.loads((trained.bundle / "manifest.json").read_text())
    assert manifest["reward"]["hash"] == hashlib.sha256(GOOD.encode()).hexdigest()
    assert manifest["reward"]["text"] == GOOD
    metrics = trained.run.metrics()
    assert {"reward/near", "reward/effort"} <= metrics.keys()
    total = metrics["reward/near"] + metrics["reward/effort"]
    np.testing.assert_allclose(metrics["reward"], total, atol=1e-6)


@pytest.mark.slow
def test_resumed_run_keeps_its_reward_program(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    file.write_text(GOOD)
    config = TrainConfig(
        task="reach",
        goal="touch_red_cube",
        reward=f"code:{file}",
        env_steps=800,
        episodes=8,
        runs=tmp_path / "runs",
        tuning=PPOConfig(num_envs=16),
    )
    run = train(config).run.path
    file.write_text(BAD)
    again = train(config, resume=run)
    assert (again.run.path / "reward.py").read_text() == GOOD


def test_run_name_contains_the_program_file() -> None:
    asked = TrainConfig(reward=f"code:{os.sep}a{os.sep}b c.py")
    assert run_path(resolve(asked)).name == "reach-touch-red-cube-code-b-c-ppo-0"
    external = resolve(TrainConfig(task="gym:suite/Lift-v1", reward="task"))
    assert run_path(external).name == "gym-suite-Lift-v1-task-ppo-0"


def test_run_name_contains_arm_and_objects() -> None:
    asked = {"task": "tabletop", "robot": "fr3", "things": "red cube, blue ball"}
    goal = "bake the ball a cake."
    name = run_path(resolve(TrainConfig(**asked, goal=goal, reward="task"))).name
    assert name == "tabletop-fr3-red-cube-blue-ball-bake-the-ball-a-cake-task-ppo-0"


@pytest.mark.parametrize("task", sorted(sims.TASKS))
def test_every_task_card_has_valid_units_and_shapes(task: str) -> None:
    """Every signal of every card has a unit and a shape that the language understands."""
    card = from_dict(sims.make_task(task).card())
    for signal in card.signals:
        value = f"norm({signal.name})" if signal.shape else f"abs({signal.name})"
        text = f'def reward({signal.name}):\n    return {{"a": {value}}}\n'
        program = load(text, card)
        rows = {signal.name: np.ones((5, *signal.shape))}
        assert program(rows)["a"].shape == (5,)


def test_reward_check_reports_what_is_wrong_beside_an_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.py").write_text("import numpy as np\ndef reward(tip):\n    return norm(tip)\n")
    assert main(["reward", "check", str(tmp_path / "two.py"), "--task", "reach", "--json"]) == 1
    [file] = json.loads(capsys.readouterr().out)
    assert [d["code"] for d in file["diagnostics"]] == ["import", "return"]
