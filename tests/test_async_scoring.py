"""A judge in a process of its own: the same rewards, later; who learns does not wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from apart import GATE, ROWS, Broken, Far, Gated, made
from point_mass import InTurn, Nearness, PointMass
from test_buffers import fill

from robo_rl.config.train_config import TrainConfig
from robo_rl.learners import EnsembleConfig, async_replay
from robo_rl.learners.async_replay import AsyncRewardReplayBuffer
from robo_rl.learners.buffers import ScoredReplayBuffer
from robo_rl.rewards import ClipConfig
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.subprocess_scorer import SubprocessScorer
from robo_rl.rollout.vec_env import SB3VecEnv
from robo_rl.training.train import train

Array = np.ndarray


def buffer_of(kind: type, size: int = 200, *, apart: bool = True, n_steps: int = 1, seed: int = 0):
    model = kind()
    env = SB3VecEnv(PointMass(ROWS, seed=seed, steps=9, ragged=0.1, diverge=0.02), model)
    options = {
        "env": env,
        "scorer": Scorer(model, env.observer),
        "n_envs": ROWS,
        "n_steps": n_steps,
        "gamma": 0.9,
    }
    if apart:
        options["recipe"] = partial(made, kind)
    spaces = env.observation_space, env.action_space
    kind = AsyncRewardReplayBuffer if apart else ScoredReplayBuffer
    return env, kind(size * ROWS, *spaces, "cpu", **options)


def drained(buffer: AsyncRewardReplayBuffer) -> AsyncRewardReplayBuffer:
    """Once all that was made is judged."""
    while buffer._scored_to < buffer.trace.count:
        buffer._send()
        buffer._receive(wait=True)
    return buffer


@pytest.mark.parametrize("kind", [Nearness, Far, InTurn])
def test_async_rewards_equal_synchronous_rewards(kind: type) -> None:
    env, far = buffer_of(kind)
    _, near = buffer_of(kind, apart=False)
    near.env = env  # the very same steps
    rng = np.random.default_rng(0)
    for steps in (1, 7, 70, 30):  # one block each, of any size
        obs = env.sim._obs() if env.env_steps else env.reset()
        for _ in range(steps):
            after, reward, done, infos = env.step(rng.uniform(-1, 1, (ROWS, 2)))
            for buffer in (far, near):
                buffer.add(obs, after, np.zeros((ROWS, 2)), reward, done, infos)
            obs = after
        drained(far)
    near.score_pending()
    for name in ("rewards", "scored", "version"):
        np.testing.assert_array_equal(getattr(far, name), getattr(near, name), err_msg=name)
    assert far.rewards[:108].std() > 0 and not far.scored[:108].all()  # some steps diverged
    for name in near.components:
        np.testing.assert_array_equal(far.components[name], near.components[name])
    assert (far.late[:108] <= 70).all() and (far.late[8] == 69).all()  # the first of a block of 70


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file without which ``Gated`` scores nothing; it is there."""
    file = tmp_path / "gate"
    file.touch()
    monkeypatch.setenv(GATE, str(file))
    return file


def test_async_learner_samples_only_scored_steps(gate: Path) -> None:
    env, buffer = buffer_of(Gated, n_steps=3)
    fill(env, buffer, 20)
    buffer.sample(8)  # waits for the first block
    gate.unlink()
    for number in range(8):
        fill(env, buffer, 1, seed=number)
        places = buffer._sample_indices(64)
        # Nor are rewards counted, of steps ahead, that have not come.
        assert places.max() + 2 < buffer._scored_to == 20
        assert len(buffer.sample(64).rewards) == 64
        assert buffer._far.under_way <= 2
    gate.touch()
    buffer._receive(wait=True)
    assert buffer.late[20 : buffer._scored_to].max() > 5 and buffer.figures()["steps_late"] > 2


@pytest.mark.parametrize("steps", [1, 2])
def test_async_learner_with_few_steps_uses_them(steps: int) -> None:
    env, buffer = buffer_of(Nearness, n_steps=3)
    fill(env, buffer, steps)
    assert len(buffer.sample(16).rewards) == 16


def test_async_learner_waits_for_a_slow_scorer(gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_replay, "MOST_LATE", 10)
    env, buffer = buffer_of(Gated)
    fill(env, buffer, 1)
    buffer.sample(8)
    gate.unlink()
    for number in range(10):
        fill(env, buffer, 1, seed=number)
        buffer.sample(8)
    assert buffer.trace.count - buffer._scored_to == 10
    fill(env, buffer, 1)
    threading.Timer(0.2, gate.touch).start()
    buffer.sample(8)
    assert gate.exists() and buffer.trace.count - buffer._scored_to <= 10


@pytest.mark.parametrize("kind", [Nearness, Far])
def test_async_scores_of_overwritten_steps_are_dropped(kind: type) -> None:
    env, buffer = buffer_of(kind, size=16)
    fill(env, buffer, 4)
    drained(buffer)
    fill(env, buffer, 12, seed=1)
    buffer._send()
    fill(env, buffer, 10, seed=2)  # over half of what is under way
    fill(env, buffer, 20, seed=3)  # and over all that was never sent
    drained(buffer)
    near = Scorer(kind(), buffer.scorer.observer)
    expected = near.score(buffer.trace, buffer.trace.oldest, buffer.trace.count)
    steps = np.arange(buffer.trace.oldest, buffer.trace.count) % 16
    np.testing.assert_array_equal(buffer.rewards[steps], expected.reward)


def test_async_buffer_rescores_pending_steps_after_resume() -> None:
    env, buffer = buffer_of(Far)
    fill(env, buffer, 30)
    drained(buffer)
    fill(env, buffer, 12, seed=1)
    buffer._send()
    saved = buffer.state_dict()
    _, other = buffer_of(Far)
    other.load_state_dict(saved)
    np.testing.assert_array_equal(drained(other).rewards, drained(buffer).rewards)
    assert other.rewards[30:42].std() > 0


def test_async_scorer_errors_reach_the_learner() -> None:
    env, buffer = buffer_of(Broken)
    fill(env, buffer, 5)
    with pytest.raises(ValueError, match="this judge is broken"):
        buffer.sample(4)
    env, buffer = buffer_of(Nearness)
    fill(env, buffer, 5)
    os.kill(buffer._far.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="the scoring process exited unexpectedly with code -9"):
        buffer.sample(4)


def test_async_scorer_ends_with_its_parent() -> None:
    far = SubprocessScorer(partial(made, Nearness))
    far.close()
    assert not Path(f"/proc/{far.pid}").exists()
    code = (
        "import os, sys, time; from functools import partial\n"
        "from apart import Nearness, made, steps_of\n"
        "from robo_rl.rollout.subprocess_scorer import SubprocessScorer\n"
        "if __name__ == '__main__':\n"
        "    far = SubprocessScorer(partial(made, Nearness)); print(far.pid, flush=True)\n"
        "    far.send(0, steps_of(3_000), 0)\n"
        "    while not far._from.poll(): pass\n"
        "    os.kill(os.getpid(), 9)\n"  # with more unread than a pipe holds
    )
    here = str(Path(__file__).parent)
    env = os.environ | {"PYTHONPATH": os.pathsep.join([here, str(Path(here).parent)])}
    script = Path(here) / "data"  # any folder that a child can begin in
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=script
    )
    pid, until = int(told.stdout), time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"reward": "offline", "learner": "ppo"}, "ppo has no replay buffer for rewards"),
        ({"learner": "ensemble", "rate_limited": True}, "frames are rendered without them"),
        ({"learner": "ensemble", "scoring": ClipConfig(distill=True)}, "is refitted during"),
        ({"reward": "task", "learner": "ensemble"}, "is the simulator's and is not slow"),
        (
            {
                "goal": "touch the red cube, then the blue ball",
                "reward": "offline",
                "learner": "ensemble",
            },
            "a sequence of goals needs the scores of earlier steps",
        ),
    ],
)
def test_async_scoring_errors_are_one_line(options: dict, why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"--async-scoring: .*{why}"):
        train(TrainConfig(task="reach", async_scoring=True, runs=tmp_path / "runs", **options))
    assert not (tmp_path / "runs").exists()


def test_training_with_async_scoring(
    tmp_path: Path, coarse_obs_scale: None, short_video: None
) -> None:
    asked = TrainConfig(
        task="reach",
        reward="offline",
        learner="ensemble",
        async_scoring=True,
        env_steps=1_024,
        episodes=2,
        eval_points=0,
        runs=tmp_path,
        name="late",
        tuning=EnsembleConfig(num_envs=16, net=(16,), batch_size=32, learning_starts=64),
    )
    made_ = train(asked)
    assert made_.policy.learner.buffer._far.closed  # it does not outlive the training
    metrics = made_.run.metrics()
    assert "steps_late" in metrics and metrics["reward"][-1] > 0
    assert metrics["train/n_updates"][-1] > 30
