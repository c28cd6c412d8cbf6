"""Data sets of an arm's logs: what a person did, as Minari, LeRobot and our learners read it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from functools import cache
from pathlib import Path

import minari
import numpy as np
import pytest

import sims
from real_robot import Manifest, PolicyBundle, RunConfig, read_log
from real_robot.core.pacing import VirtualClock
from real_robot.operator.devices import DeviceContext, make
from real_robot.operator.handover import OperatorInput, RunVerdict
from real_robot.operator.scripted import RememberingDriver, ScriptedOperator
from real_robot.perception.camera import Frame, RecordedCamera
from real_robot.policy.twin import Twin
from real_robot.session.run import run
from real_robot.sim.sim_driver import SimDriver
from real_robot.sim.sim_perception import SimPerception
from robo_rl.arm.episodes import next_number
from robo_rl.arm.noop_policy import make_noop_policy
from robo_rl.cli import main
from robo_rl.datasets.demonstrations import read_demonstrations
from robo_rl.datasets.robot_logs import _action, episodes, log_files, select_logs
from robo_rl.learners.demo_replay import demos_for
from sims import BatchEnv

GOAL = "touch_red_cube"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three episodes that the expert led on a simulated arm, with no policy."""
    log = tmp_path_factory.mktemp("teleop") / "logs"
    asked = f"--emulate --human scripted:expert --goal {GOAL} --episodes 2 --log {log}"
    assert main(["teleop", *asked.split()]) == 0
    assert next_number(log) == 2
    assert main(["teleop", *asked.replace("episodes 2", "episodes 1").split()]) == 0
    assert [path.name for path in log_files([log])] == [f"episode_000{i}.mcap" for i in range(3)]
    return log


def test_robot_logs_export_to_minari_and_clone(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "reach-v0"
    assert main(["demos", str(to), "--from", str(logs), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    data = minari.MinariDataset(to / "data")
    assert data.total_episodes == told["episodes"] == 3 and data.total_steps == told["steps"]
    for episode, log in zip(data.iterate_episodes(), log_files([logs]), strict=True):
        thoughts = [t["thought"] for t in read_log(log).ticks if t["thought"]]
        assert len(episode) == len(thoughts) - 1 == len(episode.actions)
        assert (episode.observations == np.array([t["obs"] for t in thoughts], np.float32)).all()
        assert episode.infos["by_hand"].all() and not episode.infos["policy_action"].any()
        assert np.allclose(np.diff(episode.infos["t"]), 0.05)
        assert episode.rewards[-1] == episode.infos["success"][-1] == 1.0
        assert np.abs(episode.actions).max() <= 1.0 and np.abs(episode.actions[1:]).max() > 0.3
    demos = read_demonstrations(to)
    assert demos.episodes == 3 and demos.by == "a person" and demos.start.shape == (3, 0)
    with pytest.raises(ValueError, match=r"can only be cloned \(robo-rl clone\)"):
        demos_for(str(to), sims.make("reach", 1, robot="so101"))


def test_executed_targets_convert_back_to_actions() -> None:
    task = sims.make_task("reach", robot="so101")
    env, twin, rng = BatchEnv(task, 4, seed=5), Twin(task), np.random.default_rng(0)
    env.reset()
    arm = twin._arm
    errors = []
    for _ in range(10):
        action = rng.uniform(-1, 1, (4, 3)).astype(np.float32)
        before = env.batch.ctrl.copy(), env.batch.qpos.copy(), env.batch.qvel.copy()
        env.step(action)
        for row in range(4):
            ctrl, qpos, qvel = (values[row] for values in before)
            start, end = ([*c[arm.ctrl], 0.0] for c in (ctrl, env.batch.ctrl[row]))
            told = {"qpos": qpos[arm.qpos], "qvel": qvel[arm.qvel], "gripper": 0.0}
            said, unsaid = _action(twin, told, np.array(start), np.array(end))
            errors.append(unsaid)
            assert np.abs(said).max() <= 1.0
    assert np.median(errors) < 1e-6 and max(errors) < 0.01
    turned = np.array(end) + [0, 0, 0, 0, 0.2, 0]  # which no action of this task does
    assert _action(twin, told, np.array(end), turned)[1] > 0.1


def test_unusable_log_episodes_are_skipped_and_counted(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = sims.make_task("reach", robot="so101", goal=GOAL)
    first = recorded(tmp_path / "one.mcap", task, verdict="discard")
    second = recorded(tmp_path / "two.mcap", task, verdict="")
    third = recorded(tmp_path / "three.mcap", task, blind=(0.3, 0.5))
    to = tmp_path / "set"
    paths = [str(path) for path in (first, second, third)]
    assert main(["demos", str(to), "--from", *paths]) == 1
    error = capsys.readouterr().err
    assert "no episode can be exported" in error and not to.exists()
    for why in ("1 thrown away by who drove", "1 that nobody judged", "1 with a gap"):
        assert why in error
    assert main(["demos", str(to), "--from", str(logs), *paths]) == 0
    out = capsys.readouterr()
    assert "3 episodes" in out.out and "1 thrown away by who drove" in out.err
    # Whoever wrote it was killed before it had said of what it is.
    cut, empty = tmp_path / "cut.mcap", tmp_path / "empty.mcap"
    cut.write_bytes(first.read_bytes()[:32])
    empty.touch()
    told = select_logs([cut, empty, *log_files([logs])])
    found = list(episodes([cut, *log_files([logs]), empty], told))
    assert len(found) == 3 and told.left_out == {"that end before their run began": 2}
    with pytest.raises(ValueError, match=r"cut.mcap ends before the run starts"):
        select_logs([empty, cut])
    other = recorded(tmp_path / "other.mcap", dataclasses.replace(task, goal="above_blue_ball"))
    assert main(["demos", str(tmp_path / "no"), "--from", str(first), str(other)]) == 1
    error = capsys.readouterr().err
    assert "its goal must be that of the logs before it, 'touch_red_cube'" in error
    assert main(["demos", str(tmp_path / "no"), "--from", str(tmp_path / "runs")]) == 1
    blind = recorded(tmp_path / "blind.mcap", task, perceives=False)
    assert main(["demos", str(tmp_path / "no"), "--from", str(blind)]) == 1
    assert "no object was detected in this recording" in capsys.readouterr().err


class Camera:
    """Pictures that grow lighter, by so much each."""

    def __init__(self, clock: VirtualClock, by: int):
        self._clock, self._by, self._count = clock, by, 0

    def read(self) -> Frame:
        self._count += 1
        image = np.full((48, 64, 3), min(self._by * self._count, 250), np.uint8)
        return Frame(image, self._clock.now_ns() * 1e-9)


class Eyes:
    """Sees the objects, but for a while, and takes pictures at each look."""

    def __init__(
        self,
        driver: SimDriver,
        clock: VirtualClock,
        blind: tuple[float, float],
        film: tuple[str, ...],
    ):
        self._eyes = SimPerception(driver.scene.poses, clock)
        self._clock, self._blind = clock, blind
        self.cameras = [RecordedCamera(Camera(clock, 3 - i), name) for i, name in enumerate(film)]
        self._last = {}
        self.begun = np.inf

    def read(self) -> dict:
        for camera in self.cameras:
            camera.read()
        t = self._clock.now_ns() * 1e-9 - self.begun
        if not self._blind[0] <= t < self._blind[1]:
            self._last = dict(self._eyes.read())
        return self._last


@cache
def standing(task: sims.core.task.Task, perceives: bool) -> PolicyBundle:
    bundle = make_noop_policy(task, perceives)
    bundle.manifest = dataclasses.replace(bundle.manifest, park=())  # it takes as long as the rest
    return bundle


def recorded(
    log: Path,
    task: sims.core.task.Task,
    *,
    verdict: str = "success",
    blind: tuple[float, float] = (9.0, 9.0),
    perceives: bool = True,
    film: tuple[str, ...] = (),
    turn: float = 0.4,
    seconds: float = 0.7,
) -> Path:
    """A log of a person who turns the arm's first joint for half a second or so."""
    clock = VirtualClock(1000.0)
    driver = RememberingDriver(SimDriver(task, clock=clock, period=0.01))
    eyes = Eyes(driver, clock, blind, film)
    around = DeviceContext(robot=driver.describe(), clock=clock)
    qvel = np.array([turn, 0.0, 0.0, 0.0, 0.0])

    def script(t: float) -> OperatorInput | None:
        now = clock.now_ns() * 1e-9
        eyes.begun = min(eyes.begun, now)
        return OperatorInput(now, True, qvel=qvel) if t >= 0.18 else None

    run(
        driver,
        standing(task, perceives),
        task=task,
        clock=clock,
        seconds=seconds,
        log=log,
        config=RunConfig(max_pose_age=0.05, max_hidden=0.06),
        perception=eyes if perceives else None,
        human=ScriptedOperator(script, around),
        film=eyes.cameras,
        judge=lambda result: RunVerdict(verdict, "operator"),
    )
    return log


def test_operator_actions_are_exported(tmp_path: Path) -> None:
    task = sims.make_task("reach", robot="so101", goal=GOAL)
    log = recorded(tmp_path / "one.mcap", task, seconds=1.2)
    (one,) = episodes([log], select_logs([log]))
    # From when the arm was taken: nobody drove before.
    assert len(one.action) == 19 and one.judge == "operator" and one.by_hand.all()
    steps = np.diff(one.sent[:, 0])
    assert steps[2:].mean() == pytest.approx(0.4 * 0.05, abs=0.002)
    # The tool goes round the arm's foot: to its side, and hardly up or down.
    assert np.abs(one.action[3:-1, 1]).min() > 2 * np.abs(one.action[3:-1, 2]).max()
    assert one.unsaid[3:].max() < 0.02
    manifest = Manifest.from_json(json.dumps(read_log(log).run["manifest"]))
    assert manifest.action.kind == "none"
    still = [t for t in read_log(log).ticks if t["phase"] == "run"]
    assert np.ptp([t["sent"]["qpos"] for t in still], axis=0).max() < 1e-9  # nobody moves nothing


def three_logs(tmp_path: Path) -> list[Path]:
    """Of two episodes that succeeded, and of one that did not between them; with pictures."""
    task = sims.make_task("reach", robot="so101", goal=GOAL)
    return [
        recorded(
            tmp_path / f"{i}.mcap",
            task,
            film=("front",),
            verdict=verdict,
            turn=0.2 + 0.1 * i,
            seconds=0.7,
        )
        for i, verdict in enumerate(("success", "failure", "success"))
    ]


READ = """
import json, sys
from lerobot.datasets.lerobot_dataset import LeRobotDataset

data = LeRobotDataset("robo/set", root=sys.argv[1], video_backend="pyav")
last = data[len(data) - 1]
picture = last["observation.images.front"]
print(json.dumps({
    "episodes": data.num_episodes, "frames": len(data), "fps": data.fps, "task": last["task"],
    "action": last["action"].tolist(), "episode": int(last["episode_index"]),
    "picture": [*picture.shape, float(picture.min()), float(picture.max())],
    "mean": data.meta.stats["action"]["mean"].tolist(),
}))
"""


@pytest.mark.slow
def test_lerobot_library_reads_the_export(tmp_path: Path) -> None:
    """In an environment of its own, for it wants an older torch: `make check` makes one."""
    python = os.environ.get("LEROBOT_PYTHON")
    if not python:
        pytest.skip("no LEROBOT_PYTHON: an interpreter that has lerobot, as `make check` makes")
    paths, to = three_logs(tmp_path), tmp_path / "set"
    assert main(["demos", str(to), "--format", "lerobot", "--from", *map(str, paths)]) == 0
    told = subprocess.run([python, "-c", READ, str(to)], check=True, capture_output=True, text=True)
    read = json.loads(told.stdout.splitlines()[-1])
    assert (read["episodes"], read["frames"], read["fps"], read["episode"]) == (2, 18, 20, 1)
    assert read["task"] == "the gripper touches the red cube"
    written = [*episodes([paths[0], paths[2]], select_logs(paths))]
    np.testing.assert_allclose(read["action"], written[1].sent[-1], atol=1e-6)
    sent = np.concatenate([one.sent for one in written])
    np.testing.assert_allclose(read["mean"], sent.mean(axis=0), atol=1e-5)
    assert read["picture"][0] == 3 and 0.0 < read["picture"][3] <= read["picture"][4] < 1.0


def test_lerobot_dataset_round_trip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    paths = three_logs(tmp_path)
    to, scores = tmp_path / "set", tmp_path / "scores.json"
    scores.write_text(json.dumps({"score": np.linspace(0, 1, 18).tolist()}))
    command = ["demos", str(to), "--format", "lerobot", "--from", *map(str, paths)]
    assert main([*command, "--progress", str(scores)]) == 0
    assert "1 that failed (--failures takes them in)" in capsys.readouterr().err
    info = json.loads((to / "meta" / "info.json").read_text())
    assert info["codebase_version"] == "v3.0" and info["fps"] == 20
    assert info["total_episodes"] == 2 and info["total_frames"] == 18
    at = {"chunk_index": 0, "file_index": 0}
    table = pq.read_table(to / info["data_path"].format(**at))
    columns = {name for name, f in info["features"].items() if f["dtype"] != "video"}
    assert set(table.column_names) == columns and table.num_rows == 18
    for name in columns:
        kind, shape = (info["features"][name][k] for k in ("dtype", "shape"))
        rows = np.array(table[name].to_pylist())
        assert rows.shape == (18, *([] if shape == [1] else shape)) and np.isfinite(rows).all()
        held = str(table.schema.field(name).type)
        assert {"float32": "float", "float64": "double"}.get(kind, kind) in held
    assert table["frame_index"].to_pylist() == [*range(9)] * 2
    assert np.allclose(table["timestamp"].to_numpy(), table["frame_index"].to_numpy() / 20)
    (one,) = episodes(paths[:1], select_logs(paths))
    assert (np.array(table["action"].to_pylist())[:9] == one.sent).all()
    assert table["is_intervention"].to_pylist() == [True] * 18
    assert np.allclose(np.diff(table["taken_at"].to_numpy()[:9]), 0.05)
    rows = pq.read_table(to / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [(r["dataset_from_index"], r["dataset_to_index"]) for r in rows] == [(0, 9), (9, 18)]
    assert rows[1]["tasks"] == ["the gripper touches the red cube"]
    assert rows[1]["stats/action/count"] == [9]
    video = "videos/observation.images.front"
    assert rows[1][f"{video}/from_timestamp"] == pytest.approx(0.45)
    tasks = pq.read_table(to / "meta" / "tasks.parquet")
    assert tasks.to_pylist() == [{"task_index": 0, "task": "the gripper touches the red cube"}]
    assert json.loads(tasks.schema.metadata[b"pandas"])["index_columns"] == ["task"]
    stats = json.loads((to / "meta" / "stats.json").read_text())
    assert set(stats) == set(info["features"])
    for name, of in stats.items():
        assert {*of} == {"min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"}
        assert all(np.shape(of[q]) == np.shape(of["mean"]) for q in of if q != "count"), name
    sent = np.array(table["action"].to_pylist())
    np.testing.assert_allclose(stats["action"]["q10"], np.quantile(sent, 0.1, axis=0), atol=1e-6)
    assert len(rows[1]["stats/action/q99"]) == sent.shape[1]
    # rad from our zero, under names that LeRobot's robots do not have
    names = info["features"]["action"]["names"]
    assert names[-1] == "gripper.opening" and names[0] == "shoulder_pan.rad"
    assert not [n for f in info["features"].values() for n in f["names"] or () if ".pos" in n]
    assert np.shape(stats["observation.images.front"]["mean"]) == (3, 1, 1)
    beside = pq.read_table(to / "sarm_progress.parquet")
    assert beside.column_names == ["index", "episode_index", "frame_index", "progress_sparse"]
    assert np.allclose(beside["progress_sparse"].to_numpy(), np.linspace(0, 1, 18))
    check_film(to / info["video_path"].format(video_key="observation.images.front", **at))
    scores.write_text("[0.5]")
    command = ["demos", str(tmp_path / "b"), "--format", "lerobot", "--from", str(paths[0])]
    assert main([*command, "--progress", str(scores)]) == 1
    assert "--progress must have 9 scores, one per frame, got 1" in capsys.readouterr().err
    scores.write_text(json.dumps([-0.2] * 9))
    assert main([*command, "--progress", str(scores)]) == 1
    assert "progress must be from 0 to 1, got -0.2" in capsys.readouterr().err


def check_film(path: Path) -> None:
    """A picture for each frame, lighter as they go, and dark again where the second begins."""
    av = pytest.importorskip("av")
    with av.open(path) as film:
        stream = film.streams.video[0]
        assert stream.average_rate == 20
        light = [f.to_ndarray(format="rgb24").mean() for f in film.decode(stream)]
        assert len(light) == 18
    assert (np.diff(light[:9]) > -1).all() and light[8] > light[0] + 15 and light[9] < light[8]


def test_noop_policy_bundle_is_valid() -> None:
    task = sims.make_task("reach", robot="so101", goal=GOAL)
    bundle = make_noop_policy(task, True)
    assert isinstance(bundle, PolicyBundle) and bundle.manifest.needs_perception
    assert Manifest.from_json(bundle.manifest.to_json()) == bundle.manifest
    assert not make_noop_policy(task, False).manifest.needs_perception


def test_teleop_with_the_scripted_expert(capsys: pytest.CaptureFixture[str]) -> None:
    around = DeviceContext(robot=None, clock=VirtualClock(1.0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scripted:expert needs object poses"):
        make("scripted:expert", around)
    assert main(["teleop", "--task", "hopper", "--human", "scripted:expert"]) == 1
    assert "has no arm with a driver" in capsys.readouterr().err
    assert main(["teleop", "--emulate", "--human", "scripted:expert", "--seconds", "-1"]) == 1
    assert "--seconds must be finite and not below 0" in capsys.readouterr().err


@pytest.mark.slow
def test_clone_of_robot_logs_beats_the_baselines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, to, runs = (str(tmp_path / name) for name in ("log", "set", "runs"))
    asked = f"--emulate --human scripted:expert --goal {GOAL} --episodes 25 --log {log}"
    main(["teleop", *asked.split()])  # an episode may end in a fault, and is left out
    assert main(["demos", to, "--from", log]) == 0
    assert main(["clone", to, "--runs", runs, "--episodes", "200", "--json"]) == 0
    capsys.readouterr()
    result = json.loads((tmp_path / "runs" / "set-clone-0" / "result.json").read_text())
    judged = result["evaluation"]
    floor = max(judged["floors"][name]["high"] for name in ("still", "untrained"))
    assert judged["low"] > 3 * floor
    bundle = str(tmp_path / "runs" / "set-clone-0" / "bundle")
    command = ["deploy", bundle, "--emulate", "--robot", "so101", "--episodes", "10", "--json"]
    main(command)
    told = json.loads(capsys.readouterr().out)
    assert told["successes"] >= 0.5 * told["episodes"]
