"""PolicyTrials: how the episodes of every published policy ended, and which of them is surely good.

A policy that learns goes on changing where it is good already, and what a reward of pictures pays
is not quite what verdicts say. So verdicts choose what acts: from a policy that does clearly worse
than the best one did, learning goes back to that.
"""

from __future__ import annotations

from collections import defaultdict

from reward_models.analysis.metrics import wilson


class PolicyTrials:
    """Success counts of each published policy, in episodes without takeover."""

    def __init__(self) -> None:
        self._ended: dict[int, list[bool]] = defaultdict(list)

    def add(self, published: int, success: bool) -> None:
        """Counts an episode without takeover."""
        self._ended[published].append(success)

    def success_lower_bound(self, published: int) -> float:
        """Returns the lower end of the 95 % interval of a policy's success; 0 untried."""
        ended = self._ended.get(published, [])
        return wilson(sum(ended), len(ended))[0] if ended else 0.0

    def best(self) -> int:
        """The one of which the most is sure, the newest of equals; 0 where none was tried."""
        return max(self._ended, key=lambda one: (self.success_lower_bound(one), one), default=0)

    def worse(self, published: int, episodes: int) -> bool:
        """Whether ``published``, tried in at least ``episodes``, succeeded less often than the best
        surely does."""
        ended = self._ended.get(published, [])
        return len(ended) >= episodes and sum(ended) / len(ended) < self.success_lower_bound(
            self.best()
        )
