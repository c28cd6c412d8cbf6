"""The table of policies on emulated arms."""

from __future__ import annotations

import sims
from benchmarks import Options, arms
from sims.randomization.domain_randomization import RandomizedEnv


def test_arms_table_shows_success_interval_and_stops() -> None:
    driven = {"successes": 96, "episodes": 100, "ended": {"done": 98, "safety_stop": 2}}
    simulation = {"successes": 981, "episodes": 1000}
    row = {
        "task": "push",
        "goal": "red_cube_next_to_blue_ball",
        "arm": "ur5e",
        "simulation": simulation,
        "without_limits": {"successes": 972, "episodes": 1000},
        "as it is": driven | {"simulated": {"successes": 975, "episodes": 1000}},
        "40 ms, 2 mm": driven | {"ended": {"done": 100}},  # of before: no simulation of its own
    }
    lines = [line.split("|")[1:-1] for line in arms.table_text([row]).splitlines()[2:]]
    cells = [[cell.strip() for cell in line] for line in lines]
    assert [line[2:4] + line[-1:] for line in cells] == [
        ["as it is", "97.5 % (96.3-98.3, n=1000)", "96.0 % (90.2-98.4, n=100), 2 stopped"],
        ["40 ms, 2 mm", "98.1 % (97.1-98.8, n=1000)", "96.0 % (90.2-98.4, n=100)"],
    ]


def test_training_envs_have_the_arms_latency_and_stiffness() -> None:
    """Delays in control steps, as the bridge has them; servos of that stiffness."""
    for robot in arms.ARMS:
        task = sims.make_task("push", robot=robot)
        for way in arms.arm_settings(arms.config("push", robot)):
            told = way.conditions.randomization(task)
            env = RandomizedEnv(task, 4, randomize=told, seed=1, shaped=True)
            env.reset()
            drawn = {name: env._drawn[:, part] for name, part in env._part.items()}
            late = task.control_dt * (drawn["action_delay"] + drawn["obs_delay"])
            assert (abs(late - way.conditions.latency) < 1e-9).all()
            rows = env.batch.expanded("actuator_gainprm")
            own = env.model.actuator_gainprm[env._servos.ids, 0]
            gain = own if rows is None else rows[:, env._servos.ids, 0]  # None: all alike
            most = way.conditions.stiffness or own.max()
            assert abs(gain.max() / min(most, own.max()) - 1) < 1e-9
            assert (gain <= own * (1 + 1e-9)).all()


def test_policies_with_known_stiffness_run_on_soft_and_default_servos() -> None:
    made = {row.name: row.of.policy for row in arms.rows(Options(only="told"))}
    known = {name: of for name, of in made.items() if of.stiffness}
    assert {(of.task, of.robot, of.stiffness) for of in known.values()} == {
        ("push", "so101", 10.0),
        ("push", "ur5e", 200.0),
    }
    for name, of in known.items():
        assert f"told {of.stiffness:g} N m/rad" in name
        assert [way.conditions.stiffness for way in arms.arm_settings(of)] == [of.stiffness, None]
