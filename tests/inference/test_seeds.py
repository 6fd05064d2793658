from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.inference import Moments, mean_intervals, two_way_intervals
from icl_estimators.validation import InputError


def layout(rng, n_seeds, n_chains, seed_sd, chain_sd, interaction_sd):
    return (
        seed_sd * rng.normal(size=(n_seeds, 1, 1))
        + chain_sd * rng.normal(size=(1, n_chains, 1))
        + interaction_sd * rng.normal(size=(n_seeds, n_chains, 1))
    )


def intervals_of(values, full=True):
    return two_way_intervals([Moments.of(one, full=full) for one in values], Moments.of(values.mean(axis=0)))


@pytest.mark.parametrize("sds", [(1.0, 3.0, 2.0), (0.0, 3.0, 2.0)])
def test_variance_of_the_recipe_is_right_on_average(sds):
    rng = np.random.default_rng(0)
    n_seeds, n_chains = 5, 40
    variances = [intervals_of(layout(rng, n_seeds, n_chains, *sds)).se[0] ** 2 for _ in range(2000)]
    truth = sds[0] ** 2 / n_seeds + sds[1] ** 2 / n_chains + sds[2] ** 2 / (n_seeds * n_chains)
    assert np.mean(variances) == pytest.approx(truth, rel=0.05)


def test_coverage_speaks_for_new_seeds_and_the_conditional_one_does_not():
    rng = np.random.default_rng(1)
    both, conditional = [], []
    for _ in range(600):
        values = layout(rng, 5, 60, 1.0, 1.0, 1.0)
        for kind, interval in (
            (both, intervals_of(values)),
            (conditional, mean_intervals(Moments.of(values.mean(0)))),
        ):
            kind.append(interval.low[0] <= 0 <= interval.high[0])
    assert np.mean(both) > 0.93
    assert np.mean(conditional) < 0.6


def test_variance_is_never_below_that_over_chains_alone():
    rng = np.random.default_rng(2)
    for _ in range(50):
        values = layout(rng, 3, 10, 0.0, 1.0, 3.0)
        assert intervals_of(values).se[0] >= mean_intervals(Moments.of(values.mean(axis=0))).se[0]


def test_estimate_is_the_mean_over_seeds_and_chains():
    values = layout(np.random.default_rng(3), 4, 10, 1.0, 1.0, 1.0)
    result = intervals_of(values, full=False)
    assert result.estimate[0] == pytest.approx(values.mean())
    assert result.count == 10


def test_what_is_undefined_says_why():
    values = np.ones((2, 3, 2))
    values[0, 1, 1] = np.inf
    result = intervals_of(values)
    np.testing.assert_array_equal(result.estimate, [1.0, np.inf])
    np.testing.assert_array_equal(result.se, [0.0, np.nan])
    np.testing.assert_array_equal(result.low, [1.0, np.nan])
    assert result.notes == ("", "infinite in 1 of 3 chains")
    alone = intervals_of(values[:1])
    assert np.isnan(alone.se).all()
    assert alone.notes == ("one checkpoint says nothing of how training runs vary", "infinite in 1 of 3 chains")


def test_bad_input_is_named():
    moments = Moments.of([[1.0], [2.0]])
    with pytest.raises(InputError, match="level"):
        two_way_intervals([moments, moments], moments, level=1.0)
    with pytest.raises(InputError, match="no checkpoints"):
        two_way_intervals([], moments)
    with pytest.raises(InputError, match="same chains and coordinates"):
        two_way_intervals([moments, Moments.of([[1.0]])], moments)
