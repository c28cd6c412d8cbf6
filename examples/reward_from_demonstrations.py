"""Demonstrations become a reward, whose course over an episode is plotted.

A scripted expert presses a button, and so shows what progress looks like. A progress scorer is
fitted to frames of its episodes, of failed ones and of random actions. It then scores three new
episodes: one of the expert, one in which the expert stops after ten steps, and one of random
actions.

    python examples/reward_from_demonstrations.py
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import sims
from reward_models.vision.config import HeadConfig
from robo_rl.goals.reading import read_goal
from robo_rl.rewards import make_reward
from robo_rl.rollout.vec_env import SB3VecEnv
from robo_rl.scorers.train import ProgressScorer, train_scorer
from robo_rl.vision.episodes import EpisodesConfig

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--demonstrations", type=int, default=60, help="episodes of the expert")
demonstrations = parser.parse_args().demonstrations

folder = Path("runs/examples/reward_from_demonstrations")
folder.mkdir(parents=True, exist_ok=True)

# 1. Fit the scorer. It looks at frames alone, through the embedded CLIP.

scorer = ProgressScorer(
    task="button",
    out=folder / "progress.safetensors",
    watch=EpisodesConfig(
        demonstrations=demonstrations, lost=demonstrations // 2, random=demonstrations // 2
    ),
    head=HeadConfig(steps=1_000),
)
figures = train_scorer(scorer)["figures"]
print(f"on held-out episodes: {figures}")

# 2. Score new episodes. As the reward of a run, the same scorer is `progress:FILE`.

actors = {
    "the expert": "#2a7f3f",
    "the expert, stopped after ten steps": "#e0a030",
    "random actions": "#8a8f98",
}
env = sims.make("button", num_envs=len(actors), seed=1_000)
goal = read_goal(env.task, next(iter(env.task.goals())))
reward = make_reward(f"progress:{scorer.out}", goal, env)
scored = SB3VecEnv(env, reward.model)

scored.reset()
rng = np.random.default_rng(0)
frames, rewards, done = [], [], np.zeros(len(actors), bool)
while not done.any():
    frames.append(env.render()[0])
    action = env.task.expert(env.views, rng)
    action[1] *= len(rewards) < 10
    action[2] = rng.uniform(-1.0, 1.0, env.act_dim)
    _, paid, done, _ = scored.step(action)
    rewards.append(paid)

# 3. Plot the rewards, and under them what the scorer saw of the expert.

figure = Figure(figsize=(8, 5), layout="constrained")
grid = figure.add_gridspec(2, 5, height_ratios=(2, 1))
curve = figure.add_subplot(grid[0, :])
for (name, colour), course in zip(actors.items(), np.transpose(rewards), strict=True):
    curve.plot(course, color=colour, lw=2, label=name)
curve.set(xlabel="step", ylabel="reward: progress", ylim=(-0.03, 1.03))
curve.grid(alpha=0.25)
curve.legend(loc="center right")
for column, step in enumerate(np.linspace(0, len(frames) - 1, 5).astype(int)):
    picture = figure.add_subplot(grid[1, column])
    picture.imshow(frames[step])
    picture.set_title(f"step {step}", fontsize=9)
    picture.axis("off")
path = folder / "reward.png"
figure.savefig(path, dpi=110)
print(f"picture: {path}")
