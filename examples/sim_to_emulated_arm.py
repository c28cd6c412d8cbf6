"""A policy goes from simulation to an emulated SO-101, and its log is replayed.

The policy is trained in simulation and exported as a bundle. `robo-rl deploy` runs the bundle at
100 Hz through the safety filter. The vendor's client (`pip install '.[so101]'`) talks to an
emulator of the servos' protocol, so no hardware is needed. `robo-rl replay` then repeats the log
bit for bit.

    python examples/sim_to_emulated_arm.py
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from mcap.reader import make_reader
from rich.console import Console

import robo_rl

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--env-steps", type=int, default=96_000, help="simulated steps of training")
steps = parser.parse_args().env_steps

folder = Path("runs/examples/sim_to_emulated_arm")
shutil.rmtree(folder, ignore_errors=True)  # of the last time; a run never overwrites another

# 1. Train in simulation. The run's bundle holds the policy as ONNX, its limits and its park pose.

config = robo_rl.TrainConfig(
    task="reach",
    robot="so101",
    goal="touch the red cube",
    reward="offline",
    env_steps=steps,
    eval_points=0,
    runs=folder.parent,
    name=folder.name,
)
trained = robo_rl.train(config, console=Console())
print(trained.evaluation.line())

# 2. Run the bundle on the emulated arm, and replay the first log. Both are commands of the shell.


def robo_rl_command(*words):
    print("$ robo-rl", *words)
    subprocess.run([sys.executable, "-m", "robo_rl.cli", *map(str, words)], check=True)


logs = folder / "logs"
deploy = ("deploy", trained.bundle, "--robot", "so101", "--emulate", "--episodes", 3)
robo_rl_command(*deploy, "--log", logs)
log = logs / "episode_0000.mcap"
robo_rl_command("replay", log)

# 3. Plot the log: what the policy asked for, what the filter sent, what the servos measured.

with open(log, "rb") as file:
    messages = make_reader(file).iter_messages(topics=["tick"])
    ticks = [json.loads(message.data) for _, _, message in messages]
ticks = [tick for tick in ticks if tick["phase"] == "run"]
with open(log, "rb") as file:
    [(_, _, message)] = make_reader(file).iter_messages(topics=["run"])
    joints = json.loads(message.data)["robot"]["joints"]

seconds = np.array([tick["t"] for tick in ticks]) - ticks[0]["t"]
curves = {
    "requested by the policy": ("requested", "#e0a030", 2.6),
    "sent after the safety filter": ("filtered", "#c2185b", 1.4),
    "measured": ("state", "#1f77b4", 1.4),
}
figure = Figure(figsize=(8, 1.6 * len(joints)), layout="constrained")
for joint, (name, axis) in enumerate(
    zip(joints, figure.subplots(len(joints), sharex=True), strict=True)
):
    for label, (part, colour, width) in curves.items():
        angle = np.degrees([tick[part]["qpos"][joint] for tick in ticks])
        axis.plot(seconds, angle, color=colour, lw=width, label=label)
    axis.set_title(name, fontsize=9, loc="left")
    axis.set_ylabel("deg")
    axis.grid(alpha=0.25)
axis.set_xlabel("s")
figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3)
picture = folder / "replay.png"
figure.savefig(picture, dpi=110)
print(f"picture: {picture}")
