"""Rewards that were learned from episodes: opened, held against this scene and goal, and used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from robo_rl.rewards.base import Asked, MadeReward, RewardConfig
from sims.foreign import ForeignEnv

if TYPE_CHECKING:
    from reward_models.visual.encoders import TorchEncoder
    from reward_models.visual.heads import Head
    from reward_models.visual.seen import Seen


@dataclass(frozen=True, kw_only=True)
class LearnedConfig(RewardConfig):
    """How a learned scorer is used."""

    encoder: str = "embedded"  # the one it was trained with; another is refused


@dataclass(frozen=True, kw_only=True)
class SuccessConfig(LearnedConfig):
    """How a success classifier is used."""

    form: Literal["sparse", "probability"] = "sparse"  # 1 where it is sure, else 0; or how sure


def success(asked: Asked) -> MadeReward:
    """A SuccessClassifier from its file."""
    from reward_models.visual.success import SuccessClassifier

    [head], card, encoder = opened(asked, "success")
    figures = card["figures"]
    model = SuccessClassifier(
        encoder, head, figures["threshold"], figures["consecutive"], asked.settings.form
    )
    return made(asked, model, card, "a success classifier")


def progress(asked: Asked) -> MadeReward:
    """A Progress from its file."""
    from reward_models.visual.progress import Progress

    [head], card, encoder = opened(asked, "progress")
    return made(asked, Progress(encoder, head), card, "a model of progress")


def opened(asked: Asked, kind: str) -> tuple[list[Head], dict[str, Any], TorchEncoder]:
    """(heads, card, encoder) of the scorer that was asked for; ValueError where it reads another
    encoder's embeddings, or learned another scene or goal than that of the run."""
    from reward_models.visual.encoders import make_encoder
    from reward_models.visual.heads import load_scorer

    path, env = Path(asked.argument), asked.env
    heads, card = load_scorer(path, kind)
    if isinstance(env, ForeignEnv):
        raise ValueError(
            f"{path} learned {_said(card['scene'])}; here is {env.name}, where nobody can say when "
            "a goal is met: use --reward goal-image:FILE or clip"
        )
    robot, key = getattr(env.task, "robot", ""), asked.goal.key
    here, scene = {"task": env.task.name, "robot": robot, "truth": key}, card["scene"]
    if any(scene[name] != value for name, value in here.items()):
        arm = f" --robot {robot}" if robot else ""
        raise ValueError(
            f"{path} learned {_said(scene)}; asked is {_said(here)}. Train one for that: robo-rl "
            f"reward train {kind} --task {env.task.name}{arm} --goal {key or 'KEY'} "
            "--out FILE.safetensors"
        )
    encoder = make_encoder(asked.settings.encoder, asked.device, asked.dtype)
    if encoder.name != card["encoder"]:
        raise ValueError(
            f"{path} reads embeddings of {card['encoder']}, --{kind}.encoder "
            f"{asked.settings.encoder} is {encoder.name}: give the one it was trained with, or "
            f"train it anew: {card['command']}"
        )
    encoder.camera = scene["camera"]
    return heads, card, encoder


def made(asked: Asked, model: Seen, card: dict[str, Any], what: str) -> MadeReward:
    """The reward, and what is said of it."""
    encoder = model.encoder
    return MadeReward(
        model,
        f"{what} in {Path(asked.argument).name}",
        f"frames, by {what} that learned from {card['learned_from']}",
        about={"encoder": encoder.name, "camera": encoder.camera, "dtype": encoder.dtype_name,
               "learned_from": card["learned_from"], "command": card["command"]},
        camera=encoder.camera,
    )  # fmt: skip


def _said(scene: dict[str, str]) -> str:
    arm = f" with the {scene['robot']}" if scene["robot"] else ""
    return f"{scene['truth'] or 'a goal that nobody judges'} in {scene['task']}{arm}"
