"""The benches of simulation and frames: contenders do the same work, peers live apart."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import sims
from robo_rl.benches import render, sim
from robo_rl.benches.peers import Peer, environment
from robo_rl.benches.sim import ours, rate_of, raw


@pytest.mark.parametrize("name", ("hopper", "reach"))
def test_ours_and_raw_play_the_same_controls(name: str) -> None:
    env = sims.make(name, 4, num_threads=1)
    action = np.random.default_rng(0).uniform(-1, 1, (3, 4, env.act_dim)).astype(np.float32)
    run = raw(env, action)
    assert ours(env, action)() == run() == 12 and rate_of(run)() > 0
    batch = next(
        cell.cell_contents for cell in run.__closure__ if hasattr(cell.cell_contents, "get_data")
    )
    ours(env, action)()
    assert (batch.qpos == env.batch.qpos).all()  # no row ended, so they are the same rollout


def test_a_peer_answers_from_its_own_process_and_fails_in_one_line() -> None:
    peer = Peer(sys.executable, "async", "Reacher-v5", 2, 5)
    assert peer.env_id == "Reacher-v5" and peer() == 10
    peer.close()
    with pytest.raises(OSError, match="a peer of the bench ended: .*Nothing"):
        Peer(sys.executable, "async", "Nothing-v0", 1, 5)


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # noqa: ANN001
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path))
    monkeypatch.setattr(sim, "ROWS", 4)
    monkeypatch.setattr(sim, "STEPS", {"reach": 2})
    said: list[str] = []
    figures = sim.bench(said.append)
    assert environment("fetch") == "" and "python -m robo_rl.benches.peers fetch" in said[-1]
    assert [figure.beside for figure in figures] == ["raw Batch.step"]


def test_frames_are_measured_beside_both_renderers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "FRAMES", 8)
    figures = render.bench(lambda text: None)
    assert len(figures) == 4 and figures[0].ratio > 1 and figures[0].peer > 0
