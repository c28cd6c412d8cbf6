"""Which errors are the user's or the machine's, and not bugs."""

from __future__ import annotations


def is_user_error(error: Exception) -> bool:
    """Returns whether an error is a user's mistake or the machine's state, not a bug of ours."""
    from real_robot.core.driver import RobotFault
    from reward_models.remote.transport import BudgetSpent, ModelError
    from robo_rl.runs.run_dir import CheckpointError
    from sims.rendering.cameras import RenderError

    wire = ModelError | BudgetSpent | RobotFault
    ours = RenderError | CheckpointError | wire
    return isinstance(error, ValueError | OSError | MemoryError | ours)
