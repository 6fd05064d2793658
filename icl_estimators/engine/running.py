"""Run a design: choose what does the work, and merge the blocks of the design in chain order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, Self, TypeVar

from icl_estimators.engine.blocks import blocks
from icl_estimators.engine.cluster import Cluster
from icl_estimators.engine.designs import Blocks, Design
from icl_estimators.engine.executors import InProcess, Notice, Processes, cannot_travel, in_order, one_thread
from icl_estimators.engine.pieces import Piece
from icl_estimators.engine.time_limit import TimeLimit

__all__ = ["Progress", "crew_for", "keep_blocks", "run_design"]


class _CanMerge(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def merge(self, other: Self) -> Self: ...


Mergeable = TypeVar("Mergeable", bound=_CanMerge)
Shared = TypeVar("Shared")

Progress = Callable[[str, int, int], None]
"""Called with what is being done, units done, and units in all."""

_WORTH_PROCESSES = 5000  # sequences below which starting processes costs more than it saves


def crew_for(
    shared: Any,
    sequences: int,
    jobs: int,
    dask: str | None = None,
    *,
    pack: Callable[[Any], object] | None = None,
) -> InProcess | Processes | Cluster:
    """Return what does the work; a small study stays in this process, where it is faster.

    Parameters
    ----------
    shared : object
        What every task needs.
    sequences : int
        How many are to be predicted.
    jobs : int
        Processes on this machine.
    dask : str, optional
        Address of a dask.distributed scheduler, whose workers are used instead.
    pack : callable, optional
        Wraps `shared` before it is sent to other processes; the result unpickles to `shared`.

    Raises
    ------
    InputError
        If `shared` cannot be sent to other processes, or the cluster cannot be used.
    """
    if dask is None and (jobs == 1 or sequences < _WORTH_PROCESSES):
        return InProcess(shared)
    try:
        packed = shared if pack is None else pack(shared)
    except Exception as error:
        raise cannot_travel(error) from error
    return Processes(packed, jobs) if dask is None else Cluster(packed, dask)


def run_design(
    what: str,
    kind: type[Mergeable],
    work: Callable[[Shared, range], Mergeable],
    chains: int,
    sequences: int,
    *,
    shared: Shared,
    cells: int,
    crew: InProcess | Processes | Cluster,
    progress: Progress,
    notice: Notice,
    kept: Blocks | None = None,
    limit: TimeLimit | None = None,
) -> Mergeable | None:
    """Run a design's blocks and merge them in chain order; None if it has no chains.

    Parameters
    ----------
    what : str
        The design's name.
    kind : type
        What `work` returns.
    work : callable
        (shared, chains) → the summary of those chains.
    chains, sequences : int
        R chains with S sequences each.
    shared : object
        What every block needs; the crew has it too.
    cells : int
        T·K, probabilities predicted for one sequence.
    crew : Crew
        What does the work, as from :func:`crew_for`.
    progress : callable
        Called with (what, done, total) after each block.
    notice : callable
        Takes one line for each worker or block that was lost and whose work is repeated.
    kept : Blocks, optional
        Where finished blocks are stored and read.
    limit : TimeLimit, optional
        No block is started after it.

    Raises
    ------
    OutOfTime
        If the time is over before the work.
    """
    tasks = list(blocks(chains, sequences, cells))
    store = None if kept is None else kept.design(what, kind)
    done, whole = (0, None) if store is None else store.merged()
    tasks = [task for task in tasks if task.start >= done]
    there = set() if store is None else {task for task in tasks if store.has(task)}
    if done or there:
        progress(what, done + sum(map(len, there)), chains)
    fresh = in_order(
        work,
        crew,
        [task for task in tasks if task not in there],
        finished=(lambda task, part: None) if store is None else store.save,
        notice=notice,
        limit=limit,
    )
    for task in tasks:
        part = store.load(task) if store is not None and task in there else None
        if part is None and task in there:  # the block exists but cannot be read
            with one_thread():
                part = work(shared, task)
        if part is None:
            part = next(fresh)
        whole = part if whole is None else whole.merge(part)
        if store is not None:
            store.passed(task, whole)
        done += len(task)
        progress(what, done, chains)
    return whole


def keep_blocks(
    design: Design[Shared],
    piece: Piece,
    *,
    crew: InProcess | Processes | Cluster,
    progress: Progress,
    notice: Notice,
    kept: Blocks,
    limit: TimeLimit | None = None,
) -> None:
    """Compute the blocks of a design that belong to a piece of the study, and keep each on its own.

    They are not merged: sums in another order have other last bits.

    Parameters
    ----------
    design : Design
    piece : Piece
    crew, progress, notice, kept, limit
        As for :func:`run_design`.

    Raises
    ------
    OutOfTime
        If the time is over before the work.
    """
    store = kept.design(design.name, design.kind)
    tasks = design.blocks(piece)
    missing = [task for task in tasks if store.load(task) is None]
    total, left = sum(map(len, tasks)), sum(map(len, missing))
    if left < total:
        progress(design.name, total - left, total)
    computed = in_order(design.work, crew, missing, finished=store.save, notice=notice, limit=limit)
    for task, _ in zip(missing, computed, strict=True):
        left -= len(task)
        progress(design.name, total - left, total)
