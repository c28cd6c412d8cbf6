"""Several requests at once: a few threads that wait for a server, and a queue that does not grow.

Not an executor of ``concurrent.futures``: it joins its threads when the program ends, so Ctrl-C
would wait for every request under way.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")

AHEAD = 2  # questions that are made per thread before an answer is waited for
_NO_MORE = object()


def ask_in_parallel(
    ask: Callable[[Q], A], questions: Iterable[Q], at_once: int
) -> Iterator[tuple[Q, A]]:
    """Asks several questions at once.

    After an error, what is under way is still answered, what has not begun is dropped, and then the
    error is raised. Ctrl-C waits for nothing.

    Args:
        ask: Returns the answer to a question, in a thread.
        questions: The questions; they are made only as far ahead as threads need them.
        at_once: The largest number under way.

    Yields:
        (question, answer), as answers come.
    """
    todo: queue.Queue[Any] = queue.Queue()
    done: queue.Queue[tuple[Q, Any, Exception | None]] = queue.Queue()

    def work() -> None:
        while (question := todo.get()) is not _NO_MORE:
            try:
                done.put((question, ask(question), None))
            except Exception as error:  # the caller's to raise, in the caller's thread
                done.put((question, None, error))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, at_once))]
    for thread in threads:
        thread.start()
    rest, pending, failed = iter(questions), 0, None
    try:
        while True:
            while failed is None and pending < AHEAD * len(threads):
                question = next(rest, _NO_MORE)
                if question is _NO_MORE:
                    break
                todo.put(question)
                pending += 1
            if not pending:
                break
            question, answer, error = done.get()
            pending -= 1
            if error is None:
                yield question, answer
            elif failed is None:
                failed = error
                pending -= _drop_waiting(todo)
    finally:
        _drop_waiting(todo)
        for _ in threads:
            todo.put(_NO_MORE)
    if failed is not None:
        raise failed


def _drop_waiting(todo: queue.Queue[Any]) -> int:
    """How many questions nobody had begun, which are dropped."""
    count = 0
    while True:
        try:
            todo.get_nowait()
        except queue.Empty:
            return count
        count += 1
