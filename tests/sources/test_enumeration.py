from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.sources import ChainLaw, all_prefixes, check_prefix_budget, sample_chains
from icl_estimators.validation import InputError


def gamma_formula(prefix: list[int], n_states: int, concentration: float) -> float:
    pairs = list(itertools.pairwise(prefix))
    log_probability = -math.log(n_states)
    for v in range(n_states):
        counts = [pairs.count((v, w)) for w in range(n_states)]
        log_probability += math.lgamma(n_states * concentration) - math.lgamma(n_states * concentration + sum(counts))
        log_probability += sum(math.lgamma(concentration + n) - math.lgamma(concentration) for n in counts)
    return math.exp(log_probability)


@pytest.mark.parametrize(("n_states", "length"), [(2, 1), (2, 9), (3, 6), (5, 3)])
def test_every_prefix_comes_once_in_order_whatever_the_block(n_states: int, length: int) -> None:
    expected = list(map(list, itertools.product(range(n_states), repeat=length)))
    for block in (1, 7, 8192):
        blocks = list(all_prefixes(n_states, length, block))
        assert max(map(len, blocks)) <= block
        assert np.concatenate(blocks).tolist() == expected


@pytest.mark.parametrize("concentration", [0.001, 0.5, 1.0, 7.0])
@pytest.mark.parametrize("n_states", [2, 3])
def test_probabilities_sum_to_1_at_every_context_length(n_states: int, concentration: float) -> None:
    tokens = np.concatenate(list(all_prefixes(n_states, 7)))
    probabilities = ChainLaw(n_states, concentration).prefix_probabilities(tokens)
    for n in range(1, 8):
        first_of_each = probabilities[:: n_states ** (7 - n), n - 1]
        assert len(first_of_each) == n_states**n
        assert first_of_each.sum() == pytest.approx(1, abs=1e-12)


@given(
    st.integers(2, 5).flatmap(
        lambda k: st.tuples(st.just(k), st.lists(st.integers(0, k - 1), min_size=1, max_size=12))
    ),
    st.sampled_from([0.05, 0.5, 1.0, 4.0]),
)
def test_probabilities_are_the_gamma_formula(case: tuple[int, list[int]], concentration: float) -> None:
    n_states, prefix = case
    probabilities = ChainLaw(n_states, concentration).prefix_probabilities(np.array([prefix]))[0]
    for n in range(1, len(prefix) + 1):
        expected = gamma_formula(prefix[:n], n_states, concentration)
        assert probabilities[n - 1] == pytest.approx(expected, rel=1e-10)


def test_the_sampler_draws_prefixes_with_these_probabilities() -> None:
    sample = sample_chains(range(6000), sequences_per_chain=1, length=3, law=ChainLaw(2, 0.5), purpose="test")
    drawn = np.bincount(sample.inputs @ [4, 2, 1], minlength=8)
    expected = ChainLaw(2, 0.5).prefix_probabilities(np.concatenate(list(all_prefixes(2, 3))))[:, -1] * 6000
    assert ((drawn - expected) ** 2 / expected).sum() < 24.3  # χ² with 7 degrees of freedom, 0.999


@pytest.mark.parametrize(("n_states", "largest"), [(2, 19), (3, 12), (10, 6), (1000, 2), (1_000_000, 1)])
def test_the_budget_ends_where_it_says(n_states: int, largest: int) -> None:
    assert check_prefix_budget(n_states, largest) == n_states**largest
    message = rf"has .* prefixes, more than the 1,000,000 that are enumerated: .* that fits is {largest}$"
    with pytest.raises(InputError, match=message):
        check_prefix_budget(n_states, largest + 1)


@pytest.mark.parametrize(
    ("n_states", "length", "message"),
    [
        (3, 13, "context length 13 with 3 states has 1,594,323 prefixes, more than the 1,000,000"),
        (3, 100, r"context length 100 with 3 states has about 10\^48 prefixes"),
        (3, 10_000, r"has about 10\^4771 prefixes, .*the largest context length that fits is 12"),
        (3, 10**12, r"has about 10\^477121254720 prefixes"),
        (2_000_000, 1, "has 2,000,000 prefixes, more than the 1,000,000 that are enumerated: no length fits"),
        (3, 0, "context length must be an integer of at least 1, not 0"),
        (3, 2.0, "context length must be an integer, not 2.0"),
        (0, 2, "number of states must be an integer of at least 1, not 0"),
    ],
)
def test_more_than_the_budget_is_an_error_that_counts(n_states: int, length: int, message: str) -> None:
    for use in (check_prefix_budget, lambda k, n: next(all_prefixes(k, n))):
        with pytest.raises(InputError, match=message):
            use(n_states, length)


def test_another_budget_is_respected() -> None:
    assert check_prefix_budget(3, 3, budget=27) == 27
    with pytest.raises(InputError, match=r"more than the 26 that are enumerated: .* fits is 2"):
        check_prefix_budget(3, 3, budget=26)


def test_a_block_holds_at_least_one_prefix() -> None:
    with pytest.raises(InputError, match="block must be an integer of at least 1, not 0"):
        next(all_prefixes(3, 2, block=0))


def test_a_prefix_of_one_token_has_the_start_law() -> None:
    assert ChainLaw(4).prefix_probabilities(np.array([[0], [3]])).tolist() == [[0.25], [0.25]]  # type: ignore[union-attr]
