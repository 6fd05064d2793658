"""Run blocks of work in order: in this process, in several, or on a cluster. Lost workers are replaced.

One loop (:func:`in_order`) serves three crews, each a thin wrapper of a ``concurrent.futures.Executor``. It keeps a
bounded number of blocks in flight, yields results in the order of the tasks, and submits a task again if a worker was
lost or an error occurred.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from icl_estimators.engine.time_limit import OutOfTime, TimeLimit
from icl_estimators.validation import InputError
from icl_estimators.workers import (
    NestedWorkers,
    at_work,
    deaf_children,
    end_now,
    make_deaf,
    refuse_in_worker,
    require_main_file,
    worker_context,
)

__all__ = [
    "ATTEMPTS",
    "Crew",
    "InProcess",
    "Processes",
    "TaskFailed",
    "cannot_travel",
    "in_order",
    "one_thread",
]

Task = TypeVar("Task")
Result = TypeVar("Result")
Notice = Callable[[str], None]

ATTEMPTS = 3
"""How often a task may fail before it ends the run."""


class TaskFailed(InputError):
    """A block that failed at every attempt; finished blocks are kept if the study keeps blocks."""


class Crew(Protocol):
    """What does the work. `shared`, which every task needs, is sent to each worker once."""

    in_flight: int
    """How many tasks are kept submitted."""

    def submit(self, work: Callable[[Any, Task], Result], task: Task) -> Future[Result]:
        """Start ``work(shared, task)``."""
        ...

    def worker_lost(self, error: BaseException) -> bool:
        """Say whether an error means that workers were lost, rather than that the task failed."""
        ...

    def explain(self) -> None:
        """Raise if workers were lost for a reason that will recur."""
        ...

    def renew(self) -> None:
        """Prepare for new work after a loss; tasks in flight are gone."""
        ...


def in_order(
    work: Callable[[Any, Task], Result],
    crew: Crew,
    tasks: Sequence[Task],
    *,
    finished: Callable[[Task, Result], None] = lambda task, result: None,
    notice: Notice = lambda line: None,
    limit: TimeLimit | None = None,
) -> Iterator[Result]:
    """Yield ``work(shared, task)`` for each task, in the order of the tasks.

    Parameters
    ----------
    work : callable
        A module-level function of what the crew shares and a task.
    crew : Crew
    tasks : sequence
        Small and picklable.
    finished : callable
        Called with each task and result as it comes, before its turn.
    notice : callable
        Takes one line for each loss or failure that the run survives.
    limit : TimeLimit, optional
        No task is started after it.

    Raises
    ------
    OutOfTime
        If the time is over before all tasks are done; those in progress were finished first.
    TaskFailed
        If a task failed :data:`ATTEMPTS` times.
    InputError
        If `work` raises it: bad input is not tried again.
    """
    failures = [0] * len(tasks)
    todo = deque(range(len(tasks)))
    ready: dict[int, Result] = {}
    pending: dict[Future[Result], int] = {}
    turn = 0
    while turn < len(tasks):
        # A task that was lost twice runs alone: if it is what kills workers, the third loss is surely its own.
        suspects = [index for index in todo if failures[index] >= ATTEMPTS - 1]
        window = 1 if suspects else crew.in_flight
        if suspects:
            todo.remove(suspects[0])
            todo.appendleft(suspects[0])
        in_time = limit is None or not limit.over
        while in_time and todo and len(pending) < window and (suspects or min(todo) < turn + 4 * crew.in_flight):
            index = todo.popleft()
            try:
                pending[crew.submit(work, tasks[index])] = index
            except BrokenExecutor:
                todo.appendleft(index)
                break
        if not in_time and not pending:
            raise OutOfTime
        done, _ = wait(pending, return_when=FIRST_COMPLETED)
        lost = not pending
        for future in done:
            index = pending.pop(future)
            error = future.exception()
            if error is None:
                ready[index] = future.result()
                finished(tasks[index], ready[index])
                if limit is not None:
                    limit.block_finished()
                continue
            if isinstance(error, InputError) and not getattr(error, "transient", False):
                if isinstance(error, NestedWorkers):
                    raise NestedWorkers from None  # without the worker's own traceback
                raise error
            if not isinstance(error, Exception):
                raise error
            failures[index] += 1
            todo.appendleft(index)
            if crew.worker_lost(error):
                lost = True
                crew.explain()
            if failures[index] >= ATTEMPTS:
                raise _failed_for_good(tasks[index], error) from error
            if not crew.worker_lost(error):
                notice(f"{_spelled(tasks[index])} failed ({_what(error)}); trying again")
        if lost:
            for future, index in pending.items():
                if future.done() and future.exception() is None:
                    ready[index] = future.result()
                    finished(tasks[index], ready[index])
                else:
                    failures[index] += 1  # perhaps the cause: it is not known which task was
                    todo.appendleft(index)
            pending.clear()
            todo = deque(sorted(todo))
            notice("a worker was lost; its unfinished blocks are computed again")
            crew.renew()
        while turn in ready:
            yield ready.pop(turn)
            turn += 1


def _failed_for_good(task: object, error: Exception) -> TaskFailed:
    return TaskFailed(f"{_what(error)} ({_spelled(task)}, tried {ATTEMPTS} times)")


def _what(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, BrokenExecutor):
        return (
            "a worker process ended unexpectedly, for example because memory ran out or the script fails when it is "
            "imported: fix that, or use fewer --jobs"
        )
    return f"{type(error).__name__}: {error}"


def _spelled(task: object) -> str:
    if isinstance(task, range):
        return f"block of chains {task[0]} to {task[-1]}"
    return f"task {task!r}"


class InProcess:
    """This process; a task is done when it has been submitted."""

    in_flight = 1

    def __init__(self, shared: Any) -> None:
        self._shared = shared

    def submit(self, work: Callable[[Any, Task], Result], task: Task) -> Future[Result]:
        """Do the work now."""
        future: Future[Result] = Future()
        try:
            with one_thread():
                future.set_result(work(self._shared, task))
        except Exception as error:
            future.set_exception(error)
        return future

    def worker_lost(self, error: BaseException) -> bool:
        """No worker can be lost."""
        return False

    def explain(self) -> None:
        """Nothing to explain."""

    def renew(self) -> None:
        """Nothing to do."""

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        return None


class Processes:
    """Processes on this machine, as a context manager.

    Parameters
    ----------
    shared : object
        What every task needs; pickled once, sent once to each process.
    jobs : int
        How many.

    Raises
    ------
    InputError
        If `shared` cannot be pickled, this program was read from standard input, or this is a worker itself.
    """

    def __init__(self, shared: Any, jobs: int) -> None:
        refuse_in_worker(max(jobs, 2))
        require_main_file()
        try:
            self._package = pickle.dumps(shared)
        except Exception as error:
            raise cannot_travel(error) from error
        self._jobs = jobs
        self.in_flight = 2 * jobs
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._jobs,
            mp_context=worker_context(),
            initializer=_receive,
            initargs=(self._package,),
        )

    def submit(self, work: Callable[[Any, Task], Result], task: Task) -> Future[Result]:
        """Start the work in the next free process."""
        with deaf_children():
            return self._pool.submit(_in_worker, work, task)

    def worker_lost(self, error: BaseException) -> bool:
        """A process that ends abruptly breaks its whole pool."""
        return isinstance(error, BrokenExecutor)

    def explain(self) -> None:
        """Raise NestedWorkers if the workers' main module starts workers when it is imported."""
        end_now(self._pool)

    def renew(self) -> None:
        """Replace the broken pool."""
        end_now(self._pool)
        self._pool = self._new_pool()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._pool.shutdown()
        else:
            with contextlib.suppress(NestedWorkers):  # the exception that is being raised says so already
                end_now(self._pool)


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """Run what is inside with one thread in BLAS, OpenMP and torch.

    The same bits whatever the number of cores, and faster for small matrices, above all where cores are shared.
    """
    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(limits=1)
    return limits


def cannot_travel(error: Exception) -> InputError:
    """Return the error that an estimator cannot be sent to other processes."""
    return InputError(
        f"an estimator cannot be sent to worker processes ({type(error).__name__}: {error}): use --jobs 1, or "
        "define its class at the top level of a module"
    )


_package = b""  # in a worker: what every task needs, sent once
_shared: Any = None  # the same, unpacked by the first task


def _receive(package: bytes) -> None:
    global _package
    make_deaf()
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
    with at_work():
        if _package:
            try:
                _shared = pickle.loads(_package)
            except InputError:
                raise
            except Exception as error:  # a class of the parent's __main__, of a notebook or an interactive session
                raise cannot_travel(error) from error
            _package = b""
        with one_thread():
            return work(_shared, task)
