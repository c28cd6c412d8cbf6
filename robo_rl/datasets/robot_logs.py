"""LoggedEpisode: episodes of an arm's logs, as what a learner reads; loads no torch.

A log has an observation wherever the policy was asked, also while a person drove. What was done
from one to the next is the EXECUTED step: how far the arm's goal went, after every limit, whoever
wished it. It is said as an action of the task by turning ``Task.control`` round, on the twin; what
no action of the task says of it (a turned wrist, say) is ``unsaid``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from real_robot.core.driver import RobotState
from real_robot.core.manifest import Manifest
from real_robot.log.recorder import Log, read_log
from real_robot.operator.handover import DISCARD
from real_robot.perception.base import Pose
from real_robot.policy.twin import Twin
from robo_rl.goals.bundle_task import task_of_bundle
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.envs.demonstrations import minari_metadata, minari_name, new_folder

Array = np.ndarray

SLACK = 0.5  # of an action, by which two observations may be nearer or farther than one
ROUNDS = 4  # of Gauss and Newton's: control is nearly linear
EXACT, PLACES = 1e-3, 60  # rad that count as exact; start points tried otherwise
NUDGE = 1e-3  # of an action, for its slope
FAINT = 1e-4  # rad, slopes below this say nothing
DRIVEN = ("run", "human")  # phases in which somebody drives


@dataclass(frozen=True)
class LoggedEpisode:
    """One episode; T actions, n joints and, behind them, the gripper."""

    path: Path
    obs: Array  # (T+1, k) f32
    action: Array  # (T, act_dim) f32, executed, of the task
    unsaid: Array  # (T,) rad, residual of the executed step beyond any task action
    policy: Array  # (T+1, act_dim) f32, policy output; 0: none
    by_hand: Array  # (T+1,) bool, the operator was in control
    t: Array  # (T+1,) s, when each observation was complete
    measured: Array  # (T+1, n+1) rad and opening
    wanted: Array  # (T, n+1) the same, commanded by the active controller
    sent: Array  # (T, n+1) the same, sent to the device
    frames: dict[str, list[tuple[float, bytes]]]  # {camera: (t s, JPEG)}
    poses: tuple[dict[str, Pose], ...]  # (T+1,) of the objects, as the observation has them
    success: bool
    judge: str  # "simulator", "operator", FILTER: the safety filter stopped it
    training: Mapping[str, Any]  # the manifest entry of the acting policy


@dataclass
class LogSelection:
    """The episodes that are read from some logs: their task, and why others are left out."""

    task: Task[Any]
    manifest: Manifest
    left_out: Counter[str]

    def summary(self) -> str:
        """Returns one sentence on the episodes left out; "" if none was."""
        reasons = "; ".join(f"{n} {why}" for why, n in sorted(self.left_out.items()))
        return f"left out: {reasons}" if reasons else ""


def log_files(paths: Sequence[Path]) -> list[Path]:
    """Returns the log files; a folder stands for all logs (*.mcap) in it, sorted by name.

    Args:
        paths: Files and folders.

    Raises:
        ValueError: there is no log.
    """
    found = [log for p in paths for log in (sorted(p.glob("*.mcap")) if p.is_dir() else [p])]
    if not found:
        raise ValueError(f"no log (*.mcap) in {', '.join(map(str, paths))}")
    return found


def select_logs(paths: Sequence[Path]) -> LogSelection:
    """Returns the task and manifest of the first log whose run began; all logs must have them.

    Args:
        paths: The logs.

    Raises:
        ValueError: the goal is a formula, or no object was detected while recording.
    """
    for path in paths:
        if (log := _read(path)).run:
            break
    manifest = manifest_of(log, path)
    if manifest.goal.startswith("["):
        raise ValueError(
            f"{paths[0]}: formula goals cannot be exported as datasets; expected a goal that "
            "robo-rl list tasks shows"
        )
    if not manifest.needs_perception:
        raise ValueError(
            f"{paths[0]}: no object was detected in this recording, so task observations are "
            "missing; record with --camera and --tags"
        )
    return LogSelection(task_of_bundle(manifest), manifest, Counter())


def episodes(
    paths: Sequence[Path], reading: LogSelection, *, frames: bool = False
) -> Iterator[LoggedEpisode]:
    """Yields the episodes in ``paths``; counts those that cannot be used in ``reading.left_out``.

    Args:
        paths: The logs.
        reading: The task and the manifest that all logs must have.
        frames: Whether the camera's frames are read, too.

    Raises:
        ValueError: a log has another task, arm, goal or control period than those before it.
    """
    twin = Twin(reading.task)
    for path in paths:
        log = _read(path, frames)
        if not log.run:
            reading.left_out["that end before their run began"] += 1
            continue
        other = manifest_of(log, path)
        for name in ("task", "task_config", "arm", "goal", "control_dt"):
            mine, its = getattr(reading.manifest, name), getattr(other, name)
            if mine != its:
                raise ValueError(
                    f"{path}: its {name} must be that of the logs before it, {mine!r}, got {its!r}"
                )
        why = _exclusion_reason(log)
        if not why:
            one = _episode(path, log, other, twin)
            if isinstance(one, LoggedEpisode):
                yield one
                continue
            why = one
        reading.left_out[why] += 1


def _read(path: Path, frames: bool = False) -> Log:
    """A log, with nothing in it where its writer was killed before anything was."""
    return read_log(path, frames=frames) if path.stat().st_size else Log()


def manifest_of(log: Log, path: Path) -> Manifest:
    """Returns the bundle manifest in a log; ValueError where the log ends before it."""
    if not log.run:
        raise ValueError(f"{path} ends before the run starts")
    return Manifest.from_json(json.dumps(log.run["manifest"]))


def _exclusion_reason(log: Log) -> str:
    if log.run.get("shadow"):
        return "in shadow, where nothing moves"
    what = log.verdict.get("what", "")
    if what == DISCARD:
        return "thrown away by who drove"
    return "" if what else "that nobody judged: stopped, or of an older version"


def _episode(path: Path, log: Log, manifest: Manifest, twin: Twin) -> LoggedEpisode | str:
    ticks = [t for t in log.ticks if t["phase"] in DRIVEN]
    if ticks and ticks[0].get("goal") is None:
        return "of an older version, without goals"
    # Goals before each of them: what an action counts from.
    acted = [i for i, t in enumerate(ticks) if t["thought"] is not None]
    if manifest.action.kind == "none":  # nobody drove before the person did, nor after
        hands = [i for i, t in enumerate(ticks) if t["phase"] == "human"]
        acted = [i for i in acted if hands and hands[0] <= i <= hands[-1]]
    if len(acted) < 2:
        return "in which nobody drove"
    t = np.array([ticks[i]["t"] for i in acted])
    steps = np.diff(t) / manifest.control_dt
    if np.abs(steps - 1.0).max() > SLACK:
        return "with a gap: objects hidden from the cameras, or periods missed"
    before = _commanded_goal(ticks[acted[0]] if acted[0] == 0 else ticks[acted[0] - 1])
    aims = np.array([before] + [_commanded_goal(ticks[i - 1]) for i in acted[1:]])
    states = [ticks[i]["state"] for i in acted]
    action, unsaid = [], []
    for state, one, other in zip(states[:-1], aims[:-1], aims[1:], strict=True):
        chosen, left = _action(twin, state, one, other)
        action.append(chosen)
        unsaid.append(left)
    thoughts = [ticks[i]["thought"] for i in acted]
    policy = np.array([thought["action"] for thought in thoughts], np.float32)
    return LoggedEpisode(
        path,
        obs=np.array([thought["obs"] for thought in thoughts], np.float32),
        action=np.array(action, np.float32),
        unsaid=np.array(unsaid),
        policy=policy,
        by_hand=np.array([ticks[i]["phase"] == "human" for i in acted]),
        t=t,
        measured=np.array([_target(state) for state in states], np.float32),
        wanted=np.array([_target(ticks[i - 1]["requested"]) for i in acted[1:]], np.float32),
        sent=np.array([_target(ticks[i - 1]["sent"]) for i in acted[1:]], np.float32),
        frames=log.frames,
        poses=tuple(_poses(thought) for thought in thoughts),
        success=log.verdict["what"] == "success",
        judge=log.verdict["by"],
        training=manifest.training,
    )


def _poses(thought: dict[str, Any]) -> dict[str, Pose]:
    """Of the objects; {} in logs of before."""
    poses = thought.get("poses", {})
    return {
        name: Pose(np.array(p["pos"]), np.array(p["quat"]), p["t"]) for name, p in poses.items()
    }


def decode_frame(jpeg: bytes) -> Array:
    """A camera's picture (H, W, 3) RGB uint8; ValueError where it is none."""
    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise ValueError(f"cannot decode a JPEG frame of {len(jpeg)} bytes")
    return np.ascontiguousarray(image[..., ::-1])


def _target(of: dict[str, Any]) -> list[float]:
    return [*of["qpos"], of["gripper"]]


def _commanded_goal(tick: dict[str, Any]) -> list[float]:
    """Returns the commanded joint goal (n+1,) after a tick."""
    return [*tick["goal"], tick["filtered"]["gripper"]]


def _action(twin: Twin, told: dict[str, Any], start: Array, end: Array) -> tuple[Array, float]:
    """The action (act_dim,) that takes the goal from ``start`` to ``end`` (n+1,) on an arm that was
    measured so, and the largest part of that in a joint, rad, that it does not say."""
    qvel = np.zeros(len(told["qpos"])) if told["qvel"] is None else np.array(told["qvel"])
    state = RobotState(0.0, 0.0, 0, np.array(told["qpos"]), qvel, qvel, told["gripper"])
    twin.commit(start[:-1], start[-1])
    twin.observe(state, {})

    def reached_by(action: Array) -> Array:
        twin.commit(start[:-1], start[-1])
        target = twin.target(np.clip(action, -1.0, 1.0))
        return np.array([*target.qpos, target.gripper])

    def squared_error(action: Array) -> float:
        return float(np.square(end - reached_by(action)).sum())

    def gradient_descent(action: Array) -> Array:
        """As near as it gets from ``action``, as long as it gets nearer."""
        least = squared_error(action)
        for _ in range(ROUNDS):
            here = reached_by(action)
            nudges = np.where(action > 0, -NUDGE, NUDGE)  # inwards: beyond the ends is nothing
            moved = np.array([reached_by(action + row) - here for row in np.diag(nudges)])
            slope = moved / nudges[:, None]
            step = np.linalg.lstsq(slope.T, end - here, rcond=FAINT)[0]
            tried = np.clip(action + step, -1.0, 1.0)
            if (then := squared_error(tried)) >= least:
                break
            action, least = tried, then
        return action

    action = gradient_descent(np.zeros(twin.task.act_dim))
    if squared_error(action) > EXACT**2:  # at joint limits control is not smooth: restart elsewhere
        action = min(
            action,
            gradient_descent(min(_places(len(action)), key=squared_error)),
            key=squared_error,
        )
    return action, float(np.abs(end - reached_by(action))[:-1].max())


@cache
def _places(dim: int) -> Array:
    """(PLACES, dim) actions that are everywhere."""
    return np.random.default_rng(0).uniform(-1.0, 1.0, (PLACES, dim))


def write_minari(
    path: Path, paths: Sequence[Path], told: LogSelection
) -> tuple[int, int, int, list[float]]:
    """Writes the logs ``paths`` as a Minari dataset into the new folder ``path``.

    The layout is that of ``sims.envs.demonstrations`` without ``start``: the arm's start is no
    state of a simulation. The reward is the verdict, at the last step.

    Args:
        path: The folder to write.
        paths: The logs to read.
        told: The task of the logs; counts those that are left out.

    Returns:
        (episodes, steps, successes, unsaid): ``unsaid`` has, for each step, the rad of its command
        that no action of the task expresses.

    Raises:
        ValueError: no episode can be exported.
    """
    import h5py

    with new_folder(path) as partial:
        (partial / "data").mkdir(parents=True)
        env = BatchEnv(told.task, 1)
        written = steps = successes = 0
        unsaid: list[float] = []
        hands: set[bool] = set()
        with h5py.File(partial / "data" / "main_data.hdf5", "w", track_order=True) as file:
            for one in episodes(paths, told):
                length = len(one.action)
                last = np.arange(length) == length - 1
                group = file.create_group(f"episode_{written}")
                group.attrs["id"], group.attrs["total_steps"] = written, length
                group.attrs["success"], group.attrs["judge"] = one.success, one.judge
                group.attrs["log"] = one.path.name
                group["observations"], group["actions"] = one.obs, one.action
                group["rewards"] = np.where(last & one.success, 1.0, 0.0)
                group["terminations"], group["truncations"] = np.zeros(length, bool), last
                group["infos/success"] = np.append(np.zeros(length, bool), one.success)
                group["infos/by_hand"], group["infos/policy_action"] = one.by_hand, one.policy
                group["infos/t"] = one.t
                written, steps, successes = written + 1, steps + length, successes + one.success
                unsaid += one.unsaid.tolist()
                hands |= set(one.by_hand.tolist())
        if not written:
            raise ValueError(f"no episode can be exported. {told.summary()}")
        policy = told.manifest.action.kind != "none"
        by = {(True, False): "a policy", (True, True): "a policy and a person"}.get(
            (policy, True in hands), "a person"
        )
        metadata = minari_metadata(env, minari_name(path), written, steps, by) | {"recorded": True}
        env.close()
        size = (partial / "data" / "main_data.hdf5").stat().st_size
        metadata["dataset_size"] = round(size / 1e6, 1)
        (partial / "data" / "metadata.json").write_text(json.dumps(metadata, indent=1))
    return written, steps, successes, unsaid
