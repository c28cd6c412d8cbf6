"""EnsembleSAC: its critics are networks of their own, and its updates are SAC's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from point_mass import Nearness, PointMass
from torch.nn import functional as F

from reward_models.base import RewardOutput
from robo_rl.learners import EnsembleConfig
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.learners.training_loop import learn

SMALL = EnsembleConfig(
    num_envs=8,
    net=(16, 16),
    learning_starts=64,
    buffer_size=1024,
    batch_size=32,
    critics=3,
    gradient_steps=2,
)


def new(config: EnsembleConfig = SMALL, **sim) -> Learner:
    return make_learner(config, PointMass(config.num_envs, **sim), Nearness())


def sampled(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return tuple(torch.from_numpy(rng.uniform(-1, 1, (40, k)).astype(np.float32)) for k in (4, 2))


def test_ensemble_critics_are_independent_networks():
    critic, (obs, action) = new().algorithm.critic, sampled()
    values = critic(obs, action)
    assert values.shape == (3, 40)
    assert values.std(dim=0).min() > 0  # they begin apart
    for member in range(3):
        x = torch.cat([critic.features_extractor(obs), action], dim=1)
        layers = zip(critic.weights, critic.biases, strict=True)
        for i, (weight, bias) in enumerate(layers):
            x = x if i == 0 else F.relu(F.layer_norm(x, (16,)))
            x = x @ weight[member] + bias[member]
        torch.testing.assert_close(values[member], x[:, 0], rtol=1e-4, atol=1e-6)
    values[1].sum().backward()
    for weight in critic.weights:
        touched = weight.grad.abs().amax(dim=(1, 2)) > 0
        assert touched.tolist() == [False, True, False]


def test_actor_log_prob_matches_squashed_gaussian():
    """That of SB3's own squashed Gaussian."""
    policy = new().algorithm.policy
    obs, _ = sampled()
    action, log_prob = policy.draw(obs)
    mean, log_std, _ = policy.actor.get_action_dist_params(obs)
    theirs = policy.actor.action_dist.proba_distribution(mean, log_std)
    torch.testing.assert_close(log_prob, theirs.log_prob(action), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n_steps", [1, 3])
def test_critics_converge_to_a_known_value(n_steps, training_seed, outcome):
    """1 in every step, without end: ``1 / (1 - gamma)``, and what its own entropy is worth."""

    class One(Nearness):
        def score(self, segment):
            return RewardOutput(np.ones(segment.valid.shape), segment.valid)

    config = EnsembleConfig(
        num_envs=16,
        net=(32, 32),
        learning_starts=64,
        batch_size=64,
        buffer_size=4096,
        tau=0.2,
        gradient_steps=6,
        n_steps=n_steps,
        horizon_s=0.1,
        entropy_init=1e-6,
        learning_rate=5e-3,
        final_rate=1.0,
    )
    learner = make_learner(config, PointMass(16, steps=1000), One(), seed=training_seed)
    learn(learner, 1_800)
    algorithm, (obs, action) = learner.algorithm, sampled()
    with torch.no_grad():
        values = algorithm.critic(obs, action)
    assert 1 / (1 - algorithm.gamma) == pytest.approx(33)
    outcome("error of the value, of it", abs(values.mean().item() / 33 - 1), below=0.2)


def test_actor_update_is_delayed_and_leaves_critics_alone():
    learner = new()
    learn(learner, 128)
    algorithm = learner.algorithm
    assert all(p.requires_grad for p in algorithm.critic.parameters())
    states = algorithm.actor.optimizer.state_dict()["state"]
    counted = {int(moments["step"]) for moments in states.values()}
    assert algorithm._n_updates == 16 and counted == {8}
    assert all(int(s["step"]) == 16 for s in algorithm.critic.optimizer.state.values())


def test_correlated_noise_has_per_env_time_constants() -> None:
    """Correlations of what is tried, a step apart and more, are those of the times asked for."""
    config = dataclasses.replace(SMALL, noise_s=2.0)  # 20 control steps
    policy = new(config).algorithm.policy
    obs, _ = sampled()
    with torch.no_grad():
        mean, log_std, _ = policy.actor.get_action_dist_params(obs[:8])
        tried = torch.stack([policy._predict(obs[:8]) for _ in range(8_000)])
    noise = ((tried.clamp(-0.9999, 0.9999).atanh() - mean) / log_std.exp()).numpy()
    np.testing.assert_allclose(noise.mean(axis=(0, 2)), 0.0, atol=0.15)
    np.testing.assert_allclose(noise.std(axis=(0, 2)), 1.0, atol=0.1)
    for apart in (1, 5):
        found = [(row[apart:] * row[:-apart]).mean() for row in noise.swapaxes(0, 1)]
        asked = [0.0, *np.exp(-apart / np.linspace(0.0, 20.0, 8)[1:])]
        np.testing.assert_allclose(found, asked, atol=0.1)


def test_noise_without_time_constant_is_white() -> None:
    noise = new(dataclasses.replace(SMALL, noise_s=0.0)).algorithm.policy.noise
    drawn = torch.stack([noise() for _ in range(4_000)]).numpy()
    assert abs((drawn[1:] * drawn[:-1]).mean()) < 0.01
    assert drawn.std() == pytest.approx(1.0, abs=0.02)


def test_ensemble_refuses_invalid_settings():
    with pytest.raises(ValueError, match="n_steps must be at least 1, got 0"):
        EnsembleConfig(n_steps=0)
    with pytest.raises(ValueError, match="noise_s must be at least 0, got -1"):
        EnsembleConfig(noise_s=-1.0)


def test_policy_averages_the_newest_actors() -> None:
    learner = new()
    policy = learner.algorithm.policy
    obs = np.random.default_rng(0).uniform(-1, 1, (40, 4)).astype(np.float32)
    weight, mean = policy.actor.mu.weight, policy.mean_actor.mu.weight
    with torch.no_grad():
        for k in range(1, 401):
            weight.fill_(float(k))
            policy.follow()
    assert mean.min() == mean.max()
    assert mean.mean() == pytest.approx(400 / 1.2, rel=0.01)  # of weights (k / 400)^4
    learner = new()
    learn(learner, 256)
    policy = learner.algorithm.policy
    acted = torch.from_numpy(learner.act(obs))
    with torch.no_grad():
        torch.testing.assert_close(acted, policy.mean_actor(torch.from_numpy(obs), True))
        assert (acted - policy.actor(torch.from_numpy(obs), True)).abs().max() > 1e-4


def test_without_a_share_the_policy_is_the_last_actor() -> None:
    learner = new(dataclasses.replace(SMALL, averaged=0.0))
    learn(learner, 256)
    for mean, last in zip(
        learner.algorithm.policy.mean_actor.parameters(),
        learner.algorithm.actor.parameters(),
        strict=True,
    ):
        assert torch.equal(mean, last)
