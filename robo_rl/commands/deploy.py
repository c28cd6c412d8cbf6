"""`robo-rl deploy`: a policy bundle on an arm. Loads no torch.

``--emulate`` alone puts a simulation behind the RobotDriver contract; with ``--robot`` the vendor's
client and the arm's wire protocol come in between. ``--robot`` with ``--port`` or ``--host`` drives
what is there, an arm or ``robo-rl emulate``. Loop, safety filter and log are the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from real_robot import PolicyBundle, PolicyProcess
from robo_rl.commands.arm_options import ArmSessionOptions
from robo_rl.commands.arm_session import run_arm_session
from robo_rl.goals.bundle_task import task_of_bundle


@dataclass(frozen=True, kw_only=True)
class DeployCommand(ArmSessionOptions):
    """Runs a policy bundle on an arm."""

    bundle: tyro.conf.Positional[Path]  # folder of the policy bundle
    shadow: bool = False  # run and log the policy, but hold the arm still
    # s to wait for a policy output; a later one counts in a next period
    policy_timeout: float = 0.01

    def check(self) -> None:
        """ValueError where an option is out of its range, or contradicts another."""
        super().check()
        if not 0 <= self.policy_timeout < math.inf:
            raise ValueError(
                f"--policy-timeout must be finite and not below 0, got {self.policy_timeout:g}"
            )
        if self.shadow and self.human:
            raise ValueError(
                "--shadow holds the arm still, so no operator can drive it: leave out --human. "
                "With --human the log has the policy's outputs too"
            )


def main(argv: Sequence[str]) -> int:
    """Runs the episodes; exits 1 where a run was stopped by a fault or the safety filter."""
    command = tyro.cli(DeployCommand, args=list(argv), prog="robo-rl deploy")
    command.check()
    bundle = PolicyBundle.load(command.bundle)
    return run_arm_session(
        command,
        bundle,
        task_of_bundle(bundle.manifest),
        policy=lambda: PolicyProcess(bundle, command.bundle, budget=command.policy_timeout),
        shadow=command.shadow,
    )
