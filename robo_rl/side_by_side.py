"""Work on several things at once, each in a process of its own with its share of the cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from robo_rl.threads import cores, limit_cores
from sims import process

Key, Made = TypeVar("Key"), TypeVar("Made")


def side_by_side(
    work: Callable[..., Made], given: Mapping[Key, tuple[Any, ...]], jobs: int
) -> Iterator[tuple[Key, Made]]:
    """(key, what ``work`` made of the arguments given for it), as they are finished.

    ``jobs`` processes, one for each thing; the first error ends what has not begun.
    """
    with ProcessPoolExecutor(
        jobs,
        process.spawning(),
        initializer=limit_cores,
        initargs=(max(1, cores() // jobs),),
        max_tasks_per_child=1,
    ) as pool:
        futures = {pool.submit(work, *arguments): key for key, arguments in given.items()}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:  # what has not begun shall not begin after a failure
            pool.shutdown(wait=False, cancel_futures=True)
