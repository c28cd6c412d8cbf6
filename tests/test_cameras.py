"""Frames: a pure function of a state row and a look."""

from __future__ import annotations

import dataclasses
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import sims
from robo_rl.vision.state_collection import collect_states, jitter
from sims import BatchEnv
from sims.rendering import cameras
from sims.rendering.cameras import SKY, Appearance, Camera, Renderer, RenderError, geom_ids

Array = np.ndarray


@pytest.fixture(scope="module")
def env() -> BatchEnv:
    env = sims.make("reach", 6, seed=1)
    env.scatter()
    return env


@pytest.mark.parametrize("name", sims.TASKS)
def test_frames_have_camera_size_and_differ_by_env_and_camera(name: str) -> None:
    env = sims.make(name, 2, seed=1)
    env.scatter()
    pictures = {}
    for camera in env.task.cameras:
        frames = pictures[camera.name] = env.render(camera=camera.name)
        assert frames.shape == (2, camera.height, camera.width, 3) and frames.dtype == np.uint8
        assert frames.std() > 10  # something is in the picture
        assert (frames[0] != frames[1]).any()
    assert len({frames.tobytes() for frames in pictures.values()}) == len(env.cameras)
    assert (env.render() == pictures[env.cameras[0]]).all()  # the first is the default
    env.close()


@pytest.mark.parametrize("name", ["reach", "humanoid", "ant"])
def test_background_is_sky_not_black(name: str) -> None:
    env = sims.make(name, 1, seed=1)
    top = env.render(camera=env.cameras[0])[0, 0]
    assert top.min() > 20
    if name == "reach":  # has no sky of its own
        assert np.abs(top - 255 * np.array(SKY)).max() < 12
    env.close()


def test_stored_state_renders_the_same_frame_later(env: BatchEnv) -> None:
    states, now = env.state(), env.render()
    twin = sims.make("reach", 6)
    twin.set_state(states)
    assert (twin.render() == now).all()
    env.scatter()
    env.step(np.ones((6, 3)))
    assert (env.render() != now).any()
    order = np.array([4, 0, 4])
    assert (env.render_states(states[order]) == now[order]).all()
    assert (env.render(np.array([2])) == env.render()[2]).all()
    twin.close()


def test_rendering_leaves_the_simulation_unchanged(env: BatchEnv) -> None:
    before, obs = env.state(), env.signals()
    env.render()
    assert (env.state() == before).all()
    assert all((env.signals()[key] == obs[key]).all() for key in obs)


LOOKS = {
    "geom_rgba": {"table": np.array([[0.1, 0.1, 0.9, 1.0], [0.1, 0.9, 0.1, 1.0]])},
    "light": np.array([0.5, 1.5]),
    "camera_offset": np.array([[0.02, 0.0, 0.0], [0.0, 0.02, 0.0]]),
    "camera_roll": np.array([[0.0, 0.0, 0.1], [0.05, 0.0, 0.0]]),
    "fovy": np.array([0.9, 1.1]),
}


def look(field: str, rows: slice) -> Appearance:
    """The look that changes ``field`` alone, for ``rows`` of LOOKS."""
    value = LOOKS[field]
    if isinstance(value, dict):
        return Appearance(**{field: {key: array[rows] for key, array in value.items()}})
    return Appearance(**{field: value[rows]})


@pytest.mark.parametrize(
    "field", sorted({f.name for f in dataclasses.fields(Appearance)} - {"numbered"})
)
def test_appearance_changes_only_its_own_frame(env: BatchEnv, field: str) -> None:
    states = env.state()[[0, 0]]
    plain = env.render_states(states)
    frames = env.render_states(states, look=look(field, slice(0, 2)))
    for i in range(2):
        assert (frames[i] != plain[i]).mean() > 0.05
    assert (frames[0] != frames[1]).any()
    assert (env.render_states(states[1:], look=look(field, slice(1, 2)))[0] == frames[1]).all()
    assert (env.render_states(states) == plain).all()


def test_segmentation_frames_give_geom_ids_and_leave_no_trace() -> None:
    env = sims.make("pick_place", 8, seed=3)
    env.scatter()
    states = env.state()
    rng, view = np.random.default_rng(0), env.camera("top")
    moved = Appearance(**jitter(rng, len(states), view, camera=0.06, light=0.3))
    plain = env.render_states(states, "top", look=moved)
    numbered = dataclasses.replace(moved, numbered=True)
    seen = geom_ids(env.render_states(states, "top", look=numbered))
    assert (env.render_states(states, "top", look=moved) == plain).all()
    assert seen.shape == plain.shape[:3] and set(np.unique(seen)) <= {*range(-1, env.model.ngeom)}
    for geom in ("red_cube", "table"):
        other = {geom: np.tile([0.1, 0.9, 0.9, 1.0], (len(states), 1))}
        painted = env.render_states(states, "top", look=dataclasses.replace(moved, geom_rgba=other))
        shown = seen == env.model.geom(geom).id
        assert shown.any() and (((painted != plain).any(axis=-1)) == shown).all()
    env.close()


@pytest.fixture(scope="module")
def lift() -> tuple[BatchEnv, Array, Array]:
    """An env, states of it and where the cube is in each."""
    env = sims.make("lift", 64, seed=3)
    states, signals = collect_states(env, 450, 3)
    return env, states, signals["red_cube_pos"]


@pytest.mark.parametrize("name", ["front", "top"])
def test_camera_visibility_matches_frame_changes(
    name: str, lift: tuple[BatchEnv, Array, Array]
) -> None:
    """Painted otherwise, a cube beyond the edges changes no pixel, wherever the camera is moved."""
    env, states, cube = lift
    view, rng = env.camera(name), np.random.default_rng(0)
    moved = jitter(rng, len(states), view, camera=0.2, light=0.0)
    seen = view.sees(cube, Appearance(**moved))

    def painted(colour: tuple[float, ...]) -> Array:
        rgba = {"red_cube": np.tile(colour, (len(states), 1))}
        return env.render_states(states, name, look=Appearance(geom_rgba=rgba, **moved)).astype(int)

    apart = np.abs(painted((1, 0, 0, 1)) - painted((0, 1, 0, 1))).sum(axis=(1, 2, 3)) > 0
    assert 20 < (~seen).sum() < 90
    assert apart[seen].mean() > 0.9  # the arm may stand before it
    # A corner of a cube whose middle is beyond the edge is in the picture still.
    assert apart[~seen].mean() < 0.6
    far = np.where(cube > 0, 5.0, -5.0)  # behind the camera, or far aside
    assert not view.sees(far, Appearance(**moved)).any()


def test_appearance_is_restored_when_rendering_fails(env: BatchEnv) -> None:
    states = env.state()[:2]
    plain = env.render_states(states)
    with pytest.raises(IndexError):
        env.render_states(states, look=Appearance(light=np.array([0.3])))
    assert (env.render_states(states) == plain).all()


def test_renderers_do_not_affect_each_other(env: BatchEnv) -> None:
    now = env.render()
    closed, dropped = sims.make("reach", 2, seed=2), sims.make("reach", 2, seed=3)
    for other in (closed, dropped):
        other.scatter()
        other.render()
        assert (env.render() == now).all()
    closed.close()
    assert (env.render() == now).all()
    del dropped, other
    gc.collect()
    assert (env.render() == now).all()


def test_render_accepts_any_size(env: BatchEnv) -> None:
    assert env.render_states(env.state()[:1], "top", size=(40, 64)).shape == (1, 40, 64, 3)


@pytest.mark.parametrize("task", ["reach", "stack"])
def test_coarse_meshes_hardly_change_small_frames(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = sims.make(task, 16, seed=3)
    env.scatter()
    model, states = env.task.model(), env.state()
    coarse = Renderer(model, 96, 96).frames(states, "front")
    monkeypatch.setattr(cameras, "COARSE_UP_TO", 0)
    fine = Renderer(model, 96, 96).frames(states, "front")
    assert (coarse != fine).any()
    off = np.abs(coarse.astype(int) - fine).max(-1) > 8
    assert off.mean() < 3e-4  # of 9,216 pixels less than three


def test_the_image_is_upright() -> None:
    camera = Camera("c", pos=(1.0, 0.0, 0.5), target=(0.0, 0.0, 0.0))
    right, up = camera.axes()
    forward = np.subtract(camera.target, camera.pos)
    assert up[2] > 0 and abs(right @ up) < 1e-12 and abs(right @ forward) < 1e-12
    assert np.allclose(right, [0, 1, 0])  # looking back along x, world's y is on the right


def test_render_errors_name_the_problem(env: BatchEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = Renderer(env.model, 32, 32)
    states = env.state()[:1]
    with pytest.raises(ValueError, match=r"states must have shape \(n, \d+\), got \(1, 3\)"):
        renderer.frames(np.zeros((1, 3)), "front")
    with pytest.raises(ValueError, match="unknown camera 'rear'; available: front, top"):
        renderer.frames(states, "rear")
    caught: list[BaseException] = []

    def elsewhere() -> None:
        try:
            renderer.frames(states, "front")
        except RenderError as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "create one per thread" in str(caught[0])
    renderer.close()
    renderer.close()
    with pytest.raises(RenderError, match="is closed; create a new one"):
        renderer.frames(states, "front")
    monkeypatch.setenv("MUJOCO_GL", "vulkan")
    with pytest.raises(RenderError, match="must be one of egl, osmesa, glfw, got 'vulkan'"):
        Renderer(env.model, 8, 8)


DRAWS_AND_LEARNS = {
    "ours": """
import sims
env = sims.make("reach", 1); env.reset(); env.render()
import triton  # as torch's optimisers do
""",
    "Gymnasium's": """
from sims.external.gymnasium_env import GymnasiumEnv
env = GymnasiumEnv("gym:Reacher-v5", 1, frames=True); env.reset(); env.render()
import triton
""",
}


@pytest.mark.skipif(find_spec("triton") is None, reason="only triton crashes")
@pytest.mark.parametrize("code", DRAWS_AND_LEARNS.values(), ids=DRAWS_AND_LEARNS)
def test_rendering_before_training_does_not_crash(code: str) -> None:
    """In a process of its own: where it fails, it fails by a segmentation fault."""
    root = str(Path(__file__).parents[1])
    env = {"MUJOCO_GL": "egl", **os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_renderers_of_two_threads_take_turns_and_are_freed_safely() -> None:
    env = sims.make("reach", 24, seed=1, num_threads=1)
    env.scatter()
    states = env.state()
    one = Renderer(env.model, 32, 32)
    alone = one.frames(states, "front")
    with ThreadPoolExecutor(3) as threads:
        drawn = [
            threads.submit(lambda: Renderer(env.model, 32, 32).frames(states, "front"))
            for _ in range(9)
        ]
        for frames in drawn:
            np.testing.assert_array_equal(frames.result(), alone)
    with cameras._screen:  # as if this thread were drawing
        del one
        gc.collect()
        assert len(cameras._left) == 1
    np.testing.assert_array_equal(Renderer(env.model, 32, 32).frames(states, "front"), alone)
    assert not cameras._left
