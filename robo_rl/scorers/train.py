"""Scorers on embeddings of one frozen encoder, taught from episodes."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reward_models.remote.questions import MOST
from reward_models.scorers.embedded_episodes import EmbeddedEpisodes
from reward_models.vision.config import HeadConfig, NumberFormat
from robo_rl.goals.reading import ReadGoal, known_goal, read_goal
from robo_rl.labelling.queries import (
    QUICK,
    SCRIPTED,
    Labeller,
    QueryConfig,
    ScriptedLabeller,
    query_before_training,
)
from robo_rl.labelling.store import ANSWERS, RATED, RATINGS, SAID, Label, LabelStore, labelled_scene
from robo_rl.labelling.vlm_labeller import VLMLabeller
from robo_rl.rewards.clip import select_training_scene, text_row
from robo_rl.runs.run_dir import jsonable, versions
from robo_rl.runtime.remote_models import JudgeConfig, make_judge
from robo_rl.vision.distilled_scene import objects_hash
from robo_rl.vision.episodes import EncodedEpisodes, EpisodesConfig, encode_episodes
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

if TYPE_CHECKING:
    from reward_models.scorers.heads import Head, ScorerLoss
    from reward_models.scorers.preferences import PreferencePairs
    from reward_models.vision.encoders import TorchEncoder

Array = np.ndarray
Progress = Callable[[float], None]


@dataclass(frozen=True, kw_only=True)
class ScorerConfig:
    """Settings that all kinds of scorers share."""

    task: str = "reach"  # as `robo-rl list tasks` shows
    robot: str = ""  # name from `robo-rl list robots`; empty: the task's own
    things: str = ""  # objects of task tabletop: "yellow ball, two red cubes, white plate"
    scene: str = ""  # your scene for task tabletop: FILE.xml, with FILE.toml beside it
    goal: str = ""  # sentence or key with a success judge; empty: the first goal
    out: Path  # .safetensors file to write
    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    watch: EpisodesConfig = field(default_factory=EpisodesConfig)  # training episodes
    head: HeadConfig = field(default_factory=HeadConfig)  # network settings
    # Folder of labels: a stretch that people or a model rated the most ends with the goal met, one
    # rated less does not.
    store: Path | None = None

    def train(self, of: TrainingInputs) -> TrainedScorer:
        """Fits this kind's loss to the episodes of ``of``."""
        from reward_models.scorers.heads import fit_head

        seen = self.seen(of)
        heads, figures = fit_head(self.loss(of), seen, self.head, of.progress)
        return TrainedScorer(heads, figures, describe_episodes(seen))

    def loss(self, of: TrainingInputs, **more: Any) -> ScorerLoss:
        """This kind's row of ``LOSSES``: its settings are those of ``self`` by the same names, and
        ``more``."""
        from reward_models.scorers.losses import LOSSES

        row = LOSSES[kind_of(self)]
        same = {f.name: getattr(self, f.name) for f in fields(row) if f.name not in more}
        return row(**same, **more)

    def seen(self, of: TrainingInputs) -> EmbeddedEpisodes:
        """The episodes that were watched, and the ends of what was rated."""
        if self.store is None:
            return of.watched.seen
        store = LabelStore(self.store)
        by_frames: dict[tuple[str, ...], list[Label]] = {}
        for answer in labels_of(store, of, RATINGS):
            if not answer.by.startswith(SCRIPTED):  # whose most is the best of what there was
                by_frames.setdefault(answer.first, []).append(answer)
        ends = embedded_videos(store, of, [film[-1:] for film in by_frames])[:, 0]
        met = [np.median([RATINGS[a.said] for a in same]) == MOST for same in by_frames.values()]
        by = [" and ".join(dict.fromkeys(a.by for a in same)) for same in by_frames.values()]
        return of.watched.seen.beside(ends, np.array(met, bool), by)

    def __post_init__(self) -> None:
        if self.out.suffix != ".safetensors":
            raise ValueError(f"--out must be a .safetensors file, got {self.out}")


@dataclass(frozen=True)
class TrainingInputs:
    """The data that a scorer is trained on."""

    task: Task[Any]
    goal: ReadGoal
    encoder: TorchEncoder
    watched: EncodedEpisodes
    progress: Progress


@dataclass(frozen=True)
class TrainedScorer:
    """The result of ``ScorerConfig.train``."""

    heads: list[Head]
    figures: dict[str, Any]
    learned_from: str
    arrays: dict[str, Array] = field(default_factory=dict)  # that a refit needs


@dataclass(frozen=True, kw_only=True)
class SuccessScorer(ScorerConfig):
    """Trains a success classifier on frames that the simulator labels."""

    bound: float = 0.01  # allowed false positive rate on frames
    each: bool = False  # apply the bound per actor, not only overall
    consecutive: int = 2  # consecutive positive frames needed
    before: Path | None = None  # an earlier classifier to compare on the same episodes

    def train(self, of: TrainingInputs) -> TrainedScorer:
        from reward_models.scorers.heads import load_scorer
        from reward_models.scorers.success import evaluate_classifier

        earlier = None if self.before is None else load_scorer(self.before, "success")
        trained = super().train(of)
        if earlier is not None:
            [old], card, _ = earlier
            known = card["figures"]["threshold"], card["figures"]["consecutive"]
            trained.figures["before"] = evaluate_classifier(
                old, *known, self.seen(of), self.head.seed
            )
        return trained


@dataclass(frozen=True, kw_only=True)
class ProgressScorer(ScorerConfig):
    """Trains a progress model on demonstrations, rewound copies of them, and failed episodes."""

    rewinds: int = 2  # rewound copies per demonstration


@dataclass(frozen=True, kw_only=True)
class CriticScorer(ScorerConfig):
    """Trains a video critic: successful final frames score above failed ones, and later frames of a
    demonstration score no less than earlier ones."""

    ranking: float = 33.0  # weight of the temporal ranking loss; 0: final frames only


@dataclass(frozen=True, kw_only=True)
class ValueScorer(ScorerConfig):
    """Trains a value of frames for a sentence: their similarity, fitted to rise over demonstrations
    while it still separates actions and other sentences."""

    inverse: float = 1.0  # weight of the inverse-dynamics loss; 0: as LIV
    contrast: float = 1.0  # weight of other sentences and failures; 0: as ARP

    def loss(self, of: TrainingInputs, **more: Any) -> ScorerLoss:
        others = [read_goal(of.task, key) for key in of.task.goals()]
        goals = [of.goal, *(goal for goal in others if goal.text != of.goal.text)]
        texts = np.stack([text_row(of.encoder, goal) for goal in goals])
        return super().loss(of, texts=texts, scale=of.encoder.scale, **more)


@dataclass(frozen=True, kw_only=True)
class PreferencesScorer(ScorerConfig):
    """Trains a reward from preferences: labels of a store, and those of a scripted oracle, which
    reads the simulator's dense reward and errs at times, or of a remote model, which sees
    frames."""

    watch: EpisodesConfig = field(
        default_factory=lambda: EpisodesConfig(
            demonstrations=0, lost=0, random=60, random_starts=180
        )
    )  # episodes used in queries
    head: HeadConfig = field(default_factory=lambda: QUICK)  # network settings
    ask: QueryConfig = field(default_factory=QueryConfig)  # number and quality of answers
    store: Path | None = None  # folder of labels, read first; answers are added
    oracle: bool = True  # query labels the store lacks; else use the store only
    model: JudgeConfig = field(default_factory=JudgeConfig)  # model of --ask.labeller

    def train(self, of: TrainingInputs) -> TrainedScorer:
        store = None if self.store is None else LabelStore(self.store)
        scene = labelled_scene(of.task, of.encoder.camera)
        known, by = (None, []) if store is None else known_pairs(store, of, self)
        rng = np.random.default_rng([self.head.seed, 3])
        oracle: Labeller | None = None

        def keep(films: Sequence[Array], said: str) -> None:
            if store is not None:
                first, second = (*map(store.keep, films), ())[:2]
                store.append(Label(first, second, of.goal.text, scene, said, str(oracle)))

        def keep_all(asked: tuple[Array, ...], answer: Array) -> None:
            if store is None or isinstance(oracle, VLMLabeller):  # which keeps each as it comes
                return
            entries = np.stack(asked, axis=1)  # (P, 2, L), or (P, 1, L)
            frames = of.watched.frames(of.task, of.encoder, entries.ravel())
            words = ANSWERS if len(asked) == 2 else RATINGS
            for films, value in zip(np.split(frames, len(answer)), answer, strict=True):
                said = next(said for said, worth in words.items() if worth == value)
                keep(np.split(films, len(asked)), said)

        with contextlib.ExitStack() as stack:
            if self.oracle and self.ask.labeller != "oracle":
                env = stack.enter_context(contextlib.closing(BatchEnv(of.task, 1)))
                oracle = VLMLabeller(
                    *make_judge(self.ask.labeller, self.model),
                    self.model,
                    of.goal.text,
                    of.watched.states,
                    of.encoder.camera,
                    env,
                    keep,
                )
            elif self.oracle:
                oracle = ScriptedLabeller(self.ask.noise, self.ask.tie, rng)
            heads, pairs, figures = query_before_training(
                of.watched.seen, oracle, self.ask, self.head, known, len(by), keep_all, of.progress
            )
        if isinstance(oracle, VLMLabeller):
            words = SAID if self.ask.form == "pair" else RATED
            figures |= {"asked": {word: oracle.said[word] for word in words}}
            figures |= {"spent": str(oracle.budget)}
        by += [str(oracle)] * (figures["answers"] - len(by))
        answers = "; ".join(f"{count} answers of {who}" for who, count in Counter(by).items())
        card_figures = {
            name: array.astype(np.int32 if name == "turn" else np.float16)
            for name, array in vars(pairs).items()
        }
        return TrainedScorer(
            heads, figures, f"{answers}; about {describe_episodes(of.watched.seen)}", card_figures
        )


def known_pairs(
    store: LabelStore, of: TrainingInputs, config: PreferencesScorer
) -> tuple[PreferencePairs | None, list[str]]:
    """Returns (pairs, labellers) of a store's answers about this goal in this scene, ratings among
    them. Raises ValueError where segments have another length."""
    from reward_models.scorers.preferences import PreferencePairs, pairs_from_ratings

    compared, rated = labels_of(store, of, ANSWERS), labels_of(store, of, RATINGS)
    length = config.ask.length
    odd = {len(side) for a in (*compared, *rated) for side in a.films} - {length}
    if odd:
        raise ValueError(
            f"{store.path} has segments of {odd.pop()} frames, got --ask.length {length}: give "
            "the length of the store"
        )

    pairs = None
    if compared:
        sides = (
            embedded_videos(store, of, side)
            for side in zip(*(a.films for a in compared), strict=True)
        )
        pairs = PreferencePairs(*sides, np.array([ANSWERS[a.said] for a in compared]))
    if rated:
        ratings = np.array([RATINGS[a.said] for a in rated])
        more = pairs_from_ratings(
            embedded_videos(store, of, [a.first for a in rated]), ratings, config.head.seed
        )
        pairs = more if pairs is None else pairs + more
    return pairs, [a.by for a in (*compared, *rated)]


def labels_of(store: LabelStore, of: TrainingInputs, words: Container[str]) -> list[Label]:
    """The answers of a store that are among ``words``, about this goal in this scene."""
    scene = labelled_scene(of.task, of.encoder.camera)
    return [
        a for a in store.read() if a.said in words and (a.goal, a.scene) == (of.goal.text, scene)
    ]


def embedded_videos(
    store: LabelStore, of: TrainingInputs, films: Sequence[tuple[str, ...]]
) -> Array:
    """Unit rows (n, L, D) of films in a store."""
    none = np.zeros((0, 1, of.watched.seen.rows.shape[1]), np.float32)
    rows = [of.encoder.encode(store.frames(names)) for names in films]
    return np.stack(rows) if rows else none


KINDS: dict[str, type[ScorerConfig]] = {
    "success": SuccessScorer,
    "progress": ProgressScorer,
    "critic": CriticScorer,
    "value": ValueScorer,
    "preferences": PreferencesScorer,
}


def kind_of(config: ScorerConfig) -> str:
    """The kind of scorer that a config is of, a key of ``KINDS``."""
    return next(name for name, kind in KINDS.items() if kind is type(config))


def train_scorer(
    config: ScorerConfig,
    progress: Callable[[str, float], None] = lambda stage, share: None,
    command: str = "",
) -> dict[str, Any]:
    """Writes the scorer of ``config`` to its file; its card, which says ``command`` of how it was
    made. ValueError where the goal has no ground truth, or the encoder does not know the scene."""
    task, goal = known_goal(vars(config), config.goal)
    from reward_models.scorers.heads import save_scorer
    from reward_models.vision.encoders import make_encoder  # torch: seconds, not for --help
    from robo_rl.runtime.threads import lend_threads_to_torch, set_threads

    set_threads()
    encoder, start = make_encoder(config.encoder, dtype=config.dtype), time.monotonic()
    select_training_scene(encoder, task, "--encoder")
    with lend_threads_to_torch():  # networks as small as heads learn fastest on one thread
        watched = encode_episodes(
            task, encoder, config.watch, lambda share: progress("episodes", share)
        )
    fitted = config.train(
        TrainingInputs(task, goal, encoder, watched, lambda share: progress("fit", share))
    )
    card = {
        "kind": kind_of(config),
        "scene": {
            "task": task.name,
            "robot": getattr(task, "robot", ""),
            "camera": encoder.camera,
            "goal": goal.text,
            "truth": goal.key,
            "things": objects_hash(task),
        },
        "encoder": encoder.name,
        "dtype": encoder.dtype_name,
        "learned_from": fitted.learned_from,
        "figures": fitted.figures,
        "heads": len(fitted.heads),
        "dim": watched.seen.rows.shape[1],
        "frames": fitted.heads[0].frames,
        "outputs": fitted.heads[0].outputs,
        "hidden": config.head.hidden,
        "config": jsonable(asdict(config)),
        "seconds": round(time.monotonic() - start),
        "versions": versions(),
        "command": command,
    }
    save_scorer(config.out, fitted.heads, card, fitted.arrays)
    return card


def describe_episodes(episodes: EmbeddedEpisodes) -> str:
    """Returns who acted in the episodes and how many met the goal, for the card and for reports."""
    met = episodes.met()
    return "; ".join(
        f"{count} episodes of {who} ({int(met[np.array(episodes.by) == who].sum())} meet the goal)"
        for who, count in Counter(episodes.by).items()
    )
