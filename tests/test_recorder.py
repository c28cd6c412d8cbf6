"""The log: everything of a tick is in it, and what was flushed survives kill -9."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from real_robot import Fault, Recorder, RobotState, Sent, Target, read_log
from real_robot.follower import Thought
from real_robot.recorder import QUEUE, Tick
from real_robot.states import Phase, Transition


def tick(k: int) -> Tick:
    """The k-th tick of a run whose target 1 is not a number."""
    q = np.array([0.1 * k, 1.0])
    return Tick(
        phase="run",
        t=0.01 * k,
        late=0.0,
        skipped=0,
        thought=Thought(np.arange(3, dtype=np.float32), np.zeros(2, np.float32), 0.0, 0.001, 0.002),
        state=RobotState(0.01 * k, 0.01 * k, k, q, q, q, 0.5, Fault.OVERLOAD),
        requested=Target(np.array([np.nan, np.inf]), 0.5),
        filtered=Target(q, 0.5),
        sent=Sent(q, np.float64(0.5), 0.01 * k),
        flags={"range": np.array([True, False])},
        t_sent=0.01 * k + 0.002,
    )


def test_a_log_reads_back_as_it_was_written(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.mcap", {"bundle": "abc", "limits": np.ones(2)}) as recorder:
        recorder.transition(Transition(0.5, Phase.ARMED, Phase.ALIGN, "why"))
        for k in range(50):
            recorder.tick(tick(k))
    assert (recorder.dropped, recorder.error) == (0, "")
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
recorder = Recorder({path!r}, {{"bundle": "abc"}})
for k in range(100_000):
    recorder.tick(tick(k))
    time.sleep(0.001)
    if k == 300:
        print("going", flush=True)
"""


def test_what_was_flushed_survives_kill_9(tmp_path: Path) -> None:
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


def test_a_log_cut_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.mcap", tmp_path / "cut.mcap"
    with Recorder(whole, {}) as recorder:
        for k in range(60):
            recorder.tick(tick(k))
    content = whole.read_bytes()
    lengths = []
    for end in range(8, len(content), 7):
        cut.write_bytes(content[:end])
        log = read_log(cut)
        assert not log.complete
        lengths.append(len(log.ticks))
    assert lengths == sorted(lengths) and lengths[-1] == 60
    cut.write_bytes(b"this is not a log")
    with pytest.raises(ValueError, match="is not a log of this program"):
        read_log(cut)


@pytest.mark.fault(36)
def test_a_full_disk_costs_the_log_and_nothing_else() -> None:
    with pytest.raises(OSError):
        Recorder("/no/such/folder/run.mcap", {})
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with Recorder("/dev/full", {}) as recorder:
        for k in range(200):
            recorder.tick(tick(k))
    assert os.strerror(errno.ENOSPC) in recorder.error
    assert recorder.dropped > 0


@pytest.mark.fault(36)
def test_a_slow_disk_drops_records_and_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow")
    reader = os.open(tmp_path / "slow", os.O_RDONLY | os.O_NONBLOCK)
    recorder = Recorder(tmp_path / "slow", {})
    for k in range(2 * QUEUE):  # nobody reads: a recorder that blocks would stay here
        recorder.tick(tick(k))
    assert recorder.dropped > 0
    os.close(reader)  # the writer's pipe breaks; it must still come to an end
    recorder.close()
    assert recorder.error
