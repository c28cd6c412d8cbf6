"""TQC: SAC with critics that answer a distribution, its most hopeful part cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from robo_rl.learners.sac import SACConfig, entropy

if TYPE_CHECKING:
    from sb3_contrib import TQC

    from robo_rl.learners.learner import LearnerInputs


@dataclass(frozen=True, kw_only=True)
class TQCConfig(SACConfig):
    """Truncated quantile critics (arXiv:2005.04269): SAC with less overestimation."""

    quantiles: int = 25  # quantiles per critic
    drop_quantiles: int = 2  # highest quantiles dropped, per critic

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.drop_quantiles < self.quantiles:
            raise ValueError(
                f"drop_quantiles must be from 0 to {self.quantiles - 1}, one less than quantiles, "
                f"got {self.drop_quantiles}"
            )


def build_tqc(config: TQCConfig, inputs: LearnerInputs) -> TQC:
    """sb3-contrib's TQC."""
    from sb3_contrib import TQC

    return TQC(
        **inputs.keywords(config, n_quantiles=config.quantiles),
        **inputs.replay(config),
        **entropy(config, inputs),
        top_quantiles_to_drop_per_net=config.drop_quantiles,
    )
