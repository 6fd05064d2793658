"""Worker processes: how they start. They never start others, and they leave signals to their parent."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from icl_estimators.validation import InputError

__all__ = [
    "NestedWorkers",
    "at_work",
    "deaf_children",
    "end_now",
    "make_deaf",
    "refuse_command_in_worker",
    "refuse_in_worker",
    "require_main_file",
    "started_workers",
    "worker_context",
]

_NAME = "icl-estimators worker"
_NESTED = 78  # exit status of a worker whose main module starts workers when it is imported
_WHERE = (
    'put the call under `if __name__ == "__main__":`, in a file that is run as a program, or use jobs=1 '
    "(worker processes import the modules of your estimators)"
)


class NestedWorkers(InputError):
    """Workers that were asked for in a worker, where they would multiply endlessly."""

    def __init__(self, text: str = f"a worker process tried to start workers of its own: {_WHERE}") -> None:
        super().__init__(text)


class _Worker(SpawnProcess):
    """A process with a name by which it knows itself, even while it imports its parent's main module."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "name": _NAME})


class _Context(SpawnContext):
    Process = _Worker


def worker_context() -> SpawnContext:
    """Return how workers are started: spawned, as a forked copy of a process with running threads can hang."""
    return _Context()


_here = threading.local()


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """Mark this thread as a worker's while it unpacks and does a task, on a cluster too."""
    before = getattr(_here, "at_work", False)
    _here.at_work = True
    try:
        yield
    finally:
        _here.at_work = before


def refuse_in_worker(jobs: int) -> None:
    """Refuse to start workers in a worker.

    Parameters
    ----------
    jobs : int
        How many processes are asked for; 1 is none beside this one.

    Raises
    ------
    NestedWorkers
        If this is a worker process and `jobs` is more than 1. A worker that is still importing its parent's main
        module ends instead, silently, with a status that tells its parent why.
    """
    if jobs <= 1:
        return
    _leave_if_importing()
    in_child = multiprocessing.parent_process() is not None or _importing_main()
    if in_child or getattr(_here, "at_work", False):
        raise NestedWorkers


def refuse_command_in_worker() -> None:
    """Refuse to run a whole command in a worker of ours, as :func:`refuse_in_worker` does.

    Raises
    ------
    NestedWorkers
        If this is a worker.
    """
    if getattr(_here, "at_work", False):
        raise NestedWorkers
    _leave_if_importing()


def _importing_main() -> bool:
    """Say whether this is a new process that is importing its parent's main module; its parent is not set yet."""
    return bool(getattr(multiprocessing.current_process(), "_inheriting", False))


def _leave_if_importing() -> None:
    if _importing_main() and multiprocessing.current_process().name == _NAME:
        os._exit(_NESTED)


def require_main_file() -> None:
    """Check, before workers start, that they can import the main module, as each of them must.

    Raises
    ------
    InputError
        If this program was read from standard input.
    """
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is None and file is not None and not os.path.exists(file):
        raise InputError(
            f"worker processes cannot start: this program is not in a file that they could import ({file}); save it "
            'as a file and put the call under `if __name__ == "__main__":`, or use jobs=1'
        )


def started_workers(pool: ProcessPoolExecutor) -> list[Any]:
    """Return the processes of a pool; it forgets them once it is shut down."""
    return list((pool._processes or {}).values())


def end_now(pool: ProcessPoolExecutor) -> None:
    """End a pool without waiting for the current work of its workers.

    Raises
    ------
    NestedWorkers
        If a worker has ended because its main module starts workers when it is imported.
    """
    workers = started_workers(pool)
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        with contextlib.suppress(ValueError):  # closed by the pool
            worker.kill()  # they ignore the signal of terminate()
    ends = []
    for worker in workers:
        with contextlib.suppress(ValueError, AssertionError):
            worker.join(5)
            ends.append(worker.exitcode)
    if _NESTED in ends:
        raise NestedWorkers


_DEAF_TO = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes that are started inside ignore Ctrl-C and SIGTERM from their first moment.

    Both reach the whole group of processes; the parent decides.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows: their initializer makes them ignore signals
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _DEAF_TO)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def make_deaf() -> None:
    """Ignore, in a worker, the signals that the parent handles."""
    for number in _DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
