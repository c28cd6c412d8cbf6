"""The null control: a random reward of the same shape, which must do no better than no training.

The oracle control needs no program: it is the task's own dense reward, written with the truth in
sight (for Gymnasium's bodies and their first goal, Gymnasium's own).
"""

from __future__ import annotations

import numpy as np

from reward_models.base import TaskCard
from reward_models.programs import load
from reward_models.programs.lower import Input

READ = 4  # numbers of the state that a component follows
WIDEST = 3.0  # half range of a signal whose card names none to speak of


def random_program(text: str, card: TaskCard, seed: int = 0) -> str:
    """A program with the components, by name and number, of ``text``, over the signals that it
    reads, each a bounded random function of a few of their numbers."""
    program, rng = load(text, card), np.random.default_rng(seed)
    signals = {s.name: s for s in card.signals}
    reads = [i for i in program.lowered.inputs if i.signal in signals]
    if not reads:  # it reads the action alone
        sizes = {s.name: int(np.prod(s.shape)) if s.shape else 0 for s in card.signals}
        reads = [Input(name, name, False, size) for name, size in sizes.items()]
    arguments, entries = [], []
    for name in program.components:
        parts = []
        for _ in range(READ):
            one = reads[int(rng.integers(len(reads)))]
            low, high = signals[one.signal].range
            half = min(WIDEST, max((high - low) / 2, 1e-3))
            at = f"[{int(rng.integers(one.size))}]" if one.size else ""
            # Divided by a literal, which takes any unit, a quantity is a plain number.
            parts.append(f"{rng.normal():.4f} * ({one.name}{at} / {half:.4f})")
            arguments.append(one.name)
        phase = rng.uniform(-1.0, 1.0)
        entries.append(f'        "{name}": tanh({" + ".join(parts)} + {phase:.4f}),')
    used = ", ".join(dict.fromkeys(arguments))
    body = "\n".join(entries)
    return f"# random, of the same shape\ndef reward({used}):\n    return {{\n{body}\n    }}\n"
