"""Distillation: from a task's signals to the frame EMBEDDING, so that no frame need be rendered.

An ensemble of small networks is trained once per scene on rendered and encoded states (the idea of
GROVE's Pose2CLIP, arXiv:2504.04191). Where signals are points, the networks also see the points
from one another: what a sentence says is a relation, and a centimetre between two objects is lost
in the spread of where they are on the table. Every sentence about that scene is then scored at
simulation speed. Where a scorer has no embedding the same ensemble maps signals to its score. The
members' disagreement says where new frames are worth their price.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch.nn import functional as F

from reward_models.vision.atomic_files import write_tensors
from reward_models.vision.config import DistillConfig

Array = np.ndarray

NEAR = (0.03, 0.10)  # m, ranges over which the nearness of two points is told
FARTHEST = 5.0  # deviations from the mean, to which inputs are clipped


class Surrogate:
    """Signals {name: (n, ...)} -> the mean of the ensemble's outputs (n, D) and its spread (n,).

    ``points`` are the names of signals (n, ..., 3) that are points, in m and in one frame.
    ``unit``: outputs are unit rows (embeddings); otherwise they are plain numbers (scores).
    """

    def __init__(
        self,
        names: tuple[str, ...],
        dim: int,
        config: DistillConfig | None = None,
        unit: bool = True,
        points: tuple[str, ...] = (),
    ):
        self.names, self.dim, self.config, self.unit = names, dim, config or DistillConfig(), unit
        self.points = points
        self.version = 0
        self._mean = self._std = torch.zeros(0)
        self._weights: list[torch.Tensor] = []
        self._inputs = torch.zeros(0)
        self._targets = torch.zeros(0)

    def flatten(self, signals: Mapping[str, Array]) -> Array:
        """Inputs (n, d) f32 of signals {name: (n, ...)}: the signals, then the points' relations.

        Raises ValueError on a missing signal.
        """
        missing = [name for name in self.names if name not in signals]
        if missing:
            raise ValueError(
                f"signals lack {', '.join(missing)}; given: {', '.join(signals)}. "
                "The distilled model was fitted for another task or arm"
            )
        arrays = {name: np.asarray(signals[name], np.float32) for name in self.names}
        rows = {name: a.reshape(len(a), math.prod(a.shape[1:])) for name, a in arrays.items()}
        columns = list(rows.values())
        places = [
            at for name in self.points for at in np.split(rows[name], rows[name].shape[1] // 3, 1)
        ]
        for first, second in itertools.combinations(places, 2):
            columns += offset_features(first - second)
        return np.concatenate(columns, axis=1)

    def fit(
        self,
        signals: Mapping[str, Array],
        targets: Array,
        progress: Callable[[float], None] | None = None,
    ) -> dict[str, float]:
        """Adds labelled states and trains; the first call also sets the input scaling.

        Args:
            signals: {name: (n, k)} signals of the states.
            targets: (n, D) embeddings of their frames.
            progress: Called with the share done, from 0 to 1.

        Returns:
            {"loss": of the last step}.
        """
        x = torch.from_numpy(self.flatten(signals))
        y = torch.from_numpy(np.asarray(targets, np.float32).reshape(len(x), self.dim))
        first = not self._weights
        if first:
            self._mean, self._std = x.mean(0), x.std(0).clamp_min(1e-3)
            self._inputs, self._targets = x, y
            self._weights = self._initial(x.shape[1])
        else:
            self._inputs = torch.cat([self._inputs, x])
            self._targets = torch.cat([self._targets, y])
        self.version += 1
        steps = self.config.steps if first else self.config.refit_steps
        return {"loss": self._train(steps, 1.0 if first else 0.3, progress)}

    def _scaled(self, x: torch.Tensor) -> torch.Tensor:
        return ((x - self._mean) / self._std).clamp_(-FARTHEST, FARTHEST)

    def _initial(self, inputs: int) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(self.config.seed)
        sizes = [inputs, *[self.config.width] * 3, self.dim]
        weights = []
        for i, o in zip(sizes[:-1], sizes[1:], strict=True):
            bound = (2.0 / i) ** 0.5
            w = torch.randn(self.config.members, i, o, generator=generator) * bound
            weights += [w, torch.zeros(self.config.members, 1, o)]
        return weights

    def _forward(self, x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
        """Outputs (members, n, D) of scaled inputs (n, d) or (members, n, d)."""
        h = x if x.ndim == 3 else x.expand(self.config.members, *x.shape)
        for i in range(0, len(weights), 2):
            h = torch.baddbmm(weights[i + 1], h, weights[i])
            if i + 2 < len(weights):
                h = F.silu(h)
        return h

    def _train(self, steps: int, rate: float, progress: Callable[[float], None] | None) -> float:
        device = torch.device(self.config.device)
        x = self._scaled(self._inputs).to(device)
        y = self._targets.to(device)
        weights = [w.clone().to(device).requires_grad_(True) for w in self._weights]
        optimizer = torch.optim.Adam(weights, lr=1.0)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, rate * self.config.learning_rate, total_steps=steps
        )
        generator = torch.Generator().manual_seed(self.config.seed + self.version)
        members, loss_mean = self.config.members, 0.0
        for step in range(steps):
            # Each member sees its own batches: disagreement needs different data.
            ids = torch.randint(len(x), (members, self.config.batch), generator=generator)
            out, target = self._forward(x[ids], weights), y[ids]
            if self.unit:
                loss = ((F.normalize(out, dim=-1) - target) ** 2).sum(-1).mean(1)
                loss = loss + 0.05 * ((out - target) ** 2).sum(-1).mean(1)
            else:
                loss = ((out - target) ** 2).sum(-1).mean(1)
            optimizer.zero_grad(set_to_none=True)
            loss.sum().backward()
            optimizer.step()
            schedule.step()
            loss_mean = loss.detach().mean().item()
            if progress is not None and step % 50 == 0:
                progress(step / steps)
        self._weights = [w.detach().cpu() for w in weights]
        return loss_mean

    def predict(self, signals: Mapping[str, Array]) -> tuple[Array, Array]:
        """Predicts embeddings.

        Args:
            signals: {name: (n, k)} signals of states.

        Returns:
            (mean (n, D), spread (n,)): the mean is a unit row again, and the spread is the members'
            root-mean-square distance from it.

        Raises:
            ValueError: The model is not fitted.
        """
        if not self._weights:
            raise ValueError("this distilled model is not fitted; call fit() or load() first")
        x = torch.from_numpy(self.flatten(signals))
        means, spreads = [], []
        with torch.inference_mode():
            for part in x.split(8192):
                out = self._forward(self._scaled(part), self._weights)
                if self.unit:
                    out = F.normalize(out, dim=-1)
                mean = out.mean(0)
                spreads.append(((out - mean) ** 2).sum(-1).mean(0).sqrt())
                means.append(F.normalize(mean, dim=-1) if self.unit else mean)
        return torch.cat(means).numpy(), torch.cat(spreads).numpy()

    def remember(self, signals: Mapping[str, Array], targets: Array) -> None:
        """Puts labelled states back after ``load``, signals {name: (n, k)} and targets (n, D), so
        that a refit does not forget them."""
        self._inputs = torch.from_numpy(self.flatten(signals))
        self._targets = torch.from_numpy(np.asarray(targets, np.float32))

    def state_dict(self) -> dict[str, Array]:
        """Returns weights, labels (n, D) and version, for a checkpoint."""
        arrays = {f"w{i}": w.numpy() for i, w in enumerate(self._weights)}
        return arrays | {
            "mean": self._mean.numpy(),
            "std": self._std.numpy(),
            "inputs": self._inputs.numpy(),
            "targets": self._targets.numpy(),
            "version": np.array(self.version),
        }

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the weights, labels (n, D) and version of ``state_dict()``.

        Raises:
            ValueError: They are of a model of other sizes.
        """
        weights = [torch.from_numpy(saved[f"w{i}"].copy()) for i in range(len(self._weights))]
        if [w.shape for w in weights] != [w.shape for w in self._weights]:
            raise ValueError("the saved distilled model has other sizes; start a new run")
        self._weights, self.version = weights, int(saved["version"])
        self._mean, self._std, self._inputs, self._targets = (
            torch.from_numpy(saved[name].copy()) for name in ("mean", "std", "inputs", "targets")
        )

    def save(self, path: Path, card: Mapping[str, object]) -> None:
        """Writes weights and labels' count to ``path`` (safetensors), the card in its header."""
        tensors = {f"w{i}": w.contiguous() for i, w in enumerate(self._weights)}
        tensors |= {"mean": self._mean, "std": self._std}
        meta = {
            "names": json.dumps(self.names),
            "points": json.dumps(self.points),
            "unit": json.dumps(self.unit),
            "version": str(self.version),
            "card": json.dumps(dict(card)),
        }
        write_tensors(path, tensors, meta)

    @classmethod
    def load(cls, path: Path, config: DistillConfig | None = None) -> tuple[Surrogate, dict]:
        """Reads a distilled encoder.

        Returns:
            (surrogate, card).

        Raises:
            ValueError: The file does not hold one.
        """
        config = config or DistillConfig()
        try:
            with safe_open(path, "pt") as file:
                meta = file.metadata() or {}
            tensors = load_file(path)
            count = sum(name.startswith("w") for name in tensors)
            names, points = (tuple(json.loads(meta[key])) for key in ("names", "points"))
            out = cls(names, 1, config, json.loads(meta["unit"]), points)
            out._weights = [tensors[f"w{i}"] for i in range(count)]
            out.dim, out.version = out._weights[-1].shape[-1], int(meta["version"])
            out._mean, out._std = tensors["mean"], tensors["std"]
            if out._weights[0].shape[0] != config.members:
                raise ValueError(f"it has an ensemble of {out._weights[0].shape[0]} members")
            return out, json.loads(meta["card"])
        except (SafetensorError, KeyError, IndexError, ValueError) as error:
            raise ValueError(
                f"{path} is not a distilled reward model ({error}); delete it to fit it again"
            ) from error


def offset_features(offset: Array) -> list[Array]:
    """Returns the features of offsets (n, 3) m: themselves, length (n, 1), direction (n, 3) and
    nearness (n, 1)."""
    length = np.linalg.norm(offset, axis=1, keepdims=True)
    return [offset, length, offset / (length + 0.02), *(np.exp(-length / near) for near in NEAR)]
