"""Old names of options and settings: each gives the same configuration, with one warning line."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from robo_rl.commands import evaluate, learn_on_arm, search
from robo_rl.commands.deploy import DeployCommand
from robo_rl.commands.sweep import settings_of
from robo_rl.commands.train import parse_train
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import SettledConfig, TrainConfig, from_json
from robo_rl.runs.run_dir import RunDir, jsonable
from robo_rl.runtime.renamed_options import (
    RENAMED,
    RENAMED_VALUES,
    RenamedOption,
    current_names,
    current_options,
)

ROOT = Path(__file__).resolve().parent.parent
OLD_TRAIN = {
    "looks": 3,
    "look_episodes": 7,
    "judge": "test",
    "asynchronous": True,
    "scattered": 0.25,
    "shaped": True,
}


def as_options(settings: dict[str, object]) -> list[str]:
    words = []
    for name, value in settings.items():
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    return words


@pytest.mark.parametrize("old", OLD_TRAIN)
def test_old_train_option_gives_the_same_config_with_a_warning(old: str) -> None:
    given = {old: OLD_TRAIN[old]}
    with pytest.warns(RenamedOption, match=f"--{old.replace('_', '-')} is now called --"):
        renamed = current_options(["reach", *as_options(given)])
    new = current_names(given)
    assert renamed == ["reach", *as_options(new)]
    config = TrainConfig(**parse_train(renamed).config_values)
    name, value = next(iter(new.items()))
    assert getattr(config, name) == value != getattr(TrainConfig(task="reach"), name)


def test_every_old_option_is_replaced_and_every_new_one_is_known() -> None:
    for old, new in RENAMED.items():
        option = f"--{old.replace('_', '-')}"
        with pytest.warns(RenamedOption):
            assert current_options([option, "1"]) == [f"--{new.replace('_', '-')}", "1"]
    known = {
        field.name
        for kind in (
            TrainConfig,
            DeployCommand,
            learn_on_arm.LearnOnArmCommand,
            search.SearchCommand,
            evaluate.EvaluateCommand,
        )
        for field in dataclasses.fields(kind)
    }
    elsewhere = {"bootstrap_samples", "video", "labeller", "stored"}  # of reward and bench
    assert {new for new in RENAMED.values() if "." not in new} <= known | elsewhere


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["--judge", "select"], ["--eval-seeds", "validation"]),
        (["--judge=select"], ["--eval-seeds=validation"]),
        (["--judge", "test"], ["--eval-seeds", "test"]),
        (["--look_episodes", "4"], ["--eval-episodes", "4"]),
        (["--no-shaped"], ["--no-rate-limited"]),
    ],
)
def test_old_option_is_replaced_in_each_form(typed: list[str], meant: list[str]) -> None:
    with pytest.warns(RenamedOption):
        assert current_options(typed) == meant


def test_other_words_of_a_command_line_stay() -> None:
    words = ["reach", "--goal", "looks", "--film.frames", "4", "--eval-seeds", "select", "judge"]
    assert current_options(words) == words


def test_sweep_over_an_old_option_keeps_the_name_of_its_runs() -> None:
    with pytest.warns(RenamedOption):
        found = settings_of(["reach"], ["scattered=0,0.5"])
    assert [(name, config.random_starts) for name, config in found.items()] == [
        ("scattered=0", 0.0),
        ("scattered=0.5", 0.5),
    ]


def test_the_shell_warns_of_an_old_option_in_one_line() -> None:
    command = [sys.executable, "-m", "robo_rl.cli", "deploy", "bundle", "--think", "x"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    warning, error = done.stderr.splitlines()
    assert warning.startswith("warning: --think is now called --policy-timeout; ")
    assert done.returncode == 2 and error == "robo-rl: --policy-timeout: expected FLOAT, got 'x'"


def test_train_config_takes_old_names_from_python() -> None:
    with pytest.warns(RenamedOption, match="looks is now called eval_points"):
        config = TrainConfig(task="reach", looks=3, judge="select")
    assert config == TrainConfig(task="reach", eval_points=3, eval_seeds="validation")


def test_a_stored_run_with_old_names_opens(tmp_path: Path) -> None:
    config = with_presets(TrainConfig(task="reach", **current_names(OLD_TRAIN)))
    back = {new: old for old, new in RENAMED.items()}
    stored = {back.get(name, name): value for name, value in jsonable(config).items()}
    assert OLD_TRAIN.items() <= stored.items()
    (tmp_path / "config.json").write_text(json.dumps(stored))
    assert from_json(SettledConfig, stored) == config
    assert from_json(SettledConfig, RunDir(tmp_path).config) == config


def test_old_values_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"judge": "select"}')
    assert RunDir(tmp_path).config == {"eval_seeds": "validation"}
    assert RENAMED_VALUES.keys() <= RENAMED.keys()


def test_upgrading_and_renames_list_every_old_option() -> None:
    for page in ("UPGRADING.md", "docs/maintainers/renames.md"):
        text = (ROOT / page).read_text()
        for old, new in RENAMED.items():
            for name in (old, new):
                assert f"`--{name.replace('_', '-')}" in text, (page, name)
