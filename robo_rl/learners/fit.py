"""fit(): the one trainer. A simulator and a reward in, a policy out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from rich.console import Console

from reward_models.base import RewardModel
from robo_rl.learners.config import LearnerConfig
from robo_rl.learners.hooks import Hook
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.learners.training_loop import Row, learn
from robo_rl.rollout.subprocess_scorer import Recipe
from robo_rl.rollout.vec_sim import VecSim
from robo_rl.runs.policy import Policy
from robo_rl.runs.run_dir import RunDir


@dataclass(frozen=True)
class FitResult(Policy):
    """A policy with the learner that it is part of."""

    learner: Learner
    rows: list[Row]  # of metrics


def fit(
    sim: VecSim,
    reward: RewardModel | None,
    config: LearnerConfig,
    *,
    env_steps: int,
    seed: int = 0,
    device: str = "cpu",
    run: RunDir | None = None,
    resume: bool = False,
    checkpoint_every: int = 50_000,
    console: Console | None = None,
    hooks: Sequence[Hook] = (),
    recipe: Recipe | None = None,
) -> FitResult:
    """The policy that ``config``'s learner has after ``env_steps`` steps of ``sim`` in all.

    ValueError where there is no such device, or a network became nan.

    Args:
        reward: what is learned; None: the simulator's own reward.
        run: where metrics and checkpoints go; without it nothing is written.
        resume: go on from the run's latest checkpoint, if it has one.
        checkpoint_every: env steps between checkpoints.
        hooks: what else happens while it learns, in this order.
        recipe: makes ``reward`` once more, in a process that scores while the policy learns.
    """
    learner = make_learner(
        config, sim, reward, seed=seed, device=check_device(device), recipe=recipe
    )
    rollout = getattr(learner.algorithm, "n_steps", 1) * sim.num_envs  # 1: of a replay buffer
    if console is not None and (short := -env_steps % rollout):
        console.print(
            f"{env_steps:,} env steps are not a multiple of the rollout of {rollout:,}: "
            f"training for {env_steps + short:,}"
        )
    try:
        rows = learn(
            learner,
            env_steps,
            run=run,
            checkpoint_every=checkpoint_every,
            resume=resume,
            console=console,
            hooks=hooks,
        )
    finally:
        learner.close()
    for name, weight in learner.algorithm.policy.named_parameters():
        if not torch.isfinite(weight).all():
            raise ValueError(f"training failed: the policy's {name} became nan")
    return FitResult(learner.act, learner, rows)


def check_device(device: str) -> str:
    """Returns ``device``; ValueError where torch has no such device, for which SB3 would use the
    CPU."""
    if device.startswith("cuda"):
        count = torch.cuda.device_count()
        if int(device.partition(":")[2] or 0) >= count:
            raise ValueError(
                f"--device {device}: torch finds {count} CUDA devices; use --device cpu"
            )
    return device
