"""Intervals that speak for a training recipe: training runs and chains are both samples.

The mean over J checkpoints has an interval conditional on them, over chains alone
(:func:`icl_estimators.inference.intervals.mean_intervals` of the checkpoints' average). The one here lets
both vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from icl_estimators.inference.intervals.mean import Intervals, moment_notes, t_quantile
from icl_estimators.inference.moments import Moments
from icl_estimators.validation import InputError, probability_level

__all__ = ["ONE_CHECKPOINT", "SATTERTHWAITE_FROM", "TwoWay", "combined_margin", "two_way", "two_way_intervals"]

Array = NDArray[np.float64]

SATTERTHWAITE_FROM = 5
"""Runs from which on Satterthwaite's degrees of freedom are used; with fewer each part has a quantile of its own."""

_IF_SKEWED = "; the runs decide the width: if their values are skewed, it holds the true value in 0.75 to 0.93 of cases"

ONE_CHECKPOINT = "one checkpoint says nothing of how training runs vary"


@dataclass(frozen=True, slots=True, eq=False)
class TwoWay:
    """Parts of the variance of a mean over J training runs and G chains, shape (D,) each.

    Attributes
    ----------
    runs : ndarray of float64
        (Variance of the runs' means)/J. Holds the interaction once.
    chains : ndarray of float64
        (Variance of the chains' means)/G. Holds the interaction once. NaN where the mean is not finite.
    interaction : ndarray of float64
        (Interaction mean square)/(JG).
    n_runs, n_chains : int
        J and G.
    """

    runs: Array
    chains: Array
    interaction: Array
    n_runs: int
    n_chains: int

    @property
    def variance(self) -> Array:
        """runs + chains − interaction, and no less than either of the first two."""
        total = self.runs + self.chains - self.interaction
        return np.maximum(total, np.maximum(self.runs, self.chains))


def two_way(checkpoints: Sequence[Moments], average: Moments) -> TwoWay:
    """Estimate the parts of the variance; parameters and errors as for :func:`two_way_intervals`.

    Raises
    ------
    InputError
        If there are fewer than two checkpoints, or the moments are not of the same chains and coordinates.
    """
    if len(checkpoints) < 2:
        raise InputError("parts of variance need at least 2 checkpoints")
    _check_alike(checkpoints, average)
    n_runs, n_chains = len(checkpoints), average.count
    within = np.sum([one.variance for one in checkpoints], axis=0) - n_runs * average.variance
    return TwoWay(
        np.var([one.centre for one in checkpoints], axis=0, ddof=1) / n_runs,
        average.variance / n_chains,
        np.maximum(within, 0.0) / (n_runs - 1) / (n_runs * n_chains),
        n_runs,
        n_chains,
    )


def combined_margin(
    parts: Sequence[tuple[ArrayLike, float]], variance: ArrayLike, *, level: float
) -> tuple[Array, Array]:
    """Return the half-width of an interval whose variance is a sum of estimated parts, and its degrees of freedom.

    Parameters
    ----------
    parts : sequence of (array_like of float, float)
        Each part of the variance, shape (D,), and its degrees of freedom ≥ 1. A part that is taken off counts too:
        only its square matters.
    variance : array_like of float, shape (D,)
        Their sum.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    margin, degrees : ndarray of float64, shape (D,)
        Degrees are variance²/Σ part²/degrees (Satterthwaite 1946), no fewer than the fewest of a part. A variance
        of 0 has margin 0 and NaN degrees.

    Examples
    --------
    >>> margin, degrees = combined_margin([(1.0, 4), (1.0, 4)], 2.0, level=0.95)
    >>> float(degrees), round(float(margin), 4)  # t_8·√2
    (8.0, 3.2612)
    """
    variance = np.asarray(variance, dtype=np.float64)
    spread = np.sum([np.asarray(part, dtype=np.float64) ** 2 / freedom for part, freedom in parts], axis=0)
    degrees = np.full(variance.shape, np.nan)
    np.divide(variance**2, spread, out=degrees, where=spread > 0)
    degrees = np.maximum(degrees, min(freedom for _, freedom in parts))
    quantile = stdtrit(degrees, 0.5 + 0.5 * level)
    return np.where(variance == 0, 0.0, quantile * np.sqrt(variance)), degrees


def two_way_intervals(
    checkpoints: Sequence[Moments], average: Moments, *, level: float = 0.95, undefined: str = ""
) -> Intervals:
    """Return the interval of the recipe's mean, clustered on training seeds and on chains.

    Parameters
    ----------
    checkpoints : sequence of J Moments
        Of one value per chain, for each checkpoint on the same G chains.
    average : Moments
        Of the average over checkpoints of each chain's values.
    level : float
        Confidence level in (0, 1).
    undefined : str
        Why values are NaN, for the notes.

    Returns
    -------
    Intervals
        `estimate` is the mean over checkpoints and chains; the notes say what the interval rests on. With one
        checkpoint NaN with the reason.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1, there is no checkpoint, or the moments are not of the same
        chains and coordinates.

    Notes
    -----
    Two-way layout without replication, x_jg = μ + seed_j + chain_g + interaction_jg. The variance of the mean
    is estimated by (variance of the seeds' means)/J + (variance of the chains' means)/G − (interaction mean
    square)/(JG), each of the first two holding the interaction once (Cameron, Gelbach & Miller 2011), and is
    taken no smaller than either of the first two. Degrees of freedom: those of Satterthwaite (1946) from the three.

    With fewer than 5 runs Satterthwaite's degrees are themselves hardly known: where runs matter, such an interval
    covers 0.88 for 0.95 at J = 2 and 0.92 at J = 3 (simulated with normal effects, G = 50 and 200; from J = 5 on 0.94
    to 0.98). There the margin is √(t²_{J−1}·A + t²_{G−1}·(B − C)), A, B and C the three parts, which covers 0.95 to
    0.99 whichever part dominates (Banerjee 1960).

    The runs' effects are taken for normal. If they are skewed, no such interval from few runs covers. Simulated with
    J = 3 to 10 runs and G = 200 chains, where the runs decide the width: 0.93 to 0.98 for regrets that are nearly
    linear in what differs between the runs, 0.87 to 0.93 for a skewness of about 2, and 0.75 to 0.85 for runs that
    scatter around the best rule, since each excess is then quadratic. The note says so where the runs are more than
    half of the variance.

    Examples
    --------
    >>> chains = np.array([[1.0], [2.0], [3.0]])
    >>> runs = [Moments.of(chains - 0.5), Moments.of(chains + 0.5)]
    >>> round(float(two_way_intervals(runs, Moments.of(chains)).se[0] ** 2), 6)  # 1/4 + 1/3
    0.583333
    """
    level = probability_level(level)
    if not checkpoints:
        raise InputError("no checkpoints: give the moments of at least one")
    _check_alike(checkpoints, average)
    n_runs, n_chains = len(checkpoints), average.count
    estimate, reasons = average.mean, moment_notes(average, undefined)
    if n_runs < 2 or n_chains < 2:
        nothing = np.full(average.size, np.nan)
        why = ONE_CHECKPOINT if n_runs < 2 else ""
        return Intervals(estimate, nothing, nothing, nothing, n_chains, tuple(note or why for note in reasons))
    parts = two_way(checkpoints, average)
    variance = parts.variance
    what = f"two-way over {n_runs} training runs and {n_chains:,} chains"
    if n_runs < SATTERTHWAITE_FROM:
        chains_alone = np.maximum(parts.chains - parts.interaction, 0.0)
        quantile = (t_quantile(0.5 + 0.5 * level, n_runs - 1), t_quantile(0.5 + 0.5 * level, n_chains - 1))
        margin = np.sqrt(quantile[0] ** 2 * parts.runs + quantile[1] ** 2 * chains_alone)
        few = f"{n_runs - 1} degree{'s' if n_runs > 2 else ''} of freedom"
        basis = [f"{what}, t with {few} for the runs and {n_chains - 1:,} for the chains"] * average.size
    else:
        freedom = (n_runs - 1.0, n_chains - 1.0)
        sources = [(parts.runs, freedom[0]), (parts.chains, freedom[1]), (parts.interaction, freedom[0] * freedom[1])]
        margin, degrees = combined_margin(sources, variance, level=level)
        basis = [
            f"{what}, t with {df:.3g} degrees of freedom (Satterthwaite)" if np.isfinite(df) else what for df in degrees
        ]
    centre = np.where(np.isfinite(estimate), estimate, np.nan)
    decided = parts.runs > 0.5 * variance
    notes = tuple(
        why or how + (_IF_SKEWED if by_runs else "") for why, how, by_runs in zip(reasons, basis, decided, strict=True)
    )
    return Intervals(estimate, np.sqrt(variance), centre - margin, centre + margin, n_chains, notes)


def _check_alike(checkpoints: Sequence[Moments], average: Moments) -> None:
    for one in checkpoints:
        if one.count != average.count or one.size != average.size:
            raise InputError("checkpoints and their average must have the same chains and coordinates")
