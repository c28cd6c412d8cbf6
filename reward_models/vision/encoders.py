"""CLIP encoders: the embedded one, and any open_clip model by name.

``encode`` gives unit rows, the same for a frame whatever batch it comes in. The number format is
float32 unless bfloat16 is asked for: nothing that is measured here and now decides it.
"""

from __future__ import annotations

import os
import socket
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import getproxies

import numpy as np
import torch
from torch.nn import functional as F

from reward_models.vision import tiny_clip
from reward_models.vision.config import NumberFormat

Array = np.ndarray

QUICK = "-quickgelu"  # at the end of an open_clip model's name: its activation


class TorchEncoder(ABC):
    """What both encoders share: batching, number format, normalisation."""

    name: str  # what it is and a hash of its weights
    camera: str
    homes: tuple[
        tiny_clip.TrainingScene, ...
    ] = ()  # the only scenes it knows; (): trained on anything
    size: tuple[int, int]  # px, height and width of what it looks at; other frames are resized
    crops = False  # frames of another shape to their middle; else they are stretched
    scale: float = 100.0  # logit = scale * cosine + bias
    # Where the logit's sigmoid was trained to be how surely a caption holds; None elsewhere. A
    # SigLIP's says how surely it is this image's alone: next to nothing for most that is true.
    bias: float | None = None
    taught = tiny_clip.TrainedCaptions()  # the only captions that it knows; none: any words

    def __init__(self, device: str, batch: int, dtype: torch.dtype):
        self.device, self.batch, self.dtype = torch.device(device), batch, dtype

    @abstractmethod
    def _images(self, frames: torch.Tensor) -> torch.Tensor:
        """Raw embeddings (k, D) of frames (k, H, W, 3) uint8 on the device."""

    def encode(self, frames: Array) -> Array:
        """Embeds frames.

        Args:
            frames: (k, H, W, 3) RGB uint8.

        Returns:
            (k, D) float32 unit rows.

        Raises:
            ValueError: The frames have another shape or type.
        """
        if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != np.uint8:
            raise ValueError(
                f"frames must be (k, H, W, 3) uint8, got {frames.shape} {frames.dtype}"
            )
        out = []
        for start in range(0, len(frames), self.batch):
            part = torch.from_numpy(np.ascontiguousarray(frames[start : start + self.batch]))
            part = part.to(self.device)
            half = self.dtype == torch.bfloat16
            with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, half):
                out.append(F.normalize(self._images(part).float(), dim=-1).cpu())
        return torch.cat(out).numpy() if out else np.zeros((0, self.dim), np.float32)

    @property
    def dtype_name(self) -> str:
        """The number format of images: ``float32`` or ``bfloat16``."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def dim(self) -> int:
        """Width of an embedding."""
        return self.encode_texts((*self.taught, "a frame")[:1]).shape[1]

    @abstractmethod
    def encode_texts(self, texts: tuple[str, ...]) -> Array:
        """Returns unit rows (n, D) float32 of n texts."""


class EmbeddedClip(TorchEncoder):
    """A small CLIP of ``robo-rl reward train``; by default the one that ships with the project."""

    camera = "front"

    def __init__(
        self,
        path: Path | None = None,
        device: str = "cpu",
        batch: int = 0,  # frames encoded together; 0: what suits the device
        dtype: torch.dtype = torch.float32,
    ):
        # On a processor the layers' outputs of a small batch stay in its caches.
        super().__init__(device, batch or (32 if device == "cpu" else 256), dtype)
        model = tiny_clip.load(path or tiny_clip.DEFAULT)
        self.name, self.homes = f"embedded-{tiny_clip.content_hash(model)}", model.homes
        self.camera = model.homes[0].camera if model.homes else self.camera
        self.taught = model.taught
        self.size = (model.config.size, model.config.size)
        self.model = model.to(self.device).to(memory_format=torch.channels_last)
        self._tower = tiny_clip.fold_batch_norm(self.model.clip.visual)
        self.scale, self.bias = self.model.scale.item(), self.model.bias.item()

    def _images(self, frames: torch.Tensor) -> torch.Tensor:
        if frames.shape[1:3] != self.size:
            x = frames.permute(0, 3, 1, 2).float()
            x = F.interpolate(x, self.size, mode="bilinear", antialias=True)
            frames = x.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
        return self.model.images(frames, self._tower)

    def encode_texts(self, texts: tuple[str, ...]) -> Array:
        """Returns unit rows (n, D) float32 of n texts of known words."""
        config = self.model.config
        tokens = tiny_clip.tokenize(texts, config.context, config.words).to(self.device)
        with torch.inference_mode():
            return self.model.texts(tokens).float().cpu().numpy()


class OpenClip(TorchEncoder):
    """Any open_clip model: ``name`` and ``pretrained`` as open_clip lists them.

    ``pretrained`` is a tag (its weights are fetched once, by open_clip) or a path to a local
    safetensors or checkpoint file, which is the way out on a machine without a network. Frames are
    resized and cropped as the model's own configuration says.
    """

    camera = "front"

    def __init__(
        self,
        name: str = "ViT-B-32",
        pretrained: str = "laion2b_s34b_b79k",
        device: str = "cpu",
        batch: int = 64,
        dtype: torch.dtype = torch.float32,
    ):
        """Loads a model.

        Args:
            name: The model, as open_clip lists it.
            pretrained: Its weights: a tag, or the path of a file.
            device: Where it computes.
            batch: Frames encoded together.
            dtype: The number format of images.

        Raises:
            ValueError: The model or its weights are unknown, or cannot be loaded.
        """
        import open_clip

        super().__init__(device, batch, dtype)
        check_open_clip(name, pretrained)
        if Path(pretrained).is_file():
            _warn_of_activation(name, pretrained, open_clip.list_models())
        try:
            with _offline_at_once() if not Path(pretrained).is_file() else nullcontext():
                model = open_clip.create_model(name, pretrained=pretrained, device=self.device)
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(
                f"cannot load {name} with weights {pretrained!r}: {str(error).splitlines()[0]}. "
                f"Without a network: download the file elsewhere and give {name}:FILE, or "
                "'embedded', the encoder inside the package"
            ) from error
        self.model, self._tokenize = model.eval(), open_clip.get_tokenizer(name)
        self.name = f"open_clip-{name}-{tiny_clip.content_hash(model)}"
        self.scale = model.logit_scale.exp().item()
        prepared = open_clip.get_model_preprocess_cfg(model)
        size = prepared["size"]
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.crops = prepared.get("resize_mode", "shortest") == "shortest"
        self._interpolation = prepared.get("interpolation", "bicubic")
        self._mean, self._std = (
            torch.tensor(prepared[of]).view(1, 3, 1, 1).to(self.device) for of in ("mean", "std")
        )

    def _images(self, frames: torch.Tensor) -> torch.Tensor:
        x = frames.permute(0, 3, 1, 2).float() / 255.0
        (tall, wide), (height, width) = x.shape[2:], self.size
        if self.crops:  # the shorter side has its size, and of the longer the middle is left
            grown = max(height / tall, width / wide)
            resized = max(height, int(tall * grown)), max(width, int(wide * grown))
        else:
            resized = self.size
        x = F.interpolate(x, resized, mode=self._interpolation, antialias=True).clamp(0, 1)
        top, left = (
            round((have - left) / 2) for have, left in zip(resized, self.size, strict=True)
        )
        x = x[:, :, top : top + height, left : left + width]
        return self.model.encode_image((x - self._mean) / self._std)

    def encode_texts(self, texts: tuple[str, ...]) -> Array:
        """Returns unit rows (n, D) float32 of n texts; ValueError for one that would be cut."""
        tokens = self._tokenize(list(texts))
        room = tokens.shape[1]
        whole = self._tokenize(list(texts), context_length=4 * room)
        blank = self._tokenize([""], context_length=4 * room)[0, -1]
        for text, row in zip(texts, whole, strict=True):
            if (row[room:] != blank).any():
                raise ValueError(
                    f"{self.name} takes at most {room} tokens, and {text!r} has more: shorten it"
                )
        with torch.inference_mode():
            rows = self.model.encode_text(tokens.to(self.device)).float()
            return F.normalize(rows, dim=-1).cpu().numpy()


@contextmanager
def _offline_at_once() -> Iterator[None]:
    """Looks for weights in the cache alone while their server does not answer.

    Otherwise the client retries for most of a minute. Behind a proxy the server is not tried."""
    address = urlparse(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    from huggingface_hub import constants

    try:
        if not getproxies():
            socket.create_connection((address.hostname, address.port or 443), timeout=5.0).close()
        answers = True
    except OSError:
        answers = False
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not answers
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


class UnknownActivation(UserWarning):
    """Weights do not say which activation they were trained with."""

    one_line = True  # in the shell


def _warn_of_activation(name: str, file: str, models: Sequence[str]) -> None:
    """An UnknownActivation warning where ``name`` has a twin with the other activation: a file of
    weights fits both, and gives other embeddings."""
    quick = name.endswith(QUICK)
    twin = name.removesuffix(QUICK) if quick else f"{name}{QUICK}"
    if twin in models:
        kinds = ("QuickGELU", "GELU") if quick else ("GELU", "QuickGELU")
        warnings.warn(
            f"{file} does not say its activation, and {name} has {kinds[0]}: if it was trained "
            f"with {kinds[1]}{'' if quick else ', as those of OpenAI'}, give {twin}:{file}",
            UnknownActivation,
            stacklevel=3,
        )


def check_open_clip(name: str, pretrained: str) -> None:
    """Checks the name of a model of open_clip and of its weights.

    Raises:
        ValueError: open_clip has no such model or weights, and there is no such file.
    """
    import open_clip

    if name not in open_clip.list_models():
        near = [m for m in open_clip.list_models() if name.lower() in m.lower()][:5]
        raise ValueError(
            f"unknown open_clip model {name!r}; similar: {', '.join(near) or 'none'}; "
            "python -c 'import open_clip; print(open_clip.list_models())' lists them all"
        )
    tags = open_clip.list_pretrained_tags_by_model(name)
    if pretrained not in tags and not Path(pretrained).is_file():
        raise ValueError(
            f"unknown weights {pretrained!r} for {name}; available: {', '.join(tags)}; "
            "or give the path of a local file"
        )


def make_encoder(
    spec: str = "embedded", device: str = "cpu", dtype: NumberFormat = "float32"
) -> TorchEncoder:
    """Makes an encoder.

    Args:
        spec: ``embedded``, ``embedded:PATH``, or ``MODEL[:PRETRAINED]`` of open_clip.
        device: Where it computes.
        dtype: The number format of images.
    """
    name, _, weights = spec.partition(":")
    kind = {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]
    if name == "embedded":
        return EmbeddedClip(Path(weights) if weights else None, device, dtype=kind)
    return OpenClip(name, *([weights] if weights else []), device=device, dtype=kind)
