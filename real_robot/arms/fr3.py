"""The FR3 of Franka Robotics: a robot on the network, with the maker's hand."""

from real_robot.arms import ArmSpec

ARM = ArmSpec(
    driver="real_robot.drivers.franka:FrankaDriver",
    emulator="real_robot.emulators.fr3:Fr3Emulator",
    client="franky",
    extra="franka",
    found_by="host",
    apart=True,
    emulator_settings=("host", "clock"),
    unhurried={"stale": 30.0, "patience": 30.0, "wait": 0.0},
    paced={"wait": 0.006},
    views=(-0.8, 0.8),  # its hand is wide and stands in the way of a camera in front
)
