"""The reward of a goal picture: how like it the policy's frames are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reward_models.vision.config import NumberFormat
from robo_rl.rewards.base import BuiltReward, RewardConfig, RewardRequest
from robo_rl.rewards.clip import frames_segment, sample_frames, select_training_scene
from robo_rl.runs.run_dir import read_json
from robo_rl.runs.video import IMAGES, read_frames
from robo_rl.vision.distilled_scene import SceneConfig
from sims.external.gymnasium_env import GymnasiumEnv

Array = np.ndarray

MAKE = "make one: robo-rl reward picture --task TASK --goal KEY --out goal.png"


@dataclass(frozen=True, kw_only=True)
class GoalImageConfig(RewardConfig):
    """Settings of the similarity to a goal picture."""

    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    formula: Literal["cosine", "distance"] = "cosine"  # LIV or VIP


def build(request: RewardRequest) -> BuiltReward:
    """A GoalImage, scaled by frames of the scene's scattered and random states."""
    from reward_models.scorers.goal_image import GoalImage
    from reward_models.vision.encoders import make_encoder

    config, env, path = request.settings, request.env, Path(request.argument)
    pictures, about = read_pictures(path)
    encoder = make_encoder(config.encoder, request.device, config.dtype)
    task = env if isinstance(env, GymnasiumEnv) else env.task
    select_training_scene(encoder, task, f"{request.option}encoder")
    goals = np.concatenate([encoder.encode(picture[None]) for picture in pictures])
    model = GoalImage(encoder, goals, config.formula)
    frames = sample_frames(request, encoder, SceneConfig())
    model.calibrate(frames_segment(frames))
    count = f"{len(pictures)} goal picture{'s' if len(pictures) > 1 else ''}"
    states = about.get("states", "no metadata: source unknown")
    return BuiltReward(
        model,
        f"likeness to {count} in {path.name}",
        f"frames, beside {count} ({states})",
        frames=len(frames),
        about={
            "encoder": encoder.name,
            "camera": encoder.camera,
            "dtype": encoder.dtype_name,
            "pictures": str(len(pictures)),
            "pictures_of": states,
        },
        camera=encoder.camera,
    )


def read_pictures(path: Path) -> tuple[list[Array], dict[str, Any]]:
    """Pictures (H, W, 3) uint8 and their card, {} without one: of a picture's file, all those of a
    folder, or the last frame of a film; ValueError where there is none."""
    import cv2

    if not path.exists():
        raise ValueError(f"goal picture {path} does not exist; {MAKE}")
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if f.suffix.lower() in IMAGES)
    else:
        files = [path]
    pictures = []
    for file in files:
        picture = cv2.imread(str(file))
        if picture is not None:
            pictures.append(np.ascontiguousarray(picture[..., ::-1]))
        elif file.suffix.lower() in IMAGES:
            raise ValueError(f"cannot read {file} as a picture; {MAKE}")
        else:
            pictures.append(read_frames(file)[0][-1])
    if not pictures:
        raise ValueError(f"{path} holds no {', '.join(IMAGES)}; {MAKE}")
    card = card_of(path)
    return pictures, read_json(card) if card.exists() else {}


def card_of(path: Path) -> Path:
    """Returns the card of the pictures at ``path``: beside a picture, within a folder."""
    return path / "card.json" if path.is_dir() else path.with_suffix(".json")
