"""Rewards by name: the task's own, a CLIP that reads the frames, or a program from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reward_models.base import RewardModel, TaskCard
from reward_models.combine import Constant
from reward_models.goals.captions import caption
from reward_models.goals.formula import Atom
from reward_models.programs import Program, ProgramReward, Refused, errors, load
from reward_models.visual.clip_score import FORMULAS, Caption
from reward_models.writers.offline import write
from robo_rl.goals import ReadGoal
from robo_rl.preflight import Job, preflight
from robo_rl.visual.scene import Scene, SceneConfig, distilled, signals_segment
from sims.batch_env import BatchEnv

__all__ = ["FORMULAS", "REWARDS", "ClipConfig", "MadeReward", "make_reward"]

REWARDS = {
    "clip": "similarity of rendered frames to the sentence, by a CLIP",
    "task": "the task's own hand-written dense reward (the ceiling to compare with)",
    "code:FILE": "a program in the reward language, checked first (`robo-rl reward check`)",
    "offline": "a program written from the sentence by templates (`robo-rl reward write`)",
    "constant": "the same reward everywhere (the control that teaches nothing)",
}

CODE = "code:"

# What else a caption can be held against: its opposite, on the same object.
OPPOSITE = {
    "touch": "far", "above": "far", "left_of": "right_of", "right_of": "left_of",
    "far": "touch", "next_to": "far",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ClipConfig:
    """How the CLIP reward is made."""

    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    formula: Literal["cosine", "goal_baseline", "contrast", "softmax"] = "cosine"
    alpha: float = 0.5  # of goal_baseline: 0 plain cosine, 1 only the line to the goal counts
    distill: bool = True  # score states by the distilled encoder; False: render every step
    arm_aside: bool = True  # score captions about two objects with the arm put aside (distilled)
    scene: SceneConfig = field(default_factory=SceneConfig)


@dataclass
class MadeReward:
    """A reward model and what making it cost."""

    model: RewardModel | None  # None: the task's own reward
    text: str  # the captions, for people and for the bundle
    scene: Scene | None = None
    frames: int = 0  # rendered to make it
    program: Program | None = None  # what `code:FILE` holds


def captions_of(goal: ReadGoal, raw: bool) -> list[list[Caption]]:
    """The plan's captions; ``raw`` gives the last step the person's own words (pretrained CLIP)."""
    steps = []
    for atoms in goal.plan.steps:
        step = []
        for atom in atoms:
            other = Atom.of(OPPOSITE[atom.predicate], atom.subject, atom.object)
            about_gripper = goal.card.entity(atom.subject).kind == "gripper"
            if not about_gripper and other.predicate == "touch":
                other = Atom.of("next_to", atom.subject, atom.object)
            text = caption(other, goal.card)
            step.append(Caption(caption(atom, goal.card), text, (text,), not about_gripper))
        steps.append(step)
    if raw and len(steps[-1]) == 1:
        last = steps[-1][0]
        steps[-1] = [Caption(goal.text, last.baseline, last.negatives, last.arm_free)]
    return steps


def make_reward(
    name: str,
    goal: ReadGoal,
    env: BatchEnv,
    config: ClipConfig | None = None,
    *,
    device: str = "cpu",
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> MadeReward:
    """The reward called ``name`` for a goal on an env; ValueError lists the known names."""
    if name == "task":
        if not goal.key:
            raise ValueError(f"--reward task needs a goal the task knows: {goal.truth}")
        return MadeReward(None, f"hand-written dense reward of {goal.key}")
    if name == "constant":
        return MadeReward(Constant(), "constant 0")
    if name == "offline":
        if goal.formula is None:
            raise ValueError(goal.refusal)
        program = load(f"# {goal.text}\n{write(goal.formula, goal.card)}", goal.card)
        model = ProgramReward(program, episode_steps=env.max_steps)
        return MadeReward(model, program.text, program=program)
    if name.startswith(CODE):
        program = checked_program(Path(name.removeprefix(CODE)), goal.card)
        model = ProgramReward(program, episode_steps=env.max_steps)
        return MadeReward(model, program.text, program=program)
    if name != "clip":
        raise ValueError(f"unknown reward {name!r}; known rewards: {', '.join(REWARDS)}")
    return _clip(goal, env, config or ClipConfig(), device, progress)


def checked_program(path: Path, card: TaskCard) -> Program:
    """The program in a file, read and run on probes; ValueError names the file and the findings."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text: {error}") from None
    try:
        program = load(text, card)
    except Refused as refused:
        raise ValueError(f"{path} is refused: {refused}") from None
    [found] = preflight([Job(text)], card)
    if errors(found):
        raise ValueError(f"{path} is refused: {'; '.join(map(str, found))}")
    return program


def _clip(
    goal: ReadGoal,
    env: BatchEnv,
    config: ClipConfig,
    device: str,
    progress: Callable[[str, float], None],
) -> MadeReward:
    from reward_models.visual.clip_score import ClipScore, FrameEmbedder, SurrogateEmbedder
    from reward_models.visual.encoders import make_encoder
    from robo_rl.visual.data import collect

    pretrained = not config.encoder.startswith("embedded")
    steps = captions_of(goal, raw=pretrained)
    encoder = make_encoder(config.encoder, device)
    options = {"formula": config.formula, "alpha": config.alpha, "scale": encoder.scale}
    text = " -> ".join(" and ".join(c.text for c in step) for step in steps)
    if config.distill:
        scene = distilled(env, encoder, config.scene, progress)
        aside = scene.aside if config.arm_aside else {}
        model = ClipScore(SurrogateEmbedder(scene.surrogate, encoder, aside), steps, **options)
        model.calibrate(scene.segment())
        return MadeReward(model, text, scene, int(scene.report["frames"]))
    model = ClipScore(FrameEmbedder(encoder), steps, **options)
    states, signals = collect(env, 1024, config.scene.seed, config.scene.rollouts)
    segment = signals_segment(signals)
    frames = env.render_states(states, encoder.camera)
    segment = type(segment)(
        segment.signals, lambda camera, where: frames, segment.action, segment.valid
    )
    model.calibrate(segment)
    return MadeReward(model, text, None, len(frames))
