"""Bias and variance of an estimator's predictions at each context length, in squared error.

In a cell (chain r, context length n, current token v) of m ≥ 2 sequences, with p̄ the mean and s² the unbiased
trace of the covariance of the predictions: variance = s² and bias² = Σ_w (p̄_w − P_vw)² − s²/m. Both are
unbiased, so that bias² may come out negative and is never clipped; their sum is the cell's mean squared error
exactly. Cells are integrated over v with the weights of :class:`icl_estimators.inference.cells.Cells`.

The estimand is conditional on t_n = v, which says something about the path: even relative frequencies are
biased given t_n = v (a chain that is in v often came from v).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference.cells import Cells

__all__ = ["BiasVariance", "bias_variance"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BiasVariance:
    """Per-chain values at each context length, shape (R, T) each.

    Attributes
    ----------
    bias_squared, variance, mse : ndarray of float64
        bias_squared + variance = mse to rounding, though each is computed for itself.
    split_weight : ndarray of float64
        Share of sequences in cells with m ≥ 2: what the other three rest on.
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
