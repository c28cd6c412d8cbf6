"""Who is asked which of two stretches is better, about which, and when: before a policy learns, and
while it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from reward_models.remote.questions import LEAST, MOST
from reward_models.scorers.embedded_episodes import EmbeddedEpisodes, split_episodes
from reward_models.vision.config import HeadConfig
from robo_rl.learners.hooks import Hook
from robo_rl.runtime.remote_models import JUDGES, is_judge
from sims.envs.batch_env import BatchEnv
from sims.utils.prefixed_dict import add_prefix, select_prefix

if TYPE_CHECKING:
    from reward_models.scorers.heads import Head
    from reward_models.scorers.preferences import PreferencePairs, Preferences
    from robo_rl.learners.learner import Learner

Array = np.ndarray
# What was asked about, entries (P, L) of both or of one, and what was said (P,).
Told = Callable[[tuple[Array, ...], Array], None]

QUICK = HeadConfig(
    hidden=64, steps=400, batch=64, learning_rate=1e-3
)  # it is fitted anew after every few answers
CANDIDATES = 4  # pairs drawn for each that is asked about
EXPLORE = 0.3  # deviation of the noise under which the policy's episodes are asked about


@dataclass(frozen=True, kw_only=True)
class QueryConfig:
    """Queries to a labeller before training."""

    answers: int = 300  # number of answers, including those in the store
    labeller: str = "oracle"  # oracle (scripted), vlm:MODEL or robometer:URL
    a_time: int = 50  # answers between two fits
    form: Literal["pair", "rating"] = "pair"  # compare two; or rate one, 1 to 5
    length: int = 4  # frames of a segment
    noise: float = 0.2  # share of the scripted oracle's answers that are flipped
    tie: float = 0.0  # mean dense rewards closer than this count as a tie
    active: bool = True  # query where the ensemble disagrees; else at random

    def __post_init__(self) -> None:
        if self.labeller != "oracle" and not is_judge(self.labeller):
            raise ValueError(
                f"unknown labeller {self.labeller!r}; available: oracle, {', '.join(JUDGES)}"
            )
        if not 0.0 <= self.noise <= 0.5 or self.tie < 0:
            raise ValueError(
                f"noise must be in [0, 0.5] and tie at least 0, got {self.noise} and {self.tie}"
            )
        for f in fields(self):
            if f.type == "int" and getattr(self, f.name) < 1:
                raise ValueError(f"{f.name} must be at least 1, got {getattr(self, f.name)}")


class Labeller(Protocol):
    """Answers which of two segments is better, or how close to the goal one is."""

    def answers(self, episodes: EmbeddedEpisodes, first: Array, second: Array) -> Array:
        """(P,) 1 first, 0 second, 0.5 neither, nan where nothing is learned, of entries (P, L)."""
        ...

    def ratings(self, episodes: EmbeddedEpisodes, films: Array) -> Array:
        """(P,) 1 to 5, nan where nothing is learned, of entries (P, L)."""
        ...


SCRIPTED = "a scripted oracle"


class ScriptedLabeller:
    """A stand-in for a person or a vision model: it reads the simulator's dense reward of both
    stretches, and turns a share of its answers round."""

    def __init__(self, noise: float, tie: float, rng: np.random.Generator):
        self.noise, self.tie, self.rng = noise, tie, rng

    def __str__(self) -> str:
        return (
            f"{SCRIPTED} that reads the simulator's dense reward, "
            f"{100 * self.noise:g} % of its answers turned round"
        )

    def ask(self, first: Array, second: Array) -> Array:
        """(P,) 1 first, 0 second, 0.5 neither, of the dense reward (P, L) of stretches."""
        gap = first.mean(axis=1) - second.mean(axis=1)
        answer = np.where(self.rng.random(len(gap)) < self.noise, gap < 0, gap > 0).astype(float)
        return np.where(np.abs(gap) <= self.tie, 0.5, answer)

    def answers(self, episodes: EmbeddedEpisodes, first: Array, second: Array) -> Array:
        """Answers (P,) by the dense reward of the segments' entries (P, L), as ``Labeller``
        describes."""
        return self.ask(episodes.worth[first], episodes.worth[second])

    def ratings(self, episodes: EmbeddedEpisodes, films: Array) -> Array:
        """Rates (P,) in which fifth of all frames the dense reward of the entries (P, L) lies, from
        1 to 5."""
        edges = np.quantile(episodes.worth, np.linspace(0.0, 1.0, MOST - LEAST + 2)[1:-1])
        rating = LEAST + np.searchsorted(edges, episodes.worth[films].mean(axis=1))
        turned = self.rng.random(len(films)) < self.noise
        return np.where(turned, LEAST + MOST - rating, rating).astype(float)


def sample_segments(episode: Array, length: int, count: int, rng: np.random.Generator) -> Array:
    """Samples segments within episodes uniformly.

    Args:
        episode: (M,) the episode of each entry; entries of an episode follow each other.
        length: The frames of a segment.
        count: The number of segments.
        rng: The random numbers.

    Returns:
        The entries (count, length) of the segments.

    Raises:
        ValueError: no episode is as long as a segment.
    """
    starts = np.flatnonzero(episode[: len(episode) - length + 1] == episode[length - 1 :])
    if not len(starts):
        raise ValueError(f"no episode has the {length} frames of a segment")
    return starts[rng.integers(len(starts), size=count)][:, None] + np.arange(length)


def choose_questions(
    rows: Callable[[Array], Array],
    episode: Array,
    length: int,
    count: int,
    rng: np.random.Generator,
    heads: list[Head] | None,
) -> tuple[Array, Array]:
    """(first, second), (count, length) entries each: of what is drawn the most disputed by
    ``heads``, without them all that is drawn. ``rows`` gives the embeddings of entries."""
    from reward_models.scorers.preferences import most_disputed

    pool = CANDIDATES * count if heads else count
    first, second = (sample_segments(episode, length, pool, rng) for _ in range(2))
    if heads:
        best = most_disputed(heads, rows(first), rows(second), count)
        first, second = first[best], second[best]
    return first, second


def query_before_training(
    episodes: EmbeddedEpisodes,
    oracle: Labeller | None,
    config: QueryConfig,
    head: HeadConfig,
    known: PreferencePairs | None = None,
    have: int = 0,
    report: Told = lambda segments, answer: None,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[list[Head], PreferencePairs, dict[str, Any]]:
    """Queries a labeller about segments of ``episodes`` and fits an ensemble to all answers.

    No queries are about the episodes that test the fit.

    Args:
        episodes: The episodes, with an embedding of each frame.
        oracle: The labeller; None: there are no further queries.
        config: The settings of the queries.
        head: The settings of the fit.
        known: Pairs that were answered before.
        have: The number of answers that these are made of.
        report: ``report(segments, answers)`` is called after each batch of queries.
        progress: Called with the share of the answers that there are.

    Returns:
        (the ensemble, all pairs, figures of the fit on the test episodes).

    Raises:
        ValueError: there are neither known pairs nor answers to fit.
    """
    from reward_models.analysis.metrics import auc, or_none, spearman
    from reward_models.scorers.heads import fit_head
    from reward_models.scorers.preferences import (
        PreferencePairs,
        PreferencesLoss,
        pairs_from_ratings,
    )

    # Who goes on with a store is asked something else than what is in it.
    rng = np.random.default_rng([head.seed, 1, *([have] if have else [])])
    fit, held, test = split_episodes(episodes, head.seed)
    asked_of = np.flatnonzero((fit | held)[episodes.episode])
    dim, pairs, heads, figures = episodes.rows.shape[1], known, None, {}
    films, ratings, learned = np.zeros((0, config.length, dim), np.float32), np.zeros(0), have
    while oracle is not None and have < config.answers:
        first, second = choose_questions(
            lambda entries: episodes.rows[asked_of[entries]],
            episodes.episode[asked_of],
            config.length,
            min(config.a_time, config.answers - have),
            rng,
            heads if config.active else None,
        )
        first, second = asked_of[first], asked_of[second]
        one = config.form == "rating"
        segments = (first,) if one else (first, second)
        answers = (
            oracle.ratings(episodes, first) if one else oracle.answers(episodes, first, second)
        )
        report(segments, answers)
        have += len(answers)
        progress(have / config.answers)
        clear = ~np.isnan(answers)
        sides, answers = [episodes.rows[side[clear]] for side in segments], answers[clear]
        learned += len(answers)
        if one:
            films, ratings = np.concatenate([films, *sides]), np.append(ratings, answers)
            new, before = pairs_from_ratings(films, ratings, head.seed), known
        else:
            new, before = PreferencePairs(*sides, answers), pairs
        pairs = new if before is None else before + new
        if have < config.answers and config.active and pairs.enough:
            heads, _ = fit_head(PreferencesLoss(), pairs, head)
    if pairs is None:
        raise ValueError(
            "no preference labels to fit: give --store DIR with some, or query the "
            "oracle (--ask.answers)"
        )
    heads, figures = fit_head(PreferencesLoss(), pairs, head)
    ids = np.flatnonzero(test[episodes.episode])
    worth = np.mean([np.tanh(h.values(episodes.rows[ids][:, None])) for h in heads], axis=0)
    figures |= {
        "answers": learned,
        "test_episodes": int(test.sum()),
        "order_by_worth": or_none(spearman(worth, episodes.worth[ids])),
        "auc": or_none(auc(worth, episodes.holds[ids])),
    }
    return heads, pairs, figures


@dataclass
class OnlineQueries(Hook):
    """Queries about the policy's own episodes during training: refits the reward and relabels the
    replay buffer, or future rollouts of a learner without one."""

    name = "preferences"

    model: Preferences
    env: BatchEnv  # where its episodes run
    pairs: PreferencePairs  # answered before
    oracle: ScriptedLabeller
    head: HeadConfig
    answers: int  # at most
    every: int  # metrics rows from one look to the next
    a_time: int = 40
    frames: int = 0  # rendered so far
    asked: int = 0

    _rows: int = field(default=0, init=False)
    _rng: np.random.Generator = field(init=False)
    _learner: Learner = field(init=False)

    def __post_init__(self) -> None:
        self._rng = self.oracle.rng

    def start(self, learner: Learner) -> None:
        self._learner = learner

    def row(self, row: Mapping[str, float]) -> None:
        self._rows += 1
        if self.asked >= self.answers or self._rows % self.every:
            return
        self.ask()
        relabel = getattr(self._learner.buffer, "relabel", None)
        if relabel is not None:
            relabel()

    def ask(self) -> None:
        """An episode of the policy in every row, the most disputed pairs of it, and a refit."""
        from reward_models.scorers.preferences import PreferencePairs

        states, worth, episode = self._episodes()
        count = min(self.a_time, self.answers - self.asked)
        cached: dict[int, Array] = {}

        def rows(entries: Array) -> Array:
            new = np.array([e for e in np.unique(entries) if e not in cached], int)
            if len(new):
                encoder = self.model.encoder
                drawn = self.env.render_states(states[new], encoder.camera, size=encoder.size)
                cached.update(zip(new.tolist(), encoder.encode(drawn), strict=True))
                self.frames += len(new)
            return np.stack([cached[e] for e in entries.ravel()]).reshape(*entries.shape, -1)

        length = self.pairs.first.shape[1]
        first, second = choose_questions(rows, episode, length, count, self._rng, self.model.heads)
        answer = self.oracle.ask(worth[first], worth[second])
        self.pairs = self.pairs + PreferencePairs(rows(first), rows(second), answer)
        self.asked += count
        self.model.refit(self.pairs, self.head)

    def _episodes(self) -> tuple[Array, Array, Array]:
        """(states (M, nstate), dense reward (M,), episode (M,)), episode by episode."""
        obs, states, worth = self.env.reset(), [], []
        for _ in range(self.env.max_steps):
            action = self._learner.act(obs)
            step = self.env.step(action + EXPLORE * self._rng.normal(size=action.shape))
            obs = step.obs
            states.append(self.env.state())
            worth.append(step.reward)
        steps, rows = len(worth), self.env.num_envs
        stacked = np.stack(states, axis=1).reshape(steps * rows, -1)
        return stacked, np.stack(worth, axis=1).reshape(-1), np.repeat(np.arange(rows), steps)

    def state_dict(self) -> dict[str, Array]:
        """Returns the counters, random stream, answers and env; the model is saved apart.

        Returns:
            ``counters`` (3,), ``stream`` (n,) uint8, the pairs' segments (P, L, D) and answers
            (P,), and the env's arrays (N, ...).
        """
        stream = json.dumps(self._rng.bit_generator.state).encode()
        return {
            "counters": np.array([self._rows, self.frames, self.asked]),
            "stream": np.frombuffer(stream, np.uint8),
            **add_prefix("pairs", vars(self.pairs)),
            **add_prefix("env", self.env.state_dict()),
        }

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``counters`` (3,) and the other arrays that ``state_dict`` returned."""
        self._rows, self.frames, self.asked = (int(count) for count in saved["counters"])
        self._rng.bit_generator.state = json.loads(saved["stream"].tobytes())
        self.pairs = type(self.pairs)(**select_prefix(saved, "pairs"))
        self.env.load_state_dict(select_prefix(saved, "env"))
