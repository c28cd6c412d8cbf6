"""The table of what learned scorers are fitted to; ``heads.fit_head`` fits any of its rows."""

from __future__ import annotations

from reward_models.scorers.critic import CriticLoss
from reward_models.scorers.heads import ScorerLoss
from reward_models.scorers.preferences import PreferencesLoss
from reward_models.scorers.progress import ProgressLoss
from reward_models.scorers.success import SuccessLoss
from reward_models.scorers.value import ValueLoss

LOSSES: dict[str, type[ScorerLoss]] = {
    "success": SuccessLoss,
    "progress": ProgressLoss,
    "critic": CriticLoss,
    "value": ValueLoss,
    "preferences": PreferencesLoss,
}
