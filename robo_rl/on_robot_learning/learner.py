"""The learner beside an arm: reads logs of finished episodes, learns, and publishes bundles.

A residual on the bundle that the arm began with, by the ensemble's updates: it begins as good as
that is, and never wishes for anything farther than ``scale`` from what it would do. What the arm
did is said by the logs, executed as it was, whoever drove; what it was worth is said afterwards.

Run as a program (``python -m robo_rl.on_robot_learning.learner RUN``) it goes on until its input
ends, which is when the side that drives has ended, or died.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save as save_safetensors
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from real_robot.core.manifest import GraphSpec, RewardSpec
from real_robot.operator.handover import FILTER
from real_robot.policy.bundle import PolicyBundle
from robo_rl.bundles.export import GOLDEN_KEPT, check, deterministic_actor, to_onnx, write_bundle
from robo_rl.config.train_config import from_json
from robo_rl.datasets.robot_logs import LoggedEpisode, LogSelection, episodes, log_files
from robo_rl.goals.bundle_task import task_of_bundle
from robo_rl.learners.checkpoint import load_weights, weights_of
from robo_rl.learners.learner import make_learner
from robo_rl.learners.residual import ResidualEnsembleConfig
from robo_rl.learners.rng_state import load_rng_states, rng_states
from robo_rl.learners.transitions import EpisodeTransitions
from robo_rl.on_robot_learning.config import (
    BASE,
    BUNDLES,
    EPISODES,
    READ,
    REFUSED,
    LearnerStatus,
    OnRobotConfig,
    bundle_of,
)
from robo_rl.on_robot_learning.policy_trials import PolicyTrials
from robo_rl.on_robot_learning.report import write_page
from robo_rl.on_robot_learning.reward_labelling import Pay, make_reward_labeller, reward_trust
from robo_rl.runs.run_dir import (
    Checkpoint,
    CsvTable,
    RunDir,
    atomic_write,
    read_safetensors,
    versions,
)
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

LEARNING_RATE = 5e-4
CRITIC_ALONE = 1_000  # first updates, in which the policy stays what it was
FEWEST_STEPS = 500  # of the arm, before anything is learned from
CHUNK = 10  # updates of one rate: how long the critics learn alone is looked up between two
POLL = 0.1  # s
AT_THE_END = 5  # steps, whose mean score is held against the verdict
NUM_ENVS = 64  # simulations, in which alone the observations' scale is measured


class ArmTransitions(EpisodeTransitions):
    """Transitions of whole episodes on the arm, with the verdict's reward and a model's."""

    def __init__(self, n_steps: int, gamma: float):
        self._n_steps, self._gamma = n_steps, gamma
        self._parts: list[dict[str, Array]] = []
        self.by_model = False

    def add(self, part: dict[str, Array]) -> None:
        """Adds an episode, {name: (T, ...)} as ``episode_transitions`` returns it."""
        self._parts.append(part)
        self.use(self.by_model)

    def use(self, model: bool) -> None:
        """Pays every step what the model says, or what the verdict does."""
        self.by_model = model
        names = ("obs", "action", "next_obs", "last")
        for name in names:
            setattr(self, name, np.concatenate([part[name] for part in self._parts]))
        source = "model" if model else "verdict"
        self.reward = np.concatenate([part[source] for part in self._parts])
        self.done = np.concatenate([part[f"{source}_done"] for part in self._parts])

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """Samples a batch as SB3's buffers do."""
        return self.draw(batch_size, torch.device("cpu"), self._n_steps, self._gamma)


def episode_transitions(
    one: LoggedEpisode, rewards: Array | None, episodic: bool = False
) -> dict[str, Array]:
    """Returns an episode as transitions.

    The verdict's reward is 1 where the goal was reached, and the episode ends there; it also ends
    where the safety filter stopped it. The time limit is not such an end. A model rewards every
    step, so only a stop is an end, unless its reward is ``episodic``.

    Args:
        one: The episode.
        rewards: (T,) the model's rewards; None: 0.
        episodic: Whether the model's reward is for the whole episode, which then ends at its last
            step.

    Returns:
        ``obs`` and ``next_obs`` (T, obs_dim), ``action`` (T, act_dim), the rewards and ends of
        ``verdict`` and ``model`` (T,), ``last`` (T,), ``by_hand`` (T+1,), ``success``, and
        ``published``: the number of the acting policy, -1 where the log does not say.
    """
    last = np.arange(len(one.action)) == len(one.action) - 1
    stopped = last & (one.judge == FILTER)
    return {
        "obs": one.obs[:-1],
        "action": one.action,
        "next_obs": one.obs[1:],
        "last": last,
        "verdict": np.where(last & one.success, 1.0, 0.0).astype(np.float32),
        "verdict_done": (last & one.success) | stopped,
        "model": np.zeros(len(last), np.float32) if rewards is None else rewards,
        "model_done": stopped | (last & episodic),
        "by_hand": one.by_hand,
        "success": np.array(one.success),
        "published": np.array(int(one.training.get("published", -1))),
    }


class ArmLearner:
    """Learns in the run ``folder``."""

    def __init__(self, folder: Path, ended: Callable[[], bool]):
        self.run, self._ended = RunDir.open(folder), ended
        stored = {f.name for f in dataclasses.fields(OnRobotConfig)}
        self.config = from_json(
            OnRobotConfig, {k: v for k, v in self.run.config.items() if k in stored}
        )
        self.base = PolicyBundle.load(folder / BASE)
        self.task = task_of_bundle(self.base.manifest)
        self._pay: Pay | None = make_reward_labeller(
            self.config, self.task
        )  # refuses before anything takes time
        env = BatchEnv(self.task, NUM_ENVS, seed=self.config.seed)
        tuning = ResidualEnsembleConfig(
            base=str(folder / BASE),
            num_envs=NUM_ENVS,
            scale=self.config.scale,
            learning_rate=LEARNING_RATE,
            critic_updates=CRITIC_ALONE,
        )
        self.learner = make_learner(tuning, env, seed=self.config.seed)
        algorithm: Any = self.learner.algorithm
        algorithm.set_logger(Logger(None, []))
        self.steps = ArmTransitions(tuning.n_steps, algorithm.gamma)
        algorithm.replay_buffer = self.steps
        self._algorithm = algorithm
        self._reading = LogSelection(self.task, self.base.manifest, Counter())
        self._table = CsvTable(folder / "episodes.csv")
        self._scores: list[float] = []  # of episodes' ends
        self._successes: list[bool] = []
        self._tried = PolicyTrials()
        self._own = 0  # steps of the arm, without those that came from elsewhere
        self.status = LearnerStatus(pid=os.getpid(), trusted=self._pay is None)
        self._keep_weights(0)
        self._restore()

    # What there is already.
    def _restore(self) -> None:
        before = LearnerStatus.read(self.run.path)
        self._table.drop_after(before.episodes - 1, "episode")  # written, but not told any more
        for log in log_files(self.config.prior) if self.config.prior else ():
            for one in episodes([log], self._reading, frames=self._pay is not None):
                self.steps.add(self._transitions_of(one))
        for number in range(before.episodes):
            self._read_log(number, known=True)
        saved = self.run.latest_checkpoint()
        if saved is not None:
            load_weights(self._algorithm, saved.weights)
            load_rng_states(dict(saved.state))
            self._algorithm._n_updates = int(saved.meta["updates"])
            self._algorithm.critic_updates = int(saved.meta.get("critic_alone", CRITIC_ALONE))
            if saved.meta.get("by_model", self.steps.by_model) != self.steps.by_model:
                self._train_critics_first()  # it has come to pay since then
        self.status = dataclasses.replace(
            self.status, updates=self._algorithm._n_updates, published=before.published
        )

    def _transitions_of(self, one: LoggedEpisode) -> dict[str, Array]:
        rewards = None if self._pay is None else self._pay(one)
        return episode_transitions(one, rewards, getattr(self._pay, "episodic", False))

    def _read_log(self, number: int, known: bool = False) -> None:
        """Takes in episode ``number``, if anything is to be learned from it."""
        log = self.run.path / EPISODES / f"episode_{number:04d}.mcap"
        cached = self.run.path / READ / f"{log.stem}.npz"
        part, row = None, {"episode": number}
        if known and cached.exists():
            with np.load(cached, allow_pickle=False) as stored:
                part = {name: stored[name] for name in stored.files}
        elif log.exists() and not known:
            for one in episodes([log], self._reading, frames=self._pay is not None):
                part = self._transitions_of(one)
                keep_episode(cached, part)
                row |= {
                    "success": float(one.success),
                    "stopped": float(one.judge == FILTER),
                    "by_hand": float(one.by_hand.mean()),
                    "explore": float(one.training.get("explore", 0.0)),
                    "published": int(part["published"]),
                }
        if part is not None:
            self.steps.add(part)
            self._own += len(part["action"])
            self._scores.append(float(part["model"][-AT_THE_END:].mean()))
            self._successes.append(bool(part["success"]))
            if not part["by_hand"].any():
                self._tried.add(int(part["published"]), bool(part["success"]))
            self._compare_with_verdicts()
        arm_s = self._own * self.base.manifest.control_dt
        self.status = dataclasses.replace(self.status, episodes=number + 1, arm_s=arm_s)
        if not known:
            row |= {"arm_s": arm_s, "updates": self._algorithm._n_updates}
            if part is not None and self._pay is not None:
                row |= {"score": self._scores[-1], "trusted": float(self.status.trusted)}
            if self.status.auc is not None:
                row["auc"] = self.status.auc
            self._table.append(row)

    def _compare_with_verdicts(self) -> None:
        if self._pay is None:
            return
        known = np.array(self._scores), np.array(self._successes)
        auc, trusted = reward_trust(*known, self.config, self.status.trusted)
        auc = self.status.auc if auc is None else auc
        self.status = dataclasses.replace(self.status, auc=auc, trusted=trusted)
        if trusted != self.steps.by_model:
            self.steps.use(trusted)
            self._train_critics_first()

    def _train_critics_first(self) -> None:
        """Trains only the critics for a while: their values are still of the previous reward."""
        self._algorithm.critic_updates = self._algorithm._n_updates + CRITIC_ALONE

    # What goes on.
    def learn_until_stopped(self) -> None:
        """Learns until the arm's process has ended and nothing is left to read or to learn."""
        self.status.write(self.run.path)
        while True:
            number = self.status.episodes
            over = self._ended()  # before looking: what is there then was written before the end
            if self._finished(number):
                self._read_log(number)
                self._learn()
                if self.status.episodes % self.config.publish_every == 0 and self.status.updates:
                    self._choose()
                self.status.write(self.run.path)
            elif over:
                self._publish()
                self._set_acting_policy(self._tried.best())
                self.status.write(self.run.path)
                return
            else:
                time.sleep(POLL)

    def _finished(self, number: int) -> bool:
        """Returns whether there is a complete log of episode ``number``."""
        folder = self.run.path / EPISODES
        log = folder / f"episode_{number:04d}.mcap"
        if (folder / f"episode_{number + 1:04d}.mcap").exists():
            return True
        return log.exists() and _closed(log)

    def _learn(self) -> None:
        """Makes as many updates as the arm's steps allow so far; none until it is known whether the
        reward is used."""
        begun = (
            len(self._scores) >= self.config.verdicts if self._pay else self._own >= FEWEST_STEPS
        )
        due = self.config.updates * self._own if begun else 0
        left_s = 1.0 - self.status.arm_s / (60 * self.config.minutes)
        self._algorithm._current_progress_remaining = max(left_s, 0.0)  # of which the rate falls
        while (left := due - self._algorithm._n_updates) > 0:
            self._algorithm.train(min(left, CHUNK), batch_size=256)
        self.status = dataclasses.replace(self.status, updates=self._algorithm._n_updates)

    def _choose(self) -> None:
        """What acts next: what was learned since, or again what verdicts liked best, from where
        learning then goes on."""
        if self._tried.worse(self.status.published, self.config.publish_every // 2):
            best = self._tried.best()
            load_weights(self._algorithm, read_safetensors(self._weights_of(best)))
            self._set_acting_policy(best)
            self._save()
        else:
            self._publish()

    def _set_acting_policy(self, published: int) -> None:
        self.status = dataclasses.replace(self.status, published=published)

    def _save(self) -> None:
        """Saves what a restarted learner continues from."""
        done = {
            "updates": self.status.updates,
            "critic_alone": self._algorithm.critic_updates,
            "by_model": bool(self.steps.by_model),
        }
        weights = weights_of(self._algorithm)
        self.run.save_checkpoint(Checkpoint(self._own, weights, rng_states(), done))

    def _weights_of(self, published: int) -> Path:
        """Returns the weights to continue from when learning returns to a bundle."""
        return self.run.path / BUNDLES / f"{published:06d}.safetensors"

    def _keep_weights(self, published: int) -> None:
        path = self._weights_of(published)
        path.parent.mkdir(exist_ok=True)
        atomic_write(path, save_safetensors(weights_of(self._algorithm)))

    def _publish(self) -> None:
        """Writes a bundle with the learner's policy, checked against it, and the weights to
        continue from."""
        if not self.status.updates or self.status.published == self.status.episodes:
            return
        manifest, rng = self.base.manifest, np.random.default_rng(0)
        folder = bundle_of(self.run.path, self.status.episodes)
        rows = rng.choice(len(self.steps), GOLDEN_KEPT, replace=len(self.steps) < GOLDEN_KEPT)
        obs = self.steps.obs[rows]
        action = self.learner.act(obs)
        policy = to_onnx(deterministic_actor(self._algorithm), obs.shape[1])
        error = check(policy, obs, action)
        training = {
            "learner": "residual-ensemble, on the arm",
            "base": self.base.sha256,
            "episodes": self.status.episodes,
            "arm_s": round(self.status.arm_s, 1),
            "updates": self.status.updates,
            "reward": self.config.reward,
            "scale": self.config.scale,
        }
        made = dataclasses.replace(
            manifest,
            graph=GraphSpec(),
            reward=RewardSpec(model=self.config.reward, text=manifest.reward.text),
            training=training,
            metrics={"export_error": error},
            versions=versions(),
            files={},
        )
        write_bundle(folder, made, policy, {"obs": obs, "action": action}, self.task)
        self._keep_weights(self.status.episodes)
        self._set_acting_policy(self.status.episodes)
        self._save()
        write_page(self.run, self.config, self.status, self._reading.summary())


def keep_episode(path: Path, part: dict[str, Array]) -> None:
    """Writes the transitions of an episode, {name: (T, ...)}, to a file, whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".part.npz")
    np.savez(partial, **part)
    partial.replace(path)


def _closed(log: Path) -> bool:
    """Returns whether the writer of ``log`` has closed it, that is, holds no lock."""
    with open(log, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return log.stat().st_size > 0


def main(folder: str) -> None:
    """Learns until the input ends, once nobody else learns there: a learner outlives a killed
    driver for as long as it takes to finish what it is at."""
    alone = os.open(Path(folder) / BASE, os.O_RDONLY)
    fcntl.flock(alone, fcntl.LOCK_EX)  # and goes with this process
    over = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=listen, daemon=True, name="input").start()
    try:
        learner = ArmLearner(Path(folder), over.is_set)
    except ValueError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(REFUSED)
    learner.learn_until_stopped()


if __name__ == "__main__":
    main(sys.argv[1])
