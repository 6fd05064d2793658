"""Comparing rows of losses that are paired by prediction.

Of several sequences each is an independent unit. One long series has no such units: there a sliding window gives losses
that may be taken for stationary, and their differences are tested by Diebold & Mariano (1995).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell
from icl_estimators.experiments.observed import ObservedLosses, ObservedRow
from icl_estimators.experiments.pair_table import pair_rows
from icl_estimators.inference import PairComparisons, compare_pairs, is_rounding
from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.inference.serial import block_bootstrap, block_length, long_run_covariance, newey_west_lag
from icl_estimators.notes import Code, Note, join

__all__ = ["LossGroup", "difference_metrics"]

Array = NDArray[np.float64]

METRIC = "log_loss_nats"
LAG_0, BOOTSTRAP = "log_loss_nats_lag_0", "log_loss_nats_block_bootstrap"
difference_metrics = (METRIC, LAG_0, BOOTSTRAP)
"""What a difference of log losses is called: its first row, and two more of one long series."""


@dataclass(frozen=True, eq=False)
class LossGroup:
    """Rows that may be compared, and how.

    Attributes
    ----------
    rows : list of ObservedRow
    found : ObservedLosses
        Which independent sequence each prediction is of.
    losses : ndarray of float64, shape (n, N)
        Prediction by row.
    why_not : str
        Why no difference has an interval; empty if they have.
    """

    rows: list[ObservedRow]
    found: ObservedLosses
    losses: Array
    why_not: str

    @classmethod
    def of(cls, found: ObservedLosses, rows: list[ObservedRow], window: int) -> LossGroup:
        losses = np.stack([row.losses for row in rows], axis=1)
        count = len(losses)
        why_not: str = ""
        if rows[0].history.kind == "pooled":
            why_not = Note(Code.CARRIED_OVER)
        elif len(found.predictions) == 1:
            if count < 2:
                why_not = Note(Code.ONE_PREDICTION)
            elif not rows[0].sliding:
                why_not = Note(Code.GROWING_HISTORY)
            elif 2 * (window - 1) > count:
                growing = Note(Code.GROWING_HISTORY)
                why_not = Note(Code.WINDOW_FILLS_LATE, why=growing, first=window, count=count)
        return cls(rows, found, losses, why_not)

    @property
    def clustered(self) -> bool:
        return len(self.found.predictions) > 1

    @property
    def degrees_of_freedom(self) -> float:
        return float(max((len(self.found.predictions) if self.clustered else len(self.losses)) - 1, 1))

    @property
    def method(self) -> str:
        """The method of a difference's standard error, for the notes."""
        if self.clustered:
            clustered = Note(Code.CLUSTERED, sequences=len(self.found.predictions))
            if self.rows[0].history.kind == "folds":
                return join(clustered, Note(Code.FITTED_TO_OTHER_FOLDS))
            return clustered
        return Note(Code.DIEBOLD_MARIANO, lag=newey_west_lag(len(self.losses)))

    def covariance(self, values: Array) -> Array:
        """Return the covariance of the means of finite columns, shape (n, N) → (N, N)."""
        if not self.clustered:
            return long_run_covariance(values, newey_west_lag(len(values)))
        counts = self.found.predictions
        residuals = self.found.sums(values) - counts[:, None] * values.mean(axis=0)
        count = len(counts)
        return np.asarray(count / (count - 1.0) * (residuals.T @ residuals) / float(len(values)) ** 2)

    def variance(self, values: Array) -> float:
        """Return the variance of the mean of a value for each prediction, shape (n,)."""
        return float(self.covariance(values[:, None])[0, 0])

    def compared(self, column: int, place: int, level: float) -> tuple[Cell, ...]:
        """Return difference, standard error, interval and note of a row against another, by the first method."""
        if column == place:
            return (0.0, 0.0, 0.0, 0.0, "")
        _, difference, se, low, high, *_, note = next(iter(self._difference(column, place, level)))
        return (difference, se, low, high, note)

    def why_undefined(self, *columns: int) -> str:
        """Say which losses of rows are infinite; nothing if none is."""
        found = ((self.rows[column].name, int(np.isinf(self.losses[:, column]).sum())) for column in columns)
        total = len(self.losses)
        why = tuple(
            Note(Code.SIDE, name=name, why=Note(Code.INFINITE_IN_PREDICTIONS, count=count, total=total))
            for name, count in found
            if count
        )
        return Note(Code.NO_DIFFERENCE, sides=why) if why else ""

    def pair_rows(self, level: float) -> Iterable[tuple[Cell, ...]]:
        if len(self.rows) < 2:
            return []
        names = [row.name for row in self.rows]
        return pair_rows(names, METRIC, self.losses.mean(axis=0), self._pairs(level))

    def _pairs(self, level: float) -> PairComparisons:
        size = len(self.rows)
        first, second = np.triu_indices(size, 1)
        difference, se = np.full(len(first), np.nan), np.full(len(first), np.nan)
        notes = []
        finite = np.isfinite(self.losses).all(axis=0)
        covariance = np.full((size, size), np.nan)
        if not self.why_not and finite.any():
            covariance[np.ix_(finite, finite)] = self.covariance(self.losses[:, finite])
        for pair, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            why = self.why_undefined(i, j)
            if not why:
                values = self.losses[:, i] - self.losses[:, j]
                difference[pair] = values.mean()
                if not values.any():
                    se[pair] = 0.0  # twins, with or without a law for their difference
                elif self.why_not:
                    why = self.why_not
                else:
                    se[pair] = np.sqrt(self.covariance(values[:, None])[0, 0])
                    why = self.method
            notes.append(why)
        return compare_pairs(
            self.losses.mean(axis=0),
            covariance,
            degrees_of_freedom=self.degrees_of_freedom,
            level=level,
            difference=difference,
            se=se,
            notes=notes,
        )

    def difference_rows(self, reference: str, level: float) -> Iterable[tuple[Cell, ...]]:
        places = [place for place, row in enumerate(self.rows) if row.estimator == reference]
        if not places:
            missing = Note(Code.NO_WHOLE_HISTORY, reference=reference)
            for row in self.rows:
                yield (row.name, reference, "mean", METRIC, *(np.nan,) * 7, missing)
            return
        place = places[0]
        for column, row in enumerate(self.rows):
            if column != place:
                head = (row.name, self.rows[place].name, "mean")
                yield from ((*head, *cells) for cells in self._difference(column, place, level))

    def _difference(self, column: int, place: int, level: float) -> Iterable[tuple[Cell, ...]]:
        nothing = (np.nan,) * 3
        why = self.why_undefined(column, place)
        if why:
            yield (METRIC, np.nan, *nothing, *nothing, why)
            return
        both = self.losses[:, [column, place]]
        values = np.column_stack([both, both[:, 0] - both[:, 1]])
        difference = float(values[:, 2].mean())
        if not values[:, 2].any():
            yield (METRIC, 0.0, 0.0, 0.0, 0.0, 1.0, np.inf, np.nan, Note(Code.IDENTICAL))
            return
        if self.why_not:
            yield (METRIC, difference, *nothing, *nothing, self.why_not)
            return
        freedom = self.degrees_of_freedom
        margin = t_quantile(0.5 + 0.5 * level, freedom)
        ways = [(METRIC, self.covariance(values), Note(Code.WITH_T, method=self.method, freedom=freedom))]
        if not self.clustered:
            classical = long_run_covariance(values, 0)
            ways.append((LAG_0, classical, Note(Code.WITH_T, method=Note(Code.LAG_0), freedom=freedom)))
        for metric, covariance, note in ways:
            se = float(np.sqrt(covariance[2, 2]))
            low, high = difference - margin * se, difference + margin * se
            yield (metric, difference, se, low, high, *_gains(covariance), np.nan, note)
        if not self.clustered:
            errors = block_bootstrap(values)
            low, high = difference - np.quantile(errors[:, 2], [0.5 + 0.5 * level, 0.5 - 0.5 * level])
            covariance = np.cov(errors.T)
            note = Note(Code.BLOCK_BOOTSTRAP, draws=len(errors), block=block_length(len(values)))
            se = float(np.sqrt(covariance[2, 2]))
            yield (BOOTSTRAP, difference, se, float(low), float(high), *_gains(covariance), np.nan, note)


def _gains(covariance: Array) -> tuple[float, float]:
    """Return the correlation of a and b, and (Var a + Var b)/Var(a − b), from the covariance of (a, b, a − b)."""
    a, b, apart = covariance.diagonal()
    spread = np.sqrt(a * b)
    correlation = np.nan if is_rounding(spread) else float(np.clip(covariance[0, 1] / spread, -1.0, 1.0))
    return correlation, float((a + b) / apart) if apart > 0 else np.inf
