"""What a run leaves in its folder beside figures: its reward, its bundle, its best policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from stable_baselines3.common.preprocessing import get_flattened_obs_dim

from real_robot.core.arm_layout import has_arm
from real_robot.policy.bundle import POLICY
from robo_rl.bundles.export import deterministic_actor, export, export_policy, to_onnx
from robo_rl.config.resolve import ResolvedRun
from robo_rl.evaluation.evaluate import Evaluation
from robo_rl.goals.reading import read_goal
from robo_rl.learners.fit import FitResult
from robo_rl.learners.learner import Learner
from robo_rl.rewards import BuiltReward
from robo_rl.runs.policy import BEST_POLICY, Policy, load_graph
from robo_rl.runs.run_dir import SCORER, RunDir, atomic_write, write_json
from robo_rl.training.run_envs import PROGRAM, training_metadata
from robo_rl.vision.distilled_scene import write_card
from sims.core.multi_goal import MultiGoalTask


def keep_reward(run: RunDir, made: BuiltReward) -> None:
    """Leaves in the run what its reward was made of."""
    if made.scene is not None:
        write_card(made.scene, run.path / "scene.json")
    if made.about:
        write_json(run.path / SCORER, made.about)
    if made.program is not None:
        atomic_write(run.path / PROGRAM, made.program.text.encode())


def export_bundle(
    run: RunDir,
    resolved: ResolvedRun,
    learner: Learner,
    made: BuiltReward,
    evaluation: Evaluation | None,
) -> tuple[Path | None, float]:
    """Writes the policy's bundle where the task moves an arm, and its graph alone elsewhere.

    Returns:
        (the bundle, None where there is none; the largest difference of an action to the
        learner's, of a graph alone).

    Raises:
        ExportError: the exported policy does not answer like the learner.
    """
    task, goal = resolved.task, resolved.goal
    if not has_arm(task):
        return None, export_policy(learner, task, run.path / POLICY)
    figures = {} if evaluation is None else evaluation.as_dict()
    if isinstance(task, MultiGoalTask):  # a bundle is of one: of the first, until another is asked
        figures = {"all_goals": figures}
        task = replace(task, only=task.keys[0])
        goal = read_goal(task.inner, task.only)
    bundle = export(
        learner,
        task,
        goal,
        made.text,
        figures,
        run.path / "bundle",
        reward_hash=made.program.hash if made.program is not None else "",
        training=training_metadata(resolved.config, task, learner.env_steps),
    )
    return bundle, 0.0


def export_best_policy(run: RunDir, fitted: FitResult) -> Policy | None:
    """Writes the graph of the weights that periodic evaluations found best; returns None where the
    final ones are those."""
    (run.path / BEST_POLICY).unlink(missing_ok=True)
    best = run.best()
    if best is None or best.step == fitted.learner.env_steps:
        return None
    policy = fitted.learner.algorithm.policy
    final = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    weights = {name: torch.tensor(array) for name, array in best.weights.items()}
    policy.load_state_dict(weights)
    try:
        obs_dim = get_flattened_obs_dim(policy.observation_space)
        graph = to_onnx(deterministic_actor(fitted.learner.algorithm), obs_dim)
    finally:
        policy.load_state_dict(final)
    atomic_write(run.path / BEST_POLICY, graph)
    return load_graph(run.path / BEST_POLICY)
