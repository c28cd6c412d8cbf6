"""The verdict: success of the winner and of what it is compared with, and the gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reward_models.analysis.metrics import paired_gain, wilson
from robo_rl.search.worker import unpack_successes


def verdict(trainings: Sequence[dict[str, Any]], episodes: int) -> dict[str, Any]:
    """Success over all trainings of one program; one that failed has no success in any episode."""
    won = [t["evaluation"]["successes"] if t["kind"] == "trained" else 0 for t in trainings]
    total = episodes * len(trainings)
    low, high = wilson(sum(won), total)
    return {
        "success": sum(won) / total,
        "low": low,
        "high": high,
        "episodes": total,
        "failed": sum(t["kind"] != "trained" for t in trainings),
        "trainings": [
            {
                "seed": t["seed"],
                "kind": t["kind"],
                "success": n / episodes,
                "env_steps": t["env_steps"],
                "message": t.get("message", ""),
            }
            for t, n in zip(trainings, won, strict=True)
        ],
    }


def gains(judged: Sequence[dict[str, Any]], episodes: int) -> dict[str, dict[str, float]]:
    """{what: {gain, low, high}}: the winner's success less that of what it is compared with, with
    the paired bootstrap interval over trainings of the same seed and over the same episodes."""
    won: dict[str, dict[int, list[int]]] = {}
    for answer in judged:
        row = [0] * episodes
        if answer["kind"] == "trained":
            if "won" not in answer:  # of a journal from before episodes were kept
                return {}
            row = unpack_successes(answer["won"], episodes)
        won.setdefault(answer["what"], {})[answer["index"]] = row
    found = {}
    for what, rows in won.items():
        both = sorted(rows.keys() & won["winner"].keys())
        if what != "winner" and both:
            gain, low, high = paired_gain(
                np.array([won["winner"][k] for k in both]), np.array([rows[k] for k in both])
            )
            found[what] = {"gain": gain, "low": low, "high": high}
    return found
