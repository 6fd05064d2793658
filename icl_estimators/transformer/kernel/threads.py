"""Work in threads: compiled code releases Python's lock, so plain threads are enough.

The kernel has no thread pool of its own. It uses as many threads as torch has at the moment, so
that ``torch.set_num_threads``, ``--threads`` and :mod:`threadpoolctl` bound both.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import torch

__all__ = ["over_threads"]


def over_threads(work: Callable[[int, int], object], count: int, threads: int | None = None) -> None:
    """Call ``work(first, last)`` on consecutive pieces of ``range(count)``, a thread each.

    Parameters
    ----------
    work : callable
        What it does to an item must not depend on the piece that the item is in.
    count : int
    threads : int, optional
        As many as torch uses by default.

    Examples
    --------
    >>> done = [0] * 5
    >>> def work(first, last):
    ...     for item in range(first, last):
    ...         done[item] += 1
    >>> over_threads(work, 5, threads=2)
    >>> done
    [1, 1, 1, 1, 1]
    """
    pieces = min(count, threads or torch.get_num_threads())
    if pieces <= 1:
        work(0, count)
        return
    pool = _pool(pieces - 1, os.getpid())
    mine, *others = pairwise(count * piece // pieces for piece in range(pieces + 1))
    pending = [pool.submit(work, first, last) for first, last in others]
    work(*mine)
    for other in pending:
        other.result()


@lru_cache(maxsize=4)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay; a forked process has none of its parent's, hence `process`."""
    return ThreadPoolExecutor(threads, thread_name_prefix="icl-kernel")
