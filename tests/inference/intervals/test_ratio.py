from __future__ import annotations

import numpy as np
import pytest
import statsmodels.regression.linear_model as linear

from icl_estimators.inference import RatioMoments, merge_in_order, ratio_intervals
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
