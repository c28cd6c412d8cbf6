"""`deploy --robot` and `emulate`: the command line over the wire, in one process and in two."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import reach_bundle
from rich.console import Console

import sims
from real_robot import Fault, PolicyBundle, RunConfig, RunResult, drivers, read_log
from real_robot.emulators.so101 import So101Emulator
from real_robot.safety.fault_latch import FaultLatch
from robo_rl.arm.connected import ConnectedStage
from robo_rl.cli import main
from robo_rl.commands import deploy, emulate, operator_prompts

PROGRAM = [sys.executable, "-m", "robo_rl.cli"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    reach_bundle.write(folder, "so101")
    return folder


@pytest.mark.parametrize(("robot", "episodes"), [("so101", 2), ("koch", 1)])
def test_bundle_succeeds_through_the_vendors_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], robot: str, episodes: int
) -> None:
    reach_bundle.write(tmp_path, robot)
    command = ["deploy", str(tmp_path), "--emulate", "--robot", robot, "--json", "--episodes"]
    assert main([*command, str(episodes)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["arm"] == f"the emulated {robot}" and told["ended"] == {"done": episodes}
    assert told["successes"] == episodes and told["missed"] == 0
    assert 0.1 < told["told"]["fastest"] <= 1.01  # a servo's target is a whole number of ticks
    assert 0.0 < told["told"]["margin"] < 1.0


def test_tool_speed_limits_the_tool(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limited = []
    for speed in ("1.0", "0.05"):
        main(
            ["deploy", str(folder), "--emulate", "--episodes", "1", "--tool-speed", speed, "--json"]
        )
        limited.append(json.loads(capsys.readouterr().out)["limited"]["tool_speed"])
    assert limited[0] == 0.0 and limited[1] > 0.3
    assert main(["deploy", str(folder), "--emulate", "--tool-speed", "0"]) == 1
    assert "tool_speed must be above 0 and finite, got 0" in capsys.readouterr().err


def test_stop_within_option_limits_the_speed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["deploy", str(folder), "--emulate", "--episodes", "1", "--json"]
    assert main([*command, "--stop-within", "0.1"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("goal: the gripper is above the red cube\ntrained for "), err
    told = json.loads(out)
    assert told["successes"] == 1 and told["ended"] == {"done": 1}
    for known, others in ((True, ["--stop-within", "0.05"]), (False, [])):
        main([*command, *others])
        assert (json.loads(capsys.readouterr().out)["limited"]["stop_time"] > 0) == known
    assert main([*command, "--stop-within", "0.01"]) == 1
    assert "stop_s must be at least 0.02 s, 2 periods of so101, got 0.01" in capsys.readouterr().err


@pytest.mark.slow
def test_ur_succeeds_with_latency_and_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reach_bundle.write(tmp_path, "ur5e")
    command = ["deploy", str(tmp_path), "--emulate", "--robot", "ur5e", "--episodes", "3", "--json"]
    assert main([*command, "--latency", "0.04", "--noise", "0.002"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["arm"] == "the emulated ur5e" and told["ended"] == {"done": 3}
    assert told["successes"] == 3 and told["missed"] == 0


def test_tag_poses_from_rendered_cameras_suffice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["deploy", str(folder), "--emulate", "--robot", "so101", "--rendered"]
    assert main([*command, "--episodes", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["arm"] == "the emulated so101 with poses from its rendered cameras"
    assert told["successes"] == 1


def test_deploy_applies_bias_noise_and_stiffness(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Soft servos hang below their goals, and it says what it was put to."""
    command = ["deploy", str(folder), "--emulate", "--robot", "so101", "--episodes", "1", "--json"]
    assert main([*command, "--bias", "0.003", "--stiffness", "30", "--noise", "0"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["under"] == (
        "0 mm of noise on perceived positions, each off by 3 mm, 0 ms of latency, "
        "servos of 30 N m/rad"
    )


def test_stiffness_option_makes_servos_sag(folder: Path, tmp_path: Path) -> None:
    sag = {}
    for stiffness in ("998", "30"):
        command = ["deploy", str(folder), "--emulate", "--robot", "so101", "--episodes", "1"]
        main([*command, "--stiffness", stiffness, "--log", str(tmp_path / stiffness)])
        (path,) = (tmp_path / stiffness).glob("*.mcap")
        ticks = read_log(path).ticks
        run = [t for t in ticks if t["phase"] == "run"][-20:]
        lift = [(t["filtered"]["qpos"][1], t["state"]["qpos"][1]) for t in run]
        sag[stiffness] = max(abs(goal - there) for goal, there in lift)  # rad
    assert sag["30"] > 5 * sag["998"] and 0.01 < sag["30"] < 0.1


def test_deploy_to_an_emulator_in_another_process(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "usb-serial"
    emulator = subprocess.Popen(
        [*PROGRAM, "emulate", "so101", "--link", str(link), "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        told = json.loads(emulator.stdout.readline())
        assert told["where"] == str(link) and os.path.exists(link)
        # As patient as a starved machine needs; the arm is there in real time.
        command = [
            "deploy",
            str(folder),
            "--robot",
            "so101",
            "--port",
            told["where"],
            "--silence",
            "60",
            "--control",
            str(told["control"]),
            "--patience",
            "0.5",
            "--episodes",
            "1",
        ]
        # In a process of its own: real time locks memory, and a test run has gigabytes of it.
        deployed = subprocess.run(
            [*PROGRAM, *command, "--json"], capture_output=True, text=True, timeout=240
        )
        ran = json.loads(deployed.stdout)
        assert ran["arm"].startswith("the emulated so101 at") and ran["episodes"] == 1
        # Whether it keeps its period is the machine's affair; that it ends in order is ours.
        assert set(ran["ended"]) <= {"done", "safety_stop", "fault"}
        emulator.send_signal(signal.SIGINT)
        assert emulator.wait(30) == 0 and not link.exists()
    finally:
        emulator.kill()
        emulator.communicate()


def test_uncalibrated_arm_error_names_calibrate(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Real time would lock the memory of this process, which is a test run's.
    monkeypatch.setattr(
        "real_robot.session.session.realtime", lambda *_: contextlib.nullcontext(())
    )
    asked = emulate.EmulateCommand(robot="so101", uncalibrated=True)
    calibrated = emulate._given_options(asked)["calibrated"][1]
    task = sims.make_task("reach", robot="so101")
    with So101Emulator(task, calibrated=calibrated).start(control=0) as arm:
        where = ["--port", arm.where, "--control", str(arm.control_port), "--patience", "0.5"]
        assert main(["deploy", str(folder), "--robot", "so101", *where, "--episodes", "1"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "is not calibrated; run robo-rl calibrate so101" in said


@pytest.mark.fault(63)
def test_latched_fault_persists_until_the_operator_clears_it(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    took: Callable[[float, str], None],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with So101Emulator(sims.make_task("reach", robot="so101")).start(control=0) as emulator:
        arm = ["--robot", "so101", "--port", emulator.where, "--patience", "0.5"]
        command = ["deploy", str(folder), *arm, "--control", str(emulator.control_port)]
        FaultLatch.of("so101", emulator.where).set(Fault.OVERLOAD, "overload: elbow")
        assert main(command) == 1
        said = capsys.readouterr().err
        assert "this arm has a latched fault: overload: elbow (20" in said
        assert "--clear-fault" in said and said.count("\n") == 1
        emulator.breakdown(3, "overheat")
        assert main([*command, "--clear-fault"]) == 1
        assert "not cleared: overheat: the arm still reports the fault" in capsys.readouterr().err
        assert main(command) == 1 and "elbow" in capsys.readouterr().err  # the first one stays
        emulator.heal()
        assert emulator.traffic()["goals"] == 0  # so far nobody made it stiff
        begun = time.monotonic()
        assert taken_over(folder, emulator).reason() == ""
        took(time.monotonic() - begun, "cleared (SO-101)")
        assert not list(tmp_path.rglob("*.json"))


def taken_over(folder: Path, emulator: So101Emulator, stiff: str = "") -> FaultLatch:
    """The latch of an arm that an operator has looked at."""
    told = deploy.DeployCommand(
        bundle=folder, robot="so101", port=emulator.where, clear_fault=True, if_torque_on=stiff
    )
    task = sims.make_task("reach", robot="so101")
    stage = ConnectedStage(task, emulator.where, patience=0.5, eyes=None)
    manifest = PolicyBundle.load(folder).manifest
    return operator_prompts.claim_arm(told, stage, task, manifest, RunConfig(), Console())


def test_arm_with_torque_is_parked_before_fault_is_cleared(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To clear a fault lets go of every joint."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    parks, stiff = operator_prompts.rescue, []
    with So101Emulator(sims.make_task("reach", robot="so101")).start(control=0) as emulator:
        driver = drivers.make("so101", emulator.where, patience=0.5)
        driver.connect()
        driver.identify()
        driver.enable()
        driver.close()
        FaultLatch.of("so101", emulator.where).set(Fault.OVERLOAD, "overload: elbow")

        def noted(*args: Any, **options: Any) -> RunResult:
            stiff.append(all(emulator.joints()["torque"]))
            return parks(*args, **options)

        monkeypatch.setattr(operator_prompts, "rescue", noted)
        assert taken_over(folder, emulator, "park").reason() == ""
        assert stiff == [True] and not any(emulator.joints()["torque"])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "no arm selected"),
        (
            ["--emulate", "--clear-fault"],
            "--clear-fault applies only to an arm at a --port or --host",
        ),
        (["--emulate", "--rendered"], "--rendered needs an emulated arm: add --robot"),
        (
            ["--robot", "so101", "--port", "x", "--stiffness", "30"],
            "--stiffness applies only to --emulate",
        ),
        (["--robot", "so101", "--emulate", "--stiffness", "0"], "--stiffness must be finite and"),
        (
            ["--robot", "so101", "--port", "/dev/null", "--bias", "0.1"],
            "--bias applies only to --emulate",
        ),
        (["--emulate", "--noise", "-1"], "--noise must be finite and not below 0, got -1"),
        (["--robot", "so101"], "so101 needs --port"),
        (
            ["--robot", "ur5e", "--host", "1.2.3.4"],
            "the bundle was trained for so101, got --robot ur5e",
        ),
        (["--robot", "so101", "--emulate", "--realtime"], "does not run in real time"),
        (
            ["--robot", "so101", "--port", "/dev/null", "--latency", "0.1"],
            "--latency applies only to --emulate",
        ),
        (["--robot", "so101", "--port", "/dev/null", "--control", "1"], "no emulator answers"),
        (
            ["--robot", "so101", "--port", "/dev/null", "--noise", "0"],
            "--noise applies only to --emulate",
        ),
        (
            ["--robot", "so101", "--port", "/dev/null", "--rendered"],
            "--rendered applies only to --emulate",
        ),
        (["--robot", "so101", "--port", "/dev/null", "--host", "127.0.0.1"], "needs --port and no"),
        (["--emulate", "--rendered"], "--rendered needs an emulated arm: add --robot NAME"),
        (
            ["--emulate", "--if-torque-on", "park"],
            "--if-torque-on applies only to an arm at a --port or --host",
        ),
        (
            ["--emulate", "--calibration", "arm.json"],
            "--calibration applies only to an arm at a --port or",
        ),
        (["--emulate", "--silence", "0.2"], "--silence must be above 0.3 s, the longest delay"),
        (["--emulate", "--stop-within", "-1"], "stop_s must be above 0 and finite, got -1"),
    ],
)
def test_deploy_errors_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    assert main(["deploy", str(folder), *args]) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.slow
def test_an_emulator_ends_with_the_process_that_started_it() -> None:
    parent = (
        "import os, subprocess, sys\n"
        "command = [*sys.argv[1:], '--parent', str(os.getpid())]\n"
        "print(subprocess.Popen(command).pid, flush=True)\n"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", parent, *PROGRAM, "emulate", "so101", "--json"]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    emulator = psutil.Process(int(started.stdout.readline()))
    try:
        assert json.loads(started.stdout.readline())["robot"] == "so101"
        started.kill()
        emulator.wait(20)
    finally:
        started.kill()
        started.wait()
    assert not emulator.is_running()
