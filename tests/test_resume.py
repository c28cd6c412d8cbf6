"""A run that was stopped anywhere ends as it would have ended, with the default reward too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reward_models.vision.config import DistillConfig
from robo_rl.config.train_config import TrainConfig
from robo_rl.learners import PPOConfig
from robo_rl.rewards import ClipConfig
from robo_rl.runs.run_dir import SCORER, RunDir, write_json
from robo_rl.training import train
from robo_rl.vision.distilled_scene import SceneConfig

SCENE = SceneConfig(
    frames=400, holdout=50, distill=DistillConfig(members=2, steps=100, refit_steps=20)
)
ROLLOUT = 1024
CLOCKS = {"wall_s", "processor_s", "steps_per_s", "score_s"}


class Stopped(BaseException):
    """As Ctrl-C, or worse."""


def stop(*_: object, **__: object) -> None:
    raise Stopped


def learned(
    config: TrainConfig | None,
    stop_at_row: int | None,
    resume: Path | None = None,
    how: Callable[[], None] = stop,
    ends: type[BaseException] = Stopped,
    says: str | None = None,
) -> RunDir:
    """The run, stopped at a row that is written, or else when learning is over."""
    append, rows = RunDir.append, []

    def appended(run: RunDir, row: dict[str, float]) -> None:
        append(run, row)
        rows.append(row)
        if len(rows) == stop_at_row:
            how()

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ends, match=says):
        patch.setattr(RunDir, "append", appended)
        patch.setattr(train, "evaluate", stop)
        train.train(config, resume=resume)
    return RunDir.open(resume or config.runs / config.name)


def same(one: RunDir, other: RunDir) -> None:
    """Both ended at the same step with the same policy, simulator, generators and rows."""
    mine, theirs = one.latest_checkpoint(), other.latest_checkpoint()
    assert mine.step == theirs.step
    for arrays, others in ((mine.weights, theirs.weights), (mine.state, theirs.state)):
        assert arrays.keys() == others.keys()
        for name in arrays:
            np.testing.assert_array_equal(arrays[name], others[name], err_msg=name)
    rows, again = one.metrics(), other.metrics()
    for name in rows.keys() - CLOCKS:
        if not name.startswith("train/"):  # what SB3 said of an update is gone with its logger
            np.testing.assert_array_equal(rows[name], again[name], err_msg=name)


def test_ctrl_c_saves_and_resumes_bit_for_bit(tmp_path: Path) -> None:
    """In the middle of a step: it ends after the update. A second Ctrl-C ends at once."""
    tuning = PPOConfig(num_envs=16, n_steps=ROLLOUT // 16, net=(16, 16))
    config = TrainConfig(
        reward="task",
        tuning=tuning,
        env_steps=2 * ROLLOUT,
        episodes=8,
        eval_points=0,
        runs=tmp_path,
    )

    def stopped(name: str, times: int, says: str) -> RunDir:
        def press() -> None:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)

        return learned(replace(config, name=name), 1, None, press, KeyboardInterrupt, says)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        way = f"; resume with: robo-rl train --resume {tmp_path}"
        twice = stopped("twice", 2, f"^stopped by Ctrl-C{way}/twice$")
        assert twice.latest_checkpoint() is None
        once = stopped("once", 1, f"^stopped by Ctrl-C at 1,024 env steps{way}/once$")
        assert once.latest_checkpoint().step == ROLLOUT
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    straight = learned(replace(config, name="straight"), None)
    for run in (once, twice):
        same(straight, learned(replace(config, name=run.path.name), None, run.path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distill", "dtype"),
    [(False, "float32"), (True, "float32"), (False, "bfloat16")],
    ids=["frames", "distilled", "chosen by a clock"],
)
def test_clip_reward_run_resumes_bit_for_bit(
    distill: bool, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path / "cache"))

    def config(name: str) -> TrainConfig:
        return TrainConfig(
            goal="the gripper touches the red cube",
            scoring=ClipConfig(distill=distill, scene=SCENE, dtype=dtype),
            tuning=PPOConfig(num_envs=16, n_steps=ROLLOUT // 16, net=(16, 16)),
            env_steps=2 * ROLLOUT,
            checkpoint_every=ROLLOUT,
            # Labels are asked for with every row, whatever the doubt.
            labels=8,
            labels_every=1,
            labels_above=0.0,
            episodes=8,
            eval_episodes=4,
            eval_points=2,
            runs=tmp_path,
            name=name,
        )

    straight = learned(config("straight"), None)
    stopped = learned(config("stopped"), stop_at_row=2)
    assert stopped.latest_checkpoint().step == ROLLOUT < stopped.metrics()["env_steps"][-1]
    again = config("stopped")
    if dtype == "bfloat16":  # a run of before it was an option has it in scorer.json alone
        told = json.loads((stopped.path / "config.json").read_text())
        assert told["scoring"].pop("dtype") == dtype
        write_json(stopped.path / "config.json", told)
        again = None
    learned(again, None, resume=stopped.path)
    assert json.loads((stopped.path / SCORER).read_text())["dtype"] == dtype
    same(straight, stopped)
    end = straight.latest_checkpoint()
    assert end.step == config("").env_steps
    for name, column in straight.evaluations.read().items():
        np.testing.assert_array_equal(column, stopped.evaluations.read()[name], err_msg=name)
    if distill:
        assert end.state["hook/labels/counters"].tolist() == [2, 16]


@pytest.mark.slow
def test_killed_train_command_resumes_bit_for_bit(tmp_path: Path) -> None:
    """`robo-rl train` as it is typed, every frame drawn, and SIGKILL between two checkpoints."""
    robo_rl = [str(Path(sys.executable).with_name("robo-rl")), "train"]
    asked = [
        "--goal",
        "touch the red cube",
        "--env-steps",
        "25600",
        "--checkpoint-every",
        "6400",
        "--episodes",
        "16",
        "--runs",
        str(tmp_path),
    ]
    process = subprocess.Popen([*robo_rl, *asked, "--name", "killed"])
    path, deadline, seen = tmp_path / "killed", time.monotonic() + 600, 0.0
    while seen < 14_000:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
        if (path / "metrics.csv").exists():
            seen = max(RunDir.open(path).metrics().get("env_steps", [0.0]), default=0.0)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    killed = RunDir.open(path)
    assert 0 < killed.latest_checkpoint().step < seen and not killed.finished
    subprocess.run([*robo_rl, "--resume", str(path)], check=True)
    subprocess.run([*robo_rl, *asked, "--name", "straight"], check=True)
    straight = RunDir.open(tmp_path / "straight")
    same(straight, killed)
    assert straight.latest_checkpoint().step == 25_600
    assert straight.result["evaluation"] == killed.result["evaluation"]
