"""MuJoCo's warnings, of our simulations and of other people's."""

from __future__ import annotations

import sys


def take_mujoco_warnings() -> None:
    """Has the first of each kind of MuJoCo's warnings on stderr, and none in a MUJOCO_LOG.TXT in
    the working directory; a handler that somebody has set stays."""
    mujoco = sys.modules.get("mujoco")
    if mujoco is None or mujoco.get_mju_user_warning() is not None:
        return
    told = set()

    def tell(text: str) -> None:
        if (kind := text[:20]) not in told:
            told.add(kind)
            sys.stderr.write(f"MuJoCo: {text} (further ones are not shown)\n")

    mujoco.set_mju_user_warning(tell)
