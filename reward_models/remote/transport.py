"""Any endpoint that speaks the OpenAI protocol, through the official client, within a budget.

``RetryingTransport(Metered(OpenAITransport))``: one attempt at the bottom, the budget around every
attempt, patience around those. The key comes from an environment variable when a call is made and
is kept nowhere else. Errors are written anew from the status alone: a library's own message may
quote headers or addresses. Several threads may share a stack.
"""

from __future__ import annotations

import email.utils
import os
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from reward_models.remote.cassette import Message, ModelReply, Transport

T = TypeVar("T")


class ModelError(RuntimeError):
    """The model could not be asked; the message never holds the key."""


class RetryableError(ModelError):
    """An attempt came to nothing and another may not.

    ``after``: s that the endpoint asks to wait. ``spent``: it may have worked on an answer that was
    not heard.
    """

    def __init__(self, why: str, after: float | None = None, spent: bool = False):
        super().__init__(why)
        self.after, self.spent = after, spent


class BudgetSpent(RuntimeError):
    """The next call could exceed the budget."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model is, and what it costs."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    key_variable: str = "OPENAI_API_KEY"  # environment variable that holds the key; empty: none
    seconds: float = 120.0  # per attempt
    attempts: int = 4  # per call; timeouts, rate limits and malformed answers are retried
    wait: float = 1.0  # s before the second attempt, doubled each time, unless the endpoint says
    longest: float = 90.0  # s, longest wait that the endpoint may ask for
    temperature: float | None = 1.0  # None: not sent, for models that reject it
    limit: str = "max_tokens"  # name of the model's parameter for the answer length
    prompt_price: float = 0.0  # per million tokens
    completion_price: float = 0.0
    picture_tokens: int = 1_000  # assumed tokens per image until a reply reports more


def public_url(url: str) -> str:
    """Checks that an address may be shown and stored.

    Args:
        url: The address of a server.

    Returns:
        The address without a slash at its end.

    Raises:
        ValueError: It may hold a secret (a user, password, query or fragment), or is no HTTP
            address.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "the address must not contain a user, password or query, because it is stored with "
            "the results; pass the key through --model.key-variable"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"expected the server address as http://HOST:PORT, got {url!r}")
    return url.rstrip("/")


def with_retries(attempt: Callable[[], T], e: Endpoint) -> T:
    """Repeats an attempt while that may help, with a growing pause or the one that the server asks
    for. Not the client library's own retries: those are not counted by a budget.

    Args:
        attempt: Makes one attempt; it may raise ``RetryableError``.
        e: The endpoint, with the number of attempts and the pauses in s.

    Returns:
        What the first attempt that succeeds returns.

    Raises:
        ModelError: The last attempt failed, or the server asks to wait longer than ``e.longest``.
    """
    import tenacity  # here: no command without a model needs it, and it takes 0.1 s

    backoff = tenacity.wait_exponential_jitter(e.wait, jitter=e.wait)
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(e.attempts),
        wait=lambda state: backoff(state) + _asked_pause(state.outcome.exception()),
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, RetryableError) and _asked_pause(error) <= e.longest
        ),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except RetryableError as error:
        asked, number = _asked_pause(error), retrying.statistics["attempt_number"]
        long = f"; the server asks to wait {asked:.0f} s" if asked > e.longest else ""
        raise ModelError(f"{e.model} did not answer: {error} (attempt {number}){long}") from None


def _asked_pause(error: Any) -> float:
    """s that the server asks to wait."""
    return error.after or 0.0


def http_error(status: int, retry_after: str | None) -> ModelError:
    """Returns the error for an HTTP status above 399: ``RetryableError`` where another attempt may
    help, with the pause that the header Retry-After asks for."""
    if status < 500 and status not in (408, 409, 429):
        odd = ": a model that takes no temperature, or another name of the limit of an answer?"
        return ModelError(f"status {status}{odd if status == 400 else ''}")
    return RetryableError(f"status {status}", _seconds(retry_after))


def _seconds(header: str | None) -> float | None:
    """s that a Retry-After header asks for, in either of its forms; None where it asks nothing."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None


class OpenAITransport:
    """One attempt at an endpoint: the model's answer, RetryableError or ModelError."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint, self.model = endpoint, endpoint.model
        self._lock = threading.Lock()

    @cached_property
    def _connections(self) -> Any:
        """Kept from call to call, which saves a tenth of a second each; knows no key."""
        import openai

        return openai.DefaultHttpxClient(timeout=self.endpoint.seconds)

    def complete(self, messages: Sequence[Message], max_tokens: int) -> ModelReply:
        """Makes one attempt; see ``Transport``.

        Raises:
            RetryableError: The attempt failed and another may not.
            ModelError: The package openai or the key is missing, or the endpoint refuses.
        """
        try:
            import openai
        except ModuleNotFoundError:
            raise ModelError(
                "model requests need the package openai: pip install 'robo-rl[llm]'"
            ) from None

        e = self.endpoint
        key = os.environ.get(e.key_variable, "") if e.key_variable else "none"
        if not key:
            raise ModelError(
                f"no API key for {e.model}: set the environment variable {e.key_variable}"
            )
        with self._lock:
            connections = self._connections
        client = openai.OpenAI(
            api_key=key,
            base_url=e.base_url,
            timeout=e.seconds,
            max_retries=0,
            http_client=connections,
        )
        try:
            said: dict[str, Any] = {e.limit: max_tokens}
            if e.temperature is not None:
                said["temperature"] = e.temperature
            answer = client.chat.completions.create(
                model=e.model, messages=[dict(m) for m in messages], **said
            )
            return _reply(answer)
        except openai.APITimeoutError:
            error: ModelError = RetryableError(f"no answer within {e.seconds:g} s", spent=True)
        except openai.APIConnectionError as lost:
            never = type(lost.__cause__).__name__ == "ConnectError"  # nothing was sent
            error = RetryableError(
                "cannot connect" if never else "the connection broke", spent=not never
            )
        except openai.APIStatusError as status:
            error = http_error(status.status_code, status.response.headers.get("retry-after"))
        except (openai.OpenAIError, ValueError, TypeError, AttributeError, IndexError):
            error = RetryableError("an answer that is not of the protocol", spent=True)
        if isinstance(error, RetryableError):
            raise error from None
        raise ModelError(f"{e.model} did not answer: {error}") from None


def _reply(answer: Any) -> ModelReply:
    choice = answer.choices[0]
    usage = answer.usage
    return ModelReply(
        choice.message.content or "",
        int(usage.prompt_tokens) if usage else 0,
        int(usage.completion_tokens) if usage else 0,
        choice.finish_reason != "length",
    )


class RetryingTransport:
    """A transport that is asked again where that may help."""

    def __init__(self, inner: Transport, endpoint: Endpoint):
        self.inner, self.endpoint, self.model = inner, endpoint, inner.model

    def complete(self, messages: Sequence[Message], max_tokens: int) -> ModelReply:
        """Returns the reply of the first attempt that succeeds; see ``with_retries``."""
        return with_retries(lambda: self.inner.complete(messages, max_tokens), self.endpoint)


@dataclass
class Budget:
    """Limits on what a run may spend, and what it has spent. Several threads may share one: what
    calls under way could cost is held back until they have cost it."""

    tokens: int = 200_000
    money: float = 1.0  # in the currency of the prices
    calls: int = 100
    used_tokens: int = 0
    used_money: float = 0.0
    used_calls: int = field(default=0)
    held_tokens: int = field(default=0, init=False)
    held_money: float = field(default=0.0, init=False)
    _under_way: int = field(default=0, init=False, repr=False)
    _changed: threading.Condition = field(
        default_factory=threading.Condition, init=False, repr=False, compare=False
    )

    def hold(self, tokens: int = 0, money: float = 0.0) -> None:
        """Counts a call, once what is under way leaves room for it.

        Args:
            tokens: The most tokens that the call could take.
            money: The most that it could cost.

        Raises:
            BudgetSpent: There will be no room.
        """
        with self._changed:
            while True:
                if self.used_calls >= self.calls:
                    raise BudgetSpent(f"the budget of {self.calls} calls is used up")
                if self.used_tokens + tokens > self.tokens:
                    raise BudgetSpent(
                        f"{self.used_tokens} of {self.tokens} tokens are used; the "
                        f"next call may take {tokens}"
                    )
                if self.used_money + money > self.money:
                    raise BudgetSpent(
                        f"{self.used_money:.4f} of {self.money:g} is used; the "
                        f"next call may cost {money:.4f}"
                    )
                if not self._under_way or (
                    self.used_tokens + self.held_tokens + tokens <= self.tokens
                    and self.used_money + self.held_money + money <= self.money
                ):
                    break
                self._changed.wait()
            self.used_calls += 1
            self._under_way += 1
            self.held_tokens += tokens
            self.held_money += money

    def settle(self, held: tuple[int, float], used: tuple[int, float]) -> None:
        """Replaces what a call ``held`` (tokens, money) by what it ``used``."""
        with self._changed:
            self._under_way -= 1
            self.held_tokens -= held[0]
            self.held_money = self.held_money - held[1] if self._under_way else 0.0
            self.used_tokens += used[0]
            self.used_money += used[1]
            self._changed.notify_all()

    def __str__(self) -> str:
        return f"{self.used_calls} calls, {self.used_tokens:,} tokens, {self.used_money:.4f} spent"


class BudgetedTransport:
    """A transport that stops before a call could go over the budget.

    What a call may take is estimated from above, what it took is what the reply says: the estimate
    where it says nothing, and where an answer was not heard.
    """

    def __init__(self, inner: Transport, budget: Budget, endpoint: Endpoint | None = None):
        self.inner, self.budget, self.model = inner, budget, inner.model
        self.endpoint = endpoint or Endpoint(inner.model)
        self._picture = self.endpoint.picture_tokens  # the most that one has cost so far

    def complete(self, messages: Sequence[Message], max_tokens: int) -> ModelReply:
        """Returns the inner transport's reply and counts what it cost; see ``Transport``.

        Raises:
            BudgetSpent: The call could exceed the budget; nothing is sent.
        """
        words, pictures = _size(messages)
        asked = words + pictures * self._picture
        held = asked + max_tokens, self._price(asked, max_tokens)
        self.budget.hold(*held)
        used = 0, 0.0
        try:
            reply = self.inner.complete(messages, max_tokens)
            prompt = reply.prompt_tokens or asked
            answer = reply.completion_tokens or len(reply.text.encode()) // 3 + 1
            used = prompt + answer, self._price(prompt, answer)
            if pictures:
                self._picture = max(self._picture, -((words - prompt) // pictures))
            return reply
        except RetryableError as error:
            used = held if error.spent else used
            raise
        finally:
            self.budget.settle(held, used)

    def _price(self, prompt: int, completion: int) -> float:
        e = self.endpoint
        return (prompt * e.prompt_price + completion * e.completion_price) / 1e6


def _size(messages: Sequence[Message]) -> tuple[int, int]:
    """(tokens of what is written, pictures). A token is three letters or more in English, and
    hardly ever less than a letter elsewhere; this errs on the careful side."""
    written, pictures = 0, 0
    for message in messages:
        content = message["content"]
        for part in [{"text": content}] if isinstance(content, str) else content:
            written += len(part.get("text", "").encode())
            pictures += "image_url" in part
    return written // 3, pictures
