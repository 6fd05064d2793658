"""Several training runs in several processes: each gives the same result as it would alone."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from icl_estimators.transformer.training.alignment import may_share
from icl_estimators.transformer.training.runs import Outcome, Report, Run, train
from icl_estimators.transformer.training.trainer import MetricRow
from icl_estimators.validation import InputError
from icl_estimators.workers import (
    at_work,
    deaf_children,
    end_now,
    make_deaf,
    refuse_in_worker,
    require_main_file,
    worker_context,
)

__all__ = ["Report", "train_many"]

_RUNS_PER_PROCESS = (
    10  # runs of the kernel in one process: enough to share torch's overhead, few enough to stay in its cache
)


def train_many(
    runs: Sequence[Run],
    out: Path,
    *,
    jobs: int,
    report: Report,
    should_stop: Callable[[], bool],
    save_every: float,
    force: bool,
) -> Iterator[tuple[Run, Outcome]]:
    """Train each run as :func:`icl_estimators.transformer.training.runs.train` does, in `jobs` processes.

    A process has one run at a time or, where the kernel computes them, several side by side. A run that fails does
    not stop the others.

    Yields
    ------
    (Run, CheckpointInfo or InputError or None)
        Each run with its result, as they end; None for runs not started before `should_stop`.

    Raises
    ------
    InputError
        If several processes are asked for where they cannot start: in a worker, or in a program that was read from
        standard input.
    """
    tasks = _tasks(runs, jobs)
    refuse_in_worker(min(jobs, len(tasks)))
    if min(jobs, len(tasks)) <= 1:
        for task in tasks:
            outcomes = dict.fromkeys(task, None)
            if not should_stop():
                outcomes = _train(task, out, report, should_stop, save_every, force)
            yield from outcomes.items()
        return
    require_main_file()
    for config in {run.config for run in runs if run.engine == "kernel"}:
        from icl_estimators.transformer.kernel import compile_logits, compile_loss

        compile_loss(config.n_states)  # once, here: the processes find it in numba's cache
        compile_logits(config.n_states)
    context = worker_context()
    stop, messages = context.Event(), context.Queue()
    pool = ProcessPoolExecutor(
        min(jobs, len(tasks)), context, initializer=_begin, initargs=(stop, messages, os.getpid())
    )
    with pool:
        with deaf_children():
            waiting = {pool.submit(_train_in_process, task, out, save_every, force): task for task in tasks}
        while waiting:
            for run, step, row in _received(messages):
                report(run, step, row)
            if should_stop():
                stop.set()
            for future in [future for future in waiting if future.done()]:
                if isinstance(future.exception(), BrokenProcessPool):
                    end_now(pool)  # the others would be waited for
                yield from _outcomes(future, waiting.pop(future)).items()


def _tasks(runs: Sequence[Run], jobs: int) -> list[list[Run]]:
    """Split runs into what one process does at a time."""
    alike: dict[Any, list[Run]] = {}
    for run in runs:
        alone = run.engine != "kernel" or not may_share(run.config.d_model)
        alike.setdefault(run if alone else (run.config, run.recipe, run.threads), []).append(run)
    size = min(_RUNS_PER_PROCESS, -(-len(runs) // jobs))
    return [group[first : first + size] for group in alike.values() for first in range(0, len(group), size)]


def _train(
    task: Sequence[Run],
    out: Path,
    report: Report,
    should_stop: Callable[[], bool],
    save_every: float,
    force: bool,
) -> dict[Run, Outcome]:
    if task[0].engine == "kernel":
        from icl_estimators.transformer.training.grouped_runs import train_group  # loads numba

        return train_group(task, out, report=report, should_stop=should_stop, save_every=save_every, force=force)
    (run,) = task
    try:
        outcome: Outcome = train(
            run, out, report=partial(report, run), should_stop=should_stop, save_every=save_every, force=force
        )
    except InputError as error:
        outcome = error
    return {run: outcome}


def _received(messages: Queue[tuple[Run, int, MetricRow]]) -> Iterator[tuple[Run, int, MetricRow]]:
    """Yield what has arrived, after waiting a moment for the first."""
    try:
        yield messages.get(timeout=0.1)
        while True:
            yield messages.get_nowait()
    except queue.Empty:
        return


def _outcomes(future: Future[dict[Run, Outcome]], task: Sequence[Run]) -> dict[Run, Outcome]:
    try:
        return future.result()
    except BrokenProcessPool:
        error = "a training process was killed, perhaps because memory ran out: use fewer --jobs and --resume"
        return {run: InputError(error) for run in task}


_stop: Event
_messages: Queue[tuple[Run, int, MetricRow]]
_parent: int


def _begin(stop: Event, messages: Queue[tuple[Run, int, MetricRow]], parent: int) -> None:
    """Set up a process: it stops on request or when its parent is gone."""
    global _stop, _messages, _parent
    _stop, _messages, _parent = stop, messages, parent
    make_deaf()
    messages.cancel_join_thread()  # progress that nobody reads must not keep a process alive


def _should_stop() -> bool:
    return _stop.is_set() or os.getppid() != _parent


def _train_in_process(task: Sequence[Run], out: Path, save_every: float, force: bool) -> dict[Run, Outcome]:
    if _should_stop():
        return dict.fromkeys(task, None)

    def report(run: Run, step: int, row: MetricRow) -> None:
        _messages.put((run, step, row))

    with at_work():
        return _train(task, out, report, _should_stop, save_every, force)
