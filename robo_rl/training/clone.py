"""clone(): a policy that answers as demonstrations did, as a finished run with its bundle.

Plain regression from observations to actions: it learns nothing of what its own mistakes lead to,
so few demonstrations give a policy that is right where they were and drifts elsewhere. As the base
of a residual it need not be better.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch.nn.functional import mse_loss

from real_robot.core.arm_layout import has_arm
from real_robot.policy.bundle import POLICY
from robo_rl.bundles.export import export, export_policy
from robo_rl.datasets.demonstrations import CloneConfig, Demonstrations, read_demonstrations
from robo_rl.evaluation.evaluate import EVAL_SEEDS, evaluate
from robo_rl.goals.reading import OF_TASK, read_goal
from robo_rl.learners import PPOConfig
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.learners.obs_normalization import warn_of_outliers
from robo_rl.runs.policy import load_policy
from robo_rl.runs.run_dir import RunDir, run_folder
from robo_rl.runtime.progress_bars import stage_progress
from robo_rl.runtime.threads import set_threads
from robo_rl.training.report import write_report
from robo_rl.training.trained import Trained
from sims.core.multi_goal import ANY
from sims.envs.batch_env import BatchEnv

CLONE = "clone"  # what a run's config calls its learner
HELD_OUT = 10  # one episode in so many is only looked at
ROW_EVERY = 100  # updates


def clone(dataset: Path, config: CloneConfig, *, console: Console | None = None) -> Trained:
    """Trains a policy by behaviour cloning, evaluates it, and writes its report and bundle.

    Args:
        dataset: The folder of the demonstrations.
        config: The settings.
        console: Where progress is printed.

    Raises:
        ValueError: the dataset has episodes of several goals, or the run's folder is taken.
    """
    demos = read_demonstrations(dataset, config.demos, failures=config.failures)
    if demos.task.goal == ANY:
        raise ValueError(
            f"{dataset} has episodes of several goals, and behaviour cloning needs one; write a "
            f"dataset of one: robo-rl demos {demos.task.name} FOLDER --goal KEY"
        )
    path = run_folder(config.runs, config.name or f"{dataset.name}-clone-{config.seed}")
    RunDir.check_free(path)
    set_threads()
    task, seconds = demos.task, {"reward": 0.0}
    goal = read_goal(task, task.goal)
    about = {
        "task": task.name,
        "goal": task.goal,
        **{name: task.card()["params"].get(name, "") for name in OF_TASK},
        "learner": CLONE,
        "reward": "none",
        "dataset": dataset,
        "rate_limited": demos.shaped,
        **asdict(config),
    }
    with RunDir.under_way(path, about, goes_on=False) as run:
        begun = time.monotonic()
        learner = cloned(demos, config, run, console)
        seconds["train"], begun = time.monotonic() - begun, time.monotonic()
        with stage_progress(console) as progress:
            sample = {"episodes": config.episodes, "seed": EVAL_SEEDS[config.eval_seeds]}
            judged = evaluate(task, learner.act, **sample, shaped=demos.shaped, progress=progress)
        reward_text = f"none: cloned from {demos.episodes} episodes of the {demos.by}"
        bundle = run.path / "bundle" if has_arm(task) else None
        if bundle is None:
            export_policy(learner, task, run.path / POLICY)
        else:
            training = {"learner": CLONE, "demos": demos.episodes, "seed": config.seed}
            export(
                learner,
                task,
                goal,
                reward_text,
                judged.as_dict(),
                bundle,
                reward_model="none",
                training=training,
            )
        learner.env.close()
        seconds["evaluate"] = time.monotonic() - begun
        run.finish(
            {
                "goal": goal.text,
                "formula": "" if goal.formula is None else str(goal.formula),
                "truth": goal.key,
                "reward": "none",
                "captions": reward_text,
                "sees": f"{len(demos.obs):,} steps of {demos.episodes} episodes",
                "scorer": {},
                "evaluation": judged.as_dict(),
                "env_steps": 0,
                "frames": {"scene": 0, "training": 0, "labels": 0},
                "seconds": {name: round(s, 1) for name, s in seconds.items()},
            }
        )
    write_report(run)
    return Trained(run, load_policy(run.path), None, judged, bundle, seconds)


def cloned(
    demos: Demonstrations, config: CloneConfig, run: RunDir, console: Console | None = None
) -> Learner:
    """Returns a PPO learner whose mean action imitates ``demos``; it has made no environment step.

    Every hundred updates ``run`` gets a row of metrics: the squared error on the steps it is fitted
    to and on every tenth episode, which is held out (if there are ten episodes or more).

    Args:
        demos: The demonstrations.
        config: The settings.
        run: The run whose metrics are written.
        console: Where progress is printed; None: nowhere.

    Raises:
        ValueError: a weight of the policy became nan or infinite.
    """
    tuning = PPOConfig(num_envs=1, minibatches=1, net=config.net, activation="relu")
    env = BatchEnv(demos.task, 1, seed=config.seed)
    learner = make_learner(tuning, env, seed=config.seed)
    assert learner.normaliser is not None
    learner.normaliser.take_at_least(env.least_spread)  # few episodes say little of a spread
    used = np.ones(len(demos.obs), bool)
    if demos.episodes >= HELD_OUT:
        used = demos.episode % HELD_OUT != HELD_OUT - 1
    used_obs = demos.obs[used]
    warn_of_outliers(
        used_obs, learner.normaliser.update(used_obs), env.obs_names, "demonstrated step"
    )
    policy = learner.algorithm.policy
    obs, action = torch.from_numpy(demos.obs), torch.from_numpy(demos.action)
    fitted, held_out = (torch.from_numpy(np.flatnonzero(mask)) for mask in (used, ~used))

    def error(ids: torch.Tensor) -> torch.Tensor:
        return mse_loss(policy.get_distribution(obs[ids]).distribution.mean, action[ids])

    adam = torch.optim.Adam(policy.parameters(), lr=config.learning_rate)
    falling = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, config.updates)
    rng, total = np.random.default_rng(config.seed), 0.0
    bar = track(range(1, config.updates + 1), "clone   ", console=console, disable=console is None)
    for update in bar:
        loss = error(fitted[torch.from_numpy(rng.integers(0, len(fitted), config.batch_size))])
        adam.zero_grad()
        loss.backward()
        adam.step()
        falling.step()
        total += loss.item()
        if update % ROW_EVERY == 0:
            row = {"updates": update, "error": total / ROW_EVERY}
            if len(held_out):
                with torch.no_grad():
                    row["error_held_out"] = error(held_out).item()
            run.append(row)
            total = 0.0
    for name, weight in policy.named_parameters():
        if not torch.isfinite(weight).all():
            raise ValueError(f"cloning failed: the policy's {name} became nan")
    return learner
