"""Settings that learners share; the defaults are those that text rewards were tuned with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from reward_models.vision.config import at_least
from sims.core.multi_goal import ASKED

if TYPE_CHECKING:
    from robo_rl.rollout.interventions import Interventions
    from robo_rl.rollout.vec_sim import VecSim

FEWEST_STEPS = 33  # control steps of any horizon; envs that do not say how long a step is take 1 s


# These have no --tuning. in front.
DataSet = Annotated[str, tyro.conf.arg(aliases=("--demos",))]
TakenOver = Annotated[float, tyro.conf.arg(aliases=("--interventions",))]


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """Settings that all learners have."""

    cheap_steps: ClassVar[bool] = True  # on-policy: many env steps, few updates per step
    makes_steps: ClassVar[bool] = True  # False: offline, from a fixed dataset
    num_envs: int = 64  # environments simulated in parallel
    learning_rate: float = 1e-3  # Adam's step size
    final_rate: float = 0.1  # share of it at the end of training (linear decay)
    horizon_s: float = 5 / 3  # s, discount horizon; at least 33 control steps
    net: tuple[int, ...] = (128, 128)  # units of the hidden layers of policy and critic
    activation: Literal["tanh", "relu"] = "tanh"  # activation function
    normalise_obs: bool = True  # standardise observations inside the policy
    obs_stats_steps: int = 0  # env steps used for these statistics; 0: all

    def __post_init__(self) -> None:
        for name in ("num_envs", "learning_rate", "horizon_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        self.at_least(0, "obs_stats_steps")
        if any(units < 1 for units in self.net):
            raise ValueError(f"net must be layers of at least 1 unit, got {self.net}")
        if not 0 <= self.final_rate <= 1:
            raise ValueError(f"final_rate must be in [0, 1], got {self.final_rate}")

    def at_least(self, least: int, *names: str) -> None:
        """ValueError where one of the settings ``names`` is below that, or no number."""
        at_least(self, least, *names)

    def check(self, sim: VecSim) -> None:
        """Raises ValueError, before training, where a setting does not fit ``sim``."""

    def gamma(self, control_dt: float) -> float:
        """Discount per control step of ``control_dt`` s: ``1 - control_dt / horizon_s``."""
        return 1.0 - 1.0 / max(self.horizon_s / control_dt, FEWEST_STEPS)


def goal_columns(sim: VecSim) -> list[int]:
    """Columns of an observation that say which of several goals is meant; none where there is
    one."""
    return [i for i, name in enumerate(sim.obs_names) if name.startswith(f"{ASKED}[")]


@dataclass(frozen=True, kw_only=True)
class OffPolicyConfig(LearnerConfig):
    """Settings of all learners with a replay buffer."""

    cheap_steps: ClassVar[bool] = False
    num_envs: int = 16  # environments simulated in parallel
    learning_rate: float = 7e-4  # Adam's step size
    final_rate: float = 1.0  # share of the learning rate at the end of training
    net: tuple[int, ...] = (256, 256)  # units of the hidden layers of policy and critic
    activation: Literal["tanh", "relu"] = "relu"  # activation function
    buffer_size: int = 200_000  # replay buffer size, transitions
    learning_starts: int = 1_000  # env steps of random actions before learning
    gradient_steps: int = 8  # updates per control step of all environments
    batch_size: int = 256  # transitions per update
    tau: float = 0.005  # target network update rate
    # Demonstrations that are part of every batch: a dataset of `robo-rl demos`, or a number of
    # episodes of the task's expert.
    demos: DataSet = ""
    demo_share: float = 0.5  # share of demonstrations per batch, after hindsight
    interventions: TakenOver = 0.0  # share of early episodes with actions by the expert
    interventions_until: int = 20_000  # env steps after which interventions end
    # Share of every batch, of --goal any under --reward sparse, whose goal is one that was reached
    # later.
    hindsight: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "buffer_size", "gradient_steps", "batch_size")
        self.at_least(0, "learning_starts", "interventions_until")
        if not 0 < self.tau <= 1:
            raise ValueError(f"tau must be above 0 and at most 1, got {self.tau}")
        if self.demos and self.hindsight == 1:
            raise ValueError("hindsight of 1 leaves no room for --demos in a batch: set it below 1")
        if not 0 <= self.interventions <= 1:
            raise ValueError(f"interventions must be in [0, 1], got {self.interventions}")
        if not 0 <= self.hindsight <= 1:
            raise ValueError(f"hindsight must be in [0, 1], got {self.hindsight}")
        if not self._fits(self.demo_share):
            raise ValueError(f"demo_share must be between 0 and 1, got {self.demo_share}")

    def _fits(self, share: float) -> bool:
        """Whether demonstrations may be that ``share`` of every batch."""
        return 0 < share < 1

    def check(self, sim: VecSim) -> None:
        """Raises ValueError where the settings, demonstrations or interventions do not fit
        ``sim``."""
        super().check(sim)
        if self.demos:
            from robo_rl.learners.demo_replay import check_demos

            check_demos(self.demos, sim)
        self.make_interventions(sim)
        if self.hindsight and not (goal_columns(sim) and getattr(sim, "sparse", False)):
            raise ValueError(
                "--tuning.hindsight relabels transitions with other goals: give --goal any "
                "and --reward sparse with it"
            )

    def make_interventions(self, sim: VecSim) -> Interventions | None:
        """The expert that takes over in early episodes on ``sim``; None where it never does."""
        from robo_rl.rollout.interventions import Interventions

        if not self.interventions:
            return None
        return Interventions(sim, self.interventions, self.interventions_until)
