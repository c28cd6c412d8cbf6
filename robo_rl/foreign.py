"""Training and judging on ``gym:ID``, anyone's Gymnasium env, by its own reward.

Such an env has no goals of ours and no state rows: there is no sentence, no video, and success is
what the env itself reports, or is not reported at all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from real_robot.bundle import POLICY
from reward_models.metrics import wilson
from robo_rl.config import TrainConfig
from robo_rl.evaluate import TEST_SEED
from robo_rl.runs import RunDir
from robo_rl.threads import set_threads
from sims.foreign import ForeignEnv

Array = np.ndarray
Act = Callable[[Array], Array]

CHECKED_STEPS = 64  # whose observations the exported graph is held against the learner on


@dataclass(frozen=True)
class ForeignEvaluation:
    """What ``episodes`` episodes of a policy were worth."""

    episodes: int
    return_mean: float
    return_std: float
    successes: int | None  # None: the env does not say
    seed: int

    def line(self) -> str:
        """``return 3411.2 (deviation 20.1, n=100)``, and success where the env reports it."""
        worth = f"return {self.return_mean:.1f} (deviation {self.return_std:.1f}"
        if self.successes is None:
            return f"{worth}, n={self.episodes}); success not measured: the env does not report it"
        low, high = (100 * x for x in wilson(self.successes, self.episodes))
        share = 100 * self.successes / self.episodes
        return f"{worth}); success {share:.1f} % ({low:.1f}-{high:.1f}, n={self.episodes})"


@dataclass
class ForeignTrained:
    """A finished run."""

    run: RunDir
    evaluation: ForeignEvaluation


def train_foreign(
    config: TrainConfig, *, resume: Path | None = None, console: Console | None = None
) -> ForeignTrained:
    """Trains on the env's own reward, judges on unseen seeds, writes the policy's graph."""
    if config.reward != "task" or config.goal or config.robot or config.randomize or config.shaped:
        raise ValueError(
            f"{config.task} has its own reward and no goals or robots of ours: use --reward task, "
            "and none of --goal, --robot, --randomize, --shaped"
        )
    from robo_rl.export import check, deterministic_actor, to_onnx
    from robo_rl.learners.loop import learn
    from robo_rl.learners.sb3 import make_learner

    set_threads()
    name = config.name or f"{config.task.replace(':', '-')}-task-{config.learner}-{config.seed}"
    path = resume or config.runs / name.replace("/", "-")
    if resume is None:
        RunDir.check_free(path)
    begun = time.monotonic()
    sim = make_sim(config, config.tuning.num_envs, config.seed)
    run = RunDir.open(path) if resume else RunDir.create(path, config)
    learner = make_learner(config.tuning, sim, seed=config.seed, device=config.device)
    learn(
        learner,
        config.env_steps,
        run=run,
        checkpoint_every=config.checkpoint_every,
        resume=resume is not None,
        console=console,
    )
    seen = [sim.reset()]
    for _ in range(CHECKED_STEPS):
        seen.append(sim.step(learner.act(seen[-1])).obs)
    obs = np.concatenate(seen)
    graph = to_onnx(deterministic_actor(learner.algorithm), sim.obs_dim)
    error = check(graph, obs, learner.act(obs))
    (run.path / POLICY).write_bytes(graph)
    sim.close()
    evaluation = evaluate_foreign(config, learner.act, config.episodes)
    result = {
        "goal": "", "truth": "", "reward": "task", "evaluation": asdict(evaluation),
        "env_steps": learner.env_steps, "export_error": error,
        "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip
    run.finish(result)
    return ForeignTrained(run, evaluation)


def make_sim(config: TrainConfig, num_envs: int, seed: int) -> ForeignEnv:
    """Rows of the config's env, in its interpreter."""
    try:
        kwargs = json.loads(config.env_kwargs)
    except ValueError:
        kwargs = None
    if not isinstance(kwargs, dict):
        raise ValueError(f"env_kwargs must be a JSON object, got {config.env_kwargs!r}")
    return ForeignEnv(config.task, num_envs, seed=seed, python=config.env_python, kwargs=kwargs)


def evaluate_foreign(config: TrainConfig, act: Act, episodes: int) -> ForeignEvaluation:
    """``act`` for ``episodes`` episodes on seeds nobody trained on."""
    rows = min(episodes, 32)
    sim = make_sim(config, rows, TEST_SEED)
    returns, successes = np.zeros(0), np.zeros(0, bool)
    judged = True
    while len(returns) < episodes:
        worth, success = _episode(sim, act)
        returns = np.concatenate([returns, worth])[:episodes]
        judged = judged and success is not None
        if success is not None:
            successes = np.concatenate([successes, success])[:episodes]
    sim.close()
    return ForeignEvaluation(
        episodes,
        float(returns.mean()),
        float(returns.std()),
        int(successes.sum()) if judged else None,
        TEST_SEED,
    )


def _episode(sim: ForeignEnv, act: Act) -> tuple[Array, Array | None]:
    """(return (N,), success (N,) at the end, or None) of one episode of every row."""
    obs = sim.reset()
    over, worth = np.zeros(sim.num_envs, bool), np.zeros(sim.num_envs)
    success: Any = None
    while not over.all():
        step = sim.step(act(obs))
        worth += np.where(over, 0.0, step.reward)
        if "success" in step.info:
            before = np.zeros(sim.num_envs, bool) if success is None else success
            success = np.where(over, before, step.info["success"])
        over |= step.terminated | step.truncated
        obs = step.obs
    return worth, success
