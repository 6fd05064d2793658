from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from icl_estimators.inference import PairMoments, merge_in_order, paired_differences, rao_blackwell_factors
from icl_estimators.validation import InputError


def test_paired_difference_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    b = rng.normal(size=(80, 2))
    a = 0.8 * b + 0.1 * rng.normal(size=(80, 2)) + 0.05
    result = paired_differences(merge_in_order([PairMoments.of(a[:50], b[:50]), PairMoments.of(a[50:], b[50:])]))
    test = scipy.stats.ttest_rel(a, b)
    interval = test.confidence_interval(0.95)
    np.testing.assert_allclose(result.difference / result.se, test.statistic)
    np.testing.assert_allclose(result.low, interval.low)
    np.testing.assert_allclose(result.high, interval.high)
    for column in range(2):
        x, y = a[:, column], b[:, column]
        assert result.correlation[column] == pytest.approx(np.corrcoef(x, y)[0, 1])
        reduction = (x.var() + y.var()) / (x - y).var()
        assert result.variance_reduction[column] == pytest.approx(reduction)
    assert result.notes == ("", "")


def test_infinite_values_leave_no_difference_and_say_so():
    a = [[1.0, np.inf, 1.0, np.nan], [2.0, np.inf, 2.0, 1.0]]
    b = [[1.0, 1.0, np.inf, 1.0], [1.0, 1.0, np.inf, np.inf]]
    result = paired_differences(PairMoments.of(a, b))
    for field in ("difference", "se", "low", "high", "correlation", "variance_reduction"):
        assert np.isnan(getattr(result, field)[1:]).all(), field
    assert result.notes[1:] == (
        "no difference: the estimator is infinite in 2 of 2 chains",
        "no difference: the reference is infinite in 2 of 2 chains",
        "no difference: the estimator is undefined in 1 of 2 chains, the reference is infinite in 1 of 2 chains",
    )


def test_an_estimator_against_itself():
    values = np.random.default_rng(1).normal(size=(30, 1))
    result = paired_differences(PairMoments.of(values, values))
    assert result.difference[0] == result.se[0] == result.low[0] == result.high[0] == 0.0
    assert result.correlation[0] == pytest.approx(1.0)
    assert result.variance_reduction[0] == np.inf


def test_a_value_that_does_not_vary_has_no_correlation():
    result = paired_differences(PairMoments.of([[1.0], [2.0]], [[0.0], [0.0]]))
    assert np.isnan(result.correlation[0])
    assert result.variance_reduction[0] == 1.0
    assert result.notes == ("no correlation: one of the two does not vary over chains",)


def test_one_chain():
    result = paired_differences(PairMoments.of([[1.0]], [[0.0]]))
    assert result.difference[0] == 1.0
    assert np.isnan(result.se[0])
    assert result.notes == ("fewer than 2 chains: no standard error",)


def test_rao_blackwell_factor_counts_the_noise_that_was_integrated_out():
    rng = np.random.default_rng(2)
    regret = rng.normal(size=(5000, 1))
    kl = regret + 3.0 * rng.normal(size=(5000, 1))
    zero = np.zeros((5000, 1))
    factor = rao_blackwell_factors(PairMoments.of(kl, zero), PairMoments.of(regret, zero))
    assert factor[0] == pytest.approx(10.0, rel=0.1)


def test_rao_blackwell_factor_at_the_ends():
    kl = PairMoments.of([[1.0, 1.0, np.inf], [2.0, 1.0, 1.0]], np.zeros((2, 3)))
    regret = PairMoments.of(np.ones((2, 3)), np.zeros((2, 3)))
    np.testing.assert_array_equal(rao_blackwell_factors(kl, regret), [np.inf, np.nan, np.nan])


def test_bad_input_is_named():
    pair = PairMoments.of([[1.0], [2.0]], [[0.0], [0.0]])
    with pytest.raises(InputError, match="level"):
        paired_differences(pair, level=0.0)
    with pytest.raises(InputError, match="same chains"):
        rao_blackwell_factors(pair, pair.merge(pair))
