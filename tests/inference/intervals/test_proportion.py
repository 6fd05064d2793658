from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from icl_estimators.inference import Moments, proportion_intervals, wilson_limits
from icl_estimators.validation import InputError


@pytest.mark.parametrize(("successes", "n"), [(0, 20), (1, 20), (7, 20), (20, 20), (1, 1), (300, 1000)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilson_is_that_of_statsmodels(successes, n, level):
    expected = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    np.testing.assert_allclose(wilson_limits(successes / n, n, level=level), expected, atol=1e-12)


def test_single_sequences_are_plain_wilson():
    values = np.array([[1.0], [0.0], [0.0], [1.0], [0.0]])
    intervals = proportion_intervals(Moments.of(values), sequences_per_chain=1)
    expected = proportion_confint(2, 5, method="wilson")
    np.testing.assert_allclose([intervals.low[0], intervals.high[0]], expected, atol=1e-12)


def test_effective_number_follows_the_spread_between_chains():
    rng = np.random.default_rng(0)
    independent = rng.binomial(10, 0.3, size=(4000, 1)) / 10
    copies = np.repeat(rng.binomial(1, 0.3, size=(4000, 1)), 1, axis=1).astype(float)
    widths = []
    for shares in (independent, copies):
        intervals = proportion_intervals(Moments.of(shares), sequences_per_chain=10)
        widths.append(float(intervals.high[0] - intervals.low[0]))
        assert intervals.se[0] == pytest.approx(shares.std(ddof=1) / np.sqrt(4000))
        assert widths[-1] == pytest.approx(2 * 1.96 * intervals.se[0], rel=0.02)
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(10), rel=0.05)


@pytest.mark.parametrize("sequences", [1, 10])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_never_zero_width(share, sequences):
    intervals = proportion_intervals(Moments.of(np.full((50, 1), share)), sequences_per_chain=sequences)
    assert intervals.high[0] - intervals.low[0] == pytest.approx(np.diff(wilson_limits(share, 50))[0])
    assert intervals.high[0] - intervals.low[0] > 0.05
    assert share in (intervals.low[0], intervals.high[0])


def test_chains_that_agree_are_worth_all_their_sequences():
    intervals = proportion_intervals(Moments.of(np.full((50, 1), 0.5)), sequences_per_chain=4)
    assert intervals.se[0] == 0.0
    np.testing.assert_allclose([intervals.low[0], intervals.high[0]], wilson_limits(0.5, 200))


@pytest.mark.parametrize("sequences", [1, 4])
def test_a_mean_of_shares_takes_its_number_from_its_own_variance(sequences):
    """Of twenty independent shares: with a cap at G·S its interval is √20 times too wide."""
    rng = np.random.default_rng(1)
    inside, widths = [], []
    for _ in range(300):
        each = rng.binomial(sequences, 0.3, size=(100, 20)) / sequences
        mean = Moments.of(each.mean(axis=1, keepdims=True))
        found = proportion_intervals(mean, sequences_per_chain=sequences, averaged=True)
        inside.append(found.low[0] <= 0.3 <= found.high[0])
        widths.append((found.high[0] - found.low[0]) / (2 * 1.96 * np.sqrt(0.3 * 0.7 / (2000 * sequences))))
    assert np.mean(inside) == pytest.approx(0.95, abs=0.04)
    assert np.mean(widths) == pytest.approx(1.0, abs=0.05)
    capped = proportion_intervals(mean, sequences_per_chain=sequences)
    assert (capped.high[0] - capped.low[0]) / (found.high[0] - found.low[0]) > 4


def test_a_mean_of_shares_keeps_a_width_where_chains_agree():
    moments = Moments.of(np.tile([[0.0, 0.25, 1.0]], (50, 1)))
    found = proportion_intervals(moments, sequences_per_chain=3, averaged=True)
    np.testing.assert_allclose(found.high - found.low, np.diff(wilson_limits([0.0, 0.25, 1.0], 50), axis=0)[0])


def test_one_chain_has_no_interval():
    intervals = proportion_intervals(Moments.of([[0.5]]), sequences_per_chain=2)
    assert np.isnan(intervals.low[0])
    assert intervals.notes == ("fewer than 2 chains: no standard error",)


def test_bad_input_is_named():
    moments = Moments.of([[0.5], [1.0]])
    with pytest.raises(InputError, match="level"):
        wilson_limits(0.5, 10, level=2.0)
    with pytest.raises(InputError, match="level"):
        proportion_intervals(moments, sequences_per_chain=1, level=0.0)
    with pytest.raises(InputError, match="sequences_per_chain"):
        proportion_intervals(moments, sequences_per_chain=0)
