"""The judge: whether an episode fulfilled a goal, measured in the simulator.

``docs/reference/goal-language.md`` is what a goal means, and all that this package and the reward
side share. Here a goal is plain data, ``[name, [arguments], {numbers}]``; nothing of it is ever
shown to a reward model, a writer or a policy.

May import: core, robots, tasks, tasks/scene.
"""

from __future__ import annotations

from sims.truth.judge import SuccessJudge, judged_predicates

__all__ = ["SuccessJudge", "judged_predicates"]
