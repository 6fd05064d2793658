"""Pointwise intervals from moments; the chain is the independent unit.

The standard error of a mean over chains is the standard deviation of the chains' values over √G: clustered,
however many sequences a chain has. What is undefined is NaN and says why; an infinite mean has no interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from icl_estimators.inference.moments import Moments
from icl_estimators.notes import Code, Note
from icl_estimators.validation import positive_real, probability_level

__all__ = ["Intervals", "mean_intervals", "moment_notes", "not_finite", "required_chains", "t_quantile"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Estimates with pointwise confidence intervals, one for each of D coordinates.

    Attributes
    ----------
    estimate : ndarray of float64, shape (D,)
        inf where the mean is infinite, NaN where it is undefined.
    se : ndarray of float64, shape (D,)
        Standard error of the *estimate* (not of one chain).
    low, high : ndarray of float64, shape (D,)
    count : int
        G, chains behind the estimate.
    notes : tuple of str
        Why a field is NaN or an estimate infinite, and anything else a reader must know; otherwise empty.
    """

    estimate: Array
    se: Array
    low: Array
    high: Array
    count: int
    notes: tuple[str, ...]


def t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the quantile of Student's t; of the normal law at infinite degrees of freedom.

    Examples
    --------
    >>> round(t_quantile(0.975, 10), 6), round(t_quantile(0.975, np.inf), 6)
    (2.228139, 1.959964)
    """
    return float(stdtrit(degrees_of_freedom, probability))


def moment_notes(moments: Moments, undefined: str = "") -> tuple[str, ...]:
    """Say, for each coordinate, why its mean or standard error is not a finite number.

    Parameters
    ----------
    moments : Moments
    undefined : str
        Why values are NaN, if the caller knows.

    Examples
    --------
    >>> moment_notes(Moments.of([[1.0, np.inf], [2.0, 3.0]]))
    ('', 'infinite in 1 of 2 chains')
    """
    few = Note(Code.TOO_FEW_CHAINS) if moments.count < 2 else ""
    return tuple(not_finite(moments, column, undefined) or few for column in range(moments.size))


def not_finite(moments: Moments, column: int, undefined: str = "") -> str:
    """Say why the mean of one coordinate is not finite; empty if it is.

    Parameters
    ----------
    moments : Moments
    column : int
    undefined : str
        Why values are NaN, if the caller knows.

    Examples
    --------
    >>> not_finite(Moments.of([[np.inf], [np.nan], [3.0]]), 0)
    'undefined in 1 of 3 chains'
    """
    missing, infinite, total = int(moments.n_undefined[column]), int(moments.n_infinite[column]), moments.count
    if missing and undefined:
        return Note(Code.UNDEFINED_BECAUSE, count=missing, total=total, why=undefined)
    if missing:
        return Note(Code.UNDEFINED_IN_CHAINS, count=missing, total=total)
    return Note(Code.INFINITE_IN_CHAINS, count=infinite, total=total) if infinite else ""


def mean_intervals(moments: Moments, *, level: float = 0.95, undefined: str = "") -> Intervals:
    """Return x̄ ± t_{G−1}·s/√G for each coordinate.

    Parameters
    ----------
    moments : Moments
        Of one value per chain, D coordinates.
    level : float
        Confidence level in (0, 1).
    undefined : str
        Why values are NaN, for the notes.

    Returns
    -------
    Intervals
        Zero width where all chains agree; NaN with the reason from fewer than 2 chains.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1.

    Examples
    --------
    >>> intervals = mean_intervals(Moments.of([[2.0], [5.0], [8.0]]))
    >>> round(float(intervals.se[0]), 7)
    1.7320508
    """
    level = probability_level(level)
    estimate, se = moments.mean, moments.standard_error
    margin = se * t_quantile(0.5 + 0.5 * level, max(moments.count - 1, 1))
    centre = np.where(np.isfinite(estimate), estimate, np.nan)
    return Intervals(estimate, se, centre - margin, centre + margin, moments.count, moment_notes(moments, undefined))


def required_chains(moments: Moments, target_se: float) -> Array:
    """Return how many chains bring each standard error down to `target_se`: ⌈Var/target²⌉, at least 2.

    Parameters
    ----------
    moments : Moments
        Of a pilot study with the same number of sequences per chain.
    target_se : float
        In the unit of the values.

    Returns
    -------
    ndarray of float64, shape (D,)
        Whole numbers; NaN where the variance is undefined.

    Raises
    ------
    InputError
        If `target_se` is not a finite number above 0.

    Examples
    --------
    >>> required_chains(Moments.of([[2.0], [5.0], [8.0]]), 0.1).tolist()
    [900.0]
    """
    target = positive_real(target_se, "target_se")
    needed = moments.variance / target**2
    # A quotient that is whole except for rounding must not be pushed to the next chain.
    return np.maximum(np.ceil(needed * (1.0 - 1e-12)), 2.0)
