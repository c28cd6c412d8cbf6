"""The log: everything of a tick is in it, and what was flushed survives kill -9."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import reach_bundle
from mcap.reader import make_reader

from real_robot import Fault, Recorder, RobotState, Sent, Target, read_log
from real_robot.core.states import Phase, PhaseTransition
from real_robot.log.recorder import QUEUE, Tick
from real_robot.log.recovery import recover, recover_all
from real_robot.policy.runner import PolicyOutput
from robo_rl.cli import main

Took = Callable[[float, str], None]


def tick(k: int) -> Tick:
    """The k-th tick of a run whose target 1 is not a number."""
    q = np.array([0.1 * k, 1.0])
    return Tick(
        phase="run",
        t=0.01 * k,
        late=0.0,
        skipped=0,
        thought=PolicyOutput(
            np.arange(3, dtype=np.float32), np.zeros(2, np.float32), 0.0, 0.001, 0.002
        ),
        state=RobotState(0.01 * k, 0.01 * k, k, q, q, q, 0.5, Fault.OVERLOAD),
        requested=Target(np.array([np.nan, np.inf]), 0.5),
        filtered=Target(q, 0.5),
        sent=Sent(q, np.float64(0.5), 0.01 * k),
        flags={"range": np.array([True, False])},
        t_sent=0.01 * k + 0.002,
    )


def test_log_round_trip(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.mcap", {"bundle": "abc", "limits": np.ones(2)}, 0.0) as recorder:
        recorder.transition(PhaseTransition(0.5, Phase.ARMED, Phase.ALIGN, "why"))
        for k in range(50):
            recorder.tick(tick(k))
    assert (recorder.dropped, recorder.lost) == (0, "")
    log = read_log(tmp_path / "run.mcap")
    assert log.complete and len(log.ticks) == 50
    assert log.run == {"bundle": "abc", "limits": [1.0, 1.0]}
    assert log.transitions == [{"t": 0.5, "before": "armed", "after": "align", "reason": "why"}]
    last = log.ticks[-1]
    assert last["requested"]["qpos"] == [None, None]  # JSON has no NaN
    assert last["sent"] == {"qpos": [4.9, 1.0], "gripper": 0.5, "t_host": 0.49}
    assert last["state"]["seq"] == 49 and last["state"]["fault"] == "overload"
    assert last["flags"] == {"range": [True, False]}
    assert last["thought"]["obs"] == [0.0, 1.0, 2.0]


WRITER = """
import sys, time
sys.path[:0] = [{tests!r}]
from test_recorder import tick
from real_robot import Recorder
recorder = Recorder({path!r}, {{"bundle": "abc"}}, 0.0)
for k in range(100_000):
    recorder.tick(tick(k))
    time.sleep(0.001)
    if k == 300:
        print("going", flush=True)
"""


def test_flushed_log_survives_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    program = WRITER.format(tests=str(Path(__file__).parent), path=str(path))
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"going\n"
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    log = read_log(path)
    assert not log.complete and log.run == {"bundle": "abc"}
    assert len(log.ticks) > 250  # a chunk is about 20 ticks
    assert [t["state"]["seq"] for t in log.ticks] == list(range(len(log.ticks)))
    # Recovered, it opens where readers seek for the index, and still says that its end is missing.
    assert recover_all(tmp_path) == [path] and recover_all(tmp_path) == []
    with open(path, "rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None and summary.statistics.message_count == 1 + len(log.ticks)
    again = read_log(path)
    assert not again.complete and again.run == {"bundle": "abc", "recovered": True}
    assert again.ticks == log.ticks and [p.name for p in tmp_path.iterdir()] == [path.name]


def test_open_log_is_not_recovered(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    with Recorder(path, {}, 0.0) as recorder:
        for k in range(60):
            recorder.tick(tick(k))
        assert recover(path) == 0
        recorder.tick(tick(60))
    assert len(read_log(path).ticks) == 61 and recover(path) == 0


def test_log_topics_share_one_clock(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    with Recorder(path, {}, 1000.0) as recorder:
        recorder.transition(PhaseTransition(1000.5, Phase.ARMED, Phase.ALIGN, "why"))
        recorder.tape([("clock.now_ns", 1)], 1001.0)
    with open(path, "rb") as file:
        statistics = make_reader(file).get_summary().statistics
    assert (statistics.message_start_time, statistics.message_end_time) == (
        1_000_000_000_000,
        1_001_000_000_000,
    )


def test_truncated_log_is_read_up_to_the_cut(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.mcap", tmp_path / "cut.mcap"
    with Recorder(whole, {}, 0.0) as recorder:
        for k in range(60):
            recorder.tick(tick(k))
    content = whole.read_bytes()
    lengths = []
    for end in range(8, len(content), 29):
        cut.write_bytes(content[:end])
        log = read_log(cut)
        assert not log.complete
        lengths.append(len(log.ticks))
    assert lengths == sorted(lengths) and lengths[-1] == 60
    cut.write_bytes(b"this is not a log")
    with pytest.raises(ValueError, match="is not a robo-rl robot log"):
        read_log(cut)


@contextlib.contextmanager
def disk_of(size: int) -> Iterator[None]:
    """No file can grow beyond ``size`` bytes: the kernel refuses as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.fault(36)
def test_full_disk_costs_only_the_log(tmp_path: Path) -> None:
    for nowhere in ("/no/such/folder/run.mcap", "/dev/full"):
        with pytest.raises(OSError, match=nowhere):
            Recorder(nowhere, {}, 0.0)
    path = tmp_path / "run.mcap"
    with disk_of(30_000), Recorder(path, {}, 0.0) as recorder:
        for k in range(500):
            recorder.tick(tick(k))
    assert recorder.lost.startswith(f"{path}: File too large (") and recorder.dropped > 0


def test_log_writer_exception_is_raised(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.mcap", {"not JSON": object()}, 0.0)
    with pytest.raises(RuntimeError, match="run.mcap failed"):
        recorder.close()


@pytest.mark.fault(36)
@pytest.mark.parametrize("robot", ["so101", pytest.param("ur5e", marks=pytest.mark.slow)])
def test_deploy_ends_when_its_log_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], robot: str, took: Took
) -> None:
    """Over the arm's own wire, which is parked and relaxed all the same."""
    bundle, logs = tmp_path / "bundle", tmp_path / "logs"
    bundle.mkdir()
    reach_bundle.write(bundle, robot)
    command = ["deploy", str(bundle), "--emulate", "--robot", robot, "--episodes", "3"]
    with disk_of(100_000):
        status = main([*command, "--log", str(logs)])
    told = capsys.readouterr()
    assert status == 1 and "n=1)" in told.out  # no further episode
    assert told.err.count("robo-rl: ") == 1 and told.err.splitlines()[-1].startswith("robo-rl: ")
    assert f"the log is incomplete: {logs / 'episode_0000.mcap'}: File too large (" in told.err
    states = read_log(logs / "episode_0000.mcap").transitions
    assert states  # what fitted is there
    begun = time.monotonic()
    with disk_of(0):
        assert main([*command, "--log", str(logs)]) == 1
    took(time.monotonic() - begun, f"refused, with all of deploy's start ({robot})")
    told = capsys.readouterr()
    assert told.out == ""  # before the arm is touched
    assert f"cannot recover the log: File too large: '{logs / 'episode_0000.mcap'}'" in told.err
    assert read_log(logs / "episode_0000.mcap").transitions == states  # what fitted stays


def test_replay_of_a_non_log_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Recorder(tmp_path / "run.mcap", {}, 0.0):
        pass
    (tmp_path / "empty.mcap").touch()
    for path, said in {
        tmp_path: "is a folder; give one of its logs: empty.mcap, run.mcap",
        tmp_path / "empty.mcap": "is empty: nothing was written to it",
        tmp_path / "run.mcap": "has no recording of the driver's answers",
    }.items():
        assert main(["replay", str(path)]) == 1
        assert said in capsys.readouterr().err


def test_export_on_a_full_disk_leaves_no_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    (run / "bundle").mkdir(parents=True)
    reach_bundle.write(run / "bundle", "so101")
    for name in ("config.json", "result.json"):
        (run / name).write_text("{}")
    with disk_of(100):
        assert main(["export", str(run), str(tmp_path / "out" / "b")]) == 1
    error = capsys.readouterr().err
    assert "File too large" in error and "golden.npz" in error and error.count("\n") == 1
    assert list((tmp_path / "out").iterdir()) == []
    assert main(["export", str(run), str(tmp_path / "out" / "b")]) == 0


@pytest.mark.fault(36)
def test_slow_disk_drops_records_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow")
    reader = os.open(tmp_path / "slow", os.O_RDONLY | os.O_NONBLOCK)
    recorder = Recorder(tmp_path / "slow", {}, 0.0)
    for k in range(2 * QUEUE):  # nobody reads: a recorder that blocks would stay here
        recorder.tick(tick(k))
    assert recorder.dropped > 0
    os.close(reader)  # the writer's pipe breaks; it must still come to an end
    recorder.close()
    assert recorder.lost
