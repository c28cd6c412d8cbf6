"""Learners: who turns rewards into a policy. The table is read without importing torch."""

from __future__ import annotations

from robo_rl.learners.config import (
    LEARNERS,
    LearnerConfig,
    PPOConfig,
    SACConfig,
    TD3Config,
    TQCConfig,
)

__all__ = ["LEARNERS", "LearnerConfig", "PPOConfig", "SACConfig", "TD3Config", "TQCConfig"]
