"""learn(): the training loop around SB3's, with metrics, progress and checkpoints."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from stable_baselines3.common.callbacks import BaseCallback

from robo_rl.learners.buffers import SavedReplayBuffer
from robo_rl.learners.hooks import Hook
from robo_rl.learners.learner import Learner
from robo_rl.learners.memory_check import check_memory
from robo_rl.learners.obs_normalization import warn_of_outliers
from robo_rl.rollout import subprocess_scorer
from robo_rl.runs.run_dir import Checkpoint, RunDir
from robo_rl.runtime.memory import check_free
from sims.rendering import render_client
from sims.utils.prefixed_dict import add_prefix, select_prefix

Array = np.ndarray
Row = dict[str, float]

# The second tells what training costs where other work takes the processor away.
_CLOCKS = {
    "wall_s": time.perf_counter,
    "processor_s": lambda: (
        time.process_time()
        + render_client.renderer_cpu_seconds()
        + subprocess_scorer.scorer_cpu_seconds()
    ),
}
UPDATE = "train/"  # of the names of what SB3 says of an update
_ROW_EVERY = 1_000  # env steps; rollouts of off-policy learners are shorter than a line is worth


def learn(
    learner: Learner,
    total_steps: int,
    *,
    run: RunDir | None = None,
    checkpoint_every: int = 50_000,
    resume: bool = False,
    console: Console | None = None,
    hooks: Sequence[Hook] = (),
) -> list[Row]:
    """Trains until ``total_steps`` env steps are done in all; the metrics rows of this call.

    Of a run, the first Ctrl-C ends it at the next pause, with everything saved, and a second at
    once: a KeyboardInterrupt either way.

    Args:
        run: where metrics and checkpoints go; without it nothing is written.
        checkpoint_every: env steps between checkpoints; the last state is always saved.
        resume: start from the run's latest checkpoint, if it has one.
        console: where a progress bar is drawn.
        hooks: what else happens, each asked in this order.
    """
    if checkpoint_every < 1:
        raise ValueError(f"checkpoint_every must be at least 1 env step, got {checkpoint_every}")
    if resume and run is None:
        raise ValueError("resume=True needs a run to resume")
    for hook in hooks:
        hook.start(learner)
    loop = _Loop(learner, run, total_steps, checkpoint_every, hooks)
    if resume and run is not None:
        checkpoint = run.latest_checkpoint()
        if checkpoint is not None:
            what = f"the run's {checkpoint.step:,} steps are taken up again"
            check_free(checkpoint.kept, what, "free some, or go on with it on another machine")
            loop.restore(checkpoint)
            if not learner.restore(checkpoint):
                warnings.warn(
                    "this simulator cannot restore its state: training resumes from the saved "
                    "policy, but with new episodes, so figures will not repeat exactly",
                    stacklevel=2,
                )
        run.drop_metrics_after(learner.env_steps)
        if console is not None:
            console.print(f"resuming from {learner.env_steps:,} of {total_steps:,} env steps")
    remaining = total_steps - learner.env_steps
    if remaining <= 0:
        return []
    rollout = getattr(learner.algorithm, "n_steps", 1) * learner.env.num_envs  # only whole ones
    with _Bar(console, learner.env_steps, total_steps + -remaining % rollout) as bar:
        loop.bar = bar
        with loop.interruptible(console), contextlib.suppress(_StopTraining):
            learner.algorithm.learn(
                remaining, callback=loop, log_interval=None, reset_num_timesteps=False
            )
    if loop.interrupted:
        raise KeyboardInterrupt(f"stopped by Ctrl-C at {learner.env_steps:,} env steps")
    return loop.rows


class _StopTraining(Exception):
    """A hook or Ctrl-C has asked for the end; raised between rollouts, with everything saved."""


class _Loop(BaseCallback):
    """The steps between SB3's rollouts and updates: checkpoints, metrics, hooks."""

    def __init__(
        self,
        learner: Learner,
        run: RunDir | None,
        total_steps: int,
        checkpoint_every: int,
        hooks: Sequence[Hook],
    ):
        super().__init__()
        self.rows: list[Row] = []
        self.bar: _Bar | None = None
        self.interrupted = False  # by Ctrl-C, which the next pause sees to
        self._learner, self._run, self._hooks = learner, run, hooks
        self._total = total_steps
        self._every, self._saved_at = checkpoint_every, learner.env_steps
        self._began = {name: clock() for name, clock in _CLOCKS.items()}
        self._row_at, self._row_time = learner.env_steps, time.perf_counter()
        self._unseen: Array | None = None  # observations that the scale has not counted yet
        self._warned = False  # of an outlier
        self._before: dict[str, float] = {}  # figures of the update before a run was resumed
        self._measured = learner.env_steps  # that it was measured on, or could have been
        self._stop = False

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restores the run from ``checkpoint``."""
        extra = checkpoint.meta["extra"]
        self._began = {name: clock() - extra[name] for name, clock in _CLOCKS.items()}
        self._row_at, self._saved_at = int(extra["row_at"]), checkpoint.step
        self._measured = checkpoint.step
        self._before = {name: v for name, v in extra.items() if name.startswith(UPDATE)}
        for hook in self._hooks:
            saved = select_prefix(checkpoint.state, _hook_prefix(hook))
            if hook.name and saved:
                hook.load_state_dict(saved)

    @contextlib.contextmanager
    def interruptible(self, console: Console | None) -> Iterator[None]:
        """Context in which a first Ctrl-C is noted and a second one ends at once; only with a run
        to save, and where no other handler is set."""
        before = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        if self._run is None or not main or before is not signal.default_int_handler:
            yield
            return

        def note(*_: object) -> None:
            signal.signal(signal.SIGINT, before)
            self.interrupted = True
            if console is not None:
                with contextlib.suppress(RuntimeError):  # it came amid another line
                    console.print("Ctrl-C: stopping after this update; press again to stop at once")

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _on_training_start(self) -> None:
        check_memory(self._learner, self._total)
        for name, value in self._before.items():  # of an update that the last rollout's row follows
            self.logger.record(name, value)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        # Between an update and the next rollout: the only moment at which nothing is half done.
        self._pause()
        stop = self._stop or self.interrupted
        if stop or self._learner.env_steps - self._saved_at >= self._every:
            self._save()
        if stop:
            raise _StopTraining

    def _pause(self) -> None:
        self._count_obs()
        if self._learner.env_steps:  # something has been learned
            pauses = [hook.pause(self._learner) for hook in self._hooks]
            self._stop = self._stop or any(answer is False for answer in pauses)

    def _on_rollout_end(self) -> None:
        self._keep_obs()
        steps = self._learner.env_steps
        if steps - self._row_at >= _ROW_EVERY:
            self._write_row()
        elif self.bar is not None:
            self.bar.update(steps)

    def _on_training_end(self) -> None:
        self._pause()
        self._save()

    # Observation scale. PPO's changes only between updates, so that a rollout's action
    # probabilities and its update see the same policy.
    def _keep_obs(self) -> None:
        learner, config = self._learner, self._learner.config
        normaliser, buffer = learner.normaliser, learner.buffer
        if normaliser is None:
            return
        before, self._measured = self._measured, learner.env_steps
        if 0 < config.obs_stats_steps <= before:
            return
        if isinstance(buffer, SavedReplayBuffer):
            if not buffer.size():
                return  # nothing is simulated
            self._update_scale(buffer.observations[buffer.pos - 1])  # the step before this update
        elif not float(normaliser.count):
            # A new policy acts almost alike on any scale, so its first update can have the scale.
            self._update_scale(buffer.observations)
        else:
            self._unseen = buffer.observations

    def _count_obs(self) -> None:
        if self._unseen is not None and self._learner.normaliser is not None:
            self._update_scale(self._unseen)
            self._unseen = None

    def _update_scale(self, obs: Array) -> None:
        """Counts observations (..., N, obs_dim); of the first that is far from all says which."""
        normaliser, names = self._learner.normaliser, self._learner.env.sim.obs_names
        assert normaliser is not None
        outliers = normaliser.update(obs)
        if not self._warned:
            self._warned = warn_of_outliers(obs, outliers, names, "environment")

    def _write_row(self) -> None:
        learner, now = self._learner, time.perf_counter()
        steps, interventions = learner.env_steps, learner.env.interventions
        buffer = learner.buffer
        row: Row = {
            "env_steps": steps,
            **{name: round(s, 3) for name, s in self._spent().items()},
            "steps_per_s": round((steps - self._row_at) / (now - self._row_time), 1),
            **learner.env.episodes.pop(),
            **(learner.scorer.pop_means() if learner.scorer else {}),
            **({"taken_over": interventions.pop_share()} if interventions else {}),
            "diverged": learner.env.diverged,
            "frames_rendered": learner.env.observer.frames_rendered,
            **(buffer.figures() if isinstance(buffer, SavedReplayBuffer) else {}),
            "score_s": round(learner.scorer.pop_seconds(), 3) if learner.scorer else 0.0,
        }
        row |= self._update_figures()
        self._row_at, self._row_time = steps, now
        self.rows.append(row)
        if self._run is not None:
            self._run.append(row)
        if self.bar is not None:
            self.bar.update(steps, row)
        hook_rows = [hook.row(row) for hook in self._hooks]
        self._stop = self._stop or any(answer is False for answer in hook_rows)

    def _update_figures(self) -> dict[str, float]:
        """What SB3 says of the last update."""
        values = self._learner.algorithm.logger.name_to_value
        return {name: float(v) for name, v in values.items() if name.startswith(UPDATE)}

    def _spent(self) -> dict[str, float]:
        return {name: clock() - self._began[name] for name, clock in _CLOCKS.items()}

    def _save(self) -> None:
        if self._run is None or self._learner.env_steps == self._saved_at:
            return
        made = self._learner.checkpoint(
            self._spent() | {"row_at": self._row_at} | self._update_figures()
        )
        state = dict(made.state)
        for hook in self._hooks:
            state |= add_prefix(_hook_prefix(hook), hook.state_dict())
        self._run.save_checkpoint(replace(made, state=state))
        self._saved_at = self._learner.env_steps


def _hook_prefix(hook: Hook) -> str:
    """Returns the prefix of a hook's arrays in a checkpoint."""
    return f"hook/{hook.name}"


class _Bar:
    """A progress bar with the figures people watch; nothing without a console."""

    def __init__(self, console: Console | None, done: int, total: int):
        self._progress = Progress(
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} steps"),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
            disable=console is None,
        )
        self._task = self._progress.add_task("learn", completed=done, total=total, figures="")

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, steps: int, row: Mapping[str, Any] | None = None) -> None:
        """Moves the bar to ``steps`` and shows the figures of a metrics row."""
        fields = {}
        if row is not None:
            figures = [f"{row['steps_per_s']:,.0f}/s"]
            if "success" in row:
                figures.append(f"success {row['success']:.0%}")
            if "reward" in row:
                figures.append(f"reward {row['reward']:.3f}")
            fields["figures"] = "  ".join(figures)
        self._progress.update(self._task, completed=steps, **fields)
