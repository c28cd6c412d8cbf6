"""DemoReplay: steps of demonstrations, which a learner samples beside its own (RLPD,
arXiv:2302.02948).

A data set is played again, every action from where its episode began. So observations are those of
the task as it is trained here, and rewards are what this learner's reward makes of the steps,
scored as its own are and scored again when the reward changes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from torch import Tensor

from reward_models.base import RewardModel
from robo_rl.datasets.demonstrations import (
    Demonstrations,
    check_same_observations,
    read_demonstrations,
)
from robo_rl.learners.transitions import EpisodeTransitions
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.trace import Observer, Trace, Transition
from robo_rl.rollout.vec_sim import VecSim
from sims.core.multi_goal import ASKED, MultiGoalTask
from sims.envs.batch_env import BatchEnv
from sims.envs.demonstrations import DemoConfig, write_demos

Array = np.ndarray


class DemoReplay(EpisodeTransitions):
    """``n`` transitions of demonstrations under one reward."""

    def __init__(self, demos: Demonstrations, sim: BatchEnv, model: RewardModel | None):
        """ValueError where ``demos`` cannot be played on ``sim``'s task."""
        as_it = {"judged": sim.judged, "sparse": sim.sparse, "shaped": sim.shaped}
        env = BatchEnv(sim.task, demos.episodes, **as_it)
        needs = model.needs if model else frozenset()
        observer = Observer(env, needs, getattr(model, "frame_size", None))
        self.scorer = Scorer(model, observer) if model else None
        self.version = -1  # of the reward model, when the rewards were scored; -1: not yet
        length = np.bincount(demos.episode)
        self._trace = Trace(int(length.max()))
        self._made = np.arange(length.max())[:, None] < length  # (T, episodes) bool
        self.last = np.diff(demos.episode, append=-1) != 0
        self._good = np.flatnonzero(demos.success[demos.episode])
        self._sha256 = hashlib.sha256(demos.obs.tobytes() + demos.action.tobytes()).digest()
        self._play(env, observer, demos)
        if getattr(model, "episodic", False):  # its pay is for the whole of an episode
            self.done = self.done | self.last
        check_same_observations("--demos", demos.obs, demos.obs_names, self.obs, env.obs_names)

    def _flatten_episodes(self, block: Array) -> Array:
        """(n, ...) of what was made, one episode after the other, of a block (T, episodes, ...)."""
        return block.swapaxes(0, 1)[self._made.T]

    def _play(self, env: BatchEnv, observer: Observer, demos: Demonstrations) -> None:
        steps, rows = self._made.shape
        action = np.zeros((steps, rows, env.act_dim), np.float32)
        action.swapaxes(0, 1)[self._made.T] = demos.action
        env.reset()
        obs = [observations_at_starts(env, demos)]
        reward, over = np.zeros((steps, rows), np.float32), np.zeros((steps, rows), bool)
        observation, length = observer.observe(), self._made.sum(axis=0)
        for t in range(steps):
            step = env.step(action[t])
            after = observer.observe()
            failed = step.info["diverged"] | ~self._made[t]
            number, last = np.full(rows, t), t + 1 == length
            self._trace.add(
                Transition(observation, after, step.action, number, last, step.terminated, failed)
            )
            observation = after
            obs.append(step.obs)
            reward[t], over[t] = step.reward, step.terminated
        all_obs = np.stack(obs)
        self.obs, self.next_obs = (
            self._flatten_episodes(all_obs[:-1]),
            self._flatten_episodes(all_obs[1:]),
        )
        self.action, self.done = (
            self._flatten_episodes(self._trace.action),
            self._flatten_episodes(over),
        )
        self.reward = self._flatten_episodes(reward)  # the simulator's, unless a model scores them

    def sample_successful(self, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Observations (count, obs_dim) of episodes that succeeded, and what was done there; all of
        them where none did."""
        good = self._good if len(self._good) else np.arange(len(self))
        at = good[np.random.randint(len(good), size=count)]  # noqa: NPY002 - as ``draw`` draws
        obs, action = (torch.as_tensor(x[at], device=device) for x in (self.obs, self.action))
        return obs, action

    def score(self, model: RewardModel | None = None) -> None:
        """Scores every step, as the reward model is now; with ``model`` from now on."""
        assert self.scorer is not None, "the task's own reward does not change"
        if model is not None:
            self.scorer.replace(model)
        scored = self.scorer.score(self._trace, 0, self._trace.count, counted=False)
        self.reward, self.version = self._flatten_episodes(scored.reward), scored.version

    def state_dict(self) -> dict[str, Array]:
        """Returns the scores and a hash of the demonstrations, which are replayed on loading.

        Returns:
            ``reward`` (n,), the reward model's ``version`` and ``sha256`` (32,) uint8.
        """
        return {
            "reward": self.reward.copy(),
            "version": np.array(self.version),
            "sha256": np.frombuffer(self._sha256, np.uint8),
        }

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``reward`` (n,) and ``version`` as ``state_dict`` returned them.

        Args:
            saved: The arrays by name.

        Raises:
            ValueError: they are of other demonstrations.
        """
        if saved["sha256"].tobytes() != self._sha256:
            raise ValueError(
                "--demos must be the demonstrations that this run started with "
                f"({len(saved['reward'])} steps), got others ({len(self)} steps): restore them, or "
                "start a new run"
            )
        self.reward, self.version = saved["reward"].copy(), int(saved["version"])


def observations_at_starts(env: BatchEnv, demos: Demonstrations) -> Array:
    """Observations (episodes, obs_dim) of rows at the starts of ``demos``, and asked for what was
    done there; ValueError where that is no goal of a task with several."""
    task = env.task
    if isinstance(task, MultiGoalTask):
        if isinstance(demos.task, MultiGoalTask):
            first = np.flatnonzero(np.diff(demos.episode, prepend=-1))
            named = [name.startswith(f"{ASKED}[") for name in demos.obs_names]
            goal_index = demos.obs[first][:, named].argmax(axis=1)
        elif demos.task.goal in task.keys:
            goal_index = np.full(demos.episodes, task.keys.index(demos.task.goal))
        else:
            raise ValueError(
                f"--demos: their goal {demos.task.goal} is not among the goals of "
                f"{task.name}: {', '.join(task.keys)}"
            )
        task.request(env.views, goal_index)
    return env.set_state(demos.start)


def merge_batches(own: ReplayBufferSamples, prior: ReplayBufferSamples) -> ReplayBufferSamples:
    """Both, one after the other."""
    width = 5 if own.discounts is None else 6
    return ReplayBufferSamples(*map(torch.cat, zip(own[:width], prior[:width], strict=True)))


def make_demo_replay(demos: str, sim: VecSim, model: RewardModel | None) -> DemoReplay | None:
    """The demonstrations that are ``demos`` for; None where that is empty."""
    return DemoReplay(*demos_for(demos, sim), model) if demos else None


def check_demos(demos: str, sim: VecSim) -> None:
    """ValueError where ``demos_for`` would raise one, at once where they are yet to be made."""
    if demos.isdecimal():
        task = _replayable_env(demos, sim).task
        DemoConfig(episodes=int(demos))
        if not task.solved:
            raise ValueError(
                f"--demos {demos}: {task.name} has no scripted expert for this goal; expected "
                "the folder of a dataset (robo-rl demos)"
            )
    else:
        demos_for(demos, sim)


def demos_for(source: str, sim: VecSim) -> tuple[Demonstrations, BatchEnv]:
    """The data set in the folder ``source``, or so many episodes of the task's expert, and ``sim``;
    ValueError where they cannot be played there."""
    option_text, env = f"--demos {source}", _replayable_env(source, sim)
    if source.isdecimal():
        return _of_expert(int(source), env), env
    demos = read_demonstrations(Path(source), failures=True)
    if not demos.start.shape[1]:
        raise ValueError(
            f"{option_text} has no initial states, so its episodes cannot be replayed: write it "
            "again with robo-rl demos; recordings of a real arm can only be cloned (robo-rl "
            "clone)"
        )
    if demos.shaped != env.shaped:
        one, other = ("without", "within") if env.shaped else ("within", "without")
        raise ValueError(
            f"{option_text}: recorded {one} the bridge's limits, and this run trains {other} "
            "them: use the same setting of --rate-limited for both"
        )
    for what, name in (("task", "name"), ("robot", "robot"), ("things", "things")):
        mine, its = getattr(env.task, name, ""), getattr(demos.task, name, "")
        if mine != its:
            raise ValueError(
                f"{option_text}: its {what} must be that of this run, {mine!r}, got {its!r}"
            )
    return demos, env


def _replayable_env(source: str, sim: VecSim) -> BatchEnv:
    """``sim``, where demonstrations can be played again."""
    option_text = f"--demos {source}"
    if not isinstance(sim, BatchEnv):
        raise ValueError(
            f"{option_text}: {sim.card['task']} is an external environment; leave it out"
        )
    return sim


def _of_expert(episodes: int, sim: BatchEnv) -> Demonstrations:
    """Returns demonstrations by the task's expert, the same for every run of ``sim``'s seed."""
    with tempfile.TemporaryDirectory() as folder:
        config = DemoConfig(episodes=episodes, seed=sim.seed, rate_limited=sim.shaped)
        made = write_demos(sim.task, Path(folder) / "demos", config)
        return read_demonstrations(made.path, failures=True)
