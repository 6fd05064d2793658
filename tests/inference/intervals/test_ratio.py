from __future__ import annotations

import numpy as np
import pytest
import statsmodels.regression.linear_model as linear

from icl_estimators.inference import (
    MeanRatioMoments,
    RatioMoments,
    mean_ratio_intervals,
    merge_in_order,
    ratio_intervals,
)
from icl_estimators.inference.trees import from_arrays, to_arrays
from icl_estimators.validation import InputError


def test_standard_error_is_the_cluster_robust_one_of_statsmodels():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 1)) + rng.normal(size=(40, 6))
    kept = rng.random((40, 6)) < rng.random((40, 1)) * 0.6
    parts = [
        RatioMoments.of(*(np.sum(x[i : i + 10], axis=1, keepdims=True) for x in (values * kept, kept)))
        for i in range(0, 40, 10)
    ]
    result = ratio_intervals(merge_in_order(parts))
    groups = np.repeat(np.arange(40), 6).reshape(40, 6)[kept]
    y = values[kept]
    fit = linear.OLS(y, np.ones(len(y))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert (~kept.any(axis=1)).sum() > 0  # chains that say nothing are there, and do not count
    assert result.estimate[0] == pytest.approx(fit.params[0], rel=1e-12)
    assert result.se[0] == pytest.approx(fit.bse[0], rel=1e-9)
    np.testing.assert_allclose([result.low[0], result.high[0]], fit.conf_int()[0], rtol=1e-9)


def test_few_contributions_say_why_there_is_no_interval():
    moments = RatioMoments.of([[0.0, 2.0, 1.0], [0.0, 0.0, 3.0]], [[0.0, 4.0, 1.0], [0.0, 0.0, 1.0]])
    result = ratio_intervals(moments, empty="no finite KL")
    np.testing.assert_array_equal(result.estimate, [np.nan, 0.5, 2.0])
    np.testing.assert_array_equal(np.isnan(result.se), [True, True, False])
    assert result.notes == ("no finite KL", "only 1 chain contributes", "")
    stricter = ratio_intervals(moments, empty="no finite KL", fewest=3)
    np.testing.assert_array_equal(stricter.estimate, result.estimate)
    assert np.isnan([stricter.se, stricter.low, stricter.high]).all()
    assert stricter.notes[2] == "only 2 chains contribute: an interval needs 3"
    with pytest.raises(InputError, match="fewest must be"):
        ratio_intervals(moments, fewest=1)


def test_constant_ratio_has_no_spread():
    weights = np.random.default_rng(1).random((20, 1))
    result = ratio_intervals(RatioMoments.of(0.25 * weights, weights))
    assert result.estimate[0] == pytest.approx(0.25, rel=1e-14)
    assert result.se[0] < 1e-8


def test_arrays_and_back():
    moments = RatioMoments.of([[1.0], [2.0]], [[1.0], [0.0]])
    back = from_arrays(RatioMoments, to_arrays(moments))
    assert back.contributing.tolist() == [1]
    np.testing.assert_array_equal(back.parts.first.mean, moments.parts.first.mean)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RatioMoments.of([[1.0]], [[1.0, 2.0]]), "equal shapes"),
        (lambda: RatioMoments.of([[np.inf]], [[1.0]]), "must be finite"),
        (lambda: RatioMoments.of([[1.0]], [[-1.0]]), "not negative"),
        (lambda: RatioMoments.of([[1.0]], [[1.0]]).merge(RatioMoments.of([[1.0, 1]], [[1.0, 1]])), "merged"),
        (lambda: ratio_intervals(RatioMoments.of([[1.0]], [[1.0]]), level=1.5), "level"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def parts(seed, chains=40, length=5):
    rng = np.random.default_rng(seed)
    number = rng.binomial(4, np.linspace(0.9, 0.3, length), size=(chains, length)).astype(float)
    return number * rng.gamma(2.0, size=(chains, length)), number


def test_last_is_the_mean_of_the_ratios_and_the_rest_are_the_ratios():
    moments = MeanRatioMoments.of(*parts(0))
    found, each = mean_ratio_intervals(moments, empty="none"), ratio_intervals(moments.ratios)
    np.testing.assert_array_equal(found.estimate[:-1], each.estimate)
    np.testing.assert_array_equal(found.low[:-1], each.low)
    assert found.estimate[-1] == pytest.approx(each.estimate.mean())


def test_of_one_context_length_it_is_that_ratio():
    found = mean_ratio_intervals(MeanRatioMoments.of(*parts(1, length=1)), empty="none")
    for values in (found.estimate, found.se, found.low, found.high):
        assert values[1] == pytest.approx(values[0], rel=1e-12)


def test_standard_error_is_that_of_a_jackknife_over_chains():
    top, bottom = parts(2, chains=300)
    found = mean_ratio_intervals(MeanRatioMoments.of(top, bottom), empty="none")
    without = (top.sum(axis=0) - top) / (bottom.sum(axis=0) - bottom)
    values = without.mean(axis=1)
    jackknife = np.sqrt(299 / 300 * ((values - values.mean()) ** 2).sum())
    assert found.se[-1] == pytest.approx(jackknife, rel=0.02)


def test_it_covers():
    truth = 2.0
    inside = []
    for seed in range(400):
        found = mean_ratio_intervals(MeanRatioMoments.of(*parts(seed + 10, chains=100)), empty="none")
        inside.append(found.low[-1] <= truth <= found.high[-1])
    assert np.mean(inside) == pytest.approx(0.95, abs=0.035)


def test_what_is_undefined_says_why():
    top, bottom = parts(3)
    bottom[:, 1] = top[:, 1] = 0.0
    found = mean_ratio_intervals(MeanRatioMoments.of(top, bottom), empty="none is finite")
    assert np.isnan([found.estimate[-1], found.se[-1], found.low[-1], found.high[-1]]).all()
    assert found.notes[-1] == "no mean over n: none is finite at n = 2"
    bottom[0, 1] = top[0, 1] = 1.0
    found = mean_ratio_intervals(MeanRatioMoments.of(top, bottom), empty="none is finite")
    assert np.isfinite(found.estimate[-1])
    assert np.isnan(found.se[-1])
    assert found.notes[-1] == "only 1 chain contributes at n = 2"


def test_merged_and_stored_moments_are_those_of_all_chains():
    top, bottom = parts(4)
    whole = mean_ratio_intervals(MeanRatioMoments.of(top, bottom), empty="none")
    halves = MeanRatioMoments.of(top[:25], bottom[:25]).merge(MeanRatioMoments.of(top[25:], bottom[25:]))
    back = from_arrays(MeanRatioMoments, to_arrays(halves))
    found = mean_ratio_intervals(back, empty="none")
    np.testing.assert_allclose(found.se, whole.se, rtol=1e-10)
    np.testing.assert_array_equal(found.se, mean_ratio_intervals(halves, empty="none").se)


def test_bad_input_is_named_of_means():
    with pytest.raises(InputError, match="equal shapes"):
        MeanRatioMoments.of([[1.0]], [[1.0, 2.0]])
    with pytest.raises(InputError, match="finite"):
        MeanRatioMoments.of([[np.inf]], [[1.0]])
    moments = MeanRatioMoments.of(*parts(5))
    with pytest.raises(InputError, match="cannot be merged"):
        moments.merge(MeanRatioMoments.of(*parts(5, length=2)))
    with pytest.raises(InputError, match="level"):
        mean_ratio_intervals(moments, level=0.0, empty="none")
