"""Σ KL(p̂ ‖ add-α) as a function of α alone, and its minimum.

    L(α) = I − Σ_c W_c log(c + α) + Σ_n N_n log(n + Kα)

in the sums of :mod:`icl_estimators.pseudo_counts.count_statistics`. It is not convex, and may have two minima when
different n_v are pooled: so a grid on θ = log α, then a root of the score in each interval that holds a minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from icl_estimators.pseudo_counts.linear_forms import negligible

__all__ = ["AddConstantObjective", "Minimum"]

Array = NDArray[np.float64]

GRID = np.linspace(-18.0, 18.0, 721)
"""θ = log α at which the score's sign is looked at."""

BOUNDARY_TOLERANCE = 1e-12
"""A boundary wins if the objective there is no greater than the best interior one by more, in nats per prefix."""

_FURTHEST = -700.0  # e^−700 is still a normal number


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where an objective is least.

    Attributes
    ----------
    alpha : float
        0 and inf are boundaries; NaN where the objective is flat.
    count : int
        Local minima, boundaries included; 0 where the objective is flat.
    """

    alpha: float
    count: int

    @property
    def boundary(self) -> bool:
        """Whether the least value is at 0 or ∞."""
        return self.alpha in (0.0, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class AddConstantObjective:
    """The objective of one group of prefixes.

    Attributes
    ----------
    sums : ndarray of float64, shape (D,)
        W_0 … W_{C−1}, then N, then the negative entropy I: one row of
        :attr:`~icl_estimators.pseudo_counts.count_statistics.CountStatistics.rows`, or a sum of such rows.
    visits : ndarray of int64, shape (V,)
        The n of each N_n.
    n_states : int
        K.

    Notes
    -----
    Linear functions of the sums are given by their coefficients, so that the same coefficients applied to the
    covariances of chains give variances. p̂ sums to 1, so Σ_c W_c = Σ_n N_n, and from α = 1 on the leading
    1/α of the score's terms, which cancel, are left out.
    """

    sums: Array
    visits: NDArray[np.int64]
    n_states: int

    @property
    def counts(self) -> Array:
        """The c of each W_c."""
        return np.arange(len(self.sums) - len(self.visits) - 1, dtype=np.float64)

    @property
    def n_prefixes(self) -> float:
        """How many prefixes the sums are of."""
        return float(self.sums[len(self.counts) : -1].sum())

    @property
    def reaches_zero(self) -> bool:
        """Whether the objective is finite at α = 0: no probability on what has not been seen."""
        return bool(self.sums[0] == 0.0)

    def score_coefficients(self, alpha: ArrayLike) -> Array:
        """Return the coefficients of dL/dα, shape (…, D); at α = ∞ those of lim α² dL/dα."""
        a = np.asarray(alpha, dtype=np.float64)[..., None]
        return self._sides(_inverse(self.counts, a), _inverse(self.visits / self.n_states, a), 0.0, 0.0)

    def curvature_coefficients(self, alpha: float) -> Array:
        """Return the coefficients of d²L/dα², shape (D,)."""
        a = np.float64(alpha)
        return self._sides(
            -_inverse_squared(self.counts, a), -_inverse_squared(self.visits / self.n_states, a), 0.0, 0.0
        )

    def kl_coefficients(self, alpha: float) -> Array:
        """Return the coefficients of L, in nats; at α = ∞ it is Σ KL(p̂ ‖ uniform)."""
        a = np.float64(alpha)
        return self._sides(_log(self.counts, a), _log(self.visits / self.n_states, a), np.log(self.n_states), 1.0)

    def kl(self, alpha: float) -> float:
        """Return L(α) in nats; inf at α = 0 if p̂ puts probability on what has not been seen."""
        if np.isnan(alpha):
            return np.nan
        if alpha == 0.0 and not self.reaches_zero:
            return np.inf
        coefficients = self.kl_coefficients(alpha)
        value = float(coefficients @ self.sums)
        return 0.0 if negligible(value, np.abs(coefficients) @ np.abs(self.sums)) else value

    def score(self, theta: float) -> float:
        """Return dL/dα at α = e^θ."""
        return float(self.score_coefficients(np.exp(theta)) @ self.sums)

    def minimum(self) -> Minimum:
        """Find the least value over [0, ∞]: every interior minimum to 1e-12 in θ, and both boundaries."""
        coefficients = self.score_coefficients(np.exp(GRID))  # (grid, D)
        scores = coefficients @ self.sums
        known = ~negligible(scores, np.abs(coefficients) @ np.abs(self.sums))
        theta, sign = GRID[known], np.sign(scores[known])
        if not len(theta):
            return Minimum(np.nan, 0)
        falls_then_rises = np.flatnonzero((sign[:-1] < 0) & (sign[1:] > 0))
        brackets = [(theta[i], theta[i + 1]) for i in falls_then_rises]
        if sign[0] > 0 and not self.reaches_zero:  # least below the grid: at 0 the objective is infinite
            far = theta[0] - 1.0
            while far > _FURTHEST and self.score(far) > 0.0:
                far -= 20.0
            brackets.insert(0, (far, theta[0]))
        interior = [self._root(low, high) for low, high in brackets]
        at_zero = self.reaches_zero and sign[0] > 0
        at_infinity = sign[-1] < 0
        count = len(interior) + int(at_zero) + int(at_infinity)
        best, value = np.nan, np.inf
        for alpha in interior:
            if (found := self.kl(alpha)) < value:
                best, value = alpha, found
        for boundary in (np.inf, 0.0):
            if self.kl(boundary) <= value + BOUNDARY_TOLERANCE * self.n_prefixes:
                best, value = boundary, min(value, self.kl(boundary))
        return Minimum(float(best), max(count, 1))

    def _root(self, low: float, high: float) -> float:
        if self.score(low) >= 0.0:  # below every number that can be told from 0
            return float(np.exp(low))
        return float(np.exp(brentq(self.score, low, high, xtol=1e-13, rtol=1e-14)))

    def _sides(self, of_counts: Array, of_visits: Array, level: float, negative_entropy: float) -> Array:
        last = np.full((*of_counts.shape[:-1], 1), negative_entropy)
        return np.concatenate([-of_counts, level + of_visits, last], axis=-1)


def _inverse(x: Array, alpha: Array) -> Array:
    """Return 1/(x + α), less 1/α from α = 1 on, and times α² at α = ∞; 1/0 is 0, for no mass has it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.where(x + alpha > 0, 1.0 / (x + alpha), 0.0)
        large = -x / (alpha * (x + alpha))
    return np.where(np.isinf(alpha), -x, np.where(alpha < 1.0, small, large))


def _inverse_squared(x: Array, alpha: np.float64) -> Array:
    """Return 1/(x + α)², less 1/α² from α = 1 on."""
    if alpha < 1.0:
        return 1.0 / (x + alpha) ** 2
    return -x * (2.0 * alpha + x) / (alpha * (alpha + x)) ** 2


def _log(x: Array, alpha: np.float64) -> Array:
    """Return log(x + α), less log α from α = 1 on; log 0 is 0: no mass has it."""
    if alpha >= 1.0:
        return np.log1p(x / alpha)
    with np.errstate(divide="ignore"):
        return np.where(x + alpha > 0, np.log(x + alpha), 0.0)
