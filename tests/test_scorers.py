"""Scorers of what is seen beside a sentence: goal pictures and what is learned on embeddings."""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from openai_server import OpenAIServer
from seeing_model import seeing, words

import sims
from reward_models.analysis.metrics import average_precision, threshold_within_bound, wilson
from reward_models.scorers.critic import Critic, CriticLoss
from reward_models.scorers.embedded_episodes import EmbeddedEpisodes, frame_windows, split_episodes
from reward_models.scorers.embedding_reward import frame_histories
from reward_models.scorers.goal_image import GoalImage
from reward_models.scorers.heads import (
    ScorerLoss,
    fit_head,
    load_scorer,
    save_scorer,
    untrained_head,
)
from reward_models.scorers.losses import LOSSES
from reward_models.scorers.preferences import (
    PreferencePairs,
    Preferences,
    most_disputed,
    pairs_from_ratings,
    preference_probabilities,
)
from reward_models.scorers.progress import (
    LAGS,
    Progress,
    ProgressLoss,
    progress_figures,
    progress_targets,
)
from reward_models.scorers.success import SuccessClassifier, SuccessLoss, evaluate_classifier
from reward_models.scorers.value import Likeness, Value, ValueLoss
from reward_models.vision.config import HeadConfig
from reward_models.vision.encoders import EmbeddedClip
from robo_rl.cli import main
from robo_rl.commands.reward.label import PAIR_KEYS
from robo_rl.goals.reading import judged_goal, read_goal
from robo_rl.labelling.page import LabelPage
from robo_rl.labelling.queries import (
    OnlineQueries,
    QueryConfig,
    ScriptedLabeller,
    query_before_training,
    sample_segments,
)
from robo_rl.labelling.store import Label, LabelStore, agreement
from robo_rl.learners import PPOConfig, SACConfig
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.rewards import clip, make_reward
from robo_rl.rewards.goal_image import read_pictures
from robo_rl.rewards.learned import SuccessConfig
from robo_rl.scorers.train import KINDS
from robo_rl.vision.episodes import EXPERT, EpisodesConfig, encode_episodes

RNG = np.random.default_rng(0)
Outcome = Callable[..., None]


def unit(*shape: int) -> np.ndarray:
    x = RNG.normal(size=shape)
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


class Rows:
    """An encoder: the mean of each colour is the embedding."""

    name, camera, size, dtype_name = "pixels", "front", (8, 8), "float32"
    asked = 0

    def encode(self, frames: np.ndarray) -> np.ndarray:
        self.asked += len(frames)
        x = frames.mean(axis=(1, 2), dtype=np.float32)
        return x / np.linalg.norm(x, axis=1, keepdims=True)


@given(
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8),
    st.integers(1, 4),
)
def test_score_context_uses_earlier_frames_of_the_same_env(valid, context) -> None:
    valid = np.array(valid)
    entries = [tuple(entry) for entry in np.argwhere(valid)]
    found = frame_histories(valid, context)
    assert found.shape == (len(entries), context)
    for (step, column), row in zip(entries, found, strict=True):
        own = [entry for entry in entries if entry[1] == column and entry[0] <= step]
        wanted = [own[max(len(own) - 1 - back, 0)] for back in range(context)]
        assert [entries[i] for i in row] == wanted


# Goal pictures.
def test_goal_image_uses_the_nearest_image_and_vip_distance() -> None:
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


def test_goal_pictures_show_the_goal_and_their_source(pictures: Path, tmp_path: Path) -> None:
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


def test_goal_image_rewards_similar_frames(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clip, "SCALED_ON", 256)
    env = sims.make("reach", 8, seed=3, goal="touch_red_cube")
    goal = read_goal(env.task, "touch_red_cube")
    made = make_reward(f"goal-image:{pictures}", goal, env)
    assert "6 goal pictures" in made.sees and "random" in made.sees and made.frames == 256
    shown = cv2.imread(str(pictures / "0000.png"))[None, ..., ::-1]
    rows = made.model.encoder.encode(np.ascontiguousarray(shown))
    assert made.model.raw(rows)[0] == pytest.approx(1.0, abs=1e-3)
    assert made.model.rate(rows, np.zeros((1, 1), int)).reward[0] >= 1.0


def test_invalid_goal_picture_is_a_one_line_error(pictures: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "text.mp4").write_text("no film")
    (tmp_path / "empty").mkdir()
    for file, more, says in (
        ("nowhere.png", [], "goal picture nowhere.png does not exist; make one: robo-rl reward"),
        (tmp_path / "text.png", [], "text.png as a picture"),
        (tmp_path / "text.mp4", [], "cannot read a video"),
        (tmp_path / "empty", [], "holds no .png, .jpg, .jpeg"),
        (pictures, ["--robot", "koch"], "then give --goal-image.encoder embedded:FILE"),
    ):
        asked = ["train", "reach", "--reward", f"goal-image:{file}", *more]
        assert main([*asked, "--runs", str(tmp_path / "runs")]) == 1
        err = capsys.readouterr().err.replace("\n", " ")
        assert err.count("robo-rl: ") == 1 and says in err
    for asked, says in (
        (["--count", "2", "--out", "a.png"], "--out must be FILE.png for one picture"),
        (["--out", str(pictures), "--count", "2"], "exists already"),
        (["--out", "a.png", "--task", "hopper"], "no expert"),
    ):
        assert main(["reward", "picture", *asked]) == 1
        assert says in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


# What is learned from episodes.
DONE, STEPS, DIM = 12, 20, 8
# Of words that say rather the contrary of what episodes do, before anything is learned.
TEXTS = np.eye(DIM, dtype=np.float32)[2:5] + 0.3 * np.eye(DIM, dtype=np.float32)[0]
TEXTS /= np.linalg.norm(TEXTS, axis=1, keepdims=True)
QUICK = HeadConfig(hidden=16, steps=150, batch=64, learning_rate=6e-3)


@pytest.fixture(scope="module")
def quick(training_seed: int) -> HeadConfig:
    return dataclasses.replace(QUICK, seed=training_seed)


@pytest.fixture(scope="module")
def episodes() -> EmbeddedEpisodes:
    """Forty episodes along an arc, every other one of which turns off halfway."""
    rng = np.random.default_rng(4)
    along = np.minimum(np.arange(1, STEPS + 1) / DONE, 1.0)
    angles, holds = [], []
    for number in range(40):
        angle = along if number % 2 else np.minimum(along, 0.5)
        angles.append(angle + 0.01 * rng.normal(size=STEPS))
        holds.append((along >= 1.0) & bool(number % 2))
    angle = np.concatenate(angles)
    rows = np.zeros((len(angle), DIM))
    rows[:, 0], rows[:, 1] = np.cos(angle), np.sin(angle)
    by = tuple("a way" if number % 2 else "a wrong way" for number in range(40))
    number = np.repeat(np.arange(40), STEPS)
    actions = np.repeat([[1.0], [-1.0]] * 20, STEPS, axis=0).astype(np.float32)
    return EmbeddedEpisodes(
        rows.astype(np.float32), number, np.concatenate(holds), angle, by, actions
    )


def test_data_splits_share_no_episode_and_have_both_classes(episodes: EmbeddedEpisodes) -> None:
    parts = split_episodes(episodes, 3)
    assert (np.sum(parts, axis=0) == 1).all()
    for part in parts:
        assert 0 < episodes.met()[part].sum() < part.sum()


def test_training_windows_match_scoring_context() -> None:
    """What a scorer is fitted on and what it scores are put together in one way."""
    span = np.arange(30, 42)
    scored = span[frame_histories(np.ones((12, 1), bool), LAGS[-1] + 1)[:, LAGS]]
    np.testing.assert_array_equal(frame_windows(span, LAGS), scored)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=200),
    st.sampled_from([0.01, 0.05, 0.3]),
)
def test_success_threshold_keeps_the_false_positive_bound(frames, bound: float) -> None:
    chance, holds = (np.array(x) for x in zip(*frames, strict=True))
    chance = (chance / 50).astype(np.float32)
    wrong = (chance >= threshold_within_bound(chance, holds, bound)) & ~holds
    allowed = wilson(int(wrong.sum()), int((~holds).sum()))[1] if wrong.any() else 0.0
    assert allowed <= bound


def test_the_table_of_losses_has_every_kind_of_scorer() -> None:
    assert LOSSES.keys() == KINDS.keys()
    for kind, row in LOSSES.items():
        settings = {f.name for f in dataclasses.fields(row)} - {"texts", "scale", "members"}
        assert settings <= {f.name for f in dataclasses.fields(KINDS[kind])}


def test_average_precision_by_hand() -> None:
    score, positive = np.array([4.0, 3.0, 2.0, 2.0, 1.0]), np.array([1, 0, 1, 0, 1], bool)
    assert average_precision(score, positive) == pytest.approx((1 + 2 / 4 + 3 / 5) / 3)


def test_success_needs_consecutive_positive_frames(
    episodes: EmbeddedEpisodes, quick: HeadConfig, outcome: Outcome
) -> None:
    [head], figures = fit_head(SuccessLoss(bound=0.05), episodes, quick)
    outcome("AUC of success", figures["auc"], above=0.8)
    outcome("share of successes found", figures["found"]["share"], above=0.5)
    outcome("share of false positives", figures["false_positives"]["share"], below=0.3)
    assert set(figures["false_positives_by"]) == {"a way", "a wrong way"}
    model = SuccessClassifier(Rows(), head, figures["threshold"], 2)
    span = episodes.spans()[1]
    rated = model.rate(episodes.rows[span], frame_windows(np.arange(STEPS), (0, 1)))
    probability = rated.components["probability"]
    outcome("probability, end minus start", probability[-1] - probability[0], above=0.5)
    sure = probability >= figures["threshold"]
    np.testing.assert_array_equal(rated.reward[1:], (sure[1:] & sure[:-1]).astype(np.float32))
    strict = fit_head(SuccessLoss(bound=0.05, each=True), episodes, quick)[1]
    assert strict["threshold"] >= figures["threshold"]
    again = evaluate_classifier(head, figures["threshold"], 2, episodes, quick.seed)
    assert again == {name: figures[name] for name in again}
    careless = evaluate_classifier(head, 0.0, 2, episodes, quick.seed)
    assert careless["false_positives"]["share"] == 1.0
    no_success = dataclasses.replace(episodes, holds=np.zeros_like(episodes.holds))
    with pytest.raises(ValueError, match="no frame in which the goal is met: give more"):
        fit_head(SuccessLoss(), no_success, quick)
    with pytest.raises(ValueError, match="0 meet the goal at their end: too few"):
        fit_head(ProgressLoss(), no_success, quick)


def ends(model: Progress | Critic, episodes: EmbeddedEpisodes) -> tuple[np.ndarray, np.ndarray]:
    """Rewards of an episode that meets the goal, and of one that does not."""
    before = frame_histories(np.ones((STEPS, 1), bool), 9)
    good, bad = (model.rate(episodes.rows[episodes.spans()[n]], before).reward for n in (1, 2))
    return good, bad


def in_order(figures: dict[str, Any], outcome: Outcome) -> None:
    """What is fitted rises along demonstrations, falls backwards, and tells their ends."""
    outcome("order", figures["order"], above=0.6)
    outcome("order backwards", figures["order_backwards"], below=-0.6)
    outcome("AUC of the end", figures["auc_of_the_end"], above=0.8)


def test_progress_rises_falls_in_reverse_and_stops_on_failure(
    episodes: EmbeddedEpisodes, quick: HeadConfig, outcome: Outcome
) -> None:
    [head], figures = fit_head(ProgressLoss(), episodes, quick)
    in_order(figures, outcome)
    good, bad = ends(Progress(Rows(), head), episodes)
    outcome("progress of a success", good[-1], above=0.7)
    outcome("progress of a failure", bad[-1], below=0.4)


def test_rewound_demonstrations_mirror_progress(episodes: EmbeddedEpisodes) -> None:
    plain, rewound = (progress_targets(episodes, n, np.random.default_rng(0)) for n in (0, 3))
    demonstrations = int(episodes.met().sum())
    assert len(plain.target) == len(episodes.rows)
    assert len(rewound.target) > len(plain.target) + 3 * demonstrations
    assert not plain.target[~episodes.met()[plain.episode]].any()
    # Whatever way led to a frame, it is worth the same.
    worth = dict(zip(plain.frames[:, 0], plain.target, strict=True))
    assert [worth[frame] for frame in rewound.frames[:, 0]] == rewound.target.tolist()
    # Backwards: the frame four steps ago is one that lies further along.
    assert (rewound.frames[:, 1] > rewound.frames[:, 0]).any()
    assert (plain.frames[:, 1] <= plain.frames[:, 0]).all()


def test_critic_separates_ends_and_keeps_temporal_order(
    episodes: EmbeddedEpisodes, quick: HeadConfig, outcome: Outcome
) -> None:
    [head], figures = fit_head(CriticLoss(), episodes, quick)
    in_order(figures, outcome)
    good, bad = ends(Critic(Rows(), head, figures["low"], figures["high"]), episodes)
    outcome("value of a success", good[-1], above=0.7)
    outcome("value of a success minus of a failure", good[-1] - bad[-1], above=0.3)
    assert good.min() >= 0.0 and good.max() <= 1.0
    # A way that comes back to where it began: its end alone tells nothing of its order.
    round_ = 5.5 * np.arctan2(episodes.rows[:, 1], episodes.rows[:, 0])
    rows = np.zeros_like(episodes.rows)
    rows[:, 0], rows[:, 1] = np.cos(round_), np.sin(round_)
    back = dataclasses.replace(episodes, rows=rows)
    ranked, loose = (fit_head(CriticLoss(ranking=r), back, quick)[1]["order"] for r in (33.0, 0.0))
    outcome("order with the ranking loss", ranked, above=0.6)
    outcome("order, more than without the ranking loss", ranked - loose, above=0.6)
    no_success = dataclasses.replace(episodes, holds=np.zeros_like(episodes.holds))
    with pytest.raises(ValueError, match="0 meet the goal at their end: successes and failures"):
        fit_head(CriticLoss(), no_success, quick)


def test_value_rises_for_its_sentence_only(
    episodes: EmbeddedEpisodes, quick: HeadConfig, outcome: Outcome
) -> None:
    texts = TEXTS
    heads, figures = fit_head(ValueLoss(texts, 20.0), episodes, quick)
    in_order(figures, outcome)
    assert figures["likeness"]["auc_of_the_end"] < 0.5  # of the encoder alone
    last = episodes.rows[[span[-1] for span in episodes.spans()]]
    met, scale = episodes.met(), (figures["low"], figures["high"])
    own, *others = (Value(Rows(), Likeness(*heads, texts[[i]], 20.0), *scale) for i in range(3))
    good, bad = (own.rate(last[part], np.zeros((20, 1), int)).reward for part in (met, ~met))
    outcome("least value of a success", good.min(), above=0.6)
    outcome("value of successes minus of failures", good.mean() - bad.mean(), above=0.3)
    # What rises is the likeness to this sentence alone, where the others are held against it.
    most = max(other.rate(last[met], np.zeros((20, 1), int)).reward.max() for other in others)
    outcome("value, more than for another sentence", good.min() - most, above=0.2)
    loose = fit_head(ValueLoss(texts, 20.0, inverse=0.0, contrast=0.0), episodes, quick)[1]
    outcome("order without the other losses", loose["order"], above=0.6)
    no_success = dataclasses.replace(episodes, holds=np.zeros_like(episodes.holds))
    with pytest.raises(ValueError, match="0 meet the goal at their end: successes and failures"):
        fit_head(ValueLoss(texts, 20.0), no_success, quick)


@pytest.mark.parametrize("loss", [CriticLoss(), ValueLoss(TEXTS, 20.0)], ids=["critic", "value"])
def test_rated_episode_ends_are_training_data(episodes: EmbeddedEpisodes, loss: ScorerLoss) -> None:
    """As ends of this goal, or of none; and they are no demonstrations."""

    more = unit(40, DIM)

    def rated(best: int) -> np.ndarray:
        beside = episodes.beside(more, np.arange(40) % 5 == best, ["Ann"] * 40)
        heads, figures = fit_head(loss, beside, dataclasses.replace(QUICK, steps=50))
        json.dumps(figures, allow_nan=False)
        return heads[0].net[-1].weight.detach().numpy()

    assert not np.allclose(rated(0), rated(3))
    no_success = dataclasses.replace(episodes, holds=np.zeros_like(episodes.holds))
    with pytest.raises(ValueError, match="0 meet the goal at their end: successes and failures"):
        fit_head(loss, no_success.beside(more, np.arange(40) % 2 == 0, ["Ann"] * 40), QUICK)


def test_value_starts_as_the_encoder_similarity(episodes: EmbeddedEpisodes) -> None:
    still = dataclasses.replace(QUICK, steps=1, learning_rate=1e-12)
    texts = unit(2, DIM)
    heads, _ = fit_head(ValueLoss(texts, 20.0), episodes, still)
    found = Likeness(*heads, texts[:1], 20.0).values(episodes.rows[:, None])
    np.testing.assert_allclose(found, 20.0 * episodes.rows @ texts[0], atol=1e-4)


def test_training_episodes_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path))
    task, few = sims.make_task("reach", goal="touch_red_cube"), {"lost": 2, "random": 2}
    encoder, config = Rows(), EpisodesConfig(demonstrations=2, **few)
    made_, again = encode_episodes(task, encoder, config), encode_episodes(task, encoder, config)
    assert encoder.asked == 6 * 50  # the second time none was
    np.testing.assert_array_equal(made_.seen.rows, again.seen.rows)
    assert made_.seen.by == again.seen.by and made_.seen.by[:2] == (EXPERT, EXPERT)
    assert made_.seen.met()[:2].all() and not made_.seen.met()[4:].any()
    # Each frame is what its action made of the one before it.
    env, seen = sims.BatchEnv(task, 1), made_.seen
    env.reset()
    for entry in (1, 30, 299):
        env.set_state(made_.states[[entry - 1]])
        env.step(seen.actions[[entry]])
        np.testing.assert_allclose(env.state()[0], made_.states[entry], atol=1e-4)
    frames = made_.frames(task, encoder, np.array([7, 3]))
    np.testing.assert_array_equal(Rows().encode(frames), made_.seen.rows[[7, 3]])
    encode_episodes(task, encoder, EpisodesConfig(demonstrations=2, seed=1, **few))
    assert encoder.asked == 2 * 6 * 50
    with pytest.raises(ValueError, match="no episode source selected"):
        encode_episodes(task, encoder, EpisodesConfig(demonstrations=0, lost=0, random=0))


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory, training_seed: int) -> Path:
    """A classifier of the red cube touched, from a dozen episodes."""
    folder = tmp_path_factory.mktemp("scorer")
    few = ["--watch.demonstrations", "6", "--watch.lost", "0", "--watch.random", "6"]
    quickly = ["--head.steps", "100", "--head.learning-rate", "3e-3"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROBO_RL_CACHE", str(folder / "cache"))
        out = folder / "success.safetensors"
        asked = ["reward", "train", "success", "--goal", "touch_red_cube", *few, "--out", str(out)]
        assert main([*asked, *quickly, "--head.seed", str(training_seed)]) == 0
    _, card, _ = load_scorer(out, "success")
    card |= {"kind": "progress", "frames": len(LAGS)}
    save_scorer(
        folder / "progress.safetensors", [untrained_head(HeadConfig(), card["dim"], 3)], card
    )
    card |= {"kind": "critic", "figures": {"low": -1.0, "high": 1.0}}
    save_scorer(folder / "critic.safetensors", [untrained_head(HeadConfig(), card["dim"], 3)], card)
    card |= {"kind": "value", "frames": 1, "outputs": card["dim"], "heads": 2}
    both = [untrained_head(HeadConfig(), card["dim"], outputs=card["dim"]) for _ in range(2)]
    save_scorer(folder / "value.safetensors", both, card)
    return out


def test_card_has_none_for_missing_measurements(episodes: EmbeddedEpisodes) -> None:
    """Where no demonstration is long enough to be judged: JSON has no nan."""
    head = untrained_head(QUICK, DIM, len(LAGS))
    none = dataclasses.replace(episodes, holds=np.zeros_like(episodes.holds))
    figures = progress_figures(head, none, np.ones(none.count, bool))
    assert figures["order"] is None and figures["auc_of_the_end"] is None
    json.dumps(figures, allow_nan=False)


def test_scorer_card_names_its_training_episodes(scorer: Path, outcome: Outcome) -> None:
    _, card, _ = load_scorer(scorer, "success")
    assert card == json.loads(scorer.with_suffix(".json").read_text())
    assert "6 episodes of the task's expert" in card["learned_from"]
    assert card["versions"]["mujoco"]
    assert card["scene"]["truth"] == "touch_red_cube"
    outcome("AUC of success", card["figures"]["auc"], above=0.6)
    env = sims.make("reach", 4, seed=0, goal="touch_red_cube")
    goal = read_goal(env.task, "touch_red_cube")
    for kind in ("success", "progress", "critic", "value"):
        made_ = make_reward(f"{kind}:{scorer.with_stem(kind)}", goal, env)
        assert "the task's expert" in made_.sees and made_.camera == "front"


def test_scorer_for_another_scene_or_goal_is_refused(scorer: Path, tmp_path: Path, capsys) -> None:
    heads, card, _ = load_scorer(scorer, "success")
    other = tmp_path / "other.safetensors"
    save_scorer(other, heads, card | {"encoder": "embedded-0123456789ab"})
    (tmp_path / "no.safetensors").write_bytes(b"no scorer")
    sizes = tmp_path / "sizes.safetensors"
    save_scorer(sizes, [untrained_head(QUICK, 4)], card)
    shutil.copy(scorer, tmp_path / "progress.safetensors")
    for reward, more, says in (
        (
            "success:nowhere",
            [],
            "scorer nowhere does not exist; train one: robo-rl reward train success",
        ),
        (f"success:{tmp_path / 'no.safetensors'}", [], "is not a scorer"),
        (f"success:{sizes}", [], "is not a scorer"),
        (f"progress:{tmp_path / 'progress.safetensors'}", [], "kind success, not progress"),
        (f"success:{other}", [], "reads embeddings of embedded-0123456789ab, --success.encoder"),
        (f"success:{scorer}", ["--robot", "ur5e"], "--task reach --robot ur5e --goal touch_red"),
        (f"success:{scorer}", ["--goal", "touch the blue ball"], "got touch_blue_ball in"),
    ):
        asked = ["train", "reach", "--reward", reward, *more, "--runs", str(tmp_path / "runs")]
        assert main(asked) == 1
        err = capsys.readouterr().err.replace("\n", " ")
        assert err.count("robo-rl: ") == 1 and says in err, err
    for asked, says in (
        (["succes"], "unknown kind of scorer 'succes'; available: clip, success"),
        (["success", "--out", "a.pt"], "must be a .safetensors file"),
        (["success", "--out", "a.safetensors", "--goal", "sing"], "sing"),
        (["success", "--out", "a.safetensors", "--robot", "koch"], "--encoder embedded:FILE"),
        (["success", "--out", "a.safetensors", "--task", "hopper"], "knows no other scene"),
    ):
        assert main(["reward", "train", *asked]) == 1
        assert says in capsys.readouterr().err.replace("\n", " ")


def test_elsewhere_option_allows_another_scene(scorer: Path, tmp_path: Path, capsys) -> None:
    """A classifier of the cube touched in reach, on push, which has the same scene."""
    task, goal = judged_goal(sims.make_task("push"), "the gripper touches the red cube")
    env = sims.BatchEnv(task, 1)
    with pytest.raises(ValueError, match=r"use it anyway: --success.elsewhere \(of reward report"):
        make_reward(f"success:{scorer}", goal, env)
    settings = SuccessConfig(elsewhere=True)
    made_ = make_reward(f"success:{scorer}", goal, env, settings)
    assert made_.camera == "front" and made_.sees.endswith("reach with the so101")
    abroad = sims.make("reach", 1, robot="koch", goal="touch_red_cube")
    with pytest.raises(ValueError, match="knows no other scene; here is reach with the koch"):
        make_reward(f"success:{scorer}", read_goal(abroad.task, "touch_red_cube"), abroad, settings)
    out = tmp_path / "report.json"
    judge = ["reward", "report", f"success:{scorer}", "--task", "push", "--goal", goal.text]
    few = ["--episodes", "16", "--bootstrap-samples", "16", "--out", str(out)]
    assert main([*judge, *few]) == 1
    assert "--elsewhere" in capsys.readouterr().err
    assert main([*judge, *few, "--elsewhere"]) == 0
    told = json.loads(out.read_text())
    row = told["rewards"][f"success:{scorer}"]
    assert told["task"] == "push" and row["threshold"]["own"] and row["frames"] > 500
    assert "AUC of its probability" in capsys.readouterr().out and "auc" in row["calibration"]


# Preferences.
BRIEF = HeadConfig(hidden=8, steps=50, batch=16)
FEW = HeadConfig(hidden=16, steps=150, batch=64, learning_rate=6e-3)


def test_scripted_labeller_errs_at_its_noise_rate() -> None:
    first, second = np.random.default_rng(0).random((2, 4000, 3))
    right = first.mean(axis=1) > second.mean(axis=1)
    answer = ScriptedLabeller(0.2, 0.0, np.random.default_rng(1)).ask(first, second)
    assert 0.18 < np.mean((answer == 1.0) != right) < 0.22
    tied = ScriptedLabeller(0.0, 0.1, np.random.default_rng(1)).ask(first, second)
    near = np.abs(first.mean(axis=1) - second.mean(axis=1)) <= 0.1
    np.testing.assert_array_equal(tied == 0.5, near)
    assert "20 %" in str(ScriptedLabeller(0.2, 0.0, np.random.default_rng(1)))


@given(st.integers(1, 6), st.integers(0, 9))
def test_segments_lie_within_an_episode(length: int, seed: int) -> None:
    episode = np.repeat(np.arange(5), 6)
    found = sample_segments(episode, length, 20, np.random.default_rng(seed))
    assert found.shape == (20, length) and (np.diff(found, axis=1) == 1).all()
    assert (episode[found] == episode[found[:, :1]]).all()
    with pytest.raises(ValueError, match="no episode has the 7 frames"):
        sample_segments(episode, 7, 1, np.random.default_rng(0))


@pytest.mark.parametrize("form", ["pair", "rating"])
def test_preferences_of_a_noisy_labeller_are_learned(
    episodes: EmbeddedEpisodes, form: str, training_seed: int, outcome: Outcome
) -> None:
    oracle = ScriptedLabeller(0.2, 0.0, np.random.default_rng(2))
    told: list[np.ndarray] = []
    config = QueryConfig(answers=120, a_time=60, length=3, form=form)
    few = dataclasses.replace(FEW, seed=training_seed)
    _, pairs, figures = query_before_training(
        episodes, oracle, config, few, report=lambda asked, answer: told.append(asked[0])
    )
    outcome("order by worth", figures["order_by_worth"], above=0.6)
    assert figures["answers"] == sum(map(len, told)) == 120
    if form == "rating":
        assert len(pairs) == figures["pairs"] > 400
    else:
        assert len(pairs) == 120
    judging = split_episodes(episodes, few.seed)[2]
    assert not judging[episodes.episode[np.concatenate(told)]].any()
    with pytest.raises(ValueError, match="no preference labels to fit"):
        query_before_training(episodes, None, config, few)


def test_scripted_labeller_ratings_follow_the_reward(episodes: EmbeddedEpisodes) -> None:
    every = np.arange(len(episodes.rows))[:, None]
    noisy, clear = (
        ScriptedLabeller(error, 0.0, np.random.default_rng(2)).ratings(episodes, every)
        for error in (0.2, 0.0)
    )
    assert set(clear) == set(noisy) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert (np.diff(clear[np.argsort(episodes.worth)]) >= 0).all()


@given(st.lists(st.integers(1, 5), max_size=40))
def test_ratings_become_preference_pairs(rating: list[int]) -> None:
    films = np.arange(len(rating), dtype=np.float32)[:, None, None]
    pairs = pairs_from_ratings(films, np.array(rating), 0)
    one, two = (side[:, 0, 0].astype(int) for side in (pairs.first, pairs.second))
    assert [rating[i] > rating[j] for i, j in zip(one, two, strict=True)] == pairs.answer.tolist()
    assert all(rating[i] != rating[j] for i, j in zip(one, two, strict=True))
    # A film that two people rated is one: it is not held against itself, nor fitted on and held.
    twice = pairs_from_ratings(
        np.concatenate([films, films]), np.array([*rating, *rating[::-1]]), 0
    )
    for found in (pairs, twice, twice + pairs.__class__(films, films, np.ones(len(films)))):
        own = found.turn >= 0
        one, two = (side[own][:, 0, 0].astype(int) for side in (found.first, found.second))
        assert (one != two).all()
        held = {*one[found.held[own]], *two[found.held[own]]}
        assert held.isdisjoint({*one[~found.held[own]], *two[~found.held[own]]})


@given(st.lists(st.integers(1, 7), min_size=1, max_size=30))
def test_one_preference_pair_in_five_is_held_out(counts: list[int]) -> None:
    row = np.zeros((1, 1, 2), np.float32)
    parts = [
        PreferencePairs(np.repeat(row, n, 0), np.repeat(row, n, 0), np.ones(n)) for n in counts
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    np.testing.assert_array_equal(whole.held, np.arange(sum(counts)) % 5 == 0)


def test_active_queries_choose_ensemble_disagreement() -> None:
    heads = [untrained_head(FEW, DIM, member=m) for m in range(3)]
    first, second = unit(50, 2, DIM), unit(50, 2, DIM)
    spread = preference_probabilities(heads, first, second).std(axis=0)
    found = most_disputed(heads, first, second, 5)
    assert spread[found].min() >= np.sort(spread)[-5]


def small(config, goal: str = "touch_red_cube") -> tuple[Learner, Preferences]:
    sim = sims.make("reach", config.num_envs, seed=0, goal=goal)
    model = Preferences(Rows(), [untrained_head(BRIEF, 3, member=m) for m in range(2)])
    return make_learner(config, sim, model), model


def asking(model: Preferences) -> OnlineQueries:
    rng = np.random.default_rng(5)
    pairs = PreferencePairs(unit(20, 2, 3), unit(20, 2, 3), rng.integers(0, 2, 20).astype(float))
    env = sims.make("reach", 2, seed=1, goal="touch_red_cube")
    return OnlineQueries(model, env, pairs, ScriptedLabeller(0.2, 0.0, rng), BRIEF, 8, 1, 4)


def test_preference_refit_relabels_the_replay_buffer(coarse_obs_scale: None) -> None:
    config = SACConfig(
        num_envs=2, buffer_size=400, learning_starts=8, batch_size=8, net=(8,), gradient_steps=1
    )
    learner, model = small(config)
    hook = asking(model)
    hook.start(learner)
    learner.algorithm.learn(24)
    buffer = learner.buffer
    buffer.score_pending()
    before = buffer.rewards[: buffer.size()].copy()
    hook.row({})
    assert model.version == 1 and hook.asked == 4 and len(hook.pairs) == 24
    assert (buffer.version[: buffer.size()] == 1).all()
    assert not np.allclose(buffer.rewards[: buffer.size()], before)
    hook.row({})
    hook.row({})
    assert hook.asked == 8 and model.version == 2  # no more than it may


def test_online_queries_resume_identically() -> None:
    learner, model = small(PPOConfig(num_envs=2, n_steps=16, minibatches=2))
    hook = asking(model)
    hook.start(learner)
    hook.row({})
    saved = {name: np.array(array) for name, array in hook.state_dict().items()}
    weights = {name: np.array(array) for name, array in model.state_dict().items()}
    hook.row({})
    other, again = small(PPOConfig(num_envs=2, n_steps=16, minibatches=2))
    restored = asking(again)
    restored.start(other)
    restored.load_state_dict(saved)
    again.load_state_dict(weights)
    assert again.version == 1
    restored.row({})
    for name, array in vars(hook.pairs).items():
        np.testing.assert_array_equal(vars(restored.pairs)[name], array)
    rows, before = unit(9, 3), np.zeros((9, 1), int)
    np.testing.assert_array_equal(again.rate(rows, before).reward, model.rate(rows, before).reward)


# Labels on disk.
def answer(store: LabelStore, said: str, by: str, shade: int = 0) -> None:
    frames = np.full((2, 4, 4, 3), shade, np.uint8)
    frames[1, 0, 0] = 9
    store.append(Label(store.keep(frames), store.keep(frames[::-1]), "go", "here", said, by))


def test_label_store_survives_a_truncated_line(tmp_path: Path) -> None:
    store = LabelStore(tmp_path / "labels")
    answer(store, "first", "Ann")
    with store.path.open("ab") as file:
        file.write(b'{"first": ["half')
    assert len(store.read()) == 1
    answer(store, "skip", "Ann", 1)
    assert [a.said for a in LabelStore(store.folder).read()] == ["first", "skip"]
    first = store.read()[0]
    assert (
        store.frames(first.first).shape == (2, 4, 4, 3) and store.frames(first.first)[1].max() == 9
    )
    assert len(list((store.folder / "frames").iterdir())) == 4  # each content once
    (store.folder / "frames" / f"{first.first[0]}.png").unlink()
    with pytest.raises(ValueError, match="lacks frame"):
        store.frames(first.first)
    with store.path.open("ab") as file:
        file.write(b'{"said": "perhaps"}\n')
    with pytest.raises(ValueError, match="line 3 is not a label"):
        store.read()


def test_labeller_agreement_counts_shared_questions(tmp_path: Path) -> None:
    store = LabelStore(tmp_path)
    for said, by, shade in (
        ("first", "Ann", 0),
        ("first", "Ben", 0),
        ("tie", "Cas", 0),
        ("second", "Ann", 1),
        ("skip", "Ben", 1),
    ):
        answer(store, said, by, shade)
    assert agreement(store) == (1, 3)


def test_terminal_labels_train_preferences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path / "cache"))
    store, asked = (
        tmp_path / "labels",
        ["reward", "label", str(tmp_path / "labels"), "--labeller", "Ann"],
    )

    def typing(*keys: str) -> None:
        typed = iter(keys)
        monkeypatch.setattr("builtins.input", lambda prompt: next(typed))

    typing("1", "what", "2", "q")
    assert main([*asked, "--questions", "12", "--length", "2"]) == 0
    assert "got 'what'" in capsys.readouterr().out
    assert [a.said for a in LabelStore(store).read() if a.said] == ["first", "second"]
    typing(*"12t1212121")  # the ten that are left; none is asked for twice
    assert main(asked) == 0
    assert cv2.imread(str(store / "asked.png")) is not None
    assert "12 answers" in capsys.readouterr().out
    few = ["--watch.random", "4", "--watch.random-starts", "0", "--head.steps", "50"]
    out, teach = tmp_path / "asked.safetensors", ["reward", "train", "preferences", *few]
    given = ["--store", str(store), "--ask.answers", "14", "--ask.length", "2", "--out", str(out)]
    assert main([*teach, *given]) == 0
    _, card, kept = load_scorer(out, "preferences", ("answer",))
    assert "12 answers of Ann; 2 answers of a scripted oracle" in card["learned_from"]
    assert sorted(set(kept["answer"].tolist())) == [0.0, 0.5, 1.0]
    assert len([a for a in LabelStore(store).read() if a.said]) == 14
    env = sims.make("reach", 4, seed=0, goal="touch_red_cube")
    goal = read_goal(env.task, "touch_red_cube")
    made_ = make_reward(f"preferences:{out}", goal, env)
    assert "12 answers of Ann" in made_.sees and made_.asks is None
    capsys.readouterr()
    assert main([*teach, *given]) == 1
    assert "asked.safetensors exists already; give a new one" in capsys.readouterr().err
    again = tmp_path / "again.safetensors"
    assert main([*teach, "--store", str(store), "--out", str(again)]) == 1
    assert "segments of 2 frames, got --ask.length 4" in capsys.readouterr().err


def test_ratings_train_preferences_and_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path / "cache"))
    store = tmp_path / "labels"
    typed = iter("7" + "12345s" * 3)
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    asked = ["reward", "label", str(store), "--ask", "rating", "--labeller", "Ann"]
    assert main([*asked, "--questions", "18", "--length", "2"]) == 0
    out = capsys.readouterr().out
    assert "from 1 (nothing done) to 5 (met)" in out and "got '7'; expected one of 1, 2, 3" in out
    said = [a for a in LabelStore(store).read() if a.said]
    assert [a.said for a in said] == ["1", "2", "3", "4", "5", "skip"] * 3
    assert not any(a.second for a in said)
    few = ["--watch.random", "4", "--head.steps", "50", "--store", str(store)]
    teach = ["reward", "train", "preferences", *few, "--watch.random-starts", "0"]
    more = ["--ask.length", "2", "--ask.form", "rating", "--ask.answers", "19"]
    assert main([*teach, *more, "--out", str(tmp_path / "p.safetensors")]) == 0
    card = json.loads((tmp_path / "p.json").read_text())
    assert "15 answers of Ann; 4 answers of a scripted oracle" in card["learned_from"]
    assert len([a for a in LabelStore(store).read() if a.by.startswith("a scripted")]) == 4
    for kind in ("success", "progress", "critic", "value"):
        out = tmp_path / f"{kind}.safetensors"
        teach = ["reward", "train", kind, *few, "--watch.lost", "0", "--out", str(out)]
        assert main([*teach, "--watch.demonstrations", "14", "--goal", "touch_red_cube"]) == 0
        card = json.loads(out.with_suffix(".json").read_text())
        # The oracle's are left out: its most is the best of what there was, met or not.
        assert "15 episodes of Ann (3 meet the goal)" in card["learned_from"]
        assert "oracle" not in card["learned_from"]
        json.dumps(card["figures"], allow_nan=False)
    (store / "labels.jsonl").write_text(
        json.dumps(dataclasses.asdict(dataclasses.replace(said[0], said="first"))) + "\n"
    )
    with pytest.raises(ValueError, match="said must be 1, 2, .*, no answer, got 'first'"):
        LabelStore(store).read()


def test_label_page_stores_each_answer_before_the_next(tmp_path: Path) -> None:
    store, rng = LabelStore(tmp_path / "labels"), np.random.default_rng(0)
    names = [store.keep(rng.integers(0, 255, (2, 8, 8, 3), dtype=np.uint8)) for _ in range(4)]
    asked = [Label(names[i], names[i + 1], "</script><b>", "reach") for i in range(3)]
    kept: list[tuple[Label, str]] = []
    with LabelPage(asked, store, "which is nearer to: </script><b>?", PAIR_KEYS) as page:

        def reply(number: int, said: str, at: str = "answer") -> int:
            data = json.dumps({"question": number, "said": said}).encode()
            try:
                return urlopen(page.url + at, data, timeout=10).status
            except HTTPError as error:
                return error.code

        shown = urlopen(page.url).read().decode()
        assert "</script><b>" not in shown and names[3][1] in shown
        assert urlopen(f"{page.url}frames/{names[0][0]}.png").read()[1:4] == b"PNG"
        for path in ("x", "frames/../labels.jsonl", f"frames/{'0' * 20}.png"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(page.url + path)
        stranger = page.url.rsplit("/", 2)[0] + "/"
        with pytest.raises(HTTPError, match="404"):
            urlopen(stranger + "answer", b"{}")
        assert page.url.startswith("http://127.0.0.1:")
        for number, said in (
            (0, "5"),
            (3, "first"),
            (-1, "first"),
            (0, ""),
            (1e999, "tie"),
            (0.9, "tie"),
        ):
            assert reply(number, said) == 400
        replies = ThreadPoolExecutor(4)
        first = replies.submit(reply, 1, "tie")
        answers = page.answers()
        kept.append(next(answers))
        time.sleep(0.3)
        assert not first.done()  # it is not on the disk yet
        twice, last, other = (
            replies.submit(reply, *told) for told in ((1, "first"), (2, "skip"), (0, "second"))
        )
        kept += answers
        assert [f.result() for f in (first, twice, last, other)] == [200, 409, 200, 200]
        shown = urlopen(page.url).read().decode()
        assert names[3][1] not in shown  # who loads it anew is asked what is left
    assert {a.question: said for a, said in kept} == {
        q.question: said for q, said in zip(asked, ("second", "tie", "skip"), strict=True)
    }


def test_vlm_preferences_train_a_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    out, store = tmp_path / "asked.safetensors", tmp_path / "labels"
    few = ["--watch.random", "4", "--watch.random-starts", "0", "--head.steps", "50"]
    teach = ["reward", "train", "preferences", "--goal", "touch_red_cube", *few, "--out", str(out)]
    shy = iter(range(1000))

    def sometimes(request: dict[str, Any]) -> str:
        if "Two short films" in words(request) and next(shy) % 4 == 3:
            return "ANSWER: unsure"
        return seeing(request)

    monkeypatch.setenv("ROBO_TEST_KEY", "sk-test-THE-SECRET-1234")
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path / "cache"))
    with OpenAIServer(sometimes) as server:
        wire = ["--model.base-url", server.url, "--model.key-variable", "ROBO_TEST_KEY"]
        by = ["--ask.labeller", "vlm:test", *wire, "--ask.length", "2", "--store", str(store)]
        assert main([*teach, *by, "--ask.answers", "16"]) == 0
        card = json.loads(out.with_suffix(".json").read_text())
        assert "12 answers of vlm:test; about" in card["learned_from"]
        assert card["figures"]["asked"]["skip"] == 4 and len(server.requests) == 32
        assert len([a for a in LabelStore(store).read() if a.by == "vlm:test"]) == 16
        assert LabelStore(store).frames(LabelStore(store).read()[0].first).shape[1] == 288
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 40 and not any(b"THE-SECRET" in content for content in files)
    with pytest.raises(ValueError, match="unknown labeller 'someone'; available: oracle, vlm"):
        QueryConfig(labeller="someone")


class Shy:
    """Answers every other question, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def answers(self, seen: EmbeddedEpisodes, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        self.asked += [pair.tobytes() for pair in np.stack([first, second], axis=1)]
        gap = seen.worth[first].mean(axis=1) - seen.worth[second].mean(axis=1)
        return np.where(np.arange(len(gap)) % 2, (gap > 0).astype(float), np.nan)


def test_skipped_answers_are_unused_and_no_question_repeats(episodes: EmbeddedEpisodes) -> None:
    oracle, config = Shy(), QueryConfig(answers=60, a_time=30, length=3, active=False)
    _, pairs, figures = query_before_training(episodes, oracle, config, BRIEF)
    assert len(oracle.asked) == 60 and figures["answers"] == len(pairs) == 30
    before = set(oracle.asked)
    _, more, _ = query_before_training(
        episodes, oracle, config, BRIEF, pairs, len(pairs)
    )  # as from a store
    assert len(more) == 45 and len(oracle.asked) == 90
    assert not before & set(oracle.asked[60:])
