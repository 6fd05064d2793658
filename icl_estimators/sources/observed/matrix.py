"""A stated transition matrix from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.validation import InputError

__all__ = ["read_matrix", "transition_matrix"]

_ROUNDING = 1e-6  # of rows that were printed with six digits or more


def read_matrix(path: str | Path, labels: Sequence[str]) -> NDArray[np.float64]:
    """Read a transition matrix from a table of numbers.

    Parameters
    ----------
    path : str or Path
        Commas, semicolons, tabs or white space separate the numbers. A first line and a first column of labels may
        name the states; without them rows and columns are in the order of `labels`.
    labels : sequence of str
        The states of the data.

    Returns
    -------
    ndarray of float64, shape (K, K)
        In the order of `labels`.

    Raises
    ------
    InputError
        If the file cannot be read, an entry is no number, the labels differ from those of the data, or as
        :func:`transition_matrix`.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot read the matrix {path}: {reason}") from None
    mark = next((mark for mark in ",;\t" if mark in text), None)
    rows = [line.split(mark) if mark else line.split() for line in text.splitlines() if line.strip()]
    if len({len(row) for row in rows}) != 1:
        raise InputError(f"{path}: the lines of a matrix must have equally many entries: write one row in each line")
    table = np.array([[entry.strip() for entry in row] for row in rows], dtype=object)
    size = len(labels)
    if table.shape == (size + 1, size + 1):
        columns, index = table[0, 1:].tolist(), table[1:, 0].tolist()
        for named in (columns, index):
            if sorted(named) != sorted(labels):
                raise InputError(
                    f"{path}: the matrix is about the states {', '.join(named)}, the data about {', '.join(labels)}: "
                    "name the same states"
                )
        table = table[1:, 1:][[index.index(label) for label in labels]][:, [columns.index(label) for label in labels]]
    try:
        values = table.astype(np.float64)
    except ValueError as error:
        raise InputError(
            f"{path}: {error}: write numbers, with labels in the first line and column or in neither"
        ) from None
    return transition_matrix(values, size, str(path))


def transition_matrix(values: ArrayLike, n_states: int, place: str = "the matrix") -> NDArray[np.float64]:
    """Check a transition matrix, and divide each row by its sum, which must be 1 up to rounding.

    Raises
    ------
    InputError
        If the shape is not (K, K), an entry is not in [0, 1], or a row does not sum to 1 to within 1e-6.

    Examples
    --------
    >>> transition_matrix([[0.9, 0.1], [0.5, 0.5]], 2).tolist()
    [[0.9, 0.1], [0.5, 0.5]]
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.shape != (n_states, n_states):
        raise InputError(
            f"{place} has shape {' × '.join(map(str, matrix.shape))}, but the data have {n_states} states: give "
            f"{n_states} rows of {n_states} numbers"
        )
    if not ((matrix >= 0) & (matrix <= 1)).all():
        raise InputError(f"{place} has an entry that is not in [0, 1]: give probabilities")
    sums = matrix.sum(axis=1)
    if (np.abs(sums - 1.0) > _ROUNDING).any():
        row = int(np.abs(sums - 1.0).argmax())
        raise InputError(
            f"{place}: row {row + 1} sums to {sums[row]:.8g}, not to 1: give the probabilities of each row"
        )
    return np.asarray(matrix / sums[:, None])
