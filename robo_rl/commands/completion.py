"""`robo-rl completion`: a script that has the shell complete commands, options and names."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import tyro

from robo_rl.commands.parsers import CommandParser, Option, command_words, parser_of

# Completes words that begin with what is typed; a value of an option whose values are not known,
# and a positional argument, is completed as a file. $1 command, $2 option, $3 what is typed.
SCRIPT = """\
_robo_rl_words() {
  case "$1" in
%s
  esac
}
_robo_rl_values() {
  case "$1 $2" in
%s
  esac
}
_robo_rl() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command= i words
  for ((i = 1; i < COMP_CWORD; i++)); do
    words="${command:+$command }${COMP_WORDS[i]}"
    [[ -n "$(_robo_rl_words "$words")" ]] || break
    command="$words"
  done
  if [[ "$prev" == -* ]]; then words="$(_robo_rl_values "$command" "$prev")"; else words=; fi
  [[ -n "$words" ]] || words="$(_robo_rl_words "$command")"
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _robo_rl robo-rl
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"  # zsh runs bash's completion


@dataclass(frozen=True, kw_only=True)
class CompletionCommand:
    """Prints a completion script for the shell: eval "$(robo-rl completion bash)" in ~/.bashrc."""

    shell: tyro.conf.Positional[Literal["bash", "zsh"]]  # the shell that is to complete


def main(argv: Sequence[str]) -> int:
    """Prints the script."""
    command = tyro.cli(CompletionCommand, args=list(argv), prog="robo-rl completion")
    print((ZSH if command.shell == "zsh" else "") + script(), end="")
    return 0


def script() -> str:
    """The script for bash, with the options of all commands and the names of this installation."""
    parsers = {words: parser_of(words) for words in command_words() if words[-1] != "--from"}
    next_words: dict[str, list[str]] = {}
    for words in parsers:
        for depth, word in enumerate(words):
            next_words.setdefault(" ".join(words[:depth]), []).append(word)
    values = _values()
    for words, parser in parsers.items():
        own = [flag for option in _options_of(parsers, parser) for flag in option.flags]
        own += [
            choice for option in parser.options if not option.flags for choice in option.choices
        ]
        own += values.get(words[0], ()) if words[0] in ("train", "demos", "search", "sweep") else ()
        next_words.setdefault(" ".join(words), []).extend(own)
    words_lines = [_case(f'"{name}"', dict.fromkeys(own)) for name, own in next_words.items()]
    return SCRIPT % ("\n".join(words_lines), "\n".join(_value_lines(parsers, values)))


def _options_of(
    parsers: dict[tuple[str, ...], CommandParser], parser: CommandParser
) -> tuple[Option, ...]:
    """A command's options; a sweep takes those of train, too."""
    of_train = parsers["train",].options if parser.words == ("sweep",) else ()
    return (*parser.options, *of_train)


def _values() -> dict[str, tuple[str, ...]]:
    """The names that there are, by the option that takes them."""
    import sims
    from robo_rl.learners import LEARNERS
    from robo_rl.rewards import reward_names

    tasks = tuple(sims.TASKS)
    return {
        "--task": tasks,
        "--robot": tuple(sims.ROBOTS),
        "--learner": tuple(LEARNERS),
        "--reward": tuple(name for name in reward_names() if ":" not in name),
        **dict.fromkeys(("train", "sweep", "demos", "search"), tasks),
    }


def _value_lines(
    parsers: dict[tuple[str, ...], CommandParser], values: dict[str, tuple[str, ...]]
) -> Iterator[str]:
    """The cases of options whose values are listed: of one command first, then of all."""
    for words, parser in parsers.items():
        for option in _options_of(parsers, parser):
            if option.choices and option.value and option.flags:
                yield _case(f'"{" ".join(words)} {option.name}"', option.choices)
    for name, known in values.items():
        if name.startswith("--"):
            yield _case(f'*" {name}"', known)


def _case(pattern: str, words: Iterable[str]) -> str:
    return f"    {pattern}) echo {shlex.quote(' '.join(words))} ;;"
