"""Where a model behind a wire is, what may be spent on it, and how the parts are put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reward_models.wire.cassette import Player, Recorder, Transport
from reward_models.wire.transport import Budget, Endpoint, Metered, OpenAITransport, Patient


@dataclass(frozen=True, kw_only=True)
class WireConfig:
    """Where a model is, and what may be spent on it."""

    base_url: str = "https://api.openai.com/v1"  # of any endpoint that speaks the OpenAI protocol
    key_variable: str = "OPENAI_API_KEY"  # environment variable with the key; empty: it needs none
    tokens: int = 200_000  # that may be used
    money: float = 1.0  # that may be spent, in the currency of the prices
    calls: int = 100  # that may be made, attempts that failed included
    prompt_price: float = 0.0  # per million tokens
    completion_price: float = 0.0  # per million tokens
    seconds: float = 120.0  # per attempt of a call
    cassette: str = ""  # file of answers: played if it exists, else recorded; empty: neither

    def budget(self) -> Budget:
        """What may be spent, of which nothing is."""
        return Budget(self.tokens, self.money, self.calls)

    def endpoint(self, model: str, **more: float) -> Endpoint:
        """Where ``model`` is."""
        return Endpoint(
            model, self.base_url, self.key_variable, self.seconds,
            prompt_price=self.prompt_price, completion_price=self.completion_price, **more,
        )  # fmt: skip


def connect(
    endpoint: Endpoint,
    budget: Budget,
    cassette: str = "",
    around: Callable[[Transport], Transport] = lambda transport: transport,
) -> Transport:
    """The way to a model, or to the cassette that plays it. ``around`` is put about what asks the
    model; what that answers is recorded too."""
    tape = Path(cassette) if cassette else None
    if tape is not None and tape.exists():
        return Metered(Player(tape), budget, endpoint)
    metered = Metered(OpenAITransport(endpoint), budget, endpoint)
    transport = around(Patient(metered, endpoint))
    return transport if tape is None else Recorder(transport, tape)
