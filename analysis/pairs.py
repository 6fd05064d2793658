"""Two contestants measured alternately: A B A B …, and the median of the ratios pair by pair."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["HEADER", "Action", "Pair", "measure", "seconds"]

Action = Callable[[], object]

HEADER = ["", "first", "", "second", "", "ratio", "range"]


@dataclass(frozen=True)
class Pair:
    """One comparison: `baseline` over `contestant`."""

    what: str
    baseline_name: str
    contestant_name: str
    baseline: Action
    contestant: Action
    per: float = 1.0  # divide the contestant's time by this, e.g. by the number of seeds it serves


def measure(pair: Pair, rounds: int) -> list[str]:
    """Return a row of the table: median times, the median ratio and its range."""
    pair.baseline()
    pair.contestant()  # warm-up: allocation, caches
    first, second = [], []
    for _ in range(rounds):
        first.append(seconds(pair.baseline))
        second.append(seconds(pair.contestant) / pair.per)
    ratios = sorted(a / b for a, b in zip(first, second, strict=True))
    return [
        pair.what,
        pair.baseline_name,
        f"{1e3 * statistics.median(first):.2f} ms",
        pair.contestant_name,
        f"{1e3 * statistics.median(second):.2f} ms",
        f"{statistics.median(ratios):.2f}",
        f"{ratios[0]:.2f}–{ratios[-1]:.2f}",
    ]


def seconds(action: Action) -> float:
    """Return how long it takes, by the clock."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
