"""The embedded CLIP: open_clip's model at 96 px with an image tower and a vocabulary of our own.

A tower of keypoints and a two-layer text tower (Radford et al. 2021, arXiv:2103.00020) under
SigLIP's sigmoid head (Zhai et al. 2023, arXiv:2303.15343). Its text tower knows the words of its
captions alone; any other word is an error, never a guess.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch.nn.utils.fusion import fuse_conv_bn_eval

from reward_models.vision.atomic_files import write_tensors, write_text
from reward_models.vision.config import ANY_THINGS, EMBEDDED
from reward_models.vision.graded_captions import caption_words
from reward_models.vision.keypoint_tower import KeypointTower, TowerConfig

Array = np.ndarray

MEAN, STD = 0.42, 0.28  # of all channels; the frames are renders, not photographs
DEFAULT = EMBEDDED


@dataclass(frozen=True)
class TrainedCaptions:
    """The captions that a model was taught, or (none) any words.

    With ``names`` of things ("red cube"), it knows a caption of any of them that it was taught of
    some of them.
    """

    texts: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __contains__(self, text: object) -> bool:
        return not self.texts or self._form(str(text)) in self._forms

    @cached_property
    def _forms(self) -> set[tuple[str, ...]]:
        return {self._form(text) for text in self.texts}

    def _form(self, text: str) -> tuple[str, ...]:
        """Its words, with a star in the place of each thing."""
        words, form = caption_words(text), []
        while words:
            named = " ".join(words[:2]) in self.names
            form.append("*" if named else words[0])
            words = words[2 if named else 1 :]
        return tuple(form)


@dataclass(frozen=True)
class TrainingScene:
    """A scene that a model was trained on; it knows no others."""

    task: str
    robot: str
    camera: str
    # Hash of what somebody put there, or ANY_THINGS; empty: what the task's name tells.
    things: str = ""

    @property
    def place(self) -> str:
        """The task, and which things it is of where its name does not tell."""
        if self.things == ANY_THINGS:
            return f"{self.task} (of any things)"
        return f"{self.task} (of things {self.things})" if self.things else self.task

    def __str__(self) -> str:
        return f"{self.place} with the {self.robot}, camera {self.camera}"


def describe_scenes(homes: Sequence[TrainingScene]) -> str:
    """Returns scenes as text: ``reach, lift with the so101, ur5e, cameras front, top``."""
    groups: dict[tuple[str, ...], list[str]] = {}  # tasks by the arms and cameras of each
    for task in dict.fromkeys(home.place for home in homes):
        own = [home for home in homes if home.place == task]
        arms = ", ".join(dict.fromkeys(home.robot for home in own))
        cameras = ", ".join(dict.fromkeys(home.camera for home in own))
        groups.setdefault((arms, cameras), []).append(task)
    return "; ".join(
        f"{', '.join(tasks)}{f' with the {arms}' if arms else ''}, "
        f"camera{'s' if ',' in cameras else ''} {cameras}"
        for (arms, cameras), tasks in groups.items()
    )


@dataclass(frozen=True, kw_only=True)
class TinyClipConfig:
    """Sizes of the towers."""

    size: int = 96  # px
    tower: TowerConfig = TowerConfig()
    embed_dim: int = 256
    text_width: int = 64
    text_layers: int = 2
    context: int = 16  # tokens
    words: tuple[str, ...] = ()  # that its captions are made of


# Of a model of many scenes, which takes half as long again for a frame.
LARGE: dict[str, Any] = {
    "tower": TowerConfig(middle=96, coarse=128, joined=48, keypoints=48, hidden=1024),
    "text_width": 96,
}


class TinyClip(torch.nn.Module):
    """open_clip's CLIP with the word vocabulary; ``scale`` and ``bias`` make a cosine a logit."""

    def __init__(
        self,
        config: TinyClipConfig | None = None,
        homes: tuple[TrainingScene, ...] = (),
        taught: TrainedCaptions | None = None,
    ):
        super().__init__()
        self.homes, self.taught = homes, taught or TrainedCaptions()
        self.config = config = config or TinyClipConfig()
        self.clip = CLIP(
            config.embed_dim,
            # A tower that open_clip wants to build, the smallest; ours takes its place.
            CLIPVisionCfg(layers=1, width=64, patch_size=32, image_size=config.size),
            CLIPTextCfg(
                context_length=config.context,
                vocab_size=len(config.words) + 2,
                width=config.text_width,
                heads=4,
                layers=config.text_layers,
            ),
            init_logit_scale=float(np.log(10.0)),
            init_logit_bias=-3.0,
        )
        self.clip.visual = KeypointTower(config.size, config.embed_dim, config.tower)

    @property
    def scale(self) -> torch.Tensor:
        """The factor of the cosine in a logit, a scalar."""
        return self.clip.logit_scale.exp()

    @property
    def bias(self) -> torch.Tensor:
        """The offset of a logit, a scalar."""
        assert self.clip.logit_bias is not None  # made with init_logit_bias
        return self.clip.logit_bias

    def images(self, frames: torch.Tensor, tower: torch.nn.Module | None = None) -> torch.Tensor:
        """Returns the embeddings of frames, not normalised.

        Args:
            frames: (k, H, W, 3) uint8.
            tower: The image tower of ``fold_batch_norm``; the model's own if missing.

        Returns:
            (k, D).
        """
        x = frames.permute(0, 3, 1, 2).float().div_(255.0).sub_(MEAN).div_(STD)
        return (tower or self.clip.visual)(x.contiguous(memory_format=torch.channels_last))

    def texts(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns unit embeddings (n, D) of tokens (n, context)."""
        return self.clip.encode_text(tokens, normalize=True)


def fold_batch_norm(tower: torch.nn.Module) -> torch.nn.Module:
    """Returns a copy of an image tower in which each batch norm is part of its convolution.

    It computes the same for less: a norm reads and writes every channel of every pixel.
    """
    tower = copy.deepcopy(tower).eval()
    for module in list(tower.modules()):
        children = list(module.named_children())
        for (name, conv), (after, norm) in itertools.pairwise(children):
            if isinstance(conv, torch.nn.Conv2d) and isinstance(norm, torch.nn.BatchNorm2d):
                setattr(module, name, fuse_conv_bn_eval(conv, norm))
                setattr(module, after, torch.nn.Identity())
    return tower


def tokenize(texts: Sequence[str], context: int, vocabulary: tuple[str, ...]) -> torch.Tensor:
    """Returns the token ids of texts.

    Args:
        texts: n texts.
        context: The number of tokens of a text, with the end mark.
        vocabulary: The known words.

    Returns:
        (n, context) int64.

    Raises:
        ValueError: A text is too long, or has a word outside the vocabulary.
    """
    out = torch.zeros(len(texts), context, dtype=torch.long)
    for row, text in enumerate(texts):
        words = caption_words(text)
        if len(words) > context - 1:
            raise ValueError(f"{text!r} has {len(words)} words; at most {context - 1} are allowed")
        for column, word in enumerate(words):
            if word not in vocabulary:
                near = difflib.get_close_matches(word, vocabulary, 1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(
                    f"unknown word {word!r} for the embedded CLIP in {text!r}.{hint} "
                    f"Available words: {', '.join(vocabulary)}"
                )
            out[row, column] = 1 + vocabulary.index(word)
        # CLIP reads a sentence out at its largest token id: the end mark.
        out[row, len(words)] = len(vocabulary) + 1
    return out


def content_hash(model: torch.nn.Module) -> str:
    """Returns 12 hex digits of a model's parameters and buffers, wherever its file is."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:12]


def save(model: TinyClip, path: Path, card: dict[str, Any]) -> None:
    """Writes a model in half precision, with its training scenes, and the card beside it.

    Args:
        model: The model.
        path: The .safetensors file.
        card: What it was trained on.

    Raises:
        ValueError: The model has no training scenes.
    """
    if not model.homes:
        raise ValueError("cannot save a model without its training scenes: set its Home")
    tensors = {k: v.half().contiguous() for k, v in model.state_dict().items()}
    config = asdict(model.config)
    meta = {
        "words": " ".join(config.pop("words")),
        "config": json.dumps(config),
        "homes": json.dumps([asdict(home) for home in model.homes]),
        "captions": json.dumps(model.taught.texts),
        "names": json.dumps(sorted(model.taught.names)),
        "versions": json.dumps(card.get("versions", {})),
    }
    write_tensors(path, tensors, meta)
    write_text(path.with_suffix(".json"), json.dumps(card, indent=1) + "\n")


def load(path: Path = DEFAULT) -> TinyClip:
    """Reads a model, in eval mode.

    Raises:
        ValueError: The file is missing or does not fit.
    """
    retrain = "train it with: robo-rl reward train --task TASK --out FILE"
    if not path.exists():
        raise ValueError(f"embedded CLIP {path} does not exist; {retrain}")
    try:
        with safe_open(path, "pt") as file:
            meta = file.metadata() or {}
        words, texts = tuple(meta["words"].split()), tuple(json.loads(meta["captions"]))
        names = frozenset(json.loads(meta.get("names", "[]")))  # older weights have none
        config = json.loads(meta["config"])
        config |= {"tower": TowerConfig(**config["tower"]), "words": words}
        model = TinyClip(
            TinyClipConfig(**config), _training_scenes(meta), TrainedCaptions(texts, names)
        )
        model.load_state_dict({k: v.float() for k, v in load_file(path).items()})
    except (SafetensorError, KeyError, TypeError, RuntimeError, json.JSONDecodeError) as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"{path} is not an embedded CLIP ({first}); {retrain}") from error
    return model.eval()


def training_scenes_in(path: Path) -> tuple[TrainingScene, ...]:
    """Returns the scenes that a stored model was trained on, without reading its weights."""
    with safe_open(path, "pt") as file:
        return _training_scenes(file.metadata())


def _training_scenes(meta: dict[str, str]) -> tuple[TrainingScene, ...]:
    # Weights of before have one home.
    homes = json.loads(meta["homes"] if "homes" in meta else f"[{meta['home']}]")
    return tuple(TrainingScene(**home) for home in homes)
