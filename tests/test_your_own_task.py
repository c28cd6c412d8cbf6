"""docs/tutorials/your-own-task.md as written: the code on the page is taken from it and run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sims
from reward_models.goals.formula import atoms
from reward_models.goals.text import to_sentence
from reward_models.programs import load
from robo_rl.cli import main
from robo_rl.goals.reading import judged_goal, task_of_config
from robo_rl.rewards.code import template_program
from robo_rl.runs.run_dir import RunDir

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "your-own-task.md"


def block(kind: str) -> str:
    """The first block of a kind on the page."""
    return re.search(rf"```{kind}\n(.*?)```", PAGE.read_text(), re.S).group(1)


@pytest.fixture(scope="module")
def roll():
    """The task of the page, forgotten afterwards."""
    code = page_code()
    assert len(code.splitlines()) <= 100  # a person can read all of it
    module = types.ModuleType("roll_page")
    module.__file__ = str(PAGE)
    sys.modules["roll_page"] = module
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    yield module.Roll
    del sims.TASKS["roll"], gymnasium.registry["robo/Roll-v0"], sys.modules["roll_page"]


# Things by their names, and one's own MJCF.
TINY = (
    "--env-steps 640 --episodes 8 --eval-points 0 --tuning.num-envs 32 --tuning.n-steps 10".split()
)


@pytest.fixture
def kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's two files, and nothing else."""
    (tmp_path / "kitchen.xml").write_text(block("xml"))
    (tmp_path / "kitchen.toml").write_text(block("toml"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands() -> dict[str, list[str]]:
    """{its first option: the words} of the page's `robo-rl train tabletop` commands; of several
    that begin alike, the first."""
    text = PAGE.read_text().replace("\\\n", " ")
    lines = re.findall(r"^\s*robo-rl (train tabletop .*)$", text, re.M)
    return {line.split()[2]: shlex.split(line) for line in reversed(lines)}


def trained(option: str, capsys: pytest.CaptureFixture[str]) -> RunDir:
    """The run of the page's command with this option, made tiny."""
    assert main([*commands()[option], "--name", "one", *TINY]) == 0, capsys.readouterr().err
    run = RunDir.open(Path("runs/one"))
    assert run.result["formula"].startswith("next_to(")
    assert run.result["evaluation"]["episodes"] == 8
    return run


def test_own_scene_run_evaluates_without_its_files(
    kitchen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With no line of Python."""
    run = trained("--scene", capsys)
    for file in kitchen.glob("kitchen.*"):
        file.unlink()
    assert main(["evaluate", str(run.path), "--episodes", "8"]) == 0, capsys.readouterr().err


@pytest.mark.slow
def test_things_run_evaluates_and_resumes(
    kitchen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the run's folder alone."""
    run = trained("--things", capsys)
    things = "yellow ball, two red cubes, white plate"
    assert run.config["things"] == things
    task = task_of_config(run.config)
    assert [t.name for t in task.objects] == ["yellow_ball", "red_cube_1", "red_cube_2"]
    assert things in (run.path / "report.html").read_text()
    assert main(["evaluate", str(run.path), "--episodes", "8"]) == 0
    assert main(["report", str(run.path)]) == 0
    assert main(["train", "--resume", str(run.path), "--env-steps", "960"]) == 0
    assert run.result["env_steps"] == 960
    assert main(["train", "--resume", str(run.path), "--things", "red cube"]) == 1
    err = f"started with --things '{things}', got 'red cube'"
    assert err in " ".join(capsys.readouterr().err.split())


SAID = [line for line in block("text").splitlines() if line]


@pytest.mark.parametrize("text", SAID)
def test_five_sentences_about_the_kitchen_scene(text: str, kitchen: Path) -> None:
    """Read, read back, rewarded, judged; and captioned, part by part."""
    assert len(SAID) == 5
    judged, goal = judged_goal(sims.make_task("tabletop", scene="kitchen.xml", robot="ur5e"), text)
    assert goal.formula is not None and goal.understood and goal.key
    assert load(template_program(judged, goal), goal.card)
    captions = [to_sentence(a, goal.card) for a in atoms(goal.formula) if len(a.terms) < 3]
    assert all(
        entity.name.split("_")[0] in goal.understood
        for entity in goal.card.entities
        if any(entity.name in atom.terms for atom in atoms(goal.formula))
    )
    assert all(words.startswith("the ") for words in captions)
    env = sims.BatchEnv(judged, 16, seed=0)
    env.reset()
    result = env.step(np.zeros((16, env.act_dim)))
    assert not result.info["success"].any() and np.isfinite(env.render()).all()
    env.close()


def test_plugin_task_expert_solves_it(roll) -> None:
    env = sims.make("roll", 32, seed=1)
    env.reset()
    rng = np.random.default_rng(0)
    start = env.distance()
    for _ in range(env.max_steps):
        result = env.step(env.task.expert(env.views, rng))
    assert result.info["success"].mean() > 0.95 and (start > 0).mean() > 0.8


def test_plugin_task_works_with_every_command(roll) -> None:
    check_env(gymnasium.make("robo/Roll-v0").unwrapped)
    wide, alone = sims.make("roll", 8, seed=3), sims.make("roll", 1, seed=3, rows=[5])
    assert (wide.reset()[5] == alone.reset()[0]).all()
    assert wide.render().std() > 5
    assert wide.card["goals"] == {"middle": "the ball is in the middle"}


def test_duplicate_task_name_is_refused(roll) -> None:
    with pytest.raises(ValueError, match="task 'roll' is already registered"):
        sims.register(roll)


def test_sentences_beside_a_task_without_a_gripper(
    roll, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of other tasks are read as without it, and its own goals word for word."""
    monkeypatch.chdir(tmp_path)
    for args, status, said in (
        (["reward", "read", "push the cube to the left"], 1, "Did you mean 1: the red cube"),
        (["reward", "read", "hover over the blue ball"], 0, "above(gripper, blue_ball)"),
        (["train", "rol"], 1, "Did you mean 'roll'?"),
        (["train", "roll", "--reward", "offline"], 1, "give --reward task"),
        (["train", "roll", "--goal", "go home", "--reward", "task"], 1, "goals: the ball"),
        (["train", "roll", "--goal", "The ball is in the middle.", *TINY], 0, "success"),
    ):
        assert main(args) == status
        assert said in "".join(capsys.readouterr()), args


def page_code() -> str:
    return block("python")


PROGRAM = "import sys; from robo_rl.cli import main; sys.exit(main())"


def robo_rl(folder: Path, *args: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """The command line in a process and a folder of its own: what it imports is gone with it."""
    paths = os.pathsep.join([path, str(PAGE.parents[2])])
    return subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": paths},
    )


def test_import_option_registers_a_plugin_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "roll.py").write_text(page_code())
    (tmp_path / "broken.py").write_text("import no_such_module_of_mine\n")
    done = robo_rl(tmp_path, *"demos roll roll-v0 --episodes 4 --import roll.py".split())
    assert done.returncode == 0 and "200 steps, 4 successful" in done.stdout, done.stderr
    monkeypatch.chdir(tmp_path)
    for args, said in (
        ("demos rool rool-v0", "unknown task 'rool'"),
        ("list --import broken.py", "cannot import 'broken.py': ModuleNotFoundError"),
        ("list --import=none.py", "cannot import 'none.py': FileNotFoundError"),
        ("list --import", "--import needs a module's name"),
    ):
        assert main(args.split()) == 1
        assert capsys.readouterr().err.startswith(f"robo-rl: {said}")


def test_installed_package_registers_its_task(tmp_path: Path) -> None:
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
