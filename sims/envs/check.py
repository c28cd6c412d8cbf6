"""Checks of the arm tasks: ``python -m sims.envs.check``.

For every task and arm: how often the scripted expert succeeds, whether 10,000 random steps stay
finite, whether a single environment equals the same one in a batch of 16 bit for bit, and
Gymnasium's own ``check_env``. ``python -m sims.envs.check --sheet FILE.png`` renders every task,
arm and camera instead.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from sims.envs.registration import make, make_task
from sims.robots import ROBOTS, robots_for_task
from sims.tasks import ARM_TASKS, TASKS

Array = np.ndarray

SEED = 700_000_001  # no training uses it
FLOOR = 0.95  # the expert's least success
SHEET_PX = 150  # of one picture in the sheet


def cases(tasks: list[str], robots: list[str]) -> list[tuple[str, str]]:
    """(task, arm) of every arm task, in the order of the tables; empty lists mean all."""
    return [
        (task.name, robot)
        for task in ARM_TASKS
        for robot in robots_for_task(task.name)
        if task.name in (tasks or TASKS) and robot in (robots or ROBOTS)
    ]


def expert_success(name: str, robot: str, goal: str, episodes: int) -> int:
    """Of ``episodes`` random episodes, how many the expert has solved when their time is up."""
    env = make(name, episodes, seed=SEED, robot=robot, goal=goal)
    env.reset()
    rng = np.random.default_rng(SEED)
    failed = np.zeros(episodes, bool)
    for _ in range(env.max_steps):
        result = env.step(env.task.expert(env.views, rng))
        failed |= result.info["diverged"]
    return int((result.info["success"] & ~failed).sum())


def random_steps_are_finite(name: str, robot: str, steps: int) -> bool:
    """Whether ``steps`` uniform random steps give finite numbers and no diverged environment."""
    env = make(name, 16, seed=SEED, robot=robot)
    env.reset()
    rng = np.random.default_rng(SEED)
    for _ in range(-(-steps // 16)):
        result = env.step(rng.uniform(-1.0, 1.0, (16, env.act_dim)))
        if not (np.isfinite(result.obs).all() and np.isfinite(result.reward).all()):
            return False
        if result.truncated.any():
            env.reset(result.truncated)
    return env.num_diverged == 0


def single_env_matches_batch(name: str, robot: str) -> bool:
    """Whether environment 11 alone equals environment 11 of 16, bit for bit, over two episodes."""
    many = make(name, 16, seed=SEED, robot=robot)
    one = make(name, 1, seed=SEED, robot=robot, rows=[11])
    rng = np.random.default_rng(SEED)
    for _ in range(2):
        same = [np.array_equal(many.reset()[11], one.reset()[0])]
        for _ in range(many.max_steps):
            action = rng.uniform(-1.0, 1.0, (16, many.act_dim))
            a, b = many.step(action), one.step(action[11:12])
            same.append(np.array_equal(a.obs[11], b.obs[0]) and a.reward[11] == b.reward[0])
        if not (all(same) and np.array_equal(many.state()[11], one.state()[0])):
            return False
    return True


def passes_gymnasium_check(name: str, robot: str) -> bool:
    """Whether ``check_env`` finds nothing wrong with the single view."""
    env = gymnasium.make(f"robo/{name.title().replace('_', '')}-v0", robot=robot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of infinite observation bounds, which are meant
        check_env(env.unwrapped, skip_render_check=True)
    env.close()
    return True


def check(tasks: list[str], robots: list[str], episodes: int, steps: int) -> bool:
    """Prints a Markdown table, one line per task, arm and goal; whether all of it holds."""
    print(
        f"| task | arm | goal | expert successes of {episodes:,} | {steps:,} random steps "
        "| single env vs batch | check_env |\n| --- | --- | --- | --- | --- | --- | --- |",
        flush=True,
    )
    fine = True
    for name, robot in cases(tasks, robots):
        sound = (
            random_steps_are_finite(name, robot, steps),
            single_env_matches_batch(name, robot),
            passes_gymnasium_check(name, robot),
        )
        words = ("finite", "equal", "passes")
        marks = " | ".join(w if ok else "NO" for w, ok in zip(words, sound, strict=True))
        for goal in make_task(name, robot=robot).goals():
            solved = expert_success(name, robot, goal, episodes)
            fine &= solved >= FLOOR * episodes and all(sound)
            print(f"| {name} | {robot} | {goal} | {solved:,} | {marks} |", flush=True)
    return fine


def write_contact_sheet(tasks: list[str], robots: list[str], path: Path) -> None:
    """Writes one picture: a line per task and arm; each camera at the start, midway, solved."""
    import cv2

    lines = []
    for name, robot in cases(tasks, robots):
        env = make(name, 1, seed=3, robot=robot)
        env.reset()
        rng, states = np.random.default_rng(0), [env.state()]
        for _ in range(env.max_steps):
            env.step(env.task.expert(env.views, rng))
            states.append(env.state())
        shown = np.concatenate([states[i * (len(states) - 1) // 4] for i in (0, 1, 2, 4)])
        size = (SHEET_PX, SHEET_PX)
        pictures = [env.render_states(shown, camera, size=size) for camera in env.cameras]
        line = np.concatenate([p for camera in pictures for p in camera], axis=1).copy()
        cv2.putText(
            line,
            f"{name} {robot}",
            (4, 13),
            cv2.FONT_HERSHEY_SIMPLEX,
            0.42,
            (255, 255, 255),
            1,
            cv2.LINE_AA,
        )
        lines.append(line)
        env.close()
    if len(lines) > 8:  # two columns, so that the sheet is not a tower
        half = -(-len(lines) // 2)
        lines += [np.zeros_like(lines[0])] * (2 * half - len(lines))
        lines = [
            np.concatenate(pair, axis=1) for pair in zip(lines[:half], lines[half:], strict=True)
        ]
    whole = np.concatenate(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), whole[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 9])


def main(argv: list[str] | None = None) -> int:
    """Runs the checks; returns 0 where all of them pass, else 1."""
    parser = argparse.ArgumentParser(prog="python -m sims.envs.check", description=__doc__)
    names = [task.name for task in ARM_TASKS]
    parser.add_argument("--tasks", nargs="*", default=[], choices=names, help="arm tasks to check")
    parser.add_argument("--robots", nargs="*", default=[], choices=[*ROBOTS], help="arms to check")
    parser.add_argument("--episodes", type=int, default=1000, help="expert episodes per goal")
    parser.add_argument("--steps", type=int, default=10_000, help="random steps per task and arm")
    parser.add_argument("--sheet", type=Path, help="write a PNG of all scenes instead")
    options = parser.parse_args(argv)
    if options.sheet:
        write_contact_sheet(options.tasks, options.robots, options.sheet)
        return 0
    return 0 if check(options.tasks, options.robots, options.episodes, options.steps) else 1


if __name__ == "__main__":
    sys.exit(main())
