"""How much of an estimator's error is the training run's: J checkpoints on the same sequences.

The training run is conditioned on first. In a cell, with p̄_jw and s²_j the mean and the unbiased trace of
covariance of checkpoint j over the m sequences:

- prompt variance = mean_j s²_j;
- training variance = Σ_w var_j(p̄_jw) − σ²_I/m, with σ²_I the two-way (sequence × checkpoint) residual sum of
squares over
  (m − 1)(J − 1): the spread of means over m shared sequences holds that much of the interaction;
- bias² = mean_j bias²_j − training variance, the squared bias of the recipe.

The three add up to the mean over checkpoints of the mean squared error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from icl_estimators.inference.bias_variance import cell_split
from icl_estimators.inference.cells import Cells
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError

__all__ = ["TrainingVariance", "training_variance"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingVariance:
    """Per-chain values at each context length, shape (R, T) each.

    Attributes
    ----------
    bias_squared, variance, training_variance, mse : ndarray of float64
        bias_squared + variance + training_variance = mse to rounding; `variance` is the prompt variance. All
        three parts are unbiased: training variance and bias² may come out negative, and are not clipped.
    split_weight : ndarray of float64
        Share of sequences in cells with m ≥ 2.
    bias_squared_runs, training_variance_runs : ndarray of float64, shape (J, R, T)
        Jackknife pseudo-values, J·(value) − (J − 1)·(value without run j): their mean over the runs is the value, their
        spread over the runs says how much the runs decide it. No runs (J = 0) if there are fewer than three.
    note : str
        Why values are NaN (S = 1, or one checkpoint); empty otherwise.
    """

    bias_squared: Array
    variance: Array
    training_variance: Array
    mse: Array
    split_weight: Array
    bias_squared_runs: Array
    training_variance_runs: Array
    note: str


def training_variance(cells: Cells, predictions: Sequence[Array] | Array) -> TrainingVariance:
    """Split the squared error of a training recipe into bias², prompt variance and training variance.

    Parameters
    ----------
    cells : Cells
    predictions : sequence of J ndarrays of float64, shape (R, S, T, K) or (R·S, T, K) each
        One for each checkpoint, on the same sequences.

    Returns
    -------
    TrainingVariance
        With J = 1 everything but `split_weight` is NaN, with the reason.

    Raises
    ------
    InputError
        If there is no checkpoint, or shapes do not fit the cells.
    """
    n_checkpoints = len(predictions)
    if n_checkpoints < 1:
        raise InputError("no checkpoints: give the predictions of at least one, better of ten")
    means, biases, withins = [], [], []
    mse = np.zeros(cells.shape)
    total_deviation = np.zeros((cells.transition.shape[-1], len(cells.index)))
    for checkpoint in predictions:
        columns = cells.by_state(checkpoint)
        split = cell_split(cells, columns)
        biases.append(split.bias_squared)
        withins.append(split.variance)
        mse += split.mse / n_checkpoints
        means.append(split.mean)
        for state, column in enumerate(columns):
            total_deviation[state] += column - cells.spread(split.mean[state])
    split_weight = cells.split_weight if cells.n_sequences > 1 else np.full(cells.shape[:2], np.nan)
    no_runs = np.empty((0, *cells.shape[:2]))
    if n_checkpoints < 2 or cells.note:
        nothing = np.full(cells.shape[:2], np.nan)
        note = cells.note or Note(Code.ONE_CHECKPOINT)
        return TrainingVariance(nothing, nothing, nothing, nothing, split_weight, no_runs, no_runs, note)
    within, bias = np.mean(withins, axis=0), np.mean(biases, axis=0)
    training = _between(cells, np.stack(means), within, total_deviation)
    result = TrainingVariance(
        cells.integrate(bias - training),
        cells.integrate(within),
        cells.integrate(training),
        cells.integrate(mse),
        split_weight,
        no_runs,
        no_runs,
        "",
    )
    if n_checkpoints < 3:
        return result
    bias_runs, training_runs = np.empty((2, n_checkpoints, *cells.shape[:2]))
    for left_out, checkpoint in enumerate(predictions):
        rest = [j for j in range(n_checkpoints) if j != left_out]
        deviation = total_deviation.copy()
        for state, column in enumerate(cells.by_state(checkpoint)):
            deviation[state] -= column - cells.spread(means[left_out][state])
        within = np.mean([withins[j] for j in rest], axis=0)
        without = _between(cells, np.stack([means[j] for j in rest]), within, deviation)
        training_without = cells.integrate(without)
        bias_without = cells.integrate(np.mean([biases[j] for j in rest], axis=0) - without)
        training_runs[left_out] = n_checkpoints * result.training_variance - (n_checkpoints - 1) * training_without
        bias_runs[left_out] = n_checkpoints * result.bias_squared - (n_checkpoints - 1) * bias_without
    return replace(result, bias_squared_runs=bias_runs, training_variance_runs=training_runs)


def _between(cells: Cells, means: Array, within: Array, total_deviation: Array) -> Array:
    """Return Σ_w var_j(p̄_jw) − σ²_I/m of each cell, shape (R, T, K).

    `means` has shape (J, K, R, T, K), `within` is mean_j s²_j, `total_deviation` Σ_j of the deviations from the cell's
    mean, shape (K, R·S·T).
    """
    n_checkpoints, size = len(means), np.maximum(cells.size, 1)
    # Σ_ij |d_ij − d̄_i|² = Σ_ij |d_ij|² − J Σ_i |d̄_i|², d the deviations from the checkpoint's own cell mean.
    shared = cells.sums((total_deviation**2).sum(axis=0)) / n_checkpoints**2 / np.maximum(size - 1, 1)
    interaction = np.maximum(within - shared, 0.0) * (n_checkpoints / (n_checkpoints - 1))
    return np.asarray(means.var(axis=0, ddof=1).sum(axis=0) - interaction / size)
