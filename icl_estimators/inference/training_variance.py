"""How much of an estimator's error comes from the training run: J runs on the same sequences.

The training run is conditioned on first. In a cell, with p̄_jw and s²_j the mean and the unbiased trace of
covariance of run j over the m sequences:

- prompt variance = mean_j s²_j;
- training variance = Σ_w var_j(p̄_jw) − σ²_I/m, with σ²_I the two-way (sequence × run) residual sum of squares over
  (m − 1)(J − 1): the spread of means over m shared sequences holds that much of the interaction;
- bias² = mean_j bias²_j − training variance, the squared bias of the recipe.

The three add up to the mean over runs of the mean squared error. The intervals say how
precisely the available runs measure the variation between training runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from icl_estimators.inference.bias_variance import cell_split
from icl_estimators.inference.cells import Cells
from icl_estimators.inference.intervals.mean import Intervals, moment_notes, t_quantile
from icl_estimators.inference.intervals.two_way import TwoWay, two_way, two_way_intervals
from icl_estimators.inference.moments import Moments
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError, probability_level

__all__ = ["TrainingVariance", "squared_bias_intervals", "training_variance", "training_variance_intervals"]

Array = NDArray[np.float64]

_JACKKNIFE_FROM = 4  # below, each leave-one-out variance is that of one pair: its logarithm has no stable spread


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
        Why values are NaN (S = 1, or one run); empty otherwise.
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
        One for each run, on the same sequences.

    Returns
    -------
    TrainingVariance
        With J = 1 everything but `split_weight` is NaN, with the reason.

    Raises
    ------
    InputError
        If there is no run, or shapes do not fit the cells.
    """
    n_runs = len(predictions)
    if n_runs < 1:
        raise InputError("no training runs: give the predictions of at least one, preferably of ten")
    means, biases, withins = [], [], []
    mse = np.zeros(cells.shape)
    total_deviation = np.zeros((cells.transition.shape[-1], len(cells.index)))
    for run in predictions:
        columns = cells.by_state(run)
        split = cell_split(cells, columns)
        biases.append(split.bias_squared)
        withins.append(split.variance)
        mse += split.mse / n_runs
        means.append(split.mean)
        for state, column in enumerate(columns):
            total_deviation[state] += column - cells.spread(split.mean[state])
    split_weight = cells.split_weight if cells.n_sequences > 1 else np.full(cells.shape[:2], np.nan)
    none = np.empty((0, *cells.shape[:2]))
    if n_runs < 2 or cells.note:
        nothing = np.full(cells.shape[:2], np.nan)
        note = cells.note or Note(Code.ONE_CHECKPOINT)
        return TrainingVariance(nothing, nothing, nothing, nothing, split_weight, none, none, note)
    within, bias = np.mean(withins, axis=0), np.mean(biases, axis=0)
    training = _between(cells, np.stack(means), within, total_deviation)
    result = TrainingVariance(
        cells.integrate(bias - training),
        cells.integrate(within),
        cells.integrate(training),
        cells.integrate(mse),
        split_weight,
        none,
        none,
        "",
    )
    if n_runs < 3:
        return result
    bias_runs, training_runs = np.empty((2, n_runs, *cells.shape[:2]))
    for left_out, run in enumerate(predictions):
        rest = [j for j in range(n_runs) if j != left_out]
        deviation = total_deviation.copy()
        for state, column in enumerate(cells.by_state(run)):
            deviation[state] -= column - cells.spread(means[left_out][state])
        within = np.mean([withins[j] for j in rest], axis=0)
        without = _between(cells, np.stack([means[j] for j in rest]), within, deviation)
        training_without = cells.integrate(without)
        bias_without = cells.integrate(np.mean([biases[j] for j in rest], axis=0) - without)
        training_runs[left_out] = n_runs * result.training_variance - (n_runs - 1) * training_without
        bias_runs[left_out] = n_runs * result.bias_squared - (n_runs - 1) * bias_without
    return replace(result, bias_squared_runs=bias_runs, training_variance_runs=training_runs)


def _between(cells: Cells, means: Array, within: Array, total_deviation: Array) -> Array:
    """Return Σ_w var_j(p̄_jw) − σ²_I/m of each cell, shape (R, T, K).

    `means` has shape (J, K, R, T, K), `within` is mean_j s²_j, `total_deviation` Σ_j of the deviations from the cell's
    mean, shape (K, R·S·T).
    """
    n_runs, size = len(means), np.maximum(cells.size, 1)
    # Σ_ij |d_ij − d̄_i|² = Σ_ij |d_ij|² − J Σ_i |d̄_i|², d the deviations from the run's own cell mean.
    shared = cells.sums((total_deviation**2).sum(axis=0)) / n_runs**2 / np.maximum(size - 1, 1)
    interaction = np.maximum(within - shared, 0.0) * (n_runs / (n_runs - 1))
    return np.asarray(means.var(axis=0, ddof=1).sum(axis=0) - interaction / size)


def squared_bias_intervals(pseudo: Sequence[Moments], average: Moments, *, level: float = 0.95) -> Intervals:
    """Return intervals of the recipe's squared bias, for the training runs as well as for the chains.

    Parameters
    ----------
    pseudo : sequence of J Moments
        Of the jackknife's pseudo-values, one per chain, for each training run left out
        (:attr:`TrainingVariance.bias_squared_runs`).
    average : Moments
        Of the chains' values, which are the means of their pseudo-values.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    Intervals
        NaN with the reason from fewer than three runs.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1, or the moments are not of the same chains and coordinates.

    Notes
    -----
    The estimate is a U-statistic of the runs: a mean over pairs of runs. The spread of pseudo-values over runs is the
    jackknife's variance (Arvesen 1969), and pseudo-values by chain are a two-way layout like any other.
    """
    if len(pseudo) < 3:
        return _too_few(average, probability_level(level))
    return two_way_intervals(pseudo, average, level=level)


def training_variance_intervals(pseudo: Sequence[Moments], average: Moments, *, level: float = 0.95) -> Intervals:
    """Return intervals of the variance between training runs.

    Parameters
    ----------
    pseudo, average, level
        As for :func:`squared_bias_intervals`, of training variance.

    Returns
    -------
    Intervals
        NaN with the reason from fewer than three runs. `se` is the two-way jackknife's.

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1, or the moments are not of the same chains and coordinates.

    Notes
    -----
    A variance from a few runs is skewed: estimate ± t·se covers 0.72 to 0.86 for one normal effect and J = 3 … 10. So
    the runs' part of each limit is a factor: the χ²_{J−1} one, right if the runs differ along one direction and
    normally, or, from four runs on, the jackknife's on the logarithm with t_{J−1} (Miller 1974) where that is wider,
    as it is for heavy tails. If the runs differ along several directions, the χ² factors are wider than they need be.
    The chains' part, t_{G−1} times its standard error, is added in squares to the runs' distance: at the lower limit to
    that from the estimate (MOVER, Zou & Donner 2008), at the upper to that which the limit itself would have, since the
    runs' part grows with the truth. The estimate is unbiased and the lower limit may be below 0.

    Examples
    --------
    >>> chains = np.full((3, 1), 2.0)
    >>> runs = [Moments.of(chains - 1.0), Moments.of(chains), Moments.of(chains + 1.0)]
    >>> found = training_variance_intervals(runs, Moments.of(chains))
    >>> float(found.low[0].round(4)), float(found.high[0].round(2))  # 4/χ²_2
    (0.5422, 79.0)
    """
    level = probability_level(level)
    n_runs, n_chains = len(pseudo), average.count
    if n_runs < 3:
        return _too_few(average, level)
    reasons = moment_notes(average)
    if n_chains < 2:
        return two_way_intervals(pseudo, average, level=level)
    parts = two_way(pseudo, average)
    estimate = average.mean
    down, up = _factors(pseudo, average, parts, level)
    size = np.where(np.isfinite(estimate), np.maximum(estimate, 0.0), np.nan)
    chains = t_quantile(0.5 + 0.5 * level, n_chains - 1) * np.sqrt(np.maximum(parts.chains - parts.interaction, 0.0))
    low = estimate - np.hypot(size * (1.0 - down), chains)
    # The largest value x from which the estimate is no further below than hypot(x·(1 − 1/up), chains).
    share = (2.0 - 1.0 / up) / up
    with np.errstate(divide="ignore", invalid="ignore"):
        high = (estimate + np.sqrt((1.0 - share) * estimate**2 + share * chains**2)) / share
    high = np.fmax(high, estimate + chains)
    what = Note(Code.SPREAD_OF_RUNS, runs=n_runs, chains=n_chains)
    return Intervals(estimate, np.sqrt(parts.variance), low, high, n_chains, tuple(note or what for note in reasons))


def _factors(pseudo: Sequence[Moments], average: Moments, parts: TwoWay, level: float) -> tuple[Array, Array]:
    """Return what the limits from the runs are times the estimate, (lower, upper)."""
    freedom = parts.n_runs - 1
    tail = 0.5 * (1.0 - level)
    down = np.full(average.size, freedom / float(chdtri(freedom, tail)))
    up = np.full(average.size, freedom / float(chdtri(freedom, 1.0 - tail)))
    if parts.n_runs < _JACKKNIFE_FROM:
        return down, up
    whole = average.centre
    without = np.stack([(parts.n_runs * whole - one.centre) / freedom for one in pseudo])
    known = (whole > 0) & (without > 0).all(axis=0)
    logs = np.log(without, out=np.zeros_like(without), where=known)
    margin = t_quantile(1.0 - tail, freedom) * np.sqrt(freedom**2 * logs.var(axis=0, ddof=1) / parts.n_runs)
    return np.minimum(down, np.exp(-margin)), np.maximum(up, np.exp(margin))


def _too_few(average: Moments, level: float) -> Intervals:
    nothing = np.full(average.size, np.nan)
    notes = tuple(note or Note(Code.TWO_TRAINING_RUNS) for note in moment_notes(average))
    return Intervals(average.mean, nothing, nothing, nothing, average.count, notes)
