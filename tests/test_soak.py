"""Faults of all kinds, planted at random for a long time: nothing falls over, nothing spreads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import sims
from sims import BatchEnv
from sims.randomization.domain_randomization import Randomize, RandomizedEnv

Array = np.ndarray
ROWS = 8
VICTIMS = np.array([2, 5])  # rows that faults are planted in


def nan_action(env: BatchEnv, action: Array, row: int, rng: np.random.Generator) -> None:
    action[row, rng.integers(env.act_dim)] = rng.choice([np.nan, np.inf, -np.inf])


def nan_state(env: BatchEnv, action: Array, row: int, rng: np.random.Generator) -> None:
    field = env.batch.qpos if rng.random() < 0.5 else env.batch.qvel
    field[row, rng.integers(field.shape[1])] = rng.choice([np.nan, np.inf])


def huge_speed(env: BatchEnv, action: Array, row: int, rng: np.random.Generator) -> None:
    env.batch.qvel[row] = 10.0 ** rng.uniform(5, 12) * rng.choice([-1, 1], env.model.nv)


def huge_force(env: BatchEnv, action: Array, row: int, rng: np.random.Generator) -> None:
    body = rng.integers(1, env.model.nbody)
    env.batch.xfrc_applied[row, body] = 10.0 ** rng.uniform(6, 15) * rng.normal(size=6)


def far_away(env: BatchEnv, action: Array, row: int, rng: np.random.Generator) -> None:
    env.batch.qpos[row] = 10.0 ** rng.uniform(3, 12) * rng.normal(size=env.model.nq)


FAULTS: tuple[Callable[..., None], ...] = (nan_action, nan_state, huge_speed, huge_force, far_away)


def soak(sound: BatchEnv, faulty: BatchEnv, steps: int, seed: int) -> dict[str, int]:
    """Plants a fault in every third step or so; how often each was planted, and was noticed."""
    rng, counts = np.random.default_rng(seed), {fault.__name__: 0 for fault in FAULTS}
    others = np.setdiff1d(np.arange(ROWS), VICTIMS)
    sound.reset()
    faulty.reset()
    for _ in range(steps):
        action = rng.uniform(-1, 1, (ROWS, sound.act_dim))
        spoilt = action.copy()
        if rng.random() < 0.35:
            fault, row = FAULTS[rng.integers(len(FAULTS))], int(rng.choice(VICTIMS))
            fault(faulty, spoilt, row, rng)
            counts[fault.__name__] += 1
        theirs, ours = sound.step(action), faulty.step(spoilt)
        for name in ("obs", "reward", "terminated", "truncated"):
            assert (getattr(ours, name)[others] == getattr(theirs, name)[others]).all()
        assert (faulty.state()[others] == sound.state()[others]).all()
        assert not ours.info["diverged"][others].any()
        # A row that failed shows its last finite state, is over, and is worth nothing.
        assert np.isfinite(ours.obs).all() and np.isfinite(faulty.state()).all()
        assert all(np.isfinite(value).all() for value in faulty.signals().values())
        failed = ours.info["diverged"]
        assert ours.truncated[failed].all() and not ours.reward[failed].any()
        again = failed | ours.truncated | ours.terminated | (rng.random(ROWS) < 0.02)
        # Both reset the same rows, so that their streams go on together.
        mine, other = faulty.reset(again), sound.reset(again)
        assert (mine[others] == other[others]).all()
    assert sound.num_diverged == 0
    return counts | {"diverged": faulty.num_diverged}


def pair(name: str, width: float) -> tuple[BatchEnv, BatchEnv]:
    if not width:
        return sims.make(name, ROWS, seed=3), sims.make(name, ROWS, seed=3)
    task, randomize = sims.make_task(name), Randomize(width=width)
    first, second = (RandomizedEnv(task, ROWS, randomize=randomize, seed=3) for _ in range(2))
    return first, second


@pytest.mark.parametrize(("name", "width"), [("reach", 0.0), ("ant", 0.0), ("hopper", 0.5)])
def test_soak_faults_stay_in_their_envs(name: str, width: float) -> None:
    counts = soak(*pair(name, width), steps=90, seed=1)
    assert min(counts.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("width", (0.0, 0.5))
@pytest.mark.parametrize("name", sims.TASKS)
def test_soak_faults_stay_in_their_envs_for_10000_steps(name: str, width: float) -> None:
    counts = soak(*pair(name, width), steps=10_000 // ROWS, seed=2)
    assert min(counts.values()) > 40
