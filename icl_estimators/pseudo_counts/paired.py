"""The difference between the pseudo-counts of two estimators on the same prefixes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference.moments import Moments
from icl_estimators.notes import Code, Note
from icl_estimators.pseudo_counts.count_statistics import CountStatistics, PseudoCountMoments
from icl_estimators.pseudo_counts.fit import PseudoCount, ScoreSpread, fit_pseudo_count
from icl_estimators.pseudo_counts.linear_forms import LinearForms
from icl_estimators.validation import InputError, probability_level

__all__ = ["PairedPseudoCountMoments", "PseudoCountDifference", "pseudo_count_difference"]


@dataclass(frozen=True, eq=False)
class PairedPseudoCountMoments:
    """Moments of two estimators' statistics side by side, over the chains with a prefix in the group.

    Attributes
    ----------
    joint : Moments
        With covariances; the first estimator's coordinates, then the second's.
    visits : ndarray of int64, shape (V,)
    n_states : int
        K.
    """

    joint: Moments
    visits: NDArray[np.int64]
    n_states: int

    @classmethod
    def of(cls, first: CountStatistics, second: CountStatistics) -> PairedPseudoCountMoments | None:
        """Return the moments of the chains that contribute; None if none does.

        Raises
        ------
        InputError
            If the two are not of the same prefixes.
        """
        if not np.array_equal(first.prefixes, second.prefixes):
            raise InputError("paired statistics must be of the same prefixes")
        contributes = first.prefixes.any(axis=1)
        if not contributes.any():
            return None
        rows = np.concatenate([first.rows, second.rows], axis=1)[contributes]
        return cls(Moments.of(rows), first.visits, first.n_states)

    def merge(self, other: PairedPseudoCountMoments) -> PairedPseudoCountMoments:
        """Return the moments of both groups of chains together.

        Raises
        ------
        InputError
            If they are of different groups of prefixes.
        """
        if self.n_states != other.n_states or not np.array_equal(self.visits, other.visits):
            raise InputError("statistics of different groups of prefixes cannot be merged")
        return PairedPseudoCountMoments(self.joint.merge(other.joint), self.visits, self.n_states)

    @cached_property
    def first(self) -> PseudoCountMoments:
        """The first estimator's moments."""
        return PseudoCountMoments(self.joint.select(slice(0, self.joint.size // 2)), self.visits, self.n_states)

    @cached_property
    def second(self) -> PseudoCountMoments:
        """The second estimator's moments."""
        return PseudoCountMoments(self.joint.select(slice(self.joint.size // 2, None)), self.visits, self.n_states)


@dataclass(frozen=True, slots=True)
class PseudoCountDifference:
    """Two pseudo-counts and how far apart they are.

    Attributes
    ----------
    first, second : PseudoCount
    difference : float
        log α̂ of the first less log α̂ of the second; NaN with the reason where one of them is not a positive number.
    se, low, high : float
        Paired and clustered on chains, t_{G−1}.
    note : str
    """

    first: PseudoCount
    second: PseudoCount
    difference: float
    se: float
    low: float
    high: float
    note: str


def pseudo_count_difference(pair: PairedPseudoCountMoments, *, level: float = 0.95) -> PseudoCountDifference:
    """Return log α̂ of one estimator less log α̂ of another, on the same prefixes.

    Parameters
    ----------
    pair : PairedPseudoCountMoments
    level : float
        Confidence level in (0, 1).

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1.

    Notes
    -----
    θ̂ − θ ≈ −Σ_g ψ_g/A for each (see :func:`~icl_estimators.pseudo_counts.fit.fit_pseudo_count`), so the
    variance of the difference is G/(G − 1)·Σ_g (ψ_g/A − ψ'_g/A')².

    Examples
    --------
    >>> from icl_estimators.pseudo_counts import count_statistics
    >>> counts = np.array([[[[0, 0], [1, 0], [1, 1], [2, 1]]], [[[0, 0], [0, 1], [0, 2], [1, 2]]]])
    >>> rules = [(counts + a) / (counts.sum(axis=-1, keepdims=True) + 2.0 * a) for a in (0.5, 2.0)]
    >>> pair = PairedPseudoCountMoments.of(*(count_statistics(rule, counts, "overall")[0] for rule in rules))
    >>> round(pseudo_count_difference(pair).difference, 6)  # log ¼
    -1.386294
    """
    level = probability_level(level)
    first, second = (fit_pseudo_count(moments, level=level) for moments in (pair.first, pair.second))
    for which, fit in (("first", first), ("second", second)):
        if not fit.identified or fit.boundary:
            note = Note(Code.NO_PSEUDO_COUNT_DIFFERENCE, which=which, value=fit.estimate)
            return PseudoCountDifference(first, second, np.nan, np.nan, np.nan, np.nan, note)
    ours = ScoreSpread(pair.first, level).influence(first.estimate)
    theirs = ScoreSpread(pair.second, level).influence(second.estimate)
    both = LinearForms(pair.joint, level)
    se = both.standard_error(np.concatenate([ours, -theirs]))
    difference = float(np.log(first.estimate / second.estimate))
    margin = both.t * se
    few = Note(Code.TOO_FEW_CHAINS) if both.n_chains < 2 else ""
    return PseudoCountDifference(first, second, difference, se, difference - margin, difference + margin, few)
