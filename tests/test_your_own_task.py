"""docs/your_own_task.md as written: the code on the page is taken from it and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sims
from robo_rl.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "your_own_task.md"


@pytest.fixture(scope="module")
def roll():
    """The task of the page, forgotten afterwards."""
    code = page_code()
    assert len(code.splitlines()) <= 100  # a person can read all of it
    module = types.ModuleType("roll_page")
    sys.modules["roll_page"] = module
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    yield module.Roll
    del sims.TASKS["roll"], gymnasium.registry["robo/Roll-v0"], sys.modules["roll_page"]


def test_its_expert_solves_it(roll) -> None:
    env = sims.make("roll", 32, seed=1)
    env.reset()
    rng = np.random.default_rng(0)
    start = env.distance()
    for _ in range(env.max_steps):
        result = env.step(env.task.expert(env.views, rng))
    assert result.info["success"].mean() > 0.95 and (start > 0).mean() > 0.8


def test_everything_else_knows_it(roll) -> None:
    check_env(gymnasium.make("robo/Roll-v0").unwrapped)
    wide, alone = sims.make("roll", 8, seed=3), sims.make("roll", 1, seed=3, rows=[5])
    assert (wide.reset()[5] == alone.reset()[0]).all()
    assert wide.render().std() > 5
    assert wide.card["goals"] == {"middle": "the ball is in the middle"}


def test_names_are_taken_once(roll) -> None:
    with pytest.raises(ValueError, match="a task called 'roll' is registered already"):
        sims.register(roll)


def page_code() -> str:
    return re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S).group(1)


PROGRAM = "import sys; from robo_rl.cli import main; sys.exit(main())"


def robo_rl(folder: Path, *args: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """The command line in a process and a folder of its own: what it imports is gone with it."""
    paths = os.pathsep.join([path, str(PAGE.parents[1])])
    return subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *args], cwd=folder, capture_output=True, text=True,
        timeout=300, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip


def test_the_command_line_imports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "roll.py").write_text(page_code())
    (tmp_path / "broken.py").write_text("import no_such_module_of_mine\n")
    done = robo_rl(tmp_path, *"demos roll roll-v0 --episodes 4 --import roll.py".split())
    assert done.returncode == 0 and "4 episodes, 200 steps, 4 succeed" in done.stdout, done.stderr
    monkeypatch.chdir(tmp_path)
    for args, said in (
        ("demos rool rool-v0", "unknown task 'rool'"),
        ("list --import broken.py", "cannot import 'broken.py': ModuleNotFoundError"),
        ("list --import=none.py", "cannot import 'none.py': FileNotFoundError"),
        ("list --import", "--import needs a module's name"),
    ):
        assert main(args.split()) == 1
        assert capsys.readouterr().err.startswith(f"robo-rl: {said}")


def test_an_installed_package_announces_it(tmp_path: Path) -> None:
    """What pip leaves of such a package: the module beside its metadata."""
    (tmp_path / "my_roll.py").write_text(page_code())
    about = tmp_path / "my_tasks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-tasks\nVersion: 1.0\n")
    entries = about / "entry_points.txt"
    entries.write_text("[robo_rl.tasks]\nroll = my_roll\n")
    listed = robo_rl(tmp_path, "list", "tasks", "--json", path=str(tmp_path))
    assert json.loads(listed.stdout)["tasks"]["roll"] == "the ball is in the middle"
    entries.write_text("[robo_rl.tasks]\nroll = gone_roll\n")
    listed = robo_rl(tmp_path, "list", "tasks", "--json", path=str(tmp_path))
    assert "reach" in json.loads(listed.stdout)["tasks"]
    assert "'gone_roll' announces are missing" in listed.stderr
