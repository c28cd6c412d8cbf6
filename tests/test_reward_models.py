"""CLIP scores, distillation and mixing: formulas, and the contract every reward model keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reward_models.analysis.metrics import auc, spearman, wilson
from reward_models.base import (
    CardSignal,
    EpisodePosition,
    RewardModel,
    RewardOutput,
    Segment,
    TaskCard,
    positions_from_start,
)
from reward_models.scorers.constant import Constant
from reward_models.scorers.critic import Critic
from reward_models.scorers.goal_image import GoalImage
from reward_models.scorers.heads import untrained_head
from reward_models.scorers.preferences import Preferences
from reward_models.scorers.progress import LAGS, Progress
from reward_models.scorers.success import SuccessClassifier
from reward_models.scorers.value import Likeness, Value
from reward_models.vision.clip_score import (
    FORMULAS,
    Caption,
    ClipScore,
    Formula,
    FrameEmbedder,
    SurrogateEmbedder,
    compose,
    goal_baseline,
    plan_maximum,
    reward_in_sequence,
)
from reward_models.vision.config import DistillConfig, HeadConfig
from reward_models.vision.distillation import Surrogate
from reward_models.vision.graded_captions import expressions
from reward_models.vision.multi_view import MultiViewReward
from robo_rl.rewards import REWARDS

RNG = np.random.default_rng(0)
D = 16


def unit(*shape: int) -> np.ndarray:
    x = RNG.normal(size=(*shape, D))
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


class HashEncoder:
    """A real, if meaningless, encoder: embeddings are a fixed projection of pixels and letters."""

    name, camera = "hash", "front"
    projection = np.random.default_rng(1).normal(size=(4 * 4 * 3, D))

    def encode(self, frames: np.ndarray) -> np.ndarray:
        x = frames.reshape(len(frames), len(self.projection)).astype(float) @ self.projection
        return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)

    def encode_texts(self, texts: tuple[str, ...]) -> np.ndarray:
        seeds = [sum(ord(c) * (i + 1) for i, c in enumerate(t)) for t in texts]
        rows = np.stack([np.random.default_rng(s).normal(size=D) for s in seeds])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def segment(t: int = 5, n: int = 4, valid: np.ndarray | None = None) -> Segment:
    rng = np.random.default_rng(t * 100 + n)
    pixels = rng.integers(0, 255, (t + 1, n, 4, 4, 3), dtype=np.uint8)
    return Segment(
        {"x": rng.normal(size=(t + 1, n, 3)), "arm": rng.normal(size=(t + 1, n, 2))},
        lambda camera, where: pixels[where],
        np.zeros((t, n, 2)),
        live := np.ones((t, n), bool) if valid is None else valid,
        positions_from_start(live, np.zeros_like(live)),
    )


def columns(s: Segment, ids: slice) -> Segment:
    frames = s.frames

    def part(camera: str, where: np.ndarray) -> np.ndarray:
        wide = np.zeros((len(s.action) + 1, s.action.shape[1]), bool)
        wide[:, ids] = where
        return frames(camera, wide)

    signals = {k: v[:, ids] for k, v in s.signals.items()}
    place = EpisodePosition(*(array[:, ids] for array in vars(s.place).values()))
    return Segment(signals, part, s.action[:, ids], s.valid[:, ids], place)


CAPTION = Caption("touch it", ("nothing",), ("leave it", "lose it"))
OTHER = Caption("next to it", ("nothing",), ("far from it",), arm_free=True)


def fitted() -> Surrogate:
    surrogate = Surrogate(("x", "arm"), D, DistillConfig(members=2, width=32, steps=30, batch=64))
    surrogate.fit({"x": RNG.normal(size=(200, 3)), "arm": RNG.normal(size=(200, 2))}, unit(200))
    return surrogate


def models() -> dict[str, RewardModel]:
    frame, encoder = FrameEmbedder(HashEncoder()), HashEncoder()
    aside = {"arm": np.zeros(2, np.float32)}
    distilled = SurrogateEmbedder(fitted(), encoder, aside)
    out: dict[str, RewardModel] = {
        f"clip {f}": ClipScore(frame, [[CAPTION]], formula=f) for f in FORMULAS
    }
    second = replace(OTHER, part=1)
    out["distilled in turn"] = ClipScore(distilled, [[CAPTION], [second]])
    out["distilled plan"] = ClipScore(distilled, [[CAPTION], [CAPTION, OTHER]])
    above = HashEncoder()
    above.projection = -above.projection[::-1]  # another camera's pictures
    looks = (ClipScore(look, [[CAPTION], [second]]) for look in (frame, FrameEmbedder(above)))
    out["clip of two cameras"] = MultiViewReward(tuple(looks))
    out["constant"] = Constant()
    for formula in ("cosine", "distance"):
        out[f"goal-image {formula}"] = GoalImage(encoder, unit(3), formula)
    config = HeadConfig(hidden=8)
    for form in ("sparse", "probability"):
        out[f"success {form}"] = SuccessClassifier(encoder, untrained_head(config, D), 0.5, 2, form)
    out["preferences"] = Preferences(
        encoder, [untrained_head(config, D, member=m) for m in range(3)]
    )
    out["progress"] = Progress(encoder, untrained_head(config, D, len(LAGS)))
    out["critic"] = Critic(encoder, untrained_head(config, D, len(LAGS)), -1.0, 1.0)
    both = [untrained_head(config, D, member=m, outputs=D) for m in range(2)]
    likeness = Likeness(*both, encoder.encode_texts(("a",)), 10.0)
    out["value"] = Value(encoder, likeness, -10.0, 10.0)
    samples = {name: kind.sample(encoder) for name, kind in REWARDS.items() if kind.sample}
    return out | samples


MODELS = models()


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> RewardModel:
    return MODELS[request.param]


def check(output: RewardOutput, valid: np.ndarray) -> None:
    assert output.reward.shape == output.scored.shape == valid.shape
    assert output.reward.dtype == np.float32 and np.isfinite(output.reward).all()
    assert not (output.scored & ~valid).any()
    assert not output.reward[~output.scored].any()
    assert all(c.shape == valid.shape for c in output.components.values())


def test_every_frame_reward_is_contract_tested() -> None:
    looking = {name for name, kind in REWARDS.items() if kind.frames}
    assert looking <= {name.split()[0] for name in MODELS}


def test_contract_shape_and_determinism(model: RewardModel) -> None:
    s = segment()
    first, second = model.score(s), model.score(s)
    check(first, s.valid)
    np.testing.assert_array_equal(first.reward, second.reward)
    assert isinstance(model, RewardModel) and model.causal and model.context >= 1


def test_contract_rows_are_independent(model: RewardModel) -> None:
    s = segment(6, 5)
    whole = model.score(s).reward
    parts = [model.score(columns(s, slice(i, i + 1))).reward for i in range(5)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-5)


def test_contract_indifferent_to_masked_content(model: RewardModel) -> None:
    valid = np.ones((5, 4), bool)
    valid[3:, 1] = False
    s = segment(5, 4, valid)
    reward = model.score(s).reward
    other = {k: v.copy() for k, v in s.signals.items()}
    for v in other.values():
        v[4:, 1] = 1e3
    np.testing.assert_array_equal(model.score(replace(s, signals=other)).reward, reward)
    check(model.score(s), valid)


def test_contract_nothing_to_score(model: RewardModel) -> None:
    s = segment(5, 4, np.zeros((5, 4), bool))
    check(output := model.score(s), s.valid)
    assert not output.scored.any()


def test_sequence_part_is_done_once_every_camera_agrees() -> None:
    views, s = MODELS["clip of two cameras"], segment(40, 6)
    models = [ClipScore(of.embedder, of.steps) for of in views.models]
    for model in models:
        model.calibrate(s)
    both, (one, other) = MultiViewReward(models).score(s), (model.score(s) for model in models)
    np.testing.assert_array_equal(both.done, np.minimum(one.done, other.done))
    np.testing.assert_array_equal(both.reward, np.minimum(one.reward, other.reward))
    assert (one.done != other.done).any() and both.done.any() and not both.done.all()


def test_goal_baseline_matches_the_matrix_form() -> None:
    rows, goal, base = unit(50), unit(1)[0], unit(1)[0]
    for alpha in (0.0, 0.3, 1.0):
        d = goal - base
        projection = alpha * np.outer(d, d) / (d @ d) + (1 - alpha) * np.eye(D)
        expected = 1 - 0.5 * np.sum(((rows - goal) @ projection) ** 2, axis=1)
        np.testing.assert_allclose(goal_baseline(rows, goal, base, alpha), expected, atol=1e-5)
    np.testing.assert_allclose(goal_baseline(rows, goal, base, 0.0), rows @ goal, atol=1e-5)


def test_clip_score_formulas_match_hand_values() -> None:
    encoder = HashEncoder()
    rows = unit(7)
    texts = encoder.encode_texts((CAPTION.text, *CAPTION.negatives))
    cosines = rows @ texts.T
    embedder = FrameEmbedder(encoder)
    contrast = ClipScore(embedder, [[CAPTION]], formula="contrast").raw(CAPTION, rows)
    np.testing.assert_allclose(contrast, cosines[:, 0] - cosines[:, 1:].mean(1), atol=1e-6)
    softmax = ClipScore(embedder, [[CAPTION]], formula="softmax", scale=10.0).raw(CAPTION, rows)
    e = np.exp(10 * cosines)
    np.testing.assert_allclose(softmax, e[:, 0] / e.sum(1), rtol=1e-4)


def test_calibration_maps_the_scene_to_zero_and_one() -> None:
    model = ClipScore(FrameEmbedder(HashEncoder()), [[CAPTION]])
    scene = segment(1, 400)
    model.calibrate(scene)
    phi = model.score(scene).components[CAPTION.text]
    assert np.quantile(phi, 0.05) == pytest.approx(0.0, abs=1e-3)
    assert np.quantile(phi, 0.995) == pytest.approx(1.0, abs=1e-2)


def test_arm_free_captions_ignore_the_arm() -> None:
    surrogate = SurrogateEmbedder(fitted(), HashEncoder(), {"arm": np.zeros(2)})
    model = ClipScore(surrogate, [[OTHER]])
    s = segment()
    moved = dict(s.signals) | {"arm": s.signals["arm"] + 5.0}
    np.testing.assert_array_equal(
        model.score(s).reward, model.score(Segment(moved, s.frames, s.action, s.valid)).reward
    )


@pytest.mark.parametrize("formula", FORMULAS)
def test_several_wordings_are_averaged(formula: Formula) -> None:
    encoder, s = HashEncoder(), segment()
    rows = encoder.encode(s.frames("", np.ones((6, 4), bool)))
    several = replace(CAPTION, further=("reach it",), baseline=("nothing", "empty"))
    model = ClipScore(FrameEmbedder(encoder), [[several]], formula=formula, alpha=0.3)

    def mean(*texts: str) -> np.ndarray:
        row = encoder.encode_texts(texts).mean(axis=0)
        return row / np.linalg.norm(row)

    goal, against = mean("touch it", "reach it"), encoder.encode_texts(CAPTION.negatives)
    cosines = rows @ np.stack([goal, *against]).T
    shares = np.exp(100.0 * (cosines - cosines.max(axis=1, keepdims=True)))
    expected = {
        "cosine": cosines[:, 0],
        "goal_baseline": goal_baseline(rows, goal, mean("nothing", "empty"), 0.3),
        "contrast": cosines[:, 0] - cosines[:, 1:].mean(axis=1),
        "softmax": shares[:, 0] / shares.sum(axis=1),
    }
    np.testing.assert_allclose(model.raw(several, rows), expected[formula], atol=1e-5)


def test_clip_term_option_scales_the_reward_by_state() -> None:
    """Of the state after each step, from 0 to 1, and of what was done."""
    s = segment(valid=np.arange(5)[:, None] < np.array([5, 3, 5, 1]))
    s = replace(s, action=np.random.default_rng(1).normal(size=s.action.shape))
    x = CardSignal("x", (3,), "", "", (-9.0, 9.0), "", False)
    card = TaskCard("t", (x,), (), {}, (), 0.1, 1.0, act_dim=2)
    term = expressions(["1.2 * exp(-norm(x)) - 0.1 * norm(action)"], card, step=True)
    plain = ClipScore(FrameEmbedder(HashEncoder()), [[CAPTION]])
    termed = ClipScore(FrameEmbedder(HashEncoder()), [[CAPTION]], term=term)
    assert termed.needs == {"frames", "signals"} and plain.needs == {"frames"}
    share = 1.2 * np.exp(-np.linalg.norm(s.signals["x"][1:], axis=-1))
    share = np.clip(share - 0.1 * np.linalg.norm(s.action, axis=-1), 0.0, 1.0)
    expected = plain.score(s).reward * share
    np.testing.assert_allclose(termed.score(s).reward, expected, atol=1e-6)
    assert (share[s.valid] == 0).any() and (expected > 0).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formula": "guess"}, "must be one of cosine"),
        ({"alpha": 1.5}, r"alpha must be in \[0, 1\]"),
    ],
)
def test_clip_score_refuses(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClipScore(FrameEmbedder(HashEncoder()), [[CAPTION]], **options)
    with pytest.raises(ValueError, match="needs negatives"):
        ClipScore(FrameEmbedder(HashEncoder()), [[Caption("x")]], formula="softmax")
    with pytest.raises(ValueError, match="at least one step"):
        ClipScore(FrameEmbedder(HashEncoder()), [])


def plan(phis: list[list[float]], held: list[list[float]]) -> float:
    return compose(*([[np.array([v]) for v in step] for step in of] for of in (phis, held)))[0]


def test_finished_plan_is_fully_rewarded_though_earlier_steps_end() -> None:
    """A cube on its target is held no more, and one beside the ball is touched no more."""
    at_the_end = [[1.0], [1.0], [1.0]]
    assert plan(at_the_end, at_the_end) == pytest.approx(2.5) == plan_maximum(3)
    assert plan([[0.3], [0.0], [1.0]], [[0.0], [0.0], [1.0]]) == pytest.approx(2.5)
    assert plan([[1.0], [1.0], [0.5]], [[1.0], [0.0], [0.0]]) < 1.0  # but not by coming near it


def test_sequence_part_stays_done_and_the_next_counts() -> None:
    """Near the second first; the first; away from both; the second; away from that again."""
    worth = np.array([[0.1, 1.3, 0.2, 0.0, 0.0], [0.9, 0.0, 0.4, 1.2, 0.3]])[:, :, None]
    reward, done = reward_in_sequence(worth, worth > 0.95, np.array([1.0, 1.0]), np.zeros(1, int))
    np.testing.assert_allclose(reward[:, 0], [0.1, 1.0, 1.4, 2.2, 1.3])
    assert done[:, 0].tolist() == [0, 1, 1, 1, 1]
    later, _ = reward_in_sequence(worth[:, 2:], worth[:, 2:] > 0.95, np.array([1.0, 1.0]), done[1])
    np.testing.assert_array_equal(later, reward[2:])


STEP = st.lists(st.tuples(st.floats(0, 1.1), st.floats(0, 1)), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=3))
def test_plan_reward_is_monotonic_in_its_steps(steps: list[list[tuple[float, float]]]) -> None:
    phis, held = ([[pair[i] for pair in step] for step in steps] for i in (0, 1))
    base = plan(phis, held)
    assert 0.0 <= base <= 2.7
    for i in range(len(steps)):
        nearer = [[p + 0.05 for p in step] if j == i else step for j, step in enumerate(phis)]
        surer = [[min(1, p + 0.05) for p in s] if j == i else s for j, s in enumerate(held)]
        assert plan(nearer, held) >= base - 1e-9 and plan(phis, surer) >= base - 1e-9


def test_later_step_is_worthless_before_the_first() -> None:
    far, near, no, yes = [0.0], [1.0], [0.02], [0.98]
    gain_far = plan([far, near], [no, no]) - plan([far, far], [no, no])
    gain_near = plan([near, near], [yes, yes]) - plan([near, far], [yes, no])
    assert gain_far < 0.06 * gain_near
    second = np.array([[[0.0]], [[1.0]]])  # does not stand for what comes first
    assert (
        reward_in_sequence(second, second > 0.5, np.array([1.0, 1.0]), np.zeros(1, int))[0] == 0.0
    )


def test_fulfilled_plan_outscores_a_better_looking_first_step() -> None:
    """A hand around a cube looks the more like touching it the lower the cube is."""
    on_the_table = plan([[0.96], [0.93], [0.47]], [[0.99], [0.83], [0.2]])
    half_way = plan([[0.91], [0.94], [0.58]], [[0.98], [0.84], [0.49]])
    lifted = plan([[0.89], [0.94], [0.72]], [[0.98], [0.83], [0.81]])
    assert on_the_table + 0.1 < half_way < lifted - 0.1


def test_plan_step_certainty_comes_from_the_encoder() -> None:
    rows, model = unit(5), ClipScore(FrameEmbedder(HashEncoder()), [[CAPTION]], scale=9.0, bias=-2)
    cosine = rows @ HashEncoder().encode_texts((CAPTION.text,))[0]
    sure = model.probability(CAPTION, rows, np.zeros(5))
    np.testing.assert_allclose(sure, 1 / (1 + np.exp(2 - 9 * cosine)), rtol=1e-5)
    other = ClipScore(FrameEmbedder(HashEncoder()), [[CAPTION]])
    by_phi = other.probability(CAPTION, rows, np.array([0.0, 0.5, 1.0, 1.1, 2.0]))
    np.testing.assert_allclose(by_phi, [np.exp(-3), np.exp(-1.5), 1, 1, 1])


# Distillation.
def test_surrogate_fits_and_reports_uncertainty(
    training_seed: int, outcome: Callable[..., None]
) -> None:
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(3, 4))
    x = rng.uniform(-1, 1, (2000, 3))

    def target(x: np.ndarray) -> np.ndarray:
        y = np.tanh(x @ weight)
        return y / np.linalg.norm(y, axis=1, keepdims=True)

    config = DistillConfig(width=32, steps=200, batch=128, seed=training_seed)
    surrogate = Surrogate(("x",), 4, config)
    surrogate.fit({"x": x}, target(x))
    fresh = rng.uniform(-1, 1, (500, 3))
    mean, spread = surrogate.predict({"x": fresh})
    outcome("cosine of prediction and target", np.mean(np.sum(mean * target(fresh), 1)), above=0.7)
    _, outside = surrogate.predict({"x": 4.0 + fresh})
    outcome("spread elsewhere, share of that here", outside.mean() / spread.mean(), above=2.0)


def test_surrogate_refit_raises_version_and_uses_new_labels() -> None:
    surrogate = fitted()
    version, count = surrogate.version, len(surrogate._inputs)
    surrogate.fit({"x": np.ones((50, 3)), "arm": np.ones((50, 2))}, unit(50))
    assert surrogate.version == version + 1 and len(surrogate._inputs) == count + 50


def test_surrogate_files_and_state(tmp_path: Path) -> None:
    surrogate = fitted()
    rows = {"x": RNG.normal(size=(9, 3)), "arm": RNG.normal(size=(9, 2))}
    path = tmp_path / "scene.safetensors"
    surrogate.save(path, {"report": {"a": 1.0}})
    loaded, card = Surrogate.load(path, surrogate.config)
    assert card == {"report": {"a": 1.0}}
    np.testing.assert_array_equal(loaded.predict(rows)[0], surrogate.predict(rows)[0])
    other = Surrogate(("x", "arm"), D, surrogate.config)
    other.fit({k: v[:4].repeat(20, 0) for k, v in rows.items()}, unit(80))
    other.load_state_dict(surrogate.state_dict())
    np.testing.assert_array_equal(other.predict(rows)[0], surrogate.predict(rows)[0])
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="delete it to fit it again"):
        Surrogate.load(path)
    with pytest.raises(ValueError, match="signals lack arm"):
        surrogate.predict({"x": rows["x"]})


# Statistics.
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=40))
def test_spearman_and_auc_match_scipy(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(x, float) for x in zip(*pairs, strict=True))
    if len(set(a)) > 1 and len(set(b)) > 1:
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)
    positive = b > 2
    if positive.any() and not positive.all():
        gap = a[positive][:, None] - a[~positive]
        assert auc(a, positive) == pytest.approx(((gap > 0) + 0.5 * (gap == 0)).mean())


def test_wilson_known_values() -> None:
    low, high = wilson(973, 1000)
    assert (round(100 * low, 1), round(100 * high, 1)) == (96.1, 98.1)
    assert wilson(0, 10)[0] == 0.0 and wilson(10, 10)[1] == 1.0
    with pytest.raises(ValueError, match="at least one trial"):
        wilson(0, 0)
