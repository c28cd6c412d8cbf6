"""The reference pages that `make docs` generates: commands from their parsers, settings from the
same, presets from their table. mkdocs calls ``on_files``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from robo_rl.commands.parsers import Option, command_words, parser_of
from robo_rl.config.presets import PRESETS
from robo_rl.learners import LEARNERS
from robo_rl.rewards import REWARDS, reward_names

UNIT = r"(s|m|m/s|rad|rad/s|deg|px|px/m|N|N m/rad|Hz|min|GB|bytes|env steps)"
NOT_SETTINGS = ("--help", "--json", "--resume", "--config", "--like", "--accept", "--reader")


def commands_page() -> str:
    """Every command with its options."""
    lines = [
        "# Commands",
        "",
        "Generated from the parsers by `make docs`. `robo-rl COMMAND --help` shows the same.",
        "",
        "`--import MODULE|FILE.py` works with every command and registers "
        "[your tasks](../tutorials/your-own-task.md). Options without a value have a second form "
        "with `--no-`. Whole numbers may be written as powers of ten, `2e6`.",
    ]
    for words in command_words():
        parser = parser_of(words)
        lines += ["", f"## robo-rl {' '.join(words)}", "", _prose(parser.description)]
        for title, options in parser.groups.items():
            shown = [option for option in options if option.name != "--help"]
            if not shown:
                continue
            if title not in ("options", "positional arguments"):
                lines += ["", f"**{title}**"]
            lines += ["", *_table(("option", "value", "default", "meaning"), map(_row, shown))]
    return "\n".join(lines) + "\n"


def config_page() -> str:
    """Every setting of a run, as in ``config.json``, in a file of ``--config`` and in Python."""
    lines = [
        "# Settings of a run",
        "",
        "Generated from the config dataclasses by `make docs`. A run's `config.json` holds all of "
        "them. In a file of [`--config`](../how-to/config-files.md) and in "
        "`robo_rl.TrainConfig(...)` they have the names of this page; on the command line `_` is "
        "typed as `-`. Settings with a dot are nested: those of the learner are `tuning`, those of "
        "the reward stand under its name in a file and are `scoring` in `config.json` and Python.",
        "",
        "Defaults are those of `reach`; [presets](#presets) change some of them for other tasks.",
        "",
        "## Run",
        "",
    ]
    run = [option for option in _settings() if "." not in option.name]
    lines += _settings_table(run)
    lines += ["", "## Learners", "", "`--learner NAME` decides which settings `tuning` has."]
    for name, kind in LEARNERS.items():
        own = [o for o in _settings("--learner", name) if o.name.startswith("--tuning.")]
        lines += ["", f"### {name}", "", _prose(kind.config.__doc__ or ""), ""]
        lines += _settings_table(own)
    lines += ["", "## Rewards", "", "`--reward NAME` decides which settings a reward has.", ""]
    lines += _table(("reward", "what it is"), (_code(k) + (v,) for k, v in reward_names().items()))
    for name, kind in REWARDS.items():
        typed = name if kind.alone or not kind.argument else f"{name}:{kind.argument}"
        own = [o for o in _settings("--reward", typed) if o.name.startswith(f"--{name}.")]
        if own:
            lines += ["", f"### {name}", "", *_settings_table(own)]
    lines += ["", "## Presets", "", *_presets()]
    return "\n".join(lines) + "\n"


def _settings(*decided_by: str) -> list[Option]:
    """The options of train that are settings of a run."""
    options = parser_of(("train",), *decided_by).options
    return [
        option
        for option in options
        if option.name not in NOT_SETTINGS and not option.name.startswith("--reading.")
    ]


def _settings_table(options: Iterable[Option]) -> list[str]:
    heads = ("key", "type", "default", "unit", "meaning")
    rows = (
        (
            *_code(option.name.removeprefix("--").replace("-", "_").lower()),
            *_code(option.value or "true, false"),
            *_code(option.default),
            unit_of(option.help),
            option.help,
        )
        for option in options
    )
    return _table(heads, rows)


def unit_of(text: str) -> str:
    """The unit that a help text names: at its beginning, after a comma or in parentheses."""
    found = re.search(rf"^{UNIT}(?=[,;: ]|$)|, {UNIT}(?=[,;:]|$)|\({UNIT}\)", text)
    return next(filter(None, found.groups()), "") if found else ""


def _presets() -> Iterator[str]:
    """What the presets change, by task, or by task and goal."""
    heads = ("task, goal", "learner", "settings")
    rows = []
    for name, preset in PRESETS.items():
        learner = preset.learner_of("")
        changed = preset.run_of(learner) | {
            f"tuning.{key}": value
            for key, value in vars(preset.tuning(learner)).items()
            if value != getattr(LEARNERS[learner].config(), key)
        }
        text = ", ".join(f"`{key}: {value}`" for key, value in changed.items())
        rows.append((*_code(name), learner, text))
    yield from _table(heads, rows)


def _row(option: Option) -> tuple[str, ...]:
    value = ", ".join(option.choices) or option.value
    return (*_code(option.name), *_code(value), *_code(option.default), option.help)


def _code(text: str) -> tuple[str]:
    return (f"`{text}`" if text and text != "''" else "",)


def _prose(text: str) -> str:
    return " ".join(text.split())


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(_prose(c).replace('|', '&#124;') for c in row)} |" for row in cells]


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/config.md": config_page,
}


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages to the site."""
    from mkdocs.structure.files import File

    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    return files
