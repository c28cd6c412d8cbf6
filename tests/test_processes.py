"""Policy, bridge and guardian as processes: whichever dies or stalls, the arm is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import reach_bundle

from real_robot import BundleError, Fault, PolicyBundle, PolicyProcess, SafetyStop, read_log
from real_robot.emulators.control import Control
from real_robot.policy_process import PolicyLate

Took = Callable[[float, str], None]
BUDGET = 10.0  # s: these tests prove what happens, not how soon on a busy machine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    reach_bundle.write(folder, "so101")
    return folder


@pytest.fixture(scope="module")
def bundle(folder: Path) -> PolicyBundle:
    return PolicyBundle.load(folder)


@pytest.fixture
def policy(bundle: PolicyBundle, folder: Path) -> Iterator[PolicyProcess]:
    with PolicyProcess(bundle, folder, budget=BUDGET) as policy:
        yield policy


def obs(bundle: PolicyBundle) -> np.ndarray:
    return np.linspace(-1, 1, bundle.manifest.obs_dim, dtype=np.float32)


def test_another_process_answers_the_same(bundle: PolicyBundle, policy: PolicyProcess) -> None:
    for k in range(5):
        np.testing.assert_array_equal(
            policy.act(k * obs(bundle))[0], bundle.act(k * obs(bundle))[0]
        )
        policy.beat()
    assert policy.pid != os.getpid() and policy.dropped == 0


@pytest.mark.fault(25, 28, 29)
def test_a_policy_that_stalls_is_noticed_and_its_old_answer_is_dropped(
    bundle: PolicyBundle, policy: PolicyProcess
) -> None:
    policy.act(obs(bundle))
    policy._budget = 0.05
    os.kill(policy.pid, signal.SIGSTOP)
    with pytest.raises(PolicyLate):
        policy.act(obs(bundle))
    policy.beat()
    policy.beat()
    with pytest.raises(SafetyStop, match="no sign of life for 2 ticks") as stop:
        policy.beat()
    assert stop.value.fault is Fault.POLICY_LOST
    os.kill(policy.pid, signal.SIGCONT)
    policy._budget = BUDGET
    np.testing.assert_array_equal(policy.act(-obs(bundle))[0], bundle.act(-obs(bundle))[0])
    assert policy.dropped == 1


@pytest.mark.fault(26)
@pytest.mark.parametrize("verb", ["beat", "act"])
def test_a_policy_that_dies_is_noticed_at_the_next_word(
    bundle: PolicyBundle, policy: PolicyProcess, verb: str, took: Took
) -> None:
    policy.act(obs(bundle))
    os.kill(policy.pid, signal.SIGKILL)
    policy._child.wait()
    begun = time.perf_counter()
    with pytest.raises(SafetyStop, match="the policy's process is gone") as stop:
        policy.act(obs(bundle)) if verb == "act" else policy.beat()
    took(time.perf_counter() - begun, "noticed")
    assert stop.value.fault is Fault.POLICY_LOST


@pytest.mark.fault(21, 27)
def test_an_exception_in_the_policy_comes_with_its_traceback(
    bundle: PolicyBundle, policy: PolicyProcess
) -> None:
    with pytest.raises(SafetyStop, match="the policy failed: ValueError: obs must have") as stop:
        policy.act(obs(bundle)[:-1])
        policy.act(obs(bundle))
    assert stop.value.fault is Fault.POLICY_LOST
    assert "Traceback" in policy.traceback


@pytest.mark.fault(30)
def test_nobody_else_can_speak_to_bridge_or_policy(policy: PolicyProcess) -> None:
    """The pair of sockets has no name, and no other process of ours inherits an end."""
    assert policy._socket.getsockname() == policy._socket.getpeername() == ""
    assert not policy._socket.get_inheritable()
    held = subprocess.run(
        [sys.executable, "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert str(policy._socket.fileno()) not in held.replace("'", "").strip("[]\n").split(", ")


@pytest.mark.fault(53)
def test_a_bundle_that_was_changed_meanwhile_is_refused(
    bundle: PolicyBundle, folder: Path, tmp_path: Path
) -> None:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    golden = bytearray((tmp_path / "golden.npz").read_bytes())
    golden[len(golden) // 2] ^= 1
    (tmp_path / "golden.npz").write_bytes(golden)
    with pytest.raises(BundleError, match="golden.npz was changed"):
        PolicyProcess(bundle, tmp_path, budget=BUDGET)


class Deployed:
    """``robo-rl deploy`` on an emulated SO-101, each in a process of its own."""

    def __init__(self, folder: Path, log: Path):
        cli = [sys.executable, "-m", "robo_rl.cli"]
        self.log = log
        self.emulator = subprocess.Popen(
            [*cli, "emulate", "so101", "--goal", reach_bundle.GOAL, "--json",
             "--parent", str(os.getpid())],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        about = json.loads(self.emulator.stdout.readline())
        self.control = Control(about["control"])
        self.bridge = subprocess.Popen(
            [*cli, "deploy", folder, "--robot", "so101", "--port", about["where"], "--control",
             str(about["control"]), "--episodes", "50", "--think", "0.1", "--patience", "0.2",
             "--log", log],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def child(self, module: str) -> int:
        """The pid of the bridge's child that runs ``module``."""
        for child in psutil.Process(self.bridge.pid).children():
            if any(module in word for word in child.cmdline()):
                return child.pid
        raise AssertionError(f"the bridge has no child {module}")

    def await_motion(self) -> None:
        """Returns once the policy drives: the arm is stiff and moves."""
        deadline = time.monotonic() + 60
        before = None
        while time.monotonic() < deadline:
            joints = self.control.call("joints")
            now = np.array(joints["qpos"]) if all(joints["torque"]) else None
            if before is not None and now is not None and np.abs(now - before).max() > 0.02:
                return
            before = now
            time.sleep(0.1)
        raise AssertionError(f"no motion; {self.bridge.poll()}")

    def at_rest(self) -> float:
        """s until the arm has stopped moving (within a servo step or two)."""
        begun, before = time.monotonic(), np.array(self.control.call("joints")["qpos"])
        while time.monotonic() < begun + 5:
            time.sleep(0.01)
            now = np.array(self.control.call("joints")["qpos"])
            if np.abs(now - before).max() < 0.004:
                return time.monotonic() - begun
            before = now
        raise AssertionError("the arm goes on moving")

    def report(self) -> dict[str, Any]:
        """What the guardian did, once it is done."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (self.log / "guardian.json").exists():
                return json.loads((self.log / "guardian.json").read_text())
            time.sleep(0.05)
        raise AssertionError("no report of the guardian")

    def close(self) -> None:
        for process in (self.bridge, self.emulator):
            process.kill()
            process.wait()
        self.control.close()


@pytest.fixture
def deployed(folder: Path, tmp_path: Path) -> Iterator[Deployed]:
    deployed = Deployed(folder, tmp_path / "log")
    try:
        deployed.await_motion()
        yield deployed
    finally:
        deployed.close()


@pytest.mark.slow
@pytest.mark.fault(26)
def test_kill_9_of_the_policy_stops_and_parks_the_arm(deployed: Deployed, took: Took) -> None:
    killed = time.monotonic()
    os.kill(deployed.child("policy_process"), signal.SIGKILL)
    assert deployed.bridge.wait(60) == 1
    log = read_log(sorted(deployed.log.glob("*.mcap"))[-1])
    held = next(t for t in log.transitions if "policy_lost" in t["reason"])
    took(held["t"] - killed, "held")
    assert 0 <= held["t"] - killed < 2.0 and held["after"] == "hold"
    assert [t["after"] for t in log.transitions][-4:] == ["park", "relax", "connected", "offline"]


@pytest.mark.slow
@pytest.mark.fault(31, 32)
@pytest.mark.parametrize("whom", ["bridge", "both", "stopped bridge"])
def test_whoever_is_killed_the_guardian_holds_parks_and_relaxes(
    deployed: Deployed, whom: str, took: Took
) -> None:
    policy = deployed.child("policy_process")
    killed = time.monotonic()
    if whom == "both":
        os.kill(policy, signal.SIGKILL)
    os.kill(deployed.bridge.pid, signal.SIGSTOP if "stopped" in whom else signal.SIGKILL)
    rest = deployed.at_rest()
    assert all(deployed.control.call("joints")["torque"])  # it holds, it does not fall
    report = deployed.report()
    took(report["seen"] - killed, f"noticed ({whom})")
    took(report["held"] - killed, f"hold sent ({whom})")
    took(rest, f"at rest ({whom})")
    assert report["bridge"] == ("stalled and was killed" if "stopped" in whom else "died")
    assert report["held_first"]  # before anything was asked of the arm
    assert report["states"][:2] == ["hold", "park"] and "relax" in report["states"]
    assert len(report["limp"]) == 6 and all(report["limp"].values())
    assert not any(deployed.control.call("joints")["torque"])  # the servos' own word
    assert not psutil.pid_exists(policy) or psutil.Process(policy).status() == "zombie"
