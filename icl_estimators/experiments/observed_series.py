"""Observed data over time: the tokens themselves, and how the loss of each estimator departs from the reference's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.experiments.observed import ObservedLosses, ObservedRow
from icl_estimators.sources import ObservedSequences

__all__ = ["cumulative_table", "series_table"]

Array = NDArray[np.float64]

SHOWN_SEQUENCES, SHOWN_TOKENS = 20, 2000
"""How much of the data series.csv holds: the first tokens of the first sequences."""

_POINTS = 400


def series_table(data: ObservedSequences) -> Table:
    """Return series.csv: the first tokens of the first sequences, for a look at them.

    Examples
    --------
    >>> series_table(ObservedSequences("coin", ("a", "b"), (np.array([0, 1]),), ids=("x",))).rows
    ((1, 'x', 1, 'a'), (1, 'x', 2, 'b'))
    """
    rows: list[tuple[Cell, ...]] = []
    for number, sequence in enumerate(data.sequences[:SHOWN_SEQUENCES], start=1):
        name = data.ids[number - 1] if data.ids else ""
        shown = sequence[: SHOWN_TOKENS - len(rows)].tolist()
        rows += [(number, name, place, data.labels[token]) for place, token in enumerate(shown, start=1)]
    return Table.of("series", rows)


def cumulative_table(found: ObservedLosses, reference: str) -> Table:
    """Return cumulative.csv: the sum of the loss differences so far, in the order of the data, at up to 400 places.

    Each row of losses minus the reference's row of the same kind; none where the reference has no such row, and none
    with counts from other folds, which know later sequences.
    """
    rows: list[tuple[Cell, ...]] = []
    kinds = dict.fromkeys(row.group for row in found.rows if row.history.kind != "folds")
    for kind in kinds:
        group = [row for row in found.rows if row.group == kind]
        base = next((row for row in group if row.estimator == reference), None)
        if base is not None:
            rows += [cells for row in group if row is not base for cells in _departure(row, base)]
    return Table.of("cumulative", rows)


def _departure(row: ObservedRow, base: ObservedRow) -> Iterator[tuple[Cell, ...]]:
    with np.errstate(invalid="ignore"):
        sums = np.cumsum(row.losses - base.losses)
    for place in _places(len(sums)):
        yield (row.name, base.name, int(place) + 1, float(sums[place]))


def _places(count: int) -> Sequence[int]:
    return np.unique(np.linspace(0, count - 1, min(count, _POINTS)).round().astype(int)).tolist()
