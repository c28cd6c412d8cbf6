"""Small networks on embeddings of one frozen encoder, and the files that they are kept in.

A file is safetensors with its card in the header, JSON: which encoder's embeddings it reads (a hash
of the weights), the scene and goal that it learned, from whose episodes, how well it does on
episodes held out, and the command. The card lies beside it as well, for people.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from reward_models.vision.atomic_files import write_tensors, write_text
from reward_models.vision.clip_score import QUANTILES
from reward_models.vision.config import HeadConfig

Array = np.ndarray

LOOK_EVERY = 50  # gradient steps between looks at what is held out


class Head(nn.Module):
    """``k`` embeddings to a number, or to several; (n, k, D) -> (n,) or (n, outputs)."""

    def __init__(
        self, dim: int, frames: int = 1, hidden: int = HeadConfig.hidden, outputs: int = 1
    ):
        super().__init__()
        self.frames, self.outputs = frames, outputs
        self.scale = dim**0.5  # a unit row's coordinates are small
        self.net = nn.Sequential(
            nn.Linear(dim * frames, hidden),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, outputs),
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns numbers (n,) or (n, outputs) of embeddings (n, k, D)."""
        out = self.net(self.scale * rows.flatten(1))
        return out[:, 0] if self.outputs == 1 else out

    def values(self, rows: Array) -> Array:
        """Returns numbers (n,) float32 of embeddings (n, k, D), however they are batched."""
        self.eval()
        with torch.inference_mode():
            x = torch.from_numpy(np.ascontiguousarray(rows, np.float32))
            return np.concatenate(
                [np.zeros(0, np.float32), *(self(part).numpy() for part in x.split(8192))]
            )


def sigmoid(x: Array) -> Array:
    """Returns 1 / (1 + exp(-x)) of x (n,), without overflow."""
    return 1.0 / (1.0 + np.exp(-np.clip(x, -60.0, 60.0)))


def untrained_head(
    config: HeadConfig, dim: int, frames: int = 1, member: int = 0, outputs: int = 1
) -> Head:
    """Returns a head with random weights, a function of the config's seed and ``member``."""
    torch.manual_seed(config.seed + member)
    return Head(dim, frames, config.hidden, outputs)


@dataclass(frozen=True)
class FitProblem:
    """What a loss makes of its data: networks, examples, and how a fit is judged.

    Attributes:
        models: The networks to fit, one per member of an ensemble.
        heads: The parts of the models that are saved.
        loss: The loss of a model on the examples (n,) int, a scalar.
        examples: For each model, the examples (n,) int that batches are sampled from.
        held: The examples (m,) int that the best weights are chosen by.
        settings: Figures that are known before the fit.
        judge: Returns the figures of the fitted models.
    """

    models: Sequence[nn.Module]
    heads: list[Head]
    loss: Callable[[Any, Array], torch.Tensor]
    examples: Sequence[Array]
    held: Array
    settings: dict[str, Any]
    judge: Callable[[], dict[str, Any]]


class ScorerLoss(Protocol):
    """What a kind of scorer is fitted to; its fields are the kind's settings."""

    def problem(self, data: Any, config: HeadConfig, /) -> FitProblem:
        """Returns the networks, examples and loss that fit ``data``."""
        ...


def fit_head(
    loss: ScorerLoss,
    data: Any,
    config: HeadConfig,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[list[Head], dict[str, Any]]:
    """Fits the networks of a scorer.

    Args:
        loss: What is fitted, a row of ``losses.LOSSES`` with its settings.
        data: What the loss reads: ``EmbeddedEpisodes``, or ``PreferencePairs``.
        config: Sizes and training of the networks.
        progress: Called with the share done, from 0 to 1.

    Returns:
        The fitted heads and the figures of the fit, both for ``save_scorer``.

    Raises:
        ValueError: The data lacks what the loss needs.
    """
    problem, fitted = loss.problem(data, config), {}
    count = len(problem.models)
    for number, (model, examples) in enumerate(zip(problem.models, problem.examples, strict=True)):
        fitted = _fit(
            model,
            problem.loss,
            examples,
            problem.held,
            config,
            lambda share, number=number: progress((number + share) / count),
        )
    of_fit = fitted if count == 1 else {}  # members of an ensemble have one each
    return problem.heads, {**problem.settings, **of_fit, **problem.judge()}


def _fit(
    model: nn.Module,
    loss: Callable[[Any, Array], torch.Tensor],
    fit: Array,
    held: Array,
    config: HeadConfig,
    progress: Callable[[float], None],
) -> dict[str, float]:
    """Lowers ``loss`` on batches of ``fit`` (n,), and keeps the weights that were best on ``held``
    (m,). Returns their loss held out and their step."""
    rng = np.random.default_rng(config.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    best, kept, step_of, waited = float("inf"), copy.deepcopy(model.state_dict()), 0, 0
    for step in range(1, config.steps + 1):
        model.train()
        value = loss(model, fit[rng.integers(len(fit), size=config.batch)])
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        if step % LOOK_EVERY and step < config.steps:
            continue
        model.eval()
        with torch.inference_mode():
            now = float(loss(model, held))
        waited += 1
        if now < best:
            best, kept, step_of, waited = now, copy.deepcopy(model.state_dict()), step, 0
        progress(step / config.steps)
        if waited > config.patience:
            break
    model.load_state_dict(kept)
    model.eval()
    return {"held_loss": best, "step": step_of}


def value_scale(values: Array) -> dict[str, float]:
    """Returns {"low", "high"} of values (n,): the 5 % and the 99.5 % quantile, which are reward 0
    and 1."""
    low, high = np.quantile(values, QUANTILES)
    return {"low": float(low), "high": float(high)}


def save_scorer(
    path: Path,
    heads: Sequence[Head],
    card: Mapping[str, Any],
    arrays: Mapping[str, Array] | None = None,
) -> None:
    """Writes a scorer.

    The file is replaced as a whole: a reader sees all of the new file or the old one.

    Args:
        path: The .safetensors file; the card is also written beside it as .json.
        heads: The fitted networks.
        card: What the scorer is and was trained on.
        arrays: What a refit needs, by name, of any shape (n, ...).
    """
    tensors = {
        f"{number}/{name}": tensor.contiguous()
        for number, head in enumerate(heads)
        for name, tensor in head.state_dict().items()
    }
    tensors |= {name: torch.from_numpy(array) for name, array in (arrays or {}).items()}
    write_tensors(path, tensors, {"card": json.dumps(card)})
    write_text(path.with_suffix(".json"), json.dumps(card, indent=1) + "\n")


def load_scorer(
    path: Path, kind: str, arrays: Sequence[str] = (), beside: Sequence[str] = ()
) -> tuple[list[Head], dict[str, Any], dict[str, Array]]:
    """Reads a scorer.

    Args:
        path: The .safetensors file.
        kind: The kind of scorer that it must be.
        arrays: Names of arrays (n, ...) that the file must have.
        beside: Names of arrays that it may have.

    Returns:
        (heads, card, arrays by name).

    Raises:
        ValueError: The file is missing, damaged, or of another kind.
    """
    train = f"train one: robo-rl reward train {kind} --task TASK --goal KEY --out FILE.safetensors"
    if not path.is_file():
        raise ValueError(f"scorer {path} does not exist; {train}")
    try:
        with safe_open(path, "pt") as file:
            card = json.loads((file.metadata() or {})["card"])
        tensors, heads = load_file(path), []
        if card["kind"] != kind:
            raise ValueError(f"{path} is a scorer of kind {card['kind']}, not {kind}; {train}")
        for number in range(card["heads"]):
            head = Head(card["dim"], card["frames"], card["hidden"], card.get("outputs", 1))
            prefix = f"{number}/"
            head.load_state_dict(
                {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            )
            heads.append(head.eval())
        there = [name for name in beside if name in tensors]
        found = {name: tensors[name].numpy() for name in (*arrays, *there)}
    except (SafetensorError, KeyError, TypeError, RuntimeError, json.JSONDecodeError) as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"{path} is not a scorer ({first}); {train}") from error
    return heads, card, found
