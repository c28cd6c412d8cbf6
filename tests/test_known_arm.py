"""An arm as it is known: what is told of it holds in every row that is trained on or judged, and
on the simulated arm that the policy is deployed to."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import sims
from real_robot import SimDriver, VirtualClock
from real_robot.policy.bundle import PolicyBundle
from robo_rl.cli import main
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import TrainConfig
from robo_rl.evaluation.arm_conditions import PLAIN, ArmConditions
from robo_rl.learners import PPOConfig
from robo_rl.training.run_envs import training_env
from robo_rl.training.train import train
from robo_rl.training.trained import Trained
from sims import robots
from sims.randomization.domain_randomization import Randomize, RandomizedEnv

TASK = sims.make_task("reach", robot="so101")
KNOWN = ArmConditions(latency=0.06, stiffness=12.0)
SAID = "60 ms of latency, servos of 12 N m/rad"


def drawn(env: RandomizedEnv, name: str) -> np.ndarray:
    """(N,) of what each row has, or the most of it."""
    return np.abs(env._drawn[:, env._part[name]]).max(axis=1)


@pytest.mark.parametrize("width", [0.0, 0.7])
def test_known_arm_parameters_are_equal_in_every_env(width: float) -> None:
    rows = KNOWN.randomization(TASK, width)
    env = RandomizedEnv(TASK, 64, randomize=rows, seed=1)
    env.width = 0.0  # as training begins
    for env.width in (0.0, width):
        env.reset()
        late = (drawn(env, "action_delay") + drawn(env, "obs_delay")) * TASK.control_dt
        np.testing.assert_allclose(late, 0.06)
        differs = drawn(env, "mass").max()
        assert differs < 0.3 * env.width + 1e-9 and (differs > 0.2 * env.width) == (env.width > 0)
        # The servos' own gain is drawn around what is told.
        gain = env.batch.expanded("actuator_gainprm")[:, env._servos.ids, 0]
        assert np.abs(gain / 12.0 - 1).max() <= 0.15 * env.width + 1e-9
    training = {"randomize": json.loads(json.dumps(dataclasses.asdict(rows)))}
    assert ArmConditions.known_in(training, TASK).known_text(only=True) == SAID
    met = ArmConditions.worst_trained(training, TASK)
    assert (met.noise > 0) == (width > 0) and met.latency == pytest.approx(0.06)


def test_no_known_arm_parameters_by_default() -> None:
    assert (
        ArmConditions.known_in({"randomize": dataclasses.asdict(Randomize(width=0.7))}, TASK)
        == PLAIN
    )
    assert ArmConditions.known_in({}, TASK) == PLAIN
    stiffer = ArmConditions(stiffness=1e6).randomization(TASK)  # than the model's own: it has these
    assert ArmConditions.known_in({"randomize": dataclasses.asdict(stiffer)}, TASK) == PLAIN


def test_unsupported_known_parameters_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = dataclasses.replace(robots.ROBOTS["so101"], softest=0.0)
    monkeypatch.setitem(robots.ROBOTS, "so101", unknown)
    for ask in (
        lambda: SimDriver(TASK, clock=VirtualClock(1000.0), stiffness=10.0),
        lambda: ArmConditions(stiffness=10.0).randomization(TASK),
    ):
        with pytest.raises(ValueError, match="known servo stiffness: reach has none"):
            ask()
    with pytest.raises(ValueError, match="is not supported here: leave it out"):
        ArmConditions(offset=(0.05, 0.0, 0.0)).randomization(TASK)


def test_soft_simulated_arm_sags_like_training_envs() -> None:
    """Where nothing is commanded: the driver's physics beside the batch's."""
    rest = []
    for told in (PLAIN, ArmConditions(stiffness=12.0)):
        driver = SimDriver(TASK, clock=VirtualClock(1000.0), stiffness=told.stiffness, seed=3)
        scene, model = driver.scene, TASK.model()
        env = RandomizedEnv(TASK, 1, randomize=told.randomization(TASK), seed=3)
        env.reset()
        scene.ctrl[:] = env.batch.ctrl[0]
        for _ in range(round(1.0 / model.opt.timestep)):
            scene.step()
            env.batch.step(nstep=1, stage=TASK.stage)
        np.testing.assert_allclose(scene.qpos, env.batch.qpos[0], atol=1e-6)
        rest.append(env.batch.qpos[0].copy())
    assert np.abs(rest[1] - rest[0]).max() > 0.01  # rad


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    config = TrainConfig(
        task="reach",
        robot="so101",
        reward="task",
        learner="ppo",
        latency=0.06,
        stiffness=12.0,
        env_steps=1_024,
        eval_points=1,
        eval_episodes=4,
        episodes=8,
        runs=tmp_path_factory.mktemp("runs"),
        tuning=PPOConfig(num_envs=8, n_steps=128),
    )
    env = training_env(TASK, with_presets(config), 1)
    assert isinstance(env, RandomizedEnv) and env.width == 0.0
    return train(config)


def test_known_arm_is_evaluated_and_recorded_in_the_bundle(run, capsys) -> None:
    assert run.evaluation is not None and run.evaluation.arm == SAID
    assert run.evaluation.floors is not None and f"with {SAID}" in run.evaluation.line()
    assert run.bundle is not None and run.run.evaluations.read()
    training = PolicyBundle.load(run.bundle).manifest.training
    assert ArmConditions.known_in(training, TASK).known_text(only=True) == SAID

    def said(*args: str) -> str:
        assert main([*args]) in (0, 1)
        return capsys.readouterr().err

    assert f"trained for {SAID}" in said("deploy", str(run.bundle), "--emulate", "--episodes", "1")
    told = ("deploy", str(run.bundle), "--emulate", "--episodes", "1", "--stiffness", "5")
    assert "servos of 5 N m/rad" in said(*told).split("beyond that:")[1]


def test_evaluate_overrides_known_arm_parameters(run, capsys) -> None:
    def arm(*more: str) -> str:
        asked = ("evaluate", str(run.run.path), "--episodes", "4", "--json", *more)
        assert main([*asked]) == 0
        return json.loads(capsys.readouterr().out)["arm"]

    assert arm() == SAID
    assert arm("--stiffness", "40", "--latency", "0") == "servos of 40 N m/rad"
    assert arm("--stiffness", "0", "--latency", "0") == ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("hopper", "--stiffness", "10"), "known servo stiffness: hopper has none"),
        (("reach", "--latency", "2"), "--latency must be below 1 s, 10 control steps each way"),
        (("gym:Pendulum-v1", "--latency", "0.1"), "leave out --latency"),
        (("reach", "--stiffness", "-1"), "stiffness must be at least 0, got -1"),
    ],
)
def test_known_arm_errors_are_one_line(args, said, capsys, tmp_path: Path) -> None:
    assert main(["train", *args, "--reward", "task", "--runs", str(tmp_path)]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert said in error and not [*tmp_path.iterdir()]
