"""Anyone's Gymnasium env as a simulator: ``gym:ID``, here or in an interpreter of its own.

Actions in [-1, 1] are rescaled to the env's own bounds, or choose one of n by the largest of n
numbers; observations are flattened. With
``python`` the env runs in that interpreter, which needs gymnasium and numpy and nothing of ours;
observations, actions and frames cross through files mapped into both processes.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sims.core.step_result import StepResult
from sims.external import gymnasium_worker
from sims.rendering.cameras import preload_triton, working_gl_backend
from sims.utils import process

Array = np.ndarray

PREFIX = "gym:"
CAMERA = "default"  # what Gymnasium's own ``render`` shows


class ExternalEnvError(OSError):
    """The env cannot be drawn, or that of the other interpreter failed, died or does not answer."""


class NoTimeLimit(UserWarning):
    """An env does not end its episodes after some number of steps."""

    one_line = True  # in the shell


class GymnasiumEnv:
    """``num_envs`` rows of the Gymnasium env ``gym:ID``; a VecSim.

    ``info["success"]`` is there where the env reports ``is_success`` or ``success``. Signals:
    ``obs``. There is a camera where ``frames`` is asked for, whose frames are of ``frame_size``
    (height, width) px where that is said, stretched, or with ``frame_crop`` cropped to its shape.
    ``kwargs`` go to the constructor;
    in them ``"$SEED"`` stands for each row's own seed, for envs that ``reset(seed=...)`` does not
    seed. An episode ends after ``max_steps`` steps at most, the limit that the env was registered
    or made with (``kwargs``: ``max_episode_steps``), else 1,000.
    """

    def __init__(
        self,
        name: str,
        num_envs: int,
        *,
        seed: int = 0,
        frames: bool = False,
        frame_size: tuple[int, int] | None = None,
        frame_crop: bool = False,
        python: str | Path = "",
        timeout_s: float = 60.0,
        **options: Any,
    ):
        if not name.startswith(PREFIX) or not name.removeprefix(PREFIX):
            raise ValueError(f"a Gymnasium env is named gym:ID, got {name!r}")
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        unknown = set(options) - {"import", "kwargs"}
        if unknown:
            raise ValueError(f"unknown options {', '.join(unknown)}; available: import, kwargs")
        env_id, seeds = name.removeprefix(PREFIX), _seeds(seed, num_envs)
        here = _OtherInterpreter(python, timeout_s) if python else _InProcess()
        told = here.start(env_id, num_envs, seeds, frames, options)
        self.name, self.num_envs, self._side = name, num_envs, here
        self.obs_dim, self.act_dim = told["obs_dim"], told["act_dim"]
        self.obs_names = tuple(f"obs[{i}]" for i in range(self.obs_dim))
        self.control_dt, self.max_steps = told["control_dt"], told["max_steps"]
        if not told["limited"]:
            warnings.warn(
                f"{name} has no time limit: episodes end after {self.max_steps:,} steps; "
                """--env-kwargs '{"max_episode_steps": N}' sets another limit""",
                NoTimeLimit,
                stacklevel=2,
            )
        self.cameras: tuple[str, ...] = (CAMERA,) if frames else ()
        self.frame_size, self.frame_crop = frame_size, frame_crop
        self._last = np.zeros((num_envs, self.obs_dim), np.float32)
        self._judges = False

    @property
    def card(self) -> dict[str, Any]:
        """What there is to know: no goals and no entities, for a foreign env names none."""
        signal = {
            "name": "obs",
            "shape": (self.obs_dim,),
            "unit": "",
            "frame": "",
            "on_robot": False,
            "range": (-np.inf, np.inf),
            "doc": "the env's observation, flattened",
        }
        return {
            "task": self.name,
            "goal": "",
            "signals": [signal],
            "entities": [],
            "goals": {},
            "cameras": list(self.cameras),
            "control_dt": self.control_dt,
            "episode_s": self.max_steps * self.control_dt,
            "params": {},
        }

    def reset(self, mask: Array | None = None) -> Array:
        """Observations (N, obs_dim) f32 after new episodes in the masked rows (all by default)."""
        ids = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        self._side.reset(ids.tolist())
        self._last = self._side.obs.astype(np.float32)
        return self._last.copy()

    def step(self, action: Array) -> StepResult:
        """Returns the true successors of ``action``; an ended environment waits for its reset.

        Args:
            action: (N, act_dim) in [-1, 1].

        Raises:
            ValueError: the action has another shape.
        """
        action = np.asarray(action, float)
        if action.shape != (self.num_envs, self.act_dim):
            raise ValueError(
                f"action must have shape {(self.num_envs, self.act_dim)}, got {action.shape}"
            )
        bad = ~np.asarray(np.isfinite(action).all(axis=1))
        side = self._side
        action = np.clip(np.where(bad[:, None], 0.0, action), -1.0, 1.0)
        side.action[:] = action
        side.step()
        obs = side.obs.astype(np.float32)
        diverged = bad | ~np.isfinite(obs).all(axis=1) | ~np.isfinite(side.reward)
        obs[diverged] = self._last[diverged]
        self._last = obs
        terminated, truncated = (side.ended[:, i] > 0 for i in range(2))
        info = {"diverged": diverged}
        self._judges |= bool((side.success >= 0).any())
        if self._judges:
            info["success"] = side.success > 0
        reward = np.where(diverged, 0.0, side.reward).astype(np.float32)
        ended = terminated & ~diverged, truncated | diverged
        return StepResult(obs.copy(), reward, *ended, info, action)

    def signals(self) -> dict[str, Array]:
        """{"obs": (N, obs_dim)}."""
        return {"obs": self._last.copy()}

    def render(self, ids: Array | None = None, camera: str | None = None) -> Array:
        """Returns frames (n, H, W, 3) uint8 of environments ``ids`` as they are now.

        Args:
            ids: (n,) the environments; by default all.
            camera: the name of the only camera, or None.

        Raises:
            ValueError: the env was created without frames, or has no such camera.
        """
        if not self.cameras:
            raise ValueError(f"{self.name} was created without frames; create it with frames=True")
        if camera not in (None, CAMERA):
            raise ValueError(f"unknown camera {camera!r} in {self.name}; available: {CAMERA}")
        rows = np.arange(self.num_envs) if ids is None else np.asarray(ids)
        from sims.rendering.resize import resize_frames  # OpenCV: a sixth of a second that few need

        frames = self._side.render(rows.tolist(), self.frame_size)
        return resize_frames(frames, self.frame_size, self.frame_crop)

    def close(self) -> None:
        """Ends the env, and its process if it has one; safe to call twice."""
        self._side.close()


class _InProcess:
    """Rows in this process."""

    def start(self, env_id: str, n: int, seeds: list[int], frames: bool, options: Any) -> Any:
        if frames:
            preload_triton()
            screen = sys.platform != "linux" or os.environ.get("DISPLAY")
            if not screen and "MUJOCO_GL" not in os.environ:
                os.environ["MUJOCO_GL"] = working_gl_backend()  # Gymnasium's renderer asks for it
        try:
            self._rows = gymnasium_worker.WorkerEnvs(env_id, n, seeds, frames, options)
        except ValueError:
            raise
        except Exception as error:  # whatever making an unknown env may raise
            raise ValueError(f"gym:{env_id} cannot be created: {_line(error)}") from error
        self._name = f"gym:{env_id}"
        self.action = np.zeros((n, self._rows.act_dim))
        self.reward, self.success = np.zeros(n), np.full(n, -1.0)
        return self._rows.describe()

    @property
    def obs(self) -> Array:
        return self._rows.obs

    @property
    def ended(self) -> Array:
        return self._rows.ended

    def reset(self, ids: list[int]) -> None:
        self._rows.reset(ids)

    def step(self) -> None:
        self._rows.step(self.action, self.reward, self.success)

    def render(self, ids: list[int], size: tuple[int, int] | None) -> Array:
        try:
            return self._rows.render(ids, size)
        except Exception as error:  # whatever drawing an unknown env may raise
            raise ExternalEnvError(f"{self._name} cannot be rendered: {_line(error)}") from error

    def close(self) -> None:
        self._rows.close()


class _OtherInterpreter:
    """Rows in another interpreter."""

    def __init__(self, python: str | Path, timeout_s: float):
        self._python, self._timeout = shutil.which(str(python)), timeout_s
        if self._python is None:
            raise ValueError(
                f"cannot find Python interpreter {str(python)!r}: give the path of an executable"
            )
        self._process: subprocess.Popen[str] | None = None

    def start(self, env_id: str, n: int, seeds: list[int], frames: bool, options: Any) -> Any:
        self._name = f"gym:{env_id} in {self._python}"
        shm = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(
            prefix="robo-rl-", dir=shm if shm.is_dir() else None
        )
        folder = Path(self._folder.name)
        asked = {"id": env_id, "n": n, "seeds": seeds, "frames": frames, "options": options}
        self._errors = (folder / "stderr").open("w+")
        self._process = process.start_user_program(
            self._python,
            "-u",
            gymnasium_worker.__file__,
            json.dumps(asked),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        told = self._answer()
        fields = gymnasium_worker.array_layout(n, told["obs_dim"], told["act_dim"])
        arrays = folder / "arrays"
        arrays.write_bytes(bytes(gymnasium_worker.array_bytes(fields)))
        self._frames = folder / "frames"
        self._frames.touch()
        shared = gymnasium_worker.map_arrays(str(arrays), fields)
        self.obs, self.action, self.ended = (shared[k] for k in ("obs", "action", "ended"))
        self.reward, self.success = shared["reward"], shared["success"]
        self.success[:] = -1.0
        self._ask(do="map", path=str(arrays))
        return told

    def reset(self, ids: list[int]) -> None:
        self._ask(do="reset", ids=ids)

    def step(self) -> None:
        self._ask(do="step")

    def render(self, ids: list[int], size: tuple[int, int] | None) -> Array:
        told = self._ask(do="render", ids=ids, size=size, path=str(self._frames))
        shape = tuple(told["shape"])
        return np.array(np.memmap(self._frames, np.uint8, "r", 0, shape))

    def _ask(self, **request: Any) -> Mapping[str, Any]:
        if self._process is None or self._process.stdin is None:
            raise ExternalEnvError(f"{self._name} is closed; create a new one")
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, OSError):
            self._fail("died")
        return self._answer()

    def _answer(self) -> Mapping[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            # A program that was stopped meanwhile has slept through the answer: look once more.
            if not (selector.select(self._timeout) or selector.select(0)):
                self._fail(f"gave no answer for {self._timeout:g} s; it was ended")
        line = self._process.stdout.readline()
        if not line:
            self._fail("died")
        answer = json.loads(line)
        if "error" in answer:
            self._fail(f"failed: {' '.join(answer['error'].split())}", last_words=False)
        return answer

    def _fail(self, what: str, last_words: bool = True) -> None:
        """Ends the other side and raises, with the last thing it said."""
        assert self._process is not None
        self._process.kill()
        status = self._process.wait()
        self._errors.seek(0)
        said = [line.strip() for line in self._errors if line.strip()] if last_words else []
        self.close()
        why = f" (exit status {status})" if what == "died" and status != -9 else ""
        raise ExternalEnvError(f"{self._name} {what}{why}" + (f": {said[-1]}" if said else ""))

    def close(self) -> None:
        if self._process is None:
            return
        child, self._process = self._process, None
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # what was still to be said to it no longer matters
        try:
            child.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self._errors.close()
        self._folder.cleanup()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.close()


def _seeds(seed: int, n: int) -> list[int]:
    """A seed for each row, the same for row k of any number of rows."""
    return [int(np.random.SeedSequence((seed, k)).generate_state(1)[0]) for k in range(n)]


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
