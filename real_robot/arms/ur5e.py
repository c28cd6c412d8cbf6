"""The UR5e: a controller on the network, with a gripper of Robotiq's."""

from real_robot.arms import ArmSpec

ARM = ArmSpec(
    driver="real_robot.drivers.ur:UrDriver",
    emulator="real_robot.emulators.ur5e:Ur5eEmulator",
    client="rtde_control",
    extra="ur",
    found_by="host",
    apart=True,
    emulator_settings=("host", "clock"),
    unhurried={"stale": 30.0, "patience": 30.0},
    paced={"wait": 0.006},
    views=(-0.8, 0.8),  # its gripper is wide and stands in the way of a camera in front
)
