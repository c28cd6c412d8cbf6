"""Files that are written whole: whoever reads one sees all of it, or what was there before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save


def write_tensors(
    path: Path, tensors: Mapping[str, torch.Tensor], about: Mapping[str, str]
) -> None:
    """Writes a safetensors file as a whole.

    Args:
        path: The file.
        tensors: Tensors by name.
        about: Texts for the header.
    """
    # Not by save_file, whose files nobody else may read.
    _write(path, save(dict(tensors), metadata=dict(about)))


def write_text(path: Path, text: str) -> None:
    """Writes a text in UTF-8, as a whole."""
    _write(path, text.encode())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_bytes(data)
    os.replace(partial, path)
