"""Trained: a finished run, as training returns it and as ``load`` finds it; loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from robo_rl.evaluate import Evaluation
from robo_rl.foreign import ForeignEvaluation
from robo_rl.policies import Policy, load_policy
from robo_rl.runs import RunDir


@dataclass(frozen=True)
class Trained:
    """A finished run."""

    run: RunDir
    policy: Policy  # the final one
    evaluation: Evaluation | ForeignEvaluation  # of the final policy, on the test seed
    bundle: Path | None  # None: the task moves no arm
    seconds: Mapping[str, float]  # wall time of reward, training, evaluation


def load(path: Path | str) -> Trained:
    """The finished run in ``path``; its policy is the graph that was checked when it finished.

    ValueError where there is no run, or one that has not finished.
    """
    run = RunDir.open(Path(path))
    result = run.result
    bundle = run.path / "bundle"
    kind = ForeignEvaluation if run.config["task"].startswith("gym:") else Evaluation
    return Trained(
        run,
        load_policy(run.path),
        _known(kind, result["evaluation"]),
        bundle if bundle.exists() else None,
        result["seconds"],
    )


def _known(kind: type, data: Mapping[str, Any]) -> Any:
    """The dataclass ``kind`` of what it has among ``data``."""
    return kind(**{f.name: data[f.name] for f in fields(kind)})
