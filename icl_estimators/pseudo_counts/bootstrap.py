"""The cluster bootstrap of α̂: slow, assumes less, and so a check of the sandwich."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icl_estimators.pseudo_counts.count_statistics import CountStatistics
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.validation import InputError, positive_int

__all__ = ["bootstrap_pseudo_counts"]


def bootstrap_pseudo_counts(
    statistics: CountStatistics, replicates: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw whole chains with replacement and fit α again.

    Parameters
    ----------
    statistics : CountStatistics
        One row for each of G ≥ 2 chains.
    replicates : int
    rng : numpy Generator

    Returns
    -------
    ndarray of float64, shape (replicates,)
        α̂ of each; 0, inf and NaN where a replicate's is.

    Raises
    ------
    InputError
        If `replicates` < 1, or fewer than 2 chains have a prefix in the group.

    Examples
    --------
    >>> from icl_estimators.pseudo_counts import count_statistics
    >>> counts = np.array([[[[0, 0], [1, 0], [1, 1], [2, 1]]], [[[0, 0], [0, 1], [0, 2], [1, 2]]]])
    >>> add_one = (counts + 1.0) / (counts.sum(axis=-1, keepdims=True) + 2.0)
    >>> statistics = count_statistics(add_one, counts, "overall")[0]
    >>> bootstrap_pseudo_counts(statistics, 3, np.random.default_rng(0)).round(9).tolist()
    [1.0, 1.0, 1.0]
    """
    replicates = positive_int(replicates, "replicates")
    rows = statistics.rows[statistics.prefixes.any(axis=1)]
    if len(rows) < 2:
        raise InputError("fewer than 2 chains have such a prefix: there is nothing to draw from")
    times = rng.multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)), size=replicates)
    return np.array(
        [
            AddConstantObjective(sums, statistics.visits, statistics.n_states).minimum().alpha
            for sums in times.astype(np.float64) @ rows
        ]
    )
