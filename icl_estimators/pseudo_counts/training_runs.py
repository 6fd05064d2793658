"""Pseudo-counts of several training runs of one recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from icl_estimators.inference.intervals.two_way import TwoWay
from icl_estimators.notes import Code, Note
from icl_estimators.pseudo_counts.fit import PseudoCount
from icl_estimators.validation import InputError, probability_level

__all__ = ["SeedSpread", "pseudo_count_seeds"]


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """What a recipe's pseudo-count is, and how much its training runs differ.

    Attributes
    ----------
    estimate : float
        Geometric mean of the runs' α̂.
    se, low, high : float
        Training runs and chains both as samples, symmetric on log α.
    sd_log, sd_se, sd_low, sd_high : float
        Standard deviation of log α̂ between runs, with the standard error and χ² interval of normal runs.
    note : str
    """

    estimate: float
    se: float
    low: float
    high: float
    sd_log: float
    sd_se: float
    sd_low: float
    sd_high: float
    note: str


def pseudo_count_seeds(runs: Sequence[PseudoCount], pooled: PseudoCount, *, level: float = 0.95) -> SeedSpread:
    """Combine the fits of J training runs on the same chains.

    Parameters
    ----------
    runs : sequence of PseudoCount
        One for each training run.
    pooled : PseudoCount
        Of their pooled objective, for how much the chains contribute.
    level : float
        Confidence level in (0, 1).

    Raises
    ------
    InputError
        If `level` is not strictly between 0 and 1, or there are fewer than 2 runs.

    Notes
    -----
    Var = s²/J + (standard error of the pooled log α̂ over chains)², with s the standard deviation of log α̂ between
    runs. Chains are drawn once for all runs, so what they share is in the second term and what is each run's own in
    the first; the interaction is in both, which is conservative. Degrees of freedom, and what is used in their
    place with few runs, as in :func:`~icl_estimators.inference.intervals.two_way.two_way_intervals`.

    Examples
    --------
    >>> from icl_estimators.pseudo_counts import CountStatistics, PseudoCountMoments, fit_pseudo_count
    >>> def after_one_visit(p):  # p on what was seen, in both of two chains
    ...     mass, number = np.array([[1 - p, p]] * 2), np.ones((2, 1))
    ...     statistics = CountStatistics(mass, number, np.full(2, -0.5), np.array([1]), 2)
    ...     return fit_pseudo_count(PseudoCountMoments.of(statistics))
    >>> spread = pseudo_count_seeds([after_one_visit(0.8), after_one_visit(0.6)], after_one_visit(0.7))
    >>> round(spread.estimate, 6), round(spread.sd_log, 6)  # of 1/3 and 2
    (0.816497, 1.266965)
    """
    level = probability_level(level)
    n_runs = len(runs)
    if n_runs < 2:
        raise InputError("between-seed spread needs at least 2 training runs")
    alphas = np.array([run.estimate for run in runs])
    odd = ~(np.isfinite(alphas) & (alphas > 0))
    if odd.any():
        note = Note(Code.ODD_RUNS, count=odd.sum(), runs=n_runs)
        return SeedSpread(*(np.nan,) * 8, note=note)
    logs = np.log(alphas)
    centre, sd = float(logs.mean()), float(logs.std(ddof=1))
    parts = TwoWay(np.asarray(sd**2 / n_runs), np.asarray(pooled.se_log**2), np.zeros(()), n_runs, pooled.n_chains)
    se_log = float(np.sqrt(parts.variance))
    margin, degrees = map(float, parts.margin(level))
    basis = Note(Code.TRAINING_RUNS, runs=n_runs)
    if np.isfinite(degrees):
        basis = Note(Code.WITH_T_OF_RUNS, basis=basis, freedom=degrees)
    tail = 0.5 * (1.0 - level)
    freedom = n_runs - 1
    low, high = (sd * float(np.sqrt(freedom / chdtri(freedom, share))) for share in (tail, 1.0 - tail))
    alpha = float(np.exp(centre))
    return SeedSpread(
        alpha,
        alpha * se_log,
        float(np.exp(centre - margin)),
        float(np.exp(centre + margin)),
        sd,
        sd / float(np.sqrt(2.0 * freedom)),
        low,
        high,
        basis,
    )
