from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency, kstest, power_divergence

from icl_estimators.experiments.likelihood_ratio import order_tests, stated_matrix_test
from icl_estimators.sources.observed.corpus import Corpus

MATRIX = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]])


def chain(rng: np.random.Generator, length: int, matrix: np.ndarray = MATRIX) -> np.ndarray:
    tokens = [0]
    for uniform in rng.random(length - 1):
        tokens.append(int(np.searchsorted(matrix[tokens[-1]].cumsum(), uniform, side="right")))
    return np.array(tokens)


def test_the_statistic_is_the_sum_of_scipys_over_rows() -> None:
    counts = Corpus.of([chain(np.random.default_rng(0), 500)], 3).transition_matrix()
    found = stated_matrix_test(counts, MATRIX)
    expected = 0.0
    for row, law in zip(counts, MATRIX, strict=True):
        positive = law > 0
        expected += power_divergence(row[positive], row.sum() * law[positive], lambda_="log-likelihood").statistic
    assert found.statistic == pytest.approx(expected, rel=1e-12)
    assert found.degrees_of_freedom == 2 + 2 + 1
    assert found.p_value == pytest.approx(chi2.sf(expected, 5))
    assert found.n_transitions == 499


def test_p_values_of_the_true_matrix_are_uniform() -> None:
    rng = np.random.default_rng(1)
    tested = [
        stated_matrix_test(Corpus.of([chain(rng, 300)], 3).transition_matrix(), MATRIX).p_value for _ in range(200)
    ]
    assert kstest(tested, "uniform").pvalue > 0.01


def test_a_transition_that_the_matrix_excludes_decides() -> None:
    counts = np.array([[5, 1, 0], [0, 3, 0], [2, 0, 0]])
    found = stated_matrix_test(counts, MATRIX)
    assert (found.statistic, found.p_value, found.impossible) == (math.inf, 0.0, (2, 0, 2))


def test_a_state_that_was_never_left_has_no_degrees_of_freedom() -> None:
    counts = np.array([[5, 1, 0], [0, 0, 0], [0, 0, 0]])
    assert stated_matrix_test(counts, MATRIX).degrees_of_freedom == 2
    nothing = stated_matrix_test(np.zeros((3, 3), dtype=np.int64), MATRIX)
    assert math.isnan(nothing.statistic)
    assert nothing.degrees_of_freedom == 0


def test_the_order_is_tested_by_independence() -> None:
    corpus = Corpus.of([chain(np.random.default_rng(3), 400), chain(np.random.default_rng(4), 200)], 3)
    found = dict(order_tests(corpus))
    table = chi2_contingency(corpus.transition_matrix(), correction=False, lambda_="log-likelihood")
    assert found["order_0_against_1"].statistic == pytest.approx(table.statistic)
    assert found["order_0_against_1"].degrees_of_freedom == 4
    assert found["order_0_against_1"].p_value < 1e-6
    assert found["order_1_against_2"].p_value > 0.01
    assert found["order_1_against_2"].n_transitions == 398 + 198


def test_a_chain_of_order_two_is_found_out() -> None:
    rng, tokens = np.random.default_rng(5), [0, 1]
    for uniform in rng.random(300):  # the token before the last comes again
        tokens.append(tokens[-2] if uniform < 0.8 else int(rng.integers(2)))
    found = dict(order_tests(Corpus.of([np.array(tokens)], 2)))
    assert found["order_1_against_2"].p_value < 1e-6
