"""The random streams that SB3 draws from, saved and put back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

Array = np.ndarray


def rng_states() -> dict[str, Array]:
    """Returns the states of the global generators.

    Returns:
        ``numpy_keys`` (624,), ``numpy_rest`` (3,), and the bytes (n,) of ``torch`` and, with a GPU,
        ``cuda``.
    """
    _, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 - SB3 draws from it
    state = {
        "numpy_keys": keys,
        "numpy_rest": np.array([position, has_gauss, gauss], np.float64),
        "torch": torch.get_rng_state().numpy(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state().numpy()
    return state


def load_rng_states(saved: Mapping[str, Array]) -> None:
    """Continues from the arrays, such as ``numpy_keys`` (624,), that ``rng_states`` returned."""
    position, has_gauss, gauss = saved["numpy_rest"]
    legacy = ("MT19937", saved["numpy_keys"], int(position), int(has_gauss), float(gauss))
    np.random.set_state(legacy)  # noqa: NPY002 - SB3 draws from it
    torch.set_rng_state(torch.from_numpy(saved["torch"].copy()))
    if "cuda" in saved and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.from_numpy(saved["cuda"].copy()))
