"""Missing values: each ends a piece of its sequence. A gap is no transition and no state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pieces", "split_at_gaps"]


@dataclass(frozen=True)
class Pieces:
    """What gaps leave of sequences.

    Attributes
    ----------
    tokens : ndarray of int64, shape (N,)
        The numbers of the tokens that are not missing.
    lengths : ndarray of int64, shape (P,)
        Tokens of each piece, at least 1.
    groups : ndarray of int64, shape (P,)
        The sequence that each piece is from.
    """

    tokens: NDArray[np.int64]
    lengths: NDArray[np.int64]
    groups: NDArray[np.int64]


def split_at_gaps(missing: NDArray[np.bool_], lengths: NDArray[np.int64]) -> Pieces:
    """Divide sequences, laid end to end, at their missing values.

    Parameters
    ----------
    missing : ndarray of bool, shape (M,)
    lengths : ndarray of int64, shape (S,)
        Tokens of each sequence, missing ones included.

    Examples
    --------
    >>> gaps = np.array([False, True, True, False, False, False])  # of two sequences
    >>> pieces = split_at_gaps(gaps, np.array([5, 1]))
    >>> pieces.lengths.tolist(), pieces.groups.tolist()
    ([1, 2, 1], [0, 0, 1])
    """
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    tokens = np.flatnonzero(~missing)
    group = sequence[tokens]
    starts = np.flatnonzero((np.diff(tokens, prepend=-2) > 1) | (np.diff(group, prepend=-1) != 0))
    return Pieces(tokens, np.diff(starts, append=len(tokens)), group[starts])
