"""Simultaneous bands along context length: one curve, one statement about all its points.

The sup-t band of Montiel Olea & Plagborg-Møller (2019): estimate ± c·se, with c the quantile of max_n |t_n|
under the estimated correlation, t multivariate Student with G − 1 degrees of freedom. It is the narrowest band of
constant standardised width; c lies between the pointwise and the Bonferroni quantile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference.intervals.mean import moment_notes, t_quantile
from icl_estimators.inference.moments import Moments
from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["Band", "largest_t", "simultaneous_band", "sup_t_quantile"]

Array = NDArray[np.float64]

DRAWS = 102_400
"""Draws behind a quantile by default: whole blocks, and enough for a Monte Carlo error below 0.01."""

_BLOCK = 4096  # draws that go through the cache together
_ROWS = 64  # at least so many are drawn, so that curves of different rank share them


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """A simultaneous band over D coordinates.

    Attributes
    ----------
    low, high : ndarray of float64, shape (D,)
        NaN where the mean or its standard error is not a finite number; zero width where the variance is 0.
    critical : float
        The multiple of the standard error; NaN if no coordinate varies.
    n_varying : int
        Coordinates that the band covers simultaneously.
    notes : tuple of str
        Why a limit is NaN.
    """

    low: Array
    high: Array
    critical: float
    n_varying: int
    notes: tuple[str, ...]


def simultaneous_band(moments: Moments, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0) -> Band:
    """Return the sup-t band of the means.

    Parameters
    ----------
    moments : Moments
        With covariances; the coordinates are the points of one curve (leave out a mean over them).
    level : float
        Confidence level in (0, 1).
    draws : int
        Draws behind the quantile, at least 1,000.
    seed : int
        The same seed gives the same draws for every curve, so that bands of different estimators are comparable.

    Returns
    -------
    Band

    Raises
    ------
    InputError
        If the moments keep variances only, `level` is not strictly between 0 and 1, `draws` is below 1,000 or
        `seed` below 0.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=(500, 10))
    >>> band = simultaneous_band(Moments.of(values))
    >>> 2.7 < band.critical < 2.9
    True
    """
    level = probability_level(level)
    if not moments.full:
        raise InputError("a simultaneous band needs covariances: make the moments with full=True")
    mean, se, notes = moments.mean, moments.standard_error, moment_notes(moments)
    # Equal values merge to a variance of exactly 0, values that are equal except for rounding do not.
    with np.errstate(invalid="ignore"):
        varying = np.flatnonzero(np.isfinite(mean) & (se > 4.0 * np.finfo(np.float64).eps * np.abs(mean)))
    critical = np.nan
    if varying.size:
        deviation = np.sqrt(moments.scatter.diagonal()[varying])
        correlation = moments.scatter[np.ix_(varying, varying)] / np.outer(deviation, deviation)
        critical = sup_t_quantile(
            correlation, degrees_of_freedom=moments.count - 1, level=level, draws=draws, seed=seed
        )
    multiple = np.zeros(moments.size)
    multiple[varying] = critical
    margin = multiple * se  # NaN wherever the standard error is
    centre = np.where(np.isfinite(mean), mean, np.nan)
    return Band(centre - margin, centre + margin, critical, varying.size, notes)


def sup_t_quantile(
    correlation: Array, *, degrees_of_freedom: float, level: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> float:
    """Return the `level` quantile of max_n |t_n| for a multivariate t with this correlation.

    Parameters
    ----------
    correlation : ndarray of float64, shape (D, D)
        May be singular (fewer units than coordinates).
    degrees_of_freedom : float
        G − 1; ``inf`` for the normal limit.
    level : float
        Confidence level in (0, 1).
    draws : int
        At least 1,000; the Monte Carlo standard error of the quantile is about 2/√draws at the level 0.95.
    seed : int
        Seed of the draws, at least 0.

    Returns
    -------
    float
        Between the pointwise and the Bonferroni quantile, which bound it for any correlation.

    Raises
    ------
    InputError
        If the matrix is not square and finite, `level` is not strictly between 0 and 1, `degrees_of_freedom` is not
        above 0, `draws` is below 1,000 or `seed` below 0.

    Notes
    -----
    Negative eigenvalues, which only rounding can bring, count as 0. Normal draws are made once in float32 and
    shared by all calls with the same `draws` and `seed`; a call for 100 lengths then costs one matrix product.

    Examples
    --------
    >>> round(sup_t_quantile(np.ones((1, 1)), degrees_of_freedom=np.inf), 6)
    1.959964
    """
    level = probability_level(level)
    draws = positive_int(draws, "draws", at_least=1000)
    seed = positive_int(seed, "seed", at_least=0)
    matrix = np.asarray(correlation, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size or not np.isfinite(matrix).all():
        raise InputError(f"a correlation matrix must be square and finite, not of shape {matrix.shape}")
    if not degrees_of_freedom > 0:
        raise InputError(f"degrees_of_freedom must be above 0, not {degrees_of_freedom!r}")
    size = len(matrix)
    pointwise = t_quantile(0.5 + 0.5 * level, degrees_of_freedom)
    bonferroni = t_quantile(1.0 - 0.5 * (1.0 - level) / size, degrees_of_freedom)
    if size == 1:
        return pointwise
    largest = largest_t(_square_root(matrix), degrees_of_freedom=degrees_of_freedom, draws=draws, seed=seed)
    return float(np.clip(np.quantile(largest, level), pointwise, bonferroni))


def largest_t(
    root: NDArray[np.float32], *, degrees_of_freedom: float, draws: int = DRAWS, seed: int = 0
) -> NDArray[np.float64]:
    """Return draws of max_d |t_d|, t multivariate Student with the correlation LLᵀ.

    Parameters
    ----------
    root : ndarray of float32, shape (D, rank)
        L, its rows of length 1.
    degrees_of_freedom : float
        Above 0; ``inf`` for the normal limit.
    draws : int
    seed : int
        The same seed gives the same draws for any root.

    Returns
    -------
    ndarray of float64, shape (draws,)

    Examples
    --------
    >>> draws = largest_t(np.eye(2, dtype=np.float32), degrees_of_freedom=np.inf)
    >>> round(float((draws > 1.959964).mean()), 2)  # 1 − 0.95²
    0.1
    """
    rows = max(_ROWS, 1 << (root.shape[1] - 1).bit_length())
    blocks = _normal_blocks(rows, -(-draws // _BLOCK), seed)
    maxima = np.empty((len(blocks), _BLOCK), dtype=np.float32)
    work = np.empty((len(root), _BLOCK), dtype=np.float32)
    for normals, row in zip(blocks, maxima, strict=True):
        np.matmul(root, normals[: root.shape[1]], out=work)
        np.abs(work, out=work)
        np.max(work, axis=0, out=row)
    largest = maxima.ravel()[:draws].astype(np.float64)
    if np.isfinite(degrees_of_freedom):
        largest /= _relative_spreads(float(degrees_of_freedom), draws, seed)
    return largest


@lru_cache(maxsize=4)
def _relative_spreads(degrees_of_freedom: float, draws: int, seed: int) -> NDArray[np.float64]:
    """Return draws of √(χ²/degrees of freedom): the same for every curve of a study."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    return np.sqrt(rng.chisquare(degrees_of_freedom, size=draws) / degrees_of_freedom)


def _square_root(correlation: Array) -> NDArray[np.float32]:
    """Return L with LLᵀ = the correlation, shape (D, rank), its rows of length 1."""
    values, vectors = np.linalg.eigh(correlation)
    keep = values > 1e-9 * len(correlation)
    root = vectors[:, keep] * np.sqrt(values[keep])
    root /= np.sqrt((root * root).sum(axis=1, keepdims=True))
    return np.ascontiguousarray(root, dtype=np.float32)


@lru_cache(maxsize=1)
def _normal_blocks(rows: int, n_blocks: int, seed: int) -> tuple[NDArray[np.float32], ...]:
    """Return blocks of standard normals, each (rows, _BLOCK); a block's first rows do not depend on `rows`."""
    children = np.random.SeedSequence(seed, spawn_key=(0,)).spawn(n_blocks)
    generators = (np.random.Generator(np.random.SFC64(child)) for child in children)
    return tuple(rng.standard_normal((rows, _BLOCK), dtype=np.float32) for rng in generators)
