"""Bias and variance in KL, after Heskes (1998), Neural Computation 10, 1425–1433.

In a cell, g_w = mean log p̂_w, Z = Σ_w e^{g_w}, and p̃ = e^g/Z is the average law in the sense of KL: mean KL(P‖p̂) =
KL(P‖p̃) + (−log Z), bias plus variance, in nats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from icl_estimators.inference.cells import Cells, CellTally

__all__ = ["KLBiasVariance", "kl_bias_variance"]

Array = NDArray[np.float64]


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
