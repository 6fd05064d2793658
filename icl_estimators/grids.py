"""The same comparison over a grid of settings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_estimators.api import compare
from icl_estimators.engine.running import Progress
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.study import DEFAULTS
from icl_estimators.validation import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["grid"]

_ONE_VALUE = frozenset({"estimators", "checkpoints", "keep", "reference", "device"})
"""Options whose lists are one value."""


def grid(
    estimators: Iterable[str | Estimator] | str | None = None,
    *,
    table: str = "risk",
    jobs: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Run :func:`icl_estimators.compare` for every combination of settings, and return one long table.

    Parameters
    ----------
    estimators : iterable of str or Estimator, or str, optional
        As for :func:`icl_estimators.compare`, the same in every cell. A spec is made anew for each K. Of the default
        list, those that do not take a K are left out there, with a warning.
    table : str
        Which table of each comparison is returned.
    jobs, progress
        As for :func:`icl_estimators.compare`. What is reported begins with the number of the cell.
    **options
        As for :func:`icl_estimators.compare`. Any number or word may be a list of them: `states`, `concentration`,
        `length`, `start`, `chains`, `sequences_per_chain`, `seed`, …

    Returns
    -------
    DataFrame
        The settings that vary in the first columns, in the order given, then the columns of the table.

    Raises
    ------
    InputError
        If a list is empty or has a value twice, the table is in no cell, a setting has the name of a column, or as
        :func:`icl_estimators.compare`; the cell is named.
    TypeError
        If there is no such option.

    Examples
    --------
    >>> found = grid("add-one,unigram", states=[2, 3], length=[2, 4], chains=20, decomposition_chains=0)
    >>> found[["states", "length"]].drop_duplicates().values.tolist()
    [[2, 2], [2, 4], [3, 2], [3, 4]]
    """
    import pandas as pd

    unknown = sorted(options.keys() - DEFAULTS.keys())
    if unknown:
        raise TypeError(f"{unknown[0]!r} is not an option of a comparison: choose from {', '.join(sorted(DEFAULTS))}")
    varied = {name: _values(name, value) for name, value in options.items() if _is_list(name, value)}
    fixed = {name: value for name, value in options.items() if name not in varied}
    rules = estimators if estimators is None or isinstance(estimators, str) else list(estimators)
    cells = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    frames = []
    for number, cell in enumerate(cells, start=1):
        named = ", ".join(f"{name} = {value}" for name, value in cell.items())
        try:
            result = compare(rules, jobs=jobs, progress=_numbered(progress, number, len(cells)), **fixed, **cell)
        except InputError as error:
            if not cell:
                raise
            raise type(error)(f"{named}: {error}") from error
        if table not in result.tables:
            raise InputError(
                f"{named or 'the comparison'} has no table {table!r}: choose from {', '.join(result.tables)}"
            )
        frame = result.tables[table].frame()
        for place, (name, value) in enumerate(cell.items()):
            if name in frame:
                raise InputError(f"{table} has a column {name} of its own: vary something else, or take another table")
            frame.insert(place, name, value)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _is_list(name: str, value: object) -> bool:
    return name not in _ONE_VALUE and isinstance(value, (list, tuple, range, np.ndarray))


def _values(name: str, values: Iterable[Any]) -> list[Any]:
    found = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not found:
        raise InputError(f"{name} has no value: give one or more")
    twice = next((value for value in found if found.count(value) > 1), None)
    if twice is not None:
        raise InputError(f"{name} has {twice} twice: give each value once")
    return found


def _numbered(progress: Progress | None, number: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda what, done, of: progress(f"{number} of {total}, {what}", done, of)
