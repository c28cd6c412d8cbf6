"""A scene's distilled encoder: made once from rendered states, then reused by every sentence.

The cache is keyed by what the frames and embeddings depend on: the compiled scene, its signals, the
camera, the encoder's weights and the way the states were drawn. Change one and it is made anew.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reward_models.base import Encoder, Segment
from reward_models.config import DistillConfig
from robo_rl.visual.data import collect
from sims.batch_env import BatchEnv
from sims.cache import cache_dir

if TYPE_CHECKING:
    from reward_models.distill import Surrogate

Array = np.ndarray

HIDDEN = ("qvel",)  # signals that no frame shows
DRAWN = 2  # of reward_data.collect: raised when it draws other states
TARGETS = "#embeddings"  # of the stored states; no signal can have this name


@dataclass(frozen=True, kw_only=True)
class SceneConfig:
    """How a scene is distilled."""

    frames: int = 8000  # rendered and encoded once per scene
    holdout: int = 500  # of them, kept to measure the error
    rollouts: float = 0.5  # share of states from episodes, the rest scattered over the workspace
    seed: int = 77
    distill: DistillConfig = field(default_factory=DistillConfig)


@dataclass
class Scene:
    """A distilled scene: the surrogate, states to calibrate scores on, and what it cost."""

    encoder: Encoder  # whose embeddings of frames it predicts
    surrogate: Surrogate
    signals: dict[str, Array]  # {name: (M, k)} of the states it was made of
    aside: dict[str, Array]  # the arm's own signals in a pose where it hides nothing
    report: dict[str, float]  # frames, seconds, cosine on held-out states
    path: Path

    def segment(self) -> Segment:
        """The scene's states as one Segment, for calibration."""
        return signals_segment(self.signals)


def signals_segment(signals: dict[str, Array]) -> Segment:
    """A Segment of one transition per row, whose successors are signal rows {name: (M, k)}."""
    doubled = {name: np.stack([s, s]) for name, s in signals.items()}
    rows = len(next(iter(signals.values())))
    return Segment(doubled, _no_frames, np.zeros((1, rows, 0)), np.ones((1, rows), bool))


def _no_frames(camera: str, where: Array) -> Array:
    raise ValueError(f"these states come without frames, so camera {camera!r} shows nothing")


def scene_key(env: BatchEnv, encoder: Encoder, config: SceneConfig) -> str:
    """16 hex digits that change whenever the distilled scene would."""
    camera = env.camera(encoder.camera)
    spec = env.task.spec()
    spec.compile()
    names = [signal.name for signal in env.task.signal_docs()]
    drawn = [env.task.name, repr(camera), repr(names), encoder.name, repr(config), str(DRAWN)]
    content = [spec.to_xml(), *drawn]
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:16]


def distilled(
    env: BatchEnv,
    encoder: Encoder,
    config: SceneConfig | None = None,
    progress: Callable[[str, float], None] = lambda stage, share: None,
    fresh: bool = False,
) -> Scene:
    """The scene of ``env`` as ``encoder`` sees it, from the cache or made now.

    ``report["frames"]`` is the number of frames rendered by this call: 0 when cached.
    """
    from reward_models.distill import Surrogate

    config = config or SceneConfig()
    path = cache_dir() / f"{env.task.name}-{scene_key(env, encoder, config)}.safetensors"
    if path.exists() and path.with_suffix(".npz").exists() and not fresh:
        surrogate, card = Surrogate.load(path, config.distill)
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as stored:
            signals = {name: stored[name] for name in stored.files if name != TARGETS}
            targets = stored[TARGETS].astype(np.float32)
        surrogate.remember(*_train_part(signals, targets, config))
        report = {**card["report"], "frames": 0.0, "seconds": 0.0, "cached": 1.0}
        return Scene(encoder, surrogate, signals, _aside(env, signals), report, path)

    start = time.monotonic()
    env.render_states(env.state()[:1], encoder.camera)  # who cannot draw hears of it before a wait
    progress("states", 0.0)
    states, signals = collect(env, config.frames, config.seed, config.rollouts)
    order = np.random.default_rng(config.seed).permutation(config.frames)
    states = states[order]
    names = tuple(name for name in signals if name not in HIDDEN)
    signals = {name: signals[name][order].astype(np.float32) for name in names}
    parts = []
    for first in range(0, config.frames, 512):
        frames = env.render_states(states[first : first + 512], encoder.camera)
        parts.append(encoder.encode(frames))
        progress("frames", (first + len(frames)) / config.frames)
    targets = np.concatenate(parts)
    surrogate = Surrogate(names, targets.shape[1], config.distill, points=_points(env))
    labelled = _train_part(signals, targets, config)
    surrogate.fit(*labelled, lambda share: progress("distil", share))
    held = {name: s[: config.holdout] for name, s in signals.items()}
    report = audit(surrogate, held, targets[: config.holdout])
    report |= {"frames": float(config.frames), "seconds": time.monotonic() - start, "cached": 0.0}
    surrogate.save(path, {"report": report, "encoder": encoder.name, "config": asdict(config)})
    partial = path.with_suffix(".part.npz")
    np.savez(partial, **signals, **{TARGETS: targets.astype(np.float16)})
    partial.replace(path.with_suffix(".npz"))
    return Scene(encoder, surrogate, signals, _aside(env, signals), report, path)


def _points(env: BatchEnv) -> tuple[str, ...]:
    """Names of the signals that are points of the world."""
    docs = env.task.signal_docs()
    return tuple(s.name for s in docs if (s.shape, s.unit, s.frame) == ((3,), "m", "world"))


def _train_part(
    signals: dict[str, Array], targets: Array, config: SceneConfig
) -> tuple[dict[str, Array], Array]:
    """The labelled rows that are not held out."""
    return {name: s[config.holdout :] for name, s in signals.items()}, targets[config.holdout :]


def audit(surrogate: Surrogate, signals: dict[str, Array], targets: Array) -> dict[str, float]:
    """Cosine between predicted and true embeddings: mean, 5th percentile; and mean disagreement."""
    mean, spread = surrogate.predict(signals)
    cosine = np.sum(mean * targets, axis=1)
    return {
        "cosine_mean": float(cosine.mean()),
        "cosine_p5": float(np.quantile(cosine, 0.05)),
        "spread_mean": float(spread.mean()),
        "spread_p99": float(np.quantile(spread, 0.99)),
    }


def _aside(env: BatchEnv, signals: dict[str, Array]) -> dict[str, Array]:
    """The arm's signals of the stored state with the tip highest above the base.

    There the arm is out of the objects' way, and it is a pose the surrogate was trained on.
    """
    out_of_way = np.array([0.14, 0.0, 0.25])
    row = int(np.argmin(np.linalg.norm(signals["tip"] - out_of_way, axis=1)))
    own = [s.name for s in env.task.signal_docs() if s.on_robot and s.name in signals]
    return {name: signals[name][row] for name in own}


def describe(report: dict[str, float]) -> str:
    """One line for people."""
    made = "cached" if report["cached"] else f"{report['frames']:.0f} frames"
    return f"{made}, cosine to rendered frames {report['cosine_mean']:.4f} on held-out states"


def write_card(scene: Scene, path: Path) -> None:
    """Leaves the scene's report in a run folder."""
    path.write_text(json.dumps({"scene": scene.path.name, **scene.report}, indent=1) + "\n")
