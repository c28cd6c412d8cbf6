"""Settings of the trainable models; read without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

NumberFormat = Literal["float32", "bfloat16"]  # that an encoder computes in
EMBEDDED = Path(__file__).parent / "weights" / "embedded.safetensors"
ANY_THINGS = "any"  # of which a model is, in place of those on one table


def at_least(config: Any, least: int, *names: str) -> None:
    """Checks settings of a config.

    Args:
        config: The config.
        least: The smallest allowed value.
        names: The settings.

    Raises:
        ValueError: A setting is smaller, or no number.
    """
    for name in names:
        if not getattr(config, name) >= least:
            raise ValueError(f"{name} must be at least {least}, got {getattr(config, name)}")


@dataclass(frozen=True, kw_only=True)
class DistillConfig:
    """Sizes and training of the ensemble."""

    members: int = 3  # networks of the ensemble
    width: int = 256  # units of each hidden layer
    steps: int = 5000  # gradient steps of the initial fit
    refit_steps: int = 800  # gradient steps of a refit after new labels
    batch: int = 256  # states per gradient step
    learning_rate: float = 8e-3  # peak learning rate
    seed: int = 0  # random seed of weights and batches
    device: str = "cpu"  # device of the ensemble: cpu or cuda

    def __post_init__(self) -> None:
        at_least(self, 1, "members", "width", "steps", "refit_steps", "batch")
        at_least(self, 0, "learning_rate", "seed")


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """How the embedded CLIP is trained."""

    minutes: float = 12.0  # min, wall time of the training loop
    steps: int = 0  # gradient steps; 0: as many as fit into minutes
    batch: int = 128  # frames per gradient step
    learning_rate: float = 5e-3  # peak learning rate of the image tower
    text_learning_rate: float = 2.5e-3  # peak learning rate of the text tower
    captions: int = 512  # largest number of captions sampled for each gradient step
    weight_decay: float = 0.02  # weight decay of AdamW
    rank_weight: float = 1.0  # weight of the loss on the order of captions
    position_weight: float = 2.0  # weight of the loss on positions of objects
    large: bool = False  # use wider towers, for many scenes
    seed: int = 0  # random seed of weights and batches
    device: str = "cpu"
    dtype: NumberFormat = "float32"  # number format of the towers during training

    def __post_init__(self) -> None:
        at_least(self, 1, "batch", "captions")
        at_least(self, 0, "minutes", "steps", "learning_rate", "text_learning_rate", "seed")
        at_least(self, 0, "weight_decay", "rank_weight", "position_weight")


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """Sizes and training of a small network on embeddings."""

    hidden: int = 128  # units of each of the two hidden layers
    steps: int = 4000  # largest number of gradient steps; stops early without held-out improvement
    batch: int = 256  # samples per gradient step
    learning_rate: float = 3e-4  # learning rate of AdamW
    weight_decay: float = 1e-2  # weight decay of AdamW
    patience: int = 10  # held-out evaluations without improvement before training stops
    seed: int = 0  # random seed of weights, batches and the held-out share

    def __post_init__(self) -> None:
        at_least(self, 1, "hidden", "steps", "batch", "patience")
        at_least(self, 0, "learning_rate", "weight_decay", "seed")
