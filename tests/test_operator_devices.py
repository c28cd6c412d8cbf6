"""People at an arm: their devices, how they take it and give it back, what a log keeps of it."""

from __future__ import annotations

import dataclasses
import os
import struct
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reach_bundle

import sims
from real_robot import (
    Ended,
    Fault,
    OperatorInput,
    Phase,
    PolicyBundle,
    RunResult,
    SimDriver,
    SimPerception,
    VirtualClock,
    emulators,
    read_log,
    run,
)
from real_robot.core.clearance import Clearance
from real_robot.operator.devices import HUMANS, ClutchedDevice, DeviceContext, make, parse_device
from real_robot.operator.gamepad import AXIS, BUTTON, EVENT, INITIAL
from real_robot.operator.handover import LEAD, RunVerdict, ToolJog
from real_robot.operator.keyboard import HELD, JOINT, TOOL, Keyboard, key_names
from real_robot.operator.scripted import RememberingDriver, ScriptedOperator
from real_robot.perception.base import Pose
from real_robot.perception.camera import Frame, RecordedCamera
from real_robot.session.replay import replay
from robo_rl.arm.episodes import run_episodes
from robo_rl.arm.simulated import SimStage
from robo_rl.arm.stage import EpisodeSetup
from robo_rl.cli import main
from robo_rl.goals.bundle_task import task_of_bundle

TASK = sims.make_task("reach", robot="so101", goal=reach_bundle.GOAL)
DRIVEN = ("run", "human")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PolicyBundle:
    bundle = reach_bundle.write(tmp_path_factory.mktemp("bundle"), "so101")
    bundle.manifest = dataclasses.replace(bundle.manifest, park=())  # it takes as long as the rest
    return bundle


class Desk:
    """A simulated arm at which somebody sits, on a compressed clock."""

    def __init__(self, bundle: PolicyBundle, typed: Callable[[float], bytes] = lambda t: b""):
        self.clock, self._bundle = VirtualClock(1000.0), bundle
        self.driver = RememberingDriver(SimDriver(TASK, clock=self.clock, period=0.01))
        self.eyes = SimPerception(self.driver.scene.poses, self.clock)
        self._typed, self._begun = typed, None
        self.listening = True
        self.around = DeviceContext(
            robot=self.driver.describe(),
            clock=self.clock,
            typed=self.type,
            alive=lambda: self.listening,
            task=TASK,
            driver=self.driver,
            eyes=self.eyes,
        )

    def type(self) -> bytes:
        """What was typed by now, as a function of the time since it was first asked."""
        now = self.clock.now_ns() * 1e-9
        self._begun = now if self._begun is None else self._begun
        return self._typed(now - self._begun)

    def script(self, script: Callable[[float], OperatorInput | None]) -> ScriptedOperator:
        return ScriptedOperator(script, self.around)

    def run(self, **options: Any) -> RunResult:
        options = {"perception": self.eyes, "seconds": 1.0} | options
        return run(self.driver, self._bundle, task=TASK, clock=self.clock, **options)


def held(key: bytes, begin: float, end: float) -> Callable[[float], bytes]:
    """A key that is held down, as a terminal tells it: once, and half a second later repeats."""
    told = [False]

    def typed(t: float) -> bytes:
        if begin <= t < end and not told[0]:
            told[0] = True
            return key
        repeats = begin + 0.5 <= t < end and int(round(100 * t)) % 4 == 0
        return key if repeats else b""

    return typed


def ticks_of(log: Path, *phases: str) -> list[dict[str, Any]]:
    return [t for t in read_log(log).ticks if t["phase"] in (phases or DRIVEN)]


def now_of(desk: Desk) -> float:
    return desk.clock.now_ns() * 1e-9


@cache
def clearance() -> Clearance:
    return Clearance.of(TASK)


def wait(until: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + 20.0
    while not until() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(until())


def tool_at(qpos: np.ndarray) -> np.ndarray:
    return np.array(clearance().near(qpos, 0.0).tool)


def test_terminal_keys_are_decoded() -> None:
    assert key_names(b"a\x1b[A1\x1bOC\x1b[15~o") == ["a", "up", "1", "right", "o"]


def test_jogging_moves_the_tool_in_its_direction() -> None:
    tool, qpos, step = ToolJog(TASK), np.array(TASK.arm.home), 1e-4
    for way in np.vstack([np.eye(3), -np.eye(3)]):
        qvel = tool.qvel(qpos, 0.05 * way)
        moved = (tool_at(qpos + step * qvel) - tool_at(qpos)) / step
        assert moved @ way > 0.045 and np.abs(moved - 0.05 * way).max() < 0.01
    fast = tool.qvel(qpos, np.array([50.0, 0.0, 0.0]))
    assert (np.abs(fast) <= TASK.arm.velocity_limit * (1 + 1e-9)).all()


@pytest.mark.parametrize("mode", [b"", b"1"])
def test_held_key_jogs_and_release_stops(bundle: PolicyBundle, tmp_path: Path, mode: bytes) -> None:
    key = held(b"\x1b[D", 0.2, 1.5)
    desk = Desk(bundle, lambda t: key(t) + (mode if t == 0.0 else b""))
    log = tmp_path / "run.mcap"
    result = desk.run(human=make("keyboard", desk.around), seconds=3.0, log=log)
    assert result.ended is Ended.DONE
    human = ticks_of(log, "human")
    wants = np.array([t["requested"]["qvel"] for t in human])
    moving = np.abs(wants).max(axis=1) > 0
    t = np.array([t["t"] for t in human]) - human[0]["t"]
    # A nudge, a pause, and then until it is let go; the arm stays the person's.
    assert moving[t < HELD - 0.011].all() and not moving[(t > HELD) & (t < 0.49)].any()
    assert moving[(t > 0.55) & (t < 1.3)].all() and not moving[t > 1.3 + HELD].any()
    assert t[-1] > 2.7
    if mode:
        assert np.abs(wants[moving] - [JOINT, 0, 0, 0, 0]).max() < 1e-9
    else:
        ends = [tool_at(np.array(human[i]["state"]["qpos"])) for i in (0, -1)]
        moved = ends[1] - ends[0]
        # To the left, for as long as the key counted.
        assert moved[1] == pytest.approx(TOOL * moving.sum() / 100, abs=0.012)
        assert np.abs(moved[[0, 2]]).max() < 0.02


def test_keyboard_t_hands_over_and_y_ends_with_success(
    bundle: PolicyBundle, tmp_path: Path
) -> None:
    keys = {0.1: b"t", 0.3: b"t", 0.5: b"y"}

    def typed(t: float) -> bytes:
        due = [at for at in keys if at <= t + 1e-6]
        return b"".join(keys.pop(at) for at in due)

    desk, log = Desk(bundle, typed), tmp_path / "run.mcap"
    judge = lambda result: RunVerdict(result.verdict, "operator")  # noqa: E731
    result = desk.run(human=make("keyboard", desk.around), seconds=9.0, log=log, judge=judge)
    assert result.ended is Ended.DONE and result.verdict == "success"
    after = [t.after for t in result.history]
    assert after[3:8] == [Phase.RUN, Phase.HUMAN, Phase.RUN, Phase.HOLD, Phase.RELAX]
    told = read_log(log)
    assert told.verdict == {"what": "success", "by": "operator"} and len(ticks_of(log)) < 60
    assert replay(log).same


def test_lost_panel_holds_the_arm(bundle: PolicyBundle) -> None:
    desk = Desk(bundle, held(b"o", 0.1, 0.2))

    def watch(tick: Any, ages: Mapping[str, float]) -> None:
        desk.listening = desk.listening and tick.phase != "human"

    result = desk.run(human=Keyboard("", desk.around), watch=watch)
    assert (result.ended, result.fault) == (Ended.SAFETY_STOP, Fault.OPERATOR)
    assert "has sent no input for 0.1" in result.reason


class Pad:
    """What a gamepad's driver writes, through a pipe in its place."""

    def __init__(self, path: Path):
        os.mkfifo(path)
        self.path, self._file = path, os.open(path, os.O_RDWR)

    def say(self, kind: int, number: int, value: int) -> None:
        os.write(self._file, EVENT.pack(0, value, kind, number))

    def unplug(self) -> None:
        os.close(self._file)


def test_gamepad_controls_the_arm_while_its_button_is_held(
    bundle: PolicyBundle, tmp_path: Path
) -> None:
    assert EVENT.size == struct.calcsize("=IhBB") == 8
    pad, desk = Pad(tmp_path / "js0"), Desk(bundle)
    device = make(f"gamepad:{pad.path}", desk.around)
    for axis in range(6):  # a driver begins with how everything stands
        pad.say(AXIS | INITIAL, axis, -32767 if axis in (2, 5) else 0)
    pad.say(BUTTON | INITIAL, 0, 0)
    hand = device.read()
    assert not hand.engaged and hand.verdict == ""
    pad.say(AXIS, 1, -32767)
    assert not device.read().engaged  # a stick alone is nothing
    pad.say(BUTTON, 5, 1)
    hand = device.read()
    assert hand.engaged and hand.gripper is None and hand.tool[0] == pytest.approx(0.15)
    assert not hand.tool[1:].any()
    pad.say(AXIS, 1, 1000)  # within the dead zone
    pad.say(AXIS, 2, 20000)
    hand = device.read()
    assert hand.gripper == 0.0 and not hand.tool.any()
    pad.say(BUTTON, 0, 1)
    assert device.read().verdict == "success" and device.read().verdict == ""
    pad.say(BUTTON, 5, 0)
    assert not device.read().engaged
    pad.say(BUTTON, 4, 1)

    def watch(tick: Any, ages: Mapping[str, float]) -> None:
        if tick.phase == "human" and pad is not None and tick.t > 0 and not gone:
            gone.append(tick.t)
            pad.unplug()

    gone: list[float] = []
    result = desk.run(human=device, watch=watch)
    assert result.fault is Fault.OPERATOR and "has sent no input for 0.1" in result.reason
    device.close()
    with pytest.raises(ValueError, match="no gamepad at .*js7.*plug it in"):
        make(f"gamepad:{tmp_path / 'js7'}", desk.around)


def leading(away: float) -> Callable[[Desk], ScriptedOperator]:
    """A leader that stands still, its first joint ``away`` rad from the arm's when first seen."""

    def made(desk: Desk) -> ScriptedOperator:
        seen: list[np.ndarray] = []

        def script(t: float) -> OperatorInput | None:
            if not seen:
                seen.append(desk.driver.state.qpos + [away, 0, 0, 0, 0])
            return OperatorInput(now_of(desk), True, qpos=seen[0])

        return desk.script(script)

    return made


def test_leader_arm_takes_over_without_a_jump(bundle: PolicyBundle, tmp_path: Path) -> None:
    desk, log = Desk(bundle), tmp_path / "run.mcap"
    result = desk.run(human=leading(-0.4)(desk), seconds=2.0, log=log)
    assert result.ended is Ended.DONE
    human = ticks_of(log, "human")
    sent = np.array([t["filtered"]["qpos"] for t in human])
    limit = TASK.arm.acceleration_limit.max()
    assert np.abs(np.diff(sent, 2, axis=0)).max() / 0.01**2 <= limit * (1 + 1e-6)
    assert np.abs(np.diff(sent[:30], axis=0)).max() / 0.01 < 1.0  # rad/s, far below what it can
    assert sent[-1, 0] - sent[0, 0] == pytest.approx(-0.4, abs=0.01)


@pytest.mark.parametrize("away", [LEAD + 0.05, np.nan])
def test_distant_leader_arm_handover_is_refused(
    bundle: PolicyBundle, tmp_path: Path, away: float
) -> None:
    desk, log = Desk(bundle), tmp_path / "run.mcap"
    result = desk.run(human=leading(away)(desk), log=log)
    assert result.ended is Ended.DONE and Phase.HUMAN not in {t.after for t in result.history}
    (note,) = result.notes
    assert note.startswith("no handover: the leader arm's shoulder_pan is ") and "\n" not in note
    assert "allowed is 0.5 rad; bring it to" in note
    assert all(t["refused"].startswith("no handover") for t in ticks_of(log))


def test_leader_arm_controls_by_its_joints(bundle: PolicyBundle) -> None:
    desk = Desk(bundle)
    with emulators.make("so101", TASK, seed=3).start() as emulator:
        device = make(f"leader:{emulator.where}", desk.around, taken=False)
        try:
            assert wait(lambda: device.read()) and not device.read().engaged  # until t is pressed
            desk._typed = held(b"t", 0.0, 0.01)
            with emulator.lock:
                emulator.advance()
                pose = emulator.physics.qpos + [0.2, -0.1, 0.1, 0.05, 0.3, 0.5]
                emulator.physics.move_by_hand(pose)
            assert wait(lambda: np.abs(device.read().qpos - pose[:-1]).max() < 0.01)
            hand = device.read()
            assert hand.engaged and hand.gripper > 0.05
            with emulator.lock:
                assert not emulator.physics.torque.any()
                emulator.unplug()
            # It grows old, which ends in a hold.
            assert wait(lambda: time.monotonic() - device.read().t > 0.5)
        finally:
            device.close()


def test_scripted_operator_reads_a_file(bundle: PolicyBundle, tmp_path: Path) -> None:
    desk, file = Desk(bundle), tmp_path / "way.csv"
    joints = desk.around.robot.joints
    home = np.array(TASK.arm.home)
    rows = [[0.2, *home, 0.0], [0.7, *(home + 0.1), 1.0]]
    file.write_text(
        "\n".join([",".join(["t", *joints, "gripper"]), *(",".join(map(str, row)) for row in rows)])
    )
    device = make(f"scripted:{file}", desk.around, taken=True)
    assert not device.read().engaged
    desk.clock.sleep_until_ns(desk.clock.now_ns() + 450_000_000)
    hand = device.read()
    assert hand.engaged and np.abs(hand.qpos - home - 0.05).max() < 1e-6
    assert hand.t == now_of(desk)  # and not the script's time
    assert hand.gripper == pytest.approx(0.5)
    file.write_text("t,shoulder_pan\n0,1\n")
    with pytest.raises(ValueError, match="its first line must name t, shoulder_pan, shoulder_lift"):
        make(f"scripted:{file}", desk.around)


def test_policy_is_monitored_during_handover(bundle: PolicyBundle, tmp_path: Path) -> None:
    desk, log = Desk(bundle), tmp_path / "run.mcap"
    qvel = np.array([0.2, 0.0, 0.0, 0.0, 0.0])
    script = lambda t: OperatorInput(now_of(desk), True, qvel=qvel) if 0.2 <= t < 0.7 else None  # noqa: E731
    assert desk.run(human=desk.script(script), log=log).ended is Ended.DONE
    driven = ticks_of(log)
    thoughts = [t for t in driven if t["thought"] is not None]
    every = np.diff([t["t"] for t in thoughts])
    assert (np.round(every, 3) == 0.05).all()  # without a gap, whoever drives
    human = [t for t in thoughts if t["phase"] == "human"]
    assert len(human) == 10 and all(np.abs(t["thought"]["action"]).max() > 0 for t in human)
    assert replay(log).same


class Camera:
    """Pictures that tell themselves apart."""

    def __init__(self, clock: VirtualClock):
        self._clock, self._count = clock, 0

    def read(self) -> Frame:
        self._count += 1
        image = np.full((48, 64, 3), self._count % 200, np.uint8)
        return Frame(image, self._clock.now_ns() * 1e-9 - 0.003)


class Looking:
    """Perception that takes a picture at every look, as tags do."""

    def __init__(self, eyes: SimPerception, camera: RecordedCamera):
        self._eyes, self._camera = eyes, camera

    def read(self) -> Mapping[str, Pose]:
        self._camera.read()
        return self._eyes.read()


def test_log_has_camera_frames_with_timestamps(bundle: PolicyBundle, tmp_path: Path) -> None:
    desk, log = Desk(bundle), tmp_path / "run.mcap"
    camera = RecordedCamera(Camera(desk.clock), "front")
    desk.run(perception=Looking(desk.eyes, camera), film=[camera], log=log)
    camera.read()  # nobody records any more
    frames = read_log(log, frames=True).frames["front"]
    thoughts = [t["thought"] for t in ticks_of(log) if t["thought"]]
    assert len(frames) >= len(thoughts) and read_log(log).frames == {}
    taken = np.array([t for t, _ in frames])
    begun = np.array([t["begun"] for t in thoughts])
    assert all(np.abs(taken - (t - 0.003)).min() < 1e-6 for t in begun)
    assert all(jpeg[:2] == b"\xff\xd8" for _, jpeg in frames)
    assert replay(log).same


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["--human", "piano"],
            "unknown operator device 'piano'; available: keyboard, gamepad, leader",
        ),
        (["--human", "leader"], "--human leader needs an address: --human leader:PORT"),
        (["--human", "keyboard"], "in real time: add --realtime"),
        (["--human", "keyboard", "--realtime"], "reads keys from the monitor"),
        (["--human", "leader:/dev/null", "--realtime"], "takes over by a key of the monitor"),
        (["--human", "scripted:nowhere.csv"], "nowhere.csv"),
        (["--human", "keyboard", "--shadow"], "no operator can drive it: leave out --human"),
        (["--dial", "0"], "--dial must be above 0 and at most 1, got 0"),
    ],
)
def test_operator_option_errors_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    reach_bundle.write(tmp_path, "so101")
    assert main(["deploy", str(tmp_path), "--emulate", *args]) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_operator_devices_are_listed() -> None:
    assert [parse_device(f"{name}:x")[0] for name in HUMANS] == [*HUMANS]


def test_shadow_mode_has_no_verdict_and_obeys_the_dial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder := tmp_path / "bundle").mkdir()
    reach_bundle.write(folder, "so101")
    log = tmp_path / "log"
    command = ["deploy", str(folder), "--emulate", "--episodes", "1", "--log", str(log)]
    assert main([*command, "--shadow"]) == 0
    assert "with --shadow the arm was held still" in capsys.readouterr().out
    told = read_log(log / "episode_0000.mcap")
    assert {t["phase"] for t in told.ticks} & {"shadow", "run"} == {"shadow"}
    assert main([*command, "--dial", "0.3"]) == 0
    ticks = ticks_of(log / "episode_0001.mcap")
    assert {t["requested"]["dial"] for t in ticks} == {0.3}
    assert read_log(log / "episode_0000.mcap").ticks == told.ticks  # what was recorded stays


def test_verdict_key_is_not_a_handover() -> None:
    keys = iter([b"y", b"", b"t", b"x"])

    class Leads:
        def read(self) -> OperatorInput:
            return OperatorInput(0.0, True)

    hands = [ClutchedDevice(Leads(), lambda: next(keys), taken=False).read()]
    clutched = ClutchedDevice(Leads(), lambda: next(keys), taken=False)
    hands += [clutched.read() for _ in range(3)]
    assert [hand.engaged for hand in hands] == [False, False, True, True]
    assert [hand.verdict for hand in hands] == ["success", "", "", "discard"]


def test_panel_hides_while_the_operator_sets_the_scene(tmp_path: Path) -> None:
    """In shadow too, where nobody is asked how it went: keys that the panel takes are lost."""
    reach_bundle.write(tmp_path, "so101")
    bundle, said = PolicyBundle.load(tmp_path), []
    task = task_of_bundle(bundle.manifest)

    class Stage(SimStage):
        asks = True

        def scene(self, seed: int) -> EpisodeSetup:
            said.append("scene")
            return super().scene(seed)

        def ask(self) -> str:
            return "success"

    class Panel:
        def hide(self) -> None:
            said.append("hide")

        def stop(self) -> bool:
            return False

        def __getattr__(self, name: str) -> Any:
            return lambda *args, **what: None

    run_episodes(bundle, task, Stage(task), episodes=2, monitor=Panel(), shadow=True)
    assert said == ["hide", "scene"] * 2


@pytest.mark.slow
def test_terminal_keys_drive_the_arm_and_dial(tmp_path: Path) -> None:
    from test_monitor import Terminal

    (folder := tmp_path / "bundle").mkdir()
    reach_bundle.write(folder, "so101")
    one = Terminal(folder, tmp_path / "log", "--human", "keyboard", "--dial", "0.6")
    try:
        one.until("RUN")
        one.until("keyboard: arrows")
        one.until("dial 60 %")
        one.press(b"-")
        one.until("dial 50 %")
        one.press(b"\x1b[D")
        one.until("HUMAN")
        one.press(b"y")  # the simulator has the last word
        one.until("episode 2 of 50")
        one.press(b" ")
        assert one.end() == 1 and one.restored
    finally:
        one.close()
    told = read_log(tmp_path / "log" / "episode_0000.mcap")
    assert told.verdict["by"] == "simulator"
    dials = [t["requested"]["dial"] for t in told.ticks if t["phase"] in DRIVEN]
    assert dials[0] == 0.6 and dials[-1] == pytest.approx(0.5)


@pytest.mark.slow
def test_leader_arm_teleoperates_over_two_wires(tmp_path: Path) -> None:
    task = sims.make_task("reach", robot="so101", goal="touch_red_cube")
    log = tmp_path / "log"
    with (
        emulators.make("so101", task, seed=3).start() as leader,
        emulators.make("so101", task, seed=4).start(control=0) as follower,
    ):
        stop = threading.Event()

        def hand() -> None:
            """Holds the leader where the follower is, and then turns its foot."""
            begun = held = None
            while not stop.wait(0.02):
                with follower.lock:
                    pose, stiff = follower.physics.qpos, follower.physics.torque.all()
                begun = time.monotonic() if begun is None and stiff else begun
                t = -1.0 if begun is None else time.monotonic() - begun - 3.0
                held = pose if t < 0 else held
                target = held + [min(max(0.1 * t, 0.0), 0.3), 0, 0, 0, 0, 0]
                with leader.lock:
                    leader.advance()
                    leader.physics.move_by_hand(target)

        thread = threading.Thread(target=hand)
        thread.start()
        try:
            command = f"teleop --robot so101 --port {follower.where} --patience 0.5 --no-monitor"
            command += f" --control {follower.control_port} --goal touch_red_cube --seconds 8"
            command += f" --human leader:{leader.where} --episodes 1 --log {log} --clear-fault"
            status = main(command.split())
        finally:
            stop.set()
            thread.join()
    told = read_log(log / "episode_0000.mcap")
    assert status == 0, [t for t in told.transitions if t["reason"]]
    human = ticks_of(log / "episode_0000.mcap", "human")
    sent = np.array([t["sent"]["qpos"] for t in human])
    assert len(human) > 300 and np.ptp(sent[:, 0]) > 0.2
    assert told.verdict["by"] == "simulator"
