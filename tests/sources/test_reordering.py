from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from scipy.stats import chisquare

from icl_estimators.sources import transition_counts
from icl_estimators.sources.reordering import reorder
from icl_estimators.validation import InputError


def orders(prefix: tuple[int, ...], n_states: int) -> set[tuple[int, ...]]:
    """Enumerate every sequence with the first token and the transition counts of `prefix`."""

    def counts(sequence: tuple[int, ...]) -> list[tuple[int, int]]:
        return sorted(pairwise(sequence))

    middle = product(range(n_states), repeat=len(prefix) - 2)
    whole = ((prefix[0], *inner, prefix[-1]) for inner in middle)
    return {sequence for sequence in whole if counts(sequence) == counts(prefix)}


@pytest.mark.parametrize(
    ("prefix", "n_states"),
    [
        ((0, 1, 0, 2, 0, 0, 1), 3),
        ((0, 1, 2, 0, 2, 1, 0), 3),
        ((2, 2, 1, 0, 1, 2, 0, 1), 3),
        ((0, 1, 1, 0, 1, 0, 0, 1), 2),
        ((3, 0, 3, 1, 3, 2, 3, 0), 4),
        ((0, 0, 0, 1), 2),
    ],
)
def test_every_order_is_equally_likely(prefix: tuple[int, ...], n_states: int) -> None:
    possible = sorted(orders(prefix, n_states))
    draws = 3000 * len(possible)
    drawn = reorder(np.tile(prefix, (draws, 1)), n_states, np.random.default_rng(1))
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    assert [tuple(row) for row in found.tolist()] == possible
    if len(possible) > 1:
        assert chisquare(counts).pvalue > 1e-3


def test_ends_and_counts_are_kept() -> None:
    tokens = np.random.default_rng(0).integers(0, 4, size=(300, 40))
    drawn = reorder(tokens, 4, np.random.default_rng(2))
    assert (drawn != tokens).any(axis=1).all()
    np.testing.assert_array_equal(drawn[:, [0, -1]], tokens[:, [0, -1]])
    for sequence, other in zip(tokens, drawn, strict=True):
        assert sorted(pairwise(sequence)) == sorted(pairwise(other))
    np.testing.assert_array_equal(transition_counts(tokens, 4)[:, -1], transition_counts(drawn, 4)[:, -1])


def test_short_prefixes_have_one_order() -> None:
    for length in (1, 2, 3):
        tokens = np.array(list(permutations(range(3), length)))
        np.testing.assert_array_equal(reorder(tokens, 3, np.random.default_rng(0)), tokens)


def test_bad_tokens_are_named() -> None:
    with pytest.raises(InputError):
        reorder(np.array([[0, 3]]), 3, np.random.default_rng(0))
