"""The reward of a film: nothing until an episode is over, then how like its film is to one
demonstration's, or to the sentence (RoboCLIP, arXiv:2310.07899).

Of k frames spread evenly over the episode, the first and the last among them, unit rows x_1 .. x_k:

- ``mean``: m . d of their mean and the demonstration's, both unit rows: what was to be seen, but
  not in which order. A sentence's row takes the place of d.
- ``ordered``: the mean of x_i . d_i: each frame beside the demonstration's at the same share of its
  time.

RoboCLIP's encoder (S3D) sees motion; a CLIP sees single frames, and this is all that it says of a
film. The score becomes phi (``reward_models/vision/clip_score.py``) by its quantiles over films
that stand still at the scene's scattered and random states. Nothing of an episode is remembered: a
step's score reaches back over the states that the trace keeps, one episode a row, and k of them are
drawn at its end.

It fails where what one film shows is not what was asked: things lie elsewhere in each episode, and
a film shows where they lay. And one number an episode says little of what in it was good.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from reward_models.base import Encoder, RewardOutput, Segment
from reward_models.vision.clip_score import QUANTILES, progress
from reward_models.vision.config import NumberFormat
from robo_rl.rewards.base import BuiltReward, RewardConfig, RewardRequest
from robo_rl.rewards.clip import ClipConfig, captions_for, sample_frames, select_training_scene
from robo_rl.vision.distilled_scene import SceneConfig
from sims.external.gymnasium_env import GymnasiumEnv

if TYPE_CHECKING:
    from robo_rl.datasets.sources import SourceEpisode

Array = np.ndarray
Formula = Literal["mean", "ordered"]
MAKE = "make one of the task's expert: robo-rl demos TASK FOLDER --episodes 1, then film:FOLDER"


@dataclass(frozen=True, kw_only=True)
class VideoSimilarityConfig(RewardConfig):
    """Settings of the similarity to a demonstration video."""

    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    formula: Formula = "mean"  # mean over frames, or ordered in time
    frames: int = 8  # frames per episode, evenly spaced
    camera: str = ""  # camera of the demonstration, if it has several

    def __post_init__(self) -> None:
        if self.frames < 2:
            raise ValueError(f"--film.frames must be at least 2, got {self.frames}")


class VideoSimilarityReward:
    """The reward described in the module's docstring."""

    needs, causal, version = frozenset({"frames"}), True, 0
    episodic = True  # what it pays is for the whole episode: its time limit ends the return, too

    def __init__(
        self, encoder: Encoder, shown: Array, steps: int, frames: int, formula: Formula = "mean"
    ):
        """``shown`` (k, D): unit rows of the demonstration's frames or, for ``mean``, any number of
        sentences'. ``steps``: of the longest episode."""
        if shown.ndim != 2 or (formula == "ordered" and len(shown) != frames):
            raise ValueError(f"shown must have shape ({frames}, D), got {shown.shape}")
        self.encoder, self.formula, self.frames, self.context = encoder, formula, frames, steps
        self.goal = shown if formula == "ordered" else _mean(shown)
        self.scale = 0.0, 1.0  # raw scores that are phi 0 and 1

    @property
    def frame_size(self) -> tuple[int, int]:
        """(height, width) px of the frames that it looks at."""
        return self.encoder.size

    def raw(self, films: Array) -> Array:
        """Likeness (n,) of films (n, k, D), before calibration."""
        if self.formula == "mean":
            return _mean(films) @ self.goal
        return np.einsum("nkd,kd->n", films, self.goal) / self.frames

    def calibrate(self, rows: Array) -> None:
        """Sets the scale of phi from videos that show one still state each; unit rows (M, D) of
        states."""
        still = np.broadcast_to(rows[:, None], (len(rows), self.frames, rows.shape[1]))
        low, high = np.quantile(self.raw(still), QUANTILES)
        self.scale = float(low), float(high)

    def score(self, segment: Segment) -> RewardOutput:
        place, valid = segment.placed(self), segment.valid
        ends, begun = valid & place.last, place.step[0] == 0
        step, column = np.nonzero(ends & begun)
        reward = np.zeros(valid.shape, np.float32)
        if len(step):
            at, of = (
                evenly_spaced_frames(step + 2, self.frames),
                column[:, None],
            )  # entries of each film
            where = np.zeros((len(valid) + 1, valid.shape[1]), bool)
            where[at, of] = True
            rows = self.encoder.encode(segment.frames(self.encoder.camera, where))
            index = np.cumsum(where).reshape(where.shape) - 1
            low, high = self.scale
            share = (self.raw(rows[index[at, of]]) - low) / max(high - low, 1e-6)
            reward[step, column] = progress(share)
        # Of an episode whose beginning is no longer kept there is no film.
        return RewardOutput(reward, valid & (begun | ~ends))


def _mean(rows: Array) -> Array:
    """The unit row (..., D) in the middle of rows (..., k, D)."""
    mean = rows.mean(axis=-2)
    return mean / np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)


def evenly_spaced_frames(count: Array, frames: int) -> Array:
    """(..., frames) of ``count`` (...) entries, evenly, the first and the last among them; some
    more than once where there are fewer."""
    return np.linspace(0, count - 1, frames, axis=-1).round().astype(int)


def sample(encoder: Encoder) -> VideoSimilarityReward:
    """A small one, for the tests of what every reward model keeps to."""
    return VideoSimilarityReward(encoder, encoder.encode_texts(("a", "b", "c")), 5, 3, "ordered")


def build(request: RewardRequest) -> BuiltReward:
    """Returns the reward of a video or a sentence, calibrated on states of the scene.

    Args:
        request: The settings, the env, the goal and the video's path.

    Raises:
        ValueError: a sentence is given with a formula that needs a temporal order.
    """
    from reward_models.vision.encoders import make_encoder

    config, env = request.settings, request.env
    encoder = make_encoder(config.encoder, request.device, config.dtype)
    select_training_scene(
        encoder, env if isinstance(env, GymnasiumEnv) else env.task, f"{request.option}encoder"
    )
    about = {"encoder": encoder.name, "camera": encoder.camera, "dtype": encoder.dtype_name}
    if request.argument:
        path = Path(request.argument)
        demo = demonstration(path, config.camera, encoder.camera)
        at = evenly_spaced_frames(np.array(len(demo.frames)), config.frames)
        embeddings = encoder.encode(np.ascontiguousarray(demo.frames[at]))
        text, what = f"likeness to the film {demo.name}", f"the film {path.name} ({actor(path)})"
        about |= {"film": demo.name, "film_by": actor(path)}
    else:
        if config.formula != "mean":
            raise ValueError(
                "a sentence has no temporal order: give --film.formula mean, or a video"
            )
        step = captions_for(encoder, request.goal, ClipConfig())[-1]
        embeddings = encoder.encode_texts(tuple(caption.text for caption in step))
        text = what = " and ".join(caption.text for caption in step)
    model = VideoSimilarityReward(encoder, embeddings, env.max_steps, config.frames, config.formula)
    frames = sample_frames(request, encoder, SceneConfig())
    model.calibrate(encoder.encode(frames))
    sees = f"{config.frames} frames of each episode at its end, beside {what}"
    return BuiltReward(model, text, sees, frames=len(frames), about=about, camera=encoder.camera)


def demonstration(path: Path, camera: str, own: str) -> SourceEpisode:
    """The first episode in a film, a folder of pictures, an arm's log, a data set or a run, seen by
    ``camera``; empty: the only one, or where it is drawn the encoder's ``own``. ValueError where
    there is none."""
    from robo_rl.datasets.sources import SourceOptions, read_episodes, source_kind

    if not path.exists():
        raise ValueError(f"video {path} does not exist; {MAKE}")
    drawn = own if source_kind(path) in ("run", "minari") else ""
    # What it shows is not asked, but a source without words of its own is refused otherwise.
    watch = SourceOptions(
        goal="as shown", camera=camera or drawn, episodes=1, tell=lambda said: None
    )
    for episode in read_episodes([path], watch):
        return episode
    raise ValueError(f"{path} has no frames; {MAKE}")


def actor(path: Path) -> str:
    """Returns who acted in the episodes at ``path``, as far as the files state it."""
    metadata = path / "data" / "metadata.json"
    if metadata.is_file():
        return f"by the {json.loads(metadata.read_text())['algorithm_name']}"
    return "who acted in it is not said"
