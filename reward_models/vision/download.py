"""Weights of pretrained CLIPs, downloaded into open_clip's cache, where encoders find them."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from reward_models.vision.encoders import check_open_clip

ANSWER_S = 5.0  # s in which the server must answer


def download_open_clip(name: str, pretrained: str) -> Path:
    """The file of the weights ``pretrained`` of open_clip's model ``name``.

    It is downloaded unless the cache has it. The server is asked first whether it is there, so
    without a network this fails at once, and not after the retries of the download.

    Args:
        name: a name of ``open_clip.list_models()``, such as ``ViT-B-32``.
        pretrained: a tag of weights of that model.

    Raises:
        ValueError: the model or the weights are unknown, or the server cannot be reached.
    """
    import open_clip

    check_open_clip(name, pretrained)
    config = open_clip.get_pretrained_cfg(name, pretrained)
    if not config:
        return Path(pretrained)  # a file
    source = _source(config)
    if found := _cached(config):
        return found
    host = urlsplit(source).netloc
    try:
        with urllib.request.urlopen(f"{urlsplit(source).scheme}://{host}", timeout=ANSWER_S):
            pass
    except urllib.error.HTTPError:
        pass  # it is there, and has nothing at that address
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise ValueError(
            f"cannot reach {host} ({reason}): download {source} on another machine and give its "
            f"path, --clip.encoder {name}:FILE"
        ) from None
    try:
        return Path(open_clip.download_pretrained(config))
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"cannot download {source}: {str(error).splitlines()[0]}") from error


def _source(config: dict[str, str]) -> str:
    """The address of a model's file, or of the page that has it."""
    if hub := config.get("hf_hub"):
        from huggingface_hub.constants import ENDPOINT

        return f"{ENDPOINT}/{hub.rstrip('/')}"
    return config["url"]


def _cached(config: dict[str, str]) -> Path | None:
    """The file in the cache of the Hugging Face hub; open_clip looks for other files itself."""
    if not (hub := config.get("hf_hub")):
        file = Path.home() / ".cache" / "clip" / Path(config["url"]).name
        return file if file.is_file() else None
    from huggingface_hub import try_to_load_from_cache
    from open_clip.pretrained import HF_SAFE_WEIGHTS_NAME, HF_WEIGHTS_NAME

    repo, _, name = hub.rpartition("/")
    names = [name] if name else [HF_SAFE_WEIGHTS_NAME, HF_WEIGHTS_NAME]
    names += [Path(one).with_suffix(".safetensors").name for one in names]
    for one in names:
        if isinstance(found := try_to_load_from_cache(repo, one), str):
            return Path(found)
    return None
