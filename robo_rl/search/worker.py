"""Trains one program and judges it: ``python -m robo_rl.search.worker JOB``.

The job is a JSON file; the answer is written beside it and renamed into place. While it works, a
file beside it says how many env steps are done: when that file grows old, the worker is stuck. A
worker whose search is gone ends by itself.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

POINTS = 8  # of a component's course along training
BEAT_S = 0.5  # between two signs of life
NOT_FINITE = re.compile(r"\b(nan|inf|not finite|non-finite)\b", re.IGNORECASE)


class Pulse:
    """The sign of life: a file with the env steps done, rewritten every ``BEAT_S``."""

    def __init__(self, path: Path, parent: int):
        self.path, self.parent = path, parent
        self._last = 0.0
        self.beat(0)

    def beat(self, env_steps: int) -> None:
        """Called at every simulated step; ends this process when its search is gone."""
        now = time.monotonic()
        if now - self._last < BEAT_S:
            return
        if os.getppid() != self.parent:
            os._exit(3)
        self._last = now
        self.path.write_text(str(env_steps))


def train_program(job: dict[str, Any], pulse: Pulse) -> dict[str, Any]:
    """{evaluation, curves, env_steps, seconds} of a program trained from scratch."""
    from robo_rl.threads import set_threads

    threads = set_threads(job["threads"])
    import numpy as np
    import torch

    import sims
    from reward_models.base import from_dict
    from reward_models.programs import ProgramReward, load
    from robo_rl.evaluate import evaluate
    from robo_rl.learners.config import LEARNERS
    from robo_rl.learners.loop import learn
    from robo_rl.learners.sb3 import make_learner
    from sims.batch_env import BatchEnv

    class Watched(BatchEnv):
        """Rows that give a sign of life with every step."""

        steps = 0

        def step(self, action: np.ndarray) -> Any:
            self.steps += self.num_envs
            pulse.beat(self.steps)
            return super().step(action)

    began = time.monotonic()
    task = sims.make_task(job["task"], robot=job["robot"] or None, goal=job["goal"])
    tuning = {k: tuple(v) if isinstance(v, list) else v for k, v in job["tuning"].items()}
    config = LEARNERS["ppo"](**tuning)
    env = Watched(task, config.num_envs, seed=job["seed"], num_threads=threads)
    model = None
    if job["text"] is not None:  # None: the task's own dense reward
        program = load(job["text"], from_dict(task.card()))
        model = ProgramReward(program, episode_steps=env.max_steps)
    learner = make_learner(config, env, model, seed=job["seed"])
    rows = learn(learner, job["env_steps"])
    env.close()
    for name, weight in learner.algorithm.policy.named_parameters():
        if not torch.isfinite(weight).all():
            raise FloatingPointError(f"the policy's {name} became nan")

    def act(obs: np.ndarray) -> np.ndarray:
        pulse.beat(learner.env_steps)
        return learner.act(obs)

    evaluation = evaluate(task, act, episodes=job["episodes"], seed=job["judge_seed"])
    return {
        "kind": "trained",
        "evaluation": evaluation.as_dict(),
        "curves": curves(rows),
        "env_steps": learner.env_steps,
        "seconds": round(time.monotonic() - began, 2),
    }


def curves(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """{component: up to POINTS means along training} of metrics rows."""
    import numpy as np

    found = {}
    for key in rows[0] if rows else ():
        if key.startswith("reward/"):
            values = [row[key] for row in rows if key in row]
            parts = np.array_split(values, min(POINTS, len(values)))
            found[key.removeprefix("reward/")] = [float(part.mean()) for part in parts]
    return found


def kind_of(error: BaseException) -> str:
    """diverged, nan or crashed."""
    if type(error).__name__ == "SimulationDiverged":  # by name: naming it would import torch
        return "diverged"
    finite = isinstance(error, FloatingPointError) or NOT_FINITE.search(str(error))
    return "nan" if finite else "crashed"


def main(path: Path) -> int:
    """Writes ``<job>.answer``."""
    job = json.loads(path.read_text())
    pulse = Pulse(path.with_suffix(".pulse"), job["parent"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for limit, value in (
        (resource.RLIMIT_AS, "memory_bytes"),
        (resource.RLIMIT_FSIZE, "file_bytes"),
    ):
        resource.setrlimit(limit, (job[value], job[value]))
    try:
        answer = train_program(job, pulse)
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        answer = {"kind": kind_of(error), "message": f"{type(error).__name__}: {words}"}
    from robo_rl.runs import write_json

    if os.getppid() == job["parent"]:  # else a search that continued has another worker for this
        write_json(path.with_suffix(".answer"), answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
