"""Trained: a finished run, as training returns it and as ``load`` finds it; loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from robo_rl.evaluation.evaluate import Evaluation
from robo_rl.runs.policy import BEST_POLICY, Policy, load_graph, load_policy
from robo_rl.runs.run_dir import RunDir


@dataclass(frozen=True)
class Trained:
    """A finished run."""

    run: RunDir
    policy: Policy  # the final one
    best: Policy | None  # best in periodic evaluation; None: the final one, or not evaluated
    evaluation: Evaluation | None  # of the final policy; None: nothing to judge
    bundle: Path | None  # None: the task moves no arm
    seconds: Mapping[str, float]  # wall time of reward, training, evaluation


def load(path: Path | str) -> Trained:
    """The finished run in ``path``; its policy is the graph that was checked when it finished.

    ValueError where there is no run, or one that has not finished.
    """
    run = RunDir.open(Path(path))
    result = run.judged
    bundle = run.path / "bundle"
    return Trained(
        run,
        load_policy(run.path),
        load_graph(best) if (best := run.path / BEST_POLICY).exists() else None,
        Evaluation.from_dict(result["evaluation"]),
        bundle if bundle.exists() else None,
        result["seconds"],
    )
