"""Memory is bounded: what is kept is kept once, what works on it takes little beside it, and what
would not fit is refused before it is taken."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from point_mass import PointMass

from reward_models.scorers.embedding_reward import EmbeddingReward, FrameScores
from robo_rl.cli import main
from robo_rl.learners.buffers import ScoredReplayBuffer
from robo_rl.rollout import ring_buffers
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.trace import FRAMES, Trace
from robo_rl.rollout.vec_env import SB3VecEnv
from robo_rl.runs.run_dir import Checkpoint, RunDir
from robo_rl.runtime import memory
from robo_rl.vision.caption_data import FrameOptions, SceneView, graded_frames_of_scenes

SIDE = 64  # px of a frame
FRAME = SIDE * SIDE * 3  # bytes


class Drawn(PointMass):
    """One that cannot draw what is past; its frames are noise."""

    state = None
    render_states = None

    def render(self, ids=None, camera=None):
        rows = self.num_envs if ids is None else len(ids)
        return self.rng.integers(0, 256, (rows, SIDE, SIDE, 3), dtype=np.uint8)


class Mean:
    """An encoder of a frame into many numbers."""

    name, camera, size = "mean", "top", (SIDE, SIDE)

    def encode(self, frames):
        return np.repeat(frames.mean(axis=(1, 2)), 100, axis=1).astype(np.float32)  # (n, 300)


class Bright(EmbeddingReward):
    def rate(self, rows, before):
        return FrameScores(rows[:, 0] / 255)


def taken(work: Callable[[], object]) -> int:
    """Bytes that ``work`` takes at most at one time, beside what was there."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def buffer_of(steps: int, model: EmbeddingReward) -> ScoredReplayBuffer:
    """Full of frames, of two rows."""
    env = SB3VecEnv(Drawn(2, steps=50), model)
    buffer = ScoredReplayBuffer(
        2 * steps,
        env.observation_space,
        env.action_space,
        "cpu",
        n_envs=2,
        env=env,
        scorer=Scorer(model, env.observer, batch=64),
    )
    obs, rng = env.reset(), np.random.default_rng(0)
    for _ in range(steps):
        after, reward, done, infos = env.step(rng.uniform(-1, 1, (2, 2)))
        buffer.add(obs, after, np.zeros((2, 2)), reward, done, infos)
        obs = after
    return buffer


def test_non_reproducible_frames_are_stored_once():
    assert taken(lambda: buffer_of(600, Bright(Mean()))) < 1.15 * 1200 * FRAME


@pytest.mark.parametrize("keeps", [False, True])
def test_scoring_memory_is_constant_in_steps(keeps: bool):
    def of(steps: int) -> int:
        model = Bright(Mean())
        model.keeps = keeps
        buffer = buffer_of(steps, model)
        buffer.score_pending()  # what is kept of it is kept from here on
        return taken(buffer.relabel)

    few, many = of(100), of(600)
    assert many < few + 100 * 1000  # 100 bytes a step, where a frame has 12,288


def test_checkpoint_io_does_not_copy_the_buffer(tmp_path, monkeypatch):
    monkeypatch.setattr(ring_buffers, "PIECE", 1 << 20)
    buffer = buffer_of(600, Bright(Mean()))
    fresh = buffer_of(1, Bright(Mean()))
    fresh = ScoredReplayBuffer(
        1200,
        fresh.observation_space,
        fresh.action_space,
        "cpu",
        n_envs=2,
        env=fresh.env,
        scorer=fresh.scorer,
    )
    kept, run = 1200 * FRAME, RunDir.create(tmp_path / "run", {})

    def save() -> None:
        run.save_checkpoint(Checkpoint(1, {"w": np.zeros(1)}, buffer.state_dict(), {}))

    def load() -> None:
        saved = run.latest_checkpoint()
        assert saved is not None and kept < saved.kept < 1.15 * kept
        fresh.load_state_dict(saved.state)

    buffer.score_pending()
    assert taken(save) < 0.2 * kept
    assert taken(load) < 1.3 * kept  # what is kept itself, this time
    fresh.scorer.score(fresh.trace, 0, 600)
    np.testing.assert_array_equal(fresh.rewards, buffer.rewards)


@given(
    room=st.integers(3, 30),
    steps=st.integers(1, 60),
    saved_at=st.integers(0, 60),
    last=st.sampled_from([None, 2]),
    piece=st.sampled_from([1, 100, 1 << 20]),
    seed=st.integers(0, 100),
)
@settings(deadline=None, max_examples=60)
def test_trace_stores_shared_observations_once(room, steps, saved_at, last, piece, seed):
    """However long the ring is, and wherever a run was saved and taken up again."""
    sim, model = PointMass(3, ragged=0.2, steps=9, seed=seed), Bright(Mean())
    model.needs = frozenset({"frames", "signals"})
    env, rng = SB3VecEnv(sim, model), np.random.default_rng(seed)
    env.scored_later = True
    env.reset()
    trace, made = Trace(room), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring_buffers, "PIECE", piece)
        for t in range(steps):
            env.step(rng.uniform(-1, 1, (3, 2)))
            trace.add(env.last_step())
            made.append(env.last_step())
            if t == saved_at:
                state, trace = trace.state_dict(last), Trace(room)
                trace.load_state_dict({name: array.copy() for name, array in state.items()})
    oldest = max(0, steps - room)
    if last is not None and saved_at < steps:
        oldest = max(oldest, saved_at + 1 - last)
    assert trace.oldest == oldest
    for t in range(oldest, steps):
        found = trace.step(t)
        for name in ("pos", "goal", FRAMES):
            np.testing.assert_array_equal(found.before[name], made[t].before[name])
            np.testing.assert_array_equal(found.after[name], made[t].after[name])
        np.testing.assert_array_equal(found.action, made[t].action)
        np.testing.assert_array_equal(found.last, made[t].last)


def little(monkeypatch: pytest.MonkeyPatch, count: float) -> None:
    """A container in which so many bytes are left."""
    monkeypatch.setattr(memory, "_of_groups", lambda: [int(count)])


TRAIN = [
    "train",
    "gym:Pendulum-v1",
    "--reward",
    "task",
    "--learner",
    "sac",
    "--episodes",
    "2",
    "--tuning.gradient-steps",
    "1",
    "--tuning.batch-size",
    "16",
    "--tuning.net",
    "8",
]


def test_run_that_exceeds_memory_is_refused_at_start(tmp_path, monkeypatch, capsys):
    little(monkeypatch, 5e6)
    run = [*TRAIN, "--runs", str(tmp_path / "runs"), "--name", "one", "--env-steps"]
    assert main([*run, "200000"]) == 1
    said = capsys.readouterr().err
    refused = (
        r"200,000 steps are kept, 0\.0 kB each: needs [789]\.\d MB of memory, 5\.0 MB are "
        r"free; give --tuning.buffer-size 1[01]0000 or less\n$"
    )
    assert re.search(refused, said)
    assert not (tmp_path / "runs").exists()
    assert main([*run, "208"]) == 0  # it is not the ring that counts, but what comes into it
    path = tmp_path / "runs" / "one"
    result = json.loads((path / "result.json").read_text())
    assert 0.1 < result["peak_memory_gb"] < 8
    # A run that no longer fits is not resumed.
    little(monkeypatch, 5e3)
    capsys.readouterr()
    assert main(["train", "--resume", str(path), "--env-steps", "304"]) == 1
    assert "the run's 208 steps are taken up again: needs" in capsys.readouterr().err
    little(monkeypatch, 1e9)
    with pytest.warns(UserWarning, match="cannot restore its state"):  # of an env of anyone's
        assert main(["train", "--resume", str(path), "--env-steps", "304"]) == 0


def test_embedding_store_refuses_to_exceed_memory(monkeypatch):
    model = Bright(Mean())
    model.keeps = True
    buffer = buffer_of(100, model)
    little(monkeypatch, 2e5)
    with pytest.raises(ValueError, match=r"in 200 steps is kept, 300 numbers of each: .*240\.0 kB"):
        buffer.score_pending()
    little(monkeypatch, 3e5)
    buffer.score_pending()


def test_too_many_training_frames_are_refused_before_rendering(monkeypatch):
    little(monkeypatch, 2e6)
    with pytest.raises(ValueError, match=r"100 frames of 96 x 96 px are kept: .* less of --frames"):
        graded_frames_of_scenes([SceneView("reach")], FrameOptions(), 100, seed=0)


def test_cgroup_memory_limit_is_found(tmp_path: Path):
    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    # Version 2: its own is unlimited, the one around it is not.
    write("cgroup", "0::/work/job\n")
    write("memory.stat", "")
    write("work/job/memory.max", "max\n")
    write("work/job/memory.current", "70\n")
    write("work/memory.max", "1000\n")
    write("work/memory.current", "400\n")
    write("work/memory.stat", "anon 300\ninactive_file 50\n")
    assert memory._of_groups(tmp_path, tmp_path / "cgroup") == [650]
    # Version 1, seen from within: the path of the host is not there.
    write("cgroup", "4:cpu,cpuacct:/docker/1f\n3:memory:/docker/1f\n")
    write("memory/memory.limit_in_bytes", "2000")
    write("memory/memory.usage_in_bytes", "2500")
    write("memory/memory.stat", "total_inactive_file 100\n")
    assert memory._of_groups(tmp_path, tmp_path / "cgroup") == [0]
    assert memory._of_groups(tmp_path, tmp_path / "none") == []


def test_free_memory_and_peak_are_measured():
    """In a process of its own, whose peak is small."""
    code = (
        "from robo_rl.runtime import memory\n"
        "assert 1e8 < memory.free_memory() < 1e14\n"
        "before = memory.peak_memory()\n"
        "big = bytearray(before + 80_000_000)\n"
        "assert memory.peak_memory() >= len(big)\n"
        "del big\n"
        "assert memory.peak_memory() > before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])
