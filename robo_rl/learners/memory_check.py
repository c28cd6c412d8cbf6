"""What a learner keeps of its steps, in bytes: too much is refused before it is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robo_rl.learners.buffers import SavedReplayBuffer
from robo_rl.rollout.trace import Trace
from robo_rl.runtime.memory import USED, check_free, format_bytes, free_memory

if TYPE_CHECKING:
    from robo_rl.learners.learner import Learner


def check_memory(learner: Learner, env_steps: int) -> None:
    """Raises ValueError where storing the steps up to ``env_steps`` takes more memory than is free.
    It is called once the first episodes have started."""
    buffer, rows = learner.buffer, learner.env.num_envs
    replay = isinstance(buffer, SavedReplayBuffer)
    steps, filled = buffer.buffer_size, 0  # of all rows
    if replay:
        steps, filled = min(steps, -(-env_steps // rows)), buffer.size()
    arrays = [array for array in vars(buffer).values() if isinstance(array, np.ndarray)]
    each = sum(array.nbytes for array in arrays) / buffer.buffer_size
    if learner.scorer is not None:
        each += Trace.step_bytes(
            learner.env.current_observation, np.zeros((rows, learner.env.sim.act_dim))
        )
    way_out = "give less of --tuning.n-steps or of --tuning.num-envs"
    if replay:
        fits = int(USED * free_memory() / each) * rows
        fits -= fits % 10 ** max(0, len(str(fits)) - 2)  # two digits of it
        way_out = f"give --tuning.buffer-size {fits} or less"
    what = f"{steps * rows:,} steps are kept, {format_bytes(each / rows)} each"
    check_free((steps - filled) * each, what, way_out)
