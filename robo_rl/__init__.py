"""Training, scoring, evaluation and the command line; the only package that imports the others.

```
trained = robo_rl.train(robo_rl.TrainConfig(task="reach", goal="touch the blue ball"))
trained.policy.act(obs)
robo_rl.load("runs/NAME").policy.predict(obs)
```
"""

from __future__ import annotations

import importlib
from typing import Any

# Loaded when first used: importing torch takes two seconds that `robo-rl --help` need not wait for.
# No name here is a module's too: a module that is imported takes the place of what has its name.
_HOME = {
    "TrainConfig": "config", "Trained": "trained", "load": "trained", "train": "training",
    "sweep": "sweeping",
}  # fmt: skip

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
