from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel
from statsmodels.regression.linear_model import OLS

from icl_estimators.inference.serial import block_bootstrap, block_length, long_run_covariance, newey_west_lag
from icl_estimators.validation import InputError


def autoregression(count: int, coefficient: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.empty(count)
    values[0] = rng.normal() / np.sqrt(1 - coefficient**2)
    for index in range(1, count):
        values[index] = coefficient * values[index - 1] + rng.normal()
    return values


@pytest.mark.parametrize("lag", [1, 4, 9])
def test_it_is_the_standard_error_of_a_constant_with_hac_errors(lag: int) -> None:
    series = 5.0 + autoregression(300, 0.5)
    fit = OLS(series, np.ones(300)).fit(cov_type="HAC", cov_kwds={"maxlags": lag})
    assert np.sqrt(long_run_covariance(series[:, None], lag)[0, 0]) == pytest.approx(fit.bse[0], rel=1e-12)


def test_at_lag_0_it_is_the_paired_t_test() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 50))
    difference = a - b
    se = np.sqrt(long_run_covariance(difference[:, None], 0)[0, 0])
    assert difference.mean() / se == pytest.approx(ttest_rel(a, b).statistic, rel=1e-12)


def test_covariances_of_differences_follow() -> None:
    values = np.stack([autoregression(200, 0.7, seed) for seed in range(3)], axis=1)
    whole = long_run_covariance(values, 5)
    apart = long_run_covariance(values[:, [0]] - values[:, [2]], 5)[0, 0]
    assert whole[0, 0] + whole[2, 2] - 2 * whole[0, 2] == pytest.approx(apart, rel=1e-10)


@pytest.mark.parametrize(("count", "lag"), [(100, 4), (731, 6), (2, 1), (1, 0), (10_000, 11)])
def test_the_lag_grows_slowly(count: int, lag: int) -> None:
    assert newey_west_lag(count) == lag


def test_the_bootstrap_sees_dependence() -> None:
    series = autoregression(5000, 0.6)
    errors = block_bootstrap(series[:, None])
    truth = 1 / (1 - 0.6) / np.sqrt(5000)  # of the mean of an AR(1) with unit innovations
    naive = series.std(ddof=1) / np.sqrt(5000)
    assert truth > 1.9 * naive
    assert errors.std() == pytest.approx(truth, rel=0.12)
    assert abs(errors.mean()) < 4 * truth / np.sqrt(len(errors))
    assert block_length(5000) == 18


def test_the_bootstrap_of_independent_values_is_the_classical_error() -> None:
    values = np.random.default_rng(2).exponential(size=(3000, 2))
    errors = block_bootstrap(values)
    np.testing.assert_allclose(errors.std(axis=0), values.std(axis=0) / np.sqrt(3000), rtol=0.08)
    np.testing.assert_array_equal(errors, block_bootstrap(values))
    assert not np.array_equal(errors, block_bootstrap(values, seed=1))
    np.testing.assert_allclose(block_bootstrap(values[:, [1]])[:, 0], errors[:, 1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: long_run_covariance(np.zeros((1, 1)), 0), "two finite values"),
        (lambda: long_run_covariance(np.array([[1.0], [np.inf]]), 0), "two finite values"),
        (lambda: long_run_covariance(np.zeros((5, 1)), 5), "the lag must be below 5"),
        (lambda: long_run_covariance(np.zeros((5, 1)), -1), "lag"),
        (lambda: block_bootstrap(np.zeros((1, 1))), "two finite values"),
        (lambda: block_bootstrap(np.zeros((5, 1)), draws=0), "draws"),
        (lambda: block_bootstrap(np.zeros((5, 1)), seed=-1), "seed"),
    ],
)
def test_what_has_no_answer_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()  # type: ignore[operator]
