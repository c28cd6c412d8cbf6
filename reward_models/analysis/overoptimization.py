"""Over-optimisation: a policy that is paid more and succeeds less than it did (arXiv:2310.09144).

A reward is a proxy. Optimised hard enough it may be pursued at the cost of what it stands for; the
paper shows when, and stops before. Here the turn is found where it shows: on the same episodes, the
policy now beside the policy at its best. Both must lie beyond noise, each by a one-sided paired
test: the proxy's rise by its mean over its standard error, the truth's fall by the sign test on the
episodes in which only one of the two succeeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

NOISE = 0.01  # chance of either test to see by luck what is not there
Z = 2.326  # the normal quantile of that


@dataclass(frozen=True)
class ProxyChange:
    """What changed between two looks at the same episodes."""

    proxy: float  # rise of the mean proxy
    proxy_z: float  # in its standard errors
    truth: float  # rise of the share of successes
    truth_p: float  # chance of such a fall, were both as good

    @property
    def overoptimised(self) -> bool:
        """Whether the proxy rose and the truth fell, both beyond noise."""
        return self.proxy_z > Z and self.truth < 0 and self.truth_p < NOISE


def compare_proxy_with_truth(proxy: tuple[Array, Array], truth: tuple[Array, Array]) -> ProxyChange:
    """Compares how the proxy and the truth of the same episodes changed.

    Args:
        proxy: (before, now), proxies (k,) of the same k episodes.
        truth: (before, now), successes (n,) bool of the same n episodes.

    Returns:
        The change of both, with what noise would explain.

    Raises:
        ValueError: There are fewer than two episodes.
    """
    rise = np.asarray(proxy[1], float) - np.asarray(proxy[0], float)
    if len(rise) < 2:
        raise ValueError(
            f"expected at least two episodes to separate a rise from noise, got {len(rise)}"
        )
    error = float(rise.std(ddof=1) / math.sqrt(len(rise)))
    before, now = (np.asarray(x, bool) for x in truth)
    lost, won = int((before & ~now).sum()), int((~before & now).sum())
    return ProxyChange(
        float(rise.mean()),
        float(rise.mean() / error) if error > 0 else math.inf if rise.mean() > 0 else 0.0,
        float(now.mean() - before.mean()),
        sign_test(lost, won),
    )


def sign_test(lost: int, won: int) -> float:
    """Returns the chance of ``lost`` or more heads in ``lost + won`` fair coin flips."""
    n = lost + won
    return sum(math.comb(n, k) for k in range(lost, n + 1)) / 2**n
