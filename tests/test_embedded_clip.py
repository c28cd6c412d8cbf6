"""The embedded CLIP: what ships, that the look has not drifted, that training works."""

from __future__ import annotations

import hashlib
import itertools
import json
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch.nn import functional as F

import sims
from reward_models.vision import tiny_clip, train
from reward_models.vision.config import FitConfig
from reward_models.vision.encoders import EmbeddedClip, OpenClip, UnknownActivation, make_encoder
from reward_models.vision.train import caption_targets, fit
from robo_rl.cli import main
from robo_rl.commands.reward.report import RewardReportCommand
from robo_rl.commands.reward.score import ScoreCommand
from robo_rl.commands.train import parse_train
from robo_rl.goals.reading import read_goal
from robo_rl.on_robot_learning.config import OnRobotConfig
from robo_rl.rewards import REWARDS
from robo_rl.rewards.clip import ClipConfig, captions_for, select_training_scene
from robo_rl.vision import caption_data
from robo_rl.vision.caption_data import (
    FrameOptions,
    GradedFrames,
    SceneView,
    graded_frames,
    graded_frames_of_scenes,
)
from robo_rl.vision.caption_gate import (
    evaluate_captions,
    evaluate_clip_file,
    occluded_objects,
    swapped,
)
from robo_rl.vision.render_guard import TOLERANCE, drift
from robo_rl.vision.state_collection import collect_states
from sims.rendering.cameras import Appearance
from sims.rendering.resize import resize_frames
from sims.tasks.scene.named_objects import COLOURS, SHAPES

SUITE = (
    "reach",
    "lift",
    "pick_place",
    "stack",
    "drawer",
    "button",
    "peg",
    "drawer_then_place",
    "push",
)
RETRAIN = (
    "the look of the scene has changed: run `robo-rl reward train --ship` and commit what it writes"
)


@pytest.fixture(scope="module")
def env() -> sims.BatchEnv:
    return sims.make("reach", 64, seed=5)


@pytest.fixture(scope="module")
def encoder() -> EmbeddedClip:
    return EmbeddedClip()


@pytest.fixture(scope="module")
def seen() -> GradedFrames:
    """A few frames to train on."""
    return graded_frames(SceneView("drawer"), FrameOptions(), 80, seed=9)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few states are collected in few environments."""
    monkeypatch.setattr(caption_data, "ROWS", 16)
    monkeypatch.setattr("robo_rl.vision.caption_gate.ROWS", 64)


def test_embedded_weights_are_small_and_have_a_card() -> None:
    path = tiny_clip.DEFAULT
    assert path.stat().st_size <= 6_000_000
    card = json.loads(path.with_suffix(".json").read_text())
    assert {"licence", "command", "summary", "cells", "versions"} <= set(card)
    homes = tiny_clip.training_scenes_in(path)
    asked = itertools.product(SUITE, ("so101", "ur5e", "fr3"), ("front", "top"))
    assert {(home.task, home.robot, home.camera) for home in homes} == set(asked)
    home = {"task": "drawer", "robot": "ur5e", "camera": "top"}
    found = evaluate_clip_file(path, SceneView(**home), "cpu", {"count": 400})
    [said] = [s for s in card["scenes"] if home.items() <= s.items()]
    for name in ("auc_median", "rank_median"):
        assert found["plain summary"][name] == pytest.approx(said[name], abs=0.01)


def test_rendering_matches_the_weights_guard() -> None:
    homes = tiny_clip.training_scenes_in(tiny_clip.DEFAULT)
    found = drift(homes, tiny_clip.DEFAULT.with_suffix(".guard.npz"))
    assert set(found) == set(homes) and max(found.values()) <= TOLERANCE, RETRAIN


def test_guard_detects_changed_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    home = tiny_clip.TrainingScene("reach", "so101", "front")
    draw = sims.BatchEnv.render_states

    def brighter(env: sims.BatchEnv, states: np.ndarray, camera: str, **how) -> np.ndarray:
        return draw(env, states, camera, look=Appearance(light=np.full(len(states), 1.2)), **how)

    monkeypatch.setattr(sims.BatchEnv, "render_states", brighter)
    assert drift([home], tiny_clip.DEFAULT.with_suffix(".guard.npz"))[home] > TOLERANCE


def test_embedded_clip_scores_match_truth_on_held_out_states(
    encoder: EmbeddedClip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robo_rl.vision.caption_gate.FEW", 10)  # of fewer states than usual
    figures = evaluate_captions(encoder, sims.make_task("reach"), count=400, seed=31_000_000)
    for label in ("plain", "moved"):
        summary = figures[f"{label} summary"]
        assert summary["cells"] > 30 and summary["auc_median"] > 0.97, summary
        assert summary["share_95"] > 0.9 and summary["rank_median"] > 0.9, summary
    assert figures["swapped"] > 0.98
    goals = [g.sentence for g in sims.make_task("reach").goals().values()]
    worst = min(c["auc"] for c in figures["plain"] if c["text"] in goals)
    assert worst > 0.95


def test_colour_swap_metric_by_hand() -> None:
    said = (
        "the red cube touches the blue cube",
        "the blue cube touches the red cube",
        "the red cube is held",
        "the blue cube is held",
    )
    other = (said[1], said[0], said[3], said[2])
    truth = np.array([[True, True, True, False], [True, True, False, False]])

    class Words:
        taught = said

        @staticmethod
        def encode_texts(texts: tuple[str, ...]) -> np.ndarray:
            return np.eye(4)[[said.index(text) for text in texts]]

    held = [np.eye(4)[[2, 0]], np.eye(4)[[3, 0]]]  # red in the one picture, blue in the other
    assert swapped(Words, held, (said, other), truth) == 1.0  # type: ignore[arg-type]
    assert swapped(Words, held[::-1], (said, other), truth) == 0.0  # type: ignore[arg-type]
    assert swapped(Words, held, (said[:2], other[:2]), truth[:, :2]) is None  # type: ignore[arg-type]
    told = [np.eye(4)[[2, 3]], np.eye(4)[[3, 0]]]  # blue in the first one's second frame
    truth[1] = truth[0]
    assert swapped(Words, told, (said, other), truth) == 0.5  # type: ignore[arg-type]
    shows = np.array([[True] * 4, [False] * 4])
    assert swapped(Words, told, (said, other), truth, [shows]) == 1.0  # type: ignore[arg-type]


def test_hidden_objects_are_below_the_arm_or_out_of_frame() -> None:
    task = sims.make_task("lift", robot="so101")
    env = sims.BatchEnv(task, 128, seed=3)
    env.scatter()
    states = env.state()

    def hidden(look: Appearance | None) -> np.ndarray:
        return occluded_objects(env, states, "top", look)["red_cube_pos"]

    assert hidden(Appearance(camera_offset=np.full((128, 3), 3.0))).all()
    found, data = hidden(None), mujoco.MjData(env.model)
    assert 4 < found.sum() < 64
    first = []  # what a ray from the camera to the middle of the cube meets
    for state in states:
        mujoco.mj_setState(env.model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_forward(env.model, data)
        eye, geom = data.camera("top").xpos, np.zeros(1, np.int32)
        way = data.geom("red_cube").xpos - eye
        mujoco.mj_ray(env.model, data, eye, way, None, 1, -1, geom, None)
        first.append(env.model.geom(geom[0]).name)
    assert "red_cube" not in {name for name, out in zip(first, found, strict=True) if out}
    env.close()


def test_captions_of_different_objects_have_distinct_embeddings(encoder: EmbeddedClip) -> None:
    names = ("the red cube", "the blue ball", "the green cylinder", "the blue cube", "the red ball")
    for says in ("the gripper touches {}", "the gripper is far from {}"):
        rows = encoder.encode_texts(tuple(says.format(name) for name in names))
        assert (rows @ rows.T - 2 * np.eye(len(names))).max() < 0.9


def test_encoding_does_not_depend_on_the_batch(env: sims.BatchEnv) -> None:
    states, _ = collect_states(env, 20, seed=1)
    frames = env.render_states(states)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
        encoder = EmbeddedClip(batch=16, dtype=dtype)
        whole = encoder.encode(frames)
        single = np.concatenate([encoder.encode(frames[i : i + 1]) for i in range(20)])
        np.testing.assert_allclose(whole, single, atol=tolerance)
        np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1.0, atol=1e-5)


def test_encoder_computes_in_float32_by_default(
    env: sims.BatchEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the clocks say: the encoder reads none."""

    def read() -> float:
        raise AssertionError("the encoder timed something")

    for clock in ("process_time", "perf_counter", "monotonic", "time"):
        monkeypatch.setattr(time, clock, read)
    frames = env.render_states(env.state())
    rows = {}
    for asked, dtype in (((), "float32"), (("bfloat16",), "bfloat16")):
        encoder = make_encoder("embedded", "cpu", *asked)
        assert encoder.dtype_name == dtype
        rows[dtype] = encoder.encode(frames)
    difference = np.abs(rows["float32"] - rows["bfloat16"]).max()
    assert 0.0 < difference < 1e-1  # the numbers are others


def test_every_encoder_reward_has_a_dtype_option() -> None:
    for name, kind in REWARDS.items():
        settings = kind.settings()
        assert hasattr(settings, "dtype") == hasattr(settings, "encoder") == kind.frames, name
        assert getattr(settings, "dtype", "float32") == "float32", name
    for config in (FitConfig(), OnRobotConfig(), ScoreCommand(source=()), RewardReportCommand()):
        assert config.dtype == "float32"
    asked = ["--clip.dtype", "bfloat16", "--goal", "touch the red cube"]
    assert parse_train(["reach", *asked]).scoring.dtype == "bfloat16"


def test_folding_batch_norms_keeps_outputs(env: sims.BatchEnv) -> None:
    model = tiny_clip.load(tiny_clip.DEFAULT)
    tower = tiny_clip.fold_batch_norm(model.clip.visual)
    norms = [m for m in tower.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert not norms and any(isinstance(m, torch.nn.BatchNorm2d) for m in model.modules())
    frames = torch.from_numpy(np.ascontiguousarray(env.render_states(env.state())))
    with torch.inference_mode():
        plain, quick = (F.normalize(model.images(frames, t), dim=-1) for t in (None, tower))
    assert (plain - quick).abs().max() < 1e-5


def test_unknown_caption_word_is_named(encoder: EmbeddedClip) -> None:
    with pytest.raises(ValueError, match="unknown word 'cubes'.*Did you mean 'cube'"):
        encoder.encode_texts(("the gripper touches the red cubes",))
    with pytest.raises(ValueError, match="has 30 words; at most 15 are allowed"):
        tiny_clip.tokenize(("the " * 30,), 16, ("the",))


def test_files_without_embedded_clip_are_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.safetensors"
    with pytest.raises(ValueError, match="embedded CLIP .* does not exist; .*robo-rl reward train"):
        tiny_clip.load(bad)
    bad.write_bytes(b"\x80\x04garbage")
    with pytest.raises(ValueError, match="is not an embedded CLIP"):
        tiny_clip.load(bad)


def test_open_clip_loads_local_weights_or_explains(tmp_path: Path) -> None:
    import open_clip

    with pytest.raises(ValueError, match="unknown open_clip model 'ViT-Z-99'"):
        OpenClip("ViT-Z-99")
    with pytest.raises(
        ValueError, match="unknown weights 'nothing' for .*; available: .*path of a local"
    ):
        OpenClip("RN50", "nothing")
    # A real open_clip model, a small one, through the real loading code, from a file made here.
    vision = {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16}
    text = {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 1, "layers": 1}
    sizes = {"embed_dim": 48, "vision_cfg": vision, "text_cfg": text}
    (tmp_path / "ViT-tiny-test.json").write_text(json.dumps(sizes))
    open_clip.add_model_config(tmp_path)
    model = open_clip.create_model("ViT-tiny-test", pretrained=None)
    path = tmp_path / "tiny.pt"
    torch.save(model.state_dict(), path)
    encoder = OpenClip("ViT-tiny-test", str(path), dtype=torch.float32)
    frames = np.random.default_rng(0).integers(0, 255, (2, 96, 96, 3), dtype=np.uint8)
    rows = encoder.encode(frames)
    assert rows.shape == (2, 48) == encoder.encode_texts(("a robot arm", "a cat")).shape
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-4)


def test_open_clip_fails_at_once_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server listens at that address; every command can follow the hint."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    begun = time.monotonic()
    with pytest.raises(ValueError, match="Without a network: .* give ViT-B-32:FILE, or 'embedded'"):
        OpenClip("ViT-B-32", "laion2b_s34b_b79k")
    assert time.monotonic() - begun < 40.0  # its model is made before; the retries took 47 s alone


def test_open_clip_prepares_frames_and_texts_as_the_model_says(tmp_path: Path) -> None:
    """A wide frame is cropped as open_clip itself crops it, and no sentence is cut in silence."""
    import open_clip
    from PIL import Image

    vision = {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16}
    text = {"context_length": 16, "vocab_size": 49408, "width": 64, "heads": 1, "layers": 1}
    sizes = {"embed_dim": 48, "vision_cfg": vision, "text_cfg": text}
    for name, quick in (("ViT-pair-test", False), ("ViT-pair-test-quickgelu", True)):
        (tmp_path / f"{name}.json").write_text(json.dumps(sizes | {"quick_gelu": quick}))
    open_clip.add_model_config(tmp_path)
    model, _, prepare = open_clip.create_model_and_transforms("ViT-pair-test", pretrained=None)
    torch.save(model.state_dict(), path := tmp_path / "pair.pt")
    for name, twin in (
        ("ViT-pair-test", "ViT-pair-test-quickgelu"),
        ("ViT-pair-test-quickgelu", "ViT-pair-test"),
    ):
        with pytest.warns(UnknownActivation, match=f"does not say its activation.*give {twin}:"):
            encoder = OpenClip(name, str(path))
    encoder = OpenClip("ViT-pair-test", str(path))
    wide = np.zeros((96, 144, 3), np.uint8)
    wide[:, ::7], wide[:, 24:120] = 255, (200, 60, 20)
    wide[30:50, 40:90] = (10, 220, 90)
    with torch.inference_mode():
        theirs = model.eval().encode_image(prepare(Image.fromarray(wide))[None])[0].numpy()
    ours = encoder.encode(wide[None])[0]
    assert ours @ theirs / np.linalg.norm(theirs) > 0.999
    assert encoder.encode(wide[None, :, 24:120])[0] @ ours > 0.999
    assert np.abs(resize_frames(wide[None], (32, 32), crop=True)[0, 2, 2] - (200, 60, 20)).max() < 3
    assert (resize_frames(wide[None], (32, 32))[0, 2, 2] < 100).all()
    longer = "the gripper touches the red cube " * 4
    with pytest.raises(ValueError, match="at most 16 tokens, and 'the gripper .* has more"):
        encoder.encode_texts(("a cube", longer))


def test_make_encoder_by_name() -> None:
    assert make_encoder("embedded").name.startswith("embedded-")
    with pytest.raises(ValueError, match="unknown open_clip model"):
        make_encoder("nothing:tag")


def test_a_few_steps_of_training_reduce_the_loss(
    seen: GradedFrames,
    training_seed: int,
    outcome: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(train, "TOLD", 1)
    losses: list[float] = []
    fit(
        seen.frames,
        caption_targets(seen.seen),
        FitConfig(steps=24, batch=16, seed=training_seed),
        lambda share, row: losses.append(row["match"]),
    )
    outcome("match loss, share of the first", losses[-1] / losses[0], below=0.65)


def test_killed_clip_training_resumes_to_the_same_weights(
    seen: GradedFrames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "KEPT_S", 0.0)
    monkeypatch.setattr(train, "TOLD", 4)
    told, config, kept = (
        caption_targets(seen.seen),
        FitConfig(steps=8, batch=16),
        tmp_path / "under_way",
    )
    whole = fit(seen.frames, told, config)

    def killed(share: float, losses: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(seen.frames, told, config, killed, kept)
    news: list[float] = []
    again = fit(seen.frames, told, config, lambda share, row: news.append(row["step"]), kept)
    assert news == [4, 8]  # it went on behind step 3
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name
    with pytest.raises(ValueError, match="under_way was written by a training with other options"):
        fit(seen.frames[:48], told, config, kept=kept)
    other = replace(config, dtype="bfloat16")
    with pytest.raises(
        ValueError, match="started with dtype float32, got bfloat16.*--dtype float32"
    ):
        fit(seen.frames, told, other, kept=kept)


def test_unfinished_clip_training_without_dtype_keeps_its_format(
    seen: GradedFrames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file names the training by the options that there were then, and has ``bf16``."""
    monkeypatch.setattr(train, "KEPT_S", 0.0)
    monkeypatch.setattr(train, "TOLD", 2)
    told, kept = caption_targets(seen.seen), tmp_path / "under_way"
    config = FitConfig(steps=3, batch=16, dtype="bfloat16")
    whole = fit(seen.frames, told, config)

    def killed(share: float, losses: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(seen.frames, told, config, killed, kept)
    with safe_open(kept, "pt") as file:
        meta = file.metadata()
    options = {k: v for k, v in asdict(config).items() if k != "dtype"}
    of = hashlib.blake2b(
        json.dumps([options, told.captions, seen.frames.shape, ""]).encode(), digest_size=16
    )
    of.update(np.ascontiguousarray(seen.frames))
    assert (meta["of"], meta["bf16"]) == (of.hexdigest(), "True")
    again = fit(seen.frames, told, config, kept=kept)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name
    with pytest.raises(ValueError, match="started with dtype bfloat16, got float32"):
        fit(seen.frames, told, replace(config, dtype="float32"), kept=kept)


def test_clip_training_can_start_from_other_weights(seen: GradedFrames) -> None:
    told, start = caption_targets(seen.seen), tiny_clip.load()
    config = FitConfig(steps=1, batch=32, learning_rate=0.0, text_learning_rate=0.0)
    model = fit(seen.frames, told, config, start=start)
    assert model.config == start.config and model.taught.texts == told.captions
    for name, weight in start.named_parameters():
        assert torch.equal(weight, model.get_parameter(name)), name
    other = replace(told, captions=("the drawer is ajar", *told.captions[1:]))
    with pytest.raises(ValueError, match="unknown word 'ajar'"):
        fit(seen.frames, other, config, start=start)


def test_held_out_objects_are_never_rendered_in_training(
    encoder: EmbeddedClip, few_rows: None, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = graded_frames(SceneView("reach"), FrameOptions(without=("red ball",)), 64, seed=9)
    said = {text for part in seen.seen for text in part.texts}
    assert "the gripper touches the green ball" in said
    assert not any("red ball" in text for text in said)
    figures = evaluate_captions(encoder, sims.make_task("reach"), hidden=("red ball",), count=200)
    cells = [cell["text"] for cell in figures["unseen"]]
    assert cells and all("red ball" in text for text in cells)
    assert figures["unseen told apart"] > 0.9  # these weights were shown it
    asked = ["--task", "reach", "--without", "red cube", "green cube", "blue cube"]
    assert main(["reward", "train", *asked, "--out", "a.safetensors"]) == 1
    assert "no recolouring of its objects is left" in capsys.readouterr().err
    asked = ["--task", "reach", "lift", "--without", "red bal", "--out", "a.safetensors"]
    assert main(["reward", "train", *asked]) == 1
    err = capsys.readouterr().err
    assert "unknown object 'red bal' of --without" in err and "red ball, red cube" in err


def test_clip_training_on_own_objects_and_scene(tmp_path: Path, few_rows: None) -> None:
    """It is at home among them alone, and says in its card how it was trained."""
    out = tmp_path / "own.safetensors"
    (tmp_path / "kitchen.xml").write_text(
        "<mujoco><worldbody><body name='mug' pos='0 0 .03'><freejoint/><geom type='cylinder' "
        "size='.022 .03' rgba='.1 .3 .8 1' mass='.06'/></body></worldbody></mujoco>"
    )
    (tmp_path / "kitchen.toml").write_text('[mug]\nkind = "item"\nnames = ["cup"]\n')
    given = {"things": "yellow ball", "scene": str(tmp_path / "kitchen.xml")}
    few = "--frames 64 --steps 2 --batch 16 --check-states 150".split()
    asked = ["--task", "tabletop", *few, "--out", str(out)]
    for name, value in given.items():
        asked += [f"--{name}", value]
    assert main(["reward", "train", *asked]) == 0
    encoder, card = EmbeddedClip(out), json.loads(out.with_suffix(".json").read_text())
    select_training_scene(encoder, sims.make_task("tabletop", **given))
    assert "the gripper touches the mug" in encoder.taught
    assert "--things 'yellow ball' --scene kitchen.xml" in card["command"]
    for things in ("", "yellow ball"):
        with pytest.raises(ValueError, match="knows no other scene; here is tabletop"):
            select_training_scene(encoder, sims.make_task("tabletop", things=things))


def test_clip_trained_on_some_objects_covers_named_ones() -> None:
    said = ("the gripper touches the red cube", "the red cube is next to the white ball")
    known = tiny_clip.TrainedCaptions(said, frozenset({"red cube", "white ball", "blue ball"}))
    for text in ("The gripper touches the blue ball.", "the blue ball is next to the red cube"):
        assert (
            text in known
            and text not in tiny_clip.TrainedCaptions(said)
            and text in tiny_clip.TrainedCaptions()
        )
    for text in (
        "the gripper grasps the red cube",
        "the gripper touches the blue cube",
        "red cube",
    ):
        assert text not in known


def test_clip_training_on_any_objects(
    tmp_path: Path, few_rows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taught of some tables, it is at home on every one whose things are called so."""
    for name, few in (("TABLES", 3), ("JUDGED_TABLES", 1), ("COLOURINGS", 4)):
        monkeypatch.setattr(caption_data, name, few)
    shown: list[GradedFrames] = []

    def noted(views: list[SceneView], *args: Any) -> GradedFrames:
        assert len({view.things for view in views}) == len(views) == 3
        shown.append(graded_frames_of_scenes(views, *args))
        return shown[0]

    monkeypatch.setattr(caption_data, "graded_frames_of_scenes", noted)
    out = tmp_path / "any.safetensors"
    asked = ["--task", "tabletop", "--things", "any", "--frames", "60", "--steps", "2"]
    asked += ["--batch", "16", "--check-states", "130", "--out", str(out)]
    assert main(["reward", "train", *asked]) == 0
    [seen] = shown
    assert len(seen.seen) == 12
    names = {f"{colour} {kind}" for colour in COLOURS for kind in SHAPES}
    for part in seen.seen:
        told = {name for name in names if any(name in text for text in part.texts)}
        assert len(told) in (2, 3, 4) and len(part.texts) == len(set(part.texts))
    encoder, card = EmbeddedClip(out), json.loads(out.with_suffix(".json").read_text())
    assert encoder.homes == (tiny_clip.TrainingScene("tabletop", "so101", "front", "any"),)
    assert "--things any" in card["command"] and card["summary"]["cells"]
    kinds = sorted({name.split()[1] for name in encoder.taught.names} - {"plate"})
    strange = f"white {kinds[0]}, pink {kinds[-1]}"
    task = sims.make_task("tabletop", things=strange)
    select_training_scene(encoder, task)
    goal = read_goal(task, f"touch the pink {kinds[-1]}")
    [[caption]] = captions_for(encoder, goal, ClipConfig())
    assert caption.text == f"the gripper touches the pink {kinds[-1]}"
    for things in ("two red cubes", "small red cube"):
        with pytest.raises(ValueError, match="of any things.* knows no other scene"):
            select_training_scene(encoder, sims.make_task("tabletop", things=things))
    assert main(["reward", "train", *asked, "--scene", "k.xml"]) == 1


def side_by_side_in_this_process(
    work: Callable[..., Any], given: dict[int, tuple[Any, ...]], jobs: int
) -> Iterator[tuple[int, Any]]:
    """The last first, and all that goes there and back as processes send it."""
    assert jobs > 1
    for key in reversed(given):
        yield key, pickle.loads(pickle.dumps(work(*pickle.loads(pickle.dumps(given[key])))))


@pytest.mark.parametrize(
    "processes", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["here", "processes"]
)
def test_parallel_scene_rendering_gives_the_same_frames(
    processes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many frames of each, in the order that was asked for."""
    scenes = [
        ("lift", "so101", "front"),
        ("lift", "ur5e", "top"),
        ("button", "so101", "top"),
        ("button", "ur5e", "front"),
    ]
    views = [SceneView(*scene) for scene in scenes]
    if not processes:
        monkeypatch.setattr(caption_data, "ROWS", 16)
    found = graded_frames_of_scenes(views, FrameOptions(), 40, seed=3)
    if not processes:
        monkeypatch.setattr(caption_data, "run_in_workers", side_by_side_in_this_process)
    aside = graded_frames_of_scenes(views, FrameOptions(), 40, seed=3, jobs=2)
    np.testing.assert_array_equal(found.frames, aside.frames)
    assert found.homes == aside.homes
    assert found.frames.shape == (40, 96, 96, 3) and sum(map(len, found.seen)) == 40
    assert [(home.task, home.robot, home.camera) for home in found.homes] == scenes
    assert not (found.frames.reshape(40, -1) == 0).all(axis=1).any()


def test_clip_training_on_several_scenes(
    tmp_path: Path, few_rows: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is at home in all of them, and judged in each."""
    out = tmp_path / "two.safetensors"
    asked = f"--task button drawer --frames 64 --steps 2 --batch 16 --check-states 150 --out {out}"
    assert main(["reward", "train", *asked.split()]) == 0
    encoder, card = EmbeddedClip(out), json.loads(out.with_suffix(".json").read_text())
    for task in ("button", "drawer"):
        select_training_scene(encoder, sims.make_task(task))
        judged = [cell for cell in card["cells"] if cell["task"] == task]
        assert judged and {cell["of"] for cell in judged} == {150}
    with pytest.raises(ValueError, match="drawer with the so101, camera front"):
        select_training_scene(encoder, sims.make_task("lift"))
    assert [scene["task"] for scene in card["scenes"]] == ["button", "drawer"]
    assert "--task button drawer --robot so101" in card["command"]
    assert (
        main(
            [
                "reward",
                "train",
                "--task",
                "reach",
                "push",
                "--captions",
                "c.toml",
                "--out",
                str(out),
            ]
        )
        == 1
    )
    assert "give one --task" in capsys.readouterr().err
    for more, status, says in (
        (["--captions", "c.toml", "--without", "red ball"], 1, "--without does not apply to"),
        (["--jobs", "0"], 2, "jobs must be at least 1, got 0"),
    ):
        assert main(["reward", "train", *more, "--out", str(out)]) == status
        assert says in capsys.readouterr().err.replace("\n", " ")
