"""Running blocks of work in order, in this process or in several."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from icl_estimators.validation import InputError

__all__ = ["in_order"]

Task = TypeVar("Task")
Result = TypeVar("Result")

_shared: Any = None  # in a worker: what every task needs, sent once


def in_order(
    work: Callable[[Any, Task], Result], shared: Any, tasks: Sequence[Task], *, jobs: int = 1
) -> Iterator[Result]:
    """Yield ``work(shared, task)`` for each task, in the order of the tasks.

    Parameters
    ----------
    work : callable
        A module-level function.
    shared : object
        Sent once to each worker.
    tasks : sequence
        Small and picklable.
    jobs : int
        Processes; 1 stays in this one. Every block runs on one thread either way.

    Raises
    ------
    InputError
        If `shared` cannot be sent to other processes; and whatever `work` raises.
    """
    jobs = min(jobs, len(tasks))
    if jobs <= 1:
        for task in tasks:
            yield _one_thread(work, shared, task)
        return
    try:
        package = pickle.dumps(shared)
    except Exception as error:
        raise InputError(
            f"an estimator cannot be sent to worker processes ({type(error).__name__}: {error}): use --jobs 1, or "
            "define its class at the top level of a module"
        ) from error
    # Spawned, not forked: a forked copy of a process with running threads can hang.
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_receive, initargs=(package,)
    )
    try:
        yield from _windowed(pool, work, tasks, 2 * jobs)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _windowed(
    pool: Executor, work: Callable[[Any, Task], Result], tasks: Sequence[Task], in_flight: int
) -> Iterator[Result]:
    """Keep a bounded number of tasks submitted, so that finished results do not pile up."""
    waiting: deque[Future[Result]] = deque()
    for task in tasks:
        if len(waiting) >= in_flight:
            yield waiting.popleft().result()
        waiting.append(pool.submit(_in_worker, work, task))
    while waiting:
        yield waiting.popleft().result()


def _receive(package: bytes) -> None:
    global _shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    _shared = pickle.loads(package)


def _in_worker(work: Callable[[Any, Task], Result], task: Task) -> Result:
    return _one_thread(work, _shared, task)


def _one_thread(work: Callable[[Any, Task], Result], shared: Any, task: Task) -> Result:
    """Run one block with one thread in BLAS, OpenMP and torch: as fast for small blocks, and the same bits anywhere."""
    with threadpool_limits(limits=1):
        return work(shared, task)
