"""Any endpoint that speaks the OpenAI protocol, through the official client, within a budget.

The key comes from an environment variable when a call is made and is kept nowhere else. Errors are
written anew from the status alone: a library's own message may quote headers or addresses.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reward_models.writers.cassette import Message, Reply, Transport


class ModelError(RuntimeError):
    """The model could not be asked; the message never holds the key."""


class BudgetSpent(RuntimeError):
    """The next call could exceed the budget."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model is, and what it costs."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    key_variable: str = "OPENAI_API_KEY"  # environment variable that holds the key
    seconds: float = 120.0  # per attempt
    attempts: int = 4  # of one call: slow, limited and broken answers are asked for again
    wait: float = 1.0  # s before the second attempt, doubled each time
    temperature: float = 1.0
    prompt_price: float = 0.0  # per million tokens
    completion_price: float = 0.0


class OpenAITransport:
    """Calls an endpoint."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint, self.model = endpoint, endpoint.model

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Reply:
        """The model's answer; ModelError after the last attempt."""
        import openai

        e = self.endpoint
        key = os.environ.get(e.key_variable, "")
        if not key:
            raise ModelError(f"no key for {e.model}: set the variable {e.key_variable}")
        why = ""
        client = openai.OpenAI(api_key=key, base_url=e.base_url, timeout=e.seconds, max_retries=0)
        with client:
            for attempt in range(e.attempts):
                if attempt:
                    time.sleep(e.wait * 2 ** (attempt - 1))
                try:
                    answer = client.chat.completions.create(
                        model=e.model, messages=[dict(m) for m in messages],  # type: ignore[misc]
                        max_tokens=max_tokens, temperature=e.temperature,
                    )  # fmt: skip
                    return _reply(answer)
                except openai.APITimeoutError:
                    why = f"no answer within {e.seconds:g} s"
                except openai.APIConnectionError:
                    why = "no connection"
                except openai.APIStatusError as error:
                    why = f"status {error.status_code}"
                    if error.status_code < 500 and error.status_code not in (408, 409, 429):
                        break
                except (openai.OpenAIError, ValueError, TypeError, AttributeError, IndexError):
                    why = "an answer that is not of the protocol"
        raise ModelError(f"{e.model} did not answer: {why} (attempt {attempt + 1})") from None


def _reply(answer: Any) -> Reply:
    choice = answer.choices[0]
    usage = answer.usage
    return Reply(
        choice.message.content or "",
        int(usage.prompt_tokens) if usage else 0,
        int(usage.completion_tokens) if usage else 0,
        choice.finish_reason != "length",
    )


@dataclass
class Budget:
    """Limits on what a run may spend, and what it has spent."""

    tokens: int = 200_000
    money: float = 1.0  # in the currency of the prices
    calls: int = 100
    used_tokens: int = 0
    used_money: float = 0.0
    used_calls: int = field(default=0)


class Metered:
    """A transport that stops before a call could go over the budget."""

    def __init__(self, inner: Transport, budget: Budget, endpoint: Endpoint | None = None):
        self.inner, self.budget, self.model = inner, budget, inner.model
        self.endpoint = endpoint or Endpoint(inner.model)

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Reply:
        b = self.budget
        # A token is three characters or more in English; this errs on the careful side.
        asked = sum(len(m["content"]) for m in messages) // 3
        if b.used_calls >= b.calls:
            raise BudgetSpent(f"{b.calls} calls are spent")
        if b.used_tokens + asked + max_tokens > b.tokens:
            raise BudgetSpent(f"{b.used_tokens} of {b.tokens} tokens are spent; the next call may "
                              f"take {asked + max_tokens}")  # fmt: skip
        cost = self._price(asked, max_tokens)
        if b.used_money + cost > b.money:
            raise BudgetSpent(f"{b.used_money:.4f} of {b.money:g} are spent; the next call may "
                              f"cost {cost:.4f}")  # fmt: skip
        b.used_calls += 1
        reply = self.inner.complete(messages, max_tokens)
        b.used_tokens += reply.prompt_tokens + reply.completion_tokens
        b.used_money += self._price(reply.prompt_tokens, reply.completion_tokens)
        return reply

    def _price(self, prompt: int, completion: int) -> float:
        e = self.endpoint
        return (prompt * e.prompt_price + completion * e.completion_price) / 1e6
