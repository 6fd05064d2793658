"""Names of rows that are made from several parts, in one place.

Code that reads a table builds the name again from its parts, which are in other columns and in run.json. No code takes
a name apart.
"""

from __future__ import annotations

__all__ = ["of_folds", "of_pooled", "of_window", "prediction_at_count"]


def prediction_at_count(count: int) -> str:
    """Return the parameter of smoothing.csv that is the mean prediction at n_vw = `count`.

    Examples
    --------
    >>> prediction_at_count(3)
    'prediction_at_count_3'
    """
    return f"prediction_at_count_{count}"


def of_window(estimator: str, window: int) -> str:
    """Return what an estimator is called where it reads only the last `window` tokens of an observed sequence.

    Examples
    --------
    >>> of_window("add-one", 100)
    'add-one:window=100'
    """
    return f"{estimator}:window={window}"


def of_pooled(estimator: str) -> str:
    """Return what an estimator is called where counts carry over from earlier sequences.

    Examples
    --------
    >>> of_pooled("add-one")
    'add-one:pooled'
    """
    return f"{estimator}:pooled"


def of_folds(estimator: str, folds: int) -> str:
    """Return what an estimator is called where it is fitted to the sequences of the other folds.

    Examples
    --------
    >>> of_folds("add-one", 10)
    'add-one:folds=10'
    """
    return f"{estimator}:folds={folds}"
