"""A scene's distilled encoder: made once from rendered states, then reused by every sentence.

The cache is keyed by what the frames and embeddings depend on: the task and its compiled scene, its
signals, the camera, the encoder's weights and number format, and how and from what seed the states
were drawn. Change one and it is made anew. A run's goal and seed are not among them: the scene is
drawn in an env of its own, of the task's first goal, from ``SceneConfig.seed``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reward_models.base import Segment
from reward_models.vision.config import DistillConfig, at_least
from robo_rl.vision.state_collection import ROLLED, collect_states
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.utils.cache import cache_dir
from sims.utils.versions import rendered_with

if TYPE_CHECKING:
    from reward_models.vision.distillation import Surrogate
    from reward_models.vision.encoders import TorchEncoder

Array = np.ndarray

DRAWN = 6  # raised when other states are drawn, or otherwise, or other things told of them
# Ends of signals that no frame needs, or that are of the arm and of a thing at once, so that they
# would say where the arm was before it was put aside.
UNTOLD = ("qvel", "grip", "_fingers")
ROWS = 256  # of the env that states are drawn in
TARGETS = "#embeddings"  # of the stored states; no signal can have this name
RAISED = 0.02  # share of states, those with the tip highest, in which the arm hides least


@dataclass(frozen=True, kw_only=True)
class SceneConfig:
    """Settings of a scene's distillation."""

    frames: int = 8000  # rendered and encoded once per scene
    holdout: int = 500  # of these, held out for the error
    rollouts: float = ROLLED  # share of states from random actions; the rest: random states
    seed: int = 77  # seed of the states, independent of the run's seed
    distill: DistillConfig = field(default_factory=DistillConfig)

    def __post_init__(self) -> None:
        at_least(self, 1, "frames", "holdout")
        at_least(self, 0, "seed")
        if not 0 <= self.rollouts <= 1:
            raise ValueError(f"rollouts must be in [0, 1], got {self.rollouts}")


@dataclass
class DistilledScene:
    """A distilled scene: the surrogate, states to calibrate scores on, and what it cost."""

    encoder: TorchEncoder  # whose embeddings of frames it predicts
    surrogate: Surrogate
    signals: dict[str, Array]  # {name: (M, k)} of the states it was made of
    aside: dict[str, Array]  # the arm's own signals in a pose where it hides nothing
    report: dict[str, Any]  # frames, seconds, cosine on held-out states, number format
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
    raise ValueError(f"these states have no frames of camera {camera!r}")


@contextlib.contextmanager
def scene_env(task: Task[Any], config: SceneConfig, num_threads: int = 0) -> Iterator[BatchEnv]:
    """The env in which a scene's states are drawn: the same whatever the run's goal and seed."""
    env = BatchEnv(_without_goal(task), ROWS, seed=config.seed, num_threads=num_threads)
    try:
        yield env
    finally:
        env.close()


def _without_goal(task: Task[Any]) -> Task[Any]:
    """The task without what is asked for in it, or for how long, and any account of that."""
    plain = task.unwrapped
    return replace(plain, goal="", episode_s=type(plain).episode_s)


def objects_hash(task: Task[Any]) -> str:
    """12 hex digits of what stands there, where the task's name does not tell; "" where it does."""
    task = _without_goal(task)
    params = task.card()["params"]
    if not (params.get("things") or params.get("scene")):
        return ""
    spec = task.spec()
    spec.compile()
    return hashlib.sha256(spec.to_xml().encode()).hexdigest()[:12]


def scene_key(task: Task[Any], encoder: TorchEncoder, config: SceneConfig) -> str:
    """16 hex digits that change whenever the distilled scene would."""
    task = _without_goal(task)
    spec = task.spec()
    spec.compile()
    signals = [signal.name for signal in task.signal_docs()]
    drawn = [task.name, task, task.cameras, signals, config, DRAWN, ROWS]
    content = [spec.to_xml(), encoder.name, encoder.camera, encoder.dtype_name, *map(repr, drawn)]
    content += rendered_with()
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:16]


def load_or_distill(
    task: Task[Any],
    encoder: TorchEncoder,
    config: SceneConfig | None = None,
    progress: Callable[[str, float], None] = lambda stage, share: None,
    *,
    num_threads: int = 0,
) -> DistilledScene:
    """Returns the scene of ``task`` as ``encoder`` sees it, from the cache or distilled now.

    Args:
        task: The task whose scene is rendered.
        encoder: The image encoder.
        config: The settings; None: the defaults.
        progress: ``progress(stage, share)`` is called while it is made.
        num_threads: Threads of the simulation; 0: one per core.

    Returns:
        The scene; its ``report["frames"]`` counts the frames that this call rendered, 0 when
        cached.

    Raises:
        ValueError: no frame is left for training beside those that are held out.
    """
    config = config or SceneConfig()
    if config.frames <= config.holdout:
        raise ValueError(
            f"no training frames: {config.frames} frames with "
            f"{config.holdout} held out; give more --clip.scene.frames, or less "
            "--clip.scene.holdout"
        )
    path = cache_dir() / f"{task.name}-{scene_key(task, encoder, config)}.safetensors"
    with scene_env(task, config, num_threads) as env:
        return _distilled(env, encoder, config, path, progress)


def _distilled(
    env: BatchEnv,
    encoder: TorchEncoder,
    config: SceneConfig,
    path: Path,
    progress: Callable[[str, float], None],
) -> DistilledScene:
    from reward_models.vision.distillation import Surrogate

    if path.exists() and path.with_suffix(".npz").exists():
        surrogate, card = Surrogate.load(path, config.distill)
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as stored:
            signals = {name: stored[name] for name in stored.files if name != TARGETS}
            targets = stored[TARGETS].astype(np.float32)
        surrogate.remember(*_train_part(signals, targets, config))
        report = {**card["report"], "frames": 0.0, "seconds": 0.0, "cached": 1.0}
        return DistilledScene(encoder, surrogate, signals, _arm_aside(env, signals), report, path)

    start = time.monotonic()
    env.render_states(env.state()[:1], encoder.camera)  # who cannot draw hears of it before a wait
    progress("states", 0.0)
    states, signals = collect_states(env, config.frames, config.seed, config.rollouts)
    order = np.random.default_rng(config.seed).permutation(config.frames)
    states = states[order]
    names = tuple(name for name in signals if not name.endswith(UNTOLD))
    signals = {name: signals[name][order].astype(np.float32) for name in names}
    parts = []
    for first in range(0, config.frames, 512):
        frames = env.render_states(states[first : first + 512], encoder.camera)
        parts.append(encoder.encode(frames))
        progress("frames", (first + len(frames)) / config.frames)
    # As the cache keeps them: who finds the scene there learns from the same numbers.
    targets = np.concatenate(parts).astype(np.float16).astype(np.float32)
    points = tuple(name for name in _points(env) if name in names)
    surrogate = Surrogate(names, targets.shape[1], config.distill, points=points)
    labelled = _train_part(signals, targets, config)
    surrogate.fit(*labelled, lambda share: progress("distil", share))
    held = {name: s[: config.holdout] for name, s in signals.items()}
    report = audit(surrogate, held, targets[: config.holdout])
    report |= {"frames": float(config.frames), "seconds": time.monotonic() - start, "cached": 0.0}
    report |= {"encoder": encoder.name, "dtype": encoder.dtype_name, "seed": config.seed}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part.npz")
    np.savez(partial, **signals, **{TARGETS: targets.astype(np.float16)})
    partial.replace(path.with_suffix(".npz"))
    surrogate.save(path, {"report": report, "config": asdict(config)})
    return DistilledScene(encoder, surrogate, signals, _arm_aside(env, signals), report, path)


def _points(env: BatchEnv) -> tuple[str, ...]:
    """Names of the signals that are points of the world, one or several."""
    docs = env.task.signal_docs()
    return tuple(s.name for s in docs if (s.shape[-1:], s.unit, s.frame) == ((3,), "m", "world"))


def _train_part(
    signals: dict[str, Array], targets: Array, config: SceneConfig
) -> tuple[dict[str, Array], Array]:
    """The labelled rows that are not held out."""
    return {name: s[config.holdout :] for name, s in signals.items()}, targets[config.holdout :]


def audit(surrogate: Surrogate, signals: dict[str, Array], targets: Array) -> dict[str, Any]:
    """Returns how well a surrogate predicts embeddings.

    Args:
        surrogate: The fitted surrogate.
        signals: {name: (n, k)} signals of states.
        targets: (n, D) unit vectors, the embeddings of the states' frames.

    Returns:
        The cosine between predicted and true embeddings (mean, 5th percentile), and the
        disagreement of the surrogate's members (mean, 99th percentile).
    """
    mean, spread = surrogate.predict(signals)
    cosine = np.sum(mean * targets, axis=1)
    return {
        "cosine_mean": float(cosine.mean()),
        "cosine_p5": float(np.quantile(cosine, 0.05)),
        "spread_mean": float(spread.mean()),
        "spread_p99": float(np.quantile(spread, 0.99)),
    }


def _arm_aside(env: BatchEnv, signals: dict[str, Array]) -> dict[str, Array]:
    """The arm's signals of a stored state with the tip high above the table, where it hides least.

    Of the states with the tip highest it is the most ordinary one, so that the surrogate has seen
    its like. Empty for a task without a tip.
    """
    if "tip" not in signals:
        return {}
    highest = np.argsort(-signals["tip"][:, 2])[: max(1, round(RAISED * len(signals["tip"])))]
    tips = signals["tip"][highest]
    row = int(highest[np.argmin(np.linalg.norm(tips - np.median(tips, axis=0), axis=1))])
    own = [s.name for s in env.task.signal_docs() if s.on_robot and s.name in signals]
    return {name: signals[name][row] for name in own}


def describe(report: dict[str, Any]) -> str:
    """One line for people."""
    made = "cached" if report["cached"] else f"{report['frames']:.0f} frames"
    return f"{made}, cosine to rendered frames {report['cosine_mean']:.4f} on held-out states"


def write_card(scene: DistilledScene, path: Path) -> None:
    """Leaves the scene's report in a run folder."""
    path.write_text(json.dumps({"scene": scene.path.name, **scene.report}, indent=1) + "\n")
