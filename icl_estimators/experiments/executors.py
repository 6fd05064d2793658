"""Running blocks of work in order, in this process or in several."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from icl_estimators.validation import InputError

__all__ = ["in_order", "one_thread"]

Task = TypeVar("Task")
Result = TypeVar("Result")

_package = b""  # in a worker: what every task needs, sent once
_shared: Any = None  # the same, unpacked by the first task


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
        If `shared` cannot be sent to other processes, or one of them dies; and whatever `work` raises.
    """
    jobs = min(jobs, len(tasks))
    if jobs <= 1:
        for task in tasks:
            with one_thread():
                result = work(shared, task)
            yield result
        return
    try:
        package = pickle.dumps(shared)
    except Exception as error:
        raise _cannot_travel(error) from error
    # Spawned, not forked: a forked copy of a process with running threads can hang.
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_receive, initargs=(package,)
    )
    try:
        yield from _windowed(pool, work, tasks, 2 * jobs)
    except BaseException as error:
        workers = list((pool._processes or {}).values())  # gone from the pool once it is shut down
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:  # nobody waits for what they are still at
            worker.terminate()
        if isinstance(error, BrokenExecutor):
            raise InputError(
                "a worker process ended abruptly, as when memory runs out, or when a script that calls this has no "
                "`if __name__ == '__main__':`: mend that, or use fewer --jobs"
            ) from error
        raise
    pool.shutdown()


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """Run what is inside with one thread in BLAS, OpenMP and torch.

    The same bits on any machine, and faster for small matrices, above all where cores are shared.
    """
    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(limits=1)
    return limits


def _cannot_travel(error: Exception) -> InputError:
    return InputError(
        f"an estimator cannot be sent to worker processes ({type(error).__name__}: {error}): use --jobs 1, or "
        "define its class at the top level of a module"
    )


def _windowed(
    pool: Executor, work: Callable[[Any, Task], Result], tasks: Sequence[Task], in_flight: int
) -> Iterator[Result]:
    """Keep a bounded number of tasks submitted, so that finished results do not pile up."""
    waiting: deque[Future[Result]] = deque()
    for task in tasks:
        if len(waiting) >= in_flight:
            yield waiting.popleft().result()
        with _deaf_children():
            future = pool.submit(_in_worker, work, task)
        waiting.append(future)
    while waiting:
        yield waiting.popleft().result()


@contextlib.contextmanager
def _deaf_children() -> Iterator[None]:
    """Let processes that are started inside ignore Ctrl-C from their first moment: it is the parent's to handle."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows: they are deaf from their initializer on
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _receive(package: bytes) -> None:
    global _package
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _package = package


def _end_with_parent() -> None:
    """Leave no orphan behind when the parent is killed: a worker would wait for its next task forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_worker(work: Callable[[Any, Task], Result], task: Task) -> Result:
    global _package, _shared
    if _package:
        try:
            _shared = pickle.loads(_package)
        except Exception as error:  # a class of the parent's __main__, of a notebook or an interactive session
            raise _cannot_travel(error) from error
        _package = b""
    with one_thread():
        return work(_shared, task)
