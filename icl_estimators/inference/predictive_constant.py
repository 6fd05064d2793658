"""The constant β of the add-β rule with the smallest mean log loss on given predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["PredictiveConstant", "best_constant"]

Array = NDArray[np.float64]

_GRID = np.linspace(-18.0, 18.0, 289)


@dataclass(frozen=True)
class PredictiveConstant:
    """The constant that predicts best.

    Attributes
    ----------
    estimate : float
        β̂; 0 or inf where the loss keeps falling towards them, NaN if it does not depend on β.
    low, high : float
        exp(log β̂ ± t·SE), with the sandwich standard error of an M-estimator; NaN at 0 and inf, or without a variance.
    log_loss : float
        The mean loss at β̂, in nats.
    """

    estimate: float
    low: float
    high: float
    log_loss: float


def best_constant(
    followed: ArrayLike,
    visits: ArrayLike,
    n_states: int,
    *,
    variance: Callable[[Array], float] | None = None,
    degrees_of_freedom: float = math.inf,
    level: float = 0.95,
) -> PredictiveConstant:
    """Minimise the mean of −log (n_vw + β)/(n_v + Kβ) over β in (0, ∞).

    Parameters
    ----------
    followed, visits : array-like of int, shape (n,)
        n_vw and n_v before each token that is predicted.
    n_states : int
        K.
    variance : callable, optional
        Takes a value for each prediction, shape (n,), and returns the variance of their mean, whatever depends on
        what; without it there is no interval.
    degrees_of_freedom : float
        Of t.
    level : float
        Of the interval.

    Raises
    ------
    InputError
        If there is no prediction, the shapes differ, or `level` is not strictly between 0 and 1.

    Examples
    --------
    >>> found = best_constant([3, 0, 2, 1], [4, 1, 2, 1], 2)
    >>> round(found.estimate, 3)
    0.75
    """
    counts, totals = np.asarray(followed, dtype=np.float64), np.asarray(visits, dtype=np.float64)
    n_states = positive_int(n_states, "n_states", at_least=2)
    level = probability_level(level)
    if counts.shape != totals.shape or counts.ndim != 1 or not len(counts):
        raise InputError("give the counts of at least one prediction, followed and visits in equal numbers")
    pairs, place, times = np.unique(np.column_stack([counts, totals]), axis=0, return_inverse=True, return_counts=True)
    f, n = pairs.T
    weights = times / len(counts)

    def loss(theta: float) -> float:
        beta = math.exp(theta)
        return float(weights @ (np.log(n + n_states * beta) - np.log(f + beta)))

    def scores(theta: float) -> Array:
        beta = math.exp(theta)
        return np.asarray(n_states * beta / (n + n_states * beta) - beta / (f + beta))

    values = np.array([loss(theta) for theta in _GRID])
    uniform = math.log(n_states)
    nothing = (math.nan, math.nan)
    if np.ptp(values) < 1e-12:
        return PredictiveConstant(math.nan, *nothing, uniform)
    best = int(values.argmin())
    if best in (0, len(_GRID) - 1) or uniform <= values[best] + 1e-12:
        at_zero = best == 0
        return PredictiveConstant(0.0 if at_zero else math.inf, *nothing, float(values[0]) if at_zero else uniform)
    low, high = float(_GRID[best - 1]), float(_GRID[best + 1])
    theta = float(brentq(lambda at: float(weights @ scores(at)), low, high, xtol=1e-12))
    if variance is None:
        return PredictiveConstant(math.exp(theta), *nothing, loss(theta))
    beta = math.exp(theta)
    slopes = n_states * beta * n / (n + n_states * beta) ** 2 - beta * f / (f + beta) ** 2
    se = math.sqrt(max(variance(scores(theta)[place.ravel()]), 0.0)) / float(weights @ slopes)
    margin = t_quantile(0.5 + 0.5 * level, degrees_of_freedom) * se
    return PredictiveConstant(beta, math.exp(theta - margin), math.exp(theta + margin), loss(theta))
