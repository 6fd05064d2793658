"""Which add-α rule an estimator acts like, with an interval, and how much of it that rule describes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from icl_estimators.notes import Code, Note
from icl_estimators.pseudo_counts.count_statistics import PseudoCountMoments
from icl_estimators.pseudo_counts.linear_forms import LinearForms
from icl_estimators.pseudo_counts.objective import GRID, AddConstantObjective, Minimum
from icl_estimators.validation import probability_level

__all__ = [
    "FEW_CHAINS",
    "PseudoCount",
    "ScoreSpread",
    "fit_pseudo_count",
]

Array = NDArray[np.float64]

FEW_CHAINS = 50  # chains below which an interval is not to be trusted: a rare group is skewed
_STEP = 5  # every fifth point of the grid is far enough for an interval's walk


@dataclass(frozen=True, slots=True)
class PseudoCount:
    """The add-α rule nearest to an estimator over one group of prefixes.

    Attributes
    ----------
    estimate : float
        α̂ ≥ 0 with the least Σ KL(p̂ ‖ add-α); 0 and inf are boundaries, NaN where it is not identified.
    se : float
        Of α̂, clustered on chains: α̂ times `se_log`. NaN at a boundary.
    se_log : float
        Of log α̂.
    low, high : float
        Interval for α by inverting the clustered score; one-sided at a boundary, of zero width where every chain's
        score is 0.
    residual_kl_nats : float
        Mean KL(p̂ ‖ add-α̂) per prefix.
    heldout_kl_nats : float
        The same on other chains than α was fitted to; NaN if there were none.
    explained, explained_se, explained_low, explained_high : float
        1 − Σ KL(p̂ ‖ add-α̂) / Σ KL(p̂ ‖ uniform), delta method, clustered on chains.
    n_minima : int
        Local minima of the objective, boundaries included.
    n_chains : int
        G, chains with a prefix in the group.
    n_prefixes : int
    notes : tuple of str
    """

    estimate: float
    se: float
    se_log: float
    low: float
    high: float
    residual_kl_nats: float
    heldout_kl_nats: float
    explained: float
    explained_se: float
    explained_low: float
    explained_high: float
    n_minima: int
    n_chains: int
    n_prefixes: int
    notes: tuple[str, ...]

    @property
    def identified(self) -> bool:
        """Whether the prefixes tell one α from another."""
        return not np.isnan(self.estimate)

    @property
    def boundary(self) -> bool:
        """Whether α̂ is 0 or ∞."""
        return self.estimate in (0.0, np.inf)

    @classmethod
    def undefined(cls, note: str, *, n_chains: int = 0, n_prefixes: int = 0) -> PseudoCount:
        """Return the fit of a group that says nothing, with the reason."""
        return cls(*(np.nan,) * 11, n_minima=0, n_chains=n_chains, n_prefixes=n_prefixes, notes=(note,))


def fit_pseudo_count(
    moments: PseudoCountMoments | None,
    *,
    level: float = 0.95,
    halves: tuple[PseudoCountMoments | None, PseudoCountMoments | None] | None = None,
) -> PseudoCount:
    """Fit α to the prefixes of one group.

    Parameters
    ----------
    moments : PseudoCountMoments or None
        Of all chains; None where no prefix has n_v ≥ 1.
    level : float
        Confidence level in (0, 1).
    halves : pair of PseudoCountMoments or None, optional
        Of the first and of the other chains: for the residual on the second half of the α fitted to the first.

    Returns
    -------
    PseudoCount

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1.

    Notes
    -----
    With ψ_g = dL_g/dθ the score of chain g on θ = log α and A = d²L/dθ², both at θ̂, the standard error of θ̂ is
    √B/A with B = G/(G − 1)·Σ ψ_g² (White 1982, clustered). The interval is the part that holds θ̂ of
    {α: (Σψ_g)² ≤ t²_{G−1}·G/(G − 1)·Σ(ψ_g − ψ̄)²}, which has the right shape where α̂ is skewed or near a boundary.
    L is not a log-likelihood, so a χ² profile of it would be meaningless.

    Examples
    --------
    >>> from icl_estimators.pseudo_counts import count_statistics
    >>> counts = np.array([[[[0, 0], [1, 0], [1, 1], [2, 1]]], [[[0, 0], [0, 1], [0, 2], [1, 2]]]])
    >>> add_one = (counts + 1.0) / (counts.sum(axis=-1, keepdims=True) + 2.0)
    >>> fit = fit_pseudo_count(PseudoCountMoments.of(count_statistics(add_one, counts, "overall")[0]))
    >>> round(fit.estimate, 9), fit.residual_kl_nats, round(fit.high - fit.low, 9)
    (1.0, 0.0, 0.0)
    """
    level = probability_level(level)
    if moments is None:
        return PseudoCount.undefined(Note(Code.NO_TRANSITION))
    spread = ScoreSpread(moments, level)
    objective, minimum = spread.objective, spread.objective.minimum()
    n_prefixes, n_chains = round(objective.n_prefixes), moments.n_chains
    if np.isnan(minimum.alpha):
        return PseudoCount.undefined(Note(Code.EQUAL_COUNTS), n_chains=n_chains, n_prefixes=n_prefixes)
    notes = []
    if minimum.alpha == 0.0:
        notes.append(Note(Code.AT_ZERO))
    elif minimum.alpha == np.inf:
        notes.append(Note(Code.AT_INFINITY))
    if minimum.count > 1:
        notes.append(Note(Code.LOCAL_MINIMA, count=minimum.count))
    if n_chains < 2:
        notes.append(Note(Code.TOO_FEW_CHAINS))
    elif n_chains < FEW_CHAINS:
        notes.append(Note(Code.FEW_CHAINS, chains=n_chains))
    se_log = np.nan if minimum.boundary else spread.standard_error(spread.influence(minimum.alpha))
    low, high = spread.interval(minimum)
    explained, explained_se = spread.explained(minimum.alpha)
    if np.isnan(explained):
        notes.append(Note(Code.EXPLAINED_UNDEFINED))
    margin = explained_se * spread.t
    return PseudoCount(
        estimate=minimum.alpha,
        se=np.nan if minimum.boundary else minimum.alpha * se_log,
        se_log=se_log,
        low=low,
        high=high,
        residual_kl_nats=objective.kl(minimum.alpha) / objective.n_prefixes,
        heldout_kl_nats=_heldout(halves),
        explained=explained,
        explained_se=explained_se,
        explained_low=explained - margin,
        explained_high=explained + margin,
        n_minima=minimum.count,
        n_chains=n_chains,
        n_prefixes=n_prefixes,
        notes=tuple(notes),
    )


class ScoreSpread(LinearForms):
    """The add-α scores of chains.

    Parameters
    ----------
    moments : PseudoCountMoments
    level : float
        Confidence level of what is made of it.
    """

    def __init__(self, moments: PseudoCountMoments, level: float) -> None:
        super().__init__(moments.moments, level)
        self.objective = _objective(moments)

    def influence(self, alpha: float) -> Array:
        """Return the coefficients of ψ_g/A on log α: what a chain moves θ̂ by, the sign apart."""
        # ψ_θ = α ψ_α and, where the score is 0, A_θ = α² A_α.
        curvature = float(self.objective.curvature_coefficients(alpha) @ self.objective.sums)
        return np.asarray(self.objective.score_coefficients(alpha) / (alpha * curvature))

    def rejects(self, alpha: float) -> float:
        """Return a number above 0 where the clustered score rejects α, at most 0 where it does not."""
        coefficients = self.objective.score_coefficients(alpha)
        spread = self.squares(coefficients) * self.n_chains / (self.n_chains - 1)
        return self.total(coefficients) ** 2 - self.t**2 * spread

    def interval(self, minimum: Minimum) -> tuple[float, float]:
        """Invert the clustered score around a minimum."""
        if self.n_chains < 2:
            return np.nan, np.nan
        if minimum.boundary:
            edge = GRID[-1] if minimum.alpha == np.inf else GRID[0]
            if self.rejects(minimum.alpha) > 0 or self.rejects(np.exp(edge)) > 0:
                return minimum.alpha, minimum.alpha
            return (self._walk(-1, edge), np.inf) if minimum.alpha == np.inf else (0.0, self._walk(1, edge))
        if self.squares(self.objective.score_coefficients(minimum.alpha)) == 0.0:
            return minimum.alpha, minimum.alpha
        theta = float(np.log(minimum.alpha))
        return self._walk(-1, theta), self._walk(1, theta)

    def _walk(self, direction: int, theta: float) -> float:
        """Go from θ, which is not rejected, to where α first is; 0 or inf if nowhere."""
        points = GRID[::_STEP] if abs(theta) <= GRID[-1] else theta + np.arange(-20.0, 20.5, 0.5)
        ahead = points[points > theta] if direction > 0 else points[points < theta][::-1]
        for point in ahead:
            if self.rejects(np.exp(point)) > 0:
                return float(np.exp(brentq(lambda x: self.rejects(np.exp(x)), theta, point, xtol=1e-12)))
            theta = point
        return np.inf if direction > 0 else 0.0

    def explained(self, alpha: float) -> tuple[float, float]:
        """Return the share of Σ KL(p̂ ‖ uniform) that add-α explains, and its standard error."""
        whole = self.objective.kl_coefficients(np.inf)
        total = self.total(whole)
        if total <= 0.0:
            return np.nan, np.nan
        unexplained = self.objective.kl(alpha) / total
        return 1.0 - unexplained, self.standard_error(
            self.objective.kl_coefficients(alpha) - unexplained * whole
        ) / total


def _heldout(halves: tuple[PseudoCountMoments | None, PseudoCountMoments | None] | None) -> float:
    """Return the mean KL on the second half of add-α with the α of the first."""
    if halves is None or halves[0] is None or halves[1] is None:
        return np.nan
    first, second = _objective(halves[0]), _objective(halves[1])
    return second.kl(first.minimum().alpha) / second.n_prefixes


def _objective(moments: PseudoCountMoments) -> AddConstantObjective:
    return AddConstantObjective(moments.moments.centre * moments.n_chains, moments.visits, moments.n_states)
