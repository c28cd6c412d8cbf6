"""A model behind a wire in the scripted oracle's place: it sees frames, and reads no reward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reward_models.remote.transport import Budget
from reward_models.remote.vlm_judge import JudgeAnswer, VideoJudge
from reward_models.scorers.embedded_episodes import EmbeddedEpisodes
from robo_rl.labelling.store import ANSWERS, RATINGS, answer_code
from robo_rl.runtime.remote_models import SHOWN, JudgeConfig, collect_answers, frame_size
from sims.envs.batch_env import BatchEnv

Array = np.ndarray


@dataclass
class VLMLabeller:
    """Answers about entries of episodes; see ScriptedLabeller, which it stands in for."""

    judge: VideoJudge
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

    def answers(self, episodes: EmbeddedEpisodes, first: Array, second: Array) -> Array:
        """Answers (P,) about frames of the entries (P, L), as ``Labeller.answers`` describes."""
        return self._ask(self.judge.compare, (first, second), ANSWERS)

    def ratings(self, episodes: EmbeddedEpisodes, films: Array) -> Array:
        """Rates (P,) frames of the entries (P, L), as ``Labeller.ratings`` describes."""
        return self._ask(self.judge.rate, (films,), RATINGS)

    def _ask(
        self,
        judge: Callable[..., JudgeAnswer],
        about: tuple[Array, ...],
        worth: Mapping[str, float],
    ) -> Array:
        out = np.full(len(about[0]), np.nan)
        size = frame_size(self.env.camera(self.camera), SHOWN)

        def films() -> Iterator[tuple[int, list[Array]]]:
            for number, entries in enumerate(np.stack(about, axis=1)):
                drawn = self.env.render_states(self.states[entries.ravel()], self.camera, size=size)
                yield number, np.split(drawn, len(about))

        def ask(question: tuple[int, list[Array]]) -> JudgeAnswer:
            return judge(*question[1], self.goal)

        for (number, sides), reply in collect_answers(
            ask, films(), len(out), self.config, self.budget
        ):
            word = answer_code(reply)
            self.said[word] += 1
            out[number] = worth.get(word, np.nan)
            self.keep(sides, word)
        return out
