"""Rewards made from words, held against other words: whose sentence pays which episodes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reward_models.analysis.metrics import auc, or_none
from reward_models.base import RewardModel, Segment
from reward_models.goals.formula import Atom, fill
from reward_models.goals.text import to_sentence
from robo_rl.goals.reading import NotRead, ReadGoal, read_goal
from robo_rl.reward_analysis.coverage import COVER_SEED, concatenate_coverage, play_actor
from robo_rl.reward_analysis.scores import forward, segment_of
from robo_rl.rewards import make_reward
from robo_rl.rewards.base import RewardConfig, RewardRequest
from robo_rl.rewards.clip import OPPOSITE, captions_for, encoder_of, scores
from robo_rl.vision.episodes import EXPERT
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

SPOKEN = ("clip", "offline")  # rewards that are made of a sentence
EACH = 6  # episodes of each goal's expert
WRAPPED = ("please make sure that {}", "{} please", "i want that {}")  # said with more words


def language_figures(
    name: str, goal: ReadGoal, task: Task[Any], settings: RewardConfig | None, env: BatchEnv
) -> dict[str, Any] | None:
    """Figures of a reward that is made from words, on the ends of episodes in which the expert of
    every goal of the task acted; None for a reward that is made of none, or where nobody acts.

    ``accuracy``: of ends, the share that the sentence paying most truly describes (chance: the
    share that any does). ``matrix`` (goals, texts): mean pay of a goal's ends by each text.
    ``opposite_goal``: by how much the ends at which the goal holds are paid more by it than by its
    opposite, and how often. ``sentence_paraphrases``: how many were understood the same, and the
    deviation between those over that between ends.
    """
    if name not in SPOKEN or not task.solved:
        return None
    keys = tuple(task.goals())
    if len(keys) < 2:
        return None
    other, others = opposite_goal(goal, task), sentence_paraphrases(goal)
    texts = [read_goal(task, key) for key in keys]
    meant = [read_goal(task, text) for text in others]
    same = [m for m in meant if m.formula is not None and m.key == goal.key]
    sentences = [goal, *same, *texts, *([other] if other else [])]
    models = rewards_of_sentences(name, sentences, task, settings, env)
    size = next((m.frame_size for m in models if hasattr(m, "frame_size")), None)
    with episode_ends(task, keys, size) as ends:
        rewards = np.stack(
            [_rewards_at_ends(m, ends.segment) for m in models]
        )  # (texts, E); nan: not made
    first = 1 + len(same)
    own, alike, by_text = rewards[0], rewards[:first], rewards[first : first + len(texts)]
    made = np.isfinite(by_text).all(axis=1)
    truth = ends.truth[made]
    best = by_text[made].argmax(axis=0)
    areas = [auc(row, held) for row, held in zip(by_text[made], truth, strict=True)]
    found: dict[str, Any] = {
        "goals": [keys[i] for i in np.flatnonzero(made)],
        "ends": ends.truth.shape[1],
        "accuracy": float(truth[best, np.arange(truth.shape[1])].mean()),
        "chance": float(truth.mean()),
        "auc_median": or_none(np.nanmedian(areas)),
        "auc_least": or_none(np.nanmin(areas)),
        "matrix": [[float(row[ends.meant == key].mean()) for row in by_text[made]] for key in keys],
        "paraphrases": {
            "said": len(others),
            "understood": len(same),
            "spread": float(alike.std(axis=0).mean() / max(own.std(), 1e-9)),
        },
        "opposite": None,
    }
    holds = ends.truth[keys.index(goal.key)]
    if other is not None and np.isfinite(rewards[-1]).all() and holds.any():
        more = (own - rewards[-1])[holds]
        found["opposite"] = {
            "text": other.text,
            "margin": float(more.mean() / max(own.std(), 1e-9)),
            "share": float((more > 0).mean()),
        }
    return found


@dataclass(frozen=True)
class EpisodeEnds:
    """The last step of episodes in which every goal's expert acted, and what is true there."""

    segment: Segment  # of one step
    meant: Array  # (E,) key of the goal whose expert acted
    truth: Array  # (goals, E) bool


@contextlib.contextmanager
def episode_ends(
    task: Task[Any], keys: Sequence[str], size: tuple[int, int] | None
) -> Iterator[EpisodeEnds]:
    """Ends of ``EACH`` episodes for each of the task's goals; drawn in ``size`` while open."""
    parts = []
    for number, key in enumerate(keys):
        rng, own = np.random.default_rng(number), replace(task, goal=key)
        parts.append(
            play_actor(
                own,
                EXPERT,
                lambda env, obs, own=own, rng=rng: own.expert(env.views, rng),
                EACH,
                COVER_SEED + 1000 + number,
            )
        )
    cover = concatenate_coverage(parts)
    columns = np.arange(len(cover.who))
    way = forward(columns, np.ones_like(columns), cover.length - 1)
    with contextlib.closing(BatchEnv(task, len(columns))) as env:
        env.set_state(cover.states[way.entry[1], columns])
        truth = [np.array(env.task.goals()[key].success(env.views), bool) for key in keys]

        def render(rows: Array, camera: str) -> Array:
            return env.render_states(rows, camera, size=size)

        segment = segment_of(cover, way, render)
        yield EpisodeEnds(segment, np.repeat(keys, EACH), np.stack(truth))


def _rewards_at_ends(model: RewardModel | None, segment: Segment) -> Array:
    """(E,) pay of ends; nan by a text of which no reward was made."""
    if model is None:
        return np.full(segment.valid.shape[1], np.nan)
    # Of what is wanted in turn these are ends: all that came before the last part is done.
    last = replace(segment, done=np.full(segment.valid.shape[1], np.iinfo(int).max))
    return model.score(last).reward[0].astype(float)


def rewards_of_sentences(
    name: str,
    goals: Sequence[ReadGoal],
    task: Task[Any],
    settings: RewardConfig | None,
    env: BatchEnv,
) -> list[RewardModel | None]:
    """The reward of each sentence; None of one that this kind of reward cannot be made of."""
    if name == "offline":
        made = []
        for goal in goals:
            try:
                made.append(make_reward(name, goal, env).model)
            except (NotRead, ValueError):
                made.append(None)
        return made
    request = RewardRequest(goals[0], env, settings)
    encoder, plans = encoder_of(request), []
    for goal in goals:
        try:
            plans.append(captions_for(encoder, goal, request.settings))
        except ValueError:
            plans.append(None)
    models = iter(scores(request, encoder, [plan for plan in plans if plan])[0])
    return [next(models) if plan else None for plan in plans]


def opposite_goal(goal: ReadGoal, task: Task[Any]) -> ReadGoal | None:
    """The sentence that asks for the contrary, of the same things; None where there is none."""
    atom = goal.formula
    if not isinstance(atom, Atom) or atom.predicate not in OPPOSITE:
        return None
    turned = replace(atom, predicate=OPPOSITE[atom.predicate], numbers=())
    found = read_goal(task, to_sentence(fill(turned, goal.card), goal.card))
    return found if found.formula is not None else None


def sentence_paraphrases(goal: ReadGoal) -> tuple[str, ...]:
    """Other words for a sentence: as it was understood, wrapped in others, and with each thing
    called by its other names."""
    base = goal.text
    found = [pattern.format(base) for pattern in WRAPPED]
    if goal.formula is not None:
        found.append(goal.understood)
    for entity in goal.card.entities:
        for alias in entity.aliases[1:]:
            pattern = rf"\b{re.escape(entity.aliases[0])}\b"
            if re.search(pattern, base):
                found.append(re.sub(pattern, alias, base))
    return tuple(dict.fromkeys(text for text in found if text != base))
