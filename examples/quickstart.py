"""A sentence becomes a reward, a policy and a video.

The sentence is read as a formula, and a reward program is written from it. PPO trains a policy of
the SO-101 arm on that reward. Success is measured by the simulator, which the reward never asks.

    python examples/quickstart.py
"""

import argparse
import shutil
from pathlib import Path

from rich.console import Console

import robo_rl

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--env-steps", type=int, default=96_000, help="simulated steps of training")
steps = parser.parse_args().env_steps

folder = Path("runs/examples/quickstart")
shutil.rmtree(folder, ignore_errors=True)  # of the last time; a run never overwrites another

config = robo_rl.TrainConfig(
    task="reach",
    goal="hover over the blue ball",
    reward="offline",  # a program written from the sentence; "clip" would look at frames instead
    env_steps=steps,
    eval_points=4,
    runs=folder.parent,
    name=folder.name,
)
trained = robo_rl.train(config, console=Console())

# The line has the success rate with its 95 % interval, and that of two baselines in the same
# episodes: zero actions and the untrained policy.
print(trained.evaluation.line())
print(f"report: {folder / 'report.html'}")
print(f"video: {folder / 'video.webm'}")
