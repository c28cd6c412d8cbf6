"""An arm is what its own files say: nothing else names one, and what they say is there."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import sims
from real_robot import RobotDriver, arms
from real_robot.emulators.emulator import Emulator
from robo_rl.cli import main
from robo_rl.commands.deploy import DeployCommand

ROOT = Path(__file__).parents[1]
SHARED = [
    *(
        path
        for path in (ROOT / "real_robot").rglob("*.py")
        if path.parts[-2] not in ("arms", "drivers", "emulators")
    ),
    ROOT / "real_robot" / "arms" / "__init__.py",
    ROOT / "real_robot" / "drivers" / "__init__.py",
    ROOT / "real_robot" / "emulators" / "__init__.py",
    ROOT / "real_robot" / "emulators" / "emulator.py",
    *(ROOT / "robo_rl" / "arm").glob("*.py"),
    *(ROOT / "robo_rl" / "commands").glob("[ade]*.py"),
    ROOT / "tests" / "test_driver_contract.py",
]


def parameters(cls: type) -> set[str]:
    """The names that ``cls(...)`` takes, with those that its ``**options`` hand to a base class."""
    names: set[str] = set()
    for base in (base for base in cls.__mro__ if "__init__" in vars(base)):
        taken = inspect.signature(base.__init__).parameters.values()
        names |= {p.name for p in taken}
        if not any(p.kind is p.VAR_KEYWORD for p in taken):
            break
    return names


def test_shared_arm_code_names_no_arm() -> None:
    table = ROOT / "real_robot" / "arms" / "__init__.py"
    named = [
        (source, node.lineno, node.value)
        for source in SHARED
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Constant) and node.value in sims.ROBOTS
    ]
    assert [name for source, _, name in named if source == table] == [*arms.ARMS]
    assert not [where for where in named if where[0] != table]


@pytest.mark.parametrize("name", arms.ARMS)
def test_arm_spec_refers_to_existing_classes_and_options(name: str) -> None:
    arm = arms.spec(name)
    pytest.importorskip(arm.client, reason=f"pip install 'robo-rl[{arm.extra}]'")
    driver, emulator = arms.load(arm.driver), arms.load(arm.emulator)
    assert issubclass(emulator, Emulator) and issubclass(driver, RobotDriver)
    takes = parameters(driver)
    options = {field for field in DeployCommand.__dataclass_fields__}
    assert {*arm.settings} <= takes & options and {*arm.unhurried} <= takes
    assert {*arm.emulator_settings} <= parameters(emulator)
    assert arm.found_by in options and name in sims.ROBOTS
    assert {*arm.paced} <= takes
    assert hasattr(driver, "joints_with_torque")  # what is asked of an arm that was left
    assert f"{arm.extra} = [" in (ROOT / "pyproject.toml").read_text()


def test_emulate_refuses_options_of_other_arms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "so101", "--compressed"]) == 1
    assert "--compressed does not apply to so101" in capsys.readouterr().err
    assert main(["emulate", "ur5e", "--uncalibrated"]) == 1
    assert "--uncalibrated does not apply to ur5e" in capsys.readouterr().err


def test_emulate_refuses_an_unparsed_goal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "so101", "--goal", "touch the green dragon"]) == 1
    assert "dragon" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "robot"])
def test_emulate_refuses_non_loopback_addresses(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["emulate", "ur5e", "--host", host]) == 1
    said = capsys.readouterr().err
    assert f"--host must be a loopback address, for example 127.0.0.2, got {host!r}" in said


def test_unknown_arm_error_lists_the_arms() -> None:
    with pytest.raises(
        ValueError, match="unknown arm 'so11'; available: so101, ur5e, .*Did you mean"
    ):
        arms.spec("so11")
