"""Several processes at once: what they answer, what an error costs, and that all end together."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from robo_rl.runtime.threads import cores
from robo_rl.runtime.workers import run_in_workers, start_worker


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard, as at a terminal, and by what is started; in the background it is not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_worker_results_come_with_their_keys() -> None:
    given = {n: (n * n,) for n in range(4)}
    for jobs in (1, 2):
        begun: list[int] = []
        made = dict(run_in_workers(math.sqrt, given, jobs, begun=begun.append))
        assert made == {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0} and begun == [*given]
    assert dict(run_in_workers(cores, {"its share": ()}, 2)) == {"its share": max(1, cores() // 2)}


def test_workers_are_reused() -> None:
    at = dict(run_in_workers(os.getpid, dict.fromkeys(range(6), ()), 2))
    assert len(at) == 6 and len({*at.values()}) <= 2 and os.getpid() not in at.values()


def test_worker_error_is_raised_and_ends_the_others() -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match="math domain error"):
        dict(run_in_workers(math.sqrt, {"bad": (-1.0,)}, 1))
    given = {"gone": ("import os; os._exit(7)",), "long": ("import time; time.sleep(60)",)}
    with pytest.raises(ChildProcessError, match="its process ended with 7"):
        dict(run_in_workers(exec, given, 2))
    assert time.monotonic() - began < 30


def test_killed_worker_does_not_affect_the_others() -> None:
    given = {"a": ("__import__('os')._exit(9)",), "b": ("1",), "c": ("2",)}
    made = dict(run_in_workers(eval, given, 2, died=str))
    assert made == {"a": "its process ended with 9", "b": 1, "c": 2}


def test_ctrl_c_while_starting_a_worker_is_not_lost(heard: None) -> None:
    class Starting:
        def start(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        start_worker(Starting())
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_ctrl_c_ends_all_workers(heard: None, tmp_path: Path) -> None:
    """As a terminal sends it: to every process of the group."""
    mark = tmp_path / "began"
    work = f"open({str(mark)!r}, 'w'); import time; time.sleep(60)"
    code = (
        "from robo_rl.runtime.workers import run_in_workers\n"
        "if __name__ == '__main__':\n"
        f"    list(run_in_workers(exec, {{n: ({work!r},) for n in range(3)}}, 2))\n"
    )
    script = tmp_path / "it.py"
    script.write_text(code)
    whole = {"start_new_session": True, "stderr": subprocess.PIPE, "text": True}
    program = subprocess.Popen([sys.executable, str(script)], **whole)
    while not mark.exists():
        assert program.poll() is None
        time.sleep(0.05)
    began = time.monotonic()
    os.killpg(program.pid, signal.SIGINT)
    errors = program.communicate(timeout=30)[1]
    assert program.returncode and time.monotonic() - began < 20
    # Ours alone, of which `robo-rl` makes one line. (A process that was still importing may leave
    # the probe behind with which glfw looks for its library, and that complains of a broken pipe.)
    assert errors.count("KeyboardInterrupt") == 1
