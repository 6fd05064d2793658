"""Several training runs, one process each: seeds share nothing, so that each is the run it would be alone."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

from icl_estimators.transformer.checkpoint import CheckpointInfo
from icl_estimators.transformer.runs import Run, train
from icl_estimators.transformer.training import MetricRow
from icl_estimators.validation import InputError

__all__ = ["Report", "train_many"]

Report = Callable[[Run, int, MetricRow], None]
"""Called with a run, the updates that it has had, and its latest row."""

Outcome = CheckpointInfo | InputError | None
"""Of one run: its checkpoint, why it failed, or None if it was stopped and can be resumed."""


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
    """Train each run as :func:`icl_estimators.transformer.runs.train` does, `jobs` at a time.

    A run that fails does not stop the others.

    Yields
    ------
    (Run, CheckpointInfo or InputError or None)
        Each run with what came of it, as they end; those not begun before `should_stop` are None.
    """
    if min(jobs, len(runs)) <= 1:
        for run in runs:
            outcome: Outcome = None
            try:
                if not should_stop():
                    tell = partial(report, run)
                    outcome = train(run, out, report=tell, should_stop=should_stop, save_every=save_every, force=force)
            except InputError as error:
                outcome = error
            yield run, outcome
        return
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    stop, messages = context.Event(), context.Queue()
    pool = ProcessPoolExecutor(
        min(jobs, len(runs)), context, initializer=_begin, initargs=(stop, messages, os.getpid())
    )
    with pool:
        waiting: dict[Future[CheckpointInfo | None], Run] = {
            pool.submit(_train_one, run, out, save_every, force): run for run in runs
        }
        while waiting:
            for run, step, row in _received(messages):
                report(run, step, row)
            if should_stop():
                stop.set()
            for future in [future for future in waiting if future.done()]:
                yield waiting.pop(future), _outcome(future)


def _received(messages: Queue[tuple[Run, int, MetricRow]]) -> Iterator[tuple[Run, int, MetricRow]]:
    """Yield what has arrived, after waiting a moment for the first."""
    try:
        yield messages.get(timeout=0.1)
        while True:
            yield messages.get_nowait()
    except queue.Empty:
        return


def _outcome(future: Future[CheckpointInfo | None]) -> Outcome:
    try:
        return future.result()
    except InputError as error:
        return error
    except BrokenProcessPool:
        return InputError("a training process was killed, perhaps for want of memory: use fewer --jobs and --resume")


_stop: Event
_messages: Queue[tuple[Run, int, MetricRow]]
_parent: int


def _begin(stop: Event, messages: Queue[tuple[Run, int, MetricRow]], parent: int) -> None:
    """Set up a process: it stops when it is told to or when whoever started it is gone."""
    global _stop, _messages, _parent
    _stop, _messages, _parent = stop, messages, parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    messages.cancel_join_thread()  # progress that nobody reads must not keep a process alive


def _should_stop() -> bool:
    return _stop.is_set() or os.getppid() != _parent


def _train_one(run: Run, out: Path, save_every: float, force: bool) -> CheckpointInfo | None:
    if _should_stop():
        return None

    def report(step: int, row: MetricRow) -> None:
        _messages.put((run, step, row))

    return train(run, out, report=report, should_stop=_should_stop, save_every=save_every, force=force)
