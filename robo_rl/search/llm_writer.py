"""A language model as a writer of programs: its settings, and what it asks in a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reward_models.base import TaskCard
from reward_models.programs.diagnostics import Diagnostic
from reward_models.remote.cassette import Transport
from reward_models.remote.transport import Budget
from reward_models.writers.base import Draft, Evidence
from reward_models.writers.llm import LLMWriter
from reward_models.writers.llm_methods import METHODS
from robo_rl.runtime.remote_models import RemoteModelConfig, connect
from robo_rl.search.strategy import Candidate, History

WRITERS = ("llm", *METHODS)  # llm: Eureka's method


@dataclass(frozen=True, kw_only=True)
class ModelConfig(RemoteModelConfig):
    """Address and budget of a language model."""

    model: str = ""  # model name at the endpoint
    repairs: int = 3  # repair attempts per program


def make_writer(
    name: str,
    config: ModelConfig,
    check: Callable[[str, TaskCard], Sequence[Diagnostic]] | None = None,
    budget: Budget | None = None,
) -> tuple[LLMWriter, Budget]:
    """The writer called ``name`` and what it has spent; ValueError says what is missing."""
    if name not in WRITERS:
        raise ValueError(f"unknown writer {name!r}; available: offline, {', '.join(WRITERS)}")
    transport, budget = make_transport(config, f"writer {name!r}", "--model", budget)
    method = METHODS["eureka" if name == "llm" else name]
    return LLMWriter(transport, method, name, config.repairs, check=check), budget


def make_transport(
    config: ModelConfig, who: str, option: str, budget: Budget | None = None
) -> tuple[Transport, Budget]:
    """The way to a model and what it has spent; ValueError says what is missing."""
    budget = budget or config.budget()
    if not config.model and not (config.cassette and Path(config.cassette).exists()):
        raise ValueError(
            f"{who} needs a model: {option}.model NAME {option}.base-url URL, "
            f"or an existing {option}.cassette"
        )
    return connect(config.endpoint(config.model), budget, config.cassette), budget


class LLMStrategy(History):
    """Ask and tell for a writer: what was tried so far is its evidence."""

    def __init__(self, writer: LLMWriter, card: TaskCard, sentence: str, count: int):
        super().__init__()
        self.writer, self.card, self.sentence, self.count = writer, card, sentence, count

    def ask(self, round_: int) -> list[Candidate]:
        """The candidates of a round."""
        best = self.best()
        evidence = [
            Evidence(Draft(t.candidate.text, self.writer.name), dict(t.curves), t.diagnostics)
            for t in best
        ]
        drafts = self.writer.propose(self.card, self.sentence, self.count, evidence)
        parents = (best[0].candidate.name,) if best else ()
        messages = [
            Candidate(
                f"c{len(self._asked) + i:02d}",
                round_,
                draft.text,
                parents=parents,
                notes=draft.notes or self.writer.name,
            )
            for i, draft in enumerate(drafts)
        ]
        self._asked += messages
        return messages
