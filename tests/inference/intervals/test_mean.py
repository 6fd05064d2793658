from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import statsmodels.regression.linear_model as linear

from icl_estimators.inference import Moments, mean_intervals, required_chains
from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.validation import InputError


def test_clustered_standard_error_of_the_oracle(oracles):
    clusters = np.array(oracles["cluster_se_of_mean"]["clusters"], dtype=float)
    intervals = mean_intervals(Moments.of(clusters.mean(axis=1, keepdims=True)))
    assert intervals.se[0] == pytest.approx(oracles["cluster_se_of_mean"]["se"], abs=1e-7)


def test_clustered_standard_error_is_that_of_statsmodels():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 1)) + rng.normal(size=(30, 10))
    groups = np.repeat(np.arange(30), 10)
    fit = linear.OLS(values.ravel(), np.ones(300)).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    intervals = mean_intervals(Moments.of(values.mean(axis=1, keepdims=True)))
    assert intervals.estimate[0] == pytest.approx(fit.params[0], rel=1e-12)
    assert intervals.se[0] == pytest.approx(fit.bse[0], rel=1e-12)
    np.testing.assert_allclose([intervals.low[0], intervals.high[0]], fit.conf_int()[0], rtol=1e-12)


def test_interval_is_students_t():
    values = np.random.default_rng(1).normal(size=(12, 3))
    intervals = mean_intervals(Moments.of(values), level=0.9)
    for column in range(3):
        low, high = scipy.stats.t.interval(
            0.9, 11, loc=values[:, column].mean(), scale=scipy.stats.sem(values[:, column])
        )
        assert intervals.low[column] == pytest.approx(low, rel=1e-12)
        assert intervals.high[column] == pytest.approx(high, rel=1e-12)
    assert intervals.count == 12
    assert intervals.notes == ("", "", "")


def test_what_is_undefined_says_why():
    values = np.array([[1.0, np.inf, np.nan, 4.0], [3.0, np.inf, 1.0, 4.0]])
    intervals = mean_intervals(Moments.of(values), undefined="there is no previous token")
    np.testing.assert_array_equal(intervals.estimate, [2.0, np.inf, np.nan, 4.0])
    np.testing.assert_array_equal(np.isnan(intervals.se), [False, True, True, False])
    np.testing.assert_array_equal(np.isnan(intervals.low), [False, True, True, False])
    np.testing.assert_array_equal(np.isnan(intervals.high), [False, True, True, False])
    assert intervals.low[3] == intervals.high[3] == 4.0
    assert intervals.notes == (
        "",
        "infinite in 2 of 2 chains",
        "undefined in 1 of 2 chains: there is no previous token",
        "",
    )


def test_one_chain_has_no_interval():
    intervals = mean_intervals(Moments.of([[1.0, np.inf]]))
    np.testing.assert_array_equal(intervals.estimate, [1.0, np.inf])
    assert np.isnan(intervals.se).all()
    assert np.isnan(intervals.low).all()
    assert intervals.notes == ("fewer than 2 chains: no standard error", "infinite in 1 of 1 chains")


def test_required_chains_reach_the_target():
    moments = Moments.of(np.random.default_rng(2).normal(size=(100, 2)) * [1.0, 5.0])
    needed = required_chains(moments, 0.05)
    assert (np.sqrt(moments.variance / needed) <= 0.05 * (1 + 1e-9)).all()
    assert (np.sqrt(moments.variance / (needed - 1)) > 0.05).all()
    np.testing.assert_array_equal(required_chains(moments, float(moments.standard_error[0]))[0], 100)
    np.testing.assert_array_equal(required_chains(Moments.of([[1.0, np.inf], [1.0, 2.0]]), 0.1), [2, np.nan])


def test_t_quantiles_are_those_of_scipy():
    for degrees in (1, 2, 7.5, 1999):
        assert t_quantile(0.975, degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: mean_intervals(m, level=1.0), "level"),
        (lambda m: mean_intervals(m, level=95), "level"),
        (lambda m: required_chains(m, 0.0), "target_se"),
        (lambda m: required_chains(m, np.nan), "target_se"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call(Moments.of([[1.0], [2.0]]))
