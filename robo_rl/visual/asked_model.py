"""A model behind a wire in the scripted oracle's place: it sees frames, and reads no reward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reward_models.visual.episodes import Episodes
from reward_models.wire.judge import Judge, Said
from reward_models.wire.transport import Budget
from robo_rl.visual.label_store import ANSWERS, RATINGS, said_of
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
    keep: Callable[[Sequence[Array], str], None]  # films and what was said, as soon as it is
    said: Counter[str] = field(default_factory=Counter, init=False)

    def __str__(self) -> str:
        return self.judge.name

    def answers(self, seen: Episodes, first: Array, second: Array) -> Array:
        """See Oracle."""
        return self._asked(self.judge.compare, (first, second), ANSWERS)

    def ratings(self, seen: Episodes, films: Array) -> Array:
        """See Oracle."""
        return self._asked(self.judge.rate, (films,), RATINGS)

    def _asked(
        self, judge: Callable[..., Said], about: tuple[Array, ...], worth: Mapping[str, float]
    ) -> Array:
        out = np.full(len(about[0]), np.nan)
        size = drawn_at(self.env.camera(self.camera), SHOWN)

        def films() -> Iterator[tuple[int, list[Array]]]:
            for number, entries in enumerate(np.stack(about, axis=1)):
                drawn = self.env.render_states(self.states[entries.ravel()], self.camera, size=size)
                yield number, np.split(drawn, len(about))

        def ask(question: tuple[int, list[Array]]) -> Said:
            return judge(*question[1], self.goal)

        for (number, sides), said in told(ask, films(), len(out), self.config, self.budget):
            word = said_of(said)
            self.said[word] += 1
            out[number] = worth.get(word, np.nan)
            self.keep(sides, word)
        return out
