"""What is exported answers like the learner, with everything it needs inside one file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from point_mass import Nearness, PointMass
from test_learners import CONFIGS as LEARN
from test_learners import SMALL

import sims
from real_robot.policy.bundle import PolicyBundle
from reward_models.base import RewardOutput
from robo_rl.bundles.export import ExportError, check, deterministic_actor, export, to_onnx
from robo_rl.goals.reading import read_goal
from robo_rl.learners import CrossQConfig, PPOConfig, TQCConfig
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.learners.training_loop import learn

CONFIGS = [
    # TQC's actor is SAC's.
    *(pytest.param(c, marks=[pytest.mark.slow] if isinstance(c, TQCConfig) else []) for c in LEARN),
    PPOConfig(**SMALL, normalise_obs=False, activation="relu"),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)
def test_exported_graph_matches_the_learner(config):
    odd = {"offset": 5.0, "scale": 30.0}
    learner = make_learner(config, PointMass(8, **odd), Nearness())
    learn(learner, 128)
    rng = np.random.default_rng(0)
    obs = (5.0 + 30.0 * rng.normal(size=(512, 4))).astype(np.float32)
    obs[:8] *= 100  # far outside: clipping is in the graph too
    action = learner.act(obs)
    assert (np.abs(action) <= 1).all() and action.std() > 0
    policy = to_onnx(deterministic_actor(learner.algorithm), 4)
    assert check(policy, obs, action) <= 1e-5
    model = onnx.load_from_string(policy)
    assert model.opset_import[0].version >= 17
    assert not any(tensor.external_data for tensor in model.graph.initializer)
    assert b".py" not in policy  # no source lines, so no paths of the machine
    # Only the actor travels.
    sizes = [int(np.prod(tensor.dims)) for tensor in model.graph.initializer]
    norms = 4 * (4 + 16 + 16) if isinstance(config, CrossQConfig) else 0
    assert sum(sizes) <= 4 * 16 + 16 + 16 * 16 + 16 + 16 * 2 + 2 + 3 * 4 + 4 + norms


def test_export_refuses_a_graph_with_other_outputs():
    learner = make_learner(LEARN[0], PointMass(8), Nearness())
    policy = to_onnx(deterministic_actor(learner.algorithm), 4)
    obs = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    wrong = learner.act(obs)
    wrong[7] += 0.01
    with pytest.raises(ExportError, match=r"differs .* by 1.00e-02 at observation 7 of 32"):
        check(policy, obs, wrong)
    wrong[7] = np.nan
    with pytest.raises(ExportError, match="at observation 7"):
        check(policy, obs, wrong)


class TipHeight:
    """Rewards a high gripper: enough of a reward to train a step or two."""

    needs, context, causal = frozenset({"signals"}), 1, True

    def score(self, segment):
        return RewardOutput(segment.signals["tip"][1:, :, 2], segment.valid)


@pytest.fixture(scope="module")
def trained() -> Learner:
    config = PPOConfig(**SMALL, n_steps=16)
    learner = make_learner(config, sims.make("reach", 8), TipHeight())
    learn(learner, 128)
    return learner


@pytest.fixture(scope="module")
def folder(trained, tmp_path_factory) -> Path:
    task = sims.make_task("reach")
    goal = read_goal(task, next(iter(task.goals())))
    figures = {"success": np.float64(0.5)}
    about = {"seed": 3, "randomize": {"width": np.float64(1.0)}}
    to = tmp_path_factory.mktemp("exported") / "b"
    return export(trained, task, goal, "a caption", figures, to, reward_hash="abc", training=about)


def test_bundle_manifest_lists_inputs_and_policy_replays(trained, folder):
    task = sims.make_task("reach")
    goal = read_goal(task, next(iter(task.goals())))
    bundle = PolicyBundle.load(folder, task_card=task.card())
    manifest = bundle.manifest
    sources = {i.name: i.source for i in manifest.inputs}
    assert sources == {
        "qpos": "joints",
        "qvel": "joints",
        "lag": "joints",
        "tip": "joints",
        "thing": "perception",
        "tip_to_thing": "perception",
        "thing_to_thing": "perception",
    }
    assert manifest.goal == goal.key and manifest.metrics["sentence"] == goal.text
    assert manifest.metrics["success"] == 0.5 and manifest.metrics["export_error"] <= 1e-4
    assert manifest.training == {"seed": 3, "randomize": {"width": 1.0}}
    assert dataclasses.astuple(manifest.reward) == ("TipHeight", "a caption", "abc")
    env = sims.make("reach", 40, seed=7)
    obs = env.reset()
    np.testing.assert_allclose(bundle.act(obs)[0], trained.act(obs), atol=1e-5)
    # Every episode begins inside the start set.
    qpos = env.signals()["qpos"]
    away = np.abs(qpos - manifest.start.centre) - manifest.start.tolerance
    assert away.max() < 0.01
    assert manifest.start.gripper == pytest.approx(0.0, abs=1e-6)
    env.close()
    assert {p.name for p in folder.iterdir()} == {"policy.onnx", "golden.npz", "manifest.json"}


def test_bundle_runs_with_manifest_and_onnxruntime_only(folder):
    """Nothing of ours reads the bundle here: names, order, scales and rule are the manifest's."""
    told = json.loads((folder / "manifest.json").read_text())
    golden = np.load(folder / "golden.npz")
    known = {one["name"]: one for one in told["sensed"]}
    parts = [part for one in told["inputs"] for part in one["parts"]]
    rows = []
    for part in parts:
        plus, minus = (
            golden[f"sensed.{name}"][:, : part["size"]] if name else 0.0
            for name in (part["plus"], part["minus"])
        )
        rows.append(part["scale"] * (plus - minus) + part["offset"])
    obs = np.concatenate(rows, axis=1).astype(np.float32)
    session = onnxruntime.InferenceSession((folder / "policy.onnx").read_bytes())
    (action,) = session.run([told["graph"]["action"]], {told["graph"]["obs"]: obs})
    action = np.clip(action, told["action"]["low"], told["action"]["high"])
    np.testing.assert_allclose(obs, golden["obs"], atol=1e-6)
    np.testing.assert_allclose(action, golden["action"], atol=1e-4)
    assert all(one["unit"] and one["doc"] for one in known.values())
    assert {one["name"]: one["unit"] for one in told["inputs"]} == {
        "qpos": "rad",
        "qvel": "10 rad/s",
        "lag": "0.2 rad",
        "tip": "0.25 m",
        "thing": "0.25 m",
        "tip_to_thing": "0.25 m",
        "thing_to_thing": "0.25 m",
    }
    assert told["action"]["meaning"][2] == "1 moves the target of the tip by 0.02 m along world z"
    assert "one after the other" in told["graph"]["rule"]


def test_export_replaces_only_an_older_bundle(trained, tmp_path):
    task = sims.make_task("reach")
    goal = read_goal(task, next(iter(task.goals())))
    folder = export(trained, task, goal, "one", {}, tmp_path / "b")
    export(trained, task, goal, "two", {}, folder)
    assert json.loads((folder / "manifest.json").read_text())["reward"]["text"] == "two"
    other = tmp_path / "notes"
    other.mkdir()
    with pytest.raises(ValueError, match="holds no bundle"):
        export(trained, task, goal, "three", {}, other)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "notes"]
