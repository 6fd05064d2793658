"""Argument checks that every room may use.

A check either returns the value in its canonical type or raises :class:`InputError` with one line that
says what is wrong, where, and how to fix it. Command lines print that line and exit with status 2.
"""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "InputError",
    "as_tokens",
    "positive_int",
    "positive_real",
    "probability_level",
]


class InputError(ValueError):
    """Input that the user can fix; its text is one line: what is wrong, where, and how to fix it."""


def positive_int(value: SupportsIndex, name: str, *, at_least: int = 1) -> int:
    """Return `value` as an int that is not below `at_least`.

    Raises
    ------
    InputError
        If `value` is not an integer, or is below `at_least`.

    Examples
    --------
    >>> positive_int(3, "length")
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be an integer, not {value!r}") from None
    if isinstance(value, bool) or number < at_least:
        raise InputError(f"{name} must be an integer of at least {at_least}, not {value!r}")
    return number


def positive_real(value: float, name: str) -> float:
    """Return `value` as a finite float above 0.

    Raises
    ------
    InputError
        If `value` is not a number (text and true/false are none), is NaN or infinite, or is not above 0.

    Examples
    --------
    >>> positive_real(0.5, "concentration")
    0.5
    """
    try:
        if isinstance(value, (bool, np.bool_, str, bytes)):  # float() would take "0.5" and True
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number above 0, not {value!r}") from None
    if not math.isfinite(number) or number <= 0.0:
        raise InputError(f"{name} must be a finite number above 0, not {value!r}")
    return number


def probability_level(value: float, name: str = "level") -> float:
    """Return `value` as a float strictly between 0 and 1.

    Raises
    ------
    InputError
        If `value` is not a number strictly between 0 and 1.

    Examples
    --------
    >>> probability_level(0.95)
    0.95
    """
    number = positive_real(value, name)
    if number >= 1.0:
        raise InputError(f"{name} must lie strictly between 0 and 1, not {value!r} (0.95 means 95 %)")
    return number


def as_tokens(tokens: ArrayLike, n_states: int) -> NDArray[np.int64]:
    """Check a batch of sequences and return it as a fresh-or-shared int64 array that is safe to index with.

    Parameters
    ----------
    tokens : array_like of integers, shape (N, T)
        N ≥ 1 sequences of T ≥ 1 tokens, each in [0, `n_states`). Never written to.
    n_states : int
        K, the number of states.

    Returns
    -------
    ndarray of int64, shape (N, T)
        The caller's own array where it is int64 already, a copy otherwise.

    Raises
    ------
    InputError
        If the array is not two-dimensional, is empty, holds something other than integers (floats with
        whole values and NaN included), or a token outside [0, K); the first offender is named.

    Examples
    --------
    >>> as_tokens([[0, 1, 0]], 2)
    array([[0, 1, 0]])
    >>> as_tokens([[0, 3]], 3)
    Traceback (most recent call last):
    icl_estimators.validation.InputError: token 3 at sequence 0, position 1 is outside [0, 3): label states 0 to 2
    """
    try:
        array: NDArray[Any] = np.asarray(tokens)
    except ValueError:
        raise InputError("tokens must be a rectangular (N, T) array: the sequences differ in length") from None
    if array.size == 0:
        raise InputError(f"tokens are empty (shape {array.shape}): give at least one sequence of one token")
    if array.ndim != 2:
        raise InputError(f"tokens must have shape (N, T), not {array.shape}: wrap one sequence as tokens[None, :]")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"tokens must be integers in [0, {n_states}), not {array.dtype}")
    outside = (array < 0) | (array >= n_states)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise InputError(
            f"token {array[row, column]} at sequence {row}, position {column} is outside [0, {n_states}): "
            f"label states 0 to {n_states - 1}"
        )
    return array.astype(np.int64, copy=False)
