"""Rows of a table in sequences: which rows belong together, and their order."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError

__all__ = ["in_sequences", "ranks_of_text"]

_INTEGER = re.compile(r"\s*[+-]?\d+\s*")


def in_sequences(
    ids: NDArray[np.int64] | None,
    ranks: NDArray[np.int64] | None,
    n_rows: int,
    where: Callable[[int], str],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows in the order of sequences, and the length of each sequence.

    Parameters
    ----------
    ids : ndarray of int64, shape (N,), or None
        The sequence of each row, numbered in the order of first appearance; None if all rows are one sequence.
    ranks : ndarray of int64, shape (N,), or None
        Each row's place in its sequence; None for the order of rows.
    n_rows : int
        N.
    where : callable
        From a row to where it stands, in words.

    Returns
    -------
    order : ndarray of int64, shape (N,)
    lengths : ndarray of int64, shape (S,)

    Raises
    ------
    InputError
        If two rows of a sequence have the same rank.

    Examples
    --------
    >>> order, lengths = in_sequences(np.array([0, 1, 0]), np.array([5, 1, 2]), 3, "row {}".format)
    >>> order.tolist(), lengths.tolist()
    ([2, 0, 1], [2, 1])
    """
    group = np.zeros(n_rows, dtype=np.int64) if ids is None else ids
    if ranks is None:
        order = np.argsort(group, kind="stable")
    else:
        order = np.lexsort((ranks, group))
        tied = (np.diff(group[order]) == 0) & (np.diff(ranks[order]) == 0)
        if tied.any():
            first, second = sorted(map(int, order[np.flatnonzero(tied)[0] :][:2]))
            raise InputError(
                f"{where(first)} and {where(second)} have the same place in the order of one sequence: give each row "
                "of a sequence a place of its own, or remove one of them"
            )
    return order.astype(np.int64), np.bincount(group).astype(np.int64)


def ranks_of_text(labels: Sequence[str]) -> tuple[NDArray[np.int64], str]:
    """Return the rank of each label: by number where all are finite numbers, else by text, as fits ISO dates.

    Equal numbers have equal ranks however they are written. Integers are compared exactly.

    Examples
    --------
    >>> ranks_of_text(["10", "9", "9.0"])[0].tolist(), ranks_of_text(["2020-10", "2020-09"])
    ([1, 0, 0], (array([1, 0]), 'text'))
    """
    numbers = [_number(label) for label in labels]
    keys: list = list(labels) if None in numbers else numbers
    rank = {key: k for k, key in enumerate(sorted(set(keys)))}
    return np.array([rank[key] for key in keys], dtype=np.int64), "text" if None in numbers else "number"


def _number(label: str) -> float | int | None:
    try:
        if _INTEGER.fullmatch(label) and len(label) < 300:  # longer ones are no numbers of rows
            return int(label)
        number = float(label)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
