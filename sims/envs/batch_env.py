"""BatchEnv: ``N`` rows of one task on ``mujoco.batch.Batch``.

``step`` never resets: obs, signals and frames are always the true successor of the action, so a
terminal transition is judged on its own last state. The caller resets the rows it wants to reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch, SimulationError

from sims.core.initial_states import write_initial_states
from sims.core.rng import RowRng
from sims.core.step_result import StepResult
from sims.core.task import Task, owned_arrays
from sims.rendering.cameras import Appearance, Camera
from sims.rendering.render_pool import RenderPool
from sims.robots.rate_limits import RateLimitedTargets
from sims.truth import SuccessJudge
from sims.utils.mujoco_warnings import take_mujoco_warnings

Array = np.ndarray

# Bad positions, speeds, accelerations and controls follow each other among MuJoCo's warnings.
_UNSTABLE = slice(
    mujoco.mjtWarning.mjWARN_BADQPOS.value, mujoco.mjtWarning.mjWARN_BADCTRL.value + 1
)
_NOTHING = mujoco.mjtStage.mjSTAGE_NONE.value


class BatchEnv:
    """``num_envs`` rows of ``task``, stepped on ``num_threads`` threads (0: one per core), which
    is also the most that draw their frames.

    ``rows`` names the random streams: ``BatchEnv(task, 1, rows=[k])`` is row ``k`` of any wider
    batch, bit for bit. ``shaped`` rows move within the limits of speed, acceleration and jerk that
    an arm's bridge keeps to (``sims/robots/rate_limits.py``); a state row then ends in the last
    command. Without ``judged`` no goal of the task is meant: there is neither success nor a reward.
    With ``sparse`` the reward is 1 where the goal holds and 0 elsewhere. A share ``scattered`` of
    the episodes begins in states from the whole workspace (``Task.scatter``), as OmniReset's do.
    """

    def __init__(
        self,
        task: Task[Any],
        num_envs: int,
        *,
        seed: int = 0,
        num_threads: int = 0,
        rows: list[int] | None = None,
        shaped: bool = False,
        judged: bool = True,
        sparse: bool = False,
        scattered: float = 0.0,
    ):
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        if sparse and not judged:
            raise ValueError("sparse rewards need the success judge: leave judged=True")
        self.rows = np.arange(num_envs) if rows is None else np.asarray(rows, np.int64)
        if self.rows.shape != (num_envs,):
            raise ValueError(
                f"rows must have one entry per env: expected {num_envs}, got {len(self.rows)}"
            )
        self.task, self.num_envs, self.seed = task, num_envs, seed
        self.shaped, self.judged, self.sparse = shaped, judged, sparse
        self.scattered = scattered
        self.model = task.model()
        self.n_substeps = _whole_steps(task.control_dt, self.model.opt.timestep)
        self.max_steps = _whole_steps(task.episode_s, task.control_dt)
        self.control_dt, self.cameras = task.control_dt, tuple(c.name for c in task.cameras)
        take_mujoco_warnings()  # a failed simulation is counted here
        self.batch = Batch(
            self.model,
            num_envs,
            **({"nthread": num_threads} if num_threads else {}),
            persistent=task.persistent,
        )
        self.views = task.bind(self.batch)
        formula = task.formula if judged else None
        self._goal = task.goals()[task.goal] if judged and formula is None else None
        self.judge = SuccessJudge(formula, task, self.batch, self.views) if formula else None
        self._owned = owned_arrays(self.views)
        self._state, self._warning = self.batch.state, self.batch.warning
        self._shaped = RateLimitedTargets(task, self.batch, self.n_substeps) if shaped else None
        self._episode = np.full(num_envs, -1, np.int64)
        self._step = np.zeros(num_envs, np.int64)
        self._started = np.zeros(num_envs, bool)
        self.held = np.zeros(num_envs, bool)  # rows in whose start the goal held, however drawn
        self._kept = self._state.copy()  # the last states known to be finite
        # What a step that fails goes back to; new arrays of this size cost more than copying.
        self._before = self._state.copy()
        self._kept_owned = {name: array.copy() for name, array in self._owned.items()}
        self.num_diverged = 0
        self.env_steps = 0
        self.num_threads = num_threads
        self._renderers: dict[tuple[int, int], RenderPool] = {}
        self.batch.forward()
        columns = task.obs(self.views)
        self.obs_names = tuple(
            f"{name}[{i}]" for name, c in columns.items() for i in range(c.shape[1])
        )
        self.obs_dim, self.act_dim = len(self.obs_names), task.act_dim

    @property
    def card(self) -> dict[str, Any]:
        """The task's card."""
        return self.task.card()

    @property
    def least_spread(self) -> Array:
        """Returns the least spread (obs_dim,) of the observation's columns (``Task.spread_of``)."""
        parts = self.task.obs(self.views).items()
        return np.concatenate(
            [np.full(part.shape[1], self.task.spread_of(name), float) for name, part in parts]
        )

    @property
    def nstate(self) -> int:
        """Number of values in one environment's state."""
        return self._state.shape[1] + self._commands.shape[1]

    @property
    def _commands(self) -> Array:
        """(N, 3 n) place, speed and acceleration last told to shaped rows' joints, else (N, 0)."""
        command = np.zeros((self.num_envs, 0)) if self._shaped is None else self._shaped.command
        return command.reshape(self.num_envs, -1)

    def reset(self, mask: Array | None = None) -> Array:
        """Starts new episodes and returns the observations (N, obs_dim) f32.

        No episode begins with its goal met, and none that starts in a random state ends at once,
        unless all its samples do (``sims/core/initial_states.py``); those are marked in ``held``.

        Args:
            mask: (N,) bool, the environments that start over; by default all.

        Raises:
            ValueError: the mask has another shape or type.
        """
        if mask is None:
            ids = np.arange(self.num_envs)
        else:
            mask = np.asarray(mask)
            if mask.shape != (self.num_envs,) or mask.dtype != bool:
                raise ValueError(
                    f"mask must be ({self.num_envs},) bool, got {mask.shape} {mask.dtype}"
                )
            ids = np.flatnonzero(mask)
        if self.scattered:
            self._begin(
                ids, self._anywhere, lambda some: self._already_done(some) | self._ends_next(some)
            )
        else:
            self._begin(ids, self.task.reset, self._already_done)
        return self._obs()

    def _anywhere(self, v: Any, ids: Array, rng: RowRng) -> None:
        """Some rows begin where the task does, the others at a scattered state."""
        apart = rng.uniform(0, 1) < self.scattered
        for where, draw in ((apart, self.task.scatter), (~apart, self.task.reset)):
            if where.any():
                draw(v, ids[where], rng.part(where))
        rng.leave()

    def _already_done(self, ids: Array) -> Array:
        """(n,) bool: whether rows ``ids``, which have just begun, have nothing left to do."""
        if self.judge is not None:
            return self.judge.settled(ids)
        if self._goal is None:
            return np.zeros(len(ids), bool)
        return np.asarray(self._goal.success(self.views))[ids]

    def _ends_next(self, ids: Array) -> Array:
        """(n,) bool: whether the next step would end rows ``ids``: some lie who may not fall."""
        return (np.zeros(self.num_envs, bool) | self.task.terminated(self.views))[ids]

    def scatter(self) -> Array:
        """Observations (N, obs_dim) f32 of states from the whole workspace (``Task.scatter``)."""
        self._begin(np.arange(self.num_envs), self.task.scatter)
        return self._obs()

    def reseed(self, seed: int) -> None:
        """Starts every row's stream over: the next reset is episode 0 of ``seed``."""
        self.seed = seed
        self._episode[:] = -1

    def _begin(self, ids: Array, write: Any, holds: Any = None) -> None:
        if not len(ids):
            return
        self._episode[ids] += 1
        self._step[ids], self._started[ids] = 0, True
        rng = RowRng(self.seed, self.rows[ids], self._episode[ids])
        self.held[ids] = write_initial_states(
            self.task, self.views, self.batch, ids, rng, write, holds
        )
        if self.judge is not None:
            self.judge.begin(ids)
        if self._shaped is not None:
            self._shaped.begin(ids)
        self._kept[ids] = self._state[ids]

    def step(self, action: Array, active: Array | None = None) -> StepResult:
        """Returns the true successors of ``action`` and what they are worth.

        Args:
            action: (N, act_dim); values outside [-1, 1] are clipped.
            active: (N,) bool, the environments that are simulated; by default all. What is
                returned of the others means nothing, and they must be reset before they are
                stepped again.

        Raises:
            ValueError: the action has another shape.
            RuntimeError: an environment was never reset.
        """
        action = np.asarray(action)
        if action.shape != (self.num_envs, self.act_dim):
            raise ValueError(
                f"action must have shape {(self.num_envs, self.act_dim)}, got {action.shape}"
            )
        ids = None if active is None else np.flatnonzero(active)
        if not self._started[slice(None) if ids is None else ids].all():
            raise RuntimeError("call reset() before step(): some envs have no episode yet")
        if active is not None:
            self._started &= active
        # A NaN action is a fault of its row alone: it moves nothing and is reported as diverged.
        finite = np.asarray(np.isfinite(action).all(axis=1))
        action = np.clip(np.where(finite[:, None], action, 0.0), -1.0, 1.0)
        np.copyto(self._before, self._state)
        for name, array in self._owned.items():
            np.copyto(self._kept_owned[name], array)
        commands = self._commands.copy()
        # MuJoCo sets a counter to 1 when it resets an unstable row, also where it was 1 before.
        self._warning[:, _UNSTABLE, 1] = 0
        diverged = ~finite if active is None else ~finite & active
        self._drive(action, diverged, ids)
        diverged |= self._warning[:, _UNSTABLE, 1].any(axis=1)
        diverged |= ~np.isfinite(self._state).all(axis=1)
        if diverged.any():
            self._undo(diverged, commands)
        self._before, self._kept = self._kept, self._before
        moved = np.flatnonzero(~diverged & self._started)
        self.task.after_step(self.views, moved)
        self._step += self._started
        self.env_steps += int(self._started.sum())
        reward, terms = self._worth(action)
        info = {"diverged": diverged, **terms}
        terminated = np.zeros(self.num_envs, bool) | self.task.terminated(self.views)
        if self._shaped is not None:
            terminated |= self._shaped.stopped
        if self.judge is not None:
            self.judge.step(terminated & ~diverged, self._started)
            info["success"] = self.judge.success()
        if self.sparse:
            reward = info["success"].astype(float)
        truncated = (self._step >= self.max_steps) | diverged
        return StepResult(
            self._after_step_obs(moved),
            np.where(diverged, 0.0, reward).astype(np.float32),
            terminated & ~diverged,
            truncated,
            info,
            action,
        )

    def _undo(self, diverged: Array, commands: Array) -> None:
        """Puts rows (N,) bool back to where they were before the step, with their ``commands``."""
        before = self._before
        # A NaN that was written into a state is replaced by the state before it.
        spoilt = diverged & ~np.isfinite(before).all(axis=1)
        before[spoilt] = self._kept[spoilt]
        self._state[diverged] = before[diverged]
        for name, array in self._owned.items():
            array[diverged] = self._kept_owned[name][diverged]
        self._commands[diverged] = commands[diverged]
        self.batch.forward(np.flatnonzero(diverged))
        self.num_diverged += int(diverged.sum())

    def _worth(self, action: Array) -> tuple[Array, dict[str, Array]]:
        """The dense reward (N,), NaN for a goal without one, and its terms with the success."""
        if self._goal is None:
            return np.full(self.num_envs, np.nan), {}
        terms = self._goal.reward(self.views, action)
        info = {f"reward/{name}": term for name, term in terms.items()}
        info["success"] = np.array(self._goal.success(self.views), bool)
        if (reached := self.task.reached(self.views)) is not None:
            info["reached"] = reached
        return sum(terms.values(), np.zeros(self.num_envs)), info

    def _drive(self, action: Array, failed: Array, ids: Array | None) -> None:
        """Control and physics of one action in rows ``ids``, by default all; marks the rows (N,)
        bool in which MuJoCo raised."""
        shaped = self._shaped
        if shaped is None:
            self.task.control(self.views, action)
            self._simulate(ids, self.n_substeps, self.task.stage, failed)
            return
        # As the bridge's follower: to the new goal in equal parts, one for each target.
        start = shaped.goal
        shaped.stopped[:] = False
        self.task.control(self.views, action)
        way = shaped.goal - start
        goal = start
        for tick in range(1, shaped.ticks + 1):
            goal = shaped.tick(start + tick / shaped.ticks * way, way / self.control_dt)
            last = tick == shaped.ticks
            self._simulate(ids, shaped.substeps, self.task.stage if last else _NOTHING, failed)
            shaped.feel()
        shaped.write(goal)

    def _simulate(self, ids: Array | None, nstep: int, stage: int, failed: Array) -> None:
        try:
            self.batch.step(ids, nstep=nstep, stage=stage)
        except SimulationError as error:
            failed[list(error.ids)] = True

    def _after_step_obs(self, moved: Array) -> Array:
        """What is observed of all rows once those of ``moved`` have made a step."""
        return self._obs()

    def _obs(self) -> Array:
        obs, end = np.empty((self.num_envs, self.obs_dim), np.float32), 0
        for column in self.task.obs(self.views).values():
            start, end = end, end + column.shape[1]
            obs[:, start:end] = column
        return obs

    def signals(self) -> dict[str, Array]:
        """Copies of what a reward may read, {name: (N, ...)}."""
        return {name: np.array(s) for name, s in self.task.signals(self.views).items()}

    def distance(self) -> Array:
        """Returns the true distance (N,) to the goal, in its unit: for reports, never for rewards.

        Raises:
            ValueError: the environments have no judge, or the goal is a formula.
        """
        if self._goal is None:
            raise ValueError(
                "this env was made with judged=False, so it has no distance to a goal"
                if self.judge is None
                else "a goal given as a formula has no single distance"
            )
        return np.array(self._goal.distance(self.views))

    def state(self, ids: Array | None = None) -> Array:
        """Returns states (n, nstate) f64: everything that a frame or a restart depends on."""
        rows = slice(None) if ids is None else ids
        return np.concatenate([self._state[rows], self._commands[rows]], axis=1)

    def mujoco_state(self) -> Array:
        """MuJoCo's state (N, k) f64 of all environments: all that a frame depends on, in any
        BatchEnv of the task."""
        return self._state.copy()

    def set_state(self, states: Array) -> Array:
        """Writes state rows and returns the observations (N, obs_dim) f32; every view is current.

        Args:
            states: (N, nstate), as ``state`` returns them.

        Raises:
            ValueError: the states have another shape.
        """
        width = self._state.shape[1]
        shape = (self.num_envs, width + self._commands.shape[1])
        if np.shape(states) != shape:
            raise ValueError(f"states must have shape {shape}, got {np.shape(states)}")
        self._state[:], self._commands[:] = states[:, :width], states[:, width:]
        if self._shaped is not None:
            self._shaped.hear(np.arange(self.num_envs))
        self.batch.forward()
        self.task.after_reset(self.views, np.arange(self.num_envs))
        if self.judge is not None:
            self.judge.begin(np.arange(self.num_envs))
        self._started[:] = True
        return self._obs()

    def render(self, ids: Array | None = None, camera: str | None = None) -> Array:
        """Returns frames (n, H, W, 3) uint8 of envs ``ids`` (all by default) as they are now."""
        return self.render_states(self.state(ids), camera)

    def render_states(
        self,
        states: Array,
        camera: str | None = None,
        *,
        size: tuple[int, int] | None = None,
        look: Appearance | None = None,
    ) -> Array:
        """Returns frames (n, H, W, 3) uint8 of stored states (n, nstate), any time later."""
        spec = self.camera(camera)
        height, width = size or (spec.height, spec.width)
        renderer = self._renderers.get((height, width))
        if renderer is None:
            renderer = RenderPool(self.model, height, width, threads=self.num_threads)
            self._renderers[height, width] = renderer
        if self._shaped is not None:
            states = states[:, : self._state.shape[1]]
        return renderer.frames(states, spec.name, look)

    def camera(self, name: str | None = None) -> Camera:
        """Returns the camera called ``name``, by default the task's first.

        Raises:
            ValueError: the task has no such camera.
        """
        for camera in self.task.cameras:
            if name in (None, camera.name):
                return camera
        raise ValueError(f"unknown camera {name!r}; available: {', '.join(self.cameras)}")

    def state_dict(self) -> dict[str, Array]:
        """Returns arrays, (N, ...) but for counters, that put another BatchEnv of this task into
        the very same state."""
        return {
            "state": self._state.copy(),
            "seed": np.array(self.seed % 2**64, np.uint64),
            "rows": self.rows.copy(),
            "episode": self._episode.copy(),
            "step": self._step.copy(),
            **({} if self._shaped is None else {"commands": self._commands.copy()}),
            "counters": np.array([self.env_steps, self.num_diverged]),
            **{f"owned/{name}": array.copy() for name, array in self._owned.items()},
            **{f"judge/{name}": array for name, array in self._records().items()},
        }

    def _records(self) -> dict[str, Array]:
        return {} if self.judge is None else self.judge.state_dict()

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from what ``state_dict`` returned.

        Args:
            saved: the arrays (N, ...) by name.

        Raises:
            ValueError: an array is missing or has another shape.
        """
        mine = self.state_dict()
        for name, array in mine.items():
            if name not in saved or saved[name].shape != array.shape:
                got = saved[name].shape if name in saved else "nothing"
                raise ValueError(
                    f"state_dict[{name!r}] must have shape {array.shape}, got {got}: "
                    "it was saved with another task or num_envs"
                )
        self._state[:] = saved["state"]
        if self._shaped is not None:
            self._commands[:] = saved["commands"]
        for name, array in self._owned.items():
            array[:] = saved[f"owned/{name}"]
        if self.judge is not None:
            self.judge.load_state_dict({name: saved[f"judge/{name}"] for name in self._records()})
        self.seed, self.rows = int(saved["seed"]), saved["rows"].copy()
        self._episode[:], self._step[:] = saved["episode"], saved["step"]
        self.env_steps, self.num_diverged = (int(c) for c in saved["counters"])
        self.batch.forward(stage=mujoco.mjtStage.mjSTAGE_VEL)
        self._started[:] = True

    def close(self) -> None:
        """Frees the renderers."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()


def _whole_steps(total: float, step: float) -> int:
    """``total / step``, which must be a whole number; both s."""
    count = round(total / step)
    if count < 1 or abs(count * step - total) > 1e-9:
        near = max(1, count) * step
        raise ValueError(f"{total} s is not a whole number of {step} s steps; nearest is {near} s")
    return count
