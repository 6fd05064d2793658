from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.sources import (
    ChainLaw,
    sample_chains,
    start_probabilities,
    stationary_distribution,
    visit_probabilities,
)
from icl_estimators.validation import InputError


def exact_stationary(transition: np.ndarray) -> list[float]:
    """Solve πP = π, Σπ = 1 in rational arithmetic, by Gauss–Jordan elimination: no rounding at all."""
    k = len(transition)
    rows = [[Fraction(float(p)) for p in row] for row in transition]
    rows = [[p / sum(row) for p in row] for row in rows]
    system = [[rows[j][i] - (i == j) for j in range(k)] + [Fraction(0)] for i in range(k)]
    system[-1] = [Fraction(1)] * (k + 1)
    for column in range(k):
        pivot = next(i for i in range(column, k) if system[i][column] != 0)
        system[column], system[pivot] = system[pivot], system[column]
        system[column] = [value / system[column][column] for value in system[column]]
        for i in range(k):
            if i != column:
                factor = system[i][column]
                system[i] = [a - factor * b for a, b in zip(system[i], system[column], strict=True)]
    return [float(row[-1]) for row in system]


def test_a_uniform_start_is_uniform_whatever_the_chain() -> None:
    transition = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    assert start_probabilities(transition, "uniform").tolist() == [[0.5, 0.5]]


@given(st.integers(0, 10**6), st.integers(2, 7), st.sampled_from([0.05, 0.3, 1.0, 5.0]))
def test_it_is_the_exact_solution(seed: int, n_states: int, concentration: float) -> None:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(n_states, concentration), size=n_states)
    np.testing.assert_allclose(
        stationary_distribution(transition), exact_stationary(transition), rtol=1e-11, atol=1e-300
    )


def test_it_is_the_left_eigenvector_of_many_chains_at_once() -> None:
    transition = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 5, 4))
    stationary = stationary_distribution(transition)
    assert stationary.shape == (3, 5, 4)
    values, vectors = np.linalg.eig(transition.swapaxes(-1, -2))
    leading = np.take_along_axis(vectors, np.abs(values - 1).argmin(axis=-1)[..., None, None], axis=-1)[..., 0].real
    np.testing.assert_allclose(stationary, leading / leading.sum(axis=-1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1e-8, 1e-9), (1e-200, 3e-200), (1e-300, 1e-20), (5e-324, 1.0)])
def test_nearly_decomposable_chains_keep_their_relative_accuracy(a: float, b: float) -> None:
    two = stationary_distribution([[1 - a, a], [b, 1 - b]])
    np.testing.assert_allclose(two, [b / (a + b), a / (a + b)], rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1e-8, 1e-9), (1e-200, 3e-200), (1e-300, 1e-20)])
def test_a_line_of_three_states_obeys_detailed_balance(a: float, b: float) -> None:
    line = stationary_distribution([[1 - a, a, 0], [b, 1 - 2 * b, b], [0, a, 1 - a]])
    np.testing.assert_allclose(line, np.array([b, a, b]) / (a + 2 * b), rtol=1e-12)


@pytest.mark.parametrize(
    "transition",
    [
        # Products and quotients of these entries leave the range of float64.
        [[0.0, 1.0, 6.43e-49], [2.2e-322, 1.0, 1.24e-43], [0.0, 1.02e-233, 1.0]],
        [[0.0, 3.17e-187, 1.0], [0.0, 1.0, 5.59e-212], [3.43e-154, 1.0, 2.2e-96]],
        [[0.0, 1.0, 5.5e-279], [0.0, 1.0, 1.13e-247], [1.1e-238, 4.45e-16, 1.0]],
    ],
)
def test_products_that_underflow_do_no_harm(transition: list[list[float]]) -> None:
    stationary = stationary_distribution(transition)
    np.testing.assert_allclose(stationary, exact_stationary(np.array(transition)), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_transient_states_get_nothing(order: tuple[int, ...]) -> None:
    transition = np.array([[0.5, 0.25, 0.25], [0.0, 0.3, 0.7], [0.0, 0.6, 0.4]])  # 0 leads into {1, 2}
    expected = np.array([0.0, 6 / 13, 7 / 13])
    stationary = stationary_distribution(transition[np.ix_(order, order)])
    np.testing.assert_allclose(stationary, expected[list(order)], rtol=1e-14)
    assert stationary[order.index(0)] == 0.0


@pytest.mark.parametrize("n_states", [3, 4, 6, 9])
def test_a_state_may_be_many_steps_away(n_states: int) -> None:
    cycle = np.roll(np.eye(n_states), 1, axis=1)
    np.testing.assert_allclose(stationary_distribution(cycle), np.full(n_states, 1 / n_states), rtol=1e-15)
    path = np.eye(n_states, k=1)
    path[-1, -1] = 1.0  # one way, into the last state
    assert stationary_distribution(path).tolist() == np.eye(n_states)[-1].tolist()


def test_periodic_and_absorbing_chains_have_one_law() -> None:
    np.testing.assert_allclose(stationary_distribution([[0.0, 1.0], [1.0, 0.0]]), [0.5, 0.5], rtol=1e-15)
    assert stationary_distribution([[1.0, 0.0], [0.5, 0.5]]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "transition",
    [
        np.eye(2),
        [[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.1, 0.9], [0.0, 0.0, 1.0, 0.0]],
        [[1.0, 0.0, 0.0], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0]],  # a transient state between two that absorb
    ],
)
def test_a_chain_without_a_unique_law_is_an_error(transition: object) -> None:
    message = r"chain 0 has no unique stationary law \(its states split into closed classes\): use start='uniform'"
    with pytest.raises(InputError, match=message):
        stationary_distribution(transition)


def test_the_error_names_the_chain() -> None:
    chains = np.stack([np.full((2, 2), 0.5), np.eye(2)])
    with pytest.raises(InputError, match="chain 1 has no unique"):
        start_probabilities(chains, "stationary")
    with pytest.raises(InputError, match="chain 57 has no unique"):
        start_probabilities(chains, "stationary", chains=[3, 57])


def test_sampling_a_chain_without_a_unique_law_names_its_number() -> None:
    law = ChainLaw(2, 0.001, "stationary")
    fixed = sample_chains(range(2000), sequences_per_chain=1, length=1, law=ChainLaw(2, 0.001)).transition
    number = int(np.flatnonzero((fixed == np.eye(2)).all(axis=(1, 2)))[0])
    with pytest.raises(InputError, match=f"chain {number} has no unique stationary law"):
        sample_chains([number], sequences_per_chain=1, length=1, law=law)


def test_an_unknown_start_is_named_with_the_choices() -> None:
    message = re.escape("start must be one of uniform, stationary, not 'zero'")
    with pytest.raises(InputError, match=message):
        start_probabilities(np.full((1, 2, 2), 0.5), "zero")


def test_visit_probabilities_are_powers() -> None:
    rng = np.random.default_rng(0)
    transition = rng.dirichlet(np.ones(4), size=(3, 4))
    start = rng.dirichlet(np.ones(4), size=3)
    law = visit_probabilities(transition, start, 6)
    for n in range(6):
        power = np.linalg.matrix_power(transition, n)
        np.testing.assert_allclose(law[:, n], np.einsum("rv,rvw->rw", start, power), rtol=1e-12)
