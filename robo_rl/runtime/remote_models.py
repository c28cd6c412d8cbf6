"""Where a model behind a wire is, what may be spent on it, and how the parts are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from rich.console import Console

from reward_models.remote.cache import Cache, CachingTransport
from reward_models.remote.cassette import CassettePlayer, CassetteRecorder, Transport
from reward_models.remote.robometer import Robometer
from reward_models.remote.thread_pool import ask_in_parallel
from reward_models.remote.transport import (
    Budget,
    BudgetedTransport,
    BudgetSpent,
    Endpoint,
    ModelError,
    OpenAITransport,
    RetryingTransport,
    public_url,
)
from reward_models.remote.vlm_judge import VideoJudge, VLMJudge
from robo_rl.runtime.progress_bars import stage_progress
from sims.rendering.cameras import Camera
from sims.utils.cache import cache_dir

Q = TypeVar("Q")
A = TypeVar("A")

JUDGES = ("vlm:MODEL", "robometer:http://HOST:PORT")
SHOWN = 288  # px, height of frames that are drawn for a model


@dataclass(frozen=True, kw_only=True)
class RemoteModelConfig:
    """Address and budget of a remote model."""

    base_url: str = "https://api.openai.com/v1"  # any OpenAI-compatible endpoint
    key_variable: str = "OPENAI_API_KEY"  # environment variable of the API key; empty: none
    tokens: int = 200_000  # token budget
    money: float = 1.0  # cost budget, in the currency of the prices
    calls: int = 100  # call budget, including failed attempts
    prompt_price: float = 0.0  # per million tokens
    completion_price: float = 0.0  # per million tokens
    seconds: float = 120.0  # timeout per attempt of a call
    temperature: float | None = 1.0  # sampling temperature; None: do not send one
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # parameter of the API
    cassette: str = ""  # file of answers: replayed if it exists, else recorded

    def budget(self) -> Budget:
        """Returns the unspent budget."""
        return Budget(self.tokens, self.money, self.calls)

    def endpoint(self, model: str, **more: int) -> Endpoint:
        """Returns the endpoint of ``model``."""
        return Endpoint(
            model,
            public_url(self.base_url),
            self.key_variable,
            self.seconds,
            temperature=self.temperature,
            limit=self.limit,
            prompt_price=self.prompt_price,
            completion_price=self.completion_price,
            **more,
        )


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
        return BudgetedTransport(CassettePlayer(tape), budget, endpoint)
    metered = BudgetedTransport(OpenAITransport(endpoint), budget, endpoint)
    transport = around(RetryingTransport(metered, endpoint))
    return transport if tape is None else CassetteRecorder(transport, tape)


@dataclass(frozen=True, kw_only=True)
class JudgeConfig(RemoteModelConfig):
    """Address, queries and budget of a remote vision-language model."""

    tokens: int = 2_000_000  # token budget
    calls: int = 1_000  # call budget, including failed attempts
    temperature: float | None = 0.0  # sampling temperature; None: do not send one
    picture_tokens: int = 1_000  # assumed tokens per picture until a reply reports them
    side: int = 448  # px, longer side of pictures sent (vlm)
    again: int = 2  # retries after an invalid answer (vlm)
    max_tokens: int = 800  # tokens per answer (vlm)
    steps: bool = False  # score each frame from the frames up to it (robometer)
    at_once: int = 4  # concurrent requests
    cache: str = ""  # folder of cached answers; empty: the user's cache

    def __post_init__(self) -> None:
        least = {"again": 0, "at_once": 1, "side": 16, "max_tokens": 1, "picture_tokens": 1}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ValueError(
                    f"--model.{name.replace('_', '-')} must be at least {value}, got "
                    f"{getattr(self, name)}"
                )


def is_judge(name: str) -> bool:
    """Whether a model is meant, and no person."""
    return name.split(":", 1)[0] in [known.split(":", 1)[0] for known in JUDGES]


def make_judge(name: str, config: JudgeConfig) -> tuple[VideoJudge, Budget]:
    """Returns the remote model ``name`` and its budget; raises ValueError or ModelError where it
    cannot be used."""
    kind, _, what = name.partition(":")
    budget = config.budget()
    if not is_judge(name):
        raise ValueError(f"unknown model {name!r}; available: {', '.join(JUDGES)}")
    if kind == "robometer":
        url = public_url(what)
        endpoint = Endpoint(f"robometer at {url}", url, seconds=config.seconds)
        meter = Robometer(endpoint, budget, answer_cache(config), config.steps)
        meter.health()
        return meter, budget  # pyright: ignore[reportReturnType]  # its name is a cached_property
    if not what and not (config.cassette and Path(config.cassette).exists()):
        raise ValueError(
            "no model name: expected vlm:MODEL, as the endpoint names it, or "
            "an existing --model.cassette"
        )
    endpoint = config.endpoint(what, picture_tokens=config.picture_tokens)
    transport = connect(
        endpoint, budget, config.cassette, lambda t: CachingTransport(t, answer_cache(config))
    )
    return VLMJudge(transport, config.again, config.side, config.max_tokens), budget


def frame_size(camera: Camera, height: int) -> tuple[int, int] | None:
    """px, height and width of frames so high, even; None at 0: the camera's own."""
    if not height:
        return None
    return height, 2 * round(height * camera.width / camera.height / 2)


def answer_cache(config: JudgeConfig) -> Cache:
    """The folder of cached answers."""
    return Cache(Path(config.cache) if config.cache else cache_dir() / "answers")


def collect_answers(
    ask: Callable[[Q], A],
    questions: Iterable[Q],
    of: int,
    config: JudgeConfig,
    budget: Budget,
    console: Console | None = None,
) -> Iterator[tuple[Q, A]]:
    """(question, answer) of ``of`` questions as answers come, several under way; a bar where there
    is a console. BudgetSpent and ModelError also say how many were answered."""
    count = 0
    with stage_progress(console) as progress, _counted(lambda: count, of):
        for question, answer in ask_in_parallel(ask, questions, config.at_once):
            count += 1
            progress("asking", count / of, f"{count} of {of}")
            yield question, answer
    if console is not None:
        console.print(str(budget), highlight=False)


@contextmanager
def _counted(count: Callable[[], int], of: int) -> Iterator[None]:
    try:
        yield
    except BudgetSpent as spent:
        raise BudgetSpent(
            f"{spent}. {count()} of {of} questions are answered and stored: repeat "
            "the command with more --model.calls, --model.tokens or --model.money to "
            "continue"
        ) from None
    except ModelError as error:
        raise ModelError(
            f"{error}. {count()} of {of} questions are answered and stored: to "
            "continue, repeat the command"
        ) from None
