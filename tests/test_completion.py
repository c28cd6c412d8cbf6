"""Completion in the shell, from the parsers of all commands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from robo_rl.cli import main
from robo_rl.commands.completion import script
from robo_rl.commands.parsers import command_words, parser_of

ASK = """
source "$1"; shift
COMP_WORDS=(robo-rl "$@"); COMP_CWORD=$#; _robo_rl; echo "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "robo-rl.sh"
    path.write_text(script())
    return path


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["tr"], {"train"}),
        (["reward", "sc"], {"score"}),
        (["reward", "train", "cr"], {"critic"}),
        (["calibrate", "cam"], {"camera"}),
        (["train", "pu"], {"push"}),
        (["train", "reach", "--eval-seeds", ""], {"validation", "test"}),
        (["train", "reach", "--learner", "pp"], {"ppo"}),
        (["sweep", "reach", "--env-st"], {"--env-steps"}),
        (["deploy", "bundle", "--robot", "so"], {"so101"}),
        (["runs", "pr"], {"prune"}),
        (["report", "no-such-"], set()),
    ],
)
def test_bash_offers_commands_options_and_names(
    file: Path, typed: list[str], offered: set[str]
) -> None:
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", file, *typed], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == offered


def test_the_script_is_valid_in_each_shell(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh"):
        assert main(["completion", shell]) == 0
        text = capsys.readouterr().out
        if found := shutil.which(shell):
            subprocess.run([found, "-n"], input=text, text=True, check=True)
        assert ("bashcompinit" in text) == (shell == "zsh")


def test_the_parser_of_every_command_is_found() -> None:
    for words in command_words():
        parser = parser_of(words)
        assert parser.description, words
        for option in parser.options:
            assert option.help or option.name == "--help", f"{words}: {option.name} has no help"


def test_settings_decide_which_options_there_are() -> None:
    names = {option.name for option in parser_of(["train"], "--learner", "sac").options}
    assert {"--tuning.buffer-size", "--clip.encoder"} <= names
    names = {option.name for option in parser_of(["train"], "--reward", "task").options}
    assert not {name for name in names if name.startswith("--clip")}
