"""Pictures of a goal that is met: what --reward goal-image is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.goals.reading import ReadGoal
from robo_rl.rewards.goal_image import card_of
from robo_rl.runs.policy import load_policy
from robo_rl.runs.run_dir import write_json
from robo_rl.vision.goal_states import random_goal_states, states_at_success
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv


def take_pictures(
    task: Task[Any],
    goal: ReadGoal,
    out: Path,
    *,
    of: str = "expert",
    count: int = 1,
    camera: str = "",
    size: int = 0,
    seed: int = 0,
) -> str:
    """Writes ``count`` pictures of the goal, one to the file ``out`` or several into a new folder,
    and a card beside them; says of what they are. ``of`` is expert, chance or a run's folder;
    ValueError where the goal was not met often enough, or a picture cannot be written."""
    import cv2

    if of == "chance":
        source = "scattered and random states in which the simulator says that it is met"
        states = random_goal_states(task, count, seed)
    elif of == "expert":
        source = "ends of episodes of the task's own expert"
        rng = np.random.default_rng(seed)
        if not task.solved:
            raise ValueError(
                f"task {task.name!r} has no expert for this goal: give --of chance or --of RUN"
            )
        states = states_at_success(task, lambda env, obs: task.expert(env.views, rng), count, seed)
    else:
        source = f"ends of episodes of the policy in {of}"
        act = load_policy(Path(of)).act
        states = states_at_success(task, lambda env, obs: act(obs), count, seed)
    env = BatchEnv(task, 1)
    frames = env.render_states(states, camera or None, size=(size, size) if size else None)
    env.close()
    if count == 1:
        files = [out]
    else:
        out.mkdir(parents=True)
        files = [out / f"{number:04d}.png" for number in range(count)]
    for file, frame in zip(files, frames, strict=True):
        if not cv2.imwrite(str(file), frame[..., ::-1]):
            raise ValueError(f"cannot write {file}")
    card = {
        "states": source,
        "task": task.name,
        "robot": getattr(task, "robot", ""),
        "goal": goal.text,
        "truth": goal.key,
        "seed": seed,
    }
    write_json(card_of(out), card)
    return source
