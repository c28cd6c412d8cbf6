"""Policy, bridge and bus as processes: whichever dies or stalls, the arm is stopped."""

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
from arms import punctual, without

from real_robot import BundleError, Fault, PolicyBundle, PolicyProcess, SafetyStop, read_log
from real_robot.core import child_process
from real_robot.emulators.control_port import Control
from real_robot.policy.process import PolicyLate
from robo_rl.arm.episodes import run_episodes
from robo_rl.arm.simulated import SimStage
from robo_rl.goals.bundle_task import task_of_bundle

Took = Callable[[float, str], None]
CLI = [sys.executable, "-m", "robo_rl.cli"]
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


def test_policy_process_matches_the_policy(bundle: PolicyBundle, policy: PolicyProcess) -> None:
    for k in range(5):
        np.testing.assert_array_equal(
            policy.act(k * obs(bundle))[0], bundle.act(k * obs(bundle))[0]
        )
        policy.beat()
    assert policy.pid != os.getpid() and policy.dropped == 0


@pytest.mark.fault(25, 28, 29)
def test_stalled_policy_is_detected_and_its_output_dropped(
    bundle: PolicyBundle, policy: PolicyProcess
) -> None:
    policy.act(obs(bundle))
    policy._budget = 0.05
    os.kill(policy.pid, signal.SIGSTOP)
    with pytest.raises(PolicyLate):
        policy.act(obs(bundle))
    policy.beat()
    policy.beat()
    with pytest.raises(SafetyStop, match="sent no heartbeat for 2 ticks") as stop:
        policy.beat()
    assert stop.value.fault is Fault.POLICY_LOST
    os.kill(policy.pid, signal.SIGCONT)
    policy._budget = BUDGET
    np.testing.assert_array_equal(policy.act(-obs(bundle))[0], bundle.act(-obs(bundle))[0])
    assert policy.dropped == 1


@pytest.mark.fault(26)
@pytest.mark.parametrize("verb", ["beat", "act"])
def test_dead_policy_is_detected(
    bundle: PolicyBundle, policy: PolicyProcess, verb: str, took: Took
) -> None:
    policy.act(obs(bundle))
    os.kill(policy.pid, signal.SIGKILL)
    policy._child.wait()
    begun = time.perf_counter()
    with pytest.raises(SafetyStop, match="the policy process has ended") as stop:
        policy.act(obs(bundle)) if verb == "act" else policy.beat()
    took(time.perf_counter() - begun, "noticed")
    assert stop.value.fault is Fault.POLICY_LOST


def test_policy_killed_at_start_is_a_one_line_error(
    bundle: PolicyBundle, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = child_process.start_child

    def killed(*told: Any, **options: Any) -> Any:
        process, end = begin(*told, **options)
        os.kill(process.pid, signal.SIGKILL)
        return process, end

    monkeypatch.setattr(child_process, "start_child", killed)
    with pytest.raises(BundleError, match="did not start: policy_lost: .* has ended"):
        PolicyProcess(bundle, folder, budget=BUDGET)


def test_policy_death_between_episodes_is_reported(
    bundle: PolicyBundle, policy: PolicyProcess
) -> None:
    class Killing(SimStage):
        def success(self) -> bool:  # asked once the policy has let go
            os.kill(policy.pid, signal.SIGKILL)
            policy._child.wait()
            return super().success()

    task = task_of_bundle(bundle.manifest)
    found = run_episodes(bundle, task, Killing(task), episodes=3, policy=policy)
    assert found.ended == {"done": 1} and "the policy process ended" in found.cut


@pytest.mark.fault(21, 27)
def test_policy_exception_includes_its_traceback(
    bundle: PolicyBundle, policy: PolicyProcess
) -> None:
    with pytest.raises(SafetyStop, match="the policy failed: ValueError: obs must have") as stop:
        policy.act(obs(bundle)[:-1])
        policy.act(obs(bundle))
    assert stop.value.fault is Fault.POLICY_LOST
    assert "Traceback" in policy.traceback


@pytest.mark.fault(30)
def test_policy_socket_is_private(policy: PolicyProcess) -> None:
    """The pair of sockets has no name, and no other process of ours inherits an end."""
    assert policy._socket.getsockname() == policy._socket.getpeername() == ""
    assert not policy._socket.get_inheritable()
    held = subprocess.run(
        [sys.executable, "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert str(policy._socket.fileno()) not in held.replace("'", "").strip("[]\n").split(", ")


@pytest.mark.fault(53)
def test_bundle_changed_before_start_is_refused(
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
    """A bridge on an emulated arm, each in a process of its own."""

    def __init__(self, robot: str, folder: Path, log: Path, stop_s: float | None = None):
        self.robot, self.folder, self.log = robot, folder, log
        log.mkdir()
        self.emulator = subprocess.Popen(
            [
                *CLI,
                "emulate",
                robot,
                "--goal",
                reach_bundle.GOAL,
                "--json",
                "--parent",
                str(os.getpid()),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.about = json.loads(self.emulator.stdout.readline())
        punctual(self.emulator)
        self.control = Control(self.about["control"])
        told = (robot, self.about["where"], str(self.about["control"]), str(folder), str(log))
        told += () if stop_s is None else (str(stop_s),)
        self.bridge = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("bridge_ride.py"), *told],
            stderr=subprocess.PIPE,
            text=True,
        )

    def deploy(self, *options: str) -> tuple[int, str]:
        """What ``robo-rl deploy`` ends with, and says."""
        done = subprocess.run(
            [
                *CLI,
                "deploy",
                self.folder,
                "--robot",
                self.robot,
                "--port",
                self.about["where"],
                "--control",
                str(self.about["control"]),
                "--policy-timeout",
                "0.1",
                "--patience",
                "0.2",
                "--episodes",
                "1",
                *options,
            ],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
        return done.returncode, " ".join(done.stderr.split())

    def child(self, module: str) -> int:
        """The pid of the bridge's child that runs ``module``."""
        for one in psutil.Process(self.bridge.pid).children():
            if any(module in word for word in one.cmdline()):
                return one.pid
        raise AssertionError(f"the bridge has no child {module}")

    def await_motion(self, least: float = 0.02) -> None:
        """Returns once the policy drives: the arm is stiff and moves, ``least`` rad in 0.1 s."""
        deadline, before = time.monotonic() + 60, None
        while time.monotonic() < deadline and self.bridge.poll() is None:
            told, now = self.control.call("traffic"), np.array(self.control.call("joints")["qpos"])
            going = told.get("running", True) and time.monotonic() - told["moved"] < 0.1
            if before is not None and going and np.abs(now - before).max() > least:
                return
            before = now if going else None
            time.sleep(0.1)
        raise AssertionError(f"no motion; {self.bridge.poll()}: {self.bridge.stderr.read()}")

    def last_moved(self, since: float, within: float = 0.3) -> float:
        """s after ``since`` at which the device was last told to move, once it is no more, and
        before anybody takes over: ``within`` s."""
        time.sleep(within)
        return max(0.0, self.control.call("traffic")["moved"] - since)

    def limp(self) -> bool:
        """The device's own word that nobody moves it any more."""
        if self.robot in ("ur5e", "fr3"):
            return not self.control.call("traffic")["running"]
        return not any(self.control.call("joints")["torque"])

    def report(self) -> dict[str, Any]:
        """What the helper did, once it is done."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (self.log / "rescue.json").exists():
                return json.loads((self.log / "rescue.json").read_text())
            time.sleep(0.05)
        raise AssertionError("no report of the helper")

    def close(self) -> None:
        for process in (self.bridge, self.emulator):
            process.kill()
            process.wait()
        self.control.close()


@pytest.fixture(params=["so101", "ur5e", pytest.param("fr3", marks=without("fr3"))])
def deployed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("bundle")
    reach_bundle.write(folder, request.param)
    deployed = Deployed(request.param, folder, tmp_path / "log")
    try:
        deployed.await_motion()
        yield deployed
    finally:
        deployed.close()


@pytest.mark.slow
@pytest.mark.fault(26)
def test_kill_9_of_the_policy_stops_and_parks_the_arm(deployed: Deployed, took: Took) -> None:
    policy = deployed.child("policy_process")  # to look for it takes a while
    killed = time.monotonic()
    os.kill(policy, signal.SIGKILL)
    assert deployed.bridge.wait(60) == 1
    log = read_log(sorted(deployed.log.glob("*.mcap"))[-1])
    held = next(t for t in log.transitions if "policy_lost" in t["reason"])
    took(held["t"] - killed, f"held ({deployed.robot})")
    assert 0 <= held["t"] - killed < 2.0 and held["after"] == "hold"
    assert [t["after"] for t in log.transitions][-4:] == ["park", "relax", "connected", "offline"]


@pytest.mark.slow
@pytest.mark.fault(31, 32)
@pytest.mark.parametrize("whom", ["bridge", "bridge and policy", "stopped bridge"])
def test_any_killed_process_leads_to_hold_park_and_relax(
    deployed: Deployed, whom: str, took: Took
) -> None:
    policy, case = deployed.child("policy_process"), f"({whom}, {deployed.robot})"
    killed = time.monotonic()
    if "policy" in whom:
        os.kill(policy, signal.SIGKILL)
    os.kill(deployed.bridge.pid, signal.SIGSTOP if "stopped" in whom else signal.SIGKILL)
    moved = deployed.last_moved(killed)
    assert not deployed.limp()  # it holds, it does not fall
    report = deployed.report()
    took(report["braked"] - killed, f"brakes {case}")
    took(moved, f"held, by the device's record {case}")
    assert 0 < report["braked"] - killed < 0.5 and moved < 0.5
    assert report["bridge"] == ("stalled and was killed" if "stopped" in whom else "died")
    assert report["states"][:2] == ["hold", "park"] and "relax" in report["states"], report
    assert all(report["limp"].values()) and report["notes"] == []
    assert deployed.limp()
    begun = time.monotonic()
    while psutil.pid_exists(policy) and psutil.Process(policy).status() != "zombie":
        assert time.monotonic() < begun + 20.0, "the policy's process is still there"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.fault(62)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_dead_bus_leaves_a_holding_arm_that_is_parked(
    deployed: Deployed, how: signal.Signals, took: Took
) -> None:
    bus, killed = deployed.child("bus_process"), time.monotonic()
    os.kill(bus, how)
    moved = deployed.last_moved(killed, within=0.08)
    assert deployed.bridge.wait(60) == 1
    log = read_log(sorted(deployed.log.glob("*.mcap"))[-1])
    held = next(t for t in log.transitions if t["after"] == "hold")
    took(held["t"] - killed, f"noticed ({how.name}, {deployed.robot})")
    took(moved, f"held, by the device's record ({how.name}, {deployed.robot})")
    assert "the process that owns the port" in held["reason"] and held["t"] - killed < 2.0
    if (deployed.robot, how) == ("fr3", signal.SIGSTOP):  # a reflex, which a person must clear
        assert log.transitions[-1]["after"] == "fault"
        assert "communication_constraints_violation" in log.transitions[-1]["reason"]
        return
    assert [t["after"] for t in log.transitions][-4:] == ["park", "relax", "connected", "offline"]
    assert deployed.limp() and not psutil.pid_exists(bus)


@pytest.mark.slow
@pytest.mark.fault(64)
@pytest.mark.parametrize("deployed", ["so101"], indirect=True)
def test_arm_left_with_torque_is_parked_by_if_torque_on(deployed: Deployed, took: Took) -> None:
    killed = time.monotonic()
    for pid in (deployed.child("bus_process"), deployed.child("policy_process")):
        os.kill(pid, signal.SIGKILL)
    os.kill(deployed.bridge.pid, signal.SIGKILL)
    took(deployed.last_moved(killed), "held, by the device's record")
    time.sleep(1.0)
    assert all(deployed.control.call("joints")["torque"])
    status, said = deployed.deploy()
    assert status and "torque is still on (shoulder_pan, " in said and "--if-torque-on" in said
    assert all(deployed.control.call("joints")["torque"])
    _, said = deployed.deploy("--if-torque-on", "park")
    assert "the arm was parked and relaxed, joint by joint" in said, said
    assert deployed.limp()


@pytest.mark.slow
@pytest.mark.fault(32)
@pytest.mark.parametrize("deployed", ["so101"], indirect=True)
def test_stalled_processes_leave_a_holding_arm(deployed: Deployed, took: Took) -> None:
    """The first who goes on is the bus: to it the bridge is silent."""
    bus, policy = deployed.child("bus_process"), deployed.child("policy_process")
    stopped = time.monotonic()
    for pid in (bus, policy, deployed.bridge.pid):
        os.kill(pid, signal.SIGSTOP)
    took(deployed.last_moved(stopped), "held, by the device's record (all stopped, so101)")
    time.sleep(1.0)
    assert not deployed.limp() and not (deployed.log / "rescue.json").exists()
    os.kill(bus, signal.SIGCONT)
    report = deployed.report()
    os.kill(policy, signal.SIGKILL)  # it stands still, and would not hear that all others ended
    assert report["bridge"] == "stalled and was killed" and "park" in report["states"]
    assert all(report["limp"].values()) and deployed.limp()


@pytest.mark.slow
@pytest.mark.fault(31)
@pytest.mark.parametrize("deployed", ["so101"], indirect=True)
def test_killed_rescue_process_is_replaced(deployed: Deployed) -> None:
    bus = psutil.Process(deployed.child("bus_process"))
    os.kill(deployed.bridge.pid, signal.SIGKILL)
    begun = time.monotonic()
    while not (helpers := bus.children()):
        assert time.monotonic() < begun + 20.0
        time.sleep(0.01)
    helpers[0].kill()
    report = deployed.report()
    assert report["states"][:2] == ["hold", "park"] and all(report["limp"].values())
    assert deployed.limp()
