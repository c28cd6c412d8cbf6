"""An environment of your own becomes a policy and a video.

The environment is a puck that two motors push over a table to a mark. It is written with MuJoCo
and Gymnasium alone. Any Gymnasium environment works in the same way, by its ID: ``gym:Reacher-v5``.

    python examples/own_environment.py
"""

import argparse
import os
import shutil
from pathlib import Path

os.environ.setdefault("MUJOCO_GL", "egl")  # renders without a screen; read when mujoco loads

import gymnasium
import imageio.v3 as imageio
import mujoco
import numpy as np
from rich.console import Console

import robo_rl

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--env-steps", type=int, default=80_000, help="simulated steps of training")
steps = parser.parse_args().env_steps

# 1. The environment: a MuJoCo model, and what its observation, action and reward are.

TABLE = """
<mujoco>
  <option timestep="0.01"/>
  <visual><global offwidth="320" offheight="240"/></visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".6 .7 .8" rgb2=".9 .9 .9"
             width="64" height="64"/>
  </asset>
  <worldbody>
    <light pos="0 0 3"/>
    <camera name="above" pos="0 -1.1 1.5" xyaxes="1 0 0 0 .8 .6"/>
    <geom type="plane" size=".6 .6 .1" rgba=".85 .82 .75 1"/>
    <body name="mark" mocap="true">
      <geom type="cylinder" size=".08 .002" rgba=".2 .6 .3 1" contype="0" conaffinity="0"/>
    </body>
    <body name="puck" pos="0 0 .03">
      <joint name="x" type="slide" axis="1 0 0" damping=".3" range="-.5 .5" limited="true"/>
      <joint name="y" type="slide" axis="0 1 0" damping=".3" range="-.5 .5" limited="true"/>
      <geom type="cylinder" size=".05 .02" mass=".2" rgba=".8 .2 .15 1" contype="0"/>
    </body>
  </worldbody>
  <actuator><motor joint="x"/><motor joint="y"/></actuator>
</mujoco>
"""


class Puck(gymnasium.Env):
    """Pushes a puck to a mark and keeps it there."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (6,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.model = mujoco.MjModel.from_xml_string(TABLE)
        self.data = mujoco.MjData(self.model)
        self.renderer = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.np_random.uniform(-0.45, 0.45, 2)
        self.data.mocap_pos[0, :2] = self.np_random.uniform(-0.4, 0.4, 2)
        mujoco.mj_forward(self.model, self.data)
        return self._observation(), {}

    def step(self, action):
        self.data.ctrl[:] = np.clip(action, -1.0, 1.0)
        mujoco.mj_step(self.model, self.data, nstep=5)  # 0.05 s
        distance = float(np.linalg.norm(self._way()))
        # Success is what `info` says it is. The reward is for learning; nothing judges by it.
        return self._observation(), -distance, False, False, {"is_success": distance < 0.08}

    def render(self):
        if self.renderer is None:
            self.renderer = mujoco.Renderer(self.model, 240, 320)
        self.renderer.update_scene(self.data, "above")
        return self.renderer.render()

    def _way(self):
        return self.data.mocap_pos[0, :2] - self.data.qpos

    def _observation(self):
        return np.concatenate([self.data.qpos, self.data.qvel, self._way()]).astype(np.float32)


gymnasium.register("Puck-v0", Puck, max_episode_steps=60)

# 2. The policy. The environment's own reward trains it; `is_success` measures it.

folder = Path("runs/examples/own_environment")
shutil.rmtree(folder, ignore_errors=True)  # of the last time; a run never overwrites another

config = robo_rl.TrainConfig(
    task="gym:Puck-v0",
    reward="task",
    env_steps=steps,
    episodes=100,
    eval_points=0,
    runs=folder.parent,
    name=folder.name,
)
trained = robo_rl.train(config, console=Console())
print(trained.evaluation.line())

# 3. The video: the policy plays four episodes, as it would in any Gymnasium loop.

env = gymnasium.make("Puck-v0", render_mode="rgb_array")
frames = []
for episode in range(4):
    observation, _ = env.reset(seed=1_000 + episode)
    over = False
    while not over:
        action, _ = trained.policy.predict(observation)
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        frames.append(env.render())
env.close()
path = folder / "video.webm"
imageio.imwrite(path, frames, plugin="pyav", codec="libvpx-vp9", fps=20)
print(f"video: {path}")
