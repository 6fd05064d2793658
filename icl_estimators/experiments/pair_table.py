"""pairs.csv: all pairs of estimators compared on the same draws, and which are tied with the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.experiments.risk import RiskMoments
from icl_estimators.experiments.study import Study
from icl_estimators.inference import PairComparisons, pairs_of_moments
from icl_estimators.metrics import METRICS
from icl_estimators.notes import Code, Note

__all__ = ["pair_rows", "pair_table"]


def pair_table(study: Study, moments: RiskMoments) -> Table:
    """Return pairs.csv of a study: all pairs of the rows `mean`, simultaneous over the pairs of a metric."""
    rows: list[tuple[Cell, ...]] = []
    names = sorted(study.names)  # the order of the moments
    for metric, entry in METRICS.items():
        if metric in moments.pairs:
            pairs = pairs_of_moments(moments.pairs[metric], level=study.level)
            means = moments.pairs[metric].values.mean
            rows += pair_rows(names, metric, means, pairs, order=study.names)
        elif entry.paired and entry.needs_posterior:
            rows += [
                (second, first, metric, *(np.nan,) * 5, "", Note(Code.NO_POSTERIOR))
                for first, second in combinations(study.names, 2)
            ]
    return Table.of("pairs", rows)


def pair_rows(
    names: Sequence[str],
    metric: str,
    means: NDArray[np.float64],
    pairs: PairComparisons,
    *,
    order: Sequence[str] | None = None,
) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of all pairs, those with the best first.

    Parameters
    ----------
    names : sequence of str
        Of the N estimators.
    metric : str
    means : ndarray of float64, shape (N,)
        Smaller is better; inf and NaN come last.
    pairs : PairComparisons
        Of the N means.
    order : sequence of str, optional
        The order among equal means; by default that of `names`.
    """
    place = {name: index for index, name in enumerate(names if order is None else order)}
    ranked = sorted(range(len(names)), key=lambda i: (np.isnan(means[i]), means[i], place[names[i]]))
    row_of = {(int(i), int(j)): row for row, (i, j) in enumerate(zip(pairs.first, pairs.second, strict=True))}
    best = ranked[0]
    for better, worse in combinations(ranked, 2):
        forward = (worse, better) in row_of
        row = row_of[worse, better] if forward else row_of[better, worse]
        difference, low, high = (float(field[row]) for field in (pairs.difference, pairs.low, pairs.high))
        if not forward:
            difference, low, high = 0.0 - difference, 0.0 - high, 0.0 - low  # no −0.0
        tied: bool | str = ""
        if better == best and np.isfinite(means[best]):
            if np.isfinite(low):
                tied = bool(low <= 0.0 <= high or pairs.identical[row])
            elif np.isposinf(means[worse]):
                tied = False
        yield (
            names[worse],
            names[better],
            metric,
            difference,
            float(pairs.se[row]),
            low,
            high,
            float(pairs.p[row]),
            tied,
            pairs.notes[row],
        )
