"""Labels on the policy's own states: asked for while it learns, and the error that is left."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from robo_rl.config.train_config import TrainConfig
from robo_rl.learners.hooks import Hook
from robo_rl.learners.learner import Learner
from robo_rl.vision.distilled_scene import DistilledScene, audit
from sims.envs.batch_env import BatchEnv
from sims.utils.prefixed_dict import add_prefix, select_prefix

Array = np.ndarray
Act = Callable[[Array], Array]

NOISE = 0.3  # deviation of the exploration that episodes are labelled under
KEPT_STEPS = 3  # one step in so many is a candidate for a label
AUDITED = 256  # frames rendered after training to measure the distilled encoder's error


@dataclass
class OnPolicyLabels(Hook):
    """Labels a scene while a policy trains, every so many metrics rows."""

    name = "labels"

    config: TrainConfig
    scene: DistilledScene
    env: BatchEnv  # where its episodes run
    frames: int = 0  # rendered so far

    _rows: int = field(default=0, init=False)
    _rng: np.random.Generator = field(init=False)
    _learner: Learner = field(init=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.config.seed)

    def start(self, learner: Learner) -> None:
        self._learner = learner

    def row(self, row: Mapping[str, float]) -> None:
        config, surrogate = self.config, self.scene.surrogate
        self._rows += 1
        if not config.labels or self._rows % config.labels_every:
            return
        before = surrogate.version
        self.frames += ask_labels(
            self.scene,
            self.env,
            self._learner.act,
            count=config.labels,
            threshold=config.labels_above,
            rng=self._rng,
        )
        relabel = getattr(self._learner.buffer, "relabel", None)
        if surrogate.version != before and relabel is not None:
            relabel()

    def state_dict(self) -> dict[str, Array]:
        """Returns the counters, the random stream and the env in which its episodes run.

        The labels belong to the surrogate, which is saved with the reward model.

        Returns:
            ``counters`` (2,), ``stream`` (n,) uint8, and the env's arrays (N, ...).
        """
        stream = json.dumps(self._rng.bit_generator.state).encode()
        return {
            "counters": np.array([self._rows, self.frames]),
            "stream": np.frombuffer(stream, np.uint8),
            **add_prefix("env", self.env.state_dict()),
        }

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``counters`` (2,) and the other arrays that ``state_dict`` returned."""
        self._rows, self.frames = (int(count) for count in saved["counters"])
        self._rng.bit_generator.state = json.loads(saved["stream"].tobytes())
        self.env.load_state_dict(select_prefix(saved, "env"))


def ask_labels(
    scene: DistilledScene,
    env: BatchEnv,
    act: Act,
    *,
    count: int,
    threshold: float,
    rng: np.random.Generator,
) -> int:
    """Labels on-policy states where the ensemble disagrees, and refits; how many were labelled.

    One episode of ``act`` with exploration noise in every row of ``env``. If the mean spread there
    is above ``threshold`` times that on held-out states, the ``count`` most doubtful states are
    rendered, encoded and learnt.
    """

    def explore(obs: Array) -> Array:
        action = act(obs)
        return action + NOISE * rng.normal(size=action.shape)

    states, rows = _episode(env, explore, scene.surrogate.names, every=KEPT_STEPS)
    _, spread = scene.surrogate.predict(rows)
    if spread.mean() <= threshold * scene.report["spread_mean"]:
        return 0
    doubtful = np.sort(np.argsort(spread)[-count:])
    targets = _embedded(scene, env, states[doubtful])
    scene.surrogate.fit({name: row[doubtful] for name, row in rows.items()}, targets)
    return len(doubtful)


def on_policy_audit(scene: DistilledScene, env: BatchEnv, act: Act) -> dict[str, float]:
    """The distilled encoder against frames rendered on the finished policy's own states."""
    states, rows = _episode(env, act, scene.surrogate.names)
    pick = np.random.default_rng(0).permutation(len(states))[:AUDITED]
    rows = {name: row[pick] for name, row in rows.items()}
    targets = _embedded(scene, env, states[pick])
    return audit(scene.surrogate, rows, targets) | {"frames": float(len(pick))}


def _embedded(scene: DistilledScene, env: BatchEnv, states: Array) -> Array:
    """Returns the encoder's embeddings of frames of ``states`` (M, nstate), rendered now."""
    return scene.encoder.encode(env.render_states(states, scene.encoder.camera))


def _episode(
    env: BatchEnv, act: Act, names: tuple[str, ...], every: int = 1
) -> tuple[Array, dict[str, Array]]:
    """(states (M, nstate), {signal: (M, ...)}) of an episode of each row, one step in ``every``."""
    states, signals = [], []
    obs = env.reset()
    for step in range(1, env.max_steps + 1):
        obs = env.step(act(obs)).obs
        if step % every == 0:
            states.append(env.state())
            signals.append(env.signals())
    return np.concatenate(states), {n: np.concatenate([s[n] for s in signals]) for n in names}
