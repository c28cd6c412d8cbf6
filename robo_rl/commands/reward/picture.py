"""`robo-rl reward picture`: pictures of a goal, for --reward goal-image:FILE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from robo_rl.commands.options import Table
from robo_rl.goals import known_goal
from robo_rl.policies import load_policy
from robo_rl.rewards.goal_image import card_of
from robo_rl.runs import write_json
from robo_rl.visual.goal_states import found_by_chance, reached


@dataclass(frozen=True, kw_only=True)
class PictureCommand(Table):
    """Takes pictures of a goal that is met: at the end of the expert's episodes or of a run's, or
    wherever chance has met it."""

    task: str = "reach"  # as `robo-rl list tasks` shows
    goal: str = ""  # a sentence or key that the task has a ground truth for; empty: the first one
    of: str = "expert"  # whose states: expert, chance, or a run's folder
    count: int = 1  # of pictures; more than one go into a folder
    out: Path  # the file to write, .png, or the new folder
    camera: str = ""  # empty: the task's first, which encoders look through
    size: int = 0  # px, height and width; 0: as the camera has it
    seed: int = 0  # of the episodes


def main(argv: Sequence[str]) -> int:
    """Writes the pictures and a card that says of what they are."""
    command = tyro.cli(PictureCommand, args=list(argv), prog="robo-rl reward picture")
    import cv2

    import sims

    if command.count < 1 or (command.count == 1) != (command.out.suffix == ".png"):
        raise ValueError(
            "one picture goes into --out FILE.png, several into a new folder; got --count "
            f"{command.count} --out {command.out}"
        )
    if command.out.exists():
        raise ValueError(f"{command.out} exists already; give a new one")
    task, goal = known_goal(vars(command), command.goal)
    if command.of == "chance":
        said = "scattered and random states in which the simulator says that it is met"
        states = found_by_chance(task, command.count, command.seed)
    elif command.of == "expert":
        said = "ends of episodes of the task's own expert"
        rng = np.random.default_rng(command.seed)
        if not task.solved:
            raise ValueError(
                f"task {task.name!r} has no expert for this goal: give --of chance, or a run"
            )
        states = reached(task, lambda env, obs: task.expert(env.views, rng), command.count,
                         command.seed)  # fmt: skip
    else:
        said = f"ends of episodes of the policy in {command.of}"
        act = load_policy(Path(command.of)).act
        states = reached(task, lambda env, obs: act(obs), command.count, command.seed)
    env = sims.BatchEnv(task, 1)
    size = (command.size, command.size) if command.size else None
    frames = env.render_states(states, command.camera or None, size=size)
    env.close()
    if command.count == 1:
        files = [command.out]
    else:
        command.out.mkdir(parents=True)
        files = [command.out / f"{number:04d}.png" for number in range(command.count)]
    for file, frame in zip(files, frames, strict=True):
        if not cv2.imwrite(str(file), frame[..., ::-1]):
            raise ValueError(f"cannot write {file}")
    card = {"states": said, "task": task.name, "robot": getattr(task, "robot", ""),
            "goal": goal.text, "truth": goal.key, "seed": command.seed}  # fmt: skip
    write_json(card_of(command.out), card)
    print(f"{command.out}: {command.count} of {said}")
    return 0
