"""The `robo-rl` command: finds the command, turns mistakes into one clear line.

Each command is a module of its name in ``robo_rl/commands`` with ``main(argv)``; it is imported
when it is called, so that help, listing, deploying and emulating load no torch.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import os
import re
import select
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from robo_rl.runs.errors import is_user_error
from robo_rl.runtime.argv import pop_option
from robo_rl.runtime.renamed_options import current_options

STDOUT = 1  # its descriptor, whatever sys.stdout was replaced by

COMMANDS = {
    "demo": "end-to-end demo: train from a sentence, run on a simulated arm",
    "list": "tasks, robots, rewards, learners, signals of a task",
    "train": "train a policy on a task with a reward",
    "sweep": "train with several settings and seeds, and compare the results",
    "evaluate": "ground-truth success of a run on unseen seeds",
    "report": "write report.html of a run",
    "runs": "list runs, compare their settings and figures, remove them",
    "reward": "parse a sentence; train, run and evaluate reward models",
    "search": "search for a reward program that trains well, and evaluate it",
    "export": "write a run's policy as a bundle for the robot",
    "deploy": "run a policy bundle on an arm",
    "learn-on-arm": "fine-tune a policy bundle on the robot arm",
    "teleop": "move an arm by hand, and record it: keys, gamepad, leader arm",
    "calibrate": "calibrate arms and cameras: zero, range, servo stiffness, lens, pose; print tags",
    "emulate": "emulate an arm: its wire protocol, with simulated physics",
    "demos": "write a dataset of demonstrations by a task's expert, or from robot logs",
    "clone": "behaviour cloning from demonstrations",
    "replay": "replay a robot log: states, limits, sim-to-real gap",
    "bench": "reproduce the measured figures, with baselines and controls",
    "doctor": "check rendering, CUDA, ports, permissions and disk space",
    "fetch": "download a pretrained CLIP",
    "completion": "print shell completion: bash, zsh",
}

# What brings a module that is not there; all others come with [train].
EXTRAS = {"h5py": "demos", "pyarrow": "lerobot", "openai": "llm"}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    warnings.formatwarning = formatted
    try:
        status = run(args)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt as stop:
        return fail(str(stop) or "stopped by Ctrl-C", 130)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in ("robo_rl", "sims", "reward_models"):
            raise
        extra = EXTRAS.get((error.name or "").split(".")[0], "train")
        return fail(f"{error}; install what it takes: pip install 'robo-rl[{extra}]'")
    except Exception as error:
        if isinstance(error, BrokenPipeError) and stdout_closed():
            return 0
        if not is_user_error(error):
            raise
        status = 2 if isinstance(error, UsageError) else 1
        told = str(error)
        if isinstance(error, OSError) and error.filename and error.errno:
            if error.strerror == os.strerror(
                error.errno
            ):  # the system's words alone: "[Errno 2] ..."
                told = f"cannot use {error.filename}: {error.strerror}"
        return fail(" ".join(told.split()) or type(error).__name__, status)


_format = warnings.formatwarning


def formatted(message: Any, category: type[Warning], *where: Any, **line: Any) -> str:
    """A warning for the shell: a kind that says so is one line, without the source line."""
    if getattr(category, "one_line", False):
        return f"warning: {message}\n"
    return _format(message, category, *where, **line)


class UsageError(ValueError):
    """An option is not typed as it must be."""


class UnknownOption(UsageError):
    """A word ``token`` of the command line that the command ``prog`` does not take."""

    def __init__(self, token: str, prog: str) -> None:
        what = f"unknown option {token}" if token.startswith("-") else f"unexpected {token!r}"
        super().__init__(f"{what}; see {prog} --help")
        self.token = token.partition("=")[0]


@contextlib.contextmanager
def raising_usage_errors() -> Iterator[None]:
    """While what tyro says of options in a box of many lines is a Mistyped. The hook is not of its
    public API: where there is none, there are boxes."""
    try:
        from tyro._errors import on_parse_error
    except ImportError:
        yield
        return
    with on_parse_error(_raise_usage_error):
        yield


def _raise_usage_error(event: Any) -> None:
    """Raises the line of what tyro has found."""
    kind, argument = type(event).__name__, getattr(event, "argument", None)
    if argument is not None:
        option, wanted = (
            _option_text(argument),
            str(argument.lowered.metavar).removeprefix("{None}|"),
        )
    if kind == "InstantiationFailure":
        last = event.message.splitlines()[-1].rpartition(">: ")[2]  # of the types that may be
        got = re.findall(r"'([^']*)'", last)
        if argument is None or not got:  # it says itself what was expected
            raise UsageError(event.message)
        raise UsageError(f"{option}: expected {wanted}, got {' '.join(got)!r}")
    if kind == "UnrecognizedArgs":
        raise UnknownOption(event.tokens[0], event.prog)
    if kind == "InvalidChoice":
        raise UsageError(f"{option}: expected {', '.join(event.choices)}, got {event.value!r}")
    if kind == "BadValue":
        raise UsageError(f"{option}: expected {wanted}, got nothing")
    if kind == "MissingArgs":
        missing = ", ".join(_option_text(one.arg) for one in event.missing_arguments)
        raise UsageError(f"{event.prog} needs {missing}; see {event.prog} --help")


def _option_text(argument: Any) -> str:
    """An option's name; in capitals if it is positional."""
    if argument.is_positional():
        return argument.field.extern_name.upper()
    return argument.lowered.name_or_flags[-1]


def run(args: list[str]) -> int:
    """Finds the command, runs it and returns its exit code.

    Args:
        args: The words after ``robo-rl``.

    Returns:
        The command's exit code; 0 after a help text, 2 for an unknown command.

    Raises:
        UsageError: the command does not take one of the words; the message names a similar option.
    """
    args = import_requested(args)
    if not args or args[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if "--version" in args:
        from importlib.metadata import version

        print(version("robo-rl"))
        return 0
    name = args[0]
    if name not in COMMANDS:
        from sims.utils.did_you_mean import unknown_name_error

        return fail(str(unknown_name_error(f"unknown command {name!r}", name, COMMANDS)), 2)
    command = importlib.import_module(f"robo_rl.commands.{name.replace('-', '_')}")
    with raising_usage_errors(), accept_scientific_integers():
        words = current_options(args[1:])
        try:
            return int(command.main(words))
        except UnknownOption as error:
            raise UsageError(f"{error}{_similar_option(error.token, command, words)}") from None


def _similar_option(token: str, command: Any, words: Sequence[str]) -> str:
    """`` Did you mean --seed?``, of the options that the command's help shows beside ``words``."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit, Exception):
        command.main([*words, "--help"])
    options = dict.fromkeys(re.findall(r"--[a-z][\w.-]*\w", shown.getvalue()))
    group, dot, _ = token.partition(".")
    if dot and not any(option.startswith(f"{group}.") for option in options):
        return f". {group}.* options belong to another --reward or --learner"
    near = difflib.get_close_matches(token, options, 1)
    return f". Did you mean {near[0]}?" if near else ""


@contextlib.contextmanager
def accept_scientific_integers() -> Iterator[None]:
    """While options that are whole numbers may be typed as 2e6, too."""
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec

    registry = ConstructorRegistry()

    @registry.primitive_rule
    def rule(asked: Any) -> PrimitiveConstructorSpec[int] | None:
        if asked.type is not int:
            return None
        return PrimitiveConstructorSpec(
            1,
            "INT",
            lambda typed: _parse_whole_number(typed[0]),
            lambda value: type(value) is int,
            lambda value: [str(value)],
        )

    with registry:
        yield


def _parse_whole_number(typed: str) -> int:
    """A whole number, in whatever way it is typed; int's own ValueError."""
    try:
        return int(typed)
    except ValueError:
        with contextlib.suppress(ValueError):
            if (number := float(typed)).is_integer():
                return int(number)
        raise


def import_requested(args: list[str]) -> list[str]:
    """Imports the modules of ``--import MODULE``, wherever that stands in ``args``.

    Every command then finds the tasks that these modules register.

    Args:
        args: The words of the command line.

    Returns:
        ``args`` without ``--import MODULE``.

    Raises:
        ValueError: ``--import`` has no module's name.
    """
    rest, modules = pop_option(args, "--import")
    for module in modules:
        if not module:
            raise ValueError("--import needs a module's name or a .py file")
        from sims.utils.plugins import import_plugin

        import_plugin(module)
    return rest


def stdout_closed() -> bool:
    """Whether stdout's reader is gone, as after ``robo-rl list | head -3``; then stdout goes too,
    so that Python does not complain of it at the end."""
    poll = select.poll()
    poll.register(STDOUT, 0)
    gone = any(event & select.POLLERR for _, event in poll.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
    return gone


def fail(message: str, status: int = 1) -> int:
    """Prints one line on stderr and returns ``status``."""
    print(f"robo-rl: {message}", file=sys.stderr)
    return status


def usage() -> str:
    """Returns the text of `robo-rl --help`."""
    lines = ["usage: robo-rl COMMAND [...]", ""]
    lines += [f"  {name:12} {text}" for name, text in COMMANDS.items()]
    lines += [
        "",
        "robo-rl COMMAND --help shows a command's options.",
        "--import MODULE|FILE.py, of every command: your tasks (docs/tutorials/your-own-task.md).",
        'Start: robo-rl demo, or robo-rl train reach --goal "the gripper touches the blue ball"',
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
