"""A vendor's client in a process of its own: whatever it does, a call comes back in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from real_robot import Fault, RobotFault
from real_robot.apart import Apart

START_S = 30.0  # s for the process to begin on a starved machine


@pytest.fixture
def client() -> Iterator[Apart]:
    client = Apart("tests.hanging_client")
    assert client.call("add", 1, 2, within=START_S) == 3
    yield client
    client.close()


def test_a_call_that_hangs_ends_at_its_deadline_and_is_the_last(
    client: Apart, tmp_path: Path
) -> None:
    process, late = psutil.Process(client.pid), tmp_path / "late"
    begun = time.monotonic()
    with pytest.raises(
        RobotFault, match=r"did not answer within 0.2 s \(asked to hang\)"
    ) as caught:
        client.call("hang", 2, str(late), within=0.2)
    assert caught.value.fault is Fault.DISCONNECTED
    assert time.monotonic() - begun < 1.5  # not the client's 2 s
    assert not process.is_running()
    begun = time.monotonic()
    with pytest.raises(RobotFault, match="asked to hang"):
        client.call("add", 1, 2, within=START_S)
    assert time.monotonic() - begun < 0.5
    client.close()
    assert client.call("add", 2, 2, within=START_S) == 4  # a new connection, a new client
    time.sleep(max(0.0, begun + 2.2 - time.monotonic()))
    assert not late.exists()  # what it was about to do is never done


def test_a_client_that_dies_or_refuses_says_so_at_once(client: Apart) -> None:
    with pytest.raises(RobotFault, match="stale: as asked") as caught:
        client.call("refuse", "stale", within=START_S)
    assert caught.value.fault is Fault.STALE
    assert client.call("add", 1, 1, within=START_S) == 2
    with pytest.raises(RobotFault, match=r"has gone \(asked to die\)") as caught:
        client.call("die", within=START_S)
    assert caught.value.fault is Fault.DISCONNECTED
