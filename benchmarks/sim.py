"""env-steps/s of three bodies and of arm reach.

Every contender gets the same scene, the same control sequence and the same rule: a row that has
ended is reset at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import mujoco
import numpy as np
from mujoco.batch import Batch

import sims
from benchmarks.peers import STEPPER, Peer, environment
from benchmarks.rates import Figure, Say, interleaved, rate, rates
from sims.core.rng import RowRng

Array = np.ndarray
Run = Callable[[], int]  # plays once, returns env-steps done

ROWS = 256
STEPS = {"humanoid": 40, "ant": 60, "half_cheetah": 200, "reach": 40}
TARGETS = {"humanoid": 2.5, "ant": 2.0, "half_cheetah": 2.5}  # times Gymnasium's vector env


def scene(name: str, say: Say) -> list[Figure]:
    """One scene beside raw Batch.step and the peers that are installed."""
    say(f"{name}, {ROWS} rows")
    env, cores = sims.make(name, ROWS), os.cpu_count() or 1
    steps = STEPS[name]
    shape = (steps, ROWS, env.act_dim)
    action = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    runs: dict[str, Run] = {"ours": ours(env, action), "raw": raw(env, action)}
    peers: dict[str, Peer] = {}
    if env.task.mirrors:
        for workers in sorted({1, cores, 2 * cores}):
            peers[f"async {workers}"] = Peer(
                sys.executable, STEPPER, "async", env.task.mirrors, workers, steps, 1
            )
    other = "envpool" if env.task.mirrors else "fetch"
    python = environment(other)
    if not python:
        say(f"no {other} beside it; make it: python -m benchmarks.peers {other}")
    elif other == "envpool":
        peers["envpool"] = Peer(python, STEPPER, other, env.task.mirrors, ROWS, steps, cores)
    else:
        peers["fetch"] = Peer(python, STEPPER, other, "FetchReach-v4", cores, steps, 1)
    work = {label: rate_of(run) for label, run in (runs | peers).items()}
    found = interleaved(work)
    for peer in peers.values():
        peer.close()
    env.close()

    def figure(peer: float, beside: str, target: float) -> Figure:
        return Figure(f"{name}, env-steps", found["ours"], peer, beside, target)

    figures = [figure(found["raw"], "raw Batch.step", 0.9)]
    workers = {label: r for label, r in found.items() if label.startswith("async")}
    if workers:
        best = max(workers, key=lambda label: workers[label])
        beside = f"Gymnasium's AsyncVectorEnv, {best.removeprefix('async ')} workers (its best)"
        figures.append(figure(found[best], beside, TARGETS[name]))
    if "envpool" in found:
        figures.append(figure(found["envpool"], f"EnvPool's {peers['envpool'].name}", 1.5))
    if "fetch" in found:
        figures.append(figure(found["fetch"], f"FetchReach-v4, {cores} workers", 5.0))
    return figures


def rate_of(run: Run) -> Callable[[], float]:
    """A measure: env-steps per second of one ``run``."""

    def measure() -> float:
        counted: list[int] = []
        return rate(1, lambda: counted.append(run())) * counted[0]

    return measure


def ours(env: sims.BatchEnv, action: Array) -> Run:
    """BatchEnv as a learner uses it."""

    def run() -> int:
        env.reseed(0)
        env.reset()
        for a in action:
            result = env.step(a)
            done = result.terminated | result.truncated
            if done.any():
                env.reset(done)
        return action.shape[0] * action.shape[1]

    return run


def raw(env: sims.BatchEnv, action: Array) -> Run:
    """The bare Batch: controls in, substeps, and the same resets; nothing observed or rewarded."""
    task, batch = env.task, Batch(env.model, env.num_envs, persistent=env.task.persistent)
    views = task.bind(batch)
    low, high = env.model.actuator_ctrlrange.T
    everyone = np.arange(env.num_envs)

    def reset(ids: Array) -> None:
        batch.reset(ids, stage=mujoco.mjtStage.mjSTAGE_NONE)
        task.reset(views, ids, RowRng(0, ids, np.zeros(len(ids), np.int64)))
        batch.forward(ids)

    def run() -> int:
        reset(everyone)
        for a in action:
            if task.mirrors:
                batch.ctrl[:] = 0.5 * (low + high) + 0.5 * (high - low) * a
            else:
                task.control(views, a)  # inverse kinematics: an arm's own physics
            batch.step(nstep=env.n_substeps, stage=task.stage)
            done = np.flatnonzero(np.zeros(env.num_envs, bool) | task.terminated(views))
            if len(done):
                reset(done)
        return action.shape[0] * action.shape[1]

    return run


EXPERIMENT = rates(__name__, scene, tuple(STEPS))
