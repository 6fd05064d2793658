"""Progress of long work: bars on a terminal, lines at intervals otherwise, nothing if quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Report", "progress_reports"]

_SECONDS_BETWEEN_LINES = 10.0


class Report(Protocol):
    """Takes what is being done, units done, units in all, and what has been measured so far."""

    def __call__(self, what: str, done: int, total: int, measured: str = "") -> None: ...


Reports = tuple[Report, Callable[[str], None]]


@contextmanager
def progress_reports(*, quiet: bool, unit: str = "chain", together: int | None = None) -> Iterator[Reports]:
    """Give two callbacks: a :class:`Report`, and one that takes a line for each loss that was repaired.

    Parameters
    ----------
    quiet : bool
        Print nothing.
    unit : str
        What is counted.
    together : int, optional
        Units of everything that will be reported: there is one bar for all of it. By default each `what` has its own.
    """
    if quiet:
        yield lambda what, done, total, measured="": None, lambda line: None
    elif sys.stderr.isatty():
        yield from _bars(unit, together)
    else:
        yield from _lines(unit)


def _bars(unit: str, together: int | None) -> Iterator[Reports]:
    from tqdm import tqdm

    bars: dict[str, tqdm] = {}
    reported: dict[str, int] = {}
    losses = 0

    def show(what: str, done: int, total: int, measured: str = "") -> None:
        key = what if together is None else ""
        if key not in bars:
            bars[key] = tqdm(total=together or total, unit=unit, leave=together is not None, dynamic_ncols=True)
        bar = bars[key]
        if what not in reported:  # what an earlier run had finished says nothing about the speed of this one
            reported[what] = done if done < total else 0
            bar.initial += reported[what]
            bar.n += reported[what]
        bar.set_description_str(what, refresh=False)
        if measured:
            bar.set_postfix_str(measured, refresh=False)
        bar.update(done - reported[what])
        reported[what] = done

    def say(line: str) -> None:
        nonlocal losses
        losses += 1
        tqdm.write(line, file=sys.stderr)
        for bar in bars.values():
            bar.set_postfix({"lost and repeated": losses})

    try:
        yield show, say
    finally:
        for bar in bars.values():
            bar.close()


def _lines(unit: str) -> Iterator[Reports]:
    began: dict[str, tuple[float, int]] = {}
    last = time.monotonic()
    losses = 0

    def log(what: str, done: int, total: int, measured: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        start, before = began.setdefault(what, (now, done))
        if now - last >= _SECONDS_BETWEEN_LINES or (measured and done == total):
            last = now
            parts = [f"{what}: {done:,} of {total:,} {unit}s"]
            if measured:
                parts.append(measured)
            if losses:
                parts.append(f"{losses} lost and repeated")
            if total > done > before:
                parts.append(f"about {(now - start) / (done - before) * (total - done):.0f} s left")
            print(", ".join(parts), file=sys.stderr)

    def say(line: str) -> None:
        nonlocal losses
        losses += 1
        print(line, file=sys.stderr)

    yield log, say
