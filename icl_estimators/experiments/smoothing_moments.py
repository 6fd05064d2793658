"""What remains of many predictions for fits of a pseudo-count, in memory that does not grow with the chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference import (
    GROUPINGS,
    CountStatistics,
    Grouping,
    Laws,
    Moments,
    PrefixGroups,
    PseudoCountMoments,
    RatioMoments,
    fitted_values,
    prediction_sums,
    unseen_sums,
)
from icl_estimators.validation import InputError

__all__ = ["PANEL_VISITS", "SmoothingMoments", "SmoothingPrefixes", "SmoothingSums", "merge_halves"]

Array = NDArray[np.float64]
Halves = tuple[PseudoCountMoments | None, PseudoCountMoments | None]

_PART_FIELDS = 7

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
    """

    def __init__(
        self,
        counts: NDArray[np.int32],
        groupings: Sequence[Grouping],
        panels: Sequence[int] = (),
        *,
        every_up_to: int = 100,
    ) -> None:
        length = counts.shape[2]
        self._counts, self._panels = counts, panels
        self._groups = {
            by: PrefixGroups(counts, by, fitted_values(by, length, every_up_to=every_up_to)) for by in groupings
        }

    def sums(self, predictions: Array) -> SmoothingSums:
        """Sum one estimator's predictions, shape (R, S, T, K)."""
        laws = Laws.of(predictions)
        return SmoothingSums(
            {
                (by, value): found
                for by, groups in self._groups.items()
                for value, found in groups.statistics(laws).items()
            },
            unseen_sums(laws, self._counts),
            {visits: prediction_sums(laws, self._counts, visits) for visits in self._panels},
        )


@dataclass(frozen=True, eq=False)
class SmoothingMoments:
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

    def merge(self, other: SmoothingMoments) -> SmoothingMoments:
        """Return the moments of both groups of chains together; `other`'s come after."""
        return SmoothingMoments(
            {
                key: (_merge(first, other.halves[key][0]), _merge(second, other.halves[key][1]))
                for key, (first, second) in self.halves.items()
            },
            self.unseen.merge(other.unseen),
            {visits: found.merge(other.panels[visits]) for visits, found in self.panels.items()},
        )

    def to_arrays(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Return the fields as a few plain arrays, for ``np.savez`` without pickle."""
        parts: list[list[int]] = []
        visits: list[NDArray[np.int64]] = []
        numbers: list[Array] = []
        for (by, value), halves in self.halves.items():
            for half, found in enumerate(halves):
                if found is not None:
                    key = (GROUPINGS.index(by), value, half)
                    parts.append([*key, found.n_states, found.n_chains, found.moments.size, len(found.visits)])
                    visits.append(found.visits)
                    numbers += [found.moments.centre, found.moments.scatter.ravel()]
        keys = [[GROUPINGS.index(by), value] for by, value in self.halves]
        arrays: dict[str, NDArray[np.float64] | NDArray[np.int64]] = {
            "keys": np.array(keys, dtype=np.int64).reshape(-1, 2),
            "parts": np.array(parts, dtype=np.int64).reshape(-1, _PART_FIELDS),
            "visits": np.concatenate([np.empty(0, np.int64), *visits]),
            "numbers": np.concatenate([np.empty(0), *numbers]),
            "panels": np.array(list(self.panels), dtype=np.int64),
        }
        for name, ratio in [("unseen", self.unseen), *((f"panel{v}", panel) for v, panel in self.panels.items())]:
            arrays |= {f"{name}.{part}": array for part, array in ratio.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.float64] | NDArray[np.int64]]) -> SmoothingMoments:
        """Return the moments that :meth:`to_arrays` took apart, bit for bit.

        Raises
        ------
        InputError
            If a field is missing, or shapes do not fit together.
        """
        missing = [name for name in ("keys", "parts", "visits", "numbers", "panels") if name not in arrays]
        if missing:
            raise InputError(f"stored smoothing moments lack {', '.join(missing)}")
        numbers, visits = np.asarray(arrays["numbers"], np.float64), np.asarray(arrays["visits"], np.int64)
        halves: dict[tuple[Grouping, int], list[PseudoCountMoments | None]] = {
            (GROUPINGS[by], value): [None, None] for by, value in arrays["keys"].tolist()
        }
        at = seen = 0
        for by, value, half, n_states, n_chains, size, n_visits in arrays["parts"].tolist():
            centre, scatter = numbers[at : at + size], numbers[at + size : at + size + size * size]
            of_part = visits[seen : seen + n_visits]
            at, seen = at + size + size * size, seen + n_visits
            if len(scatter) != size * size or len(of_part) != n_visits:
                raise InputError("stored smoothing moments do not fit together: there are too few numbers")
            zero = np.zeros(size, dtype=np.int64)
            moments = Moments(n_chains, centre.copy(), scatter.reshape(size, size).copy(), zero, zero.copy())
            halves[GROUPINGS[by], value][half] = PseudoCountMoments(moments, of_part.copy(), n_states)

        def ratio(name: str) -> RatioMoments:
            start = f"{name}."
            return RatioMoments.from_arrays(
                {key[len(start) :]: array for key, array in arrays.items() if key.startswith(start)}
            )

        return cls(
            {key: (first, second) for key, (first, second) in halves.items()},
            ratio("unseen"),
            {visits: ratio(f"panel{visits}") for visits in arrays["panels"].tolist()},
        )


def merge_halves(halves: Halves) -> PseudoCountMoments | None:
    """Return the moments of all chains; None where none has such a prefix."""
    return _merge(*halves)


def _merge(first: PseudoCountMoments | None, second: PseudoCountMoments | None) -> PseudoCountMoments | None:
    if first is None or second is None:
        return second if first is None else first
    return first.merge(second)
