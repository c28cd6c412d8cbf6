"""A bundle whose policy knows several goals, told another one of them; loads no torch."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np

from real_robot.policy.bundle import GOLDEN, POLICY, PolicyBundle, write_manifest
from robo_rl.goals.bundle_task import task_of_bundle
from robo_rl.goals.reading import single_goal
from sims.core.multi_goal import ASKED


def set_bundle_goal(folder: Path, sentence: str, to: Path) -> None:
    """Writes the bundle in ``folder`` into the new folder ``to``, with the goal that ``sentence``
    means; ValueError where its policy knows one goal alone, or not this one."""
    bundle = PolicyBundle.load(folder)
    manifest = bundle.manifest
    task = single_goal(task_of_bundle(manifest), sentence)
    parts = tuple(task.obs_parts().get(ASKED, ()))
    inputs = tuple(
        dataclasses.replace(one, parts=parts) if one.name == ASKED else one
        for one in manifest.inputs
    )
    with np.load(folder / GOLDEN, allow_pickle=False) as archive:
        golden = dict(archive)
    at = sum(one.size for one in inputs[: [one.name for one in inputs].index(ASKED)])
    one_hot = np.arange(len(task.keys)) == task.keys.index(task.only)
    golden["obs"][:, at : at + len(one_hot)] = one_hot
    golden["action"] = bundle.act(golden["obs"])[0]
    metrics = {**manifest.metrics, "sentence": task.goals()[task.only].sentence}
    manifest = dataclasses.replace(manifest, goal=task.only, inputs=inputs, metrics=metrics)
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.") as temporary:
        built = Path(temporary) / "bundle"
        built.mkdir()
        (built / POLICY).write_bytes((folder / POLICY).read_bytes())
        np.savez(built / GOLDEN, **golden)
        write_manifest(built, manifest)
        PolicyBundle.load(built)
        built.rename(to)
