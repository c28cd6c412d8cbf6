"""FrozenBase: a frozen policy that a residual corrects: of a run, a bundle, a graph, or a fixed
rule.

It is an ONNX graph, so that what is exported can hold it as it is: the same nodes give the same
bits in training, in judging and on the arm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import compose, helper, numpy_helper, version_converter

from real_robot.policy.bundle import MANIFEST, POLICY, PolicyBundle
from robo_rl.rollout.vec_sim import VecSim
from robo_rl.runs.run_dir import RunDir

Array = np.ndarray

CONTROLLER = "controller:"
OPSET = 18
GAIN = 2.0  # of `approach`, in action per unit of the column that says how far a thing is


class FrozenBase:
    """Actions (N, act_dim) in [-1, 1] of raw observations (N, obs_dim); its own observation scale
    is inside its graph. ValueError where the graph has a memory."""

    def __init__(self, name: str, graph: bytes, *, obs: str = "obs", action: str = "action"):
        self.name, self.graph = name, graph
        self.sha256 = hashlib.sha256(graph).digest()
        options = onnxruntime.SessionOptions()
        # It is asked for a few rows at a time, between updates that have the cores.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # each of ONNX Runtime's is a class of its own
            raise ValueError(f"--base {name} is not a readable ONNX policy: {error}") from error
        inputs = {one.name: one.shape for one in self._session.get_inputs()}
        outputs = {one.name: one.shape for one in self._session.get_outputs()}
        rows = [inputs.get(obs, ()), outputs.get(action, ())]
        if set(inputs) != {obs} or any(len(shape) != 2 for shape in rows):
            raise ValueError(
                f"--base {name}: its graph must take {obs} (rows, width) alone and give {action} "
                f"(rows, width), got inputs {inputs} and outputs {outputs}; recurrent and "
                "camera policies are not supported"
            )
        self.obs, self.action = obs, action
        self.obs_dim, self.act_dim = inputs[obs][1], outputs[action][1]

    def __call__(self, obs: Array) -> Array:
        return np.clip(np.asarray(self._session.run([self.action], {self.obs: obs})[0]), -1.0, 1.0)

    def __deepcopy__(self, memo: Any) -> FrozenBase:
        return self  # nothing in it changes

    def combined_with(self, residual: onnx.ModelProto) -> onnx.ModelProto:
        """Returns one graph obs -> action of this base and ``residual``, which takes ``obs`` and
        the base's action as ``base_action``."""
        mine = onnx.load_from_string(self.graph)
        (opset,) = (one.version for one in residual.opset_import if not one.domain)
        if any(one.version != opset for one in mine.opset_import if not one.domain):
            mine = version_converter.convert_version(mine, opset)
        mine = compose.add_prefix(mine, "base/")
        for node in mine.graph.node:
            for i, name in enumerate(node.input):
                if name == f"base/{self.obs}":
                    node.input[i] = "obs"
        ends = [
            numpy_helper.from_array(np.array(end, np.float32), f"base/{name}")
            for name, end in (("low", -1.0), ("high", 1.0))
        ]
        clip = helper.make_node(
            "Clip", [f"base/{self.action}", "base/low", "base/high"], ["base_action"]
        )
        theirs = residual.graph
        graph = helper.make_graph(
            [*mine.graph.node, clip, *theirs.node],
            theirs.name,
            [one for one in theirs.input if one.name == "obs"],
            theirs.output,
            [*mine.graph.initializer, *ends, *theirs.initializer],
        )
        domains = {one.domain: one for one in (*mine.opset_import, *residual.opset_import)}
        return helper.make_model(
            graph,
            functions=[*mine.functions, *residual.functions],
            opset_imports=list(domains.values()),
            ir_version=max(mine.ir_version, residual.ir_version),
        )


def load_base(given: str, sim: VecSim) -> FrozenBase:
    """The base that ``--base`` names; ValueError where there is none, or it is of something else
    than ``sim``."""
    if not given:
        raise ValueError(
            "a residual learner needs a base policy: give --base RUN, BUNDLE, FILE.onnx or "
            f"controller:NAME (controllers: {', '.join(CONTROLLERS)})"
        )
    path = Path(given)
    if given.startswith(CONTROLLER):
        base = _controller(given, sim)
    elif (path / "config.json").is_file():
        base = _of_run(given, path, sim)
    elif (path / MANIFEST).is_file():
        base = _of_bundle(given, path, sim)
    elif path.is_file():
        base = FrozenBase(given, path.read_bytes())
    else:
        raise ValueError(
            f"--base {given}: no run, bundle, .onnx file or controller of this name; give one of "
            f"the first three, or {CONTROLLER}{{{','.join(CONTROLLERS)}}}"
        )
    _same(given, "observation's width", sim.obs_dim, base.obs_dim)
    _same(given, "action's width", sim.act_dim, base.act_dim)
    return base


def _of_run(given: str, path: Path, sim: VecSim) -> FrozenBase:
    run = RunDir.open(path)
    run.check_finished()
    if (path / "bundle").exists():
        return _of_bundle(given, path / "bundle", sim)
    _same(given, "task", sim.card["task"], run.config["task"])
    return FrozenBase(given, (path / POLICY).read_bytes())


def _of_bundle(given: str, folder: Path, sim: VecSim) -> FrozenBase:
    manifest, card = PolicyBundle.load(folder).manifest, sim.card
    _same(given, "task", card["task"], manifest.task)
    _same(given, "arm", card["params"].get("robot", ""), manifest.arm)
    _same(given, "control_dt", f"{sim.control_dt:g} s", f"{manifest.control_dt:g} s")
    columns = {one.name: one.size for one in manifest.inputs}
    _same(given, "observation", _columns(sim), _written(columns))
    task = getattr(sim, "task", None)
    meaning = tuple(task.action_doc()) if task is not None else ()
    bounds = ((-1.0,) * sim.act_dim, (1.0,) * sim.act_dim)
    action = manifest.action
    _same(given, "action's range", bounds, (action.low, action.high))
    if meaning and action.meaning:
        _same(given, "action", "; ".join(meaning), "; ".join(action.meaning))
    names = manifest.graph
    return FrozenBase(given, (folder / POLICY).read_bytes(), obs=names.obs, action=names.action)


def _same(given: str, what: str, mine: object, its: object) -> None:
    if mine != its:
        raise ValueError(
            f"--base {given}: its {what} must be that of this run, {mine}, got {its}; give a base "
            "that was trained for this task and arm, or use a learner without one"
        )


def _columns(sim: VecSim) -> str:
    counts: dict[str, int] = {}
    for name in sim.obs_names:
        group = name.partition("[")[0]
        counts[group] = counts.get(group, 0) + 1
    return _written(counts)


def _written(columns: Mapping[str, int]) -> str:
    return " ".join(f"{name}[{size}]" for name, size in columns.items())


def approach(sim: VecSim) -> Array:
    """Returns the gain of a controller that moves the tip to an object, slower when it is near.

    Args:
        sim: The simulator; its observation has the vector from the tip to an object.

    Returns:
        (obs_dim, act_dim); the action is ``obs @ gain``, clipped.

    Raises:
        ValueError: the observation has no such vector, or actions have less than three entries.
    """
    ways = [i for i, name in enumerate(sim.obs_names) if name.startswith("tip_to_")][:3]
    if len(ways) < 3 or sim.act_dim < 3:
        raise ValueError(
            f"{CONTROLLER}approach needs an observation of the vector from the tip to an object "
            f"(tip_to_...), {sim.card['task']} has {_columns(sim)}; use {CONTROLLER}zero"
        )
    gain = np.zeros((sim.obs_dim, sim.act_dim))
    gain[ways, range(3)] = GAIN
    return gain


def zero(sim: VecSim) -> Array:
    """Returns the gain (obs_dim, act_dim) of a controller whose every action is 0.

    The residual is then the whole policy, within its scale.
    """
    return np.zeros((sim.obs_dim, sim.act_dim))


# name: sim -> gain (obs_dim, act_dim), of which the action is obs @ gain, clipped. They know what a
# policy knows: the observation. A task's expert sees the simulator's state, so it is none of them.
CONTROLLERS: dict[str, Callable[[VecSim], Array]] = {"approach": approach, "zero": zero}


def _controller(given: str, sim: VecSim) -> FrozenBase:
    name = given.removeprefix(CONTROLLER)
    if name not in CONTROLLERS:
        raise ValueError(f"--base {given}: unknown controller; available: {', '.join(CONTROLLERS)}")
    gain = CONTROLLERS[name](sim).astype(np.float32)
    widths = [("obs", sim.obs_dim), ("action", sim.act_dim)]
    obs, action = (helper.make_tensor_value_info(n, 1, ["N", width]) for n, width in widths)
    node = helper.make_node("MatMul", ["obs", "gain"], ["action"])
    weights = [numpy_helper.from_array(gain, "gain")]
    model = helper.make_model(
        helper.make_graph([node], name, [obs], [action], weights),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=10,
    )
    return FrozenBase(given, model.SerializeToString())
