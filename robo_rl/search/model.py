"""A language model as a writer of programs: its settings, and what it asks in a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reward_models.base import TaskCard
from reward_models.programs.diagnostics import Diagnostic
from reward_models.writers.base import Draft, Evidence
from reward_models.writers.cassette import Player, Recorder, Transport
from reward_models.writers.llm import LLMWriter
from reward_models.writers.methods import METHODS
from reward_models.writers.transport import Budget, Endpoint, Metered, OpenAITransport
from robo_rl.search.strategy import Candidate, History

WRITERS = ("llm", *METHODS)  # llm: Eureka's method


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Where a language model is, and what may be spent on it."""

    model: str = ""  # its name, as the endpoint knows it
    base_url: str = "https://api.openai.com/v1"  # of any endpoint that speaks the OpenAI protocol
    key_variable: str = "OPENAI_API_KEY"  # environment variable that holds the key
    repairs: int = 3  # further answers to what is found wrong with a program
    tokens: int = 200_000  # that may be used
    money: float = 1.0  # that may be spent, in the currency of the prices
    calls: int = 100  # that may be made
    prompt_price: float = 0.0  # per million tokens
    completion_price: float = 0.0  # per million tokens
    seconds: float = 120.0  # per attempt of a call
    cassette: str = ""  # file of answers: played if it exists, else recorded; empty: neither


def make_writer(
    name: str,
    config: ModelConfig,
    check: Callable[[str, TaskCard], Sequence[Diagnostic]] | None = None,
    budget: Budget | None = None,
) -> tuple[LLMWriter, Budget]:
    """The writer called ``name`` and what it has spent; ValueError says what is missing."""
    if name not in WRITERS:
        raise ValueError(f"unknown writer {name!r}; known: offline, {', '.join(WRITERS)}")
    transport, budget = make_transport(config, f"writer {name!r}", "--model", budget)
    method = METHODS["eureka" if name == "llm" else name]
    return LLMWriter(transport, method, name, config.repairs, check=check), budget


def make_transport(
    config: ModelConfig, who: str, option: str, budget: Budget | None = None
) -> tuple[Transport, Budget]:
    """The way to a model and what it has spent; ValueError says what is missing."""
    budget = budget or Budget(config.tokens, config.money, config.calls)
    endpoint = Endpoint(
        config.model, config.base_url, config.key_variable, config.seconds,
        prompt_price=config.prompt_price, completion_price=config.completion_price,
    )  # fmt: skip
    tape = Path(config.cassette) if config.cassette else None
    transport: Transport
    if tape is not None and tape.exists():
        transport = Player(tape)
    elif not config.model:
        raise ValueError(f"{who} needs a model: {option}.model NAME {option}.base-url URL, "
                         f"or an existing {option}.cassette")  # fmt: skip
    else:
        transport = OpenAITransport(endpoint)
    transport = Metered(transport, budget, endpoint)
    if tape is not None and not tape.exists():
        transport = Recorder(transport, tape)
    return transport, budget


class Asked(History):
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
        asked = [
            Candidate(f"c{len(self._asked) + i:02d}", round_, draft.text, parents=parents,
                      notes=draft.notes or self.writer.name)
            for i, draft in enumerate(drafts)
        ]  # fmt: skip
        self._asked += asked
        return asked
