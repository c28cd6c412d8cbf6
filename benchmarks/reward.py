"""What it costs to reward from frames, beside the ways it is usually done.

Actions are random and nothing is learnt: the rates are of simulating and rewarding alone, but for
the last, of a learner whose judge has a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np

import sims
from benchmarks.rates import Figure, Say, interleaved, rate, rates
from reward_models.base import Encoder, RewardOutput, Segment
from robo_rl.goals.reading import read_goal
from robo_rl.learners import EnsembleConfig
from robo_rl.rewards import ClipConfig, make_reward
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.trace import Observer, Trace, Transition
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

SENTENCE = "the gripper touches the red cube"
PEER_MODEL = "ViT-B-32"  # the encoder that VLM rewards start from; its weights do not matter here
SHIPPED = (480, 480)  # px, of Gymnasium's renderer unless told otherwise
ROWS = 64
PEER_ROWS = 8
SLOW_S = 2.0
LEARNED = 160 * ROWS  # env steps of one measurement


def bench(scene: str, say: Say) -> list[Figure]:
    """The rows of the rewards: encoding frames, scoring every step, scoring distilled."""
    from reward_models.vision.encoders import make_encoder

    task = sims.make_task("reach")
    env = BatchEnv(task, ROWS, seed=0)
    goal = read_goal(task, SENTENCE)
    embedded, large = make_encoder("embedded"), untrained(PEER_MODEL)
    env.reset()
    some = env.render_states(env.state())
    say("encoders")
    encoded = interleaved(
        {
            "embedded": lambda: rate(len(some), lambda: embedded.encode(some)),
            "large": lambda: rate(8, lambda: large(some[:8])),
        }
    )
    say("making the distilled scene")
    every = make_reward("clip", goal, env, ClipConfig(distill=False)).model
    distilled = make_reward("clip", goal, env, ClipConfig(distill=True)).model
    say("rewarding")
    peer = PeerLoop(embedded)
    rewarded = interleaved(
        {
            "every": lambda: ours_rate(env, every, steps=20),
            "distilled": lambda: ours_rate(env, distilled, steps=50),
            "peer": lambda: rate(5 * PEER_ROWS, lambda: peer.run(5)),
        }
    )
    env.close()
    peer.close()
    say("learning from a slow judge")
    slow, quick = AsyncLearner(SLOW_S), AsyncLearner(0.0)
    learned = interleaved({"slow": slow.rate, "quick": quick.rate})
    scheme = "Gymnasium's renderer at every step, same encoder"
    return [
        Figure("embedded CLIP, frames", encoded["embedded"], encoded["large"], PEER_MODEL, 1.0),
        Figure("every step scored, env steps", rewarded["every"], rewarded["peer"], scheme, 12.0),
        Figure("distilled, env steps", rewarded["distilled"], rewarded["peer"], scheme, 60.0),
        Figure(
            f"learner, a judge of {SLOW_S:g} s apart, env steps",
            learned["slow"],
            learned["quick"],
            "one that answers at once",
            0.9,
        ),
    ]


class SlowReward:
    """Pays nothing, and takes ``seconds`` for it however much it is shown."""

    needs = frozenset({"signals"})
    context, causal, version = 1, True, 0

    def __init__(self, seconds: float):
        self.seconds = seconds

    def score(self, segment: Segment) -> RewardOutput:
        time.sleep(self.seconds)
        return RewardOutput(np.zeros(segment.valid.shape, np.float32), segment.valid)


def slow_reward_recipe(seconds: float) -> tuple[SlowReward, BatchEnv]:
    """What the judge's process makes."""
    return SlowReward(seconds), sims.make("reach", 1)


class AsyncLearner:
    """A learner that goes on while its judge thinks."""

    def __init__(self, seconds: float):
        from robo_rl.learners.learner import make_learner

        env, recipe = sims.make("reach", ROWS), partial(slow_reward_recipe, seconds)
        self._learner = make_learner(EnsembleConfig(), env, SlowReward(0.0), recipe=recipe)
        self._learner.algorithm.learn(LEARNED)

    def rate(self) -> float:
        """Env steps per second, with their updates."""
        learn = self._learner.algorithm.learn
        return rate(LEARNED, lambda: learn(LEARNED, reset_num_timesteps=False))


def ours_rate(env: BatchEnv, model: Any, steps: int) -> float:
    """Env steps per second of random actions in all rows, scored in one go at the end."""
    observer = Observer(env, model.needs)
    scorer, rng = Scorer(model, observer), np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (steps, env.num_envs, env.act_dim))
    env.reset()

    def run() -> None:
        trace, look, never = Trace(steps), observer.observe(), np.zeros(env.num_envs, bool)
        for number, action in enumerate(actions):
            env.step(action)
            successor, step = observer.observe(), np.full(env.num_envs, number)
            trace.add(Transition(look, successor, action, step, never, never, never))
            look = successor
        scorer.score(trace, 0, steps)

    return rate(steps * env.num_envs, run)


def untrained(name: str) -> Callable[[Array], object]:
    """An open_clip model with random weights, which take as long as any, in float32 as ours."""
    import open_clip
    import torch
    from torch.nn import functional as F

    model = open_clip.create_model(name).eval()
    size = model.visual.image_size

    def encode(frames: Array) -> None:
        with torch.inference_mode():
            x = torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2).float() / 255.0
            model.encode_image(F.interpolate(x, size, mode="bicubic", antialias=True))

    return encode


class PeerLoop:
    """The usual scheme (VLM-RM, arXiv:2310.12921): each env renders each step, then one encoding.

    Frames come from Gymnasium's own renderer with its own settings; the encoder is ours, so that
    the scheme alone is compared.
    """

    def __init__(self, encoder: Encoder):
        import cv2
        from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer

        self._cv2, self._encoder = cv2, encoder
        self._envs = [gym.make("robo/Reach-v0") for _ in range(PEER_ROWS)]
        self._data, self._renderers = [], []
        for index, env in enumerate(self._envs):
            env.reset(seed=index)
            model = env.unwrapped.sim.model
            data = mujoco.MjData(model)
            width, height = SHIPPED
            self._data.append((model, data))
            self._renderers.append(
                MujocoRenderer(model, data, None, width, height, camera_name="front")
            )

    def run(self, steps: int) -> None:
        """``steps`` random steps of every env, each rewarded from its frame."""
        for _ in range(steps):
            frames = []
            for env, (model, data), renderer in zip(
                self._envs, self._data, self._renderers, strict=True
            ):
                if any(env.step(env.action_space.sample())[2:4]):
                    env.reset()
                data.qpos[:] = env.unwrapped.sim.batch.qpos[0]
                mujoco.mj_forward(model, data)
                frames.append(self._cv2.resize(renderer.render("rgb_array"), (96, 96)))
            self._encoder.encode(np.stack(frames))

    def close(self) -> None:
        """Frees the renderers."""
        for renderer in self._renderers:
            renderer.close()
        for env in self._envs:
            env.close()


EXPERIMENT = rates(__name__, bench, ("arm scene",))
