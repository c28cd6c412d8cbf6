"""The command line: help without torch, one clear line for every mistake, nothing half-written."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import reach_bundle
from rich.console import Console

import sims
from robo_rl.cli import COMMANDS, accept_scientific_integers, main
from robo_rl.commands.reward import ACTIONS
from robo_rl.learners import PPOConfig, SACConfig
from robo_rl.runtime.progress_bars import stage_progress

PROGRAM = [sys.executable, "-m", "robo_rl.cli"]
EVERY = [*COMMANDS, *(f"reward {action}" for action in ACTIONS)]


def run(*args: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | env,
    )


def test_light_commands_and_the_help_of_every_command_load_no_torch() -> None:
    code = f"""
import contextlib, sys
from robo_rl.cli import main

def light(args):
    with contextlib.suppress(SystemExit):
        main(args)
    assert "torch" not in sys.modules, f"{{args}} imported torch"

for command in (["--help"], ["list"], ["reward", "read", "touch the red cube"]):
    light(command)
import robo_rl.commands.deploy, robo_rl.commands.emulate
for command in {EVERY!r}:
    light([*command.split(), "--help"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", EVERY)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main([*command.split(), "--help"])
    except SystemExit as error:
        status = error.code
    assert status == 0 and "usage" in capsys.readouterr().out.lower()


def test_list_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    listing = json.loads(capsys.readouterr().out)
    assert {"reach", "push"} <= set(listing["tasks"])
    assert {"ppo", "sac"} <= set(listing["learners"]) and "clip" in listing["rewards"]
    assert all(told.endswith(".") for told in listing["learners"].values()), "whole sentences"
    assert main(["list", "signals", "push", "--json"]) == 0
    assert "red_cube_pos" in json.loads(capsys.readouterr().out)["signals"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train", "raech"], "unknown task 'raech'; available tasks: "),
        (["train", "wash the dishes"], "'wash the dishes' is neither a task (robo-rl list tasks)"),
        (["train", "put the blue box away"], "as a goal of stack: did not understand"),
        (["train", "go forward"], "'go forward' is a goal of hopper, half_cheetah, walker2d"),
        (["train", "touch the red cube", "--goal", "lift it"], "unknown task 'touch the red cube'"),
        (["train", "go forward"], 'name the task, such as train hopper --goal "go forward"'),
        (["reward", "read", "go forward"], "is a goal of hopper, half_cheetah"),
        (["reward", "read", "go forward"], "name the task, such as --task hopper"),
        (["train", "reach", "--goal", "blorf the wug"], "Available: the gripper touches"),
        (["train", "reach", "--goal", "do not touch the red cube"], "not"),
        (["train", "reach", "--robot", "ur99"], "unknown robot 'ur99'"),
        (["train", "reach", "--learner", "dqn"], "unknown learner 'dqn'; available: ppo"),
        (
            ["train", "reach", "--reward", "magic"],
            "unknown reward 'magic'; available rewards: clip",
        ),
        (["train", "--resume", "nowhere"], "no run in nowhere"),
        (["train", "reach", "--env-steps", "1.5"], "--env-steps: expected INT, got '1.5'"),
        (["train", "reach", "--env-steps", "1e400"], "--env-steps: expected INT, got '1e400'"),
        (["train", "reach", "--tuning.net", "x"], "--tuning.net: expected [INT [INT ...]], got"),
        (
            ["train", "reach", "--eval-seeds", "me"],
            "--eval-seeds: expected validation, test, got 'me'",
        ),
        (["train", "reach", "--seed"], "--seed: expected INT, got nothing"),
        (["export"], "robo-rl export needs RUN, TO; see robo-rl export --help"),
        (
            ["train", "reach", "--env-kwargs", "{}1"],
            "env_python and env_kwargs apply to gym:ID tasks only, got task reach",
        ),
        (
            ["train", "gym:Pendulum-v1", "--reward", "task", "--episode-s", "2"],
            "gym:Pendulum-v1 is an external environment: leave out --episode-s",
        ),
        (["train", "reach", "--labels", "8"], "--labels applies to distilled scorers"),
        (["train", "reach", "--device", "gpu"], "device must be cpu, cuda or cuda:N, got 'gpu'"),
        (
            ["train", "reach", "--reward", "task", "--device", "cuda:99"],
            "--device cuda:99: torch finds ",
        ),
        (
            ["train", "gym:Pendulum-v1", "--reward", "task", "--tuning.minibatches", "3"],
            "does not divide into 3 minibatches",
        ),
        (
            [
                "train",
                "reach",
                "--reward",
                "task",
                "--goal",
                "the red cube is far from the blue ball",
            ],
            "no ground truth for this sentence; available goals:",
        ),
        (["evaluate", "nowhere"], "no run in nowhere"),
        (["report", "nowhere"], "no run in nowhere"),
        (["deploy", "nowhere", "--emulate"], "nowhere"),
        (["reward", "score", "nowhere.mp4", "--goal", "touch the red cube"], "cannot read a video"),
        (["reward", "read", "hello"], "goal"),
        (
            ["reward", "read", "gently push the red cube to the left edge", "--task", "push"],
            "Did you mean 1: the red cube is on the left side of the table",
        ),
        (["reward", "read", "move the cube -5 cm to the left"], "no amount is negative: say the"),
        (
            ["train", "reach", "--env-step", "5"],
            "unknown option --env-step; see robo-rl train --help",
        ),
        (
            ["train", "--sed", "3"],
            "unknown option --sed; see robo-rl train --help. Did you mean --se",
        ),
        (["evaluate", "runs/x", "again"], "unexpected 'again'; see robo-rl evaluate --help"),
        (
            ["train", "reach", "--reward", "offline", "--clip.alpha", "0.2"],
            "train --help. --clip.* options belong to another --reward or --learner",
        ),
        (
            ["train", "reach", "--reward", "offline", "--tuning.clip-ration", "0.2"],
            "Did you mean --tuning.clip-ratio?",
        ),
        (["sweep", "reach", "--over", "nosuch=1,2"], "unknown option --nosuch; see robo-rl train"),
        (["train", "reach", "--goal", "blorf it"], "; and 10 more (robo-rl list tasks)"),
        (["reward", "check", "none.py", "--task", "reach"], "cannot use none.py: No such file"),
        (["reward", "label", sys.executable], "is a file: expected a folder, in which answers are"),
        (["replay", sys.executable], "is not a robo-rl robot log (*.mcap)"),
        (["train", "reach", "--reward", f"film:{__file__}"], "cannot read a video from"),
        (["train", "reach", "--reward", "task", "--runs", "/proc/x"], "is not a writable folder"),
        (
            ["train", "hover 7 cm above the green can"],
            "Or give --reward offline, a program of the state that needs no CLIP.",
        ),
        (
            ["train", "reach", "--robot", "koch"],
            "embedded:FILE.safetensors; --reward task, offline and code:FILE need no CLIP",
        ),
        (
            ["train", "reach", "--robot", "koch"],
            "drawer_then_place, push with the so101, ur5e, fr3, cameras front, top and knows no "
            "other scene; here is reach with the koch. Train one for it: robo-rl reward train "
            "--task reach --robot koch --out",
        ),
        (
            ["train", "reach", "--clip.camera", "side"],
            "of reach this CLIP knows the cameras front, top, not 'side'",
        ),
        (["reward", "train"], "--out FILE, or --ship to overwrite those inside the package"),
        (["reward", "train", "--ship", "--robot", "fr3"], "trains on all scenes of the package"),
        (
            ["reward", "train", "--task", "half_cheetah", "--out", "a.safetensors"],
            "no relation of the goal language is visible in frames of half_cheetah",
        ),
        (["reward", "train", "--goals", "sing", "--out", "a.safetensors"], "sing"),
        (["reward", "train", "--out", "weights"], "must be a .safetensors file"),
        (
            ["reward", "train", "--frames", "-5", "--out", "a.safetensors"],
            "frames must be at least 1, got -5",
        ),
        (
            ["train", "reach", "--clip.distill", "--clip.scene.frames", "100"],
            "no training frames: 100 frames with 500 held out",
        ),
        (["train", "reach", "--clip.scene.distill.members", "0"], "members must be at least 1"),
        (["train", "reach", "--tuning.net", "-3"], "net must be layers of at least 1 unit"),
        (
            ["train", "reach", "--env-steps", "900", "--tuning.n-steps", "1000"],
            "tuning.n_steps gives rollouts of 1,000, more than env_steps, 900",
        ),
        (
            [
                "train",
                "reach",
                "--reward",
                "task",
                "--learner",
                "ensemble",
                "--tuning.buffer-size",
                "20000000000",
                "--episodes",
                "4",
                "--eval-points",
                "0",
            ],
            "Unable to allocate",
        ),
        (["bench", "everything"], "unknown experiment 'everything'; available: demo, "),
    ],
)
def test_usage_errors_are_one_line(
    args: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    status = main(args)
    captured = capsys.readouterr()
    errors = [line for line in captured.err.splitlines() if line.startswith("robo-rl: ")]
    assert status != 0 and len(errors) == 1, captured.err
    assert said in errors[0]
    assert "Traceback" not in captured.err
    assert not list(tmp_path.iterdir()), "a mistake must leave nothing behind"


@pytest.mark.parametrize("args", [["--help"], ["list"], ["search", "--help"]])
def test_closed_stdout_prints_no_error(args: list[str]) -> None:
    with subprocess.Popen(
        [*PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("module", "args", "extra"),
    [
        ("h5py", ["demos", "reach", "DIR", "--episodes", "1"], "demos"),
        ("torch", ["train", "reach", "--runs", "DIR"], "train"),
    ],
)
def test_missing_package_error_names_the_extra(
    module: str, args: list[str], extra: str, tmp_path: Path
) -> None:
    args = [str(tmp_path / "new") if word == "DIR" else word for word in args]
    code = f"import sys; sys.modules[{module!r}] = None; from robo_rl.cli import main; main({args})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"pip install 'robo-rl[{extra}]'" in done.stderr and "Traceback" not in done.stderr


def test_missing_opengl_is_a_one_line_error(tmp_path: Path) -> None:
    reach_bundle.write(tmp_path, "so101")
    done = run(
        "deploy",
        tmp_path,
        "--emulate",
        "--robot",
        "so101",
        "--rendered",
        "--episodes",
        "1",
        MUJOCO_GL="glfw",
        DISPLAY="",
        WAYLAND_DISPLAY="",
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "no OpenGL backend works" in last and "apt install libegl1" in last
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("task", [name for name in sims.TASKS if name != "tabletop"])
def test_sentence_alone_selects_its_task(task: str) -> None:
    from robo_rl.goals.task_lookup import task_for

    for key, goal in sims.make_task(task).goals().items():
        try:
            assert task_for(goal.sentence, own=False, typed="{task}") == task
        except ValueError as error:  # several bodies go forward
            assert f"is a goal of {task}, " in str(error) or f", {task}" in str(error), key


def test_unparsed_sentence_error_gives_the_closest_tasks_reason() -> None:
    from robo_rl.goals.reading import NotRead
    from robo_rl.goals.task_lookup import task_for

    with pytest.raises(ValueError, match="as a goal of button: .*a quantity"):
        task_for("press the button twice", own=False, typed="{task}")
    assert task_for("wash the dishes", own=False, typed="{task}") == ""
    assert task_for("put the lemon on the plate", own=False, typed="{task}") == ""
    # words that nobody knows, of things that one task has
    with pytest.raises(NotRead, match="as a goal of drawer_then_place .*--things") as strange:
        task_for("schlep the red cube into the drawer", own=False, typed="{task}")
    assert strange.value.offers[0].understood.startswith("the red cube is in the drawer")
    for text in ("drop the cube", "leave the cube alone"):  # of which stack has two
        with pytest.raises(ValueError, match="as a goal of reach: "):
            task_for(text, own=False, typed="{task}")
    with pytest.raises(ValueError, match="as a goal of reach: .* may be any of red_cube, blue"):
        task_for("touch the thing left of the ball", own=False, typed="{task}")
    with pytest.raises(ValueError, match="as a goal of reach: .* what comes before"):
        task_for("go back to where you started", own=False, typed="{task}")


@pytest.mark.parametrize("text", ["wave hello", "do a front flip", "move backwards", "run forward"])
def test_a_body_that_no_word_names_is_not_guessed(text: str) -> None:
    """Of a sentence without a task; with one, it is read."""
    from robo_rl.goals.reading import read_goal
    from robo_rl.goals.task_lookup import task_for

    with pytest.raises(ValueError, match="is a goal of .*does not name the robot: name the task"):
        task_for(text, own=False, typed="train {task}")
    assert read_goal(sims.make_task("ant"), "wave hello").key == "wave"
    assert task_for("the spider waves hello", own=False, typed="") == "ant"


def test_reading_says_whether_the_embedded_clip_was_trained_on_the_captions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for text, task, known in (
        ("touch the blue ball", "reach", True),
        ("hover 7 cm above the green can", "reach", False),
        ("touch the blue ball", "tabletop", False),
    ):
        assert main(["reward", "read", text, "--task", task]) == 0
        assert ("the embedded CLIP was not trained on" in capsys.readouterr().out) != known
        assert main(["reward", "read", text, "--task", task, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["embedded_clip"] == known


def test_train_accepts_a_sentence_for_task_and_goal() -> None:
    from robo_rl.commands.train import parse_train

    typed = parse_train(["--seed", "2", "put the red cube in the drawer", "--reward", "task"])
    assert (typed.task, typed.goal) == ("drawer_then_place", "put the red cube in the drawer")
    said = ["drawer_then_place", "--goal", typed.goal, "--seed", "2", "--reward", "task"]
    assert typed.config_values == parse_train(said).config_values
    assert parse_train(["the gripper is 12 cm above the blue ball"]).task == "reach"
    mine = parse_train(["lift a red cube", "--things", "two red cubes"])
    assert (mine.task, mine.goal) == ("tabletop", "lift a red cube")


def test_task_preset_sets_defaults_and_typed_options_win():
    from robo_rl.commands.train import parse_train
    from robo_rl.config.presets import PRESETS

    for name, preset in PRESETS.items():
        task, *goal = name.split()
        goals = [f"--goal={key}" for key in goal]
        parsed = parse_train([task, *goals, "--learner", preset.learner])
        assert {k: parsed.config_values[k] for k in preset.run} == preset.run
        assert parsed.tuning == preset.tuning(preset.learner)
        assert {k: getattr(parsed.tuning, k) for k in preset.ppo} == preset.ppo  # the learner
        if preset.ensemble_run:
            many = parse_train([task, *goals, "--learner", "ensemble"])
            assert {k: many.config_values[k] for k in preset.ensemble_run} == preset.ensemble_run
        if preset.dense or name == "push":  # others take their usual learner, as a push does
            dense = parse_train([task, *goals, "--reward", "task"])
            assert dense.config_values["learner"] == (preset.dense or preset.learner)
            if preset.dense == "ensemble":
                assert {
                    k: dense.config_values[k] for k in preset.ensemble_run
                } == preset.ensemble_run
            assert dense.tuning == preset.tuning(dense.config_values["learner"])
    asked = parse_train(["hopper", "--goal=forward", "--learner", "ppo", "--reward", "task"])
    ppo = PRESETS["hopper forward"].ppo
    assert ppo and {k: getattr(asked.tuning, k) for k in ppo} == ppo
    typed = parse_train(["push", "--env-steps", "500", "--tuning.log-std-init", "-2"])
    assert (typed.env_steps, typed.tuning.log_std_init) == (500, -2.0)
    assert parse_train(["push", "--learner", "sac"]).tuning == SACConfig()
    assert parse_train(["reach"]).tuning == PPOConfig()
    said = parse_train(["ant", "--goal", "The ant lies down on its back."])
    assert said.further.episode_s == PRESETS["ant lie_down"].run["episode_s"]


def test_integer_options_accept_scientific_notation() -> None:
    from robo_rl.commands.train import parse_train

    with accept_scientific_integers():
        typed = parse_train(["reach", "--env-steps", "2.5e6", "--seed", "1_000"])
        alone = parse_train(["reach", "--tuning.num-envs", "1e1", "--learner", "ppo"])
    assert (typed.env_steps, typed.config_values["seed"], alone.tuning.num_envs) == (
        2_500_000,
        1_000,
        10,
    )


def test_stopped_progress_bar_does_not_show_100_percent() -> None:
    drawn = []
    for error in (None, KeyboardInterrupt):
        console = Console(file=io.StringIO(), force_terminal=True, width=80)
        with contextlib.suppress(KeyboardInterrupt), stage_progress(console) as progress:
            progress("fit", 0.25)
            if error:
                raise error
        drawn.append(console.file.getvalue())
    assert "100 %" in drawn[0] and "100 %" not in drawn[1] and "25 %" in drawn[1]


def test_reader_model_error_names_the_reading_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    said = capsys.readouterr().out
    assert "--reading.model" in said and not re.search(r"(?<![.\w])--model\b", said)


def test_progress_and_remarks_break_no_line(tmp_path: Path) -> None:
    """So that a path can be copied, and found by grep; every command has the same console."""
    path = f"{tmp_path}/{'long-name-of-a-run/' * 20}report.html"
    code = (
        "from robo_rl.runtime.progress_bars import stderr_console\n"
        f"stderr_console().print('report: {path} and more words behind it')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines() == [f"report: {path} and more words behind it"]
    root = Path(__file__).parents[1] / "robo_rl"
    own = [p.name for p in root.rglob("*.py") if "Console(stderr=True" in p.read_text()]
    assert own == ["progress_bars.py"]


def test_help_says_where_options_of_learners_and_rewards_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = []
    for more in ([], ["--learner", "ensemble"]):
        with pytest.raises(SystemExit):
            main(["train", *more, "--help"])
        shown.append(" ".join(capsys.readouterr().out.split()))
    assert "robo-rl train --learner ensemble --reward success:FILE --help" in shown[0]
    assert all(option in shown[0] for option in ("--demos", "--base", "--interventions"))
    assert "--demos STR" in shown[1] or "--tuning.demos" in shown[1]


def test_a_damaged_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text('{"task": "reach",\n')
    for command in (["evaluate"], ["report"], ["train", "--resume"]):
        assert main([*command, str(tmp_path)]) == 1
        assert f"{tmp_path / 'config.json'} is damaged, it is not JSON" in capsys.readouterr().err
