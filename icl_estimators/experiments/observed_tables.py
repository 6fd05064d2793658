"""The tables of observed sequences: log losses, paired differences from the reference, and all pairs.

Losses are paired by prediction. Whole histories are compared with whole histories and windows with windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.loss_groups import LossGroup
from icl_estimators.experiments.observed import observed_losses_of, risk_row
from icl_estimators.experiments.observed_losses import History
from icl_estimators.experiments.observed_series import cumulative_table, series_table
from icl_estimators.sources import ObservedSequences
from icl_estimators.validation import InputError, probability_level

__all__ = ["observed_tables"]

_KINDS = ("alone", "pooled", "folds")


def observed_tables(
    estimators: Sequence[Estimator],
    data: ObservedSequences,
    *,
    reference: str,
    window: int,
    level: float = 0.95,
    pooled: Sequence[History] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Table]:
    """Return risk.csv, differences.csv, pairs.csv, series.csv and cumulative.csv for observed sequences.

    Parameters
    ----------
    estimators : sequence of Estimator
        With distinct names.
    data : ObservedSequences
    reference : str
        Name of the estimator that the others are compared with, each of their rows with its row of the same kind.
    window : int
        W ≥ 1.
    level : float
        Of intervals.
    pooled, progress
        As for :func:`icl_estimators.experiments.observed.observed_losses_of`.

    Returns
    -------
    dict of str to Table

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    InputError
        If names repeat, the reference is not among them, or `level` is not strictly between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from icl_estimators.estimators import get
    >>> data = ObservedSequences("coin", ("a", "b"), (np.array([0, 1, 1, 0]), np.array([0, 0, 1]), np.array([1, 0])))
    >>> rules = [get("add-one", n_states=2), get("uniform", n_states=2)]
    >>> tables = observed_tables(rules, data, reference="add-one", window=10)
    >>> [len(table.rows) for table in tables.values()]
    [2, 1, 1, 9, 6]
    """
    level = probability_level(level)
    names = [estimator.name for estimator in estimators]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two estimators are called {name}: give each once")
    if reference not in names:
        raise InputError(f"the reference {reference} is not among the estimators: {', '.join(names)}")
    found = observed_losses_of(estimators, data, window=window, pooled=pooled, progress=progress)
    differences: list[tuple[Cell, ...]] = []
    pairs: list[tuple[Cell, ...]] = []
    for kind in sorted({row.group for row in found.rows}, key=lambda group: (_KINDS.index(group[0]), group[1])):
        group = LossGroup.of(found, [row for row in found.rows if row.group == kind], window)
        differences += group.difference_rows(reference, level)
        pairs += group.pair_rows(level)
    return {
        "risk": Table.of("risk", (risk_row(row, found, level) for row in found.rows)),
        "differences": Table.of("differences", differences),
        "pairs": Table.of("pairs", pairs),
        "series": series_table(data),
        "cumulative": cumulative_table(found, reference),
    }
