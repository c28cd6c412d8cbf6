"""Rewards of what is seen, around anybody's own Gymnasium env or Stable-Baselines3 VecEnv.

::

    env = FrameRewardWrapper(gymnasium.make("CartPole-v1", render_mode="rgb_array"),
                     "a pole standing upright on a cart", encoder="ViT-B-32:laion2b_s34b_b79k")

    envs = make_vec_env("CartPole-v1", 8, wrapper_class=WithFrames,
                        env_kwargs={"render_mode": "rgb_array"})
    envs = FrameRewardVecWrapper(envs, "a pole standing upright on a cart", encoder=...)

The score is the formula's own, not scaled: a cosine, VLM-RM's projection (arXiv:2310.12921),
VLM-RL's contrast (arXiv:2412.15544). Of a step that ends an episode the frame before the reset is
judged, which a VecEnv's own ``get_images`` has lost by then.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

import sims
from reward_models.vision.clip_score import Caption, ClipScore, FrameEmbedder
from reward_models.vision.encoders import make_encoder
from reward_models.vision.tiny_clip import describe_scenes
from robo_rl.rewards.clip import ClipConfig, frames_segment, sentence_captions
from sims.rendering.resize import resize_frames

Array = np.ndarray

FRAME = "frame"  # of an info: what the env looked like after the step
OWN = "own_reward"  # of an info: what the env itself gave


class FrameScorer:
    """Scores how similar frames are to a sentence; ``settings`` are ClipConfig's (formula,
    baseline, ...). Raises ValueError for missing weights, words outside the CLIP's vocabulary, or a
    formula whose reference texts are missing."""

    def __init__(self, sentence: str, *, encoder: str, device: str = "cpu", **settings: Any):
        config = ClipConfig(encoder=encoder, **settings)
        if config.term:
            raise ValueError("term needs the state of the env, and this wrapper has frames only")
        self.encoder = make_encoder(encoder, device, config.dtype)
        if own := [home for home in self.encoder.homes if home.task in sims.TASKS]:
            raise ValueError(
                f"this CLIP was trained on {describe_scenes(own)} only: give "
                "encoder='MODEL:PRETRAINED' of open_clip, or 'embedded:FILE' that robo-rl reward "
                "train --captions made"
            )
        steps: list[list[Caption]] = sentence_captions(sentence, config, self.encoder.taught)
        self._model = ClipScore(
            FrameEmbedder(self.encoder),
            steps,
            formula=config.formula,
            alpha=config.alpha,
            scale=self.encoder.scale,
        )

    def __call__(self, frames: Array) -> Array:
        """(n,) f32 of frames (n, H, W, 3) uint8."""
        frames = resize_frames(np.asarray(frames), self.encoder.size, self.encoder.crops)
        caption = self._model.captions[0]
        rows, _ = self._model.embedder.embed(frames_segment(frames), False)
        return self._model.raw(caption, rows).astype(np.float32)


class WithFrames(gymnasium.Wrapper):
    """Leaves the frame after each step in its info, for FrameRewardVecWrapper."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, {**info, FRAME: _render(self.env)}


class FrameRewardWrapper(gymnasium.Wrapper):
    """An env whose reward is what a step looks like; its own is in ``info["own_reward"]``."""

    def __init__(self, env: gymnasium.Env, sentence: str, **settings: Any):
        super().__init__(env)
        self.sight = FrameScorer(sentence, **settings)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, own, terminated, truncated, info = self.env.step(action)
        reward = float(self.sight(_render(self.env)[None])[0])
        return obs, reward, terminated, truncated, {**info, OWN: own}


class FrameRewardVecWrapper(VecEnvWrapper):
    """The same for envs in WithFrames; all rows are looked at in one call."""

    def __init__(self, venv: VecEnv, sentence: str, **settings: Any):
        super().__init__(venv)
        self.sight = FrameScorer(sentence, **settings)

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> tuple[Any, Array, Array, list[dict[str, Any]]]:
        """Returns SB3's step with the rewards (N,) float32 of the frames; infos have the env's own.

        Raises:
            ValueError: the envs are not wrapped in ``WithFrames``.
        """
        obs, own, dones, infos = self.venv.step_wait()
        if any(FRAME not in info for info in infos):
            raise ValueError(
                "the envs keep no frames: make them with "
                "wrapper_class=robo_rl.rewards.gym_wrapper.WithFrames"
            )
        reward = self.sight(np.stack([info.pop(FRAME) for info in infos]))
        for info, worth in zip(infos, own, strict=True):
            info[OWN] = float(worth)
        return obs, reward, dones, infos


def _render(env: gymnasium.Env) -> Array:
    frame = env.render()
    if not isinstance(frame, np.ndarray):
        raise ValueError(
            f"{env} renders no frames (render() gave {type(frame).__name__}): make it with "
            "render_mode='rgb_array'"
        )
    return frame.copy()  # an env may render into the same array again
