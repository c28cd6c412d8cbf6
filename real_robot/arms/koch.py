"""The Koch v1.1: six Dynamixel servos on a serial bus."""

from real_robot.arms import ArmSpec

ARM = ArmSpec(
    driver="real_robot.drivers.koch:KochDriver",
    emulator="real_robot.emulators.koch:KochEmulator",
    client="dynamixel_sdk",
    extra="koch",
    found_by="port",
    calibrated=True,
    settings=("calibration", "patience"),
    emulator_settings=("link", "calibrated"),
    unhurried={"patience": 30.0},
)
