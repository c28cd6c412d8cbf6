"""Processor time until a policy is good enough: what learns here beside SB3 on our rows, and beside
SB3 as it is shipped, each env in a process of its own.

A policy is looked at every ``EVERY`` processor seconds, on validation episodes; looks are not
counted, processes of envs are. A body is good enough at a stated return.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import sims
from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from benchmarks.training import FRESH, TRAINER, task_code
from robo_rl.config.presets import preset
from robo_rl.config.train_config import SettledConfig
from robo_rl.learners.hooks import Hook
from robo_rl.rollout.episode_runner import Act, active_rows_policy, run_episode
from robo_rl.runs.markdown import table
from sims.core.rng import JUDGING
from sims.envs.batch_env import BatchEnv
from sims.rendering.render_client import process_cpu_seconds

ROBOT = "so101"
TASKS: tuple[tuple[str, str, float], ...] = (  # task, goal, success or a body's return
    ("reach", "touch_red_cube", 0.9),
    ("push", "red_cube_next_to_blue_ball", 0.9),
    ("lift", "lift_cube", 0.9),
    ("drawer", "open", 0.9),
    ("hopper", "forward", 2_000.0),
    ("walker2d", "forward", 2_000.0),
    ("half_cheetah", "forward", 4_000.0),
)
GYMNASIUM = {"hopper": "Hopper-v5", "walker2d": "Walker2d-v5", "half_cheetah": "HalfCheetah-v5"}
OURS, ROWS, SHIPPED = "ensemble", "SB3's PPO on our rows", "SB3's PPO as shipped"
PROCESSES = 4  # of SubprocVecEnv
EVERY, LIMIT = 10.0, 900.0  # processor s
EPISODES = 100  # of a look; a fifth of a body, whose episodes are long


@dataclass(frozen=True)
class Contender:
    """Somebody who learns a goal until it is good enough."""

    kind: str  # OURS, ROWS or SHIPPED
    config: SettledConfig  # SHIPPED has its task, goal and seed of it
    target: float
    limit: float  # processor s


def rows(options: Options) -> list[BenchmarkRow]:
    """All contenders of a task, then those of the next."""
    made = []
    for seed in options.seeds or (0,):
        for task, goal, target in TASKS:
            for kind in (OURS, ROWS, SHIPPED):
                config = preset(task, "ensemble" if kind == OURS else "ppo", goal=goal)
                config = replace(
                    config,
                    robot="" if task in GYMNASIUM else ROBOT,
                    goal=goal,
                    reward="task",
                    seed=seed if options.develop else FRESH + seed,
                )
                of = Contender(kind, config, target, options.share * LIMIT)
                sim = sims.make_task(task, robot=config.robot or None, goal=goal)
                code = (__name__, *task_code(sim), *TRAINER, type(config.tuning).__module__)
                without = ("robo_rl.vision", "reward_models", "real_robot")
                made.append(BenchmarkRow(f"{task}, {kind}, seed {seed}", of, code, without))
    return made


@dataclass
class Race:
    """Looks at a policy while it learns; over when it is good enough or time is up."""

    judge: Callable[[Act], float]
    target: float
    limit: float  # processor s
    others: Sequence[int] = ()  # processes that work for it
    looks: list[tuple[int, float, float]] = field(default_factory=list)  # steps, s, worth
    _judging: float = 0.0
    _began: float = 0.0

    def begin(self) -> None:
        """Starts the clock."""
        self._began = self._clock()

    def over(self, act: Act, env_steps: int, *, last: bool = False) -> bool:
        """Asked between updates, and at the last once more."""
        spent = self._clock() - self._began - self._judging
        due = spent >= min(EVERY * (len(self.looks) + 1), self.limit) or last
        if not due or env_steps == (self.looks[-1][0] if self.looks else 0):
            return False
        before = self._clock()
        self.looks.append((env_steps, spent, self.judge(act)))
        self._judging += self._clock() - before
        return self.looks[-1][2] >= self.target or spent >= self.limit

    def _clock(self) -> float:
        return time.process_time() + sum(map(process_cpu_seconds, self.others))


class _Looks(Hook):
    """A race among a learner's hooks."""

    def __init__(self, race: Race):
        self.race = race

    def start(self, learner: Any) -> None:
        self.race.begin()

    def pause(self, learner: Any) -> bool | None:
        return not self.race.over(learner.act, learner.env_steps)


def measure(of: Contender, place: RowFolder) -> dict[str, Any]:
    """When it was good enough, if it ever was, with every look."""
    config = of.config
    task = sims.make_task(config.task, robot=config.robot or None, goal=config.goal)
    body = config.task in GYMNASIUM
    eval_env = BatchEnv(task, EPISODES // 5 if body else EPISODES, seed=JUDGING)

    def judge(act: Act) -> float:
        eval_env.reseed(JUDGING)
        outcome = run_episode(eval_env, active_rows_policy(act, eval_env.act_dim))
        return float((outcome.returned if body else outcome.success).mean())

    race = Race(judge, of.target, of.limit)
    if of.kind == SHIPPED:
        _shipped(config, race)
    else:
        _on_our_rows(config, task, race, place)
    eval_env.close()
    steps, spent, worth = race.looks[-1]
    return {
        "task": config.task,
        "kind": of.kind,
        "target": of.target,
        "reached": worth >= of.target,
        "env_steps": steps,
        "processor_s": spent,
        "worth": worth,
        "looks": race.looks,
    }


def _on_our_rows(config: SettledConfig, task: sims.Task[Any], race: Race, place: RowFolder) -> None:
    from robo_rl.learners.fit import fit
    from robo_rl.runtime.threads import set_threads

    set_threads()
    sim = BatchEnv(task, config.tuning.num_envs, seed=config.seed)
    fitted = fit(
        sim,
        None,
        config.tuning,
        env_steps=config.env_steps,
        seed=config.seed,
        console=place.console,
        hooks=[_Looks(race)],
    )
    race.over(fitted.act, fitted.learner.env_steps, last=True)
    sim.close()


def _shipped(config: SettledConfig, race: Race) -> None:
    """PPO with SB3's own defaults, as its documentation begins; networks on one thread."""
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import SubprocVecEnv

    from robo_rl.runtime.threads import set_threads

    class Looks(BaseCallback):
        done = False

        def _on_rollout_start(self) -> None:
            def act(obs: np.ndarray) -> np.ndarray:
                return self.model.predict(obs, deterministic=True)[0]

            self.done = race.over(act, self.num_timesteps)

        def _on_step(self) -> bool:
            return not self.done

    def make() -> gymnasium.Env[Any, Any]:
        if config.task in GYMNASIUM:
            return gymnasium.make(GYMNASIUM[config.task])
        name = sims.gymnasium_id(config.task)
        return gymnasium.make(name, robot=config.robot, goal=config.goal)

    set_threads(1, learning=1)
    env = make_vec_env(make, PROCESSES, seed=config.seed, vec_env_cls=SubprocVecEnv)
    assert isinstance(env, SubprocVecEnv)
    race.others = [process.pid for process in env.processes if process.pid]
    race.begin()
    PPO("MlpPolicy", env, seed=config.seed, device="cpu").learn(10**9, callback=Looks())
    env.close()


def table_text(rows: Sequence[Measured]) -> str:
    """A line for each task and contender, and how many times the processor time of ours it took."""
    ours = [row for row in rows if row["kind"] == OURS and row["reached"]]
    best = {_race(row): row["processor_s"] for row in ours}
    lines = []
    for row in rows:
        body = row["task"] in GYMNASIUM
        worth, target = (
            f"{v:,.0f}" if body else f"{100 * v:.0f} %" for v in (row["worth"], row["target"])
        )
        spent = f"{row['processor_s'] / 60:.1f}"
        race = _race(row)
        times = f"{row['processor_s'] / best[race]:.1f}" if race in best else ""
        more = "" if row["reached"] else ">"
        lines.append(
            (
                row["name"],
                target,
                more + spent,
                worth,
                f"{row['env_steps']:,}",
                more + times if times else "",
            )
        )
    return table(
        ("learner and task", "good enough", "processor min", "then", "steps", "times ours"), lines
    )


def _race(row: Measured) -> tuple[str, str]:
    """What is learned, and with which seed."""
    return row["task"], row["name"].rpartition(", ")[2]


EXPERIMENT = Experiment(rows, measure, table_text)
