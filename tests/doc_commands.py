"""The commands in the documentation: found on the pages, and made small enough to be run by tests.

A page says in HTML comments, which the site does not show, what a test needs to know:

- ``<!-- not run: REASON -->`` above a block: it is parsed and not run. ``(WORD) REASON`` instead of
  the reason, several of them between semicolons, means the lines with that word.
- ``<!-- refused: TEXT -->`` above a block: its commands fail, and say this.
- ``<!-- file: NAME -->`` above a block: it is written to this file first.
- ``<!-- before: robo-rl ... -->``: is run before the next block.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from robo_rl.commands.parsers import command_words, parser_of

ROOT = Path(__file__).parents[1]
# Results are records of commands that were run when they were measured.
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "results" not in page.parts
]
BLOCK = re.compile(
    r"^(?P<pad> *)```(?P<kind>\w+)\n(?P<text>.*?)^ *```"
    r"|^ *<!-- (?P<mark>not run|refused|file|before): (?P<said>.*?) -->",
    re.DOTALL | re.MULTILINE,
)
# The one way in which commands are made small: these options get these values, where a command has
# them. With "+" it gets them always, else only in place of a value on the page.
SMALL: dict[str, str] = {
    "train": "+--episodes=4 +--eval-points=0 +--env-steps=640 +--clip.scene.frames=96 "
    "+--clip.scene.holdout=32 +--clip.scene.distill.steps=20 +--film.scene.frames=96 "
    "+--goal-image.scene.frames=96 --demos=2 --preferences.answers=8",
    "evaluate": "+--episodes=4",
    "deploy": "+--episodes=1",
    "teleop": "+--episodes=1",
    "learn-on-arm": "+--minutes=0.05",
    "demos": "+--episodes=4",
    "clone": "+--updates=20 +--episodes=4 --demos=2",
    "sweep": "--seeds=0 --jobs=1 +--episodes=4 +--eval-points=0 +--env-steps=640",
    "search": "+--candidates=1 +--rounds=1 +--rungs=1 +--env-steps=640 +--validation-episodes=4 "
    "+--episodes=4",
    "reward report": "+--episodes=16 +--bootstrap-samples=16 +--states=64",
    "reward picture": "--count=2",
    "reward score": "--episodes=2",
    "reward train": "+--frames=512 +--steps=4 +--check-states=64 +--watch.demonstrations=24 "
    "+--watch.lost=8 +--watch.random=8 +--watch.random-starts=8 +--watch.of-each=8 "
    "+--head.steps=20 +--ask.answers=8",
}
SMALL_PPO = ("--tuning.num-envs=16", "--tuning.n-steps=10")
SMALL_REPLAY = ("--tuning.num-envs=16", "--tuning.learning-starts=200", "--tuning.buffer-size=2000")


@dataclass
class Page:
    """What a test needs of a page."""

    path: Path
    files: dict[str, str] = field(default_factory=dict)  # to be written, by name
    commands: list[list[str]] = field(default_factory=list)  # words; run in this order
    refused: dict[int, str] = field(default_factory=dict)  # what the command at this place says
    shown: list[list[str]] = field(default_factory=list)  # of robo-rl, run or not
    skipped: list[tuple[str, str]] = field(default_factory=list)  # (command, why it is not run)

    @property
    def name(self) -> str:
        """Its path in the repository."""
        return str(self.path.relative_to(ROOT))


def read_page(path: Path) -> Page:
    """A page's commands, marks and files."""
    page, marks = Page(path), {}
    for found in BLOCK.finditer(path.read_text("utf-8")):
        if found["mark"] == "before":
            page.commands.append(shlex.split(found["said"]))
        elif found["mark"]:
            marks[found["mark"]] = found["said"]
        else:
            if name := marks.pop("file", ""):
                page.files[name] = found["text"]
            reason = marks.pop("not run", "")
            if found["kind"] == "bash":
                refused = marks.pop("refused", "")
                for line in _lines(found["text"]):
                    if refused:
                        page.refused[len(page.commands)] = refused
                    _add(page, line, reason)
            elif reason:
                raise ValueError(f"{page.name}: {reason!r} stands above a block of no commands")
    return page


def _lines(block: str) -> Iterator[str]:
    joined = re.sub(r"\\\n\s*", " ", block)
    yield from filter(None, (line.strip() for line in joined.splitlines()))


def _add(page: Page, line: str, reason: str) -> None:
    words = shlex.split(line, comments=True)
    if words[0] == "robo-rl":
        page.shown.append(words[1:])
    for part in reason.split(";") if reason.startswith("(") else ():
        word, _, why = part.strip().removeprefix("(").partition(") ")
        if word in line:
            page.skipped.append((line, why))
            return
    if reason and not reason.startswith("("):
        page.skipped.append((line, reason))
    else:
        page.commands.append(words)


def command_of(words: Sequence[str]) -> tuple[str, ...]:
    """The command, without its options: ``("reward", "train", "success")``."""
    known = [one for one in command_words() if tuple(words[: len(one)]) == one]
    if words[0] == "demos" and "--from" in words:
        return ("demos", "--from")
    return max(known, key=len, default=(words[0],))


def small(words: Sequence[str]) -> list[str]:
    """A command's words with the values of ``SMALL``."""
    command = command_of(words)
    settings = SMALL.get(" ".join(command[:2])) or SMALL.get(command[0], "")
    of_train = ("train",) if command == ("sweep",) else command
    decided = [w for name in ("--learner", "--reward") for w in _option(words, name)]
    flags = {
        f
        for one in (of_train, command)
        for o in parser_of(one, *decided if one == ("train",) else ()).options
        for f in o.flags
    }
    if "--config" in words or "--like" in words:  # which decide about the reward
        flags = {flag for flag in flags if not flag.startswith(("--clip.", "--film.", "--goal-"))}
    found = list(words)
    for setting in settings.split():
        always, option = setting.startswith("+"), setting.removeprefix("+")
        name, _, value = option.partition("=")
        given = next((i for i, word in enumerate(found) if word == name), None)
        if given is not None:
            found[given + 1] = value
        elif always and name in flags and "--resume" not in words:
            found.append(option)
    if command == ("train",) and "--resume" not in words and "--help" not in words:
        size = SMALL_REPLAY if "--tuning.buffer-size" in flags else SMALL_PPO
        found += [one for one in size if one.partition("=")[0] in flags]
    return found


def _option(words: Sequence[str], name: str) -> list[str]:
    return [name, words[words.index(name) + 1]] if name in words else []


if __name__ == "__main__":
    read = [read_page(path) for path in PAGES]
    for page in read:
        for command, why in page.skipped:
            print(f"{page.name}: {command}\n    not run: {why}")
    skipped = sum(len(page.skipped) for page in read)
    print(f"{sum(len(page.commands) for page in read)} commands are run, {skipped} are not")
