"""A model behind a wire in the scripted oracle's place: it sees frames, and reads no reward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from reward_models.visual.episodes import Episodes
from reward_models.wire.judge import Judge, Said
from reward_models.wire.transport import Budget
from robo_rl.visual.label_store import ANSWERS, said_of
from robo_rl.wire import SHOWN, JudgeConfig, drawn_at, told
from sims.batch_env import BatchEnv

Array = np.ndarray


@dataclass
class AskedModel:
    """Answers about entries of episodes; see ScriptedOracle, which it stands in for."""

    judge: Judge
    budget: Budget
    config: JudgeConfig
    goal: str  # the sentence
    states: Array  # (M, nstate) of the entries
    camera: str
    env: BatchEnv  # that draws them
    keep: Callable[[Array, Array, str], None]  # two films and what was said, as soon as it is
    said: Counter[str] = field(default_factory=Counter, init=False)

    def __str__(self) -> str:
        return self.judge.name

    def answers(self, seen: Episodes, first: Array, second: Array) -> Array:
        """(P,) 1 first, 0 second, 0.5 neither, nan where nothing is learned."""
        del seen  # its worth is not for a model to read
        out, size = np.full(len(first), np.nan), drawn_at(self.env.camera(self.camera), SHOWN)

        def films() -> Iterator[tuple[int, Array, Array]]:
            for number, pair in enumerate(np.stack([first, second], axis=1)):
                drawn = self.env.render_states(self.states[pair.ravel()], self.camera, size=size)
                yield number, *np.split(drawn, 2)

        def ask(film: tuple[int, Array, Array]) -> Said:
            return self.judge.compare(*film[1:], self.goal)

        for (number, *sides), said in told(ask, films(), len(out), self.config, self.budget):
            word = said_of(said)
            self.said[word] += 1
            out[number] = ANSWERS.get(word, np.nan)
            self.keep(*sides, word)
        return out
