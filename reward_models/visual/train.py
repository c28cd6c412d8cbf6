"""Training of the embedded CLIP on frames whose captions are graded by the simulator's state.

Loss: SigLIP's sigmoid cross-entropy against the graded truth of every caption of every frame,
a pairwise ranking term that keeps scores ordered far from the goal where the truth is flat, and a
linear read-out of positions from the image embedding. Without that read-out a tower of this size
learns "some object" and no more: the score still correlates with distance, and names nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from reward_models.config import FitConfig
from reward_models.visual.captions import CAPTIONS, COLOURS, KINDS, grade
from reward_models.visual.encoders import fastest_dtype
from reward_models.visual.graded import Graded
from reward_models.visual.relations import Facts
from reward_models.visual.tiny_clip import WORDS, TinyClip, TinyClipConfig, tokenize

Array = np.ndarray

PARTNERS = 3  # other frames of the batch that each frame is ranked against
SPREAD = 8.0  # 1/m, makes a place on a table about unit


def positions(facts: Facts) -> tuple[Array, Array]:
    """Read-out targets (M, 18) and whether each is there (M, 18): tip, each colour's xy and each
    shape's xy, pointing; about unit, from the middle of where they were seen."""
    columns, there = [SPREAD * (facts.tip - facts.tip.mean(axis=0))], [np.ones((len(facts), 3))]
    middle = facts.position[..., :2].mean(axis=(0, 1))
    for index, ids in ((range(len(COLOURS)), facts.colour), (range(len(KINDS)), facts.kind)):
        for i in index:
            slot = (ids == i).argmax(axis=1)
            columns.append(SPREAD * (facts.position[np.arange(len(facts)), slot, :2] - middle))
            there.append(np.repeat((ids == i).any(axis=1, keepdims=True), 2, axis=1))
    columns.append(facts.pointing)
    there.append(np.ones((len(facts), 3)))
    return (
        np.concatenate(columns, axis=1).astype(np.float32),
        np.concatenate(there, axis=1).astype(np.float32),
    )


@dataclass(frozen=True)
class Lessons:
    """What ``M`` frames are taught with."""

    captions: tuple[str, ...]
    truth: Array  # (M, captions) in [0, 1]
    weight: Array  # (M, captions) of each in the loss
    targets: Array  # (M, k) about unit, what a linear read-out is to tell
    there: Array  # (M, k) 1 where there is such a thing, else 0
    words: tuple[str, ...] = WORDS
    own: bool = False  # the captions are somebody's own, not those of the tabletop


def tabletop_lessons(facts: Facts) -> Lessons:
    """Every caption of the tabletop, graded by where things are."""
    return Lessons(CAPTIONS, *grade(facts), *positions(facts))


def own_lessons(graded: Graded, signals: Mapping[str, Array]) -> Lessons:
    """Somebody's own captions of states {name: (M, ...)}; the read-out tells all the signals."""
    truth = graded.truth(signals)
    flat = np.concatenate([s.reshape(len(s), -1) for s in signals.values()], axis=1)
    spread = flat.std(axis=0)
    flat = ((flat - flat.mean(axis=0)) / np.where(spread > 1e-6, spread, 1.0)).clip(-3, 3)
    targets = flat.astype(np.float32)
    every, all_there = np.ones_like(truth), np.ones_like(targets)
    return Lessons(graded.texts, truth, every, targets, all_there, graded.words, own=True)


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
    sizes = TinyClipConfig(size=frames.shape[1], words=lessons.words)
    taught = lessons.captions if lessons.own else ()
    model = TinyClip(sizes, captions=taught).to(device).eval()
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
    captions = max(2, round(config.captions * total))
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
