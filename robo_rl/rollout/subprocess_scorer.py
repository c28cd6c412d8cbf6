"""A Scorer in a process of its own: whoever learns goes on while it judges.

Steps are sent as they are made, a block at a time, and come back scored, later. At most ``WAITING``
blocks are under way; what is made meanwhile waits and is sent as one, so the slower the judge, the
larger its batches. The process has a Trace and a Scorer as a learner has, so its rewards are those
that the learner would have given. It computes on one core, and ends with who began it.
"""

from __future__ import annotations

import os
import queue
import threading
import traceback
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple, NoReturn

import numpy as np

import sims.envs.registration  # noqa: F401  so that plug-ins' tasks can be received
from reward_models.base import RewardModel, RewardOutput
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.trace import Observer, Trace, Transition
from robo_rl.rollout.vec_sim import VecSim
from robo_rl.runtime.threads import limit_cores
from robo_rl.runtime.workers import start_worker
from sims.rendering.render_client import process_cpu_seconds
from sims.utils import process

WAITING = 2  # blocks that are sent and not scored yet
_PIECE = 64  # steps that the process scores at once

Recipe = Callable[[], tuple[RewardModel, VecSim]]  # told to the process, which makes them anew

_all: weakref.WeakSet[SubprocessScorer] = weakref.WeakSet()
_ended_s = [0.0]  # of the processor, that those which are closed have had


def scorer_cpu_seconds() -> float:
    """s that those of this program have had of the processor, as far as the system tells."""
    return _ended_s[0] + sum(process_cpu_seconds(far.pid) for far in tuple(_all) if not far.closed)


class ScoredBlock(NamedTuple):
    """The scores of the steps from ``first`` on."""

    first: int
    output: RewardOutput  # (T, N)
    frames: int  # that were drawn for it
    seconds: float  # that it took


class SubprocessScorer:
    """Scores what it is sent, in order; RuntimeError where its process has died."""

    def __init__(self, recipe: Recipe):
        context = process.spawn_context()
        theirs, self._to = context.Pipe(duplex=False)
        self._from, back = context.Pipe(duplex=False)
        self.under_way = 0  # blocks
        self._process = context.Process(target=_judge, args=(recipe, theirs, back), daemon=True)
        start_worker(self._process)
        theirs.close()  # so that either end learns of the other's
        back.close()
        self._close = weakref.finalize(self, _end, self._process, self._to, self._from)
        _all.add(self)

    @property
    def pid(self) -> int:
        """The process ID of the scorer."""
        assert self._process.pid is not None  # it was started
        return self._process.pid

    @property
    def closed(self) -> bool:
        return not self._close.alive

    @property
    def free(self) -> bool:
        """Whether it takes another block."""
        return self.under_way < WAITING

    def send(self, first: int, steps: list[Transition], known: int) -> None:
        """Sends transitions to the subprocess, which scores them.

        Args:
            first: Number of the first transition in ``steps``.
            steps: Transitions, in order.
            known: How many of the first ``steps`` are context alone and get no score.
        """
        try:
            self._to.send((first, steps, known))
        except OSError:
            self._died()
        self.under_way += 1

    def take(self, wait: bool = False) -> ScoredBlock | None:
        """Returns the next scored block; None where none is ready, unless it is to ``wait`` for
        one."""
        try:
            if not (wait or self._from.poll()):
                return None
            answer = self._from.recv()
        except (EOFError, OSError):
            self._died()
        if isinstance(answer, Exception):
            raise answer
        self.under_way -= 1
        return answer

    def _died(self) -> NoReturn:
        self._process.join(1.0)
        raise RuntimeError(
            f"the scoring process exited unexpectedly with code {self._process.exitcode}"
        ) from None

    def close(self) -> None:
        """Ends the process."""
        self._close()


def _end(judge: BaseProcess, *ends: Connection) -> None:
    if judge.pid is not None:
        _ended_s[0] += process_cpu_seconds(judge.pid)
    judge.kill()
    judge.join(5.0)
    for one in ends:
        one.close()


def _judge(recipe: Recipe, sent: Connection, done: Connection) -> None:
    """Runs in the subprocess: scores block after block."""
    limit_cores(1)
    blocks: queue.SimpleQueue[tuple[int, list[Transition], int]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sent, blocks), daemon=True).start()
    try:
        model, sim = recipe()
        observer = Observer(sim, model.needs, getattr(model, "frame_size", None))
        scorer, trace = Scorer(model, observer), Trace(0)
        while True:
            first, steps, known = blocks.get()
            if trace.count != first + known or not trace.capacity:
                trace = Trace(_PIECE + scorer.reach, first)
                for step in steps[:known]:
                    trace.add(step)
            before = observer.frames_rendered
            parts = [
                _scored(scorer, trace, steps[at : at + _PIECE])
                for at in range(known, len(steps), _PIECE)
            ]
            drawn = observer.frames_rendered - before
            done.send(ScoredBlock(first + known, _concatenate(parts), drawn, scorer.pop_seconds()))
    except Exception as error:
        # Not every error can be sent as it is.
        reported = ValueError(str(error) or type(error).__name__)
        reported.add_note(traceback.format_exc())
        done.send(reported)


def _receive(sent: Connection, blocks: queue.SimpleQueue) -> None:
    """Empties the pipe while the scorer computes, so that no sender waits."""
    while True:
        try:
            blocks.put(sent.recv())
        except (EOFError, OSError):
            os._exit(0)  # nobody is there any more who would be told


def _scored(scorer: Scorer, trace: Trace, steps: list[Transition]) -> RewardOutput:
    first = trace.count
    for step in steps:
        trace.add(step)
    return scorer.score(trace, first, trace.count)


def _concatenate(parts: list[RewardOutput]) -> RewardOutput:
    """Joins consecutive outputs into one."""
    names = dict.fromkeys(name for part in parts for name in part.components)
    components = {
        name: np.concatenate([p.components.get(name, np.zeros_like(p.reward)) for p in parts])
        for name in names
    }
    return RewardOutput(
        reward=np.concatenate([part.reward for part in parts]),
        scored=np.concatenate([part.scored for part in parts]),
        components=components,
        version=parts[-1].version,
    )
