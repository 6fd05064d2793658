"""The marginal likelihood of counts under a symmetric Dirichlet prior, as a function of its concentration α.

Rows of counts n_r· with laws P_r ~ Dirichlet(α, …, α), independent, have

    log m(α) = Σ_r Σ_w log Γ(α + n_rw)/Γ(α) − Σ_r log Γ(Kα + n_r)/Γ(Kα)
             = Σ_j A_j log(α + j) − Σ_j B_j log(Kα + j),

with A_j cells above j and B_j rows above j (the order of the tokens is given, so that there is no multinomial
coefficient). It is also the product of the add-α rule's own predictions of the tokens, one after another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.stats import chi2

from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["ConcentrationFit", "DirichletMultinomial"]

Array = NDArray[np.float64]

_GRID = np.linspace(-18.0, 18.0, 73)  # of log α, in which the likelihood has one maximum (Levin & Reeds 1977)


@dataclass(frozen=True)
class ConcentrationFit:
    """The concentration with the largest marginal likelihood.

    Attributes
    ----------
    estimate : float
        α̂. 0 if each row holds one state only, inf if the counts are no more uneven than those of uniform rows; NaN
        if the likelihood does not depend on α.
    low, high : float
        The profile likelihood interval {α : 2(log m(α̂) − log m(α)) ≤ χ²₁}; it may begin at 0 or end at inf.
    log_likelihood : float
        log m(α̂), in nats.
    """

    estimate: float
    low: float
    high: float
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class DirichletMultinomial:
    """Counts, reduced to what the marginal likelihood needs.

    Attributes
    ----------
    cells, rows : ndarray of float64, shape (J,)
        A_j and B_j for j = 0 … J − 1.
    n_states : int
        K.
    """

    cells: Array
    rows: Array
    n_states: int

    @classmethod
    def of(cls, cell_counts: ArrayLike, row_counts: ArrayLike, n_states: int) -> DirichletMultinomial:
        """Reduce counts.

        Parameters
        ----------
        cell_counts : array-like of int
            n_rw of all rows, in any order; zeros may be left out.
        row_counts : array-like of int
            n_r = Σ_w n_rw.
        n_states : int
            K.

        Raises
        ------
        InputError
            If a count is negative, `n_states` is below 2, or cells and rows have different sums.

        Examples
        --------
        >>> counts = DirichletMultinomial.of([2, 1], [3], 2)
        >>> round(math.exp(counts.log_likelihood(1.0)), 6)  # 1/2 · 2/3 · 1/4
        0.083333
        """
        cells, rows = (np.asarray(counts, dtype=np.int64).ravel() for counts in (cell_counts, row_counts))
        n_states = positive_int(n_states, "n_states", at_least=2)
        if (cells < 0).any() or (rows < 0).any():
            raise InputError("counts must not be negative")
        if cells.sum() != rows.sum():
            raise InputError(f"the cells hold {cells.sum()} counts, but the rows {rows.sum()}: give n_r = Σ_w n_rw")
        size = int(rows.max(initial=0))
        return cls(_above(cells, size), _above(rows, size), n_states)

    def given(self, part: DirichletMultinomial) -> DirichletMultinomial:
        """Return the likelihood of the rest, given a part of the same counts: log m(all) − log m(part)."""
        cells, rows = self.cells.copy(), self.rows.copy()
        cells[: len(part.cells)] -= part.cells
        rows[: len(part.rows)] -= part.rows
        return DirichletMultinomial(cells, rows, self.n_states)

    @property
    def n_tokens(self) -> float:
        """How many tokens are predicted."""
        return float(self.rows.sum())

    def log_likelihood(self, concentration: float) -> float:
        """Return log m(α) in nats; α may be 0 or inf, which are limits.

        Raises
        ------
        InputError
            If `concentration` is negative or NaN.
        """
        if not concentration >= 0:
            raise InputError(f"the concentration must be at least 0, not {concentration!r}")
        uniform = -self.n_tokens * math.log(self.n_states)
        if math.isinf(concentration) or not len(self.rows):
            return uniform
        if concentration == 0:
            if self.cells[0] > self.rows[0]:
                return -math.inf
            j = np.arange(1, len(self.rows))
            return float((self.cells[1:] - self.rows[1:]) @ np.log(j) - self.rows[0] * math.log(self.n_states))
        steps = np.arange(len(self.rows)) / concentration
        return uniform + float(self.cells @ np.log1p(steps) - self.rows @ np.log1p(steps / self.n_states))

    def score(self, log_concentration: float) -> float:
        """Return d log m/d log α."""
        steps = np.arange(len(self.rows)) / math.exp(log_concentration)
        by_row = steps / self.n_states
        return float(self.rows @ (by_row / (1.0 + by_row)) - self.cells @ (steps / (1.0 + steps)))

    def fit(self, level: float = 0.95) -> ConcentrationFit:
        """Maximise over α in [0, ∞].

        Raises
        ------
        InputError
            If `level` is not strictly between 0 and 1.

        Examples
        --------
        >>> found = DirichletMultinomial.of([8, 2, 3, 7], [10, 10], 2).fit()
        >>> round(found.estimate, 3), found.high
        (2.71, inf)
        """
        drop = float(chi2.ppf(probability_level(level), 1)) / 2.0
        values = np.array([self.log_likelihood(math.exp(theta)) for theta in _GRID])
        at_zero, at_infinity = self.log_likelihood(0.0), self.log_likelihood(math.inf)
        slack = 1e-9 * max(1.0, abs(at_infinity))
        if max(values.max(), at_zero) - min(values.min(), at_infinity) <= slack:  # no state was met twice in a row
            return ConcentrationFit(math.nan, math.nan, math.nan, at_infinity)
        best = int(values.argmax())
        theta, top = self._refined(best)
        if at_infinity >= top - slack:
            theta, top = math.inf, at_infinity
        elif at_zero >= top - slack:
            theta, top = -math.inf, at_zero
        target = top - drop
        low, high = 0.0, math.inf
        if at_zero < target:
            low = math.exp(self._crossing(target, values, before=theta))
        if at_infinity < target:
            high = math.exp(self._crossing(target, values, after=theta))
        return ConcentrationFit(math.exp(theta), low, high, top)

    def _refined(self, best: int) -> tuple[float, float]:
        """Return where the maximum near a point of the grid is, and its value."""
        low, high = _GRID[max(0, best - 1)], _GRID[min(len(_GRID) - 1, best + 1)]
        theta = float(_GRID[best])
        if self.score(low) > 0 > self.score(high):
            theta = float(brentq(self.score, low, high, xtol=1e-12))
        return theta, self.log_likelihood(math.exp(theta))

    def _crossing(
        self, target: float, values: Array, *, before: float | None = None, after: float | None = None
    ) -> float:
        """Return the farthest log α, below or above the maximum, at which the likelihood has fallen to `target`."""
        inside = np.flatnonzero(values >= target)
        if before is not None:
            end = min(float(_GRID[inside[0]]) if len(inside) else math.inf, before)
            start = end - 1.0
        else:
            assert after is not None
            end = max(float(_GRID[inside[-1]]) if len(inside) else -math.inf, after)
            start = end + 1.0
        step = start - end
        while self.log_likelihood(math.exp(start)) >= target:
            start += step
        return float(brentq(lambda theta: self.log_likelihood(math.exp(theta)) - target, start, end, xtol=1e-12))


def _above(counts: NDArray[np.int64], size: int) -> Array:
    """Return how many counts are above j, for j = 0 … size − 1."""
    at = np.bincount(counts, minlength=size + 1)[: size + 1]
    return np.asarray(at[::-1].cumsum()[::-1][1:], dtype=np.float64)
