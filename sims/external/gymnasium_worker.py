"""Rows of a Gymnasium env, in this process or as the far side of
``sims/external/gymnasium_env.py``.

This file runs in other people's interpreters: it imports gymnasium, numpy and the standard library
alone, and is started by path. Run as a program it makes the rows that its first argument describes
(JSON), maps the arrays that both sides share, and answers one line of JSON per line of JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import sys
from ctypes.util import find_library
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.spaces import Box, Discrete
from gymnasium.spaces.utils import flatten, flatten_space

NO_LIMIT = 1000  # steps of an episode of an env that has no time limit
SEED = "$SEED"  # in the env's arguments: each row's own seed


def render_headless() -> None:
    """Has Gymnasium's MuJoCo draw where there is no screen, unless $MUJOCO_GL says how."""
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        osmesa = not find_library("EGL") and find_library("OSMesa")
        os.environ.setdefault("MUJOCO_GL", "osmesa" if osmesa else "egl")


def import_env(env_id: str) -> None:
    """Imports what ``gymnasium.make`` will: with it MuJoCo, where the env has it."""
    with contextlib.suppress(Exception):  # make says what is wrong
        module, _, name = env_id.rpartition(":")
        if module:
            importlib.import_module(module)
        entry = gymnasium.spec(name).entry_point
        if isinstance(entry, str):
            load_env_creator(entry)


class WorkerEnvs:
    """``n`` copies of one env. A row that has ended stays where it is until it is reset."""

    def __init__(self, env_id: str, n: int, seeds: list[int], frames: bool, options: dict) -> None:
        if frames:
            render_headless()  # before anything imports MuJoCo, which looks how it is to draw then
        if options.get("import"):
            importlib.import_module(options["import"])  # whose import registers the env
        import_env(env_id)
        beside = os.path.join(os.path.dirname(__file__), "..", "utils", "mujoco_warnings.py")
        runpy.run_path(beside)["take_mujoco_warnings"]()  # it imports no more than this file does
        mode = {"render_mode": "rgb_array"} if frames else {}
        kwargs = {**mode, **options.get("kwargs", {})}
        self.envs = [
            gymnasium.make(env_id, **{k: seed if v == SEED else v for k, v in kwargs.items()})
            for seed in seeds[:n]
        ]
        self.seeds = list(seeds)
        env = self.envs[0]
        self.space = env.observation_space
        box = env.action_space
        # One of n is chosen by the largest of n numbers, so that every learner can choose.
        self.first = int(box.start) if isinstance(box, Discrete) else None
        if isinstance(box, Discrete):
            box = Box(-1.0, 1.0, (int(box.n),))
        if not isinstance(box, Box):
            raise ValueError(
                f"{env_id} has actions {box}: expected a bounded Box or a Discrete; wrap the "
                "env so that its action space is one of these"
            )
        if not (np.isfinite(box.low).all() and np.isfinite(box.high).all()):
            raise ValueError(
                f"{env_id} has an action space without bounds ({box}): rescaling needs bounds"
            )
        flat = flatten_space(self.space)
        if not isinstance(flat, Box):
            raise ValueError(
                f"{env_id} has observations {self.space} that are not a vector of fixed size"
            )
        self.obs_dim, self.act_dim = int(flat.shape[0]), int(np.prod(box.shape))
        self.low, self.high = (np.asarray(x, float).ravel() for x in (box.low, box.high))
        self.action_shape, self.action_dtype = box.shape, box.dtype
        self.obs = np.zeros((n, self.obs_dim))
        self.ended = np.zeros((n, 2), bool)  # terminated, truncated
        limit = env.spec.max_episode_steps if env.spec else None
        self.limited = bool(limit and limit > 0)
        self.max_steps = limit if self.limited else NO_LIMIT
        self.steps = np.zeros(n, int)  # of each episode so far

    def describe(self) -> dict:
        """What the other side needs to know before the first step."""
        env = self.envs[0]
        fps = (env.metadata or {}).get("render_fps")
        dt = getattr(env.unwrapped, "dt", None)
        return {
            "obs_dim": self.obs_dim,
            "act_dim": self.act_dim,
            "control_dt": float(dt) if dt else 1.0 / fps if fps else 1.0,
            "max_steps": self.max_steps,
            "limited": self.limited,
        }

    def reset(self, ids: list[int]) -> None:
        for i in ids:
            # A row is seeded once; then its env goes on drawing.
            obs, _ = self.envs[i].reset(seed=self.seeds[i])
            self.seeds[i] = None
            self.obs[i] = flatten(self.space, obs)
            self.ended[i] = False
            self.steps[i] = 0

    def step(self, action: np.ndarray, reward: np.ndarray, success: np.ndarray) -> None:
        """Fills ``reward`` (n,) and ``success`` (n,): 1, 0, or -1 where the env does not say."""
        reward[:] = 0.0
        share = 0.5 * (np.clip(action, -1.0, 1.0) + 1.0)
        theirs = self.low + (self.high - self.low) * share
        for i, env in enumerate(self.envs):
            if self.ended[i].any():
                continue
            if self.first is None:
                given = theirs[i].reshape(self.action_shape).astype(self.action_dtype)
            else:
                given = self.first + int(np.argmax(theirs[i]))
            obs, worth, terminated, truncated, info = env.step(given)
            self.obs[i] = flatten(self.space, obs)
            self.steps[i] += 1
            over = truncated or self.steps[i] >= self.max_steps  # whatever the env has of a limit
            reward[i], self.ended[i] = worth, (terminated, over)
            said = info.get("is_success", info.get("success"))
            success[i] = -1 if said is None else bool(said)

    def render(self, ids: list[int], size: list[int] | None = None) -> np.ndarray:
        """Frames (k, H, W, 3) uint8, where Gymnasium's MuJoCo draws them no larger than ``size``
        (height, width): its 480 x 480 px take four times as long as a CLIP's 96 x 96."""
        for i in ids:
            drawn_by: Any = getattr(self.envs[i].unwrapped, "mujoco_renderer", None)
            if size and getattr(drawn_by, "viewer", self) is None:  # before its first frame
                drawn_by.height = min(drawn_by.height or size[0], size[0])
                drawn_by.width = min(drawn_by.width or size[1], size[1])
        return np.stack([np.array(self.envs[i].render(), np.uint8) for i in ids])

    def close(self) -> None:
        for env in self.envs:
            env.close()


def array_layout(n: int, obs_dim: int, act_dim: int) -> dict[str, tuple[tuple[int, ...], str, int]]:
    """{name: (shape, dtype, offset in bytes)} of the arrays that both sides share."""
    fields = {
        "obs": ((n, obs_dim), "f8"),
        "action": ((n, act_dim), "f8"),
        "reward": ((n,), "f8"),
        "success": ((n,), "f8"),
        "ended": ((n, 2), "f8"),
    }
    out, offset = {}, 0
    for name, (shape, dtype) in fields.items():
        out[name] = (shape, dtype, offset)
        offset += 8 * int(np.prod(shape))
    return out


def array_bytes(fields: dict) -> int:
    """Bytes of the shared arrays."""
    return max(offset + 8 * int(np.prod(shape)) for shape, _, offset in fields.values())


def map_arrays(path: str, fields: dict) -> dict[str, np.ndarray]:
    """Returns the shared arrays in the file ``path``, by name.

    Args:
        path: the file that holds them all.
        fields: {name: (shape, such as (N, k), dtype, offset in bytes)}.
    """
    return {
        name: np.memmap(path, dtype, "r+", offset, shape)
        for name, (shape, dtype, offset) in fields.items()
    }


def serve() -> None:
    """Answers requests on stdin until it ends."""
    asked = json.loads(sys.argv[1])
    # Whatever the env prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields: object) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    try:
        rows = WorkerEnvs(
            asked["id"], asked["n"], asked["seeds"], asked["frames"], asked["options"]
        )
        told = rows.describe()
    except Exception as error:  # the other side says it in one line
        answer(error=f"{type(error).__name__}: {error}")
        return
    answer(**told)
    shared: dict[str, np.ndarray] = {}
    for line in sys.stdin:
        request = json.loads(line)
        do = request["do"]
        try:
            if do == "map":
                fields = array_layout(asked["n"], rows.obs_dim, rows.act_dim)
                shared = map_arrays(request["path"], fields)
                answer()
                continue
            if do == "reset":
                rows.reset(request["ids"])
            elif do == "step":
                rows.step(shared["action"], shared["reward"], shared["success"])
            elif do == "render":
                frames = rows.render(request["ids"], request["size"])
                with open(request["path"], "r+b") as file:
                    file.truncate(frames.nbytes)
                np.memmap(request["path"], np.uint8, "r+", 0, frames.shape)[:] = frames
                answer(shape=frames.shape)
                continue
            shared["obs"][:], shared["ended"][:] = rows.obs, rows.ended
            answer()
        except Exception as error:
            answer(error=f"{type(error).__name__}: {error}")
    rows.close()


if __name__ == "__main__":
    serve()
