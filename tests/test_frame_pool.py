"""Frames drawn on several threads: the same frames, and as many threads as are worth it."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import sims
from robo_rl.vision.state_collection import jitter
from sims import BatchEnv
from sims.rendering import render_client, render_pool
from sims.rendering.cameras import Appearance, Renderer
from sims.rendering.render_pool import SETTING, RenderPool, fastest_thread_count

ROWS = 70  # not a multiple of a chunk


@pytest.fixture(scope="module")
def env() -> BatchEnv:
    env = sims.make("reach", ROWS, seed=1, num_threads=1)
    env.scatter()
    env.render()  # with its one thread, before a test asks for more
    return env


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "3")


def others() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("frames")]


def test_parallel_rendering_gives_identical_frames(env: BatchEnv, forced: None) -> None:
    look = Appearance(
        geom_rgba={"table": np.random.default_rng(0).uniform(size=(ROWS, 4))},
        **jitter(np.random.default_rng(1), ROWS, env.camera("top"), camera=0.1, light=0.3),
    )
    states, one, pool = env.state(), Renderer(env.model, 48, 64), RenderPool(env.model, 48, 64)
    for given in (None, look, dataclasses.replace(look, numbered=True)):
        frames = pool.frames(states, "top", given)
        assert (frames == one.frames(states, "top", given)).all()
    assert len(others()) == 2
    pool.close()
    pool.close()
    assert not others()
    one.close()


def test_unclosed_pool_ends_its_processes(env: BatchEnv, forced: None) -> None:
    pool = RenderPool(env.model, 16, 16)
    pool.frames(env.state(), "front")
    threads = others()
    assert len(threads) == 2
    del pool
    gc.collect()
    for thread in threads:
        thread.join(60.0)
    assert not others()
    assert (env.render() == env.render()).all()


def test_pool_error_is_raised_and_stops_rendering(env: BatchEnv, forced: None) -> None:
    states, pool = env.state(), RenderPool(env.model, 16, 16)
    good = pool.frames(states, "front")
    with pytest.raises(IndexError):
        pool.frames(states, "front", Appearance(light=np.ones(ROWS - 1)))
    with pytest.raises(ValueError, match="unknown camera 'rear'; available: front, top"):
        pool.frames(states, "rear")
    assert (pool.frames(states, "front") == good).all()
    pool.close()


def test_fastest_thread_count_is_measured_once_and_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path))
    monkeypatch.setattr(render_pool, "usable_cores", lambda: 6)
    monkeypatch.setattr(render_pool.os, "getloadavg", lambda: (6.0, 0.0, 0.0))
    tried: list[int] = []

    def machine(*rates: float):
        def rate(threads: int) -> float:
            tried.append(threads)
            return rates[(1, 2, 4, 6).index(threads)]

        return rate

    assert fastest_thread_count("a", machine(1.0, 1.8, 2.2, 2.0), 6) == 4
    assert set(tried) == {1, 2, 4, 6}
    tried.clear()
    assert fastest_thread_count("a", machine(1.0, 0.5, 0.5, 0.5), 6) == 4 and not tried
    # Who may have two is measured with two.
    assert fastest_thread_count("a", machine(1.0, 1.8, 2.2, 2.0), 2) == 2 and set(tried) == {1, 2}
    # What gains next to nothing is not worth a thread; another renderer is another machine.
    assert fastest_thread_count("b", machine(1.0, 1.05, 0.9, 0.8), 6) == 1
    # Measured on busy cores that is not kept.
    assert fastest_thread_count("b", machine(1.0, 1.5, 0.9, 0.8), 6) == 2
    monkeypatch.setattr(render_pool.os, "getloadavg", lambda: (1.5, 0.0, 0.0))
    assert fastest_thread_count("c", machine(1.0, 1.05, 0.9, 0.8), 6) == 1
    assert fastest_thread_count("c", machine(1.0, 1.5, 0.9, 0.8), 6) == 1
    (stored,) = tmp_path.iterdir()
    assert sorted(json.loads(stored.read_text()).values()) == [1, 2, 2, 4]
    stored.write_text("spoilt")
    assert fastest_thread_count("a", machine(1.0, 2.0, 1.0, 1.0), 6) == 2


def test_batch_renders_on_at_most_its_threads(
    env: BatchEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path))
    monkeypatch.delenv(SETTING, raising=False)
    env.render()
    assert not others() and not list(tmp_path.iterdir())  # one thread: nothing to measure
    wide = sims.make("reach", ROWS, seed=1, num_threads=2)
    wide.scatter()
    few = wide.render(np.arange(render_pool.FEW))
    assert not others() and not list(tmp_path.iterdir())
    assert (wide.render() == env.render()).all() and (few == env.render()[: len(few)]).all()
    [pool] = wide._renderers.values()
    assert len(others()) == pool._chosen - 1 < 2  # who was only measured is gone
    wide.close()


def test_invalid_render_thread_setting_is_refused(
    env: BatchEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "many")
    with pytest.raises(ValueError, match=f"{SETTING} must be a number of threads.*got 'many'"):
        RenderPool(env.model, 8, 8)


def test_program_without_close_exits_cleanly(tmp_path: Path) -> None:
    program = "import sims; e = sims.make('reach', 40); e.reset(); print(e.render().shape)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {SETTING: "2"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stdout == "(40, 96, 96, 3)\n" and not done.stderr


def test_renderer_processes_end_with_the_program() -> None:
    program = (
        "import time, sims; e = sims.make('reach', 40); e.reset(); e.render(); "
        "print(*sims.rendering.render_client.renderer_pids(), flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {SETTING: "2"},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        (pid,) = map(int, parent.stdout.readline().split())
        parent.kill()
    deadline = time.monotonic() + 60.0
    while running(pid):
        assert time.monotonic() < deadline, "it draws for nobody"
        time.sleep(0.05)


def test_rendering_falls_back_to_this_process(
    env: BatchEnv, forced: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render_client, "_idle", [])

    def full(*asked: object, **more: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(render_client.process, "start_module", full)
    pool, one = RenderPool(env.model, 16, 16), Renderer(env.model, 16, 16)
    states = env.state()
    assert (pool.frames(states, "front") == one.frames(states, "front")).all()
    assert not others()
    pool.close()
    one.close()


def test_rendering_survives_a_killed_renderer_process(env: BatchEnv, forced: None) -> None:
    pool, states = RenderPool(env.model, 16, 16), env.state()
    light = Appearance(light=np.linspace(0.5, 1.5, ROWS))
    good = pool.frames(states, "front", light)
    first = set(render_client.renderer_pids())
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    for _ in range(2):
        assert (pool.frames(states, "front", light) == good).all()
    assert len(first) == 2 == len(set(render_client.renderer_pids()) - first)  # others have begun
    assert render_client.renderer_cpu_seconds() > 0.0
    pool.close()


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
