"""Paired differences between estimators on the same draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference.intervals.mean import not_finite, t_quantile
from icl_estimators.inference.moments import PairMoments
from icl_estimators.inference.pairwise import is_rounding
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError, probability_level

__all__ = ["PairedDifferences", "paired_differences", "rao_blackwell_factors"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PairedDifferences:
    """Mean of a − b and the gain from pairing, for each of D coordinates.

    Attributes
    ----------
    difference, se, low, high : ndarray of float64, shape (D,)
        Mean difference, its standard error and t_{G−1} interval.
    correlation : ndarray of float64, shape (D,)
        Of the chains' values of a and b; NaN where one of them does not vary.
    variance_reduction : ndarray of float64, shape (D,)
        (Var a + Var b)/Var(a − b): how many times more chains two independent studies would need. inf where the
        difference does not vary.
    count : int
        G.
    notes : tuple of str
        Why a field is NaN.
    """

    difference: Array
    se: Array
    low: Array
    high: Array
    correlation: Array
    variance_reduction: Array
    count: int
    notes: tuple[str, ...]


def paired_differences(pair: PairMoments, *, level: float = 0.95) -> PairedDifferences:
    """Return the mean differences a − b with intervals, correlation and variance reduction.

    Parameters
    ----------
    pair : PairMoments
        Of one value per chain of the estimator (a) and of the reference (b).
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    PairedDifferences
        All NaN, with the reason, where a or b is infinite or undefined in a chain.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1.

    Examples
    --------
    >>> result = paired_differences(PairMoments.of([[1.0], [2.0], [4.0]], [[0.0], [2.0], [3.0]]))
    >>> round(float(result.difference[0]), 4), round(float(result.variance_reduction[0]), 4)
    (0.6667, 14.0)
    """
    level = probability_level(level)
    difference, se = pair.difference.mean, pair.difference.standard_error
    margin = se * t_quantile(0.5 + 0.5 * level, max(pair.count - 1, 1))
    apart = pair.first.variance + pair.second.variance
    apart = np.where(pair.difference.finite, apart, np.nan)
    spread = np.sqrt(pair.first.variance * pair.second.variance)
    for side in (pair.first, pair.second):  # equal values may differ from each other by rounding
        with np.errstate(invalid="ignore"):
            spread = np.where(np.sqrt(side.variance) > 1e-13 * np.abs(side.mean), spread, 0.0)
    correlation = np.full(difference.shape, np.nan)
    np.divide(pair.covariance, spread, out=correlation, where=spread > 0)
    identical = is_rounding(difference, pair.second.mean) & is_rounding(se, pair.second.mean)
    notes: list[str] = []
    for column, finite in enumerate(pair.difference.finite):
        if not finite:
            notes.append(_why_undefined(pair, column))
        elif pair.count < 2:
            notes.append(Note(Code.TOO_FEW_CHAINS))
        elif not spread[column] > 0:
            notes.append(Note(Code.NO_CORRELATION))
        else:
            notes.append(Note(Code.IDENTICAL) if identical[column] else "")
    return PairedDifferences(
        difference,
        se,
        difference - margin,
        difference + margin,
        np.clip(correlation, -1.0, 1.0),
        _quotient(apart, pair.difference.variance),
        pair.count,
        tuple(notes),
    )


def rao_blackwell_factors(kl: PairMoments, regret: PairMoments) -> Array:
    """Return Var(paired KL difference) / Var(paired regret difference) of chain means, shape (D,).

    Both estimate the same difference of risks; the second has the truth integrated out. The factor is how many
    times fewer chains it needs. inf where the regret difference does not vary, NaN for 0/0 and where a variance
    is undefined.

    Parameters
    ----------
    kl, regret : PairMoments
        The same estimator and reference on the same chains: realised KL, and KL from the Bayes predictive.

    Raises
    ------
    InputError
        If the two differ in chains or coordinates.

    Examples
    --------
    >>> kl = PairMoments.of([[1.0], [3.0]], [[0.0], [0.0]])
    >>> regret = PairMoments.of([[1.5], [2.5]], [[0.0], [0.0]])
    >>> rao_blackwell_factors(kl, regret).tolist()
    [4.0]
    """
    if kl.count != regret.count or kl.difference.size != regret.difference.size:
        raise InputError("the two pairs of a Rao-Blackwell factor must come from the same chains and coordinates")
    return _quotient(kl.difference.variance, regret.difference.variance)


def _quotient(numerator: Array, denominator: Array) -> Array:
    """Return numerator/denominator of variances: positive/0 is inf, 0/0 and NaN are NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator / denominator)


def _why_undefined(pair: PairMoments, column: int) -> str:
    """Say which side of a difference is not finite."""
    sides = (("the estimator", pair.first), ("the reference", pair.second))
    whys = tuple(Note(Code.SIDE, name=name, why=why) for name, moments in sides if (why := not_finite(moments, column)))
    return Note(Code.NO_DIFFERENCE, sides=whys)
