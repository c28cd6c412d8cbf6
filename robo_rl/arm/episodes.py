"""run_episodes(): a bundle's episodes on a stage, and what they came to."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from real_robot import Ended, Fault, Phase, PolicyBundle, PolicyProcess, RunConfig, run
from real_robot.core.manifest import Manifest
from real_robot.core.states import PhaseTransition
from real_robot.log.recovery import recover_all
from real_robot.log.result import RunResult
from real_robot.operator.handover import DISCARD, FILTER, Operator, RunVerdict
from real_robot.safety.fault_latch import FaultLatch
from real_robot.session.monitor import Monitor
from robo_rl.arm.simulated import SimStage
from robo_rl.arm.stage import ArmStage, CommandedRange, EpisodeSetup
from robo_rl.evaluation.arm_conditions import ArmConditions
from robo_rl.evaluation.baselines import Baselines, SuccessRate, baselines_of_scenes
from robo_rl.evaluation.evaluate import NOT_JUDGED
from robo_rl.goals.bundle_task import task_of_bundle
from sims.core.task import Task

Array = np.ndarray

# What a policy brings about: an episode that ends so has failed. Others nobody can judge.
BROUGHT_ABOUT = {
    Fault.STALL,
    Fault.OVERLOAD,
    Fault.COLLISION,
    Fault.TRACKING,
    Fault.LIMIT,
    Fault.PROTECTIVE_STOP,
}
ARM_SEED = 800_000_000  # scenes on the arm: disjoint from training, selection and test
GONE = "the policy process ended between two episodes; no further episode was run"


@dataclass(frozen=True)
class ArmResult:
    """Episodes of one bundle on an arm."""

    arm: str  # which
    episodes: int
    successes: int | None  # None: no success labels
    ended: dict[str, int]  # number of episodes by end
    missed: int  # periods skipped
    late_p99_ms: float
    policy_p99_ms: float
    limited: dict[str, float]  # share of ticks in which a filter stage limited some joint
    reasons: tuple[str, ...]  # reasons of episodes that did not end normally
    shadow: bool = False  # the policy's outputs were logged, not executed
    discarded: int = 0  # episodes that the operator discarded; not in the success rate
    unlogged: str = ""  # what could not be logged, which ends the session; "": all was logged
    cut: str = ""  # why the session ended early, if no episode gives the reason
    under: str = ""  # noise and latency of a simulated arm
    floors: Baselines | None = None  # baselines in simulation from the same initial states
    told: CommandedRange | None = None  # range of targets, from the emulated device's record
    advice: str = ""  # how to train if success is lower than in simulation

    @property
    def remarks(self) -> tuple[str, ...]:
        """Lines on what could be improved and what did not go as planned."""
        return tuple(filter(None, (self.advice, *self.reasons, self.cut)))

    def line(self) -> str:
        """One line for people."""
        where = f"on {self.arm}" + (f" ({self.under})" if self.under else "")
        rates = f"policy p99 {self.policy_p99_ms:.2f} ms, missed periods {self.missed}"
        if self.successes is None:
            why = "with --shadow the arm was held still" if self.shadow else NOT_JUDGED
            return f"{where}: {why}; {rates}"
        if not (counted := self.episodes - self.discarded):
            return f"{where}: all {self.episodes} episodes were discarded; {rates}"
        parts = [f"{where}: success {SuccessRate(self.successes, counted).line()}"]
        if self.floors is not None:
            parts.append(self.floors.line(counted))
        if self.discarded:
            parts.append(f"{self.discarded} more discarded")
        if self.told is not None:
            rates += f"; {self.told.line()}"
        return "; ".join([*parts, rates])


def gap_advice(result: ArmResult, manifest: Manifest) -> str:
    """Returns what to change in training where ``result`` is below the success in simulation. Empty
    where the intervals overlap, where a success is unknown, and where training has all of it
    already."""
    known, training = manifest.metrics, manifest.training
    if result.successes is None or "low" not in known or not result.under:
        return ""
    measured = SuccessRate(result.successes, result.episodes)
    if measured.interval[1] >= known["low"]:
        return ""
    left = {
        "--randomize 0.7 (noise and latency)": not training.get("randomize", {}).get("width"),
        "--rate-limited (limits of speed, acceleration and jerk)": not training.get("shaped"),
    }
    options = " and ".join(option for option, missing in left.items() if missing)
    if not options:
        return ""
    simulated = SuccessRate(known["successes"], known["episodes"]).line()
    return (
        f"success in simulation, without the bridge's limits and delays, was {simulated}: to "
        f"include them in training, use robo-rl train with {options}"
    )


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
    bundle = PolicyBundle.load(folder)
    task = task_of_bundle(bundle.manifest)
    stage = SimStage(task, realtime, ArmConditions(noise=noise, latency=latency))
    return run_episodes(bundle, task, stage, episodes=episodes, seed=seed, log=log, console=console)


def run_episodes(
    bundle: PolicyBundle,
    task: Task[Any],
    stage: ArmStage,
    *,
    episodes: int | None = 20,
    first: int = 0,
    seed: int = 0,
    log: Path | None = None,
    console: Console | None = None,
    policy: PolicyProcess | None = None,
    monitor: Monitor | None = None,
    latch: FaultLatch | None = None,
    config: RunConfig | None = None,
    human: Callable[[EpisodeSetup, int], tuple[EpisodeSetup, Operator | None]] | None = None,
    dial: Callable[[], float] = lambda: 1.0,
    shadow: bool = False,
    before: Callable[[int], tuple[PolicyBundle, PolicyProcess | None]] | None = None,
    after: Callable[[int, RunResult], float] = lambda index, result: 0.0,
    cleared: Callable[[], bool] = lambda: False,
) -> ArmResult:
    """Runs a bundle for ``episodes`` scenes of ``stage`` and returns what came of them.

    The simulator judges an episode where there is one, else the operator, who may also discard it.
    A fault that latches ends the episodes unless an operator has ``cleared()`` it, and so do a
    signal, also one that came while the arm was parked, a policy process that ended and a log that
    cannot be written. Logs in the folder ``log`` whose writer was killed are recovered first, and
    new ones are numbered on from those.

    Args:
        bundle: The policy.
        task: The task that the bundle was trained for; it gives the length of an episode.
        stage: The simulated, emulated or real arm.
        episodes: At least 1; None: until ``after`` ends them.
        first: The number of the first scene.
        seed: The seed of the scenes.
        log: The folder of the logs; None: nothing is logged.
        console: Where progress is printed.
        policy: The process in which the policy runs; None: it runs in this one.
        monitor: The live display, which may also stop a run.
        latch: Where a fault of the arm is stored.
        config: The settings of each run; None: the defaults, in real time where ``stage`` is.
        human: ``human(scene, seed)`` makes the operator who may take over in a scene.
        dial: As in ``real_robot.run``.
        shadow: As in ``real_robot.run``.
        before: ``before(index)`` returns what acts in an episode in place of the bundle and its
            process.
        after: ``after(index, result)`` returns which share of all episodes is over; at 1 they end.
        cleared: Whether an operator has cleared the latched fault.

    Returns:
        The counts of all episodes, and advice where the arm differs from the training.

    Raises:
        ValueError: ``episodes`` is below 1.
    """
    if episodes is not None and episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}")
    steps = round(task.episode_s / task.control_dt)
    if log is not None:
        log.mkdir(parents=True, exist_ok=True)
        for path in recover_all(log):
            if console is not None:
                console.print(
                    f"{path}: the log is incomplete, its writer was killed; the part written was "
                    "recovered"
                )
    person_sets = getattr(stage, "asks", False)  # scenes, at the terminal: no bar then
    judged = (person_sets or bool(bundle.manifest.goal)) and not shadow  # a still arm does nothing
    asks = person_sets and judged
    config = config or RunConfig(realtime=stage.realtime)
    numbers = itertools.count(first) if episodes is None else range(first, first + episodes)
    of, logged = "" if episodes is None else f" of {episodes}", next_number(log)
    quiet = console is None or person_sets or monitor is not None
    tally = _Tally()
    for index in _with_progress(numbers, lambda: tally.over, None if quiet else console):
        number = index - first + 1
        if monitor is not None and person_sets:
            monitor.hide()
        scene = stage.scene(_scene(seed, index))
        if monitor is not None:
            monitor.begin(scene.driver.describe(), number, episodes, tally.successes)
        person: Operator | None = None
        if human is not None:
            scene, person = human(scene, _scene(seed, index))
        if before is not None:
            bundle, policy = before(index)
        held: list[bool] = []  # the goal, at the moment the policy or the person lets go

        def watch(change: PhaseTransition, held: list[bool] = held) -> None:
            if monitor is not None:
                monitor.note(phase=change.after.value)
            if change.before is Phase.ALIGN and change.after is Phase.RUN and judged:
                stage.begin()
            # Before the arm is parked.
            if change.before in (Phase.RUN, Phase.HUMAN) and change.after is Phase.HOLD and judged:
                held.append(stage.success())

        def judge(result: RunResult, held: list[bool] = held) -> RunVerdict:
            if result.verdict and (asks or result.verdict == DISCARD):
                return RunVerdict(result.verdict, "operator")
            if judged and result.fault in BROUGHT_ABOUT:
                return RunVerdict("failure", FILTER)
            if result.ended is not Ended.DONE or not judged:
                return RunVerdict("", "")
            if asks:
                if monitor is not None:
                    monitor.hide()
                return RunVerdict(stage.ask(), "operator")
            return RunVerdict("success" if held[-1:] == [True] else "failure", "simulator")

        result = run(
            scene.driver,
            bundle,
            task=task,
            perception=scene.eyes,
            steps=steps,
            config=config,
            clock=scene.clock,
            log=None if log is None else log / f"episode_{logged + index - first:04d}.mcap",
            on_transition=watch,
            watch=None if monitor is None else monitor.tick,
            stop=None if monitor is None else monitor.stop,
            policy=policy,
            latch=latch,
            human=person,
            dial=dial,
            shadow=shadow,
            film=getattr(stage, "film", ()),
            judge=judge,
        )
        about = scene.driver.describe()
        scene.driver.close()
        tally.add(index, result)
        if stage.realtime and console is not None and not console.is_terminal:
            console.print(
                f"episode {number}{of}: {result.ended.value}, "
                + (f"{tally.successes} reached so far, " if judged else "")
                + f"{result.missed} periods missed"
            )
        # The next episode needs a policy that lives, unless it gets another; a latched fault is a
        # person's to clear.
        gone = before is None and policy is not None and not policy.alive
        interrupted = result.ended is Ended.INTERRUPTED or bool(result.signal)
        tally.over = max(after(index, result), 0.0 if episodes is None else number / episodes)
        cut_short = interrupted or gone or bool(result.unlogged)
        if tally.over >= 1 or cut_short or (result.ended is Ended.FAULT and not cleared()):
            break
    found = tally.result(stage.name, None if stage.realtime else _think_time(bundle))
    cut = GONE if gone and tally.over < 1 and result.ended is Ended.DONE else ""
    found = replace(found, under=stage.under, shadow=shadow, cut=cut)
    found = replace(found, successes=found.successes if judged else None)
    if hasattr(stage, "commanded_range"):
        found = replace(found, told=stage.commanded_range(about))
    if judged and not asks:
        scenes = [_scene(seed, index) for index in range(first, first + found.episodes)]
        found = replace(found, floors=baselines_of_scenes(task, scenes))
    return replace(found, advice=gap_advice(found, bundle.manifest))


def _with_progress(
    numbers: Iterable[int], over: Callable[[], float], console: Console | None
) -> Iterator[int]:
    """``numbers``, beside a bar of how much of all is ``over()``, where there is a console."""
    with Progress(console=console, transient=True, disable=console is None) as bar:
        arm = bar.add_task("arm     ", total=1.0)
        for number in numbers:
            bar.update(arm, completed=over())
            yield number


def next_number(folder: Path | None) -> int:
    """Returns the number of the first episode that ``folder`` has no log of."""
    if folder is None or not folder.is_dir():
        return 0
    names = (re.fullmatch(r"episode_(\d+)", path.stem) for path in folder.glob("*.mcap"))
    return max((int(found[1]) + 1 for found in names if found), default=0)


def _scene(seed: int, index: int) -> int:
    """The seed of the scene of episode ``index``."""
    return ARM_SEED + 1000 * seed + index


class _Tally:
    """Running totals over the episodes so far."""

    def __init__(self) -> None:
        self.successes = 0
        self.over = 0.0  # how much, of 1, of all that is to be done
        self._results: list[RunResult] = []
        self._reasons: list[str] = []

    def add(self, index: int, result: RunResult) -> None:
        self._results.append(result)
        self.successes += result.verdict == "success"
        if result.ended is not Ended.DONE:
            self._reasons.append(f"episode {index}: {result.ended.value}: {result.reason}")
        self._reasons += [f"episode {index}: {note}" for note in result.notes]

    def result(self, arm: str, think_s: float | None) -> ArmResult:
        """``think_s``: the policy's answer timed apart, where the clock stood still meanwhile."""
        runs = self._results
        thought = [r.latency["policy"].p99 if think_s is None else think_s for r in runs]
        return ArmResult(
            arm,
            len(runs),
            self.successes,
            dict(Counter(r.ended.value for r in runs)),
            sum(r.missed for r in runs),
            1000 * float(np.max([r.latency["lateness"].p99 for r in runs])),
            1000 * float(np.median(thought)),
            _shares([r.limited for r in runs]),
            tuple(self._reasons),
            discarded=sum(r.verdict == DISCARD for r in runs),
            unlogged=runs[-1].unlogged,
        )


def _shares(limited: Sequence[Mapping[str, Array]]) -> dict[str, float]:
    """{filter stage: share of ticks in which it limited some joint}, the mean over episodes."""
    worst = [{stage: float(np.max(share)) for stage, share in one.items()} for one in limited]
    return {stage: float(np.mean([one.get(stage, 0.0) for one in worst])) for stage in worst[0]}


def _think_time(bundle: PolicyBundle) -> float:
    """99th percentile s of the policy's answer, timed apart: compressed time stands still."""
    obs = np.zeros(bundle.manifest.obs_dim, np.float32)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        bundle.act(obs)
        times.append(time.perf_counter() - start)
    return float(np.quantile(times, 0.99))
