"""Every prefix of a given length."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError, positive_int

__all__ = ["PREFIX_BUDGET", "all_prefixes", "check_prefix_budget"]

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
