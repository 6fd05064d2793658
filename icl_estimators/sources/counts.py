"""Prefix counts: the sufficient statistics of every counting rule, in one pass over the batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["transition_counts", "occurrence_counts"]


def transition_counts(tokens: NDArray[np.int64], n_states: int) -> NDArray[np.int32]:
    """Count, at each context length, the transitions out of the current token so far.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, T)
    n_states : int
        K.

    Returns
    -------
    ndarray of int32, shape (N, T, K)
        ``[i, n-1, w]`` is n_vw for v = t_n: the number of transitions v → w inside t_1 … t_n. The sum over
        w is the number of *visits* n_v, transitions out of v so far; it is 0 where v is met for the first time.

    Examples
    --------
    >>> transition_counts(np.array([[0, 1, 0, 2, 0]]), 3)[0].tolist()
    [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 1]]
    """
    n_sequences, length = tokens.shape
    sequence = np.arange(n_sequences)
    running = np.zeros((n_sequences * n_states, n_states), dtype=np.int32)
    by_time = np.ascontiguousarray(tokens.T)
    counts = np.empty((length, n_sequences, n_states), dtype=np.int32)
    current = sequence * n_states + by_time[0]
    counts[0] = 0
    for t in range(1, length):
        running[current, by_time[t]] += 1  # one entry for each sequence: no index repeats
        current = sequence * n_states + by_time[t]
        counts[t] = running[current]
    return counts.transpose(1, 0, 2).copy()


def occurrence_counts(tokens: NDArray[np.int64], n_states: int) -> NDArray[np.int32]:
    """Count how often each state occurs in each prefix.

    Returns
    -------
    ndarray of int32, shape (N, T, K)
        ``[i, n-1, w]`` is n_w, the occurrences of w among t_1 … t_n.

    Examples
    --------
    >>> occurrence_counts(np.array([[0, 1, 0]]), 2)[0].tolist()
    [[1, 0], [1, 1], [2, 1]]
    """
    one_hot = tokens[:, :, None] == np.arange(n_states)
    return one_hot.cumsum(axis=1, dtype=np.int32)
