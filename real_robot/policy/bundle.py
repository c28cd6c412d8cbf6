"""PolicyBundle: a trained policy as a folder that the bridge can check before it trusts it.

The folder holds data only, nothing that runs on loading:

``policy.onnx``    one file; input ``obs`` (N, obs_dim) f32, output ``action`` (N, act_dim) f32.
                   Normalisation, base policy and residual are inside the graph. A recurrent
                   policy also has input ``state`` (N, k) f32 and output ``next_state`` (N, k).
``golden.npz``     ``obs`` (G, obs_dim) f32 and ``action`` (G, act_dim) f32, G >= 64, from the
                   learner itself (zero ``state``); replayed at every load. ``sensed.NAME`` (G, k)
                   f64 is what the observations were made of, for whoever feeds it without us.
``manifest.json``  ``Manifest`` below; ``write_manifest`` fills in the hash of every other file.

An exporter writes policy.onnx and golden.npz, then calls ``write_manifest(folder, manifest)``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from real_robot.core.driver import Description
from real_robot.core.manifest import BundleError, Manifest
from sims.utils.versions import warn_of_engine

Array = np.ndarray

MANIFEST, POLICY, GOLDEN = "manifest.json", "policy.onnx", "golden.npz"
GOLDEN_ROWS = 64  # least number of golden pairs
GOLDEN_ATOL = 1e-4

_ORT_ERRORS = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
)


class PolicyBundle:
    """A policy whose files, figures and answers were all checked; make one with ``load``.

    Raises:
        BundleError: The policy cannot be loaded, or its inputs and outputs are not those of the
            manifest.
    """

    def __init__(self, manifest: Manifest, policy: bytes, sha256: str = ""):
        self.manifest = manifest
        self.sha256 = sha256  # of manifest.json, and through it of every file
        options = onnxruntime.SessionOptions()
        # A control loop shares the machine: one thread, and no spinning between the calls.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                policy, options, providers=["CPUExecutionProvider"]
            )
        except _ORT_ERRORS as error:
            raise BundleError(f"{POLICY} is not a one-file ONNX policy: {error}") from error
        # Widths by name; the first axis is the row and may be anything.
        inputs = {i.name: i.shape[1:] for i in self._session.get_inputs()}
        outputs = {o.name: o.shape[1:] for o in self._session.get_outputs()}
        names = self._names = manifest.graph
        width = inputs.get(names.state)  # None: feed-forward
        expected_in = {names.obs: [manifest.obs_dim]} | ({names.state: width} if width else {})
        expected_out = {names.action: [manifest.action.dim]}
        expected_out |= {names.next_state: width} if width else {}
        self._check("inputs", "manifest", expected_in, POLICY, inputs)
        self._check("outputs", "manifest", expected_out, POLICY, outputs)
        self._outputs = list(expected_out)
        self._state_dim = int(width[0]) if width else 0
        self._low = np.asarray(manifest.action.low, np.float32)
        self._high = np.asarray(manifest.action.high, np.float32)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        robot: Description | None = None,
        task_card: Mapping[str, Any] | None = None,
    ) -> PolicyBundle:
        """The bundle in ``folder``, refused with BundleError unless everything about it fits."""
        folder = Path(folder)
        if not (folder / MANIFEST).exists() and (folder / "config.json").exists():
            made = folder / "bundle"
            way = f"its bundle is {made}" if (made / MANIFEST).exists() else "it has no bundle"
            raise BundleError(f"{folder} is a training run, not a bundle; {way}")
        text = _read(folder / MANIFEST)
        manifest = Manifest.from_json(text.decode("utf-8", "replace"))
        contents = _verified(folder, manifest)
        bundle = cls(manifest, contents[POLICY], hashlib.sha256(text).hexdigest())
        bundle._replay(contents[GOLDEN])
        if robot is not None:
            bundle.check_robot(robot)
        if task_card is not None:
            bundle.check_task(task_card)
        warn_of_engine(manifest.versions, f"the bundle {folder}")
        return bundle

    @classmethod
    def unanswering(cls, manifest: Manifest) -> PolicyBundle:
        """A bundle of which only the manifest is left; it checks, and answers nothing."""
        bundle = cls.__new__(cls)
        bundle.manifest, bundle.sha256 = manifest, ""
        return bundle

    def act(self, obs: Array, state: Array | None = None) -> tuple[Array, Array]:
        """Action (act_dim,) or (N, act_dim) f32 of ``obs`` (obs_dim,) or (N, obs_dim), and state.

        ``state`` (N, k) is what the last call returned, None at the start of an episode; its width
        is 0 for a feed-forward policy. A NaN in ``obs`` comes out as NaN: the filter stops on it.

        Raises:
            ValueError: ``obs`` has another number of columns.
        """
        obs = np.asarray(obs, np.float32)
        rows = obs[None] if obs.ndim == 1 else obs
        if rows.ndim != 2 or rows.shape[1] != self.manifest.obs_dim:
            width = self.manifest.obs_dim
            raise ValueError(f"obs must have shape ({width},) or (N, {width}), got {obs.shape}")
        if state is None:
            state = np.zeros((len(rows), self._state_dim), np.float32)
        names = self._names
        feed = {names.obs: rows} | ({names.state: state} if self._state_dim else {})
        raw, *after = map(np.asarray, self._session.run(self._outputs, feed))
        action = np.clip(raw, self._low, self._high)
        return (action[0] if obs.ndim == 1 else action), (after[0] if after else state)

    def check_robot(self, robot: Description) -> None:
        """BundleError unless the policy was made for this arm, its joints and its rate."""
        mine = self.manifest
        self._check("arm", "bundle", mine.arm, "robot", robot.name)
        self._check("joints", "bundle", mine.joints, "robot", robot.joints)
        ratio = mine.control_dt / robot.period
        if abs(ratio - round(ratio)) > 1e-6:
            raise BundleError(
                f"control_dt: the bundle has {mine.control_dt} s, expected a whole multiple of "
                f"the robot's period of {robot.period} s"
            )
        for name, pose in (("start", mine.start.centre), ("park", mine.park or mine.start.centre)):
            outside = (np.array(pose) < robot.position[:, 0]) | (pose > robot.position[:, 1])
            for i in np.flatnonzero(outside):
                raise BundleError(
                    f"{name} pose: the bundle has {robot.joints[i]} at {pose[i]:.3f} rad, the "
                    f"robot allows {robot.position[i, 0]:.3f} to {robot.position[i, 1]:.3f} rad"
                )

    def check_task(self, card: Mapping[str, Any]) -> None:
        """BundleError unless the policy was trained on the task with this card."""
        mine = self.manifest
        self._check("task", "bundle", mine.task, "task", card["task"])
        self._check("control_dt", "bundle", mine.control_dt, "task", card["control_dt"])
        for name, value in mine.task_config.items():
            # Through JSON, as the bundle's own values went: tuples are lists there.
            other = json.loads(json.dumps(card["params"].get(name)))
            self._check(name, "bundle", json.loads(json.dumps(value)), "task", other)

    def check_columns(self, columns: Mapping[str, int]) -> None:
        """BundleError unless ``columns`` {name: width} are the inputs, in the same order."""
        mine = {i.name: i.size for i in self.manifest.inputs}
        self._check("obs columns", "bundle", list(mine.items()), "task", list(columns.items()))

    @staticmethod
    def _check(what: str, one: str, expected: object, other: str, got: object) -> None:
        if expected != got:
            raise BundleError(f"{what}: the {one} has {expected!r}, the {other} has {got!r}")

    def _replay(self, golden: bytes) -> None:
        """BundleError unless the policy answers here as it did where it was trained."""
        try:
            with np.load(io.BytesIO(golden), allow_pickle=False) as arrays:
                obs, action = arrays["obs"], arrays["action"]
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise BundleError(f"{GOLDEN}: {error}; it must hold arrays obs and action") from error
        m = self.manifest
        shapes = ((len(obs), m.obs_dim), (len(obs), m.action.dim))
        if (obs.shape, action.shape) != shapes or len(obs) < GOLDEN_ROWS:
            raise BundleError(
                f"{GOLDEN}: obs and action must have shapes (G, {m.obs_dim}) and "
                f"(G, {m.action.dim}), G >= {GOLDEN_ROWS}; got {obs.shape} and {action.shape}"
            )
        error = np.abs(self.act(obs)[0] - np.clip(action, self._low, self._high)).max(axis=1)
        worst = int(np.argmax(np.where(np.isfinite(error), error, np.inf)))
        if not error[worst] <= GOLDEN_ATOL:
            raise BundleError(
                f"golden vector {worst}: expected {np.round(action[worst], 5)} from the "
                f"learner, got {np.round(self.act(obs[worst])[0], 5)} from {POLICY} here; they "
                f"may differ by {GOLDEN_ATOL}. Was the bundle exported by another ONNX Runtime "
                f"than {onnxruntime.__version__}? Export it again"
            )


def write_manifest(folder: str | Path, manifest: Manifest) -> Manifest:
    """The manifest with the hash of every file in ``folder``, as written to its manifest.json.

    The file appears whole or not at all: a bundle with a manifest is a finished bundle.

    Raises:
        BundleError: The folder has no policy or no golden vectors.
    """
    folder = Path(folder)
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name not in (MANIFEST, MANIFEST + ".part")
    }
    for name in (POLICY, GOLDEN):
        if name not in files:
            raise BundleError(f"{folder} has no {name}; write it before the manifest")
    manifest = manifest.with_files(files)
    part = folder / (MANIFEST + ".part")
    with open(part, "w", encoding="utf-8") as file:
        file.write(manifest.to_json())
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, folder / MANIFEST)
    return manifest


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror}; is this a bundle?") from error


def _verified(folder: Path, manifest: Manifest) -> dict[str, bytes]:
    """{name: content} of the bundle's files, each of which has the hash in the manifest."""
    there = {path.name for path in folder.iterdir()} - {MANIFEST}
    listed = set(manifest.files)
    if there != listed or not {POLICY, GOLDEN} <= listed:
        raise BundleError(
            f"files: the manifest lists {sorted(listed)}, {folder} holds {sorted(there)}; "
            f"both must match and include {POLICY} and {GOLDEN}"
        )
    contents = {}
    for name, expected in manifest.files.items():
        contents[name] = _read(folder / name)
        got = hashlib.sha256(contents[name]).hexdigest()
        if got != expected:
            raise BundleError(
                f"{name} was changed: expected sha256 {expected[:16]}... by the manifest, got "
                f"{got[:16]}...; export the bundle again"
            )
    return contents
