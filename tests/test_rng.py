"""The row streams: Philox against its published answers, and rows that ignore one another."""

from __future__ import annotations

import numpy as np
import pytest

from sims.core.rng import RowRng, philox4x32

# philox4x32-10 of Random123's kat_vectors: counter, key, answer.
KNOWN = (
    (
        "00000000 00000000 00000000 00000000",
        "00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
)


def words(text: str) -> np.ndarray:
    return np.array([[int(word, 16) for word in text.split()]], np.uint64)


def streams(rows: object, episode: int = 0, seed: int = 0) -> RowRng:
    rows = np.atleast_1d(np.asarray(rows))
    return RowRng(seed, rows, np.full(len(rows), episode))


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_matches_published_vectors(counter: str, key: str, answer: str) -> None:
    assert (philox4x32(words(counter), words(key)) == words(answer)).all()


def test_env_stream_is_independent_of_other_envs() -> None:
    many, alone, shuffled = streams(np.arange(50)), streams(7), streams([30, 7, 2])
    for draw in (
        lambda r: r.uniform(-1, 1, (3, 2)),
        lambda r: r.normal((5,)),
        lambda r: r.integers(9),
    ):
        whole, one, three = draw(many), draw(alone), draw(shuffled)
        assert (whole[7] == one[0]).all()
        assert (whole[[30, 7, 2]] == three).all()


@pytest.mark.parametrize(
    "other", [{"rows": 1}, {"episode": 1}, {"seed": 1}, {"seed": 2**40}, {"episode": 2**33}]
)
def test_env_episode_and_seed_change_the_stream(other: dict[str, int]) -> None:
    ours = streams(0).uniform(0, 1, (64,))
    theirs = streams(**({"rows": 0} | other)).uniform(0, 1, (64,))
    assert not np.isin(ours, theirs).any()


def test_successive_draws_differ() -> None:
    rng = streams(0)
    assert not np.isin(rng.uniform(0, 1, (64,)), rng.uniform(0, 1, (64,))).any()


def test_random_numbers_have_their_distributions() -> None:
    rng = streams(np.arange(200))
    uniform, normal, whole = rng.uniform(-1, 3, (500,)), rng.normal((500,)), rng.integers(5, (500,))
    n = uniform.size
    assert uniform.min() >= -1 and uniform.max() < 3
    bins = np.histogram(uniform, 20, (-1, 3))[0]
    assert np.abs(bins - n / 20).max() < 5 * np.sqrt(n / 20)
    assert abs(normal.mean()) < 5 / np.sqrt(n) and abs(normal.std() - 1) < 0.01
    assert abs((normal**3).mean()) < 0.05 and abs((normal**4).mean() - 3) < 0.1
    assert np.abs(np.bincount(whole.ravel(), minlength=5) - n / 5).max() < 5 * np.sqrt(n / 5)
    # Neither along a row's draws nor from row to row.
    for a, b in ((uniform[:, 1:], uniform[:, :-1]), (uniform[1:], uniform[:-1])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.02


def test_bounds_broadcast() -> None:
    draws = streams(np.arange(4)).uniform([0, 10], [1, 11], (2,))
    assert draws.shape == (4, 2)
    assert (draws[:, 0] < 1).all() and (draws[:, 1] >= 10).all()
