"""The SO-101: six Feetech servos on a serial bus."""

from real_robot.arms import ArmSpec

ARM = ArmSpec(
    driver="real_robot.drivers.so101:So101Driver",
    emulator="real_robot.emulators.so101:So101Emulator",
    client="scservo_sdk",
    extra="so101",
    found_by="port",
    calibrated=True,
    settings=("calibration", "patience"),
    emulator_settings=("link", "calibrated"),
    unhurried={"patience": 30.0},
)
