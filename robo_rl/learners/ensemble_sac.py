"""EnsembleSAC: SB3's loop with updates that a CPU with few cores can pay for.

What such a CPU pays for is matrix products, not steps. So the critics are small, their layers
normalised (RLPD, arXiv:2302.02948), and all of them one product per layer; several steps of rewards
are counted before a target is asked, and targets follow quickly, so that few updates go far; the
actor is updated less often than they are (TD3, arXiv:1802.09477).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.utils import polyak_update
from stable_baselines3.sac.policies import SACPolicy
from torch import Tensor, nn
from torch.nn import functional as F

from robo_rl.learners.correlated_noise import CorrelatedNoise
from robo_rl.learners.demo_guided_noise import DemoGuidedNoise

LIMIT = 0.99  # of actions that are imitated: those at the very ends have no finite likelihood


class Critics(nn.Module):
    """``members`` networks of one shape, side by side."""

    def __init__(
        self, extractor: BaseFeaturesExtractor, inputs: int, net: Sequence[int], members: int
    ):
        super().__init__()
        self.features_extractor, self.members = extractor, members
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for rows, columns in zip((inputs, *net), (*net, 1), strict=True):
            bound = 1 / math.sqrt(rows)  # as torch's own layers begin
            self.weights.append(torch.empty(members, rows, columns).uniform_(-bound, bound))
            self.biases.append(torch.empty(members, 1, columns).uniform_(-bound, bound))

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        """Values (members, B) of ``action`` (B, act_dim) in ``obs`` (B, obs_dim)."""
        x = torch.cat([self.features_extractor(obs), action], dim=1).expand(self.members, -1, -1)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if layer:
                x = F.relu(F.layer_norm(x, x.shape[-1:]))
            x = torch.baddbmm(bias, x, weight)
        return x[..., 0]

    def set_training_mode(self, mode: bool) -> None:
        """SB3's name for ``train``."""
        self.train(mode)


class EnsemblePolicy(SACPolicy):
    """SB3's actor, a running mean of it, and ``members`` critics.

    An actor swings from update to update, by ten points of success late in training. So what tries
    things out is the actor, and what is judged and exported is the mean of its weights over about
    the last share ``averaged`` of its updates, however many they are (the power function of Karras
    et al., arXiv:2312.02696).
    """

    def __init__(
        self, *args: Any, members: int, averaged: float, rows: int, lasting: float, **kwargs: Any
    ):
        """``lasting`` control steps, of the noise of exploration in the last of ``rows``."""
        self.members, self.averaged = members, averaged
        super().__init__(*args, **kwargs, optimizer_kwargs={"fused": True})
        act_dim = get_action_dim(self.action_space)
        self.noise = CorrelatedNoise(rows, act_dim, lasting).to(self.device)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.mean_actor = self.make_actor()
        self.mean_actor.load_state_dict(self.actor.state_dict())
        self.mean_actor.requires_grad_(False)
        self.register_buffer("followed", torch.zeros((), dtype=torch.int64))

    def follow(self) -> None:
        """The mean follows an update of the actor."""
        self.followed += 1
        share = 1.0 / max(1.0, self.averaged * int(self.followed))
        polyak_update(self.actor.parameters(), self.mean_actor.parameters(), share)

    def _predict(self, observation: Any, deterministic: bool = False) -> Tensor:
        if deterministic:
            return self.mean_actor(observation, deterministic)
        return self.draw(observation, self.noise())[0]

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> Any:
        made = self._update_features_extractor(self.critic_kwargs, features_extractor)
        inputs = made["features_dim"] + get_action_dim(self.action_space)
        critics = Critics(made["features_extractor"], inputs, made["net_arch"], self.members)
        return critics.to(self.device)

    def draw(self, obs: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Actions (B, act_dim) of the actor in ``obs`` (B, obs_dim), their log densities (B,);
        by standard normal ``noise`` (B, act_dim), if it is not drawn here."""
        mean, log_std, _ = self.actor.get_action_dist_params(obs)
        noise = torch.randn_like(mean) if noise is None else noise
        before = mean + noise * log_std.exp()
        gaussian = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
        # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x)), exact far out as well
        squashed = 2 * (math.log(2) - before - F.softplus(-2 * before))
        return torch.tanh(before), (gaussian - squashed).sum(dim=1)


class EnsembleSAC(SAC):
    """SAC; of its critics the least hopeful one counts."""

    policy: EnsemblePolicy
    target_entropy: float
    log_ent_coef: Tensor
    guided: DemoGuidedNoise | None = None  # exploration of some environments; None: as in SAC

    def __init__(
        self,
        *args: Any,
        actor_every: int,
        clone_updates: int,
        guided_noise: float = 0.0,
        **kwargs: Any,
    ):
        self.actor_every, self.clone_updates = actor_every, clone_updates
        self.guided_noise = guided_noise
        super().__init__(*args, **kwargs)
        if guided_noise:
            extractor = self.policy.make_features_extractor()
            act_dim = get_action_dim(self.action_space)
            self.guided = DemoGuidedNoise(extractor, act_dim).to(self.device)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        action, _ = super()._sample_action(learning_starts, action_noise, n_envs)
        if self.guided is not None and self.num_timesteps >= learning_starts:
            rows = slice(round(self.guided_noise * n_envs))
            with torch.no_grad():
                assert isinstance(self._last_obs, np.ndarray)
                obs = torch.as_tensor(self._last_obs[rows], device=self.device)
                added = self.actor(obs, deterministic=True) + self.guided.around(obs).sample()
            action[rows] = added.clamp(-1.0, 1.0).cpu().numpy()
        return action, action

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        networks, tensors = super()._get_torch_save_params()
        mine = [] if self.guided is None else ["guided", "guided.optimizer"]
        return [*networks, *mine], tensors

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        self._update_learning_rate(
            [self.actor.optimizer, self.critic.optimizer, self.ent_coef_optimizer]
        )
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size)
            self._improve_critics(batch)
            if self._n_updates < self.clone_updates:
                self._imitate(batch_size)
            elif self._n_updates % self.actor_every == 0:
                self._improve_actor(batch.observations)
            polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
            self._n_updates += 1
        if self.guided is not None:
            self._guide(batch_size)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _improve_critics(self, batch: ReplayBufferSamples) -> None:
        discount = self.gamma if batch.discounts is None else batch.discounts[:, 0]
        with torch.no_grad():
            action, log_prob = self.policy.draw(batch.next_observations)
            ahead = self.critic_target(batch.next_observations, action).amin(dim=0)
            ahead = (1 - batch.dones[:, 0]) * (ahead - self.log_ent_coef.exp() * log_prob)
            target = batch.rewards[:, 0] + discount * ahead
        value = self.critic(batch.observations, batch.actions)
        loss = 0.5 * (value - target).square().mean(dim=1).sum()
        step(self.critic.optimizer, loss)
        self.logger.record("train/critic_loss", loss.item())

    def _improve_actor(self, obs: Tensor) -> None:
        weight = self.log_ent_coef.detach().exp()
        self.critic.requires_grad_(False)  # their gradients are not asked for
        action, log_prob = self.policy.draw(obs)
        loss = (weight * log_prob - self.critic(obs, action).amin(dim=0)).mean()
        step(self.actor.optimizer, loss)
        self.policy.follow()
        self.critic.requires_grad_(True)
        surplus = -log_prob.detach().mean() - self.target_entropy
        step(self.ent_coef_optimizer, (self.log_ent_coef * surplus).sum())
        self.logger.record("train/ent_coef", weight.item())
        self.logger.record("train/actor_loss", loss.item())

    def _imitate(self, batch_size: int) -> None:
        """The likelihood of what demonstrations did, before it is squashed; meanwhile the critics
        learn what that is worth (warm-up of WSRL, arXiv:2412.07762)."""
        obs, action = self.replay_buffer.prior.sample_successful(batch_size, self.device)
        loss = -likelihood(self.actor, obs, action).mean()
        step(self.actor.optimizer, loss)
        self.policy.follow()
        self.logger.record("train/clone_loss", loss.item())

    def _guide(self, batch_size: int) -> None:
        obs, action = self.replay_buffer.prior.sample_successful(batch_size, self.device)
        with torch.no_grad():
            off = action - self.actor(obs, deterministic=True)
        self.logger.record("train/guided_loss", self.guided.learn(obs, off))


def likelihood(actor: Any, obs: Tensor, action: Tensor) -> Tensor:
    """(B,) how likely an actor's Gaussian, before it is squashed, is to bring about ``action`` (B,
    act_dim); its log density but for a constant."""
    mean, log_std, _ = actor.get_action_dist_params(obs)
    off = (torch.atanh(action.clamp(-LIMIT, LIMIT)) - mean) / log_std.exp()
    return -(0.5 * off.square() + log_std).sum(dim=1)


def step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Makes one update of the parameters of ``optimizer``."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
