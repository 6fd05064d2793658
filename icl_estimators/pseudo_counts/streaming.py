"""Streaming statistics for fits of a pseudo-count, in memory that does not grow with the chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference import RatioMoments
from icl_estimators.inference.trees import Summary
from icl_estimators.pseudo_counts.count_statistics import (
    CountStatistics,
    Grouping,
    Predictions,
    PrefixGroups,
    PseudoCountMoments,
    fitted_values,
    prediction_sums,
    unseen_sums,
)

__all__ = ["PANEL_VISITS", "SmoothingMoments", "SmoothingPrefixes", "SmoothingSums"]

Array = NDArray[np.float64]
Halves = tuple[PseudoCountMoments | None, PseudoCountMoments | None]

PANEL_VISITS = (1, 2, 5, 10, 20, 40)
"""Visits at which predictions are kept by count, for a look at the curve itself."""


@dataclass(frozen=True, eq=False)
class SmoothingSums:
    """Sums of one estimator's predictions, one row for each of R chains.

    Attributes
    ----------
    statistics : dict of (grouping, value) to CountStatistics
    unseen : pair of ndarray, shape (R,)
        Σ KL(p̂ ‖ uniform) over prefixes with n_v = 0, and their number.
    panels : dict of int to pair of ndarray, shape (R, n_v + 1)
        By visits: Σ p̂_w by n_vw, and of how many.
    """

    statistics: dict[tuple[Grouping, int], CountStatistics]
    unseen: tuple[Array, Array]
    panels: dict[int, tuple[Array, Array]]

    @staticmethod
    def average(runs: Sequence[SmoothingSums]) -> SmoothingSums:
        """Average over training runs on the same sequences: the sums of their pooled objective, over J."""
        first = runs[0]
        return SmoothingSums(
            {key: CountStatistics.average([run.statistics[key] for run in runs]) for key in first.statistics},
            (np.mean([run.unseen[0] for run in runs], axis=0), first.unseen[1]),
            {
                visits: (np.mean([run.panels[visits][0] for run in runs], axis=0), number)
                for visits, (_, number) in first.panels.items()
            },
        )

    def plus(self, other: SmoothingSums) -> SmoothingSums:
        """Return the sums over the prefixes of both, of the same R chains."""
        return SmoothingSums(
            {key: found.plus(other.statistics[key]) for key, found in self.statistics.items()},
            (self.unseen[0] + other.unseen[0], self.unseen[1] + other.unseen[1]),
            {
                visits: (total + other.panels[visits][0], number + other.panels[visits][1])
                for visits, (total, number) in self.panels.items()
            },
        )

    def moments(self, units: Sequence[slice], n_first: int) -> list[SmoothingMoments]:
        """Return the moments over each unit of chains.

        Parameters
        ----------
        units : sequence of slice
            Rows, with start and stop.
        n_first : int
            How many rows, from the first of all on, are of the half of the study that held-out fits are made to.
        """
        middles = [min(max(n_first, unit.start), unit.stop) for unit in units]
        halves = [(slice(u.start, middle), slice(middle, u.stop)) for u, middle in zip(units, middles, strict=True)]
        parts = [part for pair in halves for part in pair]
        found = {key: PseudoCountMoments.of_parts(group, parts) for key, group in self.statistics.items()}
        return [
            SmoothingMoments(
                {key: (group[2 * i], group[2 * i + 1]) for key, group in found.items()},
                RatioMoments.of(*(part[unit, None] for part in self.unseen)),
                {visits: RatioMoments.of(total[unit], times[unit]) for visits, (total, times) in self.panels.items()},
            )
            for i, unit in enumerate(units)
        ]


class SmoothingPrefixes:
    """The prefixes of some sequences, sorted once into groups for every estimator.

    Parameters
    ----------
    counts : ndarray of int, shape (R, S, T, K)
        n_vw.
    groupings : sequence of {"overall", "context-length", "visits"}
    panels : sequence of int
        Visits at which predictions are kept by count.
    every_up_to : int
        Lengths and visits up to which each has a group of its own
        (:func:`icl_estimators.inference.fitted_values`).
    counted : ndarray of bool, shape (R, S, T), optional
        Which prefixes count among those with n_v = 0; by default all. Elsewhere counts must be 0, so that they are in
        no group.
    """

    def __init__(
        self,
        counts: NDArray[np.int32],
        groupings: Sequence[Grouping],
        panels: Sequence[int] = (),
        *,
        every_up_to: int = 100,
        counted: NDArray[np.bool_] | None = None,
    ) -> None:
        self._counted = counted
        length = counts.shape[2]
        self._counts, self._panels = counts, panels
        self._groups = {
            by: PrefixGroups(counts, by, fitted_values(by, length, every_up_to=every_up_to)) for by in groupings
        }

    def sums(self, predictions: Array) -> SmoothingSums:
        """Sum one estimator's predictions, shape (R, S, T, K)."""
        normalised = Predictions.of(predictions)
        return SmoothingSums(
            {
                (by, value): found
                for by, groups in self._groups.items()
                for value, found in groups.statistics(normalised).items()
            },
            unseen_sums(normalised, self._counts, self._counted),
            {visits: prediction_sums(normalised, self._counts, visits) for visits in self._panels},
        )


@dataclass(frozen=True, eq=False)
class SmoothingMoments(Summary):
    """Moments over chains of :class:`SmoothingSums`.

    Attributes
    ----------
    halves : dict of (grouping, value) to a pair of PseudoCountMoments or None
        Of the first half of the study's chains and of the second; None where none has such a prefix.
    unseen : RatioMoments
        KL(p̂ ‖ uniform) where n_v = 0.
    panels : dict of int to RatioMoments
        By visits: the mean prediction by n_vw.
    """

    halves: dict[tuple[Grouping, int], Halves]
    unseen: RatioMoments
    panels: dict[int, RatioMoments]
