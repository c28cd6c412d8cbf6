"""SearchConfig: the settings of a search, and what they may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from robo_rl.learners import LEARNERS, LearnerConfig, OffPolicyConfig, PPOConfig
from robo_rl.search.llm_writer import WRITERS, ModelConfig, make_writer
from sims.tasks.scene.mjcf import packed_scene

# What is also trained with the search's own steps on top, by name.
EqualTotal = Literal["none", "dense", "all"]
TOTALS: dict[EqualTotal, tuple[str, ...]] = {
    "none": (),
    "dense": ("dense",),
    "all": ("sentence", "dense"),
}


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Settings of one search."""

    task: str = "reach"  # as `robo-rl list tasks` shows
    goal: str = ""  # a sentence with a success judge
    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own
    things: str = ""  # objects of task tabletop: "yellow ball, two red cubes, white plate"
    scene: str = ""  # your scene for task tabletop: FILE.xml, with FILE.toml beside it
    writer: str = "offline"  # proposer: offline, llm, text2reward, eureka, card
    candidates: int = 6  # programs per round
    rounds: int = 2  # proposal rounds, each based on earlier results
    env_steps: int = 9_600  # env steps of a candidate's full training; early rungs are shorter
    episode_s: float = 0.0  # s, training episode length; 0: the task's; evaluation: full
    rungs: int = 3  # rungs of successive halving: steps double and the better half stays
    seed: int = 0  # seed of proposals and trainings
    validation_episodes: int = 256  # episodes that rank candidates
    episodes: int = 1000  # final evaluation episodes
    final_seeds: int = 1  # final training seeds of the winner and each baseline
    final_env_steps: int = 0  # env steps of each final training; 0: as all candidates in total
    equal_total: EqualTotal = "none"  # baselines that get the total steps of the search
    screens: bool = True  # reject rewards that rank archived policies badly
    relabel: bool = False  # off-policy: start from the best replay buffer, relabelled
    workers: int = 1  # parallel trainings
    minutes: float = 60.0  # wall-time limit of one training
    stall_s: float = 180.0  # s, timeout without progress of a training
    memory_gb: float = 24.0  # address space limit of one training
    learner: str = "ppo"  # as `robo-rl list learners` shows
    tuning: LearnerConfig = field(default_factory=PPOConfig)
    model: ModelConfig = field(default_factory=ModelConfig)  # for writers that use a language model
    runs: Path = Path("runs")  # folder of all runs
    name: str = ""  # search name; empty: built from task, goal and seed

    def check(self) -> None:
        """ValueError where a setting makes no sense."""
        object.__setattr__(self, "scene", packed_scene(self.scene))
        if self.writer not in ("offline", *WRITERS):
            known = ", ".join(("offline", *WRITERS))
            raise ValueError(f"unknown writer {self.writer!r}; available: {known}")
        if self.learner not in LEARNERS:
            known = ", ".join(LEARNERS)
            raise ValueError(f"unknown learner {self.learner!r}; available: {known}")
        expected = LEARNERS[self.learner].config
        if type(self.tuning) is not expected:
            raise ValueError(
                f"learner {self.learner} needs tuning of type {expected.__name__}, "
                f"got {type(self.tuning).__name__}"
            )
        if self.relabel and not isinstance(self.tuning, OffPolicyConfig):
            raise ValueError(
                f"relabel needs a learner with a replay buffer; {self.learner} has none"
            )
        if self.writer in WRITERS:
            make_writer(self.writer, self.model)  # what it lacks is said now
        whole = (
            "candidates",
            "rounds",
            "env_steps",
            "rungs",
            "validation_episodes",
            "episodes",
            "final_seeds",
            "workers",
        )
        for name in whole:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.final_env_steps < 0:
            raise ValueError(f"final_env_steps must be at least 0, got {self.final_env_steps}")
        if self.equal_total not in TOTALS:
            raise ValueError(
                f"equal_total must be one of {', '.join(TOTALS)}, got {self.equal_total!r}"
            )
        for name in ("minutes", "stall_s", "memory_gb"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.seed < 1_000_000 or self.final_seeds > 100:
            raise ValueError(
                f"seed must be in [0, 1,000,000) and final_seeds at most 100, got "
                f"{self.seed} and {self.final_seeds}"
            )

    @property
    def ladder(self) -> list[int]:
        """Env steps of each rung, the last one ``env_steps``."""
        return [max(1, self.env_steps >> k) for k in reversed(range(self.rungs))]

    @property
    def search_steps(self) -> int:
        """Env steps of all candidates, if none fails."""
        alive, total = self.candidates, 0
        for steps in self.ladder:
            total += alive * steps
            alive = -(-alive // 2)
        return self.rounds * total

    @property
    def judged_steps(self) -> int:
        """Env steps of each final training: ``final_env_steps`` or those of all candidates."""
        return self.final_env_steps or self.search_steps
