"""All pairs of estimators on the same draws, with one statement about all of them at once.

Each pair's difference has its own standard error; the limits are difference ± c·se, with c the quantile of
max |t| over the pairs under the estimated correlation of the differences, t multivariate Student (Hothorn, Bretz &
Westfall 2008: the all-pairwise, or Tukey, contrasts). So the best of many estimators, and those that cannot be
distinguished from it, may be read from the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from icl_estimators.inference.bands import DRAWS, largest_t
from icl_estimators.inference.intervals.mean import not_finite, t_quantile
from icl_estimators.inference.moments import Moments
from icl_estimators.inference.trees import Summary
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError, probability_level

__all__ = ["PairComparisons", "PairwiseMoments", "compare_pairs", "is_rounding", "pairs_of_moments"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseMoments(Summary):
    """Moments of N values of the same units, and of all their differences.

    The differences are kept as quantities of their own, so that twins differ by exactly 0 and near twins keep their
    precision. Of the values covariances are kept: N² numbers, from which the correlation of any two differences
    follows.

    Attributes
    ----------
    values : Moments
        N coordinates, with covariances.
    differences : Moments
        x_i − x_j for i < j, row by row of the upper triangle: N(N − 1)/2 coordinates, variances only. Undefined
        where one of the two is not finite.

    Examples
    --------
    >>> moments = PairwiseMoments.of([[1.0, 0.0, 3.0], [2.0, 2.0, 3.0]])
    >>> moments.differences.mean.tolist()
    [0.5, -1.5, -2.0]
    """

    values: Moments
    differences: Moments

    @classmethod
    def of(cls, values: ArrayLike) -> PairwiseMoments:
        """Return the moments of `values`, shape (G, N).

        Raises
        ------
        InputError
            If there are fewer than two columns, or for what :meth:`Moments.of` raises.
        """
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] < 2:
            raise InputError(f"pairs need values of shape (G, N) with N at least 2, not {array.shape}")
        first, second = np.triu_indices(array.shape[1], 1)
        finite = np.isfinite(array)
        differences = np.full((len(array), len(first)), np.nan)
        np.subtract(array[:, first], array[:, second], out=differences, where=finite[:, first] & finite[:, second])
        return cls(Moments.of(array), Moments.of(differences, full=False))


@dataclass(frozen=True, slots=True, eq=False)
class PairComparisons:
    """All pairs i < j of N values, row by row of the upper triangle; P = N(N − 1)/2 of them.

    Attributes
    ----------
    first, second : ndarray of int64, shape (P,)
        i and j.
    difference, se : ndarray of float64, shape (P,)
        Mean of x_i − x_j and its standard error.
    low, high : ndarray of float64, shape (P,)
        Limits that hold for all pairs at once.
    p : ndarray of float64, shape (P,)
        The p-value of a difference of 0, adjusted for all pairs; 1 for identical pairs.
    identical : ndarray of bool, shape (P,)
        Pairs that differ only by rounding.
    notes : tuple of str
        Why a field is NaN, or that a pair is identical.
    critical : float
        c; NaN if no difference varies.
    """

    first: Indices
    second: Indices
    difference: Array
    se: Array
    low: Array
    high: Array
    p: Array
    identical: NDArray[np.bool_]
    notes: tuple[str, ...]
    critical: float


def is_rounding(size: ArrayLike, scale: ArrayLike = 1.0) -> NDArray[np.bool_]:
    """Whether numbers are 0 up to rounding, beside numbers of size `scale` (at least 1: nats are).

    Examples
    --------
    >>> is_rounding([0.0, 1e-15, 1e-9]).tolist()
    [True, True, False]
    """
    return np.asarray(np.abs(size) <= _ROUNDING * np.maximum(np.abs(scale), 1.0))


def compare_pairs(
    means: Array,
    covariance: Array,
    *,
    degrees_of_freedom: float,
    level: float = 0.95,
    difference: Array | None = None,
    se: Array | None = None,
    notes: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> PairComparisons:
    """Compare all pairs of N means that were estimated together.

    Parameters
    ----------
    means : ndarray of float64, shape (N,)
    covariance : ndarray of float64, shape (N, N)
        Of the means (or of one unit: only the correlations of differences count if `se` is given); NaN in the rows
        and columns of means that are not finite or have no standard error.
    degrees_of_freedom : float
        Of the standard errors.
    level : float
        Of all limits at once, in (0, 1).
    difference, se : ndarray of float64, shape (P,), optional
        Of x_i − x_j, i < j; by default what follows from `means` and `covariance`.
    notes : sequence of str, optional
        Why a pair's difference or standard error is NaN.
    draws, seed : int
        As for :func:`icl_estimators.inference.sup_t_quantile`.

    Returns
    -------
    PairComparisons

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1, the shapes do not fit, or there are fewer than two means.

    Notes
    -----
    p is the share of the draws of max |t| that reach |difference|/se, the observed value counted as one of them. As
    c it lies between the pointwise and the Bonferroni value, whatever the correlation. The smallest p that `draws`
    can tell is 1/(draws + 1); where Bonferroni's p is smaller still, it is that.

    Examples
    --------
    >>> pairs = compare_pairs(np.array([0.0, 0.1, 1.0]), np.eye(3) * 0.02, degrees_of_freedom=50.0)
    >>> np.round(pairs.critical, 1).item(), (pairs.p < 0.05).tolist()
    (2.4, [False, True, True])
    """
    level = probability_level(level)
    size = len(means)
    if size < 2 or covariance.shape != (size, size):
        raise InputError(f"{size} means and a covariance of shape {covariance.shape} do not give pairs")
    first, second = np.triu_indices(size, 1)
    with np.errstate(invalid="ignore"):
        if difference is None:
            difference = np.where(
                np.isfinite(means[first]) & np.isfinite(means[second]), means[first] - means[second], np.nan
            )
        if se is None:
            diagonal = covariance.diagonal()
            spread = diagonal[first] + diagonal[second] - 2.0 * covariance[first, second]
            se = np.sqrt(np.maximum(spread, 0.0))
        scale = np.maximum(np.abs(means[first]), np.abs(means[second]))
        known = np.isfinite(difference) & np.isfinite(se)
        still = known & is_rounding(se, scale)
        identical = still & is_rounding(difference, scale)
    varying = np.flatnonzero(known & ~still)
    margin = np.where(still, 0.0, np.nan)
    p = np.where(identical, 1.0, np.nan)
    critical = np.nan
    if varying.size:
        t = np.abs(difference[varying]) / se[varying]
        pointwise = 2.0 * stdtr(degrees_of_freedom, -t)
        bonferroni = np.minimum(1.0, varying.size * pointwise)
        critical = t_quantile(0.5 + 0.5 * level, degrees_of_freedom)
        p[varying] = pointwise
        if varying.size > 1:
            root = _contrast_root(covariance, first[varying], second[varying])
            largest = np.sort(largest_t(root, degrees_of_freedom=degrees_of_freedom, draws=draws, seed=seed))
            most = t_quantile(1.0 - 0.5 * (1.0 - level) / varying.size, degrees_of_freedom)
            critical = float(np.clip(np.quantile(largest, level), critical, most))
            reached = draws - np.searchsorted(largest, t, side="left")
            p[varying] = np.clip((1.0 + reached) / (draws + 1.0), pointwise, bonferroni)
        margin[varying] = critical * se[varying]
    said = list(notes) if notes is not None else [""] * len(first)
    for pair in np.flatnonzero(still):
        said[pair] = Note(Code.IDENTICAL if identical[pair] else Code.CONSTANT_DIFFERENCE)
    return PairComparisons(
        first, second, difference, se, difference - margin, difference + margin, p, identical, tuple(said), critical
    )


def pairs_of_moments(moments: PairwiseMoments, *, level: float = 0.95) -> PairComparisons:
    """Compare all pairs of N means over chains; t has G − 1 degrees of freedom.

    Parameters
    ----------
    moments : PairwiseMoments
        Of one value per chain of each estimator.
    level : float
        Of all limits at once, in (0, 1).

    Returns
    -------
    PairComparisons
        NaN, with the reason, where one of the two is infinite or undefined in a chain.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=(200, 1)) + [0.0, 0.0, 1.0]
    >>> pairs = pairs_of_moments(PairwiseMoments.of(values))
    >>> pairs.identical.tolist()
    [True, False, False]
    """
    values, count = moments.values, moments.values.count
    first, second = np.triu_indices(values.size, 1)
    whys = [not_finite(values, column) for column in range(values.size)]
    few = Note(Code.TOO_FEW_CHAINS) if count < 2 else ""
    notes = []
    for i, j, finite in zip(first, second, moments.differences.finite, strict=True):
        sides = tuple(Note(Code.SIDE, name="one", why=whys[column]) for column in (i, j) if whys[column])
        notes.append(few if finite else Note(Code.NO_DIFFERENCE, sides=sides))
    return compare_pairs(
        values.mean,
        values.covariance,
        degrees_of_freedom=max(count - 1, 1),
        level=level,
        difference=moments.differences.mean,
        se=moments.differences.standard_error,
        notes=notes,
    )


def _contrast_root(covariance: Array, first: Indices, second: Indices) -> NDArray[np.float32]:
    """Return L, shape (P, N), with LLᵀ the correlation of the differences, its rows of length 1.

    L is made of the symmetric square root of the covariance, which is unique: unlike eigenvectors, it does not change
    sign with the last bits, so that the same draws serve.
    """
    known = np.unique(np.concatenate([first, second]))
    place = np.zeros(len(covariance), dtype=np.int64)
    place[known] = np.arange(len(known))
    inner = covariance[np.ix_(known, known)]
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    half = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    root = half[place[first]] - half[place[second]]
    length = np.sqrt((root * root).sum(axis=1, keepdims=True))
    return np.ascontiguousarray(np.divide(root, length, out=np.zeros_like(root), where=length > 0), dtype=np.float32)
