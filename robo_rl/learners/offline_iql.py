"""OfflineIQL: values of what was done, never of what was not (Kostrikov et al., arXiv:2110.06169).

A state is worth an upper expectile of what the actions in it were worth; critics learn from that;
the actor imitates, by how much more than its state an action was worth. So no action outside the
data is ever asked about, which is what spoils other critics that cannot try anything.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.type_aliases import MaybeCallback, ReplayBufferSamples
from stable_baselines3.common.utils import polyak_update
from torch import Tensor

from robo_rl.learners.ensemble_sac import Critics, EnsemblePolicy, EnsembleSAC, likelihood, step

MOST = 100.0  # times as much an action is imitated


class IQLPolicy(EnsemblePolicy):
    """An actor and critics with a state-value network."""

    value: Critics

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        made = self._update_features_extractor(self.critic_kwargs, None)
        value = Critics(made["features_extractor"], made["features_dim"], made["net_arch"], 1)
        self.value = value.to(self.device)
        self.value.optimizer = self.optimizer_class(
            self.value.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )

    def worth(self, obs: Tensor) -> Tensor:
        """(B,) of ``obs`` (B, obs_dim)."""
        return self.value(obs, obs.new_zeros(len(obs), 0))[0]


class OfflineIQL(EnsembleSAC):
    """SB3's algorithm, which never steps its env: a step of it is an update."""

    policy: IQLPolicy

    def __init__(self, *args: Any, expectile: float, temperature: float, **kwargs: Any):
        self.expectile, self.temperature = expectile, temperature
        super().__init__(*args, **kwargs)

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
        tb_log_name: str = "iql",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> OfflineIQL:
        total, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total:
            callback.on_rollout_start()
            updates = min(self.gradient_steps, total - self.num_timesteps)
            self.num_timesteps += updates
            callback.on_rollout_end()
            self._update_current_progress_remaining(self.num_timesteps, total)
            self.train(updates, self.batch_size)
        callback.on_training_end()
        return self

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        optimizers = [self.actor.optimizer, self.critic.optimizer, self.policy.value.optimizer]
        self._update_learning_rate(optimizers)
        for _ in range(gradient_steps):
            self._improve(self.replay_buffer.sample(batch_size))
            polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
            self._n_updates += 1

    def _improve(self, batch: ReplayBufferSamples) -> None:
        assert batch.discounts is not None  # of an n-step buffer
        obs, discount = batch.observations, batch.discounts[:, 0]
        with torch.no_grad():
            done_was_worth = self.critic_target(obs, batch.actions).amin(dim=0)
            ahead = (1 - batch.dones[:, 0]) * self.policy.worth(batch.next_observations)
            target = batch.rewards[:, 0] + discount * ahead
        surplus = done_was_worth - self.policy.worth(obs)
        weight = torch.where(surplus > 0, self.expectile, 1 - self.expectile)
        value_loss = (weight * surplus.square()).mean()
        step(self.policy.value.optimizer, value_loss)
        off = self.critic(obs, batch.actions) - target
        critic_loss = 0.5 * off.square().mean(dim=1).sum()
        step(self.critic.optimizer, critic_loss)
        surplus = surplus.detach()
        surplus = surplus / surplus.abs().mean().clamp(min=1e-6)  # rewards come in any unit
        much = torch.exp(self.temperature * surplus).clamp(max=MOST)
        actor_loss = -(much * likelihood(self.actor, obs, batch.actions)).mean()
        step(self.actor.optimizer, actor_loss)
        self.policy.follow()
        for name, loss in (("value", value_loss), ("critic", critic_loss), ("actor", actor_loss)):
            self.logger.record(f"train/{name}_loss", loss.item())

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        names, tensors = super()._get_torch_save_params()
        return [*names, "policy.value.optimizer"], tensors
