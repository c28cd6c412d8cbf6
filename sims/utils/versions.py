"""What enters a result beside the command and its seed: versions, threads, the processor.

Runs, checkpoints, bundles, scorers and data sets keep ``versions()``, a flat {name: text}. Nothing
is loaded for it: of torch it says how it computes where it is loaded already.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

LIBRARIES = (
    "robo-rl",
    "numpy",
    "mujoco",
    "gymnasium",
    "torch",
    "torchvision",
    "stable-baselines3",
    "sb3-contrib",
    "onnx",
    "onnxscript",
    "onnxruntime",
    "open_clip_torch",
    "opencv-python-headless",
    "scipy",
    "ruckig",
)
ENGINE = "mujoco"
# Variables that change how numbers or frames are computed, where somebody has set them.
SETTINGS = ("OPENBLAS_CORETYPE", "ATEN_CPU_CAPABILITY", "MKL_CBWR", "MUJOCO_GL")
VECTORS = {"avx512f": 512, "avx2": 256, "avx": 256, "asimd": 128, "sse2": 128}  # bits, widest first
BF16 = ("avx512_bf16", "amx_bf16", "bf16")

noted: dict[str, str] = {}  # what is known once it is in use: the OpenGL that renders


class OtherEngine(UserWarning):
    """What is read was made with another version of the physics engine than the installed one."""

    one_line = True  # in the shell


def versions() -> dict[str, str]:
    """Versions of Python and the libraries that results depend on; threads and capability of torch,
    where it is loaded; the processor, and what else changes how it computes."""
    kind = f"{platform.system()}-{platform.machine()}"
    found = {"python": platform.python_version(), "platform": kind} | _libraries() | _processor()
    if torch := sys.modules.get("torch"):
        found["torch_threads"] = str(torch.get_num_threads())
        found["torch_cpu_capability"] = torch.backends.cpu.get_cpu_capability()
    return found | noted | {name: os.environ[name] for name in SETTINGS if name in os.environ}


def rendered_with() -> list[str]:
    """What frames and their embeddings hang on, for the keys of caches."""
    return [f"{name} {_libraries().get(name, '')}" for name in (ENGINE, "torch")]


def warn_of_engine(made: Mapping[str, object], what: str) -> None:
    """An OtherEngine warning where ``made``, what ``versions`` was when ``what`` was made, names
    another MuJoCo than the installed one; none where it names no MuJoCo, as files of before."""
    was, here = made.get(ENGINE), _libraries().get(ENGINE)
    if was and here and was != here:
        warnings.warn(
            f"{what} was made with MuJoCo {was}, installed is {here}: its physics, and so figures, "
            f"may differ; pip install mujoco=={was} brings that one back",
            OtherEngine,
            stacklevel=3,
        )


@functools.cache
def _libraries() -> dict[str, str]:
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra that is not installed
    return found


@functools.cache
def _processor() -> dict[str, str]:
    """The processor's name, family and widest vectors, as far as the system tells."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {"processor": platform.processor() or platform.machine()}
    lines = (line.partition(":") for line in path.read_text().split("\n\n")[0].splitlines())
    told = {name.strip(): value.strip() for name, _, value in lines}
    flags = told.get("flags", told.get("Features", "")).split()
    family = [f"{name} {told[name]}" for name in ("cpu family", "model") if name in told]
    names = [told.get("model name") or platform.machine(), *family]
    found = {"processor": ", ".join(names)}
    if width := next((bits for flag, bits in VECTORS.items() if flag in flags), 0):
        found["vector_bits"] = str(width)
        found["bf16_instructions"] = "yes" if set(BF16) & set(flags) else "no"
    return found
