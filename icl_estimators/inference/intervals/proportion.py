"""Intervals for a share of sequences, such as P(KL = inf), that keep a width at 0 and at 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from icl_estimators.inference.intervals.mean import Intervals, moment_notes
from icl_estimators.inference.moments import Moments
from icl_estimators.validation import positive_int, probability_level

__all__ = ["proportion_intervals", "wilson_limits"]

Array = NDArray[np.float64]


def wilson_limits(proportion: ArrayLike, n: ArrayLike, *, level: float = 0.95) -> tuple[Array, Array]:
    """Return Wilson's score limits for a proportion of `n` independent draws.

    Parameters
    ----------
    proportion : array_like of float, shape (D,)
    n : array_like of float, shape (D,)
        Number of draws, possibly an effective one that is not whole.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray of float64, shape (D,)

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1.

    Notes
    -----
    Wilson (1927): the proportions p with |p̂ − p| ≤ z √(p(1 − p)/n).

    Examples
    --------
    >>> low, high = wilson_limits(0.0, 100)
    >>> float(low), round(float(high), 6)
    (0.0, 0.036993)
    """
    z2 = float(ndtri(0.5 + 0.5 * probability_level(level))) ** 2
    p, n = np.asarray(proportion, dtype=np.float64), np.asarray(n, dtype=np.float64)
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    margin = np.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    # Exact at the ends, where centre and margin agree except for rounding.
    low = np.where(p <= 0, 0.0, np.maximum(centre - margin, 0.0))
    high = np.where(p >= 1, 1.0, np.minimum(centre + margin, 1.0))
    return np.where(np.isnan(p), np.nan, low), np.where(np.isnan(p), np.nan, high)


def proportion_intervals(
    moments: Moments, *, sequences_per_chain: int, averaged: ArrayLike = False, level: float = 0.95
) -> Intervals:
    """Return Wilson intervals for shares, with the effective number of sequences that the chains' spread implies.

    Parameters
    ----------
    moments : Moments
        Of each chain's share of its S sequences.
    sequences_per_chain : int
        S.
    averaged : array_like of bool, shape (D,) or ()
        Coordinates that are a mean of several shares of the same sequences: over context lengths, or training runs.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    Intervals
        `se` is the clustered standard error, 0 where all chains agree; the interval is never of zero width.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1 or `sequences_per_chain` is below 1.

    Notes
    -----
    S = 1: Wilson's interval with n = G. S > 1: with n = p̂(1 − p̂)/se², the number of independent sequences
    that would have this standard error, at most G·S. At p̂ = 0 or 1 the spread says nothing about n: then n =
    G, as if the sequences of one chain were copies of each other, the least that G chains can be worth.

    A mean of several shares varies less than one share: there n = p̂(1 − p̂)/se² for any S and without a cap, and n = G
    where all chains agree.

    Examples
    --------
    >>> shares = Moments.of(np.zeros((200, 1)))
    >>> interval = proportion_intervals(shares, sequences_per_chain=10)
    >>> float(interval.low[0]), round(float(interval.high[0]), 4)
    (0.0, 0.0188)
    """
    level = probability_level(level)
    sequences = positive_int(sequences_per_chain, "sequences_per_chain")
    estimate, se = moments.mean, moments.standard_error
    n_chains = float(moments.count)
    mean_of_shares = np.broadcast_to(np.asarray(averaged, dtype=bool), estimate.shape)
    spread = estimate * (1.0 - estimate)
    with np.errstate(divide="ignore", invalid="ignore"):
        implied = np.where(spread > 0, spread / se**2, n_chains)
    own = np.where(np.isfinite(implied), implied, n_chains)
    single = np.minimum(implied, n_chains * sequences) if sequences > 1 else np.full(estimate.shape, n_chains)
    effective = np.where(mean_of_shares, own, single)
    low, high = wilson_limits(np.where(np.isnan(se), np.nan, estimate), effective, level=level)
    return Intervals(estimate, se, low, high, moments.count, moment_notes(moments))
