"""Training, scoring, evaluation and the command line; the only package that imports the others.

```
trained = robo_rl.train(robo_rl.TrainConfig(task="reach", goal="touch the blue ball"))
trained.policy.act(obs)
robo_rl.load("runs/NAME").policy.predict(obs)
```
"""

from __future__ import annotations

import importlib
import os
from typing import Any

# Threads of OpenMP that wait sleep, and do not spin: beside other programs on the same cores they
# took more than half of the processor time of learning from frames. Read when torch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Loaded when first used: importing torch takes two seconds that `robo-rl --help` need not wait for.
# No name here is a module's too: a module that is imported takes the place of what has its name.
_HOME = {
    "TrainConfig": "config.train_config",
    "Trained": "training.trained",
    "load": "training.trained",
    "train": "training.train",
    "sweep": "training.sweep",
}

__all__ = sorted(_HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
