"""The benches of simulation and frames: contenders do the same work, peers live apart."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import sims
from benchmarks import RowFolder, render, sim
from benchmarks.peers import STEPPER, Peer, environment
from benchmarks.rates import interleaved
from benchmarks.sim import ours, rate_of, raw


@pytest.mark.parametrize("name", ("hopper", "reach"))
def test_sim_bench_and_raw_mujoco_play_the_same_controls(name: str) -> None:
    env = sims.make(name, 4, num_threads=1)
    action = np.random.default_rng(0).uniform(-1, 1, (3, 4, env.act_dim)).astype(np.float32)
    run = raw(env, action)
    assert ours(env, action)() == run() == 12 and rate_of(run)() > 0
    batch = next(
        cell.cell_contents for cell in run.__closure__ if hasattr(cell.cell_contents, "get_data")
    )
    ours(env, action)()
    assert (batch.qpos == env.batch.qpos).all()  # no row ended, so they are the same rollout


def test_peer_runs_in_a_subprocess_and_fails_in_one_line() -> None:
    peer = Peer(sys.executable, STEPPER, "async", "Reacher-v5", 2, 5, 1)
    assert peer.name == "Reacher-v5" and peer() == 10
    peer.close()
    with pytest.raises(OSError, match="the subprocess of a compared library ended: .*Nothing"):
        Peer(sys.executable, STEPPER, "async", "Nothing-v0", 1, 5, 1)


def test_peer_environment_has_no_thread_settings_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LP_NUM_THREADS", "0")
    monkeypatch.setenv("USERS_OWN", "kept")
    names = "LP_NUM_THREADS", "OMP_NUM_THREADS", "USERS_OWN", "MUJOCO_GL"
    said = f"import os; print(*map(os.environ.get, {names}))"
    peer = Peer(sys.executable, said, MUJOCO_GL="egl")
    peer.close()
    assert peer.name == "None None kept egl"


def test_missing_peer_is_named_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path))
    monkeypatch.setattr(sim, "ROWS", 4)
    monkeypatch.setattr(sim, "STEPS", {"reach": 2})
    said: list[str] = []
    figures = sim.scene("reach", said.append)
    assert environment("fetch") == "" and "python -m benchmarks.peers fetch" in said[-1]
    assert [figure.beside for figure in figures] == ["raw Batch.step"]


def test_render_bench_measures_both_other_renderers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(render, "FRAMES", 8)
    monkeypatch.setattr(render, "interleaved", partial(interleaved, repeats=1))
    row = render.EXPERIMENT.measure("arm scene", RowFolder(tmp_path))
    assert len(row["figures"]) == 5 and all(figure["peer"] > 0 for figure in row["figures"])
    first = row["figures"][0]  # beside Gymnasium's renderer as shipped
    assert first["ours"] > first["peer"]
    assert "arm scene, 224 px, frames | " in render.EXPERIMENT.table([row])
