"""Segments never cross a reset, and a score does not depend on how rows are packed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from point_mass import InTurn, Nearness, PointMass, Window

from reward_models.base import RewardOutput, Segment, positions_from_start
from reward_models.scorers.embedding_reward import EmbeddingReward, FrameScores
from robo_rl.rollout.scoring import Scorer, StoredFrames, packings
from robo_rl.rollout.trace import Observer, Trace, Transition
from robo_rl.rollout.vec_env import SB3VecEnv

starts = st.integers(1, 12).flatmap(
    lambda steps: st.integers(1, 5).flatmap(
        lambda rows: st.lists(
            st.lists(st.booleans(), min_size=rows, max_size=rows), min_size=steps, max_size=steps
        ).map(lambda lists: np.array(lists, bool))
    )
)


@given(starts, st.integers(1, 40))
@settings(deadline=None, max_examples=60)
def test_packing_round_trip(first, batch):
    block = np.arange(1.0, first.size + 1).reshape(first.shape)
    back, seen = np.zeros_like(block), np.zeros(first.shape, int)
    for packing in packings(first, batch=batch):
        packing.put(packing.take(block), back)
        ones = np.zeros_like(block)
        packing.put(np.ones(packing.valid.shape), ones)
        seen += ones.astype(int)
        assert packing.valid[0].all()
        # Within a column steps follow each other, and none but the first begins an episode.
        inner = packing.valid[1:]
        assert (np.diff(packing.step, axis=0)[inner] == 1).all()
        assert not packing.take(first)[1:][inner].any()
    np.testing.assert_array_equal(back, block)
    assert (seen == 1).all()


def test_packing_of_ragged_episodes_by_hand():
    # Row 0 starts episodes at steps 0 and 2, row 1 goes on from before and starts one at 3.
    first = np.array([[1, 0], [0, 0], [1, 0], [0, 1]], bool)
    (packing,) = packings(first, batch=100)
    columns = [
        (int(row), packing.step[packing.valid[:, c], c].tolist())
        for c, row in enumerate(packing.row)
    ]
    assert columns == [(1, [0, 1, 2]), (0, [0, 1]), (0, [2, 3]), (1, [3])]
    assert packing.valid.sum(axis=0).tolist() == [3, 2, 2, 1]
    assert [p.row.tolist() for p in packings(first, batch=100, skip=2)] == [[1, 0, 1]]


def record(sim: PointMass, model, steps: int, capacity: int | None = None, seed: int = 1):
    """A trace of random actions and the entries of every step, as a reference."""
    env, rng = SB3VecEnv(sim, model), np.random.default_rng(seed)
    env.scored_later = True
    env.reset()
    trace, kept = Trace(capacity or steps), []
    for _ in range(steps):
        env.step(rng.uniform(-1, 1, (sim.num_envs, 2)))
        trace.add(env.last_step())
        kept.append(env.last_step())
    return env, trace, kept


def brute_window(kept: list[Transition], context: int, oldest: int = 0) -> np.ndarray:
    """Window's reward of every step, one row and one step at a time."""
    reward = np.zeros((len(kept), len(kept[0].first)))
    for n in range(reward.shape[1]):
        xs: list[float] = []
        for t, step in enumerate(kept):
            if step.first[n] or t == oldest:
                xs = [step.before["pos"][n, 0]]
            xs.append(step.after["pos"][n, 0])
            reward[t, n] = 0.0 if step.diverged[n] else np.mean(xs[-context:])
    return reward


@given(
    context=st.integers(1, 5),
    ragged=st.sampled_from([0.0, 0.2, 0.6]),
    batch=st.sampled_from([1, 7, 1000]),
    cut=st.integers(1, 29),
    seed=st.integers(0, 100),
)
@settings(deadline=None, max_examples=40)
def test_packed_scores_equal_the_per_env_reference(context, ragged, batch, cut, seed):
    model = Window(context)
    sim = PointMass(4, ragged=ragged, diverge=0.02, steps=9, seed=seed)
    env, trace, kept = record(sim, model, 30)
    scorer = Scorer(model, env.observer, batch=batch)
    expected = brute_window(kept, context)
    whole = scorer.score(trace, 0, 30)
    np.testing.assert_allclose(whole.reward, expected, atol=1e-6)
    # In two spans, the second of which reaches back for its windows.
    parts = [scorer.score(trace, 0, cut).reward, scorer.score(trace, cut, 30).reward]
    np.testing.assert_array_equal(np.concatenate(parts), whole.reward)
    np.testing.assert_array_equal(whole.scored, ~np.stack([step.diverged for step in kept]))


@given(
    ragged=st.sampled_from([0.0, 0.2]),
    cuts=st.lists(st.integers(1, 39), max_size=5),
    room=st.sampled_from([12, 40]),
    seed=st.integers(0, 100),
)
@settings(deadline=None, max_examples=40)
def test_sequence_memory_spans_blocks(ragged, cuts, room, seed):
    """However a row is cut into spans, and where its beginning is kept no more."""
    sim = PointMass(4, ragged=ragged, diverge=0.02, steps=15, seed=seed)
    env, whole, kept = record(sim, InTurn(), 40)
    scorer, trace = Scorer(InTurn(), env.observer), Trace(room)
    expected = np.zeros((40, 4))
    for n in range(4):
        done = 0
        for t, step in enumerate(kept):
            done, x = 0 if step.first[n] else done, step.after["pos"][n, 0]
            if not step.diverged[n]:
                expected[t, n] = 1 - x if done else min(x, 1.0)
                done = done or int(x > 0.2)
    np.testing.assert_allclose(scorer.score(whole, 0, 40).reward, expected, atol=1e-6)
    found, since = [], 0
    for t, step in enumerate(kept):
        trace.add(step)
        if t + 1 in {*cuts, *range(0, 41, 8)}:  # before any step is overwritten
            found.append(scorer.score(trace, since, t + 1).reward)
            since = t + 1
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-6)
    again = scorer.score(trace, trace.oldest, 40, counted=False).reward
    np.testing.assert_allclose(again, expected[trace.oldest :], atol=1e-6)


def test_sequence_memory_is_known_with_longer_context(seed: int = 4):
    """Also where it looks back into an episode that is over, and before a ring has been scored."""
    model = InTurn()
    model.context = 3
    env, trace, _ = record(PointMass(4, ragged=0.2, steps=9, seed=seed), model, 40)
    scorer = Scorer(model, env.observer)
    scorer.score(trace, 0, 40)
    known = trace.done.copy()
    assert known.any()
    for first in range(3, 40):
        scorer.score(trace, first, first + 1)
    np.testing.assert_array_equal(trace.done, known)
    ring = Trace(10)
    _, _, kept = record(PointMass(4, steps=50, seed=seed), model, 24)
    for t, step in enumerate(kept):
        ring.add(step)
        if t == 9:
            scorer.score(ring, 0, 10)
            assert ring.done.any()
    assert not ring.done[:, np.arange(14, 20) % 10].any()  # not those of the steps before


class Seer:
    """An encoder that counts what it is shown."""

    name, camera, size, asked = "seer", "top", (2, 2), 0

    def encode(self, frames):
        self.asked += len(frames)
        return frames.reshape(len(frames), -1)[:, :3].astype(np.float32) / 100


class LastFour(EmbeddingReward):
    context = 4

    def rate(self, rows, before):
        return FrameScores(rows[before].mean(axis=(1, 2)))


class Refitted(LastFour):
    """What it saw is worth more to it each time."""

    keeps = True

    def rate(self, rows, before):
        return FrameScores((1 + self.version) * rows[before].mean(axis=(1, 2)))


@pytest.mark.parametrize("room", [60, 25])
@pytest.mark.parametrize("context", [1, 4])
def test_rescoring_reuses_embeddings(room: int, context: int) -> None:
    env, _, kept = record(
        PointMass(4, ragged=0.1, diverge=0.02, steps=15, seed=2), LastFour(Seer()), 40
    )
    model, trace = Refitted(Seer()), Trace(room)
    model.context = context
    scorer = Scorer(model, env.observer)
    for t, step in enumerate(kept):
        trace.add(step)
        if t % 3 == 2:
            scorer.score(trace, t - 2, t + 1)
        if t == 20:
            saved, trace = trace.state_dict(), Trace(room)
            trace.load_state_dict(saved)
    trace_shown, model.version = model.encoder.asked, 1
    again = scorer.score(trace, trace.oldest, 39)
    assert model.encoder.asked == trace_shown
    fresh, model = Trace(room), Refitted(Seer())
    model.context, model.version = context, 1
    for step in kept:
        fresh.add(step)
    expected = Scorer(model, env.observer).score(fresh, fresh.oldest, 39)
    np.testing.assert_array_equal(again.reward, expected.reward)
    assert expected.reward.std() > 0


@pytest.mark.parametrize("room", [40, 6])
@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_each_step_renders_one_frame_for_any_context(room: int, at_once: int) -> None:
    """Also after a resume, where some wait to be scored, and not of another trace's steps."""
    sim = PointMass(4, ragged=0.1, diverge=0.02, steps=15, seed=2)
    env, whole, kept = record(sim, LastFour(Seer()), 42)
    expected = Scorer(LastFour(Seer()), env.observer).score(whole, 0, 42).reward
    model = LastFour(Seer())
    scorer, trace, found = Scorer(model, env.observer), Trace(room), []
    for t, step in enumerate(kept):
        trace.add(step)
        if t == 20:
            saved, trace, scorer = trace.state_dict(), Trace(room), Scorer(model, env.observer)
            trace.load_state_dict(saved)
        if (t + 1) % at_once == 0:
            found.append(scorer.score(trace, t + 1 - at_once, t + 1).reward)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert model.encoder.asked == sum(int((~step.diverged).sum()) for step in kept)
    _, other, _ = record(PointMass(4, ragged=0.1, steps=15, seed=3), model, 43)
    fresh = Scorer(LastFour(Seer()), env.observer).score(other, 42, 43).reward
    np.testing.assert_array_equal(scorer.score(other, 42, 43).reward, fresh)


def test_models_use_their_own_encoders() -> None:
    class Dim(Seer):
        def encode(self, frames):
            return super().encode(frames) / 2

    env, trace, _ = record(PointMass(4, steps=15, seed=2), LastFour(Seer()), 12)
    scorer = Scorer(Refitted(Seer()), env.observer)
    bright = scorer.score(trace, 0, 12).reward
    scorer.replace(Refitted(Dim()))
    np.testing.assert_allclose(scorer.score(trace, 0, 12).reward, bright / 2)


def test_terminal_step_is_scored_on_its_final_state():
    model = Nearness()
    sim = PointMass(3, steps=4)
    env, trace, kept = record(sim, model, 8)
    reward = Scorer(model, env.observer).score(trace, 0, 8).reward
    gap = np.linalg.norm(kept[3].after["goal"] - kept[3].after["pos"], axis=1)
    np.testing.assert_allclose(reward[3], np.exp(-4 * gap), rtol=1e-6)
    assert not np.allclose(kept[3].after["goal"], kept[4].before["goal"])  # there was a reset


def test_frames_are_rendered_once_and_lazily():
    model, sim = Window(1, "frames"), PointMass(5, steps=6, ragged=0.2, seed=3)
    env, trace, kept = record(sim, model, 12)
    assert env.observer.frames_rendered == 0
    reward = Scorer(model, env.observer).score(trace, 0, 12).reward
    # Window asks for every entry, padding too: still one frame per state.
    fragments = sum(int(step.first.sum()) for step in kept)
    assert env.observer.frames_rendered == sim.rendered == 12 * 5 + fragments
    x = np.stack([step.after["#frames"][:, 0] for step in kept])
    np.testing.assert_allclose(reward, np.round((x + 1) * 100) / 100 - 1, atol=1e-6)


class Live(PointMass):
    """Cannot render past states: frames are taken while it steps."""

    state = render_states = None

    def render(self, ids=None, camera=None):
        return PointMass.render_states(self, self.pos if ids is None else self.pos[ids])


def test_simulator_without_states_renders_every_step():
    model, lazy_model = Window(2, "frames"), Window(2, "frames")
    env, trace, kept = record(Live(5, steps=6, seed=3), model, 12)
    resets = sum(int(step.first.sum()) for step in kept[1:])
    assert env.observer.frames_rendered == 5 + 12 * 5 + resets + 5  # the last step reset 5 rows
    reward = Scorer(model, env.observer).score(trace, 0, 12).reward
    lazy, lazy_trace, _ = record(PointMass(5, steps=6, seed=3), lazy_model, 12)
    expected = Scorer(lazy_model, lazy.observer).score(lazy_trace, 0, 12).reward
    np.testing.assert_array_equal(reward, expected)
    with pytest.raises(ValueError, match="has top"):
        env.observer.frames(kept[0].after["#frames"], "side")


def test_stored_frames_are_cached_by_entry():
    calls = []

    def render(rows, camera):
        calls.append(rows[:, 0].tolist())
        return rows[:, :1, None, None].astype(np.uint8).repeat(3, axis=3)

    rows = np.arange(6)[:, None].reshape(3, 2, 1)  # two columns of lengths 2 and 1
    frames = StoredFrames(rows, np.array([2, 1]), render)
    where = np.zeros((3, 2), bool)
    where[0] = True
    assert frames("top", where)[:, 0, 0, 0].tolist() == [0, 1]
    assert frames("top", np.ones((3, 2), bool))[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4, 3]
    assert calls == [[0, 1], [2, 3, 4]]
    with pytest.raises(ValueError, match=r"where must be \(3, 2\) bool"):
        frames("top", np.ones((2, 2), bool))


def observer(model) -> Observer:
    return Observer(PointMass(2), model.needs)


def test_non_causal_models_are_refused_online():
    model = Nearness()
    model.causal = False
    with pytest.raises(ValueError, match="Nearness looks ahead"):
        Scorer(model, observer(model))
    with pytest.raises(ValueError, match=r"needs \['frames'\]"):
        Scorer(Window(1, "frames"), observer(Nearness()))
    with pytest.raises(ValueError, match="may need 'signals' and 'frames'"):
        Observer(PointMass(2), frozenset({"success"}))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda v: RewardOutput(np.zeros(3), v), "reward must have shape"),
        (lambda v: RewardOutput(np.full(v.shape, np.nan), v), "rewards are not finite"),
    ],
)
def test_invalid_score_error_names_the_model(output, message):
    model = Nearness()
    env, trace, _ = record(PointMass(2), model, 5)
    model.score = lambda segment: output(segment.valid)
    with pytest.raises(ValueError, match=f"Nearness.score: .*{message}"):
        Scorer(model, env.observer).score(trace, 0, 5)


def test_unknown_cameras_and_undeclared_frames_are_refused():
    model = Window(1, "frames")
    env, trace, _ = record(PointMass(2), model, 5)
    with pytest.raises(ValueError, match="asks for camera 'side'.* has top"):
        env.observer.frames(np.zeros((1, 4)), "side")
    model = Nearness()
    env, trace, _ = record(PointMass(2), model, 5)
    model.score = lambda segment: segment.frames("top", segment.valid)
    with pytest.raises(ValueError, match="does not declare them"):
        Scorer(model, env.observer).score(trace, 0, 5)


def test_reward_means_cover_scored_steps_only():
    model = Nearness()
    env, trace, _kept = record(PointMass(4, diverge=0.1, seed=5), model, 20)
    scorer = Scorer(model, env.observer)
    output = scorer.score(trace, 0, 20)
    means = scorer.pop_means()
    assert output.scored.sum() < 80
    assert means["reward"] == pytest.approx(output.reward[output.scored].mean())
    assert set(means) == {"reward", "reward/gap"}
    assert scorer.pop_means() == {}
    assert scorer.pop_seconds() > 0 == scorer.pop_seconds()


class Where:
    """Pays by where a step stands: its number, 100 more at the end, 1000 more at one for good."""

    needs, context, causal, version = frozenset({"signals"}), 1, True, 0

    def score(self, segment: Segment) -> RewardOutput:
        place = segment.placed(self)
        assert not (place.terminated & ~place.last).any()
        return RewardOutput(
            place.step + 100.0 * place.last + 1000.0 * place.terminated, segment.valid
        )


@given(
    ragged=st.sampled_from([0.0, 0.2, 0.6]),
    batch=st.sampled_from([1, 7, 1000]),
    cuts=st.lists(st.integers(1, 29), max_size=4, unique=True).map(sorted),
    kept=st.integers(5, 30),
    seed=st.integers(0, 100),
)
@settings(deadline=None, max_examples=40)
def test_step_position_is_independent_of_block_boundaries(ragged, batch, cuts, kept, seed):
    sims = [PointMass(4, ragged=ragged, diverge=0.02, steps=9, seed=seed) for _ in range(2)]
    model, bare = Where(), sims[1]
    env, trace, _ = record(sims[0], model, 30)
    bare.reset()
    rng, expected, step = np.random.default_rng(1), np.zeros((30, 4)), np.zeros(4)
    for t in range(30):
        made = bare.step(rng.uniform(-1, 1, (4, 2)))
        done = made.terminated | made.truncated
        expected[t] = step + 100 * done + 1000 * made.terminated
        expected[t][made.info["diverged"]] = 0.0
        step = np.where(done, 0, step + 1)
        bare.reset(done)
    scorer = Scorer(model, env.observer, batch=batch)
    for first, end in zip([0, *cuts], [*cuts, 30], strict=True):
        np.testing.assert_array_equal(scorer.score(trace, first, end).reward, expected[first:end])
    # What a ring has lost of an episode does not count its steps anew.
    env, trace, _ = record(
        PointMass(4, ragged=ragged, diverge=0.02, steps=9, seed=seed), model, 30, capacity=kept
    )
    found = Scorer(model, env.observer).score(trace, 30 - kept, 30).reward
    np.testing.assert_array_equal(found, expected[-kept:])
    again = Trace(kept)
    again.load_state_dict({name: np.copy(a) for name, a in trace.state_dict().items()})
    found = Scorer(model, env.observer).score(again, 30 - kept, 30).reward
    np.testing.assert_array_equal(found, expected[-kept:])


def test_model_without_required_step_position_is_an_error():
    model, single = Where(), np.ones((1, 2), bool)
    with pytest.raises(
        ValueError, match="Where depends on a step's position in its episode.* give Segment"
    ):
        model.score(Segment({}, StoredFrames, np.zeros((1, 2, 0)), single))


def test_whole_episode_marks_its_last_step():
    live = np.array([[1, 1], [1, 1], [1, 0]], bool)
    place = positions_from_start(live, np.array([[0, 0], [0, 1], [0, 1]], bool))
    assert place.step[:, 0].tolist() == [0, 1, 2]
    assert place.last.tolist() == [[False, False], [False, True], [True, False]]
    assert place.terminated.tolist() == [[False, False], [False, True], [False, False]]
