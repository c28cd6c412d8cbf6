"""The parsers of all commands, for completion in the shell and for the reference pages.

A command builds its parser where it calls tyro, some of them from the first arguments. So each one
is called here with tyro's entry replaced by one that takes the parser and stops.
"""

from __future__ import annotations

import argparse
import importlib
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import tyro
import tyro.extras._subcommand_cli_from_dict as subcommands

SUPPRESSED = "==SUPPRESS=="


@dataclass(frozen=True)
class Option:
    """An option or positional argument, as help shows it."""

    name: str  # the flag, without its aliases; a positional argument's name in capitals
    flags: tuple[str, ...]  # all ways to type it; none: it is positional
    value: str  # what is typed after it; "": nothing, it is a flag
    choices: tuple[str, ...]  # the values that may be typed, where they are listed
    default: str  # as help shows it; required where it must be typed
    help: str


@dataclass(frozen=True)
class CommandParser:
    """A command's help as data."""

    words: tuple[str, ...]  # as typed after robo-rl
    description: str
    groups: dict[str, tuple[Option, ...]]  # by the heading of the group in its help

    @property
    def options(self) -> tuple[Option, ...]:
        """All options of all groups."""
        return tuple(option for group in self.groups.values() for option in group)


class _Taken(Exception):
    def __init__(self, parser: argparse.ArgumentParser):
        self.parser = parser


def command_words() -> Iterator[tuple[str, ...]]:
    """The words of every command and of every action of one."""
    from robo_rl.cli import COMMANDS
    from robo_rl.scorers.train import KINDS

    reward_actions = importlib.import_module("robo_rl.commands.reward").ACTIONS
    for name in COMMANDS:
        if name == "reward":
            yield from (("reward", action) for action in reward_actions)
            yield from (("reward", "train", kind) for kind in (*KINDS, "proposer"))
        elif actions := _actions(_argparse_of([name])):
            yield from ((name, action) for action in actions)
        else:
            yield (name,)
        if name == "demos":
            yield (name, "--from")


def parser_of(words: Sequence[str], *settings: str) -> CommandParser:
    """The parser of a command.

    Args:
        words: what ``command_words`` yields.
        settings: options that decide which others there are: ``--learner sac`` of train.
    """
    rest = words[1:]
    parser = _argparse_of([*words, *settings])
    if rest and rest[0] in (actions := _actions(parser)):
        parser = actions[rest[0]]
    groups = {
        group.title or "": options
        for group in parser._action_groups
        if (options := tuple(map(_option, filter(_is_shown, group._group_actions))))
    }
    return CommandParser(tuple(words), parser.description or "", groups)


def _argparse_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser that a command's ``main`` gives tyro."""
    own = tyro.cli

    def take(f: Any, *, args: Any = None, return_unknown_args: bool = False, **how: Any) -> Any:
        if not str(how.get("prog")).startswith("robo-rl"):  # a part of the options, parsed apart
            return own(f, args=args, return_unknown_args=return_unknown_args, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tyro 2 may have another way to its parser
            raise _Taken(tyro.extras.get_parser(f, **how))

    module = importlib.import_module(f"robo_rl.commands.{words[0].replace('-', '_')}")
    with patch.object(tyro, "cli", take), patch.object(subcommands, "cli", take):
        try:
            module.main(list(words[1:]))
        except _Taken as taken:
            return taken.parser
    raise AssertionError(f"{words[0]} parses no options")


def _actions(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The subcommands of a parser."""
    return {name: one for a in parser._actions if _is_choice(a) for name, one in a.choices.items()}


def _is_choice(action: argparse.Action) -> bool:
    """Whether it is the choice of a subcommand."""
    return isinstance(action.choices, dict)


def _is_shown(action: argparse.Action) -> bool:
    is_help = isinstance(action, argparse._HelpAction)
    return not is_help and not _is_choice(action) and action.help != SUPPRESSED


def _option(action: argparse.Action) -> Option:
    text = str(action.help or "").strip()
    suffix = re.search(r"\s*\((?:(repeatable|required)|default: (.*))\)$", text, re.DOTALL)
    flags = action.option_strings
    plain = [flag for flag in flags if not re.match(r"--([\w.-]+\.)?no-", flag)] or flags
    return Option(
        name=plain[-1] if plain else action.dest.upper(),
        flags=tuple(flags),
        value="" if action.nargs == 0 else str(action.metavar or ""),
        choices=tuple(str(one) for one in action.choices or () if one not in ("", "None")),
        default=(suffix[2] or suffix[1] or "") if suffix else "",
        help=text[: suffix.start()] if suffix else text,
    )
