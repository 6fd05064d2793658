from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from icl_estimators.inference import (
    Moments,
    squared_bias_intervals,
    training_variance,
    training_variance_intervals,
    two_way_intervals,
)
from icl_estimators.validation import InputError


def pseudo_values(effects, noise, rng, n_chains=60):
    """One normal effect a run, the same in each chain, its variance measured with noise."""
    n_runs = len(effects)
    values = np.empty((n_runs, n_chains, 1))
    whole = effects.var(ddof=1)
    for run in range(n_runs):
        values[run] = n_runs * whole - (n_runs - 1) * np.delete(effects, run).var(ddof=1)
    values = values + noise * rng.normal(size=(1, n_chains, 1))
    return [Moments.of(one) for one in values], Moments.of(values.mean(axis=0))


@pytest.mark.parametrize("n_runs", [3, 5, 10])
@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_the_variance_of_normal_runs_is_covered_and_by_estimate_and_t_it_is_not(n_runs, noise):
    rng = np.random.default_rng((n_runs, round(noise)))
    inside, plain = [], []
    for _ in range(400):
        runs = pseudo_values(rng.normal(size=n_runs), noise, rng)
        for kept, made in ((inside, training_variance_intervals), (plain, two_way_intervals)):
            found = made(*runs)
            kept.append(found.low[0] <= 1 <= found.high[0])
    assert np.mean(inside) > 0.91
    if not noise:
        assert np.mean(plain) < 0.9


def test_three_runs_have_the_interval_of_chi_square():
    runs = pseudo_values(np.array([0.0, 1.0, 3.0]), 0.0, np.random.default_rng(0))
    found, variance = training_variance_intervals(*runs, level=0.9), np.var([0.0, 1.0, 3.0], ddof=1)
    assert found.estimate[0] == pytest.approx(variance)
    assert found.low[0] == pytest.approx(2 * variance / stats.chi2.ppf(0.95, 2))
    assert found.high[0] == pytest.approx(2 * variance / stats.chi2.ppf(0.05, 2))
    assert found.notes == ("from the spread of 3 training runs, and 60 chains",)


def test_a_run_far_off_widens_the_interval_beyond_chi_square():
    effects = np.array([0.0, 0.1, -0.1, 0.05, 5.0])
    found = training_variance_intervals(*pseudo_values(effects, 0.0, np.random.default_rng(0)))
    assert found.high[0] > 4 * effects.var(ddof=1) / stats.chi2.ppf(0.025, 4)


def test_chains_alone_have_their_interval_where_runs_do_not_differ():
    runs = pseudo_values(np.zeros(4), 1.0, np.random.default_rng(1))
    found = training_variance_intervals(*runs)
    half = stats.t.ppf(0.975, 59) * runs[1].standard_error[0]
    assert found.high[0] - found.estimate[0] >= half * 0.999
    assert found.estimate[0] - found.low[0] >= half * 0.999


def test_pseudo_values_have_the_estimate_as_their_mean_and_are_those_of_a_loop(nested):
    design = nested(6, 9, 2)
    predictions = np.random.default_rng(2).dirichlet(np.ones(3), size=(4, *design.tokens.shape))
    split = training_variance(design.cells, list(predictions))
    for whole, runs in (
        (split.training_variance, split.training_variance_runs),
        (split.bias_squared, split.bias_squared_runs),
    ):
        np.testing.assert_allclose(runs.mean(axis=0), whole, rtol=1e-9, atol=1e-12)
    for left_out in range(4):
        rest = training_variance(design.cells, list(np.delete(predictions, left_out, axis=0)))
        expected = 4 * split.training_variance - 3 * rest.training_variance
        np.testing.assert_allclose(split.training_variance_runs[left_out], expected, rtol=1e-9, atol=1e-12)
        expected = 4 * split.bias_squared - 3 * rest.bias_squared
        np.testing.assert_allclose(split.bias_squared_runs[left_out], expected, rtol=1e-9, atol=1e-12)
    assert len(training_variance(design.cells, list(predictions[:2])).bias_squared_runs) == 0


@pytest.mark.parametrize("made", [squared_bias_intervals, training_variance_intervals])
def test_what_is_undefined_says_why(made):
    average = Moments.of([[1.0, np.nan], [2.0, 1.0]])
    found = made([], average)
    np.testing.assert_array_equal(found.estimate, [1.5, np.nan])
    assert np.isnan([found.se, found.low, found.high]).all()
    assert found.notes == (
        "two training runs give one difference: it takes three to see how such differences vary",
        "undefined in 1 of 2 chains",
    )
    one = Moments.of([[1.0]])
    assert np.isnan(made([one] * 3, one).high[0])


@pytest.mark.parametrize("made", [squared_bias_intervals, training_variance_intervals])
def test_bad_input_is_named(made):
    moments = Moments.of([[1.0], [2.0]])
    with pytest.raises(InputError, match="level"):
        made([moments] * 3, moments, level=1.0)
    with pytest.raises(InputError, match="same chains and coordinates"):
        made([moments] * 3, Moments.of([[1.0]] * 3))
