"""`robo-rl fetch`: downloads a pretrained model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import tyro

from robo_rl.commands.options import Json


@dataclass(frozen=True, kw_only=True)
class FetchCommand:
    """Downloads the weights of a pretrained CLIP into open_clip's cache, for --clip.encoder."""

    what: tyro.conf.Positional[Literal["clip"]]  # kind of model
    model: tyro.conf.Positional[str]  # MODEL:PRETRAINED of open_clip: ViT-B-32:laion2b_s34b_b79k
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Downloads CLIP weights that the cache lacks, prints their path and returns the exit code 0.

    Args:
        argv: The words after ``robo-rl fetch``.

    Raises:
        ValueError: the model is not given as MODEL:PRETRAINED.
    """
    command = tyro.cli(FetchCommand, args=list(argv), prog="robo-rl fetch")
    name, given, pretrained = command.model.partition(":")
    if not given:
        raise ValueError(
            f"expected MODEL:PRETRAINED, for example ViT-B-32:laion2b_s34b_b79k; got {name!r}"
        )
    from reward_models.vision.download import download_open_clip

    path = download_open_clip(name, pretrained)
    size = path.stat().st_size
    if command.as_json:
        print(json.dumps({"path": str(path), "bytes": size}))
    else:
        print(f"{path}, {size / 1e6:.0f} MB; use it with --clip.encoder {command.model}")
    return 0
