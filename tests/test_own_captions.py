"""Rewards from frames and words on anybody's env: captions of one's own, a CLIP that is taught
them, a policy from it, and the same around a Gymnasium env or a VecEnv from Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env

from reward_models.base import from_dict
from reward_models.vision.encoders import EmbeddedClip
from reward_models.vision.graded_captions import read_captions
from robo_rl.cli import main
from robo_rl.evaluation.rollout_video import highest_rewards
from robo_rl.rewards import clip
from robo_rl.rewards.clip import ClipConfig, sentence_captions
from robo_rl.rewards.gym_wrapper import (
    OWN,
    FrameRewardVecWrapper,
    FrameRewardWrapper,
    FrameScorer,
    WithFrames,
)
from robo_rl.vision.caption_data import SceneView, held_out
from robo_rl.vision.state_collection import collect_frames
from sims.external.gymnasium_env import GymnasiumEnv

CAPTIONS = Path(__file__).parents[1] / "docs" / "captions" / "cartpole.toml"
CARTPOLE, UPRIGHT = "gym:CartPole-v1", "the pole stands upright"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory, training_seed: int) -> Path:
    """A CLIP that was taught six captions, for long enough to tell left from right."""
    out = tmp_path_factory.mktemp("clip") / "cartpole.safetensors"
    asked = f"--task {CARTPOLE} --captions {CAPTIONS} --frames 400 --steps 60 --batch 16"
    more = ["--seed", str(training_seed), "--out", str(out)]
    assert main(["reward", "train", *asked.split(), *more]) == 0
    return out


def card() -> dict:
    sim = GymnasiumEnv(CARTPOLE, 1)
    sim.close()
    return sim.card


def test_discrete_action_is_the_argmax() -> None:
    sim, twin = GymnasiumEnv(CARTPOLE, 1, seed=3), gymnasium.make("CartPole-v1")
    assert sim.act_dim == 2
    seed = int(np.random.SeedSequence((3, 0)).generate_state(1)[0])
    np.testing.assert_allclose(sim.reset()[0], twin.reset(seed=seed)[0])
    for k in range(6):
        action = np.array([[0.1, 0.9 if k % 2 else -0.9]])
        np.testing.assert_allclose(sim.step(action).obs[0], twin.step(k % 2)[0], rtol=1e-6)
    sim.close()


def test_own_captions_frames_have_the_requested_size() -> None:
    sim = GymnasiumEnv(CARTPOLE, 4, frames=True, frame_size=(64, 48))
    frames, signals = collect_frames(sim, 10, seed=0)
    assert frames.shape == (10, 64, 48, 3) and signals["obs"].shape == (10, 4)
    assert len(np.unique(frames.reshape(10, -1), axis=0)) == 10
    sim.close()


def test_clip_is_evaluated_with_its_training_camera(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('[captions]\n"up" = "tip[2] > 0.1"\n"down" = "tip[2] < 0.1"\n')
    held = held_out(SceneView("reach", camera="top"), file, 60, seed=3)
    assert [home.camera for home in held.homes] == ["top"] and len(held.frames) == 6
    with pytest.raises(ValueError, match="has no camera 'top', only its own render"):
        held_out(SceneView(CARTPOLE, camera="top"), CAPTIONS, 60, seed=3)


def test_own_captions_are_graded_by_the_state() -> None:
    graded = read_captions(CAPTIONS, from_dict(card()))
    obs = np.array([[0, 0, 0, 0], [0, 0, 0.2, 0], [-1, 0, -0.2, 0], [np.nan, 0, np.nan, 0]])
    truth = dict(zip(graded.texts, graded.truth({"obs": obs}).T, strict=True))
    np.testing.assert_allclose(truth[UPRIGHT], [1.0, np.exp(-5), np.exp(-5), 0.0], atol=1e-6)
    np.testing.assert_allclose(truth["the pole leans to the right"], [0.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(truth["the cart is on the left"], [0.0, 0.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("captions = 3", "expected a table"),
        ("[captions\n", "is not a TOML file"),
        ('[captions]\n"up" = "obs[2]"\n', "at least two"),
        ('[captions]\n"up" = "obs[2]"\n"down" = "angle"\n', "'down'.*signals: obs"),
        ('[captions]\n"up" = "obs[2]"\n"down" = "open(1)"\n', "'down'"),
        ('[captions]\n"up" = "obs[2]"\n"..." = "obs[1]"\n', "needs a caption"),
        ('[captions]\n"up" = "obs[2]"\n"down" = 3\n', "an expression in quotes"),
    ],
)
def test_invalid_own_captions_are_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "captions.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"(?s){path}.*{says}"):
        read_captions(path, from_dict(card()))


def test_own_captions_bypass_the_grammar() -> None:
    assert (
        sentence_captions("a humanoid kneeling", ClipConfig())[0][0].text == "a humanoid kneeling"
    )
    config = ClipConfig(formula="contrast", target="it kneels", negatives=("it stands", "it lies"))
    [[caption]] = sentence_captions("whatever", config)
    assert (caption.text, caption.negatives) == ("it kneels", ("it stands", "it lies"))
    several = ClipConfig(
        formula="goal_baseline", target=("it kneels", "it is on its knees"), baseline="it is there"
    )
    [[caption]] = sentence_captions("whatever", several)
    assert (caption.text, caption.further) == ("it kneels", ("it is on its knees",))
    assert caption.baseline == ("it is there",)
    for formula, option in (("contrast", "negatives"), ("goal_baseline", "baseline")):
        with pytest.raises(ValueError, match=f"give --clip.{option} TEXT"):
            sentence_captions("it kneels", ClipConfig(formula=formula))


def test_clip_with_own_captions_separates_states(
    weights: Path, outcome: Callable[..., None]
) -> None:
    """On frames of other episodes than those that taught it: left from right, by the pole alone."""
    encoder = EmbeddedClip(weights)
    assert str(encoder.homes[0]).startswith(CARTPOLE) and UPRIGHT in encoder.taught
    sim = GymnasiumEnv(CARTPOLE, 16, seed=99, frames=True, frame_size=encoder.size)
    frames, signals = collect_frames(sim, 120, seed=99)
    sim.close()
    texts = ("the pole leans to the left", "the pole leans to the right")
    left, right = (encoder.encode(frames) @ encoder.encode_texts(texts).T).T
    angle = signals["obs"][:, 2]
    clear = np.abs(angle) > 0.08
    assert clear.sum() > 40
    agree = (right > left)[clear] == (angle > 0)[clear]
    outcome("share of frames told left from right", agree.mean(), above=0.8)
    cells = {c["text"]: c for c in json.loads(weights.with_suffix(".json").read_text())["cells"]}
    assert cells[texts[0]]["of"] == 40
    outcome("AUC of the pole that leans to the left", cells[texts[0]]["auc"], above=0.75)


def test_train_a_policy_from_own_captions(
    weights: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clip, "SCALED_ABROAD", 64)
    own = f"embedded:{weights}"
    asked = ["train", CARTPOLE, "--goal", UPRIGHT, "--clip.encoder", own, "--name", "up"]
    sizes = ["--env-steps", "128", "--tuning.num-envs", "4", "--tuning.n-steps", "32"]
    more = [*sizes, "--episodes", "2", "--eval-points", "0", "--runs", str(tmp_path)]
    assert main([*asked, *more]) == 0
    run = tmp_path / "up"
    result = json.loads((run / "result.json").read_text())
    assert result["goal"] == result["captions"] == UPRIGHT and result["sees"] == "frames"
    assert result["frames"]["training"] > 128 and result["evaluation"]["return_mean"] > 0
    page = (run / "report.html").read_text()
    assert "The frames that were paid most" in page and "data:video/webm" in page
    assert main(["evaluate", str(run), "--episodes", "2"]) == 0
    assert "return" in capsys.readouterr().out
    for wrong, says in (
        (["--goal", "the pole is blue"], "captions: the pole"),
        (["--clip.formula", "contrast"], "give --clip.negatives TEXT"),
        (["--clip.encoder", "embedded"], "reward train --task gym:CartPole-v1 --captions"),
        (["--reward", "offline"], "use --reward clip with --clip.encoder"),
        (["--reward", "task"], "need --goal, and other rewards do not take"),
    ):
        options = asked[:4] if wrong[0] == "--reward" else asked[:6]
        assert main([*options, *wrong, "--runs", str(tmp_path / "no")]) == 1
        assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "no").exists()


def test_clip_reward_wrapper_on_a_gymnasium_env(weights: Path) -> None:
    own = f"embedded:{weights}"
    env = FrameRewardWrapper(
        gymnasium.make("CartPole-v1", render_mode="rgb_array"), UPRIGHT, encoder=own
    )
    env.reset(seed=0)
    _, reward, *_, info = env.step(0)
    assert info[OWN] == 1.0 and reward != 1.0
    rows = make_vec_env(
        "CartPole-v1", 3, wrapper_class=WithFrames, env_kwargs={"render_mode": "rgb_array"}
    )
    envs, sight = (
        FrameRewardVecWrapper(rows, UPRIGHT, encoder=own),
        FrameScorer(UPRIGHT, encoder=own),
    )
    twin = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    twin.reset(seed=0)
    envs.seed(0)
    envs.reset()
    ended = 0
    for _ in range(40):  # pushed one way until it falls: the frame before the reset is judged
        before = [env.unwrapped.state for env in rows.envs]
        _, rewards, dones, infos = envs.step(np.zeros(3, int))
        assert all("frame" not in info and info[OWN] == 1.0 for info in infos)
        for row in np.flatnonzero(dones):
            ended += 1
            twin.unwrapped.state, twin.unwrapped.steps_beyond_terminated = before[row], None
            twin.step(0)
            fell, stands = sight(np.stack([twin.render(), rows.envs[row].render()]))
            assert rewards[row] == pytest.approx(fell, abs=1e-4) and abs(fell - stands) > 1e-3
    assert ended
    bare = FrameRewardVecWrapper(make_vec_env("CartPole-v1", 1), UPRIGHT, encoder=own)
    bare.reset()
    with pytest.raises(ValueError, match="wrapper_class=robo_rl.rewards.gym_wrapper.WithFrames"):
        bare.step(np.zeros(1, int))
    with pytest.raises(ValueError, match="renders no frames.*render_mode='rgb_array'"):
        blind = FrameRewardWrapper(gymnasium.make("CartPole-v1"), UPRIGHT, encoder=own)
        blind.reset()
        blind.step(0)
    with pytest.raises(ValueError, match="trained on reach, lift, .* cameras front, top only"):
        FrameScorer(UPRIGHT, encoder="embedded")


def test_highest_rewarded_frames_are_spread_out() -> None:
    reward = np.zeros((40, 2))
    reward[10:13, 0], reward[30, 1] = [5, 6, 5], 4
    live = np.ones((40, 2), bool)
    live[30, 1] = False
    found = highest_rewards(reward, live)
    assert found[0] == (11, 0) and (30, 1) not in found
    assert all(abs(t - 11) > 5 for t, n in found[1:] if n == 0)
