"""frames/s of the arm scene at 224 px, and what further cores add."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np

import sims
from benchmarks.peers import Peer
from benchmarks.rates import Figure, Say, interleaved, rates
from benchmarks.sim import Run, rate_of
from sims.rendering.cameras import Renderer

Array = np.ndarray

SIDE = 224  # px
SIDES = (96, 224)  # px, of the frames that rewards look at
FRAMES = 128  # per round; Gymnasium's renderer draws a sixteenth of them

# What somebody writes who renders a scene of their own with Gymnasium: the scene's file, where the
# joints are, the camera's name.
GYMNASIUM = """
import sys
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
xml, joints, camera, side = *sys.argv[1:4], int(sys.argv[4])
class Scene(MujocoEnv):
    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]}
size = {"width": side, "height": side}
env = Scene(xml, 1, None, render_mode="rgb_array", camera_name=camera, **size)
rows = np.load(joints)
print(env.render().shape, flush=True)
for line in sys.stdin:
    for row in rows:
        env.set_state(row[:env.model.nq], row[env.model.nq:])
        env.render()
    print(len(rows), flush=True)
env.close()
"""


def bench(scene: str, say: Say) -> list[Figure]:
    """Ours beside Gymnasium's renderer as shipped, and beside MuJoCo's bare calls."""
    say(f"{FRAMES} frames of the arm scene")
    env = sims.make("reach", FRAMES)
    env.scatter()
    states = env.state()
    renderer = Renderer(env.model, SIDE, SIDE)
    peers = {
        "shipped": gymnasiums(env, renderer.backend, shadows=True),
        "our scene": gymnasiums(env, renderer.backend, shadows=False),
    }
    runs: dict[str, Run] = {
        "ours": our_frames(env, states, SIDE),
        "tuned": tuned(renderer, states, env.cameras[0]),
    }
    single = sims.make("reach", FRAMES, num_threads=1)
    for side in SIDES:
        runs[f"all {side}"] = our_frames(env, states, side)
        runs[f"one {side}"] = our_frames(single, states, side)
    found = interleaved({name: rate_of(run) for name, run in (runs | peers).items()})
    for open_one in (*peers.values(), renderer, env, single):
        open_one.close()
    what, one = f"arm scene, {SIDE} px, frames", "our frames on one core"
    theirs = "Gymnasium's renderer"
    return [
        Figure(what, found["ours"], found["shipped"], f"{theirs} as shipped", 15.0),
        Figure(what, found["ours"], found["our scene"], f"{theirs}, no light casts shadows", 1.0),
        Figure(what, found["ours"], found["tuned"], "MuJoCo's bare calls, tuned alike", 0.9),
        *(
            Figure(f"{side} px, frames", found[f"all {side}"], found[f"one {side}"], one, 1.0)
            for side in SIDES
        ),
    ]


def our_frames(env: sims.BatchEnv, states: Array, side: int) -> Run:
    """Our frames, on the cores that ``env`` may draw with."""
    return lambda: len(env.render_states(states, size=(side, side)))


def tuned(renderer: Renderer, states: Array, camera: str) -> Run:
    """MuJoCo's calls alone, with the settings our renderer has; no looks, no checks."""
    model, data, scene = renderer._model, renderer._data, renderer._scene
    out = np.empty((SIDE, SIDE, 3), np.uint8)
    renderer._camera.fixedcamid = model.camera(camera).id

    def run() -> int:
        renderer._gl.make_current()
        for state in states:
            mujoco.mj_setState(model, data, state, renderer._spec)
            mujoco.mj_kinematics(model, data)
            mujoco.mj_camlight(model, data)
            mujoco.mjv_updateScene(
                model,
                data,
                renderer._option,
                None,
                renderer._camera,
                mujoco.mjtCatBit.mjCAT_ALL,
                scene,
            )
            mujoco.mjr_render(renderer._rect, scene, renderer._context)
            mujoco.mjr_readPixels(out, None, renderer._rect, renderer._context)
        return len(states)

    return run


def gymnasiums(env: sims.BatchEnv, backend: str, *, shadows: bool) -> Peer:
    """Gymnasium's own environment of the same scene in the same states, on the same ``backend``.

    Everything about how it looks is MuJoCo's default. So are ``shadows``, which each light casts
    that is not told otherwise; ours are.
    """
    spec = env.task.spec()
    for light in spec.lights:
        light.castshadow = shadows
    spec.compile()
    joints = np.concatenate([env.batch.qpos, env.batch.qvel], axis=1)[: max(4, FRAMES // 16)]
    with tempfile.TemporaryDirectory() as folder:  # the peer has read it when it is ready
        scene, where = Path(folder) / "scene.xml", Path(folder) / "joints.npy"
        scene.write_text(spec.to_xml())
        np.save(where, joints)
        return Peer(
            sys.executable, GYMNASIUM, scene, where, env.cameras[0], SIDE, MUJOCO_GL=backend
        )


EXPERIMENT = rates(__name__, bench, ("arm scene",))
