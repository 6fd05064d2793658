"""Sums over chains of linear functions of their values, and how such sums vary."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.inference.moments import Moments

__all__ = ["LinearForms", "negligible"]

Array = NDArray[np.float64]

_ROUNDING = 64.0 * np.finfo(np.float64).eps


def negligible(value: ArrayLike, magnitude: ArrayLike) -> NDArray[np.bool_]:
    """Return whether a sum is 0 up to rounding; `magnitude` is the sum of its terms' absolute values.

    Examples
    --------
    >>> bool(negligible(0.1 + 0.2 - 0.3, 0.6))
    True
    """
    return np.asarray(np.abs(value) <= _ROUNDING * np.asarray(magnitude))


class LinearForms:
    """Linear functions of the chains' values, given by their D coefficients.

    Parameters
    ----------
    moments : Moments
        With covariances, of G chains and D finite coordinates.
    level : float
        Confidence level that `t` is for.

    Attributes
    ----------
    n_chains : int
        G.
    t : float
        Quantile of Student's t with G − 1 degrees of freedom.

    Examples
    --------
    >>> forms = LinearForms(Moments.of([[1.0, 1.0], [3.0, 2.0], [5.0, 6.0]]), 0.95)
    >>> forms.total(np.array([1.0, -1.0])), forms.squares(np.array([1.0, -1.0]))
    (0.0, 2.0)
    """

    def __init__(self, moments: Moments, level: float) -> None:
        self.n_chains = moments.count
        self.t = t_quantile(0.5 + 0.5 * level, max(moments.count - 1, 1))
        self._centre, self._scatter = moments.centre, moments.scatter
        self._size, self._sizes = np.abs(moments.centre), np.abs(moments.scatter)

    def total(self, coefficients: Array) -> float:
        """Return the sum over chains, 0 where it is 0 up to rounding."""
        value = float(coefficients @ self._centre)
        return 0.0 if negligible(value, np.abs(coefficients) @ self._size) else value * self.n_chains

    def squares(self, coefficients: Array) -> float:
        """Return Σ of squared deviations from the mean over chains, 0 where it is 0 up to rounding."""
        value = float(coefficients @ self._scatter @ coefficients)
        size = np.abs(coefficients)
        return 0.0 if negligible(value, size @ self._sizes @ size) else max(value, 0.0)

    def standard_error(self, coefficients: Array) -> float:
        """Return √(G/(G − 1)·Σ of squares) of a sum whose expectation is 0; NaN from fewer than 2 chains."""
        if self.n_chains < 2:
            return np.nan
        squares = self.squares(coefficients) + self.total(coefficients) ** 2 / self.n_chains
        return float(np.sqrt(squares * self.n_chains / (self.n_chains - 1)))
