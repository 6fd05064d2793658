"""Bias and variance of an estimator's predictions at each context length, in squared error and in KL.

In a cell (chain r, context length n, current token v) of m ≥ 2 sequences, with p̄ the mean and s² the unbiased
trace of the covariance of the predictions: variance = s² and bias² = Σ_w (p̄_w − P_vw)² − s²/m. Both are
unbiased, so that bias² may come out negative and is never clipped; their sum is the cell's mean squared error
exactly. Cells are integrated over v with the weights of :class:`icl_estimators.inference.cells.Cells`.

In KL, after Heskes (1998), Neural Computation 10, 1425–1433: with g_w = mean log p̂_w and Z = Σ_w e^{g_w} in a cell,
p̃ = e^g/Z is the average law in the sense of KL. Mean KL(P‖p̂) = KL(P‖p̃) + (−log Z), bias plus variance, in nats.

The estimand is conditional on t_n = v, which says something about the path: even relative frequencies are
biased given t_n = v (a chain that is in v often came from v).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from icl_estimators.inference.cells import Cells, CellTally

__all__ = ["BiasVariance", "KLBiasVariance", "bias_variance", "cell_split", "kl_bias_variance"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BiasVariance:
    """Per-chain values at each context length, shape (R, T) each.

    Attributes
    ----------
    bias_squared, variance, mse : ndarray of float64
        bias_squared + variance = mse to rounding, though each is computed for itself.
    split_weight : ndarray of float64
        Share of sequences in cells with m ≥ 2: the basis of the other three.
    note : str
        Why all values are NaN (S = 1); empty otherwise.
    """

    bias_squared: Array
    variance: Array
    mse: Array
    split_weight: Array
    note: str


def bias_variance(cells: Cells, predictions: Array) -> BiasVariance:
    """Split the squared error Σ_w (p̂_w − P_vw)² of one estimator into squared bias and variance.

    Parameters
    ----------
    cells : Cells
    predictions : ndarray of float64, shape (R, S, T, K) or (R·S, T, K)

    Returns
    -------
    BiasVariance

    Raises
    ------
    InputError
        If the shape of `predictions` does not fit the cells.

    Examples
    --------
    >>> tokens = np.array([[[0], [0]]])  # one chain, two sequences, one token
    >>> cells = Cells.of(tokens, np.array([[[0.5, 0.5], [0.5, 0.5]]]), np.array([[[1.0, 0.0]]]))
    >>> split = bias_variance(cells, np.array([[[[0.6, 0.4]], [[0.8, 0.2]]]]))
    >>> [round(float(x[0, 0]), 4) for x in (split.bias_squared, split.variance, split.mse)]
    [0.06, 0.04, 0.1]
    """
    split = cell_split(cells, cells.by_state(predictions))
    split_weight = cells.split_weight if cells.n_sequences > 1 else np.full(cells.shape[:2], np.nan)
    return BiasVariance(
        cells.integrate(split.bias_squared),
        cells.integrate(split.variance),
        cells.integrate(split.mse),
        split_weight,
        cells.note,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CellSplit:
    """Bias², variance and mean squared error of each cell, shape (R, T, K), and p̄ state by state, (K, R, T, K)."""

    bias_squared: Array
    variance: Array
    mse: Array
    mean: Array


def cell_split(cells: Cells, columns: Array) -> CellSplit:
    """Split the squared error within each cell; `columns` as :meth:`Cells.by_state` returns them."""
    mean = np.stack([cells.means(column) for column in columns])
    naive = np.zeros(cells.shape)
    deviation, error = np.zeros((2, columns.shape[1]))
    for state, column in enumerate(columns):
        truth = cells.truth(state)
        naive += (mean[state] - truth) ** 2
        deviation += (column - cells.spread(mean[state])) ** 2
        error += (column - cells.spread(truth)) ** 2
    variance = cells.sums(deviation) / np.maximum(cells.size - 1, 1)
    return CellSplit(naive - variance / np.maximum(cells.size, 1), variance, cells.means(error), mean)


@dataclass(frozen=True, slots=True, eq=False)
class KLBiasVariance:
    """Per-chain values at each context length, in nats, shape (R, T) each.

    Attributes
    ----------
    kl_bias_nats, kl_variance_nats, kl_nats : ndarray of float64
        Bias, variance and their sum, the mean KL(P‖p̂). NaN in a chain where a used cell holds a predicted
        probability of 0, and everywhere if S = 1.
    tally : CellTally
        How many cells were used, how many of them held a 0, and the smallest.
    note : str
        Why all values are NaN (S = 1); empty otherwise.
    """

    kl_bias_nats: Array
    kl_variance_nats: Array
    kl_nats: Array
    tally: CellTally
    note: str


def kl_bias_variance(cells: Cells, predictions: Array) -> KLBiasVariance:
    """Split the mean KL(P‖p̂) of one estimator into a bias and a variance part.

    Parameters
    ----------
    cells : Cells
    predictions : ndarray of float64, shape (R, S, T, K) or (R·S, T, K)

    Returns
    -------
    KLBiasVariance

    Raises
    ------
    InputError
        If the shape of `predictions` does not fit the cells.

    Notes
    -----
    The plug-in V = −log Z is biased down when m is small, by about V/m. It is jackknifed, V_J = mV − (m −
    1)·mean_i V_{(−i)}, which leaves a bias of order 1/m² (small from m = 5), and bias = total − V_J. Cells and
    weights are those of the squared error, so that the parts integrate over the same Σ_v π_v(·)_v and add up to
    the KL risk. A larger least m would need weights 1/P(m ≥ 5) that are far larger in rare cells: more noise
    than the bias it saves, which is weighed down by m/S where m is small.

    Examples
    --------
    >>> tokens = np.array([[[0], [0]]])
    >>> cells = Cells.of(tokens, np.array([[[0.5, 0.5], [0.5, 0.5]]]), np.array([[[1.0, 0.0]]]))
    >>> split = kl_bias_variance(cells, np.array([[[[0.8, 0.2]], [[0.5, 0.5]]]]))
    >>> [round(float(x[0, 0]), 6) for x in (split.kl_nats, split.kl_variance_nats)]
    [0.111572, 0.105361]
    """
    columns = cells.by_state(predictions)
    zero = np.any(columns <= 0, axis=0)
    np.log(columns, out=columns, where=columns > 0)  # a zero stays: its cell is left out below
    with_zero = cells.sums(np.asarray(zero, dtype=np.float64)) > 0
    size = np.maximum(cells.size, 1)
    # Without draw i the mean of log p̂_w is g_w + (g_w − log p̂_iw)/(m − 1).
    inverse = 1.0 / np.maximum(size - 1, 1)
    inverse_of_draw = cells.spread(inverse)
    total, z = np.zeros((2, *cells.shape))
    z_without = np.zeros(columns.shape[1])
    for state, logs in enumerate(columns):
        mean = cells.means(logs)
        truth = cells.truth(state)
        total += xlogy(truth, truth) - truth * mean
        z += np.exp(mean)
        z_without += np.exp(cells.spread(mean * (1.0 + inverse)) - logs * inverse_of_draw)
    variance = (size - 1) * cells.means(np.log(z_without)) - size * np.log(z)
    undefined = with_zero & (cells.size >= 2)
    parts = (total - variance, variance, total)
    bias, variance, total = (cells.integrate(np.where(undefined, np.nan, part)) for part in parts)
    return KLBiasVariance(bias, variance, total, CellTally.of(cells, with_zero), cells.note)
