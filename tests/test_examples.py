"""The scripts in examples/ run to their end, and their picture or video shows something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = {  # options that make each one small
    "quickstart": "--env-steps=640",
    "own_environment": "--env-steps=3840",
    "reward_from_demonstrations": "--demonstrations=16",
    "sim_to_emulated_arm": "--env-steps=640",
}


def test_every_example_is_run_and_on_its_page() -> None:
    found = {path.stem for path in (ROOT / "examples").glob("*.py")}
    page = (ROOT / "docs/tutorials/examples.md").read_text()
    assert found == set(EXAMPLES) and all(f"`{name}.py`" in page for name in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_ends_with_a_picture_or_video_of_something(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py", EXAMPLES[name]],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    kind, _, path = done.stdout.splitlines()[-1].partition(": ")
    assert kind in ("picture", "video") and Path(path).is_relative_to(f"runs/examples/{name}")
    film = cv2.VideoCapture(str(tmp_path / path))  # reads pictures, too
    frames = []
    while (read := film.read())[0]:
        frames.append(read[1])
    assert len(frames) == 1 if kind == "picture" else len(frames) > 20
    for frame in (frames[0], frames[-1]):
        assert min(frame.shape[:2]) >= 240 and frame.std() > 10
