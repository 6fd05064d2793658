"""Prefix counts: the sufficient statistics of every counting rule, in one pass over the batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["context_counts", "occurrence_counts", "recency_counts", "transition_counts"]


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
    contexts = tokens + n_states * np.arange(len(tokens))[:, None]
    return _count(contexts, tokens, len(tokens) * n_states, n_states)


def context_counts(tokens: NDArray[np.int64], n_states: int, order: int) -> NDArray[np.int32]:
    """Count, at each context length, what has followed the last tokens so far.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, T)
    n_states : int
        K.
    order : int
        k ≥ 0, the number of last tokens. Every token follows the empty context, so that 0 counts occurrences.

    Returns
    -------
    ndarray of int32, shape (N, T, K)
        ``[i, n-1, w]`` is how often w followed an earlier occurrence of the last k tokens of t_1 … t_n; 0 where n < k.

    Examples
    --------
    >>> context_counts(np.array([[0, 1, 0, 0, 1]]), 2, 2)[0, -1].tolist()  # after 0, 1 came a 0
    [1, 0]
    """
    n_sequences, length = tokens.shape
    if order == 0:
        return occurrence_counts(tokens, n_states)
    if order == 1:
        return transition_counts(tokens, n_states)
    counts = np.zeros((n_sequences, length, n_states), dtype=np.int32)
    if order >= length:  # the last tokens of a prefix, all of it, have no earlier occurrence
        return counts
    contexts = tokens + n_states * np.arange(n_sequences)[:, None]  # of a sequence of its own each
    for k in range(2, order + 1):
        longer = contexts[:, :-1] * n_states + tokens[:, k - 1 :]
        # Numbered anew, so that there are never more of them than prefixes, whatever K to the k is.
        contexts = np.unique(longer, return_inverse=True)[1].reshape(longer.shape)
    counts[:, order - 1 :] = _count(contexts, tokens[:, order - 1 :], int(contexts.max()) + 1, n_states)
    return counts


def _count(contexts: NDArray[np.int64], tokens: NDArray[np.int64], n_contexts: int, n_states: int) -> NDArray[np.int32]:
    """Count what has followed each position's context, of which no two sequences share one."""
    n_sequences, length = tokens.shape
    running = np.zeros((n_contexts, n_states), dtype=np.int32)
    context, by_time = np.ascontiguousarray(contexts.T), np.ascontiguousarray(tokens.T)
    counts = np.empty((length, n_sequences, n_states), dtype=np.int32)
    counts[0] = 0
    for t in range(1, length):
        running[context[t - 1], by_time[t]] += 1  # one entry for each sequence: no index repeats
        counts[t] = running[context[t]]
    return counts.transpose(1, 0, 2).copy()


def recency_counts(tokens: NDArray[np.int64], n_states: int, decay: float) -> NDArray[np.float64]:
    """Count, at each context length, the transitions out of the current token, with weight decay^age.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, T)
    n_states : int
        K.
    decay : float
        d > 0. The age of a transition is how many tokens have followed it: 0 for the last one.

    Returns
    -------
    ndarray of float64, shape (N, T, K)
        ``[i, n-1, w]`` is Σ d^age over the transitions v → w of t_1 … t_n, v = t_n.

    Examples
    --------
    >>> recency_counts(np.array([[0, 1, 0, 1, 0]]), 2, 0.5)[0, -1].tolist()  # ages 3 and 1
    [0.0, 0.625]
    """
    n_sequences, length = tokens.shape
    sequence, by_time = np.arange(n_sequences), np.ascontiguousarray(tokens.T)
    running = np.zeros((n_sequences, n_states, n_states))
    counts = np.zeros((length, n_sequences, n_states))
    for t in range(1, length):
        running *= decay
        running[sequence, by_time[t - 1], by_time[t]] += 1.0
        counts[t] = running[sequence, by_time[t]]
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
