"""What a task needs that the defaults do not give: an entry for each task that needs something.

Where the goals of a task need different things, an entry is named "task goal". A preset only
changes defaults; every option that is typed stays as typed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from reward_models.goals.formula import atoms, parse, parts_of
from reward_models.goals.predicates import GRIPPER, role
from robo_rl.config import CHECKPOINT_EVERY, ENV_STEPS, SettledConfig, TrainConfig
from robo_rl.goals import read_goal, task_of
from robo_rl.learners import LEARNERS, LearnerConfig, OffPolicyConfig, PPOConfig
from robo_rl.rewards import fitting
from sims.foreign import PREFIX
from sims.tasks.arranged import Arranged


@dataclass(frozen=True)
class Preset:
    """Other defaults of one task, or of one of its goals."""

    run: dict[str, Any]  # of TrainConfig
    horizon_s: float = LearnerConfig.horizon_s  # s, of every learner
    ppo: dict[str, Any] = field(default_factory=dict)  # of PPOConfig
    replay_run: dict[str, Any] = field(default_factory=dict)  # of TrainConfig, with a replay buffer

    def tuning(self, learner: str) -> LearnerConfig:
        """The settings of ``learner``."""
        kind = LEARNERS[learner].config
        return kind(horizon_s=self.horizon_s, **(self.ppo if issubclass(kind, PPOConfig) else {}))


# Of all bodies: their rewards come in units of their own.
_BODY: dict[str, Any] = {
    "normalise_reward": True,
    "n_steps": 64,
    "minibatches": 8,
    "epochs": 5,
    "learning_rate": 7e-4,
    "log_std_init": -0.7,
}

PRESETS: dict[str, Preset] = {
    # The way round to the far side of the object is found by large first steps or not at all.
    "push": Preset({"env_steps": 600_000, "checkpoint_every": 100_000}, ppo={"log_std_init": -0.5}),
    # Learners with a replay buffer need fewer steps, and pay for each with many more updates.
    "drawer": Preset({"env_steps": 200_000}, replay_run={"env_steps": 50_000}),
    # A cube is first held by chance, which needs jaws that move far enough to close on it.
    "lift": Preset(
        {"env_steps": 200_000}, ppo={"log_std_init": -0.7}, replay_run={"env_steps": 50_000}
    ),
    # No CLIP knows its things; what moves one of them is trained as a push is.
    "tabletop": Preset({"reward": "offline"}),
    # With half of it, it learns to be fast and falls after 3 s; success is to be up after 8.
    "hopper forward": Preset({"env_steps": 1_200_000, "checkpoint_every": 200_000}, 1.6, _BODY),
    # A flip is over within a second; whoever has fallen by then lies there for the other seven.
    "hopper front_flip": Preset(
        {"env_steps": 1_500_000, "checkpoint_every": 200_000, "episode_s": 2.0}, 0.8, _BODY
    ),
    "ant forward": Preset({"env_steps": 2_000_000, "checkpoint_every": 200_000}, 5.0, _BODY),
    # It happens in the first seconds too. 300,000 steps are enough to turn over, not to keep still.
    "ant lie_down": Preset(
        {"env_steps": 1_000_000, "checkpoint_every": 100_000, "episode_s": 4.0},
        ppo=_BODY | {"n_steps": 80, "log_std_init": -0.3},
    ),
}


def preset(
    task: str, learner: str = "ppo", base: TrainConfig | None = None, goal: str = ""
) -> SettledConfig:
    """``base`` (the defaults) with what ``task`` needs for ``goal``, tuned for ``learner``.

    ``goal`` is a sentence or a key; empty: that of ``base``. Where ``base`` and the preset differ,
    the preset's value is taken; ``completed`` takes the other's.
    """
    if learner not in LEARNERS:
        raise ValueError(f"unknown learner {learner!r}; known: {', '.join(LEARNERS)}")
    base = base or TrainConfig()
    goal = goal or base.goal
    asked = replace(base, task=task, goal=goal)
    found = PRESETS.get(_name(asked)) or PRESETS.get(task) or Preset({})
    if task == Arranged.name and _moves_things(asked):
        found = replace(PRESETS["push"], run=found.run | PRESETS["push"].run)
    open_ = {"env_steps": ENV_STEPS, "episode_s": 0.0, "checkpoint_every": CHECKPOINT_EVERY,
             "reward": "offline" if base.formula else "clip"}  # fmt: skip
    given = {name: value for name, value in vars(base).items() if value is not None}
    named = {"task": task, "goal": goal, "learner": learner, "tuning": found.tuning(learner)}
    replays = issubclass(LEARNERS[learner].config, OffPolicyConfig)
    run = found.run | (found.replay_run if replays else {})
    if base.reward is not None:  # whose settings may be in ``base`` too
        run = {name: value for name, value in run.items() if name != "reward"}
    # Each part of a sequence takes as long to learn as a goal of its own.
    asked = replace(asked, reward=(open_ | given | run)["reward"])
    run = run | {"env_steps": _parts(asked) * run.get("env_steps", ENV_STEPS)}
    return SettledConfig(**open_ | given | run | named)


def completed(config: TrainConfig) -> SettledConfig:
    """``config`` with what its task needs wherever it is None."""
    if not isinstance(config, SettledConfig):
        asked = {name: value for name, value in vars(config).items() if value is not None}
        config = replace(preset(config.task, config.learner, config), **asked)
    if config.scoring is None:
        config = replace(config, scoring=fitting(config.reward, None))
    return config


def _parts(config: TrainConfig) -> int:
    """How many parts the outermost sequence of what is wanted has: of a formula, or of a sentence
    that is followed as it was read; of a task's own goals 1."""
    if config.formula:
        wanted = parse(config.formula)
    elif config.reward == "offline" and config.goal and not config.task.startswith(PREFIX):
        read = read_goal(task_of(vars(config)), config.goal)
        if read.key or read.formula is None:
            return 1
        wanted = read.formula
    else:
        return 1
    return max(len(parts_of(part, "then")) for part in parts_of(wanted, "and"))


def _name(config: TrainConfig) -> str:
    """What an entry for this goal alone would be called."""
    if not any(name.startswith(f"{config.task} ") for name in PRESETS):
        return config.task  # saves reading the sentence
    made = task_of(vars(config))
    key = read_goal(made, config.goal).key if config.goal else next(iter(made.goals()))
    return f"{config.task} {key}"


def _moves_things(config: TrainConfig) -> bool:
    """Whether the goal is about more than the gripper."""
    made = task_of(vars(config))
    read = parse(config.formula) if config.formula else read_goal(made, config.goal).formula
    hands = {entity.name for entity in made.entities() if role(entity) == GRIPPER}
    return read is not None and any(atom.terms[0] not in hands for atom in atoms(read))
