"""Scorers of what is seen beside a sentence: goal pictures and what is learned on embeddings."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import sims
from reward_models.visual.encoders import EmbeddedClip
from reward_models.visual.goal_image import GoalImage
from reward_models.visual.seen import histories
from robo_rl.cli import main
from robo_rl.goals import read_goal
from robo_rl.rewards import clip, make_reward
from robo_rl.rewards.goal_image import read_pictures

RNG = np.random.default_rng(0)


def unit(*shape: int) -> np.ndarray:
    x = RNG.normal(size=shape)
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


class Rows:
    """An encoder of one pixel: its three values are the embedding."""

    name, camera, size = "pixels", "front", (1, 1)

    def encode(self, frames: np.ndarray) -> np.ndarray:
        x = frames.reshape(len(frames), 3).astype(np.float32)
        return x / np.linalg.norm(x, axis=1, keepdims=True)


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8),
       st.integers(1, 4))  # fmt: skip
def test_a_history_is_the_frames_before_it_in_its_own_row(valid, context) -> None:
    valid = np.array(valid)
    entries = [tuple(entry) for entry in np.argwhere(valid)]
    found = histories(valid, context)
    assert found.shape == (len(entries), context)
    for (step, column), row in zip(entries, found, strict=True):
        own = [entry for entry in entries if entry[1] == column and entry[0] <= step]
        wanted = [own[max(len(own) - 1 - back, 0)] for back in range(context)]
        assert [entries[i] for i in row] == wanted


# Goal pictures.
def test_the_nearest_picture_counts_and_the_distance_is_vips() -> None:
    rows, goals = unit(40, 8), unit(3, 8)
    cosine, distance = (GoalImage(Rows(), goals, f).raw(rows) for f in ("cosine", "distance"))
    np.testing.assert_allclose(cosine, (rows @ goals.T).max(axis=1))
    apart = np.linalg.norm(rows[:, None] - goals[None], axis=2).min(axis=1)
    np.testing.assert_allclose(distance, -apart, atol=1e-5)
    assert GoalImage(Rows(), goals).raw(goals).min() == pytest.approx(1.0, abs=1e-5)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of the red cube touched, as chance has it."""
    out = tmp_path_factory.mktemp("goal") / "touched"
    asked = ["reward", "picture", "--goal", "touch_red_cube", "--of", "chance", "--count", "6"]
    assert main([*asked, "--out", str(out)]) == 0
    return out


def test_pictures_are_of_the_goal_and_say_whose(pictures: Path, tmp_path: Path) -> None:
    frames, card = read_pictures(pictures)
    assert len(frames) == 6 and card["truth"] == "touch_red_cube" and "random" in card["states"]
    one = tmp_path / "one.png"
    assert main(["reward", "picture", "--out", str(one)]) == 0
    assert "expert" in json.loads(one.with_suffix(".json").read_text())["states"]
    encoder = EmbeddedClip(dtype=torch.float32)
    [text] = encoder.encode_texts(("the gripper touches the red cube",))
    seen = encoder.encode(np.stack([*frames, *read_pictures(one)[0]])) @ text
    env = sims.make("reach", 32, seed=3)
    env.reset()
    assert np.median(seen) > np.quantile(encoder.encode(env.render()) @ text, 0.9)


def test_a_goal_picture_rewards_what_looks_like_it(
    pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clip, "SCALED_ON", 256)
    env = sims.make("reach", 8, seed=3, goal="touch_red_cube")
    goal = read_goal(env.task, "touch_red_cube")
    made = make_reward(f"goal-image:{pictures}", goal, env, dtype="float32")
    assert "6 goal pictures" in made.sees and "random" in made.sees and made.frames == 256
    shown = cv2.imread(str(pictures / "0000.png"))[None, ..., ::-1]
    rows = made.model.encoder.encode(np.ascontiguousarray(shown))
    assert made.model.raw(rows)[0] == pytest.approx(1.0, abs=1e-3)
    assert made.model.rate(rows, np.zeros((1, 1), int)).reward[0] >= 1.0


def test_what_is_no_picture_is_one_line(pictures: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "text.mp4").write_text("no film")
    (tmp_path / "empty").mkdir()
    for file, more, says in (
        ("nowhere.png", [], "there is no goal picture nowhere.png; make one: robo-rl reward"),
        (tmp_path / "text.png", [], "is not a picture that can be read"),
        (tmp_path / "text.mp4", [], "cannot read a video"),
        (tmp_path / "empty", [], "holds no .png, .jpg, .jpeg"),
        (pictures, ["--robot", "ur5e"], "--goal-image.encoder embedded:FILE.safetensors"),
    ):
        asked = ["train", "reach", "--reward", f"goal-image:{file}", *more]
        assert main([*asked, "--runs", str(tmp_path / "runs")]) == 1
        err = capsys.readouterr().err.replace("\n", " ")
        assert err.count("robo-rl: ") == 1 and says in err
    for asked, says in (
        (["--count", "2", "--out", "a.png"], "one picture goes into --out FILE.png"),
        (["--out", str(pictures), "--count", "2"], "exists already"),
        (["--out", "a.png", "--task", "hopper"], "no expert"),
    ):
        assert main(["reward", "picture", *asked]) == 1
        assert says in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
