"""A sentence's reward: similarity of what is seen to captions, composed over a plan's steps.

Four ways to turn embeddings into a score, all of unit rows x against caption rows:

- ``cosine``: x . t (CLIP, arXiv:2103.00020)
- ``goal_baseline``: 1 - |P(x - g)|^2 / 2 with the projection that keeps a share ``1 - alpha`` of
  what is off the line from baseline b to goal g (VLM-RM, arXiv:2310.12921)
- ``contrast``: x . t+ - x . t- (contrasting goals, VLM-RL, arXiv:2412.15544)
- ``softmax``: the goal's share against its alternatives, at the encoder's own temperature

A score becomes a progress phi by its quantiles over the scene's states, scattered and reached by
random moves: 0 at a poor state, 1 at the best of them. Nobody who knows the way to the goal was
asked, so the goal itself may score higher than all of them: beyond 1 phi goes on as 1 + ln, always
rising, ever more slowly. A plan with several steps is gated: a later step counts only as far as the
earlier ones hold. How surely one holds is said by an encoder whose logit is a probability.
Phi, which tells from afar, says of a hand around a cube little less than of one that holds it.

A caption, and the scene that it is held against, may be put in several wordings: the mean of their
embeddings stands for them (prompt ensembles, arXiv:2103.00020, 3.1.4).

What no frame shows, speed or effort, may be a term of the state that the score is multiplied by
(VLM-RL).

What is wanted in turn ("red, then blue") has a plan for each part. A part is done once its end was
more likely seen than not; it is paid whole from then on, whatever becomes of it, and the next one
counts. The last one is paid as it is now.

While what is never to be is seen, a step costs as much as it pays where all that is wanted is so.
It hangs on what is seen now alone: a policy does not see what was before (docs/results/seen.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from reward_models.base import Encoder, RewardOutput, Segment

if TYPE_CHECKING:  # torch is not needed to read a sentence or a plan
    from reward_models.programs import Program
    from reward_models.vision.distillation import Surrogate

Array = np.ndarray
Formula = Literal["cosine", "goal_baseline", "contrast", "softmax"]
FORMULAS: tuple[Formula, ...] = ("cosine", "goal_baseline", "contrast", "softmax")

QUANTILES = (0.05, 0.995)  # of a caption's score over the scene's states: phi 0 and 1
DONE = 0.5  # how surely a part must be seen to hold
SHUNNED = 0.8  # likewise what is never to be, which may be near
TERM = "a term of the state"
GATE = 3.0  # sharpness with which phi stands for a probability: exp(GATE (phi - 1)), at most 1


@dataclass(frozen=True)
class Caption:
    """One sentence to score, and the sentences it is scored against."""

    text: str
    baseline: tuple[str, ...] = ()  # the neutral scene, for goal_baseline
    negatives: tuple[str, ...] = ()  # opposites, for contrast and softmax
    further: tuple[str, ...] = ()  # wordings of the text
    arm_free: bool = False  # says nothing of the arm: score it with the arm put aside
    part: int = 0  # of what is wanted one after the other, the one it belongs to
    shunned: bool = False  # it is never to be


class Embedder(Protocol):
    """Where the embeddings of a segment's states come from."""

    needs: frozenset[str]
    version: int

    def texts(self, texts: tuple[str, ...]) -> Array:
        """Returns unit rows (n, D) of n texts."""
        ...

    def embed(self, segment: Segment, arm_free: bool) -> tuple[Array, Array]:
        """Embeds the successor states of a segment.

        Args:
            segment: T steps of N environments.
            arm_free: Whether to put the arm aside where that is possible.

        Returns:
            (unit rows (n, D), spread (n,)) where ``valid``, row by row.
        """
        ...


@dataclass
class FrameEmbedder:
    """Renders and encodes the frames of a segment."""

    encoder: Encoder
    needs: frozenset[str] = frozenset({"frames"})
    version: int = 0

    def texts(self, texts: tuple[str, ...]) -> Array:
        """Returns unit rows (n, D) of n texts."""
        return self.encoder.encode_texts(texts)

    def embed(self, segment: Segment, arm_free: bool) -> tuple[Array, Array]:
        """Returns (unit rows (n, D), spread (n,)) of a segment; see ``Embedder.embed``."""
        where = np.concatenate([np.zeros_like(segment.valid[:1]), segment.valid])
        rows = self.encoder.encode(segment.frames(self.encoder.camera, where))
        return rows, np.zeros(len(rows), np.float32)


@dataclass
class SurrogateEmbedder:
    """Predicts embeddings from signals (``distillation.py``); renders nothing.

    ``aside`` holds the arm's signals in a pose where it hides nothing. A caption about two objects
    is scored with them: the question is where the objects are, not what the arm covers.
    """

    surrogate: Surrogate
    encoder: Encoder
    aside: Mapping[str, Array] = field(default_factory=dict)
    needs: frozenset[str] = frozenset({"signals"})

    @property
    def version(self) -> int:
        """The version of the distilled encoder."""
        return self.surrogate.version

    def texts(self, texts: tuple[str, ...]) -> Array:
        """Returns unit rows (n, D) of n texts."""
        return self.encoder.encode_texts(texts)

    def embed(self, segment: Segment, arm_free: bool) -> tuple[Array, Array]:
        """Returns (unit rows (n, D), spread (n,)) of a segment; see ``Embedder.embed``."""
        rows = {name: segment.signals[name][1:][segment.valid] for name in self.surrogate.names}
        if arm_free:
            rows |= {
                name: np.broadcast_to(value, rows[name].shape)
                for name, value in self.aside.items()
                if name in rows
            }
        return self.surrogate.predict(rows)


@dataclass
class CachedEmbedder:
    """Looks once at the segment that several scores ask about one after the other."""

    through: FrameEmbedder | SurrogateEmbedder
    _last: tuple[Segment, int] | None = None  # that was looked at, by which version
    _seen: dict[bool, tuple[Array, Array]] = field(default_factory=dict)

    @property
    def needs(self) -> frozenset[str]:
        """What the inner embedder needs."""
        return self.through.needs

    @property
    def version(self) -> int:
        """The version of the inner embedder."""
        return self.through.version

    def texts(self, texts: tuple[str, ...]) -> Array:
        """Returns unit rows (n, D) of n texts."""
        return self.through.texts(texts)

    def embed(self, segment: Segment, arm_free: bool) -> tuple[Array, Array]:
        """Returns (unit rows (n, D), spread (n,)) of a segment; see ``Embedder.embed``."""
        if self._last is None or self._last[0] is not segment or self._last[1] != self.version:
            self._last, self._seen = (segment, self.version), {}
        # Frames are as they are: there only the copy of an encoder can put the arm aside.
        arm_free = arm_free and isinstance(self.through, SurrogateEmbedder)
        if arm_free not in self._seen:
            self._seen[arm_free] = self.through.embed(segment, arm_free)
        return self._seen[arm_free]


class ClipScore:
    """The reward of a plan of captions; see the module's text for formulas and gating."""

    context = 1
    causal = True

    def __init__(
        self,
        embedder: Embedder,
        steps: Sequence[Sequence[Caption]],
        *,
        formula: Formula = "cosine",
        alpha: float = 0.5,
        scale: float = 100.0,
        bias: float | None = None,
        calibration: Mapping[str, tuple[float, float]] | None = None,
        term: Program | None = None,
    ):
        """Takes a plan of captions.

        Args:
            embedder: Where embeddings come from.
            steps: Captions of each step of the plan; a step of what must never be is no part of the
                plan.
            formula: How a caption is scored.
            alpha: Share of the projection of ``goal_baseline``, in [0, 1].
            scale: Of the cosine, for a logit.
            bias: With it, scale * cosine + bias is the logit of a probability.
            calibration: (low, high) raw score of each caption, phi 0 and 1.
            term: Of the state after a step, a factor of the reward from 0 to 1.

        Raises:
            ValueError: The formula is unknown or lacks what it compares with, ``alpha`` is out of
                range, or the plan is empty.
        """
        if formula not in FORMULAS:
            raise ValueError(f"formula must be one of {', '.join(FORMULAS)}, got {formula!r}")
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(f"alpha must be in [0, 1], got {alpha}")
        if not steps or not all(steps):
            raise ValueError("a plan needs at least one step, and each step a caption")
        if formula in ("contrast", "softmax") and not all(c.negatives for s in steps for c in s):
            raise ValueError(f"{formula} needs negatives for every caption")
        if formula == "goal_baseline" and not all(c.baseline for s in steps for c in s):
            raise ValueError("goal_baseline needs a baseline for every caption")
        self.shunned = tuple(c for step in steps for c in step if c.shunned)
        self.steps = tuple(tuple(step) for step in steps if not step[0].shunned)
        self.embedder = embedder
        self.formula, self.alpha, self.scale, self.bias = formula, alpha, scale, bias
        self.calibration = dict(calibration or {})
        self.term = term
        self.needs = embedder.needs | (frozenset({"signals"}) if term else frozenset())
        numbers = dict.fromkeys(step[0].part for step in self.steps)
        self.parts = [[step for step in self.steps if step[0].part == n] for n in numbers]
        self._heads = {c.text: self._head(c) for c in self.captions}

    @property
    def version(self) -> int:
        """The version of the embedder."""
        return self.embedder.version

    @property
    def frame_size(self) -> tuple[int, int] | None:
        """(height, width) px of the frames it looks at; None: it looks at none."""
        through = self._through
        return through.encoder.size if isinstance(through, FrameEmbedder) else None

    @property
    def frame_crop(self) -> bool:
        """Whether frames of another shape are to be cropped and not stretched to that size."""
        through = self._through
        return isinstance(through, FrameEmbedder) and through.encoder.crops

    @property
    def _through(self) -> Embedder:
        shared = isinstance(self.embedder, CachedEmbedder)
        return self.embedder.through if shared else self.embedder

    def state_dict(self) -> dict[str, Array]:
        """Returns the distilled encoder's labels (n, D) and weights by name, or nothing."""
        through = self._through
        return through.surrogate.state_dict() if isinstance(through, SurrogateEmbedder) else {}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the labels (n, D) and weights of ``state_dict()``."""
        if isinstance(self._through, SurrogateEmbedder):
            self._through.surrogate.load_state_dict(saved)

    @property
    def captions(self) -> tuple[Caption, ...]:
        """Every caption of the plan and of what is never to be, once."""
        return tuple(dict.fromkeys((*(c for step in self.steps for c in step), *self.shunned)))

    def _head(self, caption: Caption) -> Array:
        """Text rows (1 + others, D): the caption first."""
        one = (caption.text, *caption.further)
        others: list[tuple[str, ...]] = []
        if self.formula == "goal_baseline":
            others = [caption.baseline]
        elif self.formula != "cosine":
            others = [(text,) for text in caption.negatives]
        rows = self.embedder.texts(tuple(itertools.chain(one, *others)))
        ends = np.cumsum([len(one), *map(len, others)])[:-1]
        return np.stack([_mean(some) for some in np.split(rows, ends)])

    def raw(self, caption: Caption, rows: Array) -> Array:
        """Scores (n,) of unit rows (n, D), before calibration."""
        texts = self._heads[caption.text]
        if self.formula == "goal_baseline":
            return goal_baseline(rows, texts[0], texts[1], self.alpha)
        cosines = rows @ texts.T
        if self.formula == "cosine":
            return cosines[:, 0]
        if self.formula == "contrast":
            return cosines[:, 0] - cosines[:, 1:].mean(axis=1)
        logits = self.scale * cosines
        logits -= logits.max(axis=1, keepdims=True)
        return np.exp(logits[:, 0]) / np.exp(logits).sum(axis=1)

    def probability(self, caption: Caption, rows: Array, phi: Array) -> Array:
        """Returns the probability (n,) that a caption holds in unit rows (n, D); without a bias,
        one by phi (n,)."""
        if self.bias is None:
            return np.exp(GATE * np.minimum(phi - 1.0, 0.0))
        logit = self.scale * (rows @ self._heads[caption.text][0]) + self.bias
        return 1.0 / (1.0 + np.exp(-logit))

    def calibrate(self, segment: Segment) -> None:
        """Sets phi's scale from the scores of a segment's states; call once, before training."""
        for caption in self.captions:
            rows, _ = self.embedder.embed(segment, caption.arm_free)
            low, high = np.quantile(self.raw(caption, rows), QUANTILES)
            self.calibration[caption.text] = float(low), float(high)

    def score(self, segment: Segment) -> RewardOutput:
        """Returns the rewards (T, N) of a segment; see ``RewardModel.score``."""
        where = segment.valid
        phi: dict[str, Array] = {}
        held: dict[str, Array] = {}
        spread = np.zeros(int(where.sum()), np.float32)
        embedded: dict[bool, tuple[Array, Array]] = {}
        for caption in self.captions:
            if caption.arm_free not in embedded:
                embedded[caption.arm_free] = self.embedder.embed(segment, caption.arm_free)
            rows, doubt = embedded[caption.arm_free]
            spread = np.maximum(spread, doubt)
            raw = self.raw(caption, rows)
            low, high = self.calibration.get(caption.text, (0.0, 1.0))
            phi[caption.text] = progress((raw - low) / max(high - low, 1e-6))
            held[caption.text] = self.probability(caption, rows, phi[caption.text])
        worth = [
            compose(*([[of[c.text] for c in step] for step in part] for of in (phi, held)))
            for part in self.parts
        ]

        def full(values: Array) -> Array:
            out = np.zeros(where.shape, np.float32)
            out[where] = values
            return out

        total, done = full(worth[-1]), None
        if len(self.parts) > 1:
            there = [np.minimum.reduce([held[c.text] for c in part[-1]]) for part in self.parts]
            total, done = reward_in_sequence(
                np.stack([full(values) for values in worth]),
                np.stack([full(values) for values in there]) > DONE,
                np.array([plan_maximum(len(part)) for part in self.parts], np.float32),
                np.zeros(where.shape[1], int) if segment.done is None else segment.done,
            )
        if self.shunned:
            seen = np.any([full(held[c.text]) > SHUNNED for c in self.shunned], axis=0)
            total = np.where(seen, -sum(plan_maximum(len(part)) for part in self.parts), total)
        components = {text: full(values) for text, values in phi.items()}
        if self.term is not None:
            looks = {n: segment.signals[n] for n in self.term.signals if n != "action"}
            after, before = (
                {n: of[some][where] for n, of in looks.items()}
                for some in (slice(1, None), slice(None, -1))
            )
            [kept] = self.term(after, segment.action[where], before).values()
            components[TERM] = full(np.clip(np.nan_to_num(kept), 0.0, 1.0))
            total = total * components[TERM]
        return RewardOutput(
            reward=np.where(where, total, np.float32(0.0)),
            scored=where.copy(),
            components=components,
            uncertainty=full(spread),
            done=done,
            version=self.version,
        )


def _mean(rows: Array) -> Array:
    """The unit row (D,) of several wordings' (n, D); of one, that."""
    if len(rows) == 1:
        return rows[0]
    mean = rows.mean(axis=0)
    return mean / np.linalg.norm(mean)


def progress(share: Array) -> Array:
    """Returns phi of scores.

    Above the best known score phi keeps rising, so that better is always better, but slowly, so
    that a policy gains little by frames that score beyond all known ones.

    Args:
        share: (n,) the place of a score between poor (0) and best (1).

    Returns:
        (n,) the share, 0 below 0 and 1 + ln(share) above 1.
    """
    return np.where(share > 1.0, 1.0 + np.log(np.maximum(share, 1.0)), np.maximum(share, 0.0))


def goal_baseline(rows: Array, goal: Array, baseline: Array, alpha: float) -> Array:
    """VLM-RM's score (n,) of unit rows (n, D); alpha 0 is the cosine, 1 the line alone.

    With d the unit vector from baseline to goal and e = x - g:
    r = 1 - ((d.e)^2 + (1 - alpha)^2 |e - (d.e) d|^2) / 2.
    """
    line = goal - baseline
    line = line / max(float(np.linalg.norm(line)), 1e-9)
    error = rows - goal
    along = error @ line
    off = np.sum(error**2, axis=1) - along**2
    return 1.0 - 0.5 * (along**2 + (1.0 - alpha) ** 2 * off)


def compose(phi: Sequence[Sequence[Array]], held: Sequence[Sequence[Array]]) -> Array:
    """Returns the reward of a plan.

    One step is worth the least phi of its captions. Of several, each is worth half a point and the
    last one and a half: half of that for coming near, half for being there. A step counts as far as
    those before it are done, which means that they hold or that a later one does.

    Args:
        phi: For each step, the phi (n,) of each caption.
        held: For each step, the probability (n,) that each caption holds.

    Returns:
        (n,) rewards.
    """
    near = [np.minimum.reduce(list(step)) for step in phi]
    if len(near) == 1:
        return near[0]
    # Steps only lead to the last one: a cube that lies where it was to be put is held no more.
    done = [np.minimum.reduce(list(step)) for step in held]
    for i in reversed(range(len(done) - 1)):
        done[i] = np.maximum(done[i], done[i + 1])
    total, opened = np.zeros_like(near[0]), np.ones_like(near[0])
    for i, step in enumerate(near):
        worth = 1.5 if i == len(near) - 1 else 0.5
        total = total + worth * opened * 0.5 * (np.maximum(step, done[i]) + done[i])
        opened = opened * done[i]
    return total


def plan_maximum(steps: int) -> float:
    """Returns the reward of a plan of so many steps once all of it is met, without a phi above
    1."""
    return 1.0 if steps == 1 else 0.5 * (steps - 1) + 1.5


def reward_in_sequence(
    worth: Array, there: Array, most: Array, before: Array
) -> tuple[Array, Array]:
    """Returns the reward of parts that are wanted one after the other.

    A part is done from the step after the one in which its end was seen; the last one never is.

    Args:
        worth: (P, T, N) reward of each part's plan.
        there: (P, T, N) bool, where the end of a part is seen to hold.
        most: (P,) what a part is worth once done.
        before: (N,) int, parts done before the first step.

    Returns:
        (reward (T, N) float32, parts done (T, N) int).
    """
    parts, steps, rows = worth.shape
    paid = np.concatenate([[0.0], np.cumsum(most)[:-1]])
    number, row = np.minimum(before, parts - 1), np.arange(rows)
    reward, done = np.zeros((steps, rows), np.float32), np.zeros((steps, rows), int)
    for t in range(steps):
        now = worth[number, t, row]
        reward[t] = paid[number] + np.where(number < parts - 1, np.minimum(now, most[number]), now)
        number = np.minimum(number + there[number, t, row], parts - 1)
        done[t] = number
    return reward, done
