"""Rewards that were learned from episodes: opened, held against this scene and goal, and used."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reward_models.vision.config import HeadConfig, NumberFormat
from robo_rl.labelling.queries import QUICK, OnlineQueries, ScriptedLabeller
from robo_rl.rewards.base import BuiltReward, RewardConfig, RewardRequest
from robo_rl.rewards.clip import select_training_scene, text_row
from robo_rl.vision.distilled_scene import objects_hash
from sims.external.gymnasium_env import GymnasiumEnv

if TYPE_CHECKING:
    from reward_models.scorers.embedding_reward import EmbeddingReward
    from reward_models.scorers.heads import Head
    from reward_models.vision.encoders import TorchEncoder


PAIRS = ("first", "second", "answer")  # what a file of preferences has of them


@dataclass(frozen=True, kw_only=True)
class LearnedConfig(RewardConfig):
    """Settings of a learned scorer."""

    encoder: str = "embedded"  # must be the encoder it was trained with
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    elsewhere: bool = False  # allow another scene or goal than in training


@dataclass(frozen=True, kw_only=True)
class SuccessConfig(LearnedConfig):
    """Settings of a success classifier as a reward."""

    form: Literal["sparse", "probability"] = "sparse"  # 0 or 1 by threshold; or the probability


@dataclass(frozen=True, kw_only=True)
class PreferencesConfig(LearnedConfig):
    """Settings of a reward learned from preferences, and of queries during training."""

    answers: int = 0  # online answers of a scripted oracle; 0: none
    noise: float = 0.2  # share of flipped answers
    a_time: int = 40  # answers between two fits
    every: int = 2  # rollouts between queries
    head: HeadConfig = field(default_factory=lambda: QUICK)  # of the refitted networks


def success(request: RewardRequest) -> BuiltReward:
    """A SuccessClassifier from its file."""
    from reward_models.scorers.success import SuccessClassifier

    [head], card, encoder, _ = load_scorer_file(request, "success")
    figures = card["figures"]
    model = SuccessClassifier(
        encoder, head, figures["threshold"], figures["consecutive"], request.settings.form
    )
    return built_reward(request, model, card, "a success classifier")


def progress(request: RewardRequest) -> BuiltReward:
    """A Progress from its file."""
    from reward_models.scorers.progress import Progress

    [head], card, encoder, _ = load_scorer_file(request, "progress")
    return built_reward(request, Progress(encoder, head), card, "a model of progress")


def critic(request: RewardRequest) -> BuiltReward:
    """A Critic from its file."""
    from reward_models.scorers.critic import Critic

    [head], card, encoder, _ = load_scorer_file(request, "critic")
    scale = (card["figures"][name] for name in ("low", "high"))
    return built_reward(request, Critic(encoder, head, *scale), card, "a critic of films")


def value(request: RewardRequest) -> BuiltReward:
    """A Value from its file, of the sentence that is asked for."""
    from reward_models.scorers.value import Likeness, Value

    both, card, encoder, _ = load_scorer_file(request, "value")
    likeness = Likeness(*both, text_row(encoder, request.goal)[None], encoder.scale)
    scale = (card["figures"][name] for name in ("low", "high"))
    return built_reward(
        request, Value(encoder, likeness, *scale), card, "a value of frames for the sentence"
    )


def preferences(request: RewardRequest) -> BuiltReward:
    """Loads a reward learned from preferences, and its labeller if queries continue."""
    from reward_models.scorers.preferences import PreferencePairs, Preferences

    config = request.settings
    heads, card, encoder, arrays = load_scorer_file(request, "preferences", PAIRS, ("turn",))
    model = Preferences(encoder, heads)
    reward = built_reward(request, model, card, "a reward of preferences")
    if config.answers:
        model.keeps = True  # all that was seen is judged again after each refit
        rng = np.random.default_rng([config.head.seed, 2])
        oracle = ScriptedLabeller(config.noise, 0.0, rng)
        pairs = PreferencePairs(
            *(arrays[name].astype(np.float32) for name in PAIRS), arrays.get("turn")
        )
        reward.asks = OnlineQueries(
            model,
            request.env,
            pairs,
            oracle,
            config.head,
            config.answers,
            config.every,
            config.a_time,
        )
        reward.sees += f"; and, while it learns, from {config.answers} more of {oracle}"
    return reward


def load_scorer_file(
    request: RewardRequest, kind: str, arrays: tuple[str, ...] = (), beside: tuple[str, ...] = ()
) -> tuple[list[Head], dict[str, Any], TorchEncoder, dict[str, np.ndarray]]:
    """(heads, card, encoder, ``arrays`` and what there is of those ``beside``) of the scorer that
    was asked for; ValueError where it reads another encoder's embeddings, or learned another scene
    or goal than that of the run and is not to be used ``elsewhere``."""
    from reward_models.scorers.heads import load_scorer
    from reward_models.vision.encoders import make_encoder

    path, env = Path(request.argument), request.env
    heads, card, arrays_read = load_scorer(path, kind, arrays, beside)
    if isinstance(env, GymnasiumEnv):
        raise ValueError(
            f"{path} was trained for {_scene_text(card['scene'])}; {env.name} has no "
            "success judge: use --reward goal-image:FILE or clip"
        )
    robot, key = getattr(env.task, "robot", ""), request.goal.key
    here, scene = {"task": env.task.name, "robot": robot, "truth": key}, card["scene"]
    here["things"] = objects_hash(env.task)
    other = any(scene.get(name, "") != value for name, value in here.items())
    if other and not request.settings.elsewhere:
        arm = f" --robot {robot}" if robot else ""
        named = key if key in env.task.goals() else "KEY"
        raise ValueError(
            f"{path} was trained for {_scene_text(scene)}, got {_scene_text(here)}. Train one for "
            f"that: robo-rl "
            f"reward train {kind} --task {env.task.name}{arm} --goal {named} "
            f"--out FILE.safetensors; or use it anyway: --{kind}.elsewhere (of reward "
            "report: --elsewhere)"
        )
    encoder = make_encoder(request.settings.encoder, request.device, request.settings.dtype)
    if encoder.name != card["encoder"]:
        raise ValueError(
            f"{path} reads embeddings of {card['encoder']}, --{kind}.encoder "
            f"{request.settings.encoder} is {encoder.name}: give the one it was trained with, or "
            f"train it again: {card['command']}"
        )
    if other:
        select_training_scene(encoder, env.task, f"{request.option}encoder")
        card = card | {"learned_from": f"{card['learned_from']}; all for {_scene_text(scene)}"}
    encoder.camera = scene["camera"]
    return heads, card, encoder, arrays_read


def built_reward(
    request: RewardRequest, model: EmbeddingReward, card: dict[str, Any], what: str
) -> BuiltReward:
    """Returns the reward with its description."""
    encoder = model.encoder
    return BuiltReward(
        model,
        f"{what} in {Path(request.argument).name}",
        f"frames, by {what} that learned from {card['learned_from']}",
        about={
            "encoder": encoder.name,
            "camera": encoder.camera,
            "dtype": encoder.dtype_name,
            "learned_from": card["learned_from"],
            "command": card["command"],
        },
        camera=encoder.camera,
    )


def _scene_text(scene: dict[str, str]) -> str:
    arm = f" with the {scene['robot']}" if scene["robot"] else ""
    return f"{scene['truth'] or 'a goal that nobody judges'} in {scene['task']}{arm}"
