"""docs/tutorials/python.md as written: the code on the page is taken and run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def run(page: Path) -> dict[str, Any]:
    """The names that the page's Python leaves, block after block."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        exec(compile(block, str(page), "exec"), names)
    return names


def test_python_tutorial_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run(ROOT / "docs" / "tutorials" / "python.md")
    trained, longer, again = (found[name] for name in ("trained", "longer", "again"))
    assert trained.run.path == Path("runs/touch") and trained.evaluation.goal == "touch_red_cube"
    assert (trained.bundle / "policy.onnx").exists()
    obs = np.random.default_rng(0).normal(size=(4, 45)).astype(np.float32)
    alone, _ = longer.policy.predict(obs[2])
    np.testing.assert_allclose(longer.policy.act(obs)[2], alone, atol=1e-6)
    np.testing.assert_allclose(again.policy.act(obs), longer.policy.act(obs), atol=1e-4)
    # Trained twice from one process; the second went on from the first, for more.
    assert again.run.config["env_steps"] == again.run.result["env_steps"] == 6_400
    assert again.run.metrics()["env_steps"].tolist() == [3_200, 6_400]
    assert longer.run.evaluations.read()["env_steps"].tolist() == [3_200, 6_400]
    assert "success while learning" in (again.run.path / "report.html").read_text()
    assert again.evaluation == longer.evaluation
    assert np.abs(trained.policy.act(obs) - longer.policy.act(obs)).max() > 1e-3
    assert (found["push"].env_steps, found["push"].tuning.log_std_init) == (600_000, -0.5)
    assert found["wider"].tuning.num_envs == 128
    assert found["asked"].out.exists() and found["rewarded"].reward == "success:success.safetensors"
    assert found["one"].spec.max_episode_steps == 80
    assert found["model"].num_timesteps == 512 and found["policy"].learner.env_steps == 800
    assert found["frames"].shape == (64, 96, 96, 3) and found["step"].obs.shape[0] == 64
