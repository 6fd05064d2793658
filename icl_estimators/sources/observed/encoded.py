"""Labels as numbers while a source is read: what every reader returns, before states have their order."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Encoded", "Encoder", "line_of"]


class Codes(dict[str, int]):
    """The number of each label, in the order in which labels are first asked for.

    Examples
    --------
    >>> codes = Codes()
    >>> codes["b"], codes["a"], codes["b"], list(codes)
    (0, 1, 0, ['b', 'a'])
    """

    def __missing__(self, label: str) -> int:
        self[label] = number = len(self)
        return number


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Sequences as numbers of labels, laid end to end, and where each token stands.

    Attributes
    ----------
    name : str
        What the data are called.
    place : str
        What errors call them: a path, for a file.
    labels : list of str
        Different labels, in the order in which they were met; missing values and empty labels among them.
    codes : ndarray of int64, shape (N,)
        Each token's place in `labels`; −1 is a missing value without a label.
    lengths : ndarray of int64, shape (S,)
        Tokens of each sequence, with Σ = N.
    where : callable
        From the number of a token, 0 to N − 1, to where it stands, in words.
    form : str
        How labels were separated, in words.
    ids : tuple of str
        The sequences' names; empty where they have none.
    order : tuple of str or None
        The order of states that the data themselves declare, as a pandas Categorical does.
    """

    name: str
    place: str
    labels: list[str]
    codes: NDArray[np.int64]
    lengths: NDArray[np.int64]
    where: Callable[[int], str]
    form: str = ""
    ids: tuple[str, ...] = ()
    order: tuple[str, ...] | None = None


class Encoder:
    """Number the labels of one sequence after the other.

    Parameters
    ----------
    check : callable
        Takes each new label and its place, and raises if it cannot be one.
    """

    def __init__(self, check: Callable[[str, str], None]) -> None:
        self._check = check
        self._codes = Codes()
        self._tokens = array("q")
        self._ends = array("q")

    def add(self, labels: Sequence[str], place: str) -> None:
        """Add a sequence, or a part of one until :meth:`end` is called."""
        for label in dict.fromkeys(labels):
            if label not in self._codes:
                self._check(label, place)
        self._tokens.extend(map(self._codes.__getitem__, labels))

    def end(self) -> None:
        """End the sequence."""
        self._ends.append(len(self._tokens))

    @property
    def labels(self) -> list[str]:
        """The labels so far."""
        return list(self._codes)

    def result(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the codes, shape (N,), and the lengths, shape (S,)."""
        ends = np.array(self._ends, dtype=np.int64)
        return np.array(self._tokens, dtype=np.int64), np.diff(ends, prepend=0)


def line_of(path: str, lengths: NDArray[np.int64], numbers: Sequence[int]) -> Callable[[int], str]:
    """Return a function from the number of a token to its line, where each sequence, or part of one, is a line."""
    ends = np.cumsum(lengths)
    return lambda token: f"{path}, line {numbers[int(np.searchsorted(ends, token, side='right'))]}"
