"""A bundle that solves reach without training, for the tests of arms on a wire."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import sims
from real_robot import Manifest, PolicyBundle, write_manifest
from real_robot.core.manifest import ActionSpec, InputSpec, StartSet
from real_robot.policy.twin import Twin
from sims.tasks.scene.scene_objects import THINGS

GOAL = "above_red_cube"
GAIN = 0.4  # share of the way per action: all of it at once makes the noise of a camera its own
GAINS = {"fr3": 0.2}  # of one that follows later


def write(folder: Path, robot: str) -> PolicyBundle:
    """Moves the tip straight to 4 cm over the red cube: linear in the observation."""
    task = sims.make_task("reach", robot=robot, goal=GOAL)
    columns = Twin(task).columns
    at = sum(width for name, width in list(columns.items())[: list(columns).index("tip_to_thing")])
    gain = GAINS.get(robot, GAIN)
    weight = np.zeros((sum(columns.values()), 3), np.float32)
    weight[at : at + 3] = gain * np.eye(3) / 4.0 / task.tip_step
    offset = np.array([0.0, 0.0, THINGS[0].height + 0.04], np.float32) * gain / task.tip_step
    constants = [numpy_helper.from_array(weight, "W"), numpy_helper.from_array(offset, "b")]
    nodes = [
        helper.make_node("MatMul", ["obs", "W"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["action"]),
    ]
    obs = helper.make_tensor_value_info("obs", TensorProto.FLOAT, ["N", len(weight)])
    action = helper.make_tensor_value_info("action", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "policy", [obs], [action], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    policy = model.SerializeToString()
    (folder / "policy.onnx").write_bytes(policy)
    arm = sims.robots.get(robot)
    spread = np.full(len(arm.joints), 0.11)
    spread[0] = 0.7
    manifest = Manifest(
        task="reach",
        task_config=task.card()["params"],
        arm=robot,
        joints=arm.joints,
        goal=GOAL,
        inputs=tuple(
            InputSpec(
                name=name, shape=(k,), unit="", source="perception" if "thing" in name else "joints"
            )
            for name, k in columns.items()
        ),
        action=ActionSpec(dim=3, low=(-1.0,) * 3, high=(1.0,) * 3),
        control_dt=task.control_dt,
        start=StartSet(centre=tuple(arm.home), tolerance=tuple(spread), gripper=0.0),
        park=tuple(arm.home),
    )
    rows = np.random.default_rng(0).normal(size=(64, len(weight))).astype(np.float32)
    np.savez(folder / "golden.npz", obs=rows, action=PolicyBundle(manifest, policy).act(rows)[0])
    write_manifest(folder, manifest)
    return PolicyBundle.load(folder)
