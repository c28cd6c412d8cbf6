"""MuJoCo's warnings, of our simulations and of other people's."""

from __future__ import annotations

import sys


def take_mujoco_warnings() -> None:
    """Prints the first of each kind of MuJoCo's warnings to stderr instead of MUJOCO_LOG.TXT in the
    working directory. A handler that is already set stays."""
    mujoco = sys.modules.get("mujoco")
    if mujoco is None or mujoco.get_mju_user_warning() is not None:
        return
    told = set()

    def tell(text: str) -> None:
        if (kind := text[:20]) not in told:
            told.add(kind)
            sys.stderr.write(f"MuJoCo: {text} (further ones are not shown)\n")

    mujoco.set_mju_user_warning(tell)
