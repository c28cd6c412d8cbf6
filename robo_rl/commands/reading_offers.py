"""What to do about a sentence that was not read: ask what it means, or take what was accepted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import tyro

from reward_models.goals.suggestions.llm_reader import llm_candidates
from robo_rl.goals.reading import NotRead, Offer
from robo_rl.runtime.argv import pop_option
from robo_rl.search.llm_writer import ModelConfig, make_transport

Main = Callable[[Sequence[str]], int]


def with_reading_offers(main: Main, argv: Sequence[str]) -> int:
    """Runs a command; where its goal was not read, once more with what was meant instead.

    That is what ``--accept N`` takes, else what a person at the terminal chooses. ValueError with
    the offers where nobody is there to choose.
    """
    argv, accepted = _pop_accept(argv)
    argv, model = _model(argv)
    try:
        return main(argv)
    except NotRead as error:
        if model is not None:
            transport, _ = make_transport(model, "reader 'llm'", "--reading")
            error.offer(error.goal.offered(llm_candidates(error.said, error.goal.card, transport)))
        offers = error.offers
        if accepted > len(offers):
            many = f"only {len(offers)} were" if offers else "nothing was"
            raise ValueError(f"--accept {accepted}, but {many} suggested. {error}") from None
        chosen = accepted or (_ask_which(offers, error.why) if _is_interactive() else 0)
        if not offers:
            raise
        if not chosen:
            raise ValueError(f"{error} Or choose a suggestion with --accept N.") from None
        print(f"goal: {offers[chosen - 1].understood}", file=sys.stderr)
        return main(_with_offer(argv, error, offers[chosen - 1]))


def _pop_accept(argv: Sequence[str]) -> tuple[list[str], int]:
    """The arguments without ``--accept N``, and its number; 0: it was not given."""
    rest, numbers = pop_option(argv, "--accept")
    number = numbers[-1] if numbers else "0"
    if not number.isdigit():
        raise ValueError(
            f"--accept: expected the number of a suggestion, such as 1, got {number!r}"
        )
    return rest, int(number)


def _model(argv: Sequence[str]) -> tuple[list[str], ModelConfig | None]:
    """The arguments without ``--reader`` and ``--reading.*``, and the model that is to be asked."""
    rest, readers = pop_option(argv, "--reader")
    options = [a.partition("=")[0] for a in rest if a.startswith("--reading.")]
    given: list[str] = []
    for option in dict.fromkeys(options):
        rest, values = pop_option(rest, option)
        given += [option.replace("--reading.", "--"), values[-1]]
    config = tyro.cli(ModelConfig, args=given, prog="--reading")
    if readers and readers[-1] not in ("grammar", "llm"):
        raise ValueError(f"--reader: expected grammar or llm, got {readers[-1]!r}")
    return rest, config if readers[-1:] == ["llm"] else None


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask_which(offers: Sequence[Offer], why: str) -> int:
    """The number of the offer that is meant; 0: none."""
    if not offers:
        return 0
    print(why, file=sys.stderr)
    print("Did you mean", file=sys.stderr)
    for i, offer in enumerate(offers, 1):
        print(f"  {i}: {offer.understood}", file=sys.stderr)
    print("Enter a number, or nothing to stop: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    return int(answer) if answer.isdigit() and 0 < int(answer) <= len(offers) else 0


def _with_offer(argv: Sequence[str], error: NotRead, offer: Offer) -> list[str]:
    """The arguments with an offer in place of the sentence, which may stand for its task, too."""
    args, sentence = list(argv), error.said
    for i, word in enumerate(args):
        if word == f"--goal={sentence}":
            args[i : i + 1] = [offer.option, offer.value]
            return args
        if word == "--goal" and args[i + 1 : i + 2] == [sentence]:
            args[i : i + 2] = [offer.option, offer.value]
            return args
    if sentence in args:
        at = args.index(sentence)
        args[at : at + 1] = [error.goal.card.task, offer.option, offer.value]
        return args
    raise ValueError(f"{sentence!r} is not the --goal of this command; use {offer.value!r}")
