"""`robo-rl bench render`: frames/s of the arm scene at 224 px, and what threads add."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

import sims
from robo_rl.benches import Figure, interleaved
from robo_rl.benches.sim import Run, rate_of

Array = np.ndarray

SIDE = 224  # px
SIDES = (96, 224)  # px, of the frames that rewards look at
FRAMES = 128  # per round; the renderer as shipped draws a sixteenth of them


def bench(say: Callable[[str], None]) -> list[Figure]:
    """Ours beside Gymnasium's renderer as shipped, and beside MuJoCo's bare calls."""
    say(f"{FRAMES} frames of the arm scene")
    env = sims.make("reach", FRAMES)
    env.scatter()
    states = env.state()
    runs: dict[str, Run] = {
        "ours": drawn(env, states, SIDE),
        "tuned": tuned(env, states),
        "shipped": shipped(env, states[: max(4, FRAMES // 16)]),
    }
    single = sims.make("reach", FRAMES, num_threads=1)
    for side in SIDES:
        runs[f"all {side}"] = drawn(env, states, side)
        runs[f"one {side}"] = drawn(single, states, side)
    found = interleaved({name: rate_of(run) for name, run in runs.items()})
    env.close()
    single.close()
    what, one = f"arm scene, {SIDE} px, frames", "our frames on one thread"
    return [
        Figure(what, found["ours"], found["shipped"], "Gymnasium's renderer as shipped", 15.0),
        Figure(what, found["ours"], found["tuned"], "MuJoCo's bare calls, tuned alike", 0.9),
        *(
            Figure(f"{side} px, frames", found[f"all {side}"], found[f"one {side}"], one, 1.0)
            for side in SIDES
        ),
    ]


def drawn(env: sims.BatchEnv, states: Array, side: int) -> Run:
    """Our frames, on the threads that ``env`` may draw with."""
    return lambda: len(env.render_states(states, size=(side, side)))


def tuned(env: sims.BatchEnv, states: Array) -> Run:
    """MuJoCo's calls alone, with the settings our renderer has; no looks, no checks."""
    from sims.cameras import Renderer

    renderer = Renderer(env.model, SIDE, SIDE)
    model, data, scene = renderer._model, renderer._data, renderer._scene
    out = np.empty((SIDE, SIDE, 3), np.uint8)
    renderer._camera.fixedcamid = model.camera(env.cameras[0]).id

    def run() -> int:
        renderer._gl.make_current()
        for state in states:
            mujoco.mj_setState(model, data, state, renderer._spec)
            mujoco.mj_kinematics(model, data)
            mujoco.mj_camlight(model, data)
            mujoco.mjv_updateScene(
                model, data, renderer._option, None, renderer._camera,
                mujoco.mjtCatBit.mjCAT_ALL, scene,
            )  # fmt: skip
            mujoco.mjr_render(renderer._rect, scene, renderer._context)
            mujoco.mjr_readPixels(out, None, renderer._rect, renderer._context)
        return len(states)

    return run


def shipped(env: sims.BatchEnv, states: Array) -> Run:
    """Gymnasium's own MujocoRenderer on the same model with its defaults."""
    from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer

    model = env.task.model()
    model.vis.global_.offwidth = model.vis.global_.offheight = SIDE
    data = mujoco.MjData(model)
    renderer = MujocoRenderer(model, data, None, SIDE, SIDE, camera_name=env.cameras[0])

    def run() -> int:
        for state in states:
            mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
            mujoco.mj_forward(model, data)
            renderer.render("rgb_array")
        return len(states)

    return run
