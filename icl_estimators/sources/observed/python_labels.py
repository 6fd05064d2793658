"""Labels of states from Python objects: their text, and which are no value."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError

__all__ = ["is_no_value", "numbered", "text_of"]


def is_no_value(value: object) -> bool:
    """Say whether an object is None, NaN, NaT or pandas.NA.

    Examples
    --------
    >>> is_no_value(None), is_no_value(float("nan")), is_no_value("NA")
    (True, True, False)
    """
    import pandas as pd

    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(cast(Any, value))))


def text_of(value: object, place: str) -> str:
    """Return the label that an object is.

    Raises
    ------
    InputError
        If it is a number that is not whole, bytes, or holds other objects.

    Examples
    --------
    >>> text_of("007", "x"), text_of(7, "x"), text_of(7.0, "x"), text_of(True, "x")
    ('007', '7', '7', 'True')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        number = float(value)
        if not number.is_integer():
            raise InputError(
                f"{place} has the number {number!r}, and states are labels: divide measurements into a few states, or "
                "give labels as text"
            )
        return str(int(number))
    if isinstance(value, (bytes, list, dict, set, np.ndarray)):
        raise InputError(f"{place} has {value!r:.40}, of type {type(value).__name__}: give labels as text")
    return str(value)


def numbered(values: Any, where: Callable[[int], str]) -> tuple[NDArray[np.int64], list[str], tuple[str, ...] | None]:
    """Number labels in the order in which they are met.

    Parameters
    ----------
    values : ndarray, Series or list, shape (N,)
    where : callable
        From a place in `values` to words for it.

    Returns
    -------
    codes : ndarray of int64, shape (N,)
        −1 where there is no value.
    labels : list of str
    order : tuple of str or None
        The categories of a Categorical.

    Raises
    ------
    InputError
        If a value cannot be a label, or two different values have the same text.
    """
    import pandas as pd

    categories = values.dtype.categories if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype) else None
    if isinstance(values, list):
        kinds = set(map(type, values))
        if not kinds.isdisjoint({bool, np.bool_}) and any(issubclass(kind, numbers.Number) for kind in kinds - {bool}):
            first_truth = next(k for k, value in enumerate(values) if isinstance(value, (bool, np.bool_)))
            raise InputError(
                f"{where(first_truth)} has true or false beside numbers (True equals 1): give labels as text"
            )
        values = pd.Series(values, dtype=object).to_numpy()
    try:
        codes, met = pd.factorize(values)
    except TypeError:
        _refuse_unhashable(values, where)
        raise
    first = np.full(len(met), -1)
    seen, positions = np.unique(codes, return_index=True)
    first[seen[seen >= 0]] = positions[seen >= 0]
    labels = [text_of(value, where(int(k))) for value, k in zip(met.tolist(), first, strict=True)]
    names: dict[str, int] = {}
    for k, label in enumerate(labels):
        if names.setdefault(label, k) != k:
            raise InputError(
                f"{where(int(first[k]))} has {met[k]!r}, and {where(int(first[names[label]]))} has "
                f"{met[names[label]]!r}: both would be the label {label!r}; give labels as text"
            )
    order = None if categories is None else tuple(text_of(value, "the categories") for value in categories)
    return codes.astype(np.int64), labels, order


def _refuse_unhashable(values: Any, where: Callable[[int], str]) -> None:
    for k, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            raise InputError(
                f"{where(k)} has a {type(value).__name__}, which cannot be a label: give labels as text"
            ) from None
