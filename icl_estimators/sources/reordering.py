"""Uniform re-orderings of a prefix: other orders in which the same transitions can have occurred.

A prefix is a trail through the multigraph of its transitions, from its first token to its last. All such trails have
the same probability under any Markov chain whose first token does not depend on it. A uniform one is drawn as by
Kandel, Matias, Unger & Winkler (1996): the last exits of the states form a spanning arborescence into the last token,
drawn uniformly by popping cycles (Propp & Wilson 1998); the other exits of each state are shuffled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import as_tokens

__all__ = ["reorder"]


def reorder(tokens: NDArray[np.int64], n_states: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw, for each prefix, one of the orders of its transitions, all equally likely.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, n)
        Prefixes of n ≥ 1 tokens.
    n_states : int
        K.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (N, n)
        First and last tokens and all transition counts are those of `tokens`.

    Raises
    ------
    InputError
        If `tokens` is not an array (N, n) of states.

    Notes
    -----
    Two trails that differ only in which of several equal transitions comes first are one sequence. Every sequence has
    the same number of trails, Π n_vw!, so that uniform trails give uniform sequences.

    Examples
    --------
    >>> drawn = reorder(np.array([[0, 1, 0, 2, 0]] * 4), 3, np.random.default_rng(0))
    >>> sorted(set(map(tuple, drawn.tolist())))
    [(0, 1, 0, 2, 0), (0, 2, 0, 1, 0)]
    """
    given = as_tokens(tokens, n_states)
    count, length = given.shape
    if length < 4:
        return given.copy()  # with so few transitions there is one order only
    exits, goals = given[:, :-1], given[:, 1:]
    keys = rng.random(exits.shape)
    last = _last_exits(exits, goals, given[:, -1], n_states, rng)
    which, state = np.nonzero(last >= 0)
    keys[which, last[which, state]] = 2.0  # after every other exit of its state
    # Exits in the order in which each state uses them: by state, then by key.
    order = np.lexsort((keys, exits), axis=1)
    queue = np.take_along_axis(goals, order, axis=1)
    sizes = np.stack([(exits == state).sum(axis=1) for state in range(n_states)], axis=1)
    following = np.cumsum(sizes, axis=1) - sizes  # where each state's next exit is in the queue
    row = np.arange(count)
    out = np.empty_like(given)
    out[:, 0] = given[:, 0]
    for position in range(1, length):
        here = out[:, position - 1]
        out[:, position] = queue[row, following[row, here]]
        following[row, here] += 1
    return out


def _last_exits(
    exits: NDArray[np.int64], goals: NDArray[np.int64], root: NDArray[np.int64], n_states: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the transition by which each state is left for the last time, shape (N, K); −1 for the root and unvisited.

    Each state points along one of its transitions, drawn uniformly. While some states form a cycle, these are drawn
    again; what remains is a uniform spanning arborescence, whatever the order in which cycles are popped.
    """
    count = len(exits)
    row = np.arange(count)
    leaves = np.stack([(exits == state).any(axis=1) for state in range(n_states)], axis=1)
    leaves[row, root] = False
    chosen = np.full((count, n_states), -1, dtype=np.int64)
    points = np.tile(np.arange(n_states), (count, 1))  # the root and states that are not there point at themselves
    redraw = leaves.copy()
    while redraw.any():
        for state in range(n_states):
            some = np.flatnonzero(redraw[:, state])
            if len(some):
                weights = np.where(exits[some] == state, rng.random((len(some), exits.shape[1])), -1.0)
                pick = weights.argmax(axis=1)
                chosen[some, state] = pick
                points[some, state] = goals[some, pick]
        redraw = leaves & _on_a_cycle(points)
    return chosen


def _on_a_cycle(points: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether following the pointers leads from a state back to it, shape (N, K)."""
    _count, n_states = points.shape
    start = np.arange(n_states)
    here = points.copy()
    found = here == start
    for _ in range(n_states - 1):
        here = np.take_along_axis(points, here, axis=1)
        found |= here == start
    return found
