"""Trains one program and judges it: ``python -m robo_rl.search.worker JOB``.

The job is a JSON file; the answer is written beside it and renamed into place. While it works, a
file beside it says how many env steps are done: when that file grows old, the worker is stuck. A
worker whose search is gone ends by itself.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
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
    from robo_rl.runtime.threads import set_threads

    threads = set_threads(job["threads"])
    import numpy as np

    from reward_models.base import from_dict
    from reward_models.programs import ProgramReward, load
    from robo_rl.evaluation.evaluate import summarize
    from robo_rl.goals.reading import task_of_config
    from robo_rl.learners import LEARNERS
    from robo_rl.learners.fit import fit
    from robo_rl.learners.hooks import Hook
    from robo_rl.rollout.episode_runner import active_rows_policy, run_episode
    from robo_rl.runs.run_dir import write_npz
    from sims.envs.batch_env import BatchEnv

    class Watched(BatchEnv):
        """Rows that give a sign of life with every step."""

        steps = 0

        def step(self, action: np.ndarray, active: np.ndarray | None = None) -> Any:
            self.steps += self.num_envs
            pulse.beat(self.steps)
            return super().step(action, active)

    class TakeReplay(Hook):
        """Begins with another candidate's transitions."""

        def start(self, learner: Any) -> None:
            if job.get("replay") and model is not None:
                take_replay(learner, job["replay"], model)

    began = time.monotonic()
    task = task_of_config(job, goal=job["goal"])
    tuning = {k: tuple(v) if isinstance(v, list) else v for k, v in job["tuning"].items()}
    config = LEARNERS[job.get("learner", "ppo")].config(**tuning)
    # Training episodes may be shorter than those that are judged, as in `robo-rl train`.
    short = replace(task, episode_s=job["episode_s"]) if job.get("episode_s") else task
    env = Watched(short, config.num_envs, seed=job["seed"], num_threads=threads)
    model = None
    if job["text"] is not None:  # None: the task's own dense reward
        program = load(job["text"], from_dict(task.card()))
        model = ProgramReward(program, episode_steps=env.max_steps)
    fitted = fit(
        env, model, config, env_steps=job["env_steps"], seed=job["seed"], hooks=[TakeReplay()]
    )
    learner = fitted.learner
    if job.get("keep_replay"):
        write_npz(Path(job["keep_replay"]), learner.buffer.state_dict())
    env.close()

    def act(obs: np.ndarray) -> np.ndarray:
        pulse.beat(learner.env_steps)
        return learner.act(obs)

    judges = BatchEnv(task, job["episodes"], seed=job["judge_seed"])
    pay = _RewardRecorder(judges, model) if job.get("link") and model is not None else None
    choose = active_rows_policy(act, judges.act_dim)
    outcome = run_episode(judges, choose if pay is None else pay.recording(choose))
    evaluation = summarize(judges, outcome)
    answer = {
        "kind": "trained",
        "evaluation": evaluation.as_dict(),
        "won": pack_successes(outcome.success),
        "curves": curves(fitted.rows),
        "env_steps": learner.env_steps,
        "seconds": round(time.monotonic() - began, 2),
    }
    if pay is not None:
        answer |= pay.linked(outcome.success, outcome.distance)
    judges.close()
    return answer


class _RewardRecorder:
    """Records the rewards of evaluation episodes and how they end."""

    def __init__(self, env: Any, model: Any):
        self.env, self.model = env, model
        self.signals: list[dict[str, Any]] = []
        self.actions: list[Any] = []
        self.active: list[Any] = []
        self.names = [s for s in model.program.signals if s != "action"]

    def recording(self, choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """``choose``, with what it saw and did kept."""

        def recorded(obs: Any, active: Any) -> Any:
            now = self.env.signals()
            self.signals.append({name: now[name] for name in self.names})
            self.actions.append(choose(obs, active))
            self.active.append(active)
            return self.actions[-1]

        return recorded

    def linked(self, success: Any, distance: Any) -> dict[str, Any]:
        """{link, diagnostics} of mean pay with outcome: success first, then the distance left."""
        import numpy as np

        from reward_models.analysis.screens import outcome_correlation
        from reward_models.base import Segment

        now = self.env.signals()
        rows = [*self.signals, {name: now[name] for name in self.names}]
        action = np.stack(self.actions)
        valid = np.stack(self.active)  # a row that has ended is paid no more
        stacked = {name: np.stack([row[name] for row in rows]) for name in self.names}
        segment = Segment(stacked, lambda camera, where: np.zeros(0), action, valid)
        rewards = np.where(valid, self.model.score(segment).reward, 0.0).mean(axis=0)
        found = outcome_correlation(rewards, success - distance / (1.0 + np.abs(distance).max()))
        if found is None:
            return {}
        value, finding = found
        return {"link": value, "diagnostics": [finding.as_dict()] if finding else []}


def take_replay(learner: Any, path: str, model: Any) -> None:
    """Starts from another candidate's transitions, relabelled by this one's program."""
    from robo_rl.runs.run_dir import read_npz

    learner.buffer.load_state_dict(read_npz(Path(path)))
    learner.buffer.relabel(model)
    learner.algorithm.learning_starts = 0


def pack_successes(won: Any) -> str:
    """Successes (E,) as hexadecimal digits, four to each."""
    import numpy as np

    return np.packbits(np.asarray(won, bool)).tobytes().hex()


def unpack_successes(text: str, episodes: int) -> list[int]:
    """The successes that ``pack_successes`` wrote."""
    bits = "".join(f"{byte:08b}" for byte in bytes.fromhex(text))
    return [int(bit) for bit in bits[:episodes]]


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


def failure_kind(error: BaseException) -> str:
    """diverged, nan or crashed."""
    if type(error).__name__ == "SimulationDiverged":  # by name: naming it would import torch
        return "diverged"
    finite = isinstance(error, FloatingPointError) or NOT_FINITE.search(str(error))
    return "nan" if finite else "crashed"


def main(path: Path) -> int:
    """Writes ``<job>.answer``."""
    job = json.loads(path.read_text())
    pulse = Pulse(path.with_suffix(".pulse"), job["parent"])
    try:
        answer = train_program(job, pulse)
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        answer = {"kind": failure_kind(error), "message": f"{type(error).__name__}: {words}"}
    from robo_rl.runs.run_dir import write_json

    if os.getppid() == job["parent"]:  # else a search that continued has another worker for this
        write_json(path.with_suffix(".answer"), answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
