"""The policy bundle: what loads answers as it was trained, and everything else is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from real_robot import BundleError, Description, Manifest, PolicyBundle, write_manifest
from real_robot.core.manifest import ActionSpec, InputSpec, Limits, StartSet

OBS, ACT = 5, 2
ROBOT = Description(
    name="two",
    joints=("a", "b"),
    position=np.array([[-2.0, 2.0], [-1.0, 1.0]]),
    velocity=np.ones(2),
    acceleration=np.ones(2),
    period=0.01,
)


def manifest(**changes: object) -> Manifest:
    return dataclasses.replace(
        Manifest(
            task="toy",
            task_config={"tip_step": 0.02, "gate": [1, 2]},
            arm="two",
            joints=("a", "b"),
            goal="touch",
            inputs=(
                InputSpec(name="qpos", shape=(2,), unit="rad", source="joints"),
                InputSpec(name="thing", shape=(3,), unit="m", source="perception"),
            ),
            action=ActionSpec(dim=ACT, low=(-1.0, -1.0), high=(1.0, 1.0)),
            control_dt=0.05,
            start=StartSet(centre=(0.1, 0.2), tolerance=(0.1, 0.1)),
            park=(0.0, -0.5),
            limits=Limits(velocity=(1.0, 2.0)),
        ),
        **changes,
    )


def onnx_policy(recurrent: bool = False, bias: float = 0.0) -> bytes:
    """action = obs @ W + bias (+ state), next_state = state + 1."""
    weight = numpy_helper.from_array(np.eye(OBS, ACT, dtype=np.float32), "W")
    offset = numpy_helper.from_array(np.full(ACT, bias, np.float32), "b")
    one = numpy_helper.from_array(np.ones(ACT, np.float32), "one")
    nodes = [
        helper.make_node("MatMul", ["obs", "W"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["g"]),
        helper.make_node("Add", ["g", "state"], ["action"])
        if recurrent
        else helper.make_node("Identity", ["g"], ["action"]),
    ]
    f32 = TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("obs", f32, ["N", OBS])]
    outputs = [helper.make_tensor_value_info("action", f32, ["N", ACT])]
    if recurrent:
        nodes.append(helper.make_node("Add", ["state", "one"], ["next_state"]))
        inputs.append(helper.make_tensor_value_info("state", f32, ["N", ACT]))
        outputs.append(helper.make_tensor_value_info("next_state", f32, ["N", ACT]))
    graph = helper.make_graph(nodes, "policy", inputs, outputs, [weight, offset, one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def write(folder: Path, policy: bytes, **changes: object) -> Manifest:
    folder.mkdir(exist_ok=True)
    obs = np.random.default_rng(0).normal(size=(64, OBS)).astype(np.float32)
    (folder / "policy.onnx").write_bytes(policy)
    np.savez(folder / "golden.npz", obs=obs, action=obs[:, :ACT])
    return write_manifest(folder, manifest(**changes))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "bundle", onnx_policy())
    return tmp_path / "bundle"


def test_manifest_json_round_trip() -> None:
    one = manifest(control_dt=0.1 + 0.2, metrics={"success": 0.973})
    assert Manifest.from_json(one.to_json()) == dataclasses.replace(
        one, task_config=json.loads(json.dumps(one.task_config)) | {"gate": [1, 2]}
    )


def test_valid_bundle_loads_and_acts(folder: Path) -> None:
    card = {"task": "toy", "control_dt": 0.05, "params": {"tip_step": 0.02, "gate": (1, 2)}}
    bundle = PolicyBundle.load(folder, robot=ROBOT, task_card=card)
    obs = np.array([0.5, -3.0, 9, 9, 9], np.float32)
    action, state = bundle.act(obs)
    assert action.dtype == np.float32 and state.shape == (1, 0)
    np.testing.assert_allclose(action, [0.5, -1.0])  # clipped as BatchEnv clips
    np.testing.assert_allclose(bundle.act(np.stack([obs, obs]))[0], [action, action])
    assert np.isnan(bundle.act(obs * np.nan)[0]).all()
    bundle.check_columns({"qpos": 2, "thing": 3})
    with pytest.raises(ValueError, match=r"\(5,\) or \(N, 5\), got \(4,\)"):
        bundle.act(np.zeros(4))


def test_recurrent_bundle_carries_its_state(tmp_path: Path) -> None:
    write(tmp_path / "b", onnx_policy(recurrent=True))
    bundle = PolicyBundle.load(tmp_path / "b")
    obs = np.zeros(OBS, np.float32)
    action, state = bundle.act(obs)
    np.testing.assert_allclose((action, state[0]), ([0, 0], [1, 1]))
    np.testing.assert_allclose(bundle.act(obs, state)[0], [1, 1])


@pytest.mark.fault(53)
@pytest.mark.parametrize("name", ["policy.onnx", "golden.npz"])
def test_bundle_with_a_changed_byte_is_refused(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(BundleError, match=f"{name} was changed"):
        PolicyBundle.load(folder)


def test_bundle_with_missing_or_extra_files_is_refused(folder: Path) -> None:
    (folder / "extra.py").write_text("boo")
    with pytest.raises(BundleError, match="extra.py"):
        PolicyBundle.load(folder)
    (folder / "extra.py").unlink()
    (folder / "golden.npz").unlink()
    with pytest.raises(BundleError, match=r"lists \['golden.npz', 'policy.onnx'\]"):
        PolicyBundle.load(folder)
    with pytest.raises(BundleError, match="no golden.npz; write it before"):
        write_manifest(folder, manifest())
    (folder / "manifest.json").unlink()
    with pytest.raises(BundleError, match="is this a bundle"):
        PolicyBundle.load(folder)


@pytest.mark.fault(54)
def test_bundle_with_another_policy_fails_golden_vectors(tmp_path: Path) -> None:
    write(tmp_path / "b", onnx_policy(bias=2e-4))
    with pytest.raises(BundleError, match="golden vector"):
        PolicyBundle.load(tmp_path / "b")
    write(tmp_path / "b", onnx_policy(bias=float("nan")))
    with pytest.raises(BundleError, match="golden vector"):
        PolicyBundle.load(tmp_path / "b")
    write(tmp_path / "b", b"junk")
    with pytest.raises(BundleError, match="not a one-file ONNX policy"):
        PolicyBundle.load(tmp_path / "b")


def test_golden_vectors_are_never_unpickled(folder: Path) -> None:
    np.savez(folder / "golden.npz", obs=np.array([{}]), action=np.array([{}]))
    write_manifest(folder, manifest())
    with pytest.raises(BundleError, match="allow_pickle"):
        PolicyBundle.load(folder)


def test_shape_mismatch_error_shows_both_shapes(tmp_path: Path) -> None:
    write(tmp_path / "b", onnx_policy(), inputs=manifest().inputs[:1])
    with pytest.raises(BundleError, match=r"manifest has {'obs': \[2\]}.*{'obs': \[5\]}"):
        PolicyBundle.load(tmp_path / "b")


@pytest.mark.fault(55)
@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"name": "three"}, "arm: the bundle has 'two', the robot has 'three'"),
        ({"joints": ("b", "a")}, r"joints: .*\('a', 'b'\).*\('b', 'a'\)"),
        (
            {"period": 0.03},
            "bundle has 0.05 s, expected a whole multiple of the robot's period of 0.03 s",
        ),
        ({"period": 0.1}, "whole multiple"),
        ({"position": np.array([[-2, 2], [-0.4, 1]])}, "park pose.*b at -0.500 rad.*-0.400"),
    ],
)
def test_bundle_for_another_robot_is_refused(folder: Path, changes: dict, match: str) -> None:
    with pytest.raises(BundleError, match=match):
        PolicyBundle.load(folder, robot=dataclasses.replace(ROBOT, **changes))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"task": "push"}, "task: the bundle has 'toy', the task has 'push'"),
        ({"control_dt": 0.1}, "control_dt: the bundle has 0.05"),
        ({"params": {"tip_step": 0.05}}, "tip_step: the bundle has 0.02, the task has 0.05"),
    ],
)
def test_bundle_for_another_task_is_refused(folder: Path, changes: dict, match: str) -> None:
    card = {"task": "toy", "control_dt": 0.05, "params": {"tip_step": 0.02, "gate": [1, 2]}}
    with pytest.raises(BundleError, match=match):
        PolicyBundle.load(folder, task_card=card | changes)
    with pytest.raises(BundleError, match="obs columns"):
        PolicyBundle.load(folder).check_columns({"thing": 3, "qpos": 2})


@pytest.mark.fault(56)
@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("schema",), 2, "schema must be 1"),
        (("control_dt",), "0.05", "control_dt must be float"),
        (("control_dt",), -1.0, "above 0 s"),
        (("control_dt",), float("nan"), "finite"),
        (("start", "centre"), [0.0], "start.centre must be 2 values"),
        (("limits", "velocity"), [1.0, -1.0], "above 0"),
        (("action", "kind"), "torque", "action.kind"),
        (("inputs",), {}, "inputs must be a list"),
        (("inputs", 0, "source"), "radio", "joints, perception, camera"),
        (("inputs", 0, "source"), "camera", "camera for qpos"),
        (("files",), {"../x": "0"}, "plain names"),
        (("surprise",), 1, r"unknown fields \['surprise'\]"),
    ],
)
def test_invalid_manifest_error_names_the_field(path: tuple, value: object, match: str) -> None:
    data = json.loads(manifest().to_json())
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(BundleError, match=match):
        Manifest.from_json(json.dumps(data))
    del at[path[-1]]
    if path[-1] in ("control_dt", "centre", "inputs"):
        with pytest.raises(BundleError, match="missing fields"):
            Manifest.from_json(json.dumps(data))


def test_onnx_file_with_external_data_is_refused(folder: Path) -> None:
    model = onnx.load(folder / "policy.onnx")
    onnx.save(
        model,
        str(folder / "policy.onnx"),
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    write_manifest(folder, manifest())
    with pytest.raises(BundleError, match="not a one-file ONNX policy"):
        PolicyBundle.load(folder)
