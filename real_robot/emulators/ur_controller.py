"""The controller of a UR e-Series arm: modes, safety, and the program that its client uploads.

The client library ur_rtde uploads a URScript program and then talks to it through registers. The
contract of those registers is what is emulated here, not URScript: input integer 0 holds a command
number, input doubles its arguments, output integer 0 answers 1 (ready) or 2 (done). Commands that
move or guard the arm are played; others are answered as done. Numbers as in the client's sources.

The simulated arm's own actuators stand for servoj, its lookahead and its gain. What stops the real
controller by measured force is not modelled; a target that jumps farther than JUMP is what sets off
a protective stop here, or a test does.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from real_robot.emulators.physics import ArmPhysics, JointTargetHistory

Array = np.ndarray

JUMP = 0.8  # rad between a servo target and the last one
RUNNING, NORMAL, PROTECTIVE, EMERGENCY = 7, 1, 3, 7  # robot mode, safety modes
STOPPED, PLAYING = 1, 2  # runtime states
START = 0.05  # s from the last line of a program until it runs
UNLOCK = 5.0  # s that the real controller wants between a protective stop and its end
REGISTERS, BITS = 48, 128
PAYLOAD = 0.925  # kg, of a Robotiq 2F-85
# N m an ampere, of large joints and small; a driver cannot know them. About what gears of 101 and
# motors of 0.13 and 0.09 N m/A make.
PER_AMPERE = np.array([13.2, 13.2, 13.2, 9.3, 9.3, 9.3])


class UrCommand(IntEnum):
    """What the client asks the program for."""

    NONE = 0
    MOVE_J = 1
    SPEED_J = 9
    SERVO_J = 11
    SPEED_STOP = 15
    SERVO_STOP = 16
    PROTECTIVE_STOP = 31
    STOP_J = 34
    SET_WATCHDOG = 35
    STOP_SCRIPT = 255


# Taken up in every cycle; the others once, until the client has cleared the command.
CONTINUOUS = {6, UrCommand.SPEED_J, 10, UrCommand.SERVO_J, 24, 25, 26, 27, 38}


class UrController:
    """One controller with its arm; ``cycle`` is called as often as its clock ticks."""

    def __init__(self, physics: ArmPhysics, start: float = START):
        self.physics, self._start = physics, start
        self.n = len(physics.robot.joints)
        self.integers_in = np.zeros(REGISTERS, np.int32)
        self.doubles_in = np.zeros(REGISTERS)
        self.integers_out = np.zeros(REGISTERS, np.int32)
        self.doubles_out = np.zeros(REGISTERS)
        self._registers = {
            "input_int_register": ("INT32", self.integers_in),
            "input_double_register": ("DOUBLE", self.doubles_in),
            "input_bit_register": ("BOOL", np.zeros(BITS, bool)),
            "output_int_register": ("INT32", self.integers_out),
            "output_double_register": ("DOUBLE", self.doubles_out),
            "output_bit_register": ("BOOL", np.zeros(BITS, bool)),
        }
        self.time = 0.0  # s since it was switched on
        self.safety = NORMAL
        self.slider = 1.0  # share of full speed, as the pendant's slider has it
        self.payload = PAYLOAD  # kg, as set on the pendant
        self.remote = True  # remote control; otherwise the pendant rules
        self.running = False  # the client's program
        self.heard = 0.0  # time of the last input package
        self.stops: list[str] = []  # why the program ended or the arm stopped, newest last
        self.targets = 0  # servo targets taken up
        self.joint_targets = JointTargetHistory(self.n)
        self._starts = np.inf  # time at which an uploaded program begins
        self._stopped_at = 0.0
        self.recover()

    def recover(self) -> None:
        """The arm stands still where it is, brakes released."""
        self.physics.torque[:] = 1.0
        self._goal = self.physics.qpos[: self.n].copy()
        self._mode: Callable[[float], None] = lambda dt: None
        self._target: Array | None = None  # of servoing
        self._busy = False
        self._watchdog = 0.0  # s of silence after which the program ends; 0: any
        self.integers_in[:], self.integers_out[:] = 0, 0

    @property
    def goal(self) -> Array:
        """Where the joints are told to be (n,) rad."""
        return self._goal

    # What happens to it.
    def upload(self) -> None:
        """A program has come in whole."""
        if self.safety == NORMAL and self.remote:
            self._end("")
            self._starts = self.time + self._start

    def end(self, why: str) -> None:
        """The program ends and the arm stops on the spot."""
        if self.running:
            self._end(why)

    def hear(self) -> None:
        """An input package has come."""
        self.heard = self.time
        if self.running and int(self.integers_in[0]) == UrCommand.SERVO_J:
            self.joint_targets.note()

    def protective_stop(self, why: str) -> None:
        """As when a force or a path is not what it should be."""
        if self.safety == NORMAL:
            self.safety, self._stopped_at = PROTECTIVE, self.time
            self._end(f"protective stop: {why}")

    def emergency_stop(self) -> None:
        """Someone hit the button."""
        self.safety = EMERGENCY
        self._end("emergency stop")

    def unlock(self) -> bool:
        """Ends a protective stop; not sooner than the real controller would."""
        if self.safety != PROTECTIVE or self.time - self._stopped_at < UNLOCK:
            return False
        self.safety = NORMAL
        return True

    def release(self) -> None:
        """The button is turned back and the safety system restarted."""
        self.safety = NORMAL

    def _end(self, why: str) -> None:
        self.running, self._starts = False, np.inf
        if why:
            self.stops.append(why)
        self.recover()
        # What the gripper holds it goes on holding: it is another device.

    # Its clock.
    def cycle(self, dt: float) -> None:
        """One step of ``dt`` s: the program, then the joints' goals."""
        self.time += dt
        if self.time >= self._starts:
            self._starts, self.running = np.inf, True
            self.recover()
            self.integers_out[0], self.heard = 1, self.time
        if self.running:
            if self._watchdog and self.time - self.heard > self._watchdog:
                self._end(f"watchdog: silent for {self.time - self.heard:.3f} s")
            else:
                self._obey()
        if self.running:
            self._mode(dt)
        self.physics.goal[: self.n] = self._goal

    def _obey(self) -> None:
        command = int(self.integers_in[0])
        if command in CONTINUOUS:
            self._play(command)
            self.integers_out[0] = 1
        elif command == UrCommand.NONE:
            self._busy = False
            self.integers_out[0] = 1
        elif not self._busy:
            self._busy = True
            self._play(command)

    def _play(self, command: int) -> None:
        """Takes up one command."""
        q = self.doubles_in[: self.n].copy()
        done = True
        if command == UrCommand.SERVO_J:
            self._servo(q)
        elif command == UrCommand.SPEED_J:
            self._target, self._mode = None, self._speeding(q)
        elif command == UrCommand.MOVE_J:
            speed = float(self.doubles_in[6])
            if np.isfinite(q).all() and speed > 0:
                self._mode, done = self._moving(q, speed), False
        elif command in (UrCommand.SERVO_STOP, UrCommand.SPEED_STOP, UrCommand.STOP_J):
            self._mode, self._target = lambda dt: None, None
            self._goal = self.physics.qpos[: self.n].copy()
        elif command == UrCommand.PROTECTIVE_STOP:
            self.protective_stop("asked for")
        elif command == UrCommand.SET_WATCHDOG:
            frequency = float(self.doubles_in[0])
            self._watchdog = 1.0 / frequency if frequency > 0 else 0.0
            self.heard = self.time
        elif command == UrCommand.STOP_SCRIPT:
            self._end("stopped by its client")
        if self.running and command not in CONTINUOUS and done:
            self.integers_out[0] = 2

    def _servo(self, q: Array) -> None:
        before = self._goal if self._target is None else self._target
        if not np.isfinite(q).all():
            self._end("a servo target that is no number")
            return
        step = float(np.abs(q - before).max())
        if step > JUMP:
            self.protective_stop(f"a servo target jumped {step:.2f} rad")
            return
        if self._target is None or step > 0:
            self.targets += 1
            self.joint_targets.add(slice(None), q, before)
        self._target, self._goal = q, q
        self._mode = lambda dt: None

    def _speeding(self, qd: Array) -> Callable[[float], None]:
        def move(dt: float) -> None:
            if np.isfinite(qd).all():
                self._goal = self._goal + qd * dt

        return move

    def _moving(self, q: Array, speed: float) -> Callable[[float], None]:
        def move(dt: float) -> None:
            way = q - self._goal
            far = float(np.abs(way).max())
            if far <= speed * dt:
                self._goal = q
                self._mode = lambda dt: None
                self.integers_out[0] = 2
            else:
                self._goal = self._goal + way * (speed * dt / far)

        return move

    # What it tells.
    def field(self, name: str) -> tuple[str, tuple[float, ...]] | None:
        """RTDE type and values of output ``name``, None where the controller has no such field."""
        if (zeros := _ZEROS.get(name)) is not None:
            return zeros, (0,) * _WIDTH.get(zeros, 1)
        physics, n = self.physics, self.n
        status = 1 | 2 * self.running
        safety = {NORMAL: 1, PROTECTIVE: 1 << 2, EMERGENCY: 1 << 7 | 1 << 6}[self.safety]
        if name == "timestamp":
            return "DOUBLE", (self.time,)
        if name in ("actual_q", "target_q"):
            return "VECTOR6D", tuple(physics.qpos[:n] if name == "actual_q" else self._goal)
        if name == "actual_qd":
            return "VECTOR6D", tuple(physics.qvel[:n])
        if name in ("target_moment", "target_current", "actual_current", "joint_control_output"):
            # Its model knows weight and motion, and nothing of what touches the arm.
            model = (physics.effort - physics.outside + physics.gravity)[:n]
            if name == "target_moment":
                return "VECTOR6D", tuple(model)
            outside = 0.0 if name == "target_current" else physics.outside[:n]
            return "VECTOR6D", tuple((model + outside) / PER_AMPERE[:n])
        if name == "payload":
            return "DOUBLE", (self.payload,)
        if name == "robot_mode":
            return "INT32", (RUNNING,)
        if name in ("safety_mode", "safety_status"):
            return "INT32", (self.safety,)
        if name == "joint_mode":
            return "VECTOR6INT32", (253,) * 6
        if name == "runtime_state":
            return "UINT32", (PLAYING if self.running else STOPPED,)
        if name == "robot_status_bits":
            return "UINT32", (status,)
        if name in ("safety_status_bits",):
            return "UINT32", (safety,)
        if name in ("speed_scaling", "target_speed_fraction", "speed_scaling_combined"):
            return "DOUBLE", (self.slider,)
        if name == "joint_temperatures":
            return "VECTOR6D", (30.0,) * 6
        prefix, _, number = name.rpartition("_")
        if prefix in self._registers and number.isdigit():
            kind, registers = self._registers[prefix]
            if int(number) < len(registers):
                return kind, (registers[int(number)].item(),)
        return None

    def write(self, name: str, value: float) -> None:
        """Sets input register ``name``."""
        prefix, _, number = name.rpartition("_")
        self._registers[prefix][1][int(number)] = value


_WIDTH = {"VECTOR3D": 3, "VECTOR6D": 6}
# Fields that a controller has and this one does not play: they are there, and 0.
_ZEROS = {
    name: kind
    for kind, names in {
        "VECTOR6D": """target_qd target_qdd actual_TCP_pose actual_TCP_speed actual_TCP_force
            target_TCP_pose target_TCP_speed tcp_offset actual_joint_voltage actual_current_window
            payload_inertia ft_raw_wrench wrench_calc_from_currents""",
        "VECTOR3D": """actual_tool_accelerometer payload_cog elbow_position elbow_velocity""",
        "DOUBLE": """actual_execution_time actual_momentum tcp_force_scalar actual_main_voltage
            actual_robot_voltage actual_robot_current io_current standard_analog_input0
            standard_analog_input1 standard_analog_output0 standard_analog_output1
            tool_analog_input0 tool_analog_input1 tool_output_current tool_temperature
            joint_position_deviation_ratio collision_detection_ratio euromap67_24V_voltage
            euromap67_24V_current""",
        "UINT64": """actual_digital_input_bits actual_digital_output_bits
            actual_configurable_digital_input_bits""",
        "UINT32": """analog_io_types tool_mode tool_analog_input_types script_control_line
            output_bit_registers0_to_31 output_bit_registers32_to_63 input_bit_registers0_to_31
            input_bit_registers32_to_63 euromap67_input_bits euromap67_output_bits""",
        "INT32": "tool_output_voltage encoder0_raw encoder1_raw",
        "UINT8": "tool_output_mode tool_digital_output0_mode tool_digital_output1_mode",
    }.items()
    for name in names.split()
}
