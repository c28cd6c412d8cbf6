"""What is asked of a run becomes what it is: from Python as from the shell, and when it goes on."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from robo_rl.commands.train import parse_train
from robo_rl.config.presets import EFFORTS, PRESETS, Preset, preset, with_presets
from robo_rl.config.train_config import (
    ENV_STEPS,
    SettledConfig,
    TrainConfig,
    from_json,
    resumed_config,
)
from robo_rl.learners import PPOConfig, SACConfig
from robo_rl.rewards import ClipConfig
from robo_rl.runs.run_dir import RunDir, jsonable, write_json


@pytest.mark.parametrize("name", PRESETS)
def test_python_config_has_the_command_line_presets(name: str) -> None:
    task, *goal = name.split()
    asked = with_presets(TrainConfig(task=task, goal=" ".join(goal), learner="ppo"))
    typed = parse_train([task, "--learner=ppo", *(f"--goal={key}" for key in goal)])
    assert vars(asked) == typed.config_values
    assert {k: getattr(asked, k) for k in PRESETS[name].run} == PRESETS[name].run
    # A preset may only set what a config can leave open.
    assert all(getattr(TrainConfig(), k) is None for k in PRESETS[name].run)


@pytest.mark.parametrize(
    ("task", "goal", "reward"),
    [
        ("reach", "hover 7 cm above the green can", "clip"),
        ("tabletop", "", "offline"),
        ("hopper", "", "task"),
        ("hopper", "the hopper hops forward", "task"),
        ("hopper", "hop forward at 2 m/s", "offline"),
        ("gym:CartPole-v1", "", "clip"),
    ],
)
def test_the_default_reward_is_one_that_the_task_has(task: str, goal: str, reward: str) -> None:
    assert preset(task, goal=goal).reward == reward


def test_goal_without_preset_uses_the_preset_of_its_skill() -> None:
    pushed = preset(
        "push", goal="move the red cube 8 cm to the left", base=TrainConfig(reward="offline")
    )
    typed = parse_train(["pick_place", "--reward", "offline"])
    assert typed.config_values["learner"] == pushed.learner == "ensemble"
    assert typed.config_values["env_steps"] == pushed.env_steps == 1_000_000
    assert typed.config_values["stop_at"] == pushed.stop_at > 0 and typed.tuning == pushed.tuning
    seen = parse_train(["stack", "--reward", "task"])
    assert seen.config_values["learner"] == "ppo" and seen.config_values["env_steps"] == ENV_STEPS
    own = parse_train(["pick_place", "--reward", "task"])
    assert own.config_values["learner"] == "ppo" and own.config_values["env_steps"] == 4_000_000


def test_demos_preset_selects_ensemble_and_steps() -> None:
    shown = parse_train(["put the red cube in the drawer", "--demos", "50"])
    assert (shown.task, shown.config_values["learner"]) == ("drawer_then_place", "ensemble")
    assert shown.config_values["env_steps"] == 300_000
    assert (shown.tuning.demos, shown.tuning.clone_updates) == ("50", 2_000)
    of = with_presets(TrainConfig(task="drawer_then_place", tuning=shown.tuning))
    assert (of.learner, of.env_steps, of.tuning) == ("ensemble", 300_000, shown.tuning)
    typed = parse_train(["lift", "--learner", "sac", "--demos", "50", "--env-steps", "7"])
    assert (typed.config_values["learner"], typed.config_values["env_steps"]) == ("sac", 7)
    alone = parse_train(["put the red cube in the drawer"])
    assert (alone.config_values["learner"], alone.config_values["env_steps"]) == ("ppo", ENV_STEPS)


def test_goal_with_other_numbers_uses_the_listed_goals_preset() -> None:
    base = TrainConfig(reward="offline")
    fast = preset("hopper", goal="hop forward at 2 m/s", base=base)
    assert fast.env_steps == preset("hopper", goal="forward", base=base).env_steps > ENV_STEPS
    typed = parse_train(["hopper", "--formula", "forward(hopper, pace=2)", "--reward", "offline"])
    assert typed.tuning == fast.tuning and typed.config_values["env_steps"] == fast.env_steps
    up = preset("hopper", goal="the hopper is upright", base=base)
    assert up.env_steps == ENV_STEPS


def test_offline_learner_preset_has_no_random_starts() -> None:
    asked = TrainConfig(task="hopper", goal="front_flip", reward="task", learner="iql")
    assert with_presets(asked).random_starts == 0


def test_explicit_settings_override_the_preset() -> None:
    own = PPOConfig(num_envs=8)
    config = with_presets(TrainConfig(task="push", env_steps=ENV_STEPS, tuning=own))
    assert (config.env_steps, config.tuning) == (ENV_STEPS, own)
    assert config.checkpoint_every == PRESETS["push"].run["checkpoint_every"]
    whole = with_presets(TrainConfig(task="ant", goal="lie_down", episode_s=0.0))
    assert whole.episode_s == 0.0
    flip = TrainConfig(task="hopper", goal="front_flip", reward="task")
    assert (
        with_presets(flip).random_starts > 0
        and with_presets(replace(flip, random_starts=0.0)).random_starts == 0
    )
    plain = with_presets(TrainConfig(learner="sac"))
    assert plain == SettledConfig(learner="sac", tuning=SACConfig(), scoring=ClipConfig())
    assert with_presets(plain) is plain


@pytest.mark.parametrize(
    ("task", "goal", "like", "parts"),
    [
        ("push", "touch(gripper, red_cube)", "", 1),
        ("reach", "then(touch(gripper, red_cube), near(gripper, blue_ball))", "", 2),
        ("stack", "lifted(red_cube)", "lift", 1),
        ("stack", "and(on(red_cube, blue_cube), near(gripper, blue_cube))", "lift", 1),
        ("drawer_then_place", "and(open(drawer), lifted(red_cube))", "lift", 1),
        ("drawer_then_place", "closed(drawer)", "slide", 1),
        ("tabletop", "next_to(red_cube, blue_ball)", "push", 1),
        ("lift", "then(lifted(red_cube), moved(red_cube, left=10cm))", "push", 8 / 5),
    ],
)
def test_unlisted_goal_uses_presets_of_its_skills(
    task: str, goal: str, like: str, parts: float
) -> None:
    own = EFFORTS[like] if like else Preset({})
    found = with_presets(TrainConfig(task=task, formula=goal))
    assert found.env_steps == parts * own.run.get("env_steps", ENV_STEPS)
    assert found.learner == ("ensemble" if like == "push" else "ppo")
    assert found.tuning == own.tuning(found.learner) and found.reward == "offline"
    asked = with_presets(TrainConfig(task=task, formula=goal, learner="ppo"))
    assert asked == replace(found, learner="ppo", tuning=own.tuning("ppo"))


def test_tuning_type_selects_the_learner() -> None:
    formula = "moved(red_cube, left=8cm)"
    assert TrainConfig(tuning=SACConfig()).learner == "sac"
    own = with_presets(TrainConfig(task="push", formula=formula, tuning=PPOConfig(num_envs=8)))
    assert (own.learner, own.tuning) == ("ppo", PPOConfig(num_envs=8))
    command = parse_train(["push", "--formula", formula, "--tuning.critics", "4"])
    assert command.learner == "ensemble" and command.tuning.critics == 4


def test_sentence_uses_formula_preset_and_goal_key_the_tasks() -> None:
    said = with_presets(TrainConfig(task="push", goal="touch the red cube with the gripper"))
    assert said.env_steps == ENV_STEPS and said.reward == "clip"
    for own in ("red_cube_next_to_blue_ball", "push the red cube next to the blue ball"):
        assert with_presets(TrainConfig(task="push", goal=own)).env_steps == 600_000
    several = with_presets(TrainConfig(task="tabletop"))
    assert several.reward == "offline" and several.env_steps == ENV_STEPS
    with pytest.raises(ValueError, match="'chair', is not an entity of reach"):
        with_presets(TrainConfig(task="reach", formula="touch(gripper, chair)"))


def test_config_json_round_trip() -> None:
    config = with_presets(TrainConfig(task="push", learner="td3"))
    assert from_json(SettledConfig, jsonable(config)) == config


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with RunDir.under_way(tmp_path / "one", with_presets(TrainConfig(task="push"))) as run:
        run.append({"env_steps": 1})
    return run.path


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--seed 3", "started with --seed 0, got 3"),
        ("--reward task", "started with --reward 'clip', got 'task'"),
        ("--tuning.final-rate 0.5", "started with --tuning.final-rate 0.1, got 0.5"),
        ("--clip.scene.frames 9", "started with --clip.scene.frames"),
        ("--learner sac", "started with --learner 'ppo', got 'sac'"),
        ("--name other", "started with --name '', got 'other'"),
        ("reach", "started with --task 'push', got 'reach'"),
        ("--env-steps 1000", "started with --env-steps 600000, got 1000"),
    ],
)
def test_resume_refuses_a_contradicting_option_with_both_values(
    run: Path, typed: str, said: str
) -> None:
    command = parse_train([*typed.split(), "--resume", str(run)])
    stored = from_json(SettledConfig, RunDir.open(run).config)
    with pytest.raises(ValueError, match=re.escape(said)):
        resumed_config(run, stored, command.config_values)


def test_resume_of_a_run_without_dtype_keeps_its_number_format(run: Path) -> None:
    """A clock had chosen it, and the other one would give other rewards."""
    config = json.loads((run / "config.json").read_text())
    del config["scoring"]["dtype"]
    write_json(run / "config.json", config)
    write_json(run / "scorer.json", {"encoder": "embedded-0123", "dtype": "bfloat16"})
    command = parse_train(["--resume", str(run)])
    stored = from_json(SettledConfig, RunDir.open(run).config)
    assert resumed_config(run, stored, command.config_values).scoring.dtype == "bfloat16"
    with RunDir.under_way(run, stored, resume=True) as same:
        assert same.config["scoring"]["dtype"] == "bfloat16"
    other = parse_train(["--resume", str(run), "--clip.dtype", "float32"])
    with pytest.raises(ValueError, match="started with --clip.dtype 'bfloat16', got 'float32'"):
        resumed_config(run, stored, other.config_values)


def test_resume_accepts_more_env_steps(run: Path) -> None:
    stored = from_json(SettledConfig, RunDir.open(run).config)
    command = parse_train(["--resume", str(run), "--env-steps", "700000", "--episodes", "50"])
    more = resumed_config(run, stored, command.config_values)
    assert more == replace(stored, env_steps=700_000, episodes=50)
    # As it began, typed or asked from Python, with what had been left open still open.
    assert resumed_config(run, stored, parse_train([f"--resume={run}"]).config_values) == stored
    assert resumed_config(run, stored, vars(TrainConfig(task="push", name="one"))) == stored
    write_json(run / "result.json", {})
    with RunDir.under_way(run, stored, resume=True) as same:
        assert same.finished
    with RunDir.under_way(run, more, resume=True) as longer:
        assert not longer.finished and longer.config["env_steps"] == 700_000


def test_run_that_fails_at_start_leaves_no_folder(tmp_path: Path) -> None:
    def fails(path: Path, steps: int, resume: bool = False) -> bool:
        """Whether the folder is still there."""
        with contextlib.suppress(KeyboardInterrupt):
            with RunDir.under_way(path, TrainConfig(), resume=resume) as run:
                for step in range(steps):
                    run.append({"env_steps": step})
                raise KeyboardInterrupt
        return path.exists()

    assert not fails(tmp_path / "new", 0)
    assert fails(tmp_path / "learned", 1)
    assert fails(tmp_path / "learned", 0, resume=True)
    (tmp_path / "theirs").mkdir()
    assert fails(tmp_path / "theirs", 0)  # what was there before us is not ours to remove


def test_help_lists_common_options_first() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        parse_train(["--help"])
    _, first, *rest = re.split(r"options[ ─╮]*\n", out.getvalue())
    options = set(re.findall(r" --(?!no-)([a-z][a-z-]*)", first))
    most = {"goal", "reward", "robot", "things", "learner", "env-steps", "seed", "resume"}
    assert most <= options
    assert len(options) <= 15 and len(rest) >= 3
