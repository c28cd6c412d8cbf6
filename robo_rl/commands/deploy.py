"""`robo-rl deploy`: a policy bundle on an arm. Loads no torch.

This version drives simulated arms (``--emulate``): MuJoCo behind the RobotDriver contract, object
poses through Perception, the same loop, safety filter and log that hardware gets.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track

from real_robot import (
    Ended,
    Phase,
    PolicyBundle,
    RealClock,
    RunConfig,
    SimDriver,
    SimPerception,
    VirtualClock,
    run,
)
from reward_models.metrics import wilson
from sims import make_task

ARM_SEED = 800_000_000  # scenes on the arm: disjoint from training, selection and test


@dataclass(frozen=True, kw_only=True)
class DeployCommand:
    """Runs a policy bundle on an arm."""

    bundle: tyro.conf.Positional[Path]  # the bundle's folder
    emulate: bool = False  # on a simulated arm; this version has no hardware drivers
    episodes: int = 20  # each from a new scene
    realtime: bool = False  # keep the wall clock; otherwise time is compressed
    latency: float = 0.0  # s, between a measurement or a target and its effect
    noise: float = 0.002  # m, standard deviation of perceived object positions
    seed: int = 0  # of the scenes
    log: Path | None = None  # folder for one MCAP log per episode
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False  # print JSON


@dataclass(frozen=True)
class ArmResult:
    """Episodes of one bundle on an arm."""

    episodes: int
    successes: int
    ended: dict[str, int]  # how the runs ended
    missed: int  # periods skipped
    late_p99_ms: float
    policy_p99_ms: float
    limited: dict[str, float]  # share of ticks in which a filter stage limited some joint
    reasons: tuple[str, ...]  # of the runs that did not end as planned

    def line(self) -> str:
        """One line for people."""
        low, high = (100 * x for x in wilson(self.successes, self.episodes))
        share = 100 * self.successes / self.episodes
        return (
            f"on the simulated arm: success {share:.1f} % ({low:.1f}-{high:.1f}, "
            f"n={self.episodes}); policy p99 {self.policy_p99_ms:.2f} ms, "
            f"missed periods {self.missed}"
        )


def main(argv: Sequence[str]) -> int:
    """Runs the episodes; exits 1 where a run was stopped by a fault or the safety filter."""
    command = tyro.cli(DeployCommand, args=list(argv), prog="robo-rl deploy")
    if not command.emulate:
        raise ValueError(
            "this version drives simulated arms only: give --emulate. Hardware drivers are not "
            "part of it"
        )
    console = Console(stderr=True)
    result = run_emulated(
        command.bundle,
        episodes=command.episodes,
        realtime=command.realtime,
        latency=command.latency,
        noise=command.noise,
        seed=command.seed,
        log=command.log,
        console=console,
    )
    print(json.dumps(dataclasses.asdict(result), indent=1) if command.as_json else result.line())
    for reason in result.reasons:
        console.print(reason)
    return 0 if set(result.ended) == {Ended.DONE.value} else 1


def run_emulated(
    folder: Path,
    *,
    episodes: int = 20,
    realtime: bool = False,
    latency: float = 0.0,
    noise: float = 0.002,
    seed: int = 0,
    log: Path | None = None,
    console: Console | None = None,
) -> ArmResult:
    """Runs a bundle for ``episodes`` scenes on a simulated arm; success is read off the scene."""
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}")
    bundle = PolicyBundle.load(folder)
    manifest = bundle.manifest
    params = {k: v for k, v in manifest.task_config.items() if k not in ("robot", "goal")}
    task = make_task(manifest.task, robot=manifest.arm, goal=manifest.goal or None, **params)
    steps = round(task.episode_s / task.control_dt)
    if log is not None:
        log.mkdir(parents=True, exist_ok=True)
    successes, ended, missed = 0, {}, 0
    late, policy, reasons, limited = [], [], [], []
    for index in track(
        range(episodes), "arm     ", console=console, disable=console is None, transient=True
    ):
        scene_seed = ARM_SEED + 1000 * seed + index
        clock = RealClock() if realtime else VirtualClock(1000.0)
        driver = SimDriver(
            task, clock=clock, command_delay=latency / 2, latency=latency / 2, seed=scene_seed
        )
        eyes = SimPerception(driver.scene.poses, clock, noise=noise, seed=scene_seed)
        reached: list[bool] = []

        def judge(change: Any, driver: SimDriver = driver, reached: list[bool] = reached) -> None:
            # The truth at the moment the policy lets go, before the arm is parked.
            if change.before is Phase.RUN:
                reached.append(driver.scene.success())

        result = run(
            driver,
            bundle,
            task=task,
            perception=eyes,
            steps=steps,
            config=RunConfig(),
            clock=clock,
            log=None if log is None else log / f"episode_{index:04d}.mcap",
            on_transition=judge,
        )
        driver.close()
        name = result.ended.value
        ended[name] = ended.get(name, 0) + 1
        if result.ended is Ended.DONE:
            successes += bool(reached and reached[-1])
        else:
            reasons.append(f"episode {index}: {name}: {result.reason}")
        missed += result.missed
        late.append(result.latency["lateness"].p99)
        policy.append(result.latency["policy"].p99 if realtime else _think_time(bundle))
        limited.append({stage: float(np.max(share)) for stage, share in result.limited.items()})
        if result.ended.value == "interrupted":
            break
    done = sum(ended.values())
    stages = limited[0] if limited else {}
    return ArmResult(
        done,
        successes,
        ended,
        missed,
        1000 * float(np.max(late)),
        1000 * float(np.median(policy)),
        {stage: float(np.mean([x.get(stage, 0.0) for x in limited])) for stage in stages},
        tuple(reasons),
    )


def _think_time(bundle: PolicyBundle) -> float:
    """99th percentile s of the policy's answer, timed apart: compressed time stands still."""
    import time

    obs = np.zeros(bundle.manifest.obs_dim, np.float32)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        bundle.act(obs)
        times.append(time.perf_counter() - start)
    return float(np.quantile(times, 0.99))
