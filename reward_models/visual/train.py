"""Training of the embedded CLIP on frames whose captions are graded by the simulator's state.

Loss: SigLIP's sigmoid cross-entropy against the graded truth of every caption of every frame,
a pairwise ranking term that keeps scores ordered far from the goal where the truth is flat, and a
linear read-out of positions from the image embedding. Without that read-out a tower of this size
learns "some object" and no more: the score still correlates with distance, and names nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch.nn import functional as F

from reward_models.base import TaskCard
from reward_models.config import FitConfig
from reward_models.visual.encoders import fastest_dtype
from reward_models.visual.graded import HIDDEN, words_of
from reward_models.visual.tiny_clip import TinyClip, TinyClipConfig, tokenize

Array = np.ndarray

PARTNERS = 3  # other frames of the batch that each frame is ranked against
ABSENT, ABSENT_WEIGHT = 0.005, 0.1  # of captions about what is not in a frame: truth, weight


class Captions(Protocol):
    """Captions, and how true each is of a state: the table's, or somebody's own."""

    texts: tuple[str, ...]

    def truth(self, signals: Mapping[str, Array]) -> Array:
        """(M, captions) in [0, 1] of states {name: (M, ...)}."""
        ...


@dataclass(frozen=True)
class GradedStates:
    """States of one look of a scene: what they measure, and the captions that speak of them."""

    captions: Captions
    card: TaskCard
    signals: Mapping[str, Array]  # {name: (m, ...)}

    def __len__(self) -> int:
        return len(next(iter(self.signals.values())))

    def readout(self) -> dict[str, Array]:
        """{what: (m, k)} that a picture shows: where the thing of each colour and of each shape is,
        and every other signal that is not hidden in it."""
        things = {e.pose_signal: e for e in self.card.entities if e.colour and e.pose_signal}
        out = {}
        for name, signal in self.signals.items():
            flat = signal.reshape(len(signal), -1)
            thing = things.get(name)
            if thing is None:
                if not name.endswith(HIDDEN):
                    out[name] = flat
                continue
            for what in ("colour", "kind"):
                own = getattr(thing, what)
                if sum(getattr(e, what) == own for e in things.values()) == 1:
                    out[f"{what} {own}"] = flat
        return out


@dataclass(frozen=True)
class Lessons:
    """What ``M`` frames are taught with."""

    captions: tuple[str, ...]
    truth: Array  # (M, captions) in [0, 1]
    weight: Array  # (M, captions) of each in the loss
    targets: Array  # (M, k) about unit, what a linear read-out is to tell
    there: Array  # (M, k) 1 where there is such a thing, else 0

    @property
    def words(self) -> tuple[str, ...]:
        """Every word of the captions, once."""
        return tuple(dict.fromkeys(word for text in self.captions for word in words_of(text)))


def lessons(seen: Sequence[GradedStates]) -> Lessons:
    """The lessons of frames whose states are ``seen``, one part after the other.

    A caption about something that is not in a frame is false there; such captions weigh little, for
    they are the majority.
    """
    texts = tuple(dict.fromkeys(text for part in seen for text in part.captions.texts))
    column = {text: i for i, text in enumerate(texts)}
    rows = sum(map(len, seen))
    truth = np.full((rows, len(texts)), ABSENT, np.float32)
    weight = np.full((rows, len(texts)), ABSENT_WEIGHT, np.float32)
    told = [part.readout() for part in seen]
    width = {name: values.shape[1] for part in told for name, values in part.items()}
    offset = dict(zip(width, np.cumsum([0, *width.values()]), strict=False))
    targets = np.full((rows, sum(width.values())), np.nan)
    first = 0
    for part, values in zip(seen, told, strict=True):
        here = slice(first, first := first + len(part))
        mine = [column[text] for text in part.captions.texts]
        truth[here, mine], weight[here, mine] = part.captions.truth(part.signals), 1.0
        for name, value in values.items():
            targets[here, offset[name] : offset[name] + width[name]] = value
    there = np.isfinite(targets)
    spread = np.nanstd(targets, axis=0)
    targets = (targets - np.nanmean(targets, axis=0)) / np.where(spread > 1e-6, spread, 1.0)
    targets = np.where(there, targets, 0.0).clip(-3, 3)
    return Lessons(texts, truth, weight, targets.astype(np.float32), there.astype(np.float32))


def fit(
    frames: Array,
    lessons: Lessons,
    config: FitConfig,
    progress: Callable[[float, dict[str, float]], None] | None = None,
) -> TinyClip:
    """A TinyClip trained on ``frames`` (M, H, W, 3) uint8; ``progress(share done, losses)``."""
    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    device = torch.device(config.device)
    longest = max(len(words_of(text)) for text in lessons.captions)
    sizes = TinyClipConfig(size=frames.shape[1], words=lessons.words, context=longest + 1)
    model = TinyClip(sizes, captions=lessons.captions).to(device).eval()
    model.to(memory_format=torch.channels_last)
    targets, there = torch.from_numpy(lessons.targets), torch.from_numpy(lessons.there)
    readout = torch.nn.Linear(model.config.embed_dim, targets.shape[1]).to(device)
    sees = [*model.clip.visual.parameters(), *readout.parameters()]
    reads = [p for name, p in model.named_parameters() if not name.startswith("clip.visual.")]
    rates = (config.learning_rate, config.text_learning_rate)
    optimizer = torch.optim.AdamW(
        [{"params": sees}, {"params": reads}],
        weight_decay=config.weight_decay,
        betas=(0.9, 0.98),
        fused=True,
    )
    tokens = tokenize(lessons.captions, sizes.context, sizes.words).to(device)
    total = len(lessons.captions)
    captions = min(config.captions, total)
    truths, weights = torch.from_numpy(lessons.truth), torch.from_numpy(lessons.weight)
    # A processor without bf16 instructions emulates them, twelve times slower than fp32.
    sample = torch.from_numpy(frames[: config.batch]).to(device)
    dtype = fastest_dtype(lambda: model.images(sample), device)
    amp = torch.autocast(device.type, torch.bfloat16, enabled=dtype == torch.bfloat16)
    start, step, done = time.monotonic(), 0, 0.0
    order = rng.permutation(len(frames))
    cursor = 0
    model.train()
    while done < 1.0:
        if cursor + config.batch > len(order):
            order, cursor = rng.permutation(len(frames)), 0
        ids = np.sort(order[cursor : cursor + config.batch])
        cursor += config.batch
        done = (
            step / config.steps
            if config.steps
            else (time.monotonic() - start) / (60.0 * config.minutes)
        )
        rate = min(1.0, (step + 1) / 100) * 0.5 * (1 + np.cos(np.pi * min(done, 1.0)))
        for group, highest in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = highest * max(rate, 0.01)
        batch = photometric(torch.from_numpy(frames[ids]).to(device), rng)
        asked = torch.from_numpy(rng.permutation(total)[:captions])
        truth, weight = (a[ids][:, asked].to(device) for a in (truths, weights))
        with amp:
            raw = model.images(batch)
            text = model.texts(tokens[asked])
        raw, text = raw.float(), text.float()
        logits = model.scale * F.normalize(raw, dim=-1) @ text.T + model.bias
        match = F.binary_cross_entropy_with_logits(logits, truth, weight, reduction="sum")
        # Cross-entropy against soft truth has a floor; take it off so that 0 means perfect.
        floor = F.binary_cross_entropy(truth, truth, weight, reduction="sum")
        match = (match - floor) / weight.sum()
        rank = sum(_rank(logits, truth, weight, rng) for _ in range(PARTNERS)) / PARTNERS
        seen = there[ids].to(device)
        place = F.smooth_l1_loss(seen * readout(raw), seen * targets[ids].to(device))
        loss = 4.0 * match + config.rank_weight * rank + config.position_weight * place
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*sees, *reads], 1.0)
        optimizer.step()
        with torch.no_grad():
            model.clip.logit_scale.clamp_(max=float(np.log(100.0)))
        step += 1
        if progress is not None and step % 20 == 0:
            progress(
                min(done, 1.0),
                {
                    "step": step,
                    "match": match.item(),
                    "rank": rank.item(),
                    "position": place.item(),
                },
            )
    return model.eval()


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
    """Frames with each channel's gain and offset changed a little, uint8."""
    k = len(frames)
    gain = torch.as_tensor(rng.uniform(0.9, 1.1, (k, 1, 1, 3)), dtype=torch.float32)
    offset = torch.as_tensor(rng.uniform(-8, 8, (k, 1, 1, 1)), dtype=torch.float32)
    gain, offset = gain.to(frames.device), offset.to(frames.device)
    return (frames.float() * gain + offset).clamp_(0, 255).to(torch.uint8)
