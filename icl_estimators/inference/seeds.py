"""Intervals that speak for a training recipe: training runs and chains are both samples.

The mean over J checkpoints has an interval conditional on them, over chains alone
(:func:`icl_estimators.inference.intervals.mean_intervals` of the checkpoints' average). The one here lets
both vary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icl_estimators.inference.intervals import Intervals, moment_notes, t_quantile
from icl_estimators.inference.moments import Moments
from icl_estimators.validation import InputError, probability_level

__all__ = ["ONE_CHECKPOINT", "two_way_intervals"]

ONE_CHECKPOINT = "one checkpoint says nothing of how training runs vary"


def two_way_intervals(checkpoints: Sequence[Moments], average: Moments, *, level: float = 0.95) -> Intervals:
    """Return the interval of the recipe's mean, clustered on training seeds and on chains.

    Parameters
    ----------
    checkpoints : sequence of J Moments
        Of one value per chain, for each checkpoint on the same G chains.
    average : Moments
        Of the average over checkpoints of each chain's values.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    Intervals
        `estimate` is the mean over checkpoints and chains. With one checkpoint NaN with the reason.

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
    taken no smaller than either of the first two. t_{J−1}: the seeds are few.

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
    for one in checkpoints:
        if one.count != average.count or one.size != average.size:
            raise InputError("checkpoints and their average must have the same chains and coordinates")
    n_seeds, n_chains = len(checkpoints), average.count
    estimate = average.mean
    if n_seeds < 2:
        nothing = np.full(average.size, np.nan)
        notes = tuple(note or ONE_CHECKPOINT for note in moment_notes(average))
        return Intervals(estimate, nothing, nothing, nothing, n_chains, notes)
    between_seeds = np.var([one.centre for one in checkpoints], axis=0, ddof=1) / n_seeds
    between_chains = average.variance / n_chains  # NaN where the average is not finite
    within = np.sum([one.variance for one in checkpoints], axis=0) - n_seeds * average.variance
    interaction = np.maximum(within, 0.0) / (n_seeds - 1) / (n_seeds * n_chains)
    larger = np.maximum(between_seeds, between_chains)
    se = np.sqrt(np.maximum(between_seeds + between_chains - interaction, larger))
    margin = se * t_quantile(0.5 + 0.5 * level, n_seeds - 1)
    centre = np.where(np.isfinite(estimate), estimate, np.nan)
    return Intervals(estimate, se, centre - margin, centre + margin, n_chains, moment_notes(average))
