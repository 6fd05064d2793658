"""A limit on the time of a run: no block is started after it, and finished blocks are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

__all__ = ["OutOfTime", "TimeLimit"]


class OutOfTime(Exception):
    """The time is over before the work.

    Parameters
    ----------
    done : mapping of str to (int, int)
        By design, how many chains are done and how many there are.
    """

    def __init__(self, done: Mapping[str, tuple[int, int]] | None = None) -> None:
        super().__init__("out of time")
        self.done = dict(done or {})

    def __str__(self) -> str:
        """Return how far the work is, in one line.

        Examples
        --------
        >>> str(OutOfTime({"risk": (1200, 2000), "budget": (0, 8000)}))
        '1,200 of 10,000 chains are done (risk 1,200 of 2,000, budget 0 of 8,000)'
        """
        finished, total = (sum(counts) for counts in zip(*self.done.values(), strict=True)) if self.done else (0, 0)
        each = ", ".join(f"{name} {done:,} of {of:,}" for name, (done, of) in self.done.items())
        return f"{finished:,} of {total:,} chains are done" + (f" ({each})" if each else "")


class TimeLimit:
    """How long blocks may be started.

    At least one block is finished, however short the time, so that a run that is continued again and again ends.

    Parameters
    ----------
    seconds : float
    began : float, optional
        On `clock`; now by default.
    clock : callable
        The time in seconds.
    """

    def __init__(
        self, seconds: float, began: float | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._clock = clock
        self._end = (clock() if began is None else began) + seconds
        self._finished = False

    def block_finished(self) -> None:
        """Note that this run has finished a block."""
        self._finished = True

    @property
    def over(self) -> bool:
        """Whether no further block may be started."""
        return self._finished and self._clock() >= self._end
