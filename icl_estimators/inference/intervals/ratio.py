"""Pooled ratios Σ numerator / Σ denominator over chains, such as the mean KL where it is finite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from icl_estimators.inference.intervals.mean import Intervals
from icl_estimators.inference.moments import PairMoments
from icl_estimators.inference.trees import Summary
from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["RatioMoments", "ratio_intervals"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RatioMoments(Summary):
    """Moments of numerators and denominators on the same chains.

    Attributes
    ----------
    parts : PairMoments
        Of numerator and denominator, D coordinates.
    contributing : ndarray of int64, shape (D,)
        Chains whose denominator is above 0. The others say nothing about the ratio.
    """

    parts: PairMoments
    contributing: NDArray[np.int64]

    @classmethod
    def of(cls, numerator: ArrayLike, denominator: ArrayLike) -> RatioMoments:
        """Return the moments of per-chain sums (or means), both of shape (G, D).

        Raises
        ------
        InputError
            If the shapes differ, a value is not finite, or a denominator is negative.
        """
        top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
        if not (np.isfinite(top).all() and np.isfinite(bottom).all() and (bottom >= 0).all()):
            raise InputError("numerators must be finite and denominators finite and not negative")
        return cls(PairMoments.of(top, bottom), (bottom > 0).sum(axis=0))


def ratio_intervals(
    moments: RatioMoments,
    *,
    level: float = 0.95,
    empty: str = "the denominator is 0 in every chain",
    fewest: int = 2,
) -> Intervals:
    """Return Σ numerator / Σ denominator with its linearised standard error, clustered on chains.

    Parameters
    ----------
    moments : RatioMoments
    level : float
        Confidence level in (0, 1).
    empty : str
        The note where no chain contributes.
    fewest : int
        How many chains must contribute for an interval, at least 2.

    Returns
    -------
    Intervals
        `count` is the number of chains given. Where fewer than `fewest` chains contribute, standard error and limits
        are NaN, and the note says how many do.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1, or `fewest` is below 2.

    Notes
    -----
    With a_g, b_g the chain's sums and r = Σa/Σb, se² = c/(c − 1)·Σ_g (a_g − r b_g)² / (Σ_g b_g)² over the c
    chains with b_g > 0, and t_{c−1}: the cluster-robust standard error of a weighted mean (Cochran 1977,
    section 6.3).

    Examples
    --------
    >>> chains = RatioMoments.of([[6.0], [15.0], [24.0]], [[3.0], [3.0], [3.0]])
    >>> result = ratio_intervals(chains)
    >>> float(result.estimate[0]), round(float(result.se[0]), 7)
    (5.0, 1.7320508)
    """
    level, fewest = probability_level(level), positive_int(fewest, "fewest", at_least=2)
    top, bottom = moments.parts.first, moments.parts.second
    count, contributing = moments.parts.count, moments.contributing
    estimate, se = np.full(top.size, np.nan), np.full(top.size, np.nan)
    np.divide(top.centre, bottom.centre, out=estimate, where=contributing > 0)
    known = contributing >= fewest
    residual = (
        top.scatter
        - estimate * (top.scatter + bottom.scatter - moments.parts.difference.scatter)
        + estimate**2 * bottom.scatter
    )
    scale = np.zeros(top.size)
    np.divide(contributing, (contributing - 1.0) * (count * bottom.centre) ** 2, out=scale, where=known)
    se[known] = np.sqrt(np.maximum(residual[known], 0.0) * scale[known])
    margin = se * stdtrit(np.maximum(contributing - 1, 1), 0.5 + 0.5 * level)
    notes = tuple("" if c >= fewest else _too_few(int(c), empty, fewest) for c in contributing)
    return Intervals(estimate, se, estimate - margin, estimate + margin, count, notes)


def _too_few(contributing: int, empty: str, fewest: int) -> str:
    if contributing < 2:
        return "only 1 chain contributes" if contributing else empty
    return f"only {contributing} chains contribute: an interval needs {fewest}"
