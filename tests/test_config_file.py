"""`train --config FILE` and `train --like RUN`: options that are typed win."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_rl.cli import accept_scientific_integers, main
from robo_rl.commands.train import TrainCommand, parse_train
from robo_rl.config.train_config import SettledConfig
from robo_rl.learners import EnsembleConfig, PPOConfig, SACConfig
from robo_rl.rewards import ClipConfig
from robo_rl.runs.run_dir import RunDir
from robo_rl.runtime.renamed_options import RenamedOption

TEXT = """
task: reach
goal: touch the blue ball
reward: offline
env_steps: 2e4
tuning:
  n-steps: 64
  net: [32, 32]
  normalise_reward: true
"""
TYPED = ["reach", "--goal", "touch the blue ball", "--reward", "offline", "--env-steps", "2e4"]
TUNED = ["--tuning.n-steps", "64", "--tuning.net", "32", "32", "--tuning.normalise-reward"]


def parse(*args: str) -> TrainCommand:
    with accept_scientific_integers():
        return parse_train(args)


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "run.yaml").write_text(TEXT)
    return str(tmp_path / "run.yaml")


def test_a_file_stands_for_the_options_in_it(file: str) -> None:
    assert parse("--config", file).config_values == parse(*TYPED, *TUNED).config_values
    assert parse(f"--config={file}", "--seed", "3").config_values["seed"] == 3


def test_options_of_the_clip_ask_for_it() -> None:
    words = ["humanoid", "--goal", "the humanoid is kneeling"]
    assert parse(*words, "--clip.target", "kneeling").config_values["reward"] == "clip"
    assert parse(*words).config_values["reward"] != "clip"


def test_unknown_options_hide_no_task(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--config", file, "--clip.alpha=1"]) == 2
    assert "--clip.alpha" in capsys.readouterr().err


def test_a_file_with_old_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("looks: 3\njudge: select\n")
    with pytest.warns(RenamedOption, match="looks is now called --eval-points"):
        further = parse("--config", str(tmp_path / "run.yaml")).further
    assert (further.eval_points, further.eval_seeds) == (3, "validation")


def test_options_that_are_typed_win(file: str) -> None:
    typed = parse("--config", file, "--env-steps", "5000", "--tuning.no-normalise-reward")
    assert (typed.env_steps, typed.tuning.normalise_reward, typed.tuning.net) == (
        5_000,
        False,
        (32, 32),
    )
    assert parse("--config", file, "--learner", "sac").tuning == SACConfig()
    other = parse("touch the red cube", "--config", file)
    assert (other.task, other.goal, other.reward) == ("reach", "touch the red cube", "offline")
    push = parse("push", "--config", file, "--goal", "red_cube_next_to_blue_ball")
    assert (push.task, push.goal) == ("push", "red_cube_next_to_blue_ball")
    by_formula = parse("--config", file, "--formula", "touch(gripper, red_cube)")
    assert (by_formula.goal, by_formula.formula) == ("", "touch(gripper, red_cube)")


def test_a_run_is_repeated_with_other_options(tmp_path: Path) -> None:
    config = SettledConfig(
        task="push",
        goal="red_cube_next_to_blue_ball",
        scoring=ClipConfig(formula="contrast", negatives=("the cube is away", "nothing")),
        tuning=PPOConfig(net=(8,)),
        name="first",
        episodes=7,
    )
    run = RunDir.create(tmp_path / "first", config)
    again = parse("--like", str(run.path), "--seed", "4").config_values
    assert again == vars(config) | {"seed": 4, "name": ""}
    other = parse("--like", str(run.path), "--reward", "sparse", "--learner", "ensemble")
    assert isinstance(other.tuning, EnsembleConfig) and other.further.episodes == 7


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("task: reach\nenv_stepz: 3", [], "unknown key 'env-stepz'"),
        ("- reach", [], "expected a mapping of options"),
        ("a: [", [], "is not YAML"),
        ("task: reach", ["--resume", "run"], "exclusive"),
        ("task: reach", ["--like", "run"], "exclusive"),
        ("tuning: {learning_rate: fast}", [], "--tuning.learning-rate: expected FLOAT, got 'fast'"),
    ],
)
def test_a_mistake_in_a_file_is_one_line(
    text: str, args: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.yaml").write_text(text)
    assert main(["train", "--config", str(tmp_path / "run.yaml"), *args]) != 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line]
    assert said in line
