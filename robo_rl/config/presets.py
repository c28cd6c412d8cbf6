"""What a goal needs that the defaults do not give.

A task's own goals have an entry of the task, if it needs something; where its goals need different
things, an entry is named "task goal". Any other sentence or formula has what brings its parts
about, and so has a goal without an entry that is learned from its program. A preset only changes
defaults; every option that is typed stays as typed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from real_robot.core.arm_layout import has_arm
from reward_models.goals.duration import achieved_by
from reward_models.goals.formula import Atom, Formula, atoms, parts_of
from robo_rl.config.train_config import CHECKPOINT_EVERY, ENV_STEPS, SettledConfig, TrainConfig
from robo_rl.goals.reading import ReadGoal, StatedGoal, read_goal
from robo_rl.learners import LEARNERS, EnsembleConfig, LearnerConfig, PPOConfig
from robo_rl.rewards import check_settings
from sims.core.multi_goal import ANY
from sims.external.gymnasium_env import PREFIX
from sims.tasks.custom_tabletop import CustomTabletop
from sims.utils.did_you_mean import unknown_name_error


@dataclass(frozen=True)
class Preset:
    """Other defaults of one task, or of one of its goals."""

    run: dict[str, Any]  # fields of TrainConfig
    learner: str = "ppo"  # default learner
    dense: str = ""  # learner for the task's dense reward, if different
    horizon_s: float = LearnerConfig.horizon_s  # s, for every learner
    ppo: dict[str, Any] = field(default_factory=dict)  # fields of PPOConfig
    ensemble: dict[str, Any] = field(default_factory=dict)  # fields of EnsembleConfig
    dear_run: dict[str, Any] = field(default_factory=dict)  # of TrainConfig, for costly steps
    ensemble_run: dict[str, Any] = field(default_factory=dict)  # of TrainConfig, for ensemble
    shown_run: dict[str, Any] = field(default_factory=dict)  # the same, with demonstrations
    of_programs: bool = True  # also for reward programs

    def learner_of(self, reward: str) -> str:
        """The learner where none is asked for."""
        return self.dense if self.dense and reward == "task" else self.learner

    def run_of(self, learner: str, with_demos: bool = False) -> dict[str, Any]:
        """Of TrainConfig, for a learner, which may be ``with_demos`` demonstrations."""
        kind = LEARNERS[learner].config
        run = self.run | ({} if kind.cheap_steps else self.dear_run)
        if not kind.makes_steps:  # its episodes have begun
            run.pop("random_starts", None)
        if learner != "ensemble":
            return run
        return run | self.ensemble_run | (self.shown_run if with_demos else {})

    def tuning(self, learner: str, demos: str = "") -> LearnerConfig:
        """The settings of ``learner``, which is given ``demos``."""
        kind = LEARNERS[learner].config
        of = {PPOConfig: self.ppo, EnsembleConfig: self.ensemble}
        own = next((settings for base, settings in of.items() if issubclass(kind, base)), {})
        if not kind.makes_steps:  # these are of how many, and of what they explore
            own = {}
        if demos and hasattr(kind, "demos"):
            own = own | {"demos": demos} | (CLONED if learner == "ensemble" else {})
        return kind(horizon_s=self.horizon_s, **own)


# Of PPO on all bodies: their rewards come in units of their own.
_BODY: dict[str, Any] = {
    "normalise_reward": True,
    "n_steps": 64,
    "minibatches": 8,
    "epochs": 5,
    "learning_rate": 7e-4,
    "log_std_init": -0.7,
}


# Of who goes forward, from its own reward: as many updates as half of the steps, and much
# exploration, for who has found one way of going seldom finds another: to stand, or to slide on its
# back. The mean is of few weights: a gait goes on getting faster, and the mean of a slow one and a
# fast one falls.
_GAIT: dict[str, Any] = {
    "num_envs": 16,
    "gradient_steps": 8,
    "entropy_init": 0.2,
    "noise_s": 0.0,
    "averaged": 0.01,
}


# Who is shown how it is done begins as a clone of that, and goes on from there.
CLONED = {"clone_updates": 2_000}


# A thing is first held by chance, which needs jaws that move far enough to close on it, and takes
# long among others, or from pictures. That it rises is first seen by a millimetre: with a floor
# under that, lift from pictures takes twice the steps, so only what moved by less has one.
_HELD = Preset(
    {"env_steps": 600_000, "checkpoint_every": 100_000},
    ppo={"log_std_init": -0.7, "obs_still": 0.05},
    dear_run={"env_steps": 50_000, "checkpoint_every": CHECKPOINT_EVERY},
    shown_run={"env_steps": 100_000, "checkpoint_every": CHECKPOINT_EVERY},
)

# What is carried somewhere and let go of there, where somebody shows it.
_SHOWN = {"env_steps": 300_000, "checkpoint_every": 50_000}


# A flip is over within a second; whoever has fallen by then lies there for the other seven. Nobody
# finds all of it by trying, so many episodes begin in the middle of one, in the air.
_FLIP = Preset(
    {"env_steps": 600_000, "checkpoint_every": 100_000, "episode_s": 2.0, "random_starts": 0.6},
    horizon_s=0.8,
    ppo=_BODY | {"log_std_init": 0.0},
)


def _runs(ensemble: dict[str, Any]) -> Preset:
    """Of who goes forward on feet that carry it anyway. PPO is farther in less time, if after more
    steps."""
    return Preset(
        {"env_steps": 4_000_000, "checkpoint_every": 200_000},
        horizon_s=5.0,
        ppo=_BODY,
        ensemble=ensemble,
        ensemble_run={"env_steps": 1_000_000, "checkpoint_every": 50_000},
    )


def _hops(ppo_steps: int, env_steps: int) -> Preset:
    """Of who must keep its balance to go forward. A program's reward gives so little for going
    that ``ensemble`` learns to stand, so PPO learns from those."""
    return Preset(
        {"env_steps": ppo_steps, "checkpoint_every": 200_000},
        horizon_s=1.6,
        ppo=_BODY,
        dense="ensemble",
        ensemble_run={"env_steps": env_steps, "checkpoint_every": 50_000},
        ensemble=_GAIT,
    )


PRESETS: dict[str, Preset] = {
    # The way round to the far side of the object is found by large first steps or not at all.
    "push": Preset({"env_steps": 600_000, "checkpoint_every": 100_000}, ppo={"log_std_init": -0.5}),
    # SB3's learners with a replay buffer need fewer steps, and pay for each with many more updates.
    "drawer": Preset({"env_steps": 200_000}, dear_run={"env_steps": 50_000}),
    "lift": _HELD,
    # A cube is soon held, or pushed, and long after that let go of where it is wanted.
    "pick_place": replace(
        _HELD,
        run={"env_steps": 4_000_000, "checkpoint_every": 200_000},
        of_programs=False,
        shown_run=_SHOWN,
    ),
    "stack": Preset({}, shown_run=_SHOWN, of_programs=False),
    "drawer_then_place": Preset({}, shown_run=_SHOWN, of_programs=False),
    "peg": Preset({}, shown_run=_SHOWN, of_programs=False),
    # With half of it, it learns to be fast and falls after 3 s; success is to be up after 8.
    "hopper forward": _hops(1_200_000, env_steps=600_000),
    "walker2d forward": _hops(2_000_000, env_steps=400_000),
    "half_cheetah forward": _runs(_GAIT | {"learning_starts": 5_000}),
    "ant forward": _runs(_GAIT),
    "hopper front_flip": _FLIP,
    "hopper back_flip": _FLIP,
    # Down on its knees within a second; the other fourteen it has to keep still.
    "humanoid kneel": Preset(
        {"env_steps": 2_000_000, "checkpoint_every": 200_000, "episode_s": 3.0},
        horizon_s=1.6,
        ppo=_BODY,
    ),
    # It happens in the first seconds too. 300,000 steps are enough to turn over, not to keep still.
    "ant lie_down": Preset(
        {"env_steps": 1_000_000, "checkpoint_every": 100_000, "episode_s": 4.0},
        ppo=_BODY | {"n_steps": 80, "log_std_init": -0.3},
    ),
}

# What nobody listed may be learned in a part of that.
_TAKEN = replace(_HELD, run=_HELD.run | {"stop_at": 0.97})

# What brings about what nobody listed (predicates' BY), the hardest last, is trained as where it
# was met before; a push to some place by the learner that leaves a thing nearest to it.
EFFORTS: dict[str, Preset] = {
    "act": Preset({}),
    "go": Preset({}),
    "press": Preset({}),
    "slide": PRESETS["drawer"],
    "lift": _TAKEN,
    "put": _TAKEN,
    "insert": _TAKEN,
    "push": Preset(
        # Most are learned in a quarter of the steps that the hardest take.
        {"env_steps": 1_000_000, "checkpoint_every": 100_000, "stop_at": 0.97},
        learner="ensemble",
        ppo=PRESETS["push"].ppo,
        ensemble={"gradient_steps": 2, "batch_size": 512},
    ),
}


def preset(
    task: str,
    learner: str | None = None,
    base: TrainConfig | None = None,
    goal: str = "",
    stated: StatedGoal | None = None,
) -> SettledConfig:
    """Returns ``base`` with what ``task`` needs for ``goal``.

    Where ``base`` and the preset differ, the preset's value is taken; ``with_presets`` takes the
    other's.

    Args:
        task: name of a task.
        learner: the learner to tune for; None: the one that the goal is learned by soonest.
        base: the config to start from; None: the defaults.
        goal: a sentence or a key; empty: that of ``base``.
        stated: that goal, if it has been read already.

    Raises:
        ValueError: the learner is unknown.
    """
    if learner not in (None, *LEARNERS):
        raise unknown_name_error(f"unknown learner {learner!r}", learner, LEARNERS)
    base = base or TrainConfig()
    goal = goal or base.goal
    open_ = {
        "env_steps": ENV_STEPS,
        "episode_s": 0.0,
        "checkpoint_every": CHECKPOINT_EVERY,
        "random_starts": 0.0,
        "stop_at": 0.0,
    }
    stated = stated or StatedGoal.of({**vars(base), "task": task, "goal": goal})
    reward = open_["reward"] = base.reward or _default_reward(stated)
    found, parts = _fitting_preset(stated, reward)
    demos = getattr(base.tuning, "demos", "")
    learner = learner or ("ensemble" if demos else found.learner_of(reward))
    run = found.run_of(learner, bool(demos))
    if parts is not None:
        run |= {"env_steps": parts(learner)}
    if not (base.eval_points and (base.formula or reward == "offline")):
        run = {n: value for n, value in run.items() if n != "stop_at"}  # nobody would judge it
    given = {name: value for name, value in vars(base).items() if value is not None}
    named = {"task": task, "goal": goal, "learner": learner, "tuning": found.tuning(learner, demos)}
    return SettledConfig(**open_ | given | run | named)


def _default_reward(stated: StatedGoal) -> str:
    """Returns the reward where none is given: ``clip`` where the embedded CLIP was trained, on the
    tables of the arms; elsewhere the dense reward of a task's own goal, or a program."""
    if stated.formula or stated.task == CustomTabletop.name:
        return "offline"
    if stated.task.startswith(PREFIX) or has_arm(stated.plain_task):
        return "clip"
    return "task" if stated.goal in ("", ANY) or stated.read.key else "offline"


def with_presets(config: TrainConfig, stated: StatedGoal | None = None) -> SettledConfig:
    """Returns ``config`` with what its task needs wherever it is None; ``stated`` is its goal, if
    that has been read already."""
    if not isinstance(config, SettledConfig):
        given = {name: value for name, value in vars(config).items() if value is not None}
        config = replace(preset(config.task, config.learner, config, stated=stated), **given)
    if config.scoring is None:
        config = replace(config, scoring=check_settings(config.reward, None))
    return config


def _fitting_preset(stated: StatedGoal, reward: str) -> tuple[Preset, Callable[[str], int] | None]:
    """The preset of what is wanted; of what has none of its own that of its hardest part, and how
    many steps all take of a learner."""
    if of_goal := _of_goal(stated):
        return of_goal, None
    own = PRESETS.get(stated.task)
    if own is not None and reward == "offline" and not own.of_programs:
        own = None
    goal = _without_preset(stated, listed=own is None and reward == "offline")
    if goal is None or goal.formula is None:
        return own or Preset({}), None
    wanted = goal.formula
    by = {atom: achieved_by(atom, goal.card) for atom in atoms(wanted)}

    def steps(learner: str) -> int:
        """Each part of a sequence takes as long to learn as a goal of its own."""
        of = {a: EFFORTS[by[a]].run_of(learner).get("env_steps", ENV_STEPS) for a in by}
        return max(
            sum(max(of[atom] for atom in atoms(part)) for part in parts_of(one, "then"))
            for one in parts_of(wanted, "and")
        )

    return EFFORTS[max(by.values(), key=[*EFFORTS].index)], steps


def _without_preset(stated: StatedGoal, listed: bool) -> ReadGoal | None:
    """The goal, where it is no goal of the task's own, or also if it is, where it is ``listed``."""
    if stated.task.startswith(PREFIX) or not (stated.formula or stated.goal or listed):
        return None
    return None if stated.read.key and not listed else stated.read


def _of_goal(stated: StatedGoal) -> Preset | None:
    """The entry of a listed goal, which is also that of one that is the same but for its
    numbers."""
    if not any(name.startswith(f"{stated.task} ") for name in PRESETS):
        return None  # saves reading the sentence
    task, goal = stated.plain_task, stated.read
    key = goal.key
    if goal.formula is not None and not key:
        known = ((own, read_goal(task, own).formula) for own in task.goals())
        key = next((own for own, of in known if _numberless(of) == _numberless(goal.formula)), "")
    return PRESETS.get(f"{stated.task} {key}")


def _numberless(formula: Formula | None) -> Formula | None:
    """A single predicate without its numbers; any other formula as it is."""
    return replace(formula, numbers=()) if isinstance(formula, Atom) else formula
