"""What a policy was trained for, and what of a run is beyond it."""

from __future__ import annotations

import dataclasses

import pytest

import sims
from robo_rl.evaluation.arm_conditions import PLAIN, ArmConditions
from sims.randomization.domain_randomization import Randomize, RandomizedEnv

TASK = sims.make_task("reach", robot="so101")
TRAINING = {"randomize": dataclasses.asdict(Randomize(width=0.7))}


def test_bundle_states_the_worst_trained_conditions() -> None:
    """As rows come to it: the widest of 512."""
    met = ArmConditions.worst_trained(TRAINING, TASK)
    env = RandomizedEnv(TASK, 512, randomize=Randomize(width=0.7), seed=1)
    env.reset()
    drawn = {name: abs(env._drawn[:, part]).max() for name, part in env._part.items()}
    assert met.latency == pytest.approx(
        (drawn["action_delay"] + drawn["obs_delay"]) * TASK.control_dt, rel=0.05
    )
    assert met.bias == pytest.approx(3**0.5 * drawn["pose_bias"], rel=0.02)
    shares = env._servos.stiffness_shares(env._drawn[:, env._part["soft"]])
    assert met.stiffness == pytest.approx((shares * env._servos.stiffness).min(), rel=0.05)
    assert met.known_text(only=True) == (
        "1.4 mm of noise on perceived positions, each off by 3.6 mm, 70 ms of latency, "
        "servos of 39.8 N m/rad"
    )
    assert (
        ArmConditions.worst_trained({}, TASK)
        == ArmConditions.worst_trained({"randomize": {}}, TASK)
        == PLAIN
    )


@pytest.mark.parametrize(
    ("put", "beyond"),
    [
        (PLAIN, ""),
        (ArmConditions(noise=0.001, bias=0.003, latency=0.04, stiffness=40.0), ""),
        (ArmConditions(noise=0.002, latency=0.04), "2 mm of noise on perceived positions"),
        (ArmConditions(latency=0.1, stiffness=5.0), "100 ms of latency, servos of 5 N m/rad"),
        (ArmConditions(offset=(0.05, 0.0, 0.0)), "all off by (50, 0, 0) mm"),
    ],
)
def test_conditions_beyond_training_are_named(put: ArmConditions, beyond: str) -> None:
    assert put.beyond(ArmConditions.worst_trained(TRAINING, TASK)) == beyond


def test_tag_poses_skip_the_noise_conditions() -> None:
    put = ArmConditions(noise=0.002, offset=(0.05, 0.0, 0.0), latency=0.1)
    assert put.beyond(PLAIN, tags=True) == "100 ms of latency"


def test_policy_without_randomization_covers_no_noise() -> None:
    put = ArmConditions(noise=0.002, stiffness=500.0)
    told = "2 mm of noise on perceived positions, servos of 500 N m/rad"
    assert put.beyond(ArmConditions.worst_trained({}, TASK)) == told
