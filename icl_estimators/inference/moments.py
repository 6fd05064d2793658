"""Streaming moments of any number of chains, in memory that does not grow with them.

A *unit* is one row of values, one number per coordinate: a chain, summarised over its sequences. Moments of
fixed groups of units are merged in chain order, so that the result is the same bits for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.inference.trees import Summary
from icl_estimators.validation import InputError, positive_int

__all__ = ["Moments", "PairMoments", "chain_values", "merge_in_order", "with_mean"]

Array = NDArray[np.float64]


class _Mergeable(Protocol):
    def merge(self, other: Self) -> Self: ...


M = TypeVar("M", bound=_Mergeable)


def with_mean(values: Array) -> Array:
    """Append the mean over the last axis as a last coordinate, shape (…, T) → (…, T + 1).

    The mean over context lengths is inf where one value is, and NaN where one is.

    Examples
    --------
    >>> with_mean(np.array([[1.0, 2.0, 6.0]])).tolist()
    [[1.0, 2.0, 6.0, 3.0]]
    """
    return np.concatenate([values, values.mean(axis=-1, keepdims=True)], axis=-1)


def chain_values(values: Array, n_chains: int) -> Array:
    """Average over the sequences of each chain: the chain is the unit, one number for each first.

    Parameters
    ----------
    values : ndarray of float64, shape (R·S, …)
        Chain by chain, S sequences each.
    n_chains : int
        R.

    Returns
    -------
    ndarray of float64, shape (R, …)

    Raises
    ------
    InputError
        If the rows cannot be shared out evenly among `n_chains` chains.

    Examples
    --------
    >>> chain_values(np.array([[1.0], [3.0], [0.0], [4.0]]), 2).tolist()
    [[2.0], [2.0]]
    """
    n_chains = positive_int(n_chains, "n_chains")
    if len(values) == 0 or len(values) % n_chains:
        raise InputError(f"{len(values)} sequences cannot be shared out evenly among {n_chains} chains")
    return np.asarray(values.reshape(n_chains, -1, *values.shape[1:]).mean(axis=1))


def merge_in_order(parts: Iterable[M]) -> M:
    """Merge from left to right; the same parts in the same order give the same bits.

    Raises
    ------
    InputError
        If there are no parts, or parts do not match.

    Examples
    --------
    >>> parts = [Moments.of([[1.0], [2.0]]), Moments.of([[6.0]])]
    >>> float(merge_in_order(parts).mean[0])
    3.0
    """
    parts = iter(parts)
    first = next(parts, None)
    if first is None:
        raise InputError("no moments to merge: give at least one part")
    return reduce(lambda whole, part: whole.merge(part), parts, first)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Count, mean and second moments of G units with D coordinates.

    Attributes
    ----------
    count : int
        G.
    centre : ndarray of float64, shape (D,)
        Means; meaningless in a coordinate with a value that is not finite (see :attr:`mean`).
    scatter : ndarray of float64, shape (D, D) or (D,)
        Sums of products of deviations from the mean: Σ_g (x_g − x̄)(x_g − x̄)ᵀ, or only its diagonal.
    n_infinite, n_undefined : ndarray of int64, shape (D,)
        How many units are +inf, and how many NaN.

    Notes
    -----
    One value of +inf makes the coordinate's mean inf and its variance NaN, one NaN makes both NaN; other
    coordinates are not affected. Merging is the pairwise update of Chan, Golub & LeVeque (1983). Deviations are
    taken from the first unit before averaging, so that equal values have variance 0 exactly.

    Examples
    --------
    >>> moments = Moments.of([[1.0, 5.0], [3.0, np.inf]])
    >>> moments.mean.tolist(), moments.variance.tolist()
    ([2.0, inf], [2.0, nan])
    """

    count: int
    centre: Array
    scatter: Array
    n_infinite: NDArray[np.int64]
    n_undefined: NDArray[np.int64]

    @classmethod
    def of(cls, values: ArrayLike, *, full: bool = True) -> Moments:
        """Return the moments of `values`, shape (G, D); `full=False` keeps variances only.

        Raises
        ------
        InputError
            If `values` is not two-dimensional, has no rows or columns, or holds −inf.
        """
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != 2 or array.size == 0:
            raise InputError(f"values must have shape (G, D) with at least one unit, not {array.shape}")
        finite = np.isfinite(array)
        infinite = np.zeros(array.shape[1], dtype=np.int64)
        undefined = infinite.copy()
        if not finite.all():
            if (array == -np.inf).any():
                row, column = np.argwhere(array == -np.inf)[0]
                raise InputError(f"value of unit {row}, coordinate {column} is -inf: only +inf has a meaning here")
            infinite = np.isinf(array).sum(axis=0)
            undefined = np.isnan(array).sum(axis=0)
            array = np.where(finite.all(axis=0), array, 0.0)
        shifted = array - array[0]
        shift = shifted.mean(axis=0)
        deviations = shifted - shift
        scatter = deviations.T @ deviations if full else (deviations * deviations).sum(axis=0)
        return cls(len(array), array[0] + shift, scatter, infinite, undefined)

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both groups of units together.

        Raises
        ------
        InputError
            If the coordinates differ in number, or only one of the two keeps covariances.
        """
        if self.scatter.shape != other.scatter.shape:
            raise InputError(
                f"moments with scatter of shape {self.scatter.shape} and {other.scatter.shape} cannot be merged"
            )
        count = self.count + other.count
        step = other.centre - self.centre
        weight = self.count * other.count / count
        between = np.outer(step, step) if self.full else step * step
        return Moments(
            count,
            self.centre + step * (other.count / count),
            self.scatter + other.scatter + weight * between,
            self.n_infinite + other.n_infinite,
            self.n_undefined + other.n_undefined,
        )

    @property
    def full(self) -> bool:
        """Whether covariances are kept."""
        return self.scatter.ndim == 2

    @property
    def size(self) -> int:
        """D, the number of coordinates."""
        return len(self.centre)

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Coordinates without a value of inf or NaN, shape (D,)."""
        return np.asarray((self.n_infinite == 0) & (self.n_undefined == 0))

    @property
    def mean(self) -> Array:
        """Means, shape (D,): inf as soon as one unit is, NaN as soon as one is undefined."""
        return np.where(self.n_undefined > 0, np.nan, np.where(self.n_infinite > 0, np.inf, self.centre))

    @property
    def variance(self) -> Array:
        """Unbiased variances of one unit, shape (D,); NaN where a value is not finite and where G < 2."""
        if self.count < 2:
            return np.full(self.size, np.nan)
        diagonal = self.scatter.diagonal() if self.full else self.scatter
        return np.where(self.finite, diagonal / (self.count - 1), np.nan)

    @property
    def covariance(self) -> Array:
        """Unbiased covariances of one unit, shape (D, D); NaN in rows and columns with values that are not finite.

        Raises
        ------
        InputError
            If only the diagonal was kept.
        """
        if not self.full:
            raise InputError("these moments keep variances only: make them with full=True")
        if self.count < 2:
            return np.full(self.scatter.shape, np.nan)
        return np.where(np.logical_and.outer(self.finite, self.finite), self.scatter / (self.count - 1), np.nan)

    @property
    def standard_error(self) -> Array:
        """Standard errors of the means, √(variance / G), shape (D,)."""
        return np.sqrt(self.variance / self.count)

    def select(self, coordinates: slice | Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> Moments:
        """Return the moments of some coordinates, in the order given.

        Examples
        --------
        >>> Moments.of([[1.0, 2.0, 3.0]]).select(slice(0, 2)).mean.tolist()
        [1.0, 2.0]
        """
        keep = np.arange(self.size)[coordinates]
        scatter = self.scatter[np.ix_(keep, keep)] if self.full else self.scatter[keep]
        return Moments(self.count, self.centre[keep], scatter, self.n_infinite[keep], self.n_undefined[keep])


@dataclass(frozen=True, slots=True, eq=False)
class PairMoments(Summary):
    """Moments of two quantities on the same units, coordinate by coordinate.

    The difference is kept as a quantity of its own, rather than a covariance: a difference that is far
    smaller than what it is taken from keeps its full precision.

    Attributes
    ----------
    first, second, difference : Moments
        Of a, b and a − b, each with D coordinates and variances only. a − b is undefined where a or b is not
        finite.

    Examples
    --------
    >>> pair = PairMoments.of([[1.0], [2.0]], [[0.0], [2.0]])
    >>> pair.difference.mean.tolist(), pair.covariance.tolist()
    ([0.5], [1.0])
    """

    first: Moments
    second: Moments
    difference: Moments

    @classmethod
    def of(cls, first: ArrayLike, second: ArrayLike) -> PairMoments:
        """Return the moments of a and b, both of shape (G, D), row by row on the same units.

        Raises
        ------
        InputError
            If the shapes differ, or for what :meth:`Moments.of` raises.
        """
        a = np.asarray(first, dtype=np.float64)
        b = np.asarray(second, dtype=np.float64)
        if a.shape != b.shape:
            raise InputError(f"paired values must have equal shapes, not {a.shape} and {b.shape}")
        both = np.isfinite(a) & np.isfinite(b)
        difference = np.full(a.shape, np.nan)
        np.subtract(a, b, out=difference, where=both)
        return cls(*(Moments.of(values, full=False) for values in (a, b, difference)))

    @property
    def count(self) -> int:
        """G, the number of units."""
        return self.difference.count

    @property
    def covariance(self) -> Array:
        """Unbiased covariance of a and b, (Var a + Var b − Var(a − b))/2, shape (D,)."""
        return 0.5 * (self.first.variance + self.second.variance - self.difference.variance)
