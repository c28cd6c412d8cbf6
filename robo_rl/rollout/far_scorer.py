"""A Scorer in a process of its own: whoever learns goes on while it judges.

Steps are sent as they are made, a block at a time, and come back scored, later. At most ``WAITING``
blocks are under way; what is made meanwhile waits and is sent as one, so the slower the judge, the
larger its batches. The process has a Trace and a Scorer as a learner has, so its rewards are those
that the learner would have given.
"""

from __future__ import annotations

import multiprocessing
import queue
import traceback
import weakref
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import numpy as np

from reward_models.base import RewardModel, RewardOutput
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.trace import Observer, Trace, Transition
from robo_rl.rollout.vec_sim import VecSim
from robo_rl.side_by_side import begin
from robo_rl.threads import limit_cores
from sims import process
from sims.far_renderer import processor_of

WAITING = 2  # blocks that are sent and not scored yet
_PIECE = 64  # steps that the process scores at once
_LOOK_S = 1.0  # between two looks at whether the process lives, while one waits for it

Recipe = Callable[[], tuple[RewardModel, VecSim]]  # told to the process, which makes them anew


_all: weakref.WeakSet[FarScorer] = weakref.WeakSet()


def processor_s() -> float:
    """s that those of this program have had of the processor, as far as the system tells."""
    return sum(processor_of(far.pid) for far in tuple(_all))


class Scored(NamedTuple):
    """What became of the steps from ``first`` on."""

    first: int
    output: RewardOutput  # (T, N)


class FarScorer:
    """Scores what it is sent, in order; RuntimeError where its process fails."""

    def __init__(self, recipe: Recipe):
        context = process.spawning()
        self._sent: Any = context.Queue(WAITING)
        self._done: Any = context.Queue()
        self.under_way = 0  # blocks
        self._process = context.Process(
            target=_judge, args=(recipe, self._sent, self._done), daemon=True
        )
        begin(self._process)
        self._close = weakref.finalize(self, _end, self._process, self._sent, self._done)
        _all.add(self)

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process.pid is not None  # it was started
        return self._process.pid

    @property
    def free(self) -> bool:
        """Whether it takes another block."""
        return self.under_way < WAITING

    def send(self, first: int, steps: list[Transition], known: int) -> None:
        """Has ``steps``, the first of which is ``first``, scored but for the first ``known``, that
        those after them look back to."""
        self._sent.put((first, steps, known))
        self.under_way += 1

    def take(self, wait: bool = False) -> Scored | None:
        """What was scored next; None where nothing is ready, unless one is to ``wait`` for it."""
        while True:
            try:
                answer = self._done.get(wait, _LOOK_S) if wait else self._done.get_nowait()
                break
            except queue.Empty:
                if not self._process.is_alive():
                    raise RuntimeError(
                        "the process that scores has ended by itself, with "
                        f"{self._process.exitcode}"
                    ) from None
                if not wait:
                    return None
        if isinstance(answer, Exception):
            raise answer
        self.under_way -= 1
        return answer

    def close(self) -> None:
        """Ends the process."""
        self._close()


def _end(judge: BaseProcess, *queues: Any) -> None:
    judge.kill()
    judge.join()
    for one in queues:
        one.cancel_join_thread()
        one.close()


def _judge(recipe: Recipe, sent: Any, done: Any) -> None:
    """In the process: scores block after block, until it is killed or its parent has gone."""
    limit_cores(1)
    parent = multiprocessing.parent_process()
    try:
        model, sim = recipe()
        scorer = Scorer(model, Observer(sim, model.needs, getattr(model, "frame_size", None)))
        trace = Trace(0)
        while parent is None or parent.is_alive():
            try:
                first, steps, known = sent.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            begin = first + known
            if trace.count != begin or not trace.capacity:
                trace = Trace(_PIECE + scorer.reach)
                trace.count = first
                for step in steps[:known]:
                    trace.add(step)
            parts = [_scored(scorer, trace, steps[at : at + _PIECE])
                     for at in range(known, len(steps), _PIECE)]  # fmt: skip
            done.put(Scored(begin, _joined(parts)))
    except Exception as error:
        error.add_note(traceback.format_exc())
        done.put(error)


def _scored(scorer: Scorer, trace: Trace, steps: list[Transition]) -> RewardOutput:
    first = trace.count
    for step in steps:
        trace.add(step)
    return scorer.score(trace, first, trace.count)


def _joined(parts: list[RewardOutput]) -> RewardOutput:
    """One output of several that follow each other; what each has."""
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
