"""The reward of what is seen: a CLIP's frames against captions of the sentence."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from safetensors import safe_open

import sims
from reward_models.base import Segment, TaskCard, from_dict
from reward_models.goals.formula import Atom, atoms, fill
from reward_models.goals.predicates import GRIPPER, PREDICATES, role
from reward_models.goals.text import to_sentence
from reward_models.vision.clip_score import Caption
from reward_models.vision.config import ANY_THINGS, EMBEDDED, NumberFormat
from reward_models.vision.graded_captions import expressions
from robo_rl.goals.reading import NotRead, ReadGoal, read_goal
from robo_rl.rewards.base import BuiltReward, RewardConfig, RewardRequest
from robo_rl.vision.distilled_scene import SceneConfig, load_or_distill, objects_hash, scene_env
from robo_rl.vision.state_collection import collect_frames, collect_states
from sims.core.multi_goal import ANY, ASKED, MultiGoalTask
from sims.core.task import Task
from sims.external.gymnasium_env import GymnasiumEnv

if TYPE_CHECKING:
    from reward_models.programs import Program
    from reward_models.vision.clip_score import ClipScore, FrameEmbedder, SurrogateEmbedder
    from reward_models.vision.encoders import TorchEncoder
    from reward_models.vision.multi_view import MultiViewReward
    from reward_models.vision.tiny_clip import TrainedCaptions, TrainingScene

FRAMES = "frames"  # what the reward sees
IMITATED = "simulator state, imitating a CLIP"
IN_TURN = "what is wanted in turn counts as done once it is seen"
NEVER = "what is never to be costs while it is seen"

SCALED_ON = 2048  # frames at most, that the scale of a score is measured on
SCALED_ABROAD = 512  # and in somebody else's env, which may be slow

# What else a caption can be held against: its opposite, on the same object.
OPPOSITE = {
    "touch": "far",
    "above": "far",
    "left_of": "right_of",
    "right_of": "left_of",
    "far": "touch",
    "next_to": "far",
    "on": "far",
    "inside": "far",
    "inserted": "far",
    "open": "closed",
    "closed": "open",
    "grasped": "released",
    "lifted": "released",
}


@dataclass(frozen=True, kw_only=True)
class ClipConfig(RewardConfig):
    """Settings of the CLIP reward."""

    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    # Score of a frame: its cosine with the target; the same along the line from the baseline to
    # the target; or against the negatives, by difference or softmax.
    formula: Literal["cosine", "goal_baseline", "contrast", "softmax"] = "cosine"
    alpha: float = 0.5  # goal_baseline: 0 plain cosine, 1 full projection
    # Pretrained CLIP: target texts, one wording or several; none: the goal sentence.
    target: tuple[str, ...] = ()
    # Pretrained CLIP: baseline texts that describe the scene in any state, for goal_baseline.
    baseline: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()  # pretrained CLIP: negative texts, for contrast and softmax
    # Factor from 0 to 1 of each step's reward, for what no frame shows: "exp(-norm(qvel))".
    term: str = ""
    # Cameras; with several, an object hidden from one is scored by another. None: the first camera
    # that the encoder was trained on.
    camera: tuple[str, ...] = ()
    distill: bool = False  # score state with a distilled model; else render every step
    arm_aside: bool = True  # distilled: score captions of two objects without the arm
    scene: SceneConfig = field(default_factory=SceneConfig)

    def __post_init__(self) -> None:
        for name in ("target", "baseline", "camera"):
            if isinstance(given := getattr(self, name), str):  # one wording is no tuple of letters
                object.__setattr__(self, name, (given,) if given else ())
        if self.distill and len(self.camera) > 1:
            raise ValueError(
                f"distill makes a copy of what one camera sees, got {', '.join(self.camera)}: it "
                "puts the arm aside, so nothing is hidden from one; give one camera"
            )
        against = self.formula in ("contrast", "softmax")
        for name, counts, of in (
            ("baseline", self.formula != "cosine", "goal_baseline, contrast and softmax"),
            ("negatives", against, "contrast and softmax"),
            ("alpha", self.formula == "goal_baseline", "goal_baseline"),
        ):
            if getattr(self, name) != getattr(ClipConfig, name) and not counts:
                raise ValueError(f"{name} applies to --clip.formula {of}, got {self.formula}")


def captions_of(goal: ReadGoal, raw: bool) -> list[list[Caption]]:
    """The plan's captions; ``raw`` gives the last step the person's own words (pretrained CLIP),
    which of a sequence no frame shows.

    ValueError for what one frame does not show.
    """
    plan = goal.plan
    if raw and plan.shunned:
        raise ValueError(
            "a pretrained CLIP has no calibrated probability for prohibitions; use the embedded one"
        )
    steps = [
        [_caption(atom, goal.card, part=number) for atom in step]
        for number, step in zip(plan.parts, plan.steps, strict=True)
    ]
    if raw and not plan.parts[-1] and len([*atoms(goal.formula)]) == 1:
        steps[-1][0] = replace(steps[-1][0], text=goal.text)
    never = [[_caption(_usual(atom), goal.card, shunned=True)] for atom in plan.shunned]
    return [*never, *steps]


def _usual(atom: Atom) -> Atom:
    """What is to be avoided as captions say it, by the usual number: 2 cm off is touched, though
    the judge minds 4 mm alone."""
    avoid = {number.name: number.avoid for number in PREDICATES[atom.predicate].numbers}
    explicit = tuple((name, value) for name, value in atom.numbers if value != avoid[name])
    return replace(atom, numbers=explicit)


def _caption(atom: Atom, card: TaskCard, **more: Any) -> Caption:
    opposite = OPPOSITE.get(atom.predicate, "")
    about_gripper = card.entity(str(atom.subject)).kind == "gripper"
    if not about_gripper and opposite == "touch":
        opposite = "next_to"
    other = replace(atom, predicate=opposite, numbers=()) if opposite else None
    # Where two things are does not hang on the arm, that may hide them.
    arm_free = not about_gripper and PREDICATES[atom.predicate].level
    against = (to_sentence(other, card),) if other else ()
    return Caption(to_sentence(fill(atom, card), card), against, against, arm_free=arm_free, **more)


def captions_for(encoder: TorchEncoder, goal: ReadGoal, config: ClipConfig) -> list[list[Caption]]:
    """The captions by which an encoder is asked for a goal: of a plan as far as the encoder was
    taught their words, else the sentence itself; ValueError where it was taught neither."""
    from_goal = not (config.target or config.baseline or config.negatives)
    trained = encoder.taught
    with contextlib.suppress(ValueError):  # it was not read: then its words are all there is
        steps = captions_of(goal, raw=not trained) if from_goal else []
        if steps and all(c.text in trained for s in steps for c in s):
            return [[_as_known(c, trained) for c in step] for step in steps]
    try:
        return sentence_captions(goal.text, config, trained)
    except ValueError as error:
        if goal.refusal:
            raise NotRead(goal, f"{error}. ") from None
        program = " Or give --reward offline, a program of the state that needs no CLIP."
        raise ValueError(f"{error}.{program if goal.formula else ''}") from None


def text_row(encoder: TorchEncoder, goal: ReadGoal) -> np.ndarray:
    """The unit row (D,) of what a goal's last step is called, the mean where that is several."""
    texts = tuple(caption.text for caption in captions_for(encoder, goal, ClipConfig())[-1])
    mean = encoder.encode_texts(texts).mean(axis=0)
    return mean / np.linalg.norm(mean)


def shipped_clip_knows(task: Task[Any], captions: Sequence[str]) -> bool:
    """Whether the CLIP inside the package was trained on a task's scene and on all ``captions``; no
    torch is imported for that."""
    with safe_open(EMBEDDED, "np") as file:
        meta = file.metadata()
    scenes = {(home["task"], home["robot"]) for home in json.loads(meta["homes"])}
    here = task.name, getattr(task, "robot", "")
    return here in scenes and set(captions) <= set(json.loads(meta["captions"]))


def _as_known(caption: Caption, trained: TrainedCaptions) -> Caption:
    """The caption, held against nothing that an encoder was not taught."""
    if all(text in trained for text in caption.baseline):
        return caption
    return replace(caption, baseline=(), negatives=())


def sentence_captions(
    sentence: str, config: ClipConfig, trained: TrainedCaptions | None = None
) -> list[list[Caption]]:
    """One step with one caption, the sentence or what the config says in its place.

    ValueError where the formula lacks what it holds it against, or where the CLIP was ``trained``
    other captions.
    """
    text, *further = config.target or (sentence,)
    against = config.negatives or config.baseline
    caption = Caption(text, config.baseline, against, tuple(further))
    needed = {"goal_baseline": "baseline", "contrast": "negatives", "softmax": "negatives"}
    option = needed.get(config.formula, "")
    if option and not getattr(caption, option):
        raise ValueError(
            f"--clip.formula {config.formula} compares {caption.text!r} with other texts: give "
            f"--clip.{option} TEXT"
        )
    for text in (caption.text, *further, *against):
        if trained is not None and text not in trained:
            near = difflib.get_close_matches(text, trained, 5, 0.0)
            raise ValueError(
                f"this CLIP was not trained on {text!r}; the most similar of its "
                f"{len(trained)} captions: {'; '.join(near)}. Train one with `robo-rl reward train "
                f"... --goals {text!r}`, or with a --captions FILE of your own, where a frame "
                "shows it"
            )
    return [[caption]]


def build(request: RewardRequest) -> BuiltReward:
    """A ClipScore on frames, or on the scene's distilled encoder; of several goals at once, one of
    each."""
    encoder = encoder_of(request)
    task = getattr(request.env, "task", None)
    if isinstance(task, MultiGoalTask):
        return _each_goal(request, encoder, task)
    steps = captions_for(encoder, request.goal, request.settings)
    [model], made = scores(request, encoder, [steps])
    for used, how in ((steps[-1][0].part, IN_TURN), (steps[0][0].shunned, NEVER)):
        if used:
            made = replace(made, sees=f"{made.sees}; {how}")
    return replace(made, model=model, text=describe_captions(steps))


def _each_goal(request: RewardRequest, encoder: TorchEncoder, task: MultiGoalTask) -> BuiltReward:
    from reward_models.vision.goal_conditioned import GoalConditionedReward

    if request.settings.target:
        raise ValueError(f"{request.option}target needs one goal, got --goal {ANY}")
    goals = [read_goal(task.inner, goal.sentence) for goal in task.each]
    plans = [captions_for(encoder, goal, request.settings) for goal in goals]
    if any(plan[-1][0].part for plan in plans):
        raise ValueError(f"--goal {ANY} does not support sequences of goals: give one goal")
    models, made = scores(request, encoder, plans)
    return replace(
        made,
        model=GoalConditionedReward(models, ASKED),
        text="; ".join(map(describe_captions, plans)),
    )


def describe_captions(steps: Sequence[Sequence[Caption]]) -> str:
    """A plan's captions in one line: what is never to be, then its steps."""
    never = "".join(f"never {c.text}; " for step in steps for c in step if c.shunned)
    wanted = [step for step in steps if not step[0].shunned]
    return never + " -> ".join(" and ".join(c.text for c in step) for step in wanted)


def encoder_of(request: RewardRequest) -> TorchEncoder:
    """The encoder that was asked for; ValueError where it knows another scene alone."""
    from reward_models.vision.encoders import make_encoder

    encoder = make_encoder(request.settings.encoder, request.device, request.settings.dtype)
    cameras = getattr(request.settings, "camera", "")
    one = cameras if isinstance(cameras, str) else next(iter(cameras), "")
    _select_camera(encoder, request, one)
    return encoder


def _select_camera(encoder: TorchEncoder, request: RewardRequest, camera: str) -> None:
    task = request.env if isinstance(request.env, GymnasiumEnv) else request.env.task
    select_training_scene(encoder, task, f"{request.option}encoder", camera)


def scores(
    request: RewardRequest, encoder: TorchEncoder, plans: Sequence[Sequence[Sequence[Caption]]]
) -> tuple[list[ClipScore] | list[MultiViewReward], BuiltReward]:
    """(a calibrated score of each plan's captions, what making them cost): all look through one
    embedder for each camera, and what it was last shown it sees but once."""
    from reward_models.vision.clip_score import CachedEmbedder, ClipScore
    from reward_models.vision.multi_view import MultiViewReward

    config = request.settings
    options: dict[str, Any] = {
        "formula": config.formula,
        "alpha": config.alpha,
        "scale": encoder.scale,
        "bias": encoder.bias,
        "term": _term(request),
    }
    views, costs = [], []
    for one in _each_camera(request, encoder):
        embedder, frames_seen, made = _embedder(request, one)
        shared = CachedEmbedder(embedder) if len(plans) > 1 else embedder  # what it saw, it keeps
        views.append([ClipScore(shared, plan, **options) for plan in plans])
        costs.append(made)
        for model in views[-1]:
            model.calibrate(frames_seen)
    models, made = views[0], costs[0]
    if len(views) > 1:
        cameras = [one.camera for one in costs]
        made.about["camera"] = ", ".join(cameras)
        made.frames = sum(one.frames for one in costs)
        made.sees += f"; of {' and '.join(cameras)}, as the one that sees least of it"
        models = [MultiViewReward(of) for of in zip(*views, strict=True)]
    if config.term:
        made.sees += f"; times a term of the state, {config.term}"
    return models, made


def _each_camera(request: RewardRequest, encoder: TorchEncoder) -> list[TorchEncoder]:
    """The encoder as it looks through each camera that was asked for."""
    others = [copy(encoder) for _ in request.settings.camera[1:]]
    for one, camera in zip(others, request.settings.camera[1:], strict=True):
        _select_camera(one, request, camera)
    return [encoder, *others]


def _embedder(
    request: RewardRequest, encoder: TorchEncoder
) -> tuple[FrameEmbedder | SurrogateEmbedder, Segment, BuiltReward]:
    """(what looks through one camera, states to measure the scale of a score on, what both
    cost)."""
    from reward_models.vision.clip_score import FrameEmbedder, SurrogateEmbedder

    config, env = request.settings, request.env
    about = {"encoder": encoder.name, "camera": encoder.camera, "dtype": encoder.dtype_name}
    if not config.distill:
        frames = sample_frames(request, encoder, config.scene)
        made = BuiltReward(None, "", FRAMES, None, len(frames), about=about, camera=encoder.camera)
        return FrameEmbedder(encoder), frames_segment(frames), made
    if isinstance(env, GymnasiumEnv):
        raise ValueError(
            f"--clip.distill needs task signals, and {env.name} has none: leave it out"
        )
    scene = load_or_distill(
        env.task, encoder, config.scene, request.progress, num_threads=env.num_threads
    )
    aside = scene.aside if config.arm_aside else {}
    made = BuiltReward(None, "", IMITATED, scene, int(scene.report["frames"]), about=about)
    return SurrogateEmbedder(scene.surrogate, encoder, aside), scene.segment(), made


def _term(request: RewardRequest) -> Program | None:
    """Returns the program that scales the score; ValueError where it cannot be parsed."""
    if not (text := request.settings.term):
        return None
    try:
        program = expressions([text], request.goal.card, step=True)
    except ValueError as error:
        raise ValueError(f"{request.option}term {text!r}: {error}") from None
    if program.lowered.remembers:
        raise ValueError(f"{request.option}term {text!r} must use the current step only")
    return program


def sample_frames(request: RewardRequest, encoder: TorchEncoder, scene: SceneConfig) -> np.ndarray:
    """Returns frames (M, H, W, 3) on which the scale of a score is measured: of random starts and
    random actions; of an external env, of random actions only."""
    env = request.env
    if isinstance(env, GymnasiumEnv):
        request.progress("scale", 0.0)
        env.frame_size, env.frame_crop = (
            encoder.size,
            encoder.crops,
        )  # as the policy's rows will be drawn
        return collect_frames(env, SCALED_ABROAD, scene.seed)[0]
    with scene_env(env.task, scene, env.num_threads) as drawn:
        drawn.render_states(drawn.state()[:1], encoder.camera)  # who cannot draw hears at once
        states, _ = collect_states(drawn, min(SCALED_ON, scene.frames), scene.seed, scene.rollouts)
        request.progress("scale", 0.0)
        return drawn.render_states(states, encoder.camera, size=encoder.size)


def frames_segment(frames: np.ndarray) -> Segment:
    """A Segment of one transition per frame (M, H, W, 3), which is its successor's."""
    rows = len(frames)
    valid = np.ones((1, rows), bool)
    return Segment({}, lambda camera, where: frames[where[1]], np.zeros((1, rows, 0)), valid)


def select_training_scene(
    encoder: TorchEncoder,
    task: Task[Any] | GymnasiumEnv,
    option: str = "--clip.encoder",
    camera: str = "",
) -> None:
    """Has an encoder look through ``camera``: empty, through the first that it knows of a task's
    scene, or the task's first where it was trained on anything.

    ValueError where it knows other scenes alone, or not that camera. ``option`` is how a person
    gives an encoder.
    """
    from reward_models.vision.tiny_clip import TrainingScene, describe_scenes

    training = option == "--clip.encoder"  # of `train`, which has other rewards
    instead = "; --reward task, offline and code:FILE need no CLIP" if training else ""
    homes, robot = encoder.homes, getattr(task, "robot", "")
    if isinstance(task, GymnasiumEnv):
        known = task.cameras
        if homes and all(home.task != task.name for home in homes):
            raise ValueError(
                f"this CLIP was trained on {describe_scenes(homes)} and knows no other scene; "
                f"here is "
                f"{task.name}. Give {option} MODEL:PRETRAINED, any model of open_clip "
                "(ViT-B-32:laion2b_s34b_b79k, or a local file after the colon), or train one: "
                f"robo-rl reward train --task {task.name} --captions FILE.toml --out "
                f"FILE.safetensors, then {option} embedded:FILE.safetensors{instead}"
            )
    elif not homes:
        known = tuple(view.name for view in task.cameras)
    else:
        known = tuple(home.camera for home in _matching_scenes(encoder, task))
        if not known:
            made_of = task.unwrapped.card()["params"]
            scene_options = f" --robot {robot}" if robot else ""
            scene_options += f" --things {made_of['things']!r}" if made_of.get("things") else ""
            scene_options += " --scene FILE.xml" if made_of.get("scene") else ""
            raise ValueError(
                f"this CLIP was trained on {describe_scenes(homes)} and knows no other scene; "
                f"here is "
                f"{TrainingScene(task.name, robot, '', objects_hash(task)).place}"
                f"{f' with the {robot}' if robot else ''}. Train one for it: robo-rl "
                f"reward train --task {task.name}{scene_options} --out FILE.safetensors, then give "
                f"{option} embedded:FILE.safetensors{instead}"
            )
    if camera and camera not in known:
        raise ValueError(
            f"of {task.name} this CLIP knows the cameras {', '.join(known)}, not {camera!r}"
        )
    encoder.camera = camera or known[0]


def _matching_scenes(encoder: TorchEncoder, task: Task[Any]) -> list[TrainingScene]:
    """The homes of an encoder whose scene is that of ``task``, to the last geom and camera."""
    here = [home for home in encoder.homes if home.robot == getattr(task, "robot", "")]
    own = (task.name, objects_hash(task))
    if by_name := [home for home in here if (home.task, home.things) == own]:
        return by_name
    anywhere = [home for home in here if (home.task, home.things) == (task.name, ANY_THINGS)]
    if anywhere and _plainly_called(task) <= encoder.taught.names:
        return anywhere
    usual = [home for home in here if home.task in sims.TASKS and not home.things]
    for name in dict.fromkeys(home.task for home in usual):
        other = sims.make_task(name, robot=here[0].robot or None)
        if _scene(other) == _scene(task):
            return [home for home in usual if home.task == name]
    return []


def _plainly_called(task: Task[Any]) -> set[str]:
    """Returns the names of the objects present, ``red cube``; an object without colour and shape
    has its own name."""
    entities = [e for e in from_dict(task.card()).entities if role(e) != GRIPPER]
    plain = {f"{e.colour}_{e.kind}": f"{e.colour} {e.kind}" for e in entities}
    return {plain.get(e.name, e.name) for e in entities}


def _scene(task: Task[Any]) -> str:
    spec = task.spec()
    spec.compile()
    return spec.to_xml()
