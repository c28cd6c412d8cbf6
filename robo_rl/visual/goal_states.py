"""States in which a goal holds, and pictures of them: what --reward goal-image is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.goals import ReadGoal
from robo_rl.policies import load_policy
from robo_rl.rewards.goal_image import card_of
from robo_rl.runs import write_json
from robo_rl.visual.data import collect
from sims.batch_env import BatchEnv
from sims.task import Task

Array = np.ndarray

ROWS = 128
MOST = 40  # episodes of every row, or so many batches of states by chance, before it gives up


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
        said = "scattered and random states in which the simulator says that it is met"
        states = found_by_chance(task, count, seed)
    elif of == "expert":
        said = "ends of episodes of the task's own expert"
        rng = np.random.default_rng(seed)
        if not task.solved:
            raise ValueError(
                f"task {task.name!r} has no expert for this goal: give --of chance, or a run"
            )
        states = reached(task, lambda env, obs: task.expert(env.views, rng), count, seed)
    else:
        said = f"ends of episodes of the policy in {of}"
        act = load_policy(Path(of)).act
        states = reached(task, lambda env, obs: act(obs), count, seed)
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
    card = {"states": said, "task": task.name, "robot": getattr(task, "robot", ""),
            "goal": goal.text, "truth": goal.key, "seed": seed}  # fmt: skip
    write_json(card_of(out), card)
    return said


def reached(
    task: Task[Any], act: Callable[[BatchEnv, Array], Array], count: int, seed: int
) -> Array:
    """State rows (count, nstate) at the end of episodes of ``act(env, obs)`` that succeed."""
    env = BatchEnv(task, min(ROWS, max(count, 8)), seed=seed)
    kept: list[Array] = []
    for _ in range(MOST):
        obs = env.reset()
        for _ in range(env.max_steps):
            step = env.step(act(env, obs))
            obs = step.obs
        kept.append(env.state()[step.info["success"]])
        if sum(map(len, kept)) >= count:
            break
    env.close()
    return _enough(kept, count, f"{MOST} episodes of every row that were to end in it")


def found_by_chance(task: Task[Any], count: int, seed: int) -> Array:
    """State rows (count, nstate) among scattered and random ones in which the goal holds; nobody
    who knows the way to it was asked."""
    env = BatchEnv(task, ROWS, seed=seed)
    goal, kept = env.task.goals()[env.task.goal], []
    for batch in range(MOST):
        states, _ = collect(env, 4 * ROWS, seed + batch)
        for part in np.split(states, 4):
            env.set_state(part)
            kept.append(part[np.asarray(goal.success(env.views))])
        if sum(map(len, kept)) >= count:
            break
    env.close()
    return _enough(kept, count, f"{MOST * 4 * ROWS:,} scattered and random states")


def _enough(kept: list[Array], count: int, looked_at: str) -> Array:
    states = np.concatenate(kept)
    if len(states) < count:
        raise ValueError(f"the goal holds in {len(states)} of {looked_at}, wanted are {count}")
    return states[:count]
