"""Every prefix of a given length, with its exact probability."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from icl_estimators.sources.counts import transition_counts
from icl_estimators.sources.posterior import posterior_predictive
from icl_estimators.validation import InputError, positive_int

__all__ = ["PREFIX_BUDGET", "all_prefixes", "check_prefix_budget", "prefix_probabilities"]

PREFIX_BUDGET = 1_000_000
"""The largest number of prefixes that is enumerated: 12 tokens at K = 3, 19 at K = 2."""


def check_prefix_budget(n_states: int, length: int, budget: int = PREFIX_BUDGET) -> int:
    """Return K^T, the number of prefixes, if it is within `budget`.

    Raises
    ------
    InputError
        If `n_states` or `length` is below 1, or K^T is above the budget; says how many prefixes there are and
        the largest length that fits.

    Examples
    --------
    >>> check_prefix_budget(3, 12)
    531441
    """
    n_states = positive_int(n_states, "number of states")
    length = positive_int(length, "context length")
    digits = length * math.log10(n_states)  # K^T itself may have millions of them
    if digits < 15 and n_states**length <= budget:
        return n_states**length
    largest = 0
    while n_states ** (largest + 1) <= budget:
        largest += 1
    count = f"{n_states**length:,}" if digits < 15 else f"about 10^{digits:.0f}"
    raise InputError(
        f"context length {length} with {n_states} states has {count} prefixes, more than the {budget:,} that are "
        f"enumerated: {f'the largest context length that fits is {largest}' if largest else 'no length fits'}"
    )


def all_prefixes(n_states: int, length: int, block: int = 8192) -> Iterator[NDArray[np.int64]]:
    """Yield every sequence of `length` tokens in lexicographic order, in blocks of shape (≤ `block`, T).

    Raises
    ------
    InputError
        As :func:`check_prefix_budget` does, or if `block` is below 1.

    Examples
    --------
    >>> next(all_prefixes(2, 2)).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    count = check_prefix_budget(n_states, length)
    block = positive_int(block, "block")
    place = n_states ** np.arange(length - 1, -1, -1, dtype=np.int64)
    for first in range(0, count, block):
        numbers = np.arange(first, min(first + block, count), dtype=np.int64)
        yield numbers[:, None] // place % n_states


def prefix_probabilities(tokens: NDArray[np.int64], n_states: int, concentration: float) -> NDArray[np.float64]:
    """Return the probability of each prefix of each sequence, with the chain integrated out.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, T)
    n_states : int
    concentration : float
        α of the Dirichlet prior; the first token is uniform.

    Returns
    -------
    ndarray of float64, shape (N, T)
        ``[i, n-1]`` is P(t_1 … t_n) = (1/K) Π_{m<n} (n_vw + α)/(n_v + Kα): the chain rule of the posterior
        predictive, equal to (1/K) Π_v Γ(Kα)/Γ(Kα + n_v) Π_w Γ(α + n_vw)/Γ(α).

    Examples
    --------
    >>> prefix_probabilities(np.array([[0, 0]]), 2, 1.0).tolist()
    [[0.5, 0.25]]
    """
    predictive = posterior_predictive(transition_counts(tokens, n_states), concentration)
    steps = np.take_along_axis(predictive[:, :-1], tokens[:, 1:, None], axis=2)[..., 0]
    first = np.full((len(tokens), 1), 1.0 / n_states)
    return np.concatenate([first, steps], axis=1).cumprod(axis=1)
