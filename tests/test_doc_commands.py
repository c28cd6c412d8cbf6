"""The commands in the documentation are parsed, and run at small sizes, page by page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tyro
from doc_commands import PAGES, ROOT, Page, read_page, small

import sims
from robo_rl.cli import accept_scientific_integers, main, raising_usage_errors, run
from robo_rl.commands.train import parse_train
from sims.utils import plugins

READ = [read_page(path) for path in PAGES]
WITH_COMMANDS = [page for page in READ if page.shown]
RUN = [page for page in READ if page.commands]
# Pages whose commands are parsed only: they were not yet run at these sizes.
PARSED = {
    f"docs/{name}.md"
    for name in (
        "how-to/choose-a-reward",
        "how-to/slow-rewards",
        "maintainers/figures",
        "reference/tasks",
        "tutorials/any-environment",
        "tutorials/fit-a-scorer",
        "tutorials/learning-on-the-arm",
        "tutorials/preferences",
        "tutorials/reward-code",
        "tutorials/run-to-arm",
        "tutorials/your-own-goal",
        "tutorials/your-own-task",
    )
}
# Commands that take a second or less; `make test` runs them.
QUICK = ("list", "reward read", "reward write", "reward check", "bench --list")


class Parsed(Exception):
    """A command's options are parsed."""


def ids(page: Page) -> str:
    return page.name


@pytest.fixture(autouse=True)
def tasks_of_this_test() -> Iterator[None]:
    """Forgets what a page's --import brings in: tasks, modules, and the name for subprocesses."""
    import gymnasium

    imports = os.environ.get(plugins.VARIABLE)
    kept = [(table, set(table)) for table in (sims.TASKS, gymnasium.registry)]
    modules = set(sys.modules)
    yield
    os.environ.pop(plugins.VARIABLE, None)
    if imports is not None:
        os.environ[plugins.VARIABLE] = imports
    for table, names in kept:
        for name in set(table) - names:
            del table[name]
    for name in set(sys.modules) - modules:
        if "." not in name and str(getattr(sys.modules[name], "__file__", "")).endswith("roll.py"):
            del sys.modules[name]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=ids)
def test_every_command_on_a_page_is_one_that_robo_rl_takes(
    page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those that are not run, too: names, values and options are checked by the parser."""
    own = tyro.cli

    def parse_and_stop(*args: object, **how: object) -> None:
        own(*args, **how)
        raise Parsed

    _write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    for words in page.shown:
        if "--help" in words or "--resume" in words or "--like" in words:
            continue  # there is no such run here
        if words[0] == "train":
            if "--import" not in words:
                with raising_usage_errors(), accept_scientific_integers():
                    parse_train(words[1:])
            continue
        if words[0] in ("sweep", "calibrate", "runs"):
            continue  # parsed in two steps; run, or of hardware
        with monkeypatch.context() as patch, pytest.raises(Parsed):
            patch.setattr(tyro, "cli", parse_and_stop)
            run(words)


@pytest.mark.parametrize("page", RUN, ids=ids)
def test_quick_commands_on_a_page_succeed(
    page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    for place, words in enumerate(page.commands):
        if " ".join(words[1:]).startswith(QUICK) and words[0] == "robo-rl":
            status, said = main(words[1:]), capsys.readouterr()
            assert (status != 0) == (place in page.refused), (words, said.err)
            assert page.refused.get(place, "") in said.err


def test_commands_that_are_not_run_say_why() -> None:
    reasons = [why for page in READ for _, why in page.skipped]
    count = sum(len(page.commands) for page in READ)
    assert count >= 90 and len(reasons) <= 70, (count, len(reasons))
    assert all(why.split()[0] in REASONS for why in reasons), reasons


# First words of the reasons: what is missing here, or why it does not end.
REASONS = {"needs", "asks", "takes", "serves", "installs", "downloads", "changes", "runs", "has"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs and the bundle that pages call NAME, ONE, OTHER, demo and BUNDLE."""
    folder = tmp_path_factory.mktemp("docs")
    before = Path.cwd()
    os.chdir(folder)
    try:
        words = "train reach --goal touch_red_cube --reward offline --name NAME".split()
        assert main(small(words)) == 0
    finally:
        os.chdir(before)
    runs = folder / "runs"
    for name in ("ONE", "OTHER", "demo"):
        shutil.copytree(runs / "NAME", runs / name)
    shutil.copytree(runs / "NAME" / "bundle", folder / "BUNDLE")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in RUN if p.name not in PARSED], ids=ids)
def test_the_commands_of_a_page_succeed_one_after_another(
    page: Page, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    (folder / "docs").symlink_to(ROOT / "docs")
    _write_files(page, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", open(os.devnull))
    for place, words in enumerate(page.commands):
        if words[0] == "robo-rl":
            try:
                status = main(small(words[1:]))
            except SystemExit as stop:  # of --help
                status = stop.code
            assert (status != 0) == (place in page.refused), " ".join(words)
        else:
            assert words[0] == "python", f"{page.name}: how is {words} run?"
            subprocess.run(
                [sys.executable, *words[1:]], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
            )


def _write_files(page: Page, folder: Path) -> None:
    for name, text in page.files.items():
        (folder / name).write_text(text)
