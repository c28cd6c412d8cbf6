"""The generated reference names every command, option and setting, with its help."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

import pytest
import tyro
from test_pages import GENERATED

from robo_rl.commands.parsers import command_words, parser_of
from robo_rl.config.presets import PRESETS
from robo_rl.config.train_config import TrainConfig
from robo_rl.learners import LEARNERS

ROOT = Path(__file__).parents[1]


def load_generator() -> ModuleType:
    """docs/generated.py, which is in no package."""
    path = ROOT / "docs" / "generated.py"
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generated"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    return load_generator()


@pytest.fixture(scope="module")
def pages(generated: ModuleType) -> dict[str, str]:
    return {path: make() for path, make in generated.PAGES.items()}


def test_the_menu_expects_these_pages(generated: ModuleType) -> None:
    assert {ROOT / "docs" / path for path in generated.PAGES} == GENERATED


def test_the_page_of_commands_has_every_option(pages: dict[str, str]) -> None:
    page = pages["reference/commands.md"]
    for words in command_words():
        section = page.partition(f"\n## robo-rl {' '.join(words)}\n")[2].partition("\n## ")[0]
        for option in parser_of(words).options:
            if option.name != "--help":
                assert f"| `{option.name}` |" in section, (words, option.name)


def test_the_page_of_settings_has_every_field(pages: dict[str, str]) -> None:
    page = pages["reference/config.md"]
    for field in dataclasses.fields(TrainConfig):
        assert f"| `{field.name}` |" in page or field.name in ("tuning", "scoring"), field.name
    for name, kind in LEARNERS.items():
        section = page.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        hints = get_type_hints(kind.config, include_extras=True)
        for field in dataclasses.fields(kind.config):
            suppressed = tyro.conf.Suppress in getattr(hints[field.name], "__metadata__", ())
            # These are options without a prefix.
            if not suppressed and field.name not in ("base", "demos", "interventions"):
                assert f"tuning.{field.name}" in section, (name, field.name)
    for name in PRESETS:
        assert f"| `{name}` |" in page, name


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("s, training episode length; 0: the task's", "s"),
        ("Known servo stiffness, N m/rad: an upper bound", "N m/rad"),
        ("s that a reply may take", "s"),
        ("device path, or a number", ""),
        ("share of training episodes", ""),
    ],
)
def test_a_unit_is_taken_from_the_help(generated: ModuleType, text: str, unit: str) -> None:
    assert generated.unit_of(text) == unit


def test_tables_stay_tables(pages: dict[str, str]) -> None:
    for page in pages.values():
        for line in page.splitlines():
            if line.startswith("|"):
                assert line.endswith(" |") and "\\|" not in line
