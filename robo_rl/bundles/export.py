"""Export: a learner's policy as a bundle that runs on an arm without torch.

The graph takes raw observations and gives the action that is sent: observation scale, squashing
and clipping are inside. Before the bundle is written its answers are held against the learner's.
"""

from __future__ import annotations

import contextlib
import copy
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
import torch._dynamo  # needed to export; loaded after software GL it crashes (two LLVMs)
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from real_robot.core.arm_layout import has_arm, robot_of
from real_robot.core.manifest import ActionSpec, Manifest, RewardSpec
from real_robot.policy.bundle import (
    GOLDEN,
    GOLDEN_ATOL,
    MANIFEST,
    POLICY,
    PolicyBundle,
    write_manifest,
)
from robo_rl.bundles.manifests import (
    EXPORT_SEED,
    inputs_of,
    limits_of,
    park_of,
    sensed_of,
    starts_of,
)
from robo_rl.goals.external_task import ExternalTask
from robo_rl.goals.reading import ReadGoal
from robo_rl.learners.learner import Learner
from robo_rl.learners.residual_policy import ResidualActorModule, acting_network
from robo_rl.runs.run_dir import jsonable, versions
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

OPSET = 18
GOLDEN_KEPT = 128  # pairs of observation and action that travel with the bundle
CHECKED_ROWS = 512  # observations on which graph and learner are compared
VISITED_STEPS = 200  # of the policy's episodes, at most, that these come from
EXTERNAL_ENVS, EXTERNAL_STEPS = 8, 64  # the same of an external env, which may be slow
_WORKSPACE_ROOM = 0.05  # m, beyond where the tool was


class ExportError(RuntimeError):
    """The exported policy does not answer like the learner."""


def deterministic_actor(algorithm: BaseAlgorithm) -> nn.Module:
    """A module ``obs (N, obs_dim) -> action (N, act_dim)`` in [-1, 1], what ``predict`` answers;
    of what corrects a base it takes the base's action too."""
    policy = copy.deepcopy(algorithm.policy).cpu().eval()
    if (over := ResidualActorModule.of(policy)) is not None:
        return over
    if isinstance(policy, ActorCriticPolicy):
        layers = [policy.pi_features_extractor, policy.mlp_extractor.policy_net, policy.action_net]
        return nn.Sequential(*layers, nn.Hardtanh())
    actor = acting_network(policy)
    if hasattr(actor, "latent_pi"):  # SAC, CrossQ and TQC: the mean of the Gaussian, squashed
        return nn.Sequential(actor.features_extractor, actor.latent_pi, actor.mu, nn.Tanh())
    return nn.Sequential(actor.features_extractor, actor.mu)  # TD3 squashes in its last layer


def to_onnx(actor: nn.Module, obs_dim: int) -> bytes:
    """``actor`` as a one-file ONNX graph, input ``obs`` (N, obs_dim), output ``action``; a base's
    graph is in it as it was."""
    base = actor.base if isinstance(actor, ResidualActorModule) else None
    widths = {"obs": obs_dim} | ({"base_action": base.act_dim} if base else {})
    program = torch.onnx.export(
        actor.eval(),
        tuple(torch.zeros(2, width) for width in widths.values()),
        input_names=list(widths),
        output_names=["action"],
        dynamic_shapes=({0: torch.export.Dim("N")}, {0: torch.export.Dim.AUTO})[: len(widths)],
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    assert program is not None  # it is, unless a file name was given
    model = program.model_proto
    # The exporter notes the source line of every node, with the paths of this machine.
    graph = model.graph
    for part in (*graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        del part.metadata_props[:]
    del graph.metadata_props[:], model.metadata_props[:]
    if base is not None:
        model = base.combined_with(model)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def check(policy: bytes, obs: Array, expected: Array) -> float:
    """Returns the largest difference between the exported policy's and the expected actions.

    The first 16 observations are also given one at a time, as on the arm: the actions must be the
    same.

    Args:
        policy: The ONNX file's bytes.
        obs: (n, obs_dim) observations.
        expected: (n, act_dim) the learner's actions for them.

    Raises:
        ExportError: an action differs by more than 1e-4, or is nan.
    """
    session = onnxruntime.InferenceSession(policy, providers=["CPUExecutionProvider"])
    together = np.asarray(session.run(["action"], {"obs": obs})[0])
    alone = [np.asarray(session.run(["action"], {"obs": row[None]})[0])[0] for row in obs[:16]]
    difference = np.abs(together - expected).max(axis=1)
    difference[:16] = np.maximum(difference[:16], np.abs(alone - expected[:16]).max(axis=1))
    worst = int(difference.argmax())
    if not difference[worst] <= GOLDEN_ATOL:  # a NaN is no answer either
        raise ExportError(
            f"the exported policy differs from the learner by {difference[worst]:.2e} at "
            f"observation {worst} of {len(obs)} (at most {GOLDEN_ATOL:g} is allowed): learner "
            f"{expected[worst]}, graph {together[worst]}"
        )
    return float(difference[worst])


def export_policy(learner: Learner, task: Task[Any] | ExternalTask, path: Path) -> float:
    """Writes the learner's policy alone as a graph in ``path``; the error it was checked to."""
    if isinstance(task, ExternalTask):
        obs = _visited_external(task, learner)
    else:
        obs, _, _ = _visited(task, learner)
    policy = to_onnx(deterministic_actor(learner.algorithm), obs.shape[1])
    error = check(policy, obs, learner.act(obs))
    with name_os_errors(path):
        path.write_bytes(policy)
    return error


def export(
    learner: Learner,
    task: Task[Any],
    goal: ReadGoal,
    reward_text: str,
    metrics: Mapping[str, Any],
    folder: Path,
    *,
    reward_model: str = "",
    reward_hash: str = "",
    training: Mapping[str, Any] | None = None,
) -> Path:
    """Writes the learner's policy as a bundle in ``folder``, replacing one that is there.

    Args:
        learner: The learner whose policy is exported.
        task: The task that the policy was trained for, with its arm.
        goal: The goal as it was read.
        reward_text: The goal's sentences, or the reward's source.
        metrics: What the policy was measured at.
        folder: The folder to write; it may exist only if it holds a bundle.
        reward_model: The kind of reward, where it is not the learner's.
        reward_hash: The hash of the reward's weights or source.
        training: How the policy was trained.

    Returns:
        ``folder``.

    Raises:
        ValueError: ``folder`` exists and holds no bundle.
        ExportError: the exported policy does not answer like the learner.
    """
    if folder.exists() and not (folder / MANIFEST).exists():
        raise ValueError(f"{folder} exists and holds no bundle; give another folder")
    robot = robot_of(task)
    obs, sensed, workspace = _visited(task, learner)
    action = learner.act(obs)
    actor = deterministic_actor(learner.algorithm)
    policy = to_onnx(actor, obs.shape[1])
    error = check(policy, obs, action)
    made = dict(training or {})
    if isinstance(actor, ResidualActorModule):
        made["base"] = {"name": actor.base.name, "sha256": actor.base.sha256.hex()}
    own = _stored_name(type(learner.scorer.model)) if learner.scorer else "task"
    manifest = Manifest(
        task=task.name,
        task_config=task.card()["params"],
        arm=robot.name,
        joints=robot.joints,
        goal=goal.key,
        inputs=inputs_of(task),
        action=ActionSpec(
            dim=task.act_dim,
            low=(-1.0,) * task.act_dim,
            high=(1.0,) * task.act_dim,
            meaning=task.action_doc(),
        ),
        sensed=sensed_of(task),
        control_dt=task.control_dt,
        start=starts_of(task),
        park=park_of(task),
        limits=limits_of(robot, workspace),
        reward=RewardSpec(model=reward_model or own, text=reward_text, hash=reward_hash),
        training=jsonable(made),
        metrics=jsonable({**metrics, "sentence": goal.text, "export_error": error}),
        versions=versions(),
    )
    golden = {"obs": obs, "action": action}
    golden |= {f"sensed.{name}": values for name, values in sensed.items()}
    write_bundle(folder, manifest, policy, golden, task)
    return folder


def _stored_name(kind: type) -> str:
    """The name of a reward model in manifests, which classes had when those were first written."""
    stored = {
        "GoalConditionedReward": "ByGoal",
        "MultiViewReward": "Views",
        "VideoSimilarityReward": "Film",
    }
    return stored.get(kind.__name__, kind.__name__)


def write_bundle(
    folder: Path, manifest: Manifest, policy: bytes, golden: Mapping[str, Array], task: Task[Any]
) -> None:
    """Puts a bundle into ``folder``, whole and checked, or leaves what was there.

    ``golden`` are what the policy answers, {"obs": (n, obs_dim), "action": (n, act_dim), ...}.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        name_os_errors(folder),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary,
    ):
        built = Path(temporary) / "bundle"
        built.mkdir()
        (built / POLICY).write_bytes(policy)
        np.savez(built / GOLDEN, **{k: v[:GOLDEN_KEPT] for k, v in golden.items()})
        write_manifest(built, manifest)
        PolicyBundle.load(built, task_card=task.card())
        if folder.exists():
            shutil.rmtree(folder)
        built.rename(folder)


@contextlib.contextmanager
def name_os_errors(path: Path) -> Iterator[None]:
    """An OSError without a path, as of a write on a full disk, is one of ``path``."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _visited_external(task: ExternalTask, learner: Learner) -> Array:
    """(n, obs_dim) observations of the policy's own episodes; what has ended stays as it is."""
    with contextlib.closing(task.make_env(EXTERNAL_ENVS, EXPORT_SEED)) as env:
        seen = [env.reset()]
        for _ in range(EXTERNAL_STEPS):
            seen.append(env.step(learner.act(seen[-1])).obs)
    return np.concatenate(seen)


def _visited(
    task: Task[Any], learner: Learner
) -> tuple[Array, dict[str, Array], tuple[float, ...]]:
    """Of the policy's own episodes, with some noise: observations (``CHECKED_ROWS``, obs_dim), what
    they were made of {name: (``CHECKED_ROWS``, k)} where the task says, and where the tool was,
    (6,) m, low and high of x, y and z, with some room (0 without an arm)."""
    env = BatchEnv(task, 64, seed=EXPORT_SEED)
    rng = np.random.default_rng(EXPORT_SEED)
    arm = has_arm(task)
    tool = env.batch.site(robot_of(task).tool_site).xpos if arm else np.zeros((1, 3))
    names = {one.name for one in sensed_of(task)}
    observations, sensed = [env.reset()], {name: [] for name in names}

    def sense() -> None:
        for name, values in task.sensed(env.views).items() if names else ():
            if name in names:
                sensed[name].append(np.array(values))

    sense()
    low, high = tool.min(axis=0), tool.max(axis=0)
    for _ in range(min(env.max_steps, VISITED_STEPS)):
        noise = rng.normal(0.0, 0.3, (env.num_envs, env.act_dim))
        observations.append(env.step(np.clip(learner.act(observations[-1]) + noise, -1, 1)).obs)
        sense()
        low, high = np.minimum(low, tool.min(axis=0)), np.maximum(high, tool.max(axis=0))
    env.close()
    box = np.stack([low - _WORKSPACE_ROOM, high + _WORKSPACE_ROOM], axis=1)
    chosen = rng.permutation(len(observations) * env.num_envs)[:CHECKED_ROWS]
    made_of = {name: np.concatenate(rows)[chosen] for name, rows in sensed.items()}
    return np.concatenate(observations)[chosen], made_of, tuple(box.ravel().tolist())
