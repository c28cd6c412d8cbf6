"""The former name of ``sims.envs.gym_env``, which older Minari data sets know."""

from sims.envs.gym_env import GymEnv, GymVectorEnv

__all__ = ["GymEnv", "GymVectorEnv"]
