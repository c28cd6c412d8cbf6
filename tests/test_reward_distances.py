"""Distances between rewards on small MDPs whose answers are known, and ranking figures on numbers
that others have computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau, somersd

from reward_models.analysis.metrics import (
    brier,
    calibration_error,
    kendall,
    reliability,
    threshold_within_bound,
    wilson,
)
from reward_models.analysis.overoptimization import compare_proxy_with_truth, sign_test
from reward_models.analysis.reward_distances import (
    StarcCanonicalizer,
    Transitions,
    bootstrap_episodes,
    canonical_distances,
    epic_form,
    starc_distances,
)

STATES, ACTIONS, GAMMA = 5, 3, 0.9
RNG = np.random.default_rng(0)
FROM, ACTION = (x.ravel() for x in np.meshgrid(np.arange(STATES), np.arange(ACTIONS)))
INTO = RNG.integers(STATES, size=len(FROM))  # every action of every state leads somewhere
ONE = np.array([0])


def steps(into: np.ndarray = INTO) -> Transitions:
    """Every transition of the MDP once, states told apart; the first feature is 1."""
    one_hot = np.eye(STATES)
    one_hot[:, 0] = 1.0
    return Transitions(one_hot[FROM], one_hot[into], np.arange(len(FROM)))


def apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(starc_distances(np.stack([b, a], axis=1), steps(), ONE, GAMMA)[1, 0])


REWARD = RNG.normal(size=len(FROM))
numbers = st.floats(-10.0, 10.0)
rewards = arrays(float, len(FROM), elements=numbers)


@settings(max_examples=60, deadline=None)
@given(arrays(float, STATES, elements=numbers), st.floats(0.01, 100.0), numbers)
def test_starc_ignores_shaping_scale_and_constants(potential, scale, constant) -> None:
    shaped = scale * REWARD + GAMMA * potential[INTO] - potential[FROM] + constant
    assert apart(shaped, REWARD) == pytest.approx(0.0, abs=1e-5)
    assert apart(-shaped, REWARD) == pytest.approx(1.0, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(rewards, rewards, rewards)
def test_starc_is_a_pseudometric(a, b, c) -> None:
    found = starc_distances(np.stack([a, b, c], axis=1), steps(), np.arange(3), GAMMA)
    rounding = 1e-7  # a distance is the root of a difference of numbers that are near 1
    np.testing.assert_allclose(found, found.T, atol=rounding)
    np.testing.assert_allclose(np.diag(found), 0.0, atol=rounding)
    assert (found >= 0).all() and (found <= 1 + rounding).all()
    assert found[0, 2] <= found[0, 1] + found[1, 2] + rounding


def test_starc_of_an_action_independent_reward_is_half() -> None:
    assert apart(np.full(len(FROM), 3.0), REWARD) == pytest.approx(0.5, abs=1e-6)
    assert apart(REWARD[FROM], REWARD[FROM]) == 0.0


def test_starc_value_matches_the_behaviour_policy() -> None:
    """V = r + gamma P V of the policy that takes each action alike, solved by hand."""
    mean = np.array([REWARD[FROM == s].mean() for s in range(STATES)])
    into = np.zeros((STATES, STATES))
    np.add.at(into, (FROM, INTO), 1 / ACTIONS)
    value = np.linalg.solve(np.eye(STATES) - GAMMA * into, mean)
    advantage = REWARD - value[FROM] + GAMMA * value[INTO]
    found = StarcCanonicalizer(REWARD[:, None], steps(), GAMMA).forms()[:, 0]
    np.testing.assert_allclose(found, advantage, atol=1e-6)
    np.testing.assert_allclose([found[FROM == s].sum() for s in range(STATES)], 0.0, atol=1e-6)


def test_epic_of_unrelated_rewards_is_root_half() -> None:
    many = np.random.default_rng(1).normal(size=(20_000, 2))
    found = canonical_distances(many, many, ONE, centred=True)[1, 0]
    assert found == pytest.approx(np.sqrt(0.5), abs=0.01)
    pearson = np.corrcoef(many.T)[0, 1]
    assert found == pytest.approx(np.sqrt((1 - pearson) / 2), abs=1e-9)


def test_episode_weight_two_equals_two_copies() -> None:
    weight = RNG.integers(0, 3, len(FROM)).astype(float)
    held = StarcCanonicalizer(REWARD[:, None], steps(), GAMMA).forms(weight)
    ids = np.repeat(np.arange(len(FROM)), weight.astype(int))
    said = steps()
    again = Transitions(said.here[ids], said.there[ids], np.arange(len(ids)))
    np.testing.assert_allclose(
        StarcCanonicalizer(REWARD[ids, None], again, GAMMA).forms(), held[ids], atol=1e-5
    )


def test_epic_ignores_potential_shaping() -> None:
    potential = RNG.normal(size=STATES)
    shaped = 2 * REWARD + GAMMA * potential[INTO] - potential[FROM]
    # Mean over every (action, successor) of the reward of leaving a state: R knows none, the
    # potential its own state's alone, but for what is the same everywhere.
    forms = np.stack(
        [REWARD, epic_form(shaped, -potential[FROM], -potential[INTO], GAMMA), shaped], axis=1
    )
    found = canonical_distances(forms, forms, ONE, centred=True)[:, 0]
    assert found[1] == pytest.approx(0.0, abs=1e-7) and found[2] > 0.05


def test_bootstrap_interval_covers_the_mean() -> None:
    values = np.random.default_rng(2).normal(3.0, 1.0, 400)
    mean, low, high = bootstrap_episodes(
        lambda w: np.array((w * values).sum() / w.sum()), 400, draws=400
    )
    assert mean == pytest.approx(values.mean())
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.2) and low < mean < high


# Ranking, threshold, calibration.
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=3, max_size=40))
def test_somers_d_matches_scipy(pairs) -> None:
    score, order = np.array(pairs).T
    found = kendall(score, order)
    if len(np.unique(order)) < 2:
        assert np.isnan(found)
        return
    flat = len(np.unique(score)) == 1  # scipy does not say
    assert found == pytest.approx(0.0 if flat else somersd(order, score).statistic)
    if len(np.unique(score)) == len(score) and len(np.unique(order)) == len(order):
        assert found == pytest.approx(kendalltau(score, order).statistic)


def test_brier_and_calibration_match_hand_values() -> None:
    chance, so = np.array([0.1, 0.15, 0.9, 0.95, 0.95]), np.array([0, 1, 1, 1, 0])
    assert brier(chance, so) == pytest.approx((0.01 + 0.7225 + 0.01 + 0.0025 + 0.9025) / 5)
    cells = reliability(chance, so)
    assert cells == [
        (pytest.approx(0.125), 0.5, 2),
        (pytest.approx(2.8 / 3), pytest.approx(2 / 3), 3),
    ]
    error = (0.375 * 2 + (2.8 / 3 - 2 / 3) * 3) / 5
    assert calibration_error(chance, so) == pytest.approx(error)
    assert reliability(np.array([1.0]), np.array([1])) == [(1.0, 1.0, 1)]


def test_threshold_keeps_the_false_positive_bound() -> None:
    rng = np.random.default_rng(3)
    score, positive = 1000 * rng.normal(size=4000), rng.random(4000) < 0.3
    over = score[~positive] >= threshold_within_bound(score, positive, 0.02)
    assert 0 < over.sum() and wilson(int(over.sum()), len(over))[1] <= 0.02


# Over-optimisation.
def test_sign_test_matches_binomial() -> None:
    assert sign_test(0, 0) == 1.0 and sign_test(5, 0) == pytest.approx(1 / 32)
    assert sign_test(0, 7) == 1.0 and sign_test(3, 1) == pytest.approx(5 / 16)


def test_overoptimisation_needs_more_reward_and_less_success() -> None:
    rng = np.random.default_rng(4)
    proxy, won = rng.normal(size=100), rng.random(100) < 0.9
    worse = won & (rng.random(100) > 0.3)
    assert compare_proxy_with_truth((proxy, proxy + 0.1), (won, worse)).overoptimised
    assert not compare_proxy_with_truth(
        (proxy, proxy - 0.1), (won, worse)
    ).overoptimised  # both fell
    assert not compare_proxy_with_truth(
        (proxy, proxy + 0.1), (worse, won)
    ).overoptimised  # both rose
    assert not compare_proxy_with_truth((proxy, proxy), (won, worse)).overoptimised
    one = won.copy()
    one[np.flatnonzero(won)[0]] = False
    assert not compare_proxy_with_truth(
        (proxy, proxy + 0.1), (won, one)
    ).overoptimised  # within noise
    with pytest.raises(ValueError, match="two episodes"):
        compare_proxy_with_truth((proxy[:1], proxy[:1]), (won, won))


def test_overoptimisation_rarely_flags_noise() -> None:
    rng, alarms = np.random.default_rng(5), 0
    for _ in range(400):
        looks = [(rng.normal(size=60), rng.random(100) < 0.8) for _ in range(2)]
        (proxy, won), (after, then) = looks
        alarms += compare_proxy_with_truth((proxy, after), (won, then)).overoptimised
    assert alarms <= 2
