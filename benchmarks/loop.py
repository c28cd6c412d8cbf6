"""The control loop at 100 Hz beside an empty one, the policy beside torch,
and a tick of each wire-tested arm's safety filter beside the period.

The loop runs the whole bridge on an arm that is a variable: read, perceive, observe, act, filter,
send, log. The empty loop waits for the same deadlines and does nothing. Lateness is counted from a
deadline to the moment the loop is awake.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sims
from benchmarks.rates import Figure, Say, interleaved, rates
from real_robot import (
    Clearance,
    NullDriver,
    PolicyBundle,
    RealClock,
    RobotState,
    RunConfig,
    SafetyFilter,
    run,
    write_manifest,
)
from real_robot.core.arm_layout import robot_of
from real_robot.core.manifest import ActionSpec, InputSpec, Manifest, StartSet
from real_robot.core.pacing import Pacer, low_latency_interpreter
from real_robot.core.realtime import realtime
from real_robot.perception.base import Pose
from real_robot.policy.twin import Twin
from real_robot.safety.filter import TargetRequest

PERIOD = 0.01  # s
SECONDS = 4.0  # of each loop in each round
HIDDEN = 256  # width of the policy's two layers
CALLS = 2000  # of the policy, and ticks of a filter, in each round
FILTERED = ("so101", "ur5e")


def bench(scene: str, say: Say) -> list[Figure]:
    """Lateness of the loop beside an empty one, and the policy's answer beside torch."""
    import torch

    torch.set_num_threads(1)
    task = sims.make_task("reach", robot="so101")
    twin = Twin(task)
    width = sum(twin.columns.values())
    actor = torch.nn.Sequential(
        torch.nn.Linear(width, HIDDEN),
        torch.nn.Tanh(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.Tanh(),
        torch.nn.Linear(HIDDEN, task.act_dim),
        torch.nn.Hardtanh(),
    )
    with tempfile.TemporaryDirectory() as folder:
        bundle = _bundle(Path(folder), actor, task, twin)
        say(f"loops of {SECONDS:g} s")
        spreads: dict[str, list[float]] = {"loop": [], "work": []}

        def bridge() -> float:
            result = run(
                NullDriver(robot_of(task), period=PERIOD),
                bundle,
                task=task,
                perception=_FixedPoses(twin.entities),
                seconds=SECONDS,
                config=RunConfig(realtime=True, patience=1e6),
                log=Path(folder) / "run.mcap",
            )
            spreads["work"].append(result.latency["work"].p99)
            return result.latency["lateness"].p99

        lateness = interleaved({"bridge": bridge, "empty": empty})
    say("policy")
    obs = np.random.default_rng(0).normal(size=width).astype(np.float32)
    row = torch.as_tensor(obs)[None]

    def think() -> object:
        with torch.inference_mode():
            return actor(row)

    policy = interleaved(
        {"onnx": lambda: p99(lambda: bundle.act(obs)), "torch": lambda: p99(think)}
    )
    say("safety filters")
    ticks = {arm: _Swinging(arm) for arm in FILTERED}
    filters = interleaved({arm: lambda tick=tick: p50(tick) for arm, tick in ticks.items()})
    slack = 300.0  # us that the bridge may be later than an empty loop
    micro = 1e6
    return [
        Figure(
            "control loop 100 Hz, null driver, lateness p99",
            micro * lateness["bridge"],
            micro * lateness["empty"] + slack,
            "an empty loop + 300 us",
            1.0,
            "us",
            less=True,
        ),
        Figure(
            "one period's work p99",
            micro * float(np.median(spreads["work"])),
            micro * PERIOD,
            "the period",
            0.5,
            "us",
            less=True,
        ),
        Figure(
            f"policy 2x{HIDDEN} p99", micro * policy["onnx"], 500.0, "0.5 ms", 1.0, "us", less=True
        ),
        Figure(
            f"policy 2x{HIDDEN} p99",
            micro * policy["onnx"],
            micro * policy["torch"],
            "torch, one thread",
            1.0,
            "us",
            less=True,
        ),
        *(
            Figure(
                f"safety filter with clearance, {arm}, p50",
                micro * filters[arm],
                micro * PERIOD,
                "the period",
                0.25,
                "us",
                less=True,
            )
            for arm in FILTERED
        ),
    ]


def empty() -> float:
    """99th percentile s of the lateness of a loop that does nothing."""
    late = []
    with low_latency_interpreter(), realtime():
        pacer = Pacer(PERIOD, RealClock())
        for _ in range(round(SECONDS / PERIOD)):
            late.append(pacer.wait()[1])
    return float(np.percentile(late, 99))


def p99(call: Callable[[], object]) -> float:
    """99th percentile s of ``call``."""
    return float(np.percentile(_times(call), 99))


def p50(call: Callable[[], object]) -> float:
    """Median s of ``call``."""
    return float(np.median(_times(call)))


def _times(call: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return times


class _Swinging:
    """A tick of the filter of an arm whose joints swing about their home, each at its own beat."""

    def __init__(self, name: str):
        robot = sims.ROBOTS[name]
        clearance = Clearance.of(sims.make_task("reach", robot=name))
        about = NullDriver(robot, period=PERIOD).describe()
        self._filter = SafetyFilter.build(about, clearance=clearance)
        self._home, self._tick = robot.home, 0
        self._beat = 2.7 * np.linspace(0.7, 1.0, len(robot.home))  # rad/s
        self._memory = self._filter.start(self._measured(robot.home), 0.0)

    def __call__(self) -> None:
        self._tick += 1
        now = PERIOD * self._tick
        wish = TargetRequest(
            self._home + 0.15 * np.sin(self._beat * now), 0.5 - 0.5 * np.cos(0.5 * now)
        )
        state = self._measured(self._memory.qpos, now)
        _, self._memory, _ = self._filter.step(state, wish, now, self._memory)

    def _measured(self, qpos: np.ndarray, now: float = 0.0) -> RobotState:
        return RobotState(now, now, self._tick, qpos, np.zeros_like(qpos), np.zeros_like(qpos), 0.0)


class _FixedPoses:
    """Objects that lie where they always lay."""

    def __init__(self, entities: tuple[str, ...]):
        spots = np.linspace(-0.1, 0.1, max(2, len(entities)))
        self._spots = {name: np.array([0.2, spots[i], 0.02]) for i, name in enumerate(entities)}

    def read(self) -> dict[str, Pose]:
        now = time.monotonic()
        upright = np.array([1.0, 0.0, 0.0, 0.0])
        return {name: Pose(pos, upright, now) for name, pos in self._spots.items()}


def _bundle(folder: Path, actor: object, task: sims.core.task.Task, twin: Twin) -> PolicyBundle:
    """An untrained policy as a bundle: what it does is of no interest here."""
    import torch

    from robo_rl.bundles.export import to_onnx

    robot, width = robot_of(task), sum(twin.columns.values())
    obs = np.random.default_rng(0).normal(size=(64, width)).astype(np.float32)
    with torch.inference_mode():
        action = actor(torch.as_tensor(obs)).numpy()
    (folder / "policy.onnx").write_bytes(to_onnx(actor, width))
    np.savez(folder / "golden.npz", obs=obs, action=action)
    manifest = Manifest(
        task=task.name,
        task_config=task.card()["params"],
        arm=robot.name,
        joints=robot.joints,
        goal="",
        inputs=tuple(
            InputSpec(
                name=name, shape=(k,), unit="", source="perception" if "thing" in name else "joints"
            )
            for name, k in twin.columns.items()
        ),
        action=ActionSpec(dim=task.act_dim, low=(-1.0,) * task.act_dim, high=(1.0,) * task.act_dim),
        control_dt=task.control_dt,
        start=StartSet(centre=tuple(robot.home), tolerance=(0.2,) * len(robot.joints)),
    )
    write_manifest(folder, manifest)
    return PolicyBundle.load(folder)


EXPERIMENT = rates(__name__, bench, ("100 Hz",))
