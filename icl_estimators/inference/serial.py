"""The mean of one long series whose values depend on each other: its standard error, and a bootstrap beside it.

For a series of differences of losses the first is the test of Diebold & Mariano (1995).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError, positive_int

__all__ = ["block_bootstrap", "block_length", "long_run_covariance", "newey_west_lag"]

Array = NDArray[np.float64]

BOOTSTRAP_DRAWS = 4000
_FEWEST_DRAWS, _MOST_BLOCKS = 1000, 10_000_000  # of series so long that 4,000 draws would take many seconds
_CHUNK = 2_000_000  # block sums that are drawn at once


def newey_west_lag(count: int) -> int:
    """Return ⌊4(n/100)^(2/9)⌋, at most n − 1: how many lags Newey & West (1994) take before any look at the data.

    Examples
    --------
    >>> newey_west_lag(100), newey_west_lag(731), newey_west_lag(1)
    (4, 6, 0)
    """
    return min(math.floor(4.0 * (count / 100.0) ** (2.0 / 9.0)), count - 1)


def long_run_covariance(values: Array, lag: int) -> Array:
    """Return the covariance of the means of N series, by Newey & West (1987) with Bartlett weights 1 − l/(lag + 1).

    Parameters
    ----------
    values : ndarray of float64, shape (n, N)
        Finite.
    lag : int
        From 0 to n − 1. At 0 it is the classical covariance, with the divisor n(n − 1); above, as is usual, the
        autocovariances have the divisor n, and none corrects for the estimated mean.

    Returns
    -------
    ndarray of float64, shape (N, N)

    Raises
    ------
    InputError
        If there are fewer than two values, one is not finite, or the lag is out of its range.

    Examples
    --------
    >>> long_run_covariance(np.array([[1.0], [2.0], [4.0], [5.0]]), 0).round(4).tolist()
    [[0.8333]]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or len(array) < 2 or not np.isfinite(array).all():
        raise InputError(f"a series needs two finite values or more, in an array (n, N), not {array.shape}")
    lag = positive_int(lag, "lag", at_least=0)
    count = len(array)
    if lag >= count:
        raise InputError(f"{count} values have no autocovariance at lag {lag}: the lag must be below {count}")
    deviations = array - array[0]
    deviations -= deviations.mean(axis=0)
    if lag == 0:
        return np.asarray(deviations.T @ deviations / (count * (count - 1.0)))
    from statsmodels.stats.sandwich_covariance import S_hac_simple  # statsmodels is slow to import

    return np.asarray(S_hac_simple(deviations, nlags=lag), dtype=np.float64) / float(count) ** 2


def block_length(count: int) -> int:
    """Return ⌈n^(1/3)⌉, the order of the block length that is best for a variance (Hall, Horowitz & Jing 1995).

    Examples
    --------
    >>> block_length(1000), block_length(731), block_length(2)
    (10, 10, 2)
    """
    return math.ceil(round(count ** (1.0 / 3.0), 9))


def block_bootstrap(values: Array, *, draws: int | None = None, seed: int = 0) -> Array:
    """Return draws of the error of the means of N series, by the moving-block bootstrap (Künsch 1989).

    Parameters
    ----------
    values : ndarray of float64, shape (n, N)
        Finite. All series are resampled together.
    draws : int, optional
        B; by default 4,000, and down to 1,000 for series of more than about 100,000 values.
    seed : int
        The same seed gives the same blocks.

    Returns
    -------
    ndarray of float64, shape (B, N)
        Means of ⌈n/l⌉ blocks of l = :func:`block_length` values each, less their expectation: values near the ends
        lie in fewer blocks, so that this is not quite the series' own mean (Lahiri 2003).

    Raises
    ------
    InputError
        If there are fewer than two values, one is not finite, `draws` is below 1 or `seed` below 0.

    Examples
    --------
    >>> errors = block_bootstrap(np.random.default_rng(0).normal(size=(400, 1)))
    >>> errors.shape, round(float(errors.std()), 2)
    ((4000, 1), 0.05)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or len(array) < 2 or not np.isfinite(array).all():
        raise InputError(f"a series needs two finite values or more, in an array (n, N), not {array.shape}")
    n_blocks = -(-len(array) // block_length(len(array)))
    if draws is None:
        draws = min(BOOTSTRAP_DRAWS, max(_FEWEST_DRAWS, _MOST_BLOCKS // n_blocks))
    draws = positive_int(draws, "draws")
    seed = positive_int(seed, "seed", at_least=0)
    count, size = array.shape
    length = block_length(count)
    deviations = array - array.mean(axis=0)
    sums = np.concatenate([np.zeros((1, size)), np.cumsum(deviations, axis=0)])
    means = (sums[length:] - sums[:-length]) / length  # of every block
    means -= means.mean(axis=0)
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    at_once = max(1, _CHUNK // (n_blocks * size))
    parts = []
    for first in range(0, draws, at_once):
        starts = rng.integers(0, len(means), size=(min(at_once, draws - first), n_blocks))
        parts.append(means[starts].mean(axis=1))
    return np.concatenate(parts)
