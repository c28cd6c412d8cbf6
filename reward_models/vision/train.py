"""Training of the embedded CLIP on frames whose captions are graded by the simulator's state.

Loss: SigLIP's sigmoid cross-entropy against the graded truth of every caption of every frame,
a pairwise ranking term that keeps scores ordered far from the goal where the truth is flat, and a
linear read-out of positions from the image embedding. Without that read-out a tower of this size
learns "some object" and no more: the score still correlates with distance, and names nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from reward_models.base import TaskCard
from reward_models.vision.atomic_files import write_tensors
from reward_models.vision.config import FitConfig
from reward_models.vision.graded_captions import caption_words
from reward_models.vision.tiny_clip import (
    LARGE,
    TinyClip,
    TinyClipConfig,
    TrainedCaptions,
    content_hash,
    tokenize,
)

Array = np.ndarray

UNASKED = ("qvel", "grip", "finger_middles", "_fingers")  # ends of signals that no read-out tells
PARTNERS = 3  # other frames of the batch that each frame is ranked against
TOLD_APART = 2_000  # frames at most, by which trainings are told apart
TOLD, KEPT_S = 20, 60.0  # steps from news to news; s from one state on disk to the next
ABSENT, ABSENT_WEIGHT = 0.005, 0.1  # of captions about what is not in a frame: truth, weight


class CaptionGrader(Protocol):
    """Captions, and how true each is of a state: the table's, or somebody's own."""

    texts: tuple[str, ...]

    def truth(
        self, signals: Mapping[str, Array], hidden: Mapping[str, Array] | None = None
    ) -> Array:
        """Returns how true each caption is.

        Args:
            signals: {name: (M, ...)} signals of the states.
            hidden: {pose signal: (M,) bool} what is not visible in their frames.

        Returns:
            (M, captions) in [0, 1].
        """
        ...


@dataclass(frozen=True)
class GradedStates:
    """What is known of ``m`` frames of one look of a scene."""

    texts: tuple[str, ...]  # captions that speak of them
    truth: Array  # (m, captions) in [0, 1]
    shown: Mapping[str, Array]  # {what: (m, k)} that a picture shows, for a read-out to tell

    def __len__(self) -> int:
        return len(self.truth)


def grade(
    captions: CaptionGrader,
    card: TaskCard,
    signals: Mapping[str, Array],
    hidden: Mapping[str, Array] | None = None,
) -> GradedStates:
    """States of ``signals`` {name: (m, ...)} as ``captions`` say them.

    Shown is where the thing of each colour and of each shape is, and every other signal that a
    read-out is asked for. Of what is ``hidden`` {pose signal: (m,) bool}, beyond a frame's edge,
    the table's captions are false and nothing is shown: else a CLIP would have to guess there, and
    a policy that carries a thing out of the picture would be paid for the guess.
    """
    truth = captions.truth(signals, hidden)
    if hidden:
        signals = {
            name: np.where(hidden[name][:, None], np.nan, signal) if name in hidden else signal
            for name, signal in signals.items()
        }
    things = {e.pose_signal: e for e in card.entities if e.colour and e.pose_signal}
    shown = {}
    for name, signal in signals.items():
        flat = signal.reshape(len(signal), -1)
        thing = things.get(name)
        if thing is None:
            if not name.endswith(UNASKED):
                shown[name] = flat
            continue
        for what in ("colour", "kind"):
            own = getattr(thing, what)
            if sum(getattr(e, what) == own for e in things.values()) == 1:
                shown[f"{what} {own}"] = flat
    return GradedStates(captions.texts, truth, shown)


@dataclass(frozen=True)
class CaptionTargets:
    """Training targets of ``M`` frames."""

    captions: tuple[str, ...]
    truth: Array  # (M, captions) in [0, 1]
    weight: Array  # (M, captions) of each in the loss
    targets: Array  # (M, k) about unit, what a linear read-out is to tell
    there: Array  # (M, k) 1 where there is such a thing, else 0

    @property
    def words(self) -> tuple[str, ...]:
        """Every word of the captions, once."""
        return tuple(dict.fromkeys(word for text in self.captions for word in caption_words(text)))


def caption_targets(seen: Sequence[GradedStates]) -> CaptionTargets:
    """Returns the training targets of frames.

    A caption about an object that is not in a frame is false there. Such captions are the majority,
    so they have a small weight in the loss.

    Args:
        seen: Graded states of each scene, in the order of the frames.

    Returns:
        One row for each frame and one column for each caption of any scene; the signals are
        standardised over all frames that have them.
    """
    texts = tuple(dict.fromkeys(text for part in seen for text in part.texts))
    column = {text: i for i, text in enumerate(texts)}
    rows = sum(map(len, seen))
    truth = np.full((rows, len(texts)), ABSENT, np.float32)
    weight = np.full((rows, len(texts)), ABSENT_WEIGHT, np.float32)
    # Arms have more joints or fewer: signals of one name and of two widths are two.
    told = [{(name, v.shape[1]): v for name, v in part.shown.items()} for part in seen]
    width = {name: name[1] for part in told for name in part}
    offset = dict(zip(width, np.cumsum([0, *width.values()]), strict=False))
    targets = np.full((rows, sum(width.values())), np.nan)
    first = 0
    for part, values in zip(seen, told, strict=True):
        here = slice(first, first := first + len(part))
        mine = [column[text] for text in part.texts]
        truth[here, mine], weight[here, mine] = part.truth, 1.0
        for name, value in values.items():
            targets[here, offset[name] : offset[name] + width[name]] = value
    there = np.isfinite(targets)
    spread = np.nanstd(targets, axis=0)
    targets = (targets - np.nanmean(targets, axis=0)) / np.where(spread > 1e-6, spread, 1.0)
    targets = np.where(there, targets, 0.0).clip(-3, 3)
    return CaptionTargets(
        texts, truth, weight, targets.astype(np.float32), there.astype(np.float32)
    )


def untrained_clip(lessons: CaptionTargets, size: int, **towers: Any) -> TinyClip:
    """Returns a model of random weights.

    Args:
        lessons: The captions, whose words the model has.
        size: Of the frames, px.
        towers: Sizes of ``TinyClipConfig``.
    """
    longest = max(len(caption_words(text)) for text in lessons.captions)
    sizes = TinyClipConfig(size=size, words=lessons.words, context=longest + 1, **towers)
    return TinyClip(sizes, taught=TrainedCaptions(lessons.captions))


def fit(
    frames: Array,
    lessons: CaptionTargets,
    config: FitConfig,
    progress: Callable[[float, dict[str, float]], None] | None = None,
    kept: Path | None = None,
    start: TinyClip | None = None,
) -> TinyClip:
    """Trains a TinyClip.

    Args:
        frames: (M, H, W, 3) uint8.
        lessons: The captions, and how true they are of each frame.
        config: Sizes of the training.
        progress: Called with the share done and the losses.
        start: A model whose weights, sizes and words the training begins with.
        kept: A file that the training is saved to once a minute and resumed from, to the same
            weights as without a break.

    Raises:
        ValueError: The lessons have words that ``start`` does not know, or ``kept`` is of another
            training.
    """
    fitting = _Fitting(frames, lessons, config, start)
    before = fitting.load(kept) if kept is not None and kept.exists() else 0.0
    begun = saved = time.monotonic() - before
    done = 0.0
    while done < 1.0:
        elapsed = time.monotonic() - begun
        if config.steps:
            done = fitting.steps / config.steps
        else:
            done = elapsed / (60.0 * config.minutes)
        losses = fitting.step(min(done, 1.0))
        if progress is not None and fitting.steps % TOLD == 0:
            told = {name: loss.item() for name, loss in losses.items()}
            progress(min(done, 1.0), {"step": fitting.steps, **told})
        if kept is not None and time.monotonic() - saved > KEPT_S:
            fitting.save(kept, time.monotonic() - begun)
            saved = time.monotonic()
    return fitting.model.eval()


class _Fitting:
    """Model, read-out and optimiser on the way. What a step draws is a function of its number."""

    def __init__(
        self, frames: Array, lessons: CaptionTargets, config: FitConfig, start: TinyClip | None
    ):
        torch.manual_seed(config.seed)
        self._config, self.steps = config, 0
        self._device = device = torch.device(config.device)
        if start is None:
            self.model = untrained_clip(lessons, frames.shape[1], **(LARGE if config.large else {}))
        else:
            self.model = TinyClip(start.config, taught=TrainedCaptions(lessons.captions))
            self.model.load_state_dict(start.state_dict())
        sizes = self.model.config
        self.model.to(device).eval()
        self.model.to(memory_format=torch.channels_last)
        told = frames, lessons.targets, lessons.there, lessons.truth, lessons.weight
        # Where the batches are worked on: else a GPU waits for them to be gathered.
        self._frames, self._targets, self._there, self._truths, self._weights = (
            torch.from_numpy(a).to(device) for a in told
        )
        width = self.model.config.embed_dim
        self._readout = torch.nn.Linear(width, lessons.targets.shape[1]).to(device)
        sees = [*self.model.clip.visual.parameters(), *self._readout.parameters()]
        named = self.model.named_parameters()
        reads = [p for name, p in named if not name.startswith("clip.visual.")]
        self._learned = [*sees, *reads]
        self._optimizer = torch.optim.AdamW(
            [{"params": sees}, {"params": reads}],
            weight_decay=config.weight_decay,
            betas=(0.9, 0.98),
            fused=True,
        )
        self._tokens = tokenize(lessons.captions, sizes.context, sizes.words).to(device)
        bf16 = config.dtype == "bfloat16"
        self._amp = torch.autocast(device.type, torch.bfloat16, enabled=bf16)
        begun = "" if start is None else content_hash(start)
        # Without dtype, which files under way had before it was an option; ``load`` holds it apart.
        options = {name: value for name, value in asdict(config).items() if name != "dtype"}
        about = json.dumps([options, lessons.captions, frames.shape, begun])
        self._of = hashlib.blake2b(about.encode(), digest_size=16)
        self._of.update(np.ascontiguousarray(frames[:: max(1, len(frames) // TOLD_APART)]))
        self._order, self._epoch = np.empty(0, int), -1
        self.model.train()

    def step(self, done: float) -> dict[str, torch.Tensor]:
        """One step of the optimiser at ``done`` of the whole; its losses."""
        config, device = self._config, self._device
        rng = np.random.default_rng([config.seed, 1, self.steps])
        rate = min(1.0, (self.steps + 1) / 100) * 0.5 * (1 + np.cos(np.pi * done))
        rates = config.learning_rate, config.text_learning_rate
        for group, highest in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = highest * max(rate, 0.01)
        ids, total = torch.from_numpy(self._drawn()).to(device), len(self._tokens)
        batch = photometric(self._frames[ids], rng)
        # First of all what is said of what these frames show.
        order = torch.from_numpy(rng.permutation(total)).to(device)
        said = (self._weights[ids] == 1.0).any(dim=0)[order]
        asked = order[torch.argsort(~said, stable=True)[: min(config.captions, total)]]
        truth, weight = (a[ids][:, asked] for a in (self._truths, self._weights))
        with self._amp:
            raw = self.model.images(batch)
            # A processor's fused attention takes three times as long for a dozen words as this.
            with sdpa_kernel(SDPBackend.MATH) if device.type == "cpu" else nullcontext():
                text = self.model.texts(self._tokens[asked])
        raw, text = raw.float(), text.float()
        logits = self.model.scale * F.normalize(raw, dim=-1) @ text.T + self.model.bias
        match = F.binary_cross_entropy_with_logits(logits, truth, weight, reduction="sum")
        # Cross-entropy against soft truth has a floor; take it off so that 0 means perfect.
        floor = F.binary_cross_entropy(truth, truth, weight, reduction="sum")
        match = (match - floor) / weight.sum()
        rank = sum(_rank(logits, truth, weight, rng) for _ in range(PARTNERS)) / PARTNERS
        seen = self._there[ids]
        place = F.smooth_l1_loss(seen * self._readout(raw), seen * self._targets[ids])
        loss = 4.0 * match + config.rank_weight * rank + config.position_weight * place
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._learned, 1.0)
        self._optimizer.step()
        with torch.no_grad():
            self.model.clip.logit_scale.clamp_(max=float(np.log(100.0)))
        self.steps += 1
        return {"match": match, "rank": torch.as_tensor(rank), "position": place}

    def _drawn(self) -> Array:
        """The frames of this step: each once, in another order each time all were seen."""
        size = self._config.batch
        epoch, place = divmod(self.steps, max(1, len(self._frames) // size))
        if epoch != self._epoch:
            rng = np.random.default_rng([self._config.seed, 0, epoch])
            self._order, self._epoch = rng.permutation(len(self._frames)), epoch
        return np.sort(self._order[place * size : (place + 1) * size])

    # What is under way.
    def _tensors(self) -> dict[str, torch.Tensor]:
        """Everything that a step changes, by name; live."""
        found = {f"model/{k}": v for k, v in self.model.state_dict().items()}
        found |= {f"readout/{k}": v for k, v in self._readout.state_dict().items()}
        for i, parameter in enumerate(self._learned):
            moments = self._optimizer.state.get(parameter, {})
            found |= {f"moments/{i}/{k}": v for k, v in moments.items()}
        return found

    def save(self, path: Path, seconds: float) -> None:
        """Writes it whole, or leaves what was there; ``seconds`` it has taken until now."""
        tensors = {k: v.detach().cpu().contiguous().clone() for k, v in self._tensors().items()}
        meta = {"of": self._of.hexdigest(), "steps": str(self.steps), "seconds": str(seconds)}
        meta["bf16"] = str(self._config.dtype == "bfloat16")
        write_tensors(path, tensors, meta)

    def load(self, path: Path) -> float:
        """Goes on from what ``save`` wrote; the seconds that it had taken."""
        with safe_open(path, "pt") as file:
            meta = file.metadata() or {}
        if meta.get("of") != self._of.hexdigest():
            raise ValueError(
                f"{path} was written by a training with other options or frames: delete it, or "
                "write to another file"
            )
        begun = "bfloat16" if meta["bf16"] == "True" else "float32"
        if begun != self._config.dtype:
            raise ValueError(
                f"{path} was started with dtype {begun}, got {self._config.dtype}: the dtype of a "
                f"resumed training cannot change; give --dtype {begun}, or delete the file"
            )
        saved = load_file(path)
        with torch.no_grad():
            for name, tensor in saved.items():
                what, _, rest = name.partition("/")
                if what == "moments":
                    number, _, moment = rest.partition("/")
                    parameter = self._learned[int(number)]
                    like = tensor.to(parameter.device)
                    if like.dim() == parameter.dim() == 4:  # as the weights lie in memory
                        like = like.contiguous(memory_format=torch.channels_last)
                    self._optimizer.state[parameter][moment] = like
            now = self._tensors()
            for name, tensor in saved.items():
                if not name.startswith("moments/"):
                    now[name].copy_(tensor)
        self.steps = int(meta["steps"])
        return float(meta["seconds"])


def _rank(
    logits: torch.Tensor, truth: torch.Tensor, weight: torch.Tensor, rng: np.random.Generator
) -> torch.Tensor:
    """Logistic loss of the order of logits (B, C) between each frame and one other, per caption."""
    partner = torch.roll(torch.arange(len(truth)), int(rng.integers(1, len(truth))))
    both = torch.minimum(weight, weight[partner])
    apart = truth - truth[partner]
    loss = F.softplus(-torch.sign(apart) * (logits - logits[partner]))
    return (loss * both * (apart.abs() > 1e-3)).sum() / both.sum()


def photometric(frames: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Returns frames (k, H, W, 3) uint8 with each channel's gain and offset changed a little."""
    k = len(frames)
    gain = torch.as_tensor(rng.uniform(0.9, 1.1, (k, 1, 1, 3)), dtype=torch.float32)
    offset = torch.as_tensor(rng.uniform(-8, 8, (k, 1, 1, 1)), dtype=torch.float32)
    gain, offset = gain.to(frames.device), offset.to(frames.device)
    return (frames.float() * gain + offset).clamp_(0, 255).to(torch.uint8)
