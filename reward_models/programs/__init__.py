"""Reward code that cannot hurt: a small language, its checks, and the numpy that runs it.

May import: nothing.
"""

from reward_models.programs.diagnostics import Diagnostic, Refused, errors
from reward_models.programs.explain import explain
from reward_models.programs.runtime import Program, ProgramReward, load

__all__ = ["Diagnostic", "Program", "ProgramReward", "Refused", "errors", "explain", "load"]
