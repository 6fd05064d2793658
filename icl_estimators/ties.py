"""Which estimators can be distinguished, by the rows of pairs.csv. Every sentence about an order is based on this."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Pair", "Pairs", "verdict"]

_ROUNDING = 1e-12


def verdict(difference: float, low: float, high: float) -> str:
    """Say what a paired difference and its interval tell.

    Examples
    --------
    >>> verdict(-0.1, -0.2, -0.01), verdict(0.1, -0.1, 0.3), verdict(0.0, 0.0, 0.0)
    ('better', 'not distinguishable', 'identical')
    >>> verdict(0.1, float("nan"), float("nan"))
    '–'
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    if max(abs(difference), abs(low), abs(high)) <= _ROUNDING:
        return "identical"
    return "worse" if low > 0 else "better" if high < 0 else "not distinguishable"


@dataclass(frozen=True)
class Pair:
    """A difference a − b with limits that hold for all pairs at once."""

    difference: float
    low: float
    high: float
    note: str = ""

    @property
    def verdict(self) -> str:
        """What it tells of a against b."""
        return verdict(self.difference, self.low, self.high)

    @property
    def decided(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def turned(self) -> Pair:
        """Return b − a."""
        return Pair(0.0 - self.difference, 0.0 - self.high, 0.0 - self.low, self.note)


class Pairs:
    """The pairs of one metric.

    Parameters
    ----------
    rows : iterable of mapping
        Of pairs.csv, by column.
    metric : str

    Examples
    --------
    >>> row = {"estimator": "b", "other": "a", "metric": "kl_nats", "note": ""}
    >>> pairs = Pairs([{**row, "difference": 0.1, "ci_low": -0.1, "ci_high": 0.3}], "kl_nats")
    >>> pairs.of("a", "b").difference, pairs.tied("a", ["a", "b"])
    (-0.1, ['b'])
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], metric: str) -> None:
        self._pairs: dict[tuple[str, str], Pair] = {}
        for row in rows:
            if row["metric"] == metric:
                difference, low, high = (float(row[column]) for column in ("difference", "ci_low", "ci_high"))
                pair = Pair(difference, low, high, str(row["note"]))
                key = str(row["estimator"]), str(row["other"])
                self._pairs[key], self._pairs[key[::-1]] = pair, pair.turned()

    def __len__(self) -> int:
        return len(self._pairs) // 2

    def of(self, estimator: str, other: str) -> Pair | None:
        """Return estimator − other; None if the two were not compared."""
        return self._pairs.get((estimator, other))

    def compared(self, estimator: str, names: Sequence[str]) -> list[str]:
        """Return who of `names` was compared with an estimator, whether or not there is an interval."""
        return [name for name in names if (estimator, name) in self._pairs]

    def groups(self, names: Sequence[str]) -> list[list[str]]:
        """Cut names into those that were compared with each other: like with like.

        Examples
        --------
        >>> Pairs([], "kl_nats").groups(["a", "b"])
        [['a'], ['b']]
        """
        groups: list[list[str]] = []
        for name in names:
            for group in groups:
                if (name, group[0]) in self._pairs:
                    group.append(name)
                    break
            else:
                groups.append([name])
        return groups

    def tied(self, best: str, names: Sequence[str]) -> list[str]:
        """Return which of `names` cannot be distinguished from `best`: the interval contains 0, or they are equal."""
        found = ((name, self._pairs.get((name, best))) for name in names)
        return [name for name, pair in found if pair and pair.verdict in ("not distinguishable", "identical")]

    def undecided(self, best: str, names: Sequence[str]) -> list[str]:
        """Return who of `names` was compared with `best` without an interval, though both are finite."""
        found = ((name, self._pairs.get((name, best))) for name in names)
        return [name for name, pair in found if pair and not pair.decided and math.isfinite(pair.difference)]
