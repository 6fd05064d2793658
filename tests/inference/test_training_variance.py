from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from icl_estimators.inference import (
    Cells,
    Moments,
    bias_variance,
    chain_values,
    squared_bias_intervals,
    training_variance,
    training_variance_intervals,
    two_way_intervals,
    zero_mean_check,
)
from icl_estimators.validation import InputError

# Σ_w of the components, on w = 0 alone: bias², prompt, training run, their interaction.
BIAS, PROMPT, TRAINING, INTERACTION = 0.5, 3.0, 1.0, 2.0
CHAINS, RUNS, SEQUENCES = 4000, 4, 3


def toy():
    """Draws with known components, in cells that hold all sequences of their chain."""
    rng = np.random.default_rng(0)
    tokens = np.zeros((CHAINS, SEQUENCES, 1), dtype=np.int64)
    transition = np.tile([[0.4, 0.6], [0.4, 0.6]], (CHAINS, 1, 1))
    cells = Cells.of(tokens, transition, np.tile([1.0, 0.0], (CHAINS, 1, 1)))
    value = (
        0.4
        + np.sqrt(BIAS)
        + np.sqrt(PROMPT) * rng.normal(size=(1, CHAINS, SEQUENCES))
        + np.sqrt(TRAINING) * rng.normal(size=(RUNS, CHAINS, 1))
        + np.sqrt(INTERACTION) * rng.normal(size=(RUNS, CHAINS, SEQUENCES))
    )
    predictions = np.stack([value, np.full(value.shape, 0.6)], axis=-1)[:, :, :, None]
    return cells, predictions  # (J, R, S, 1, 2)


def test_the_three_parts_are_unbiased():
    cells, predictions = toy()
    split = training_variance(cells, predictions)
    for part, truth in (
        (split.training_variance, TRAINING),
        (split.variance, PROMPT + INTERACTION),
        (split.bias_squared, BIAS),
        (split.mse, BIAS + PROMPT + INTERACTION + TRAINING),
    ):
        assert abs(zero_mean_check(Moments.of(part - truth)).z[0]) < 4


def test_without_the_correction_it_reads_five_thirds():
    _, predictions = toy()
    uncorrected = predictions[..., 0, 0].mean(axis=2).var(axis=0, ddof=1)
    assert uncorrected.mean() == pytest.approx(TRAINING + INTERACTION / SEQUENCES, abs=0.06)


def test_parts_add_up_to_the_mean_over_checkpoints(nested):
    design = nested(20, 6, 8)
    rng = np.random.default_rng(1)
    predictions = [design.add_one + 0.1 * rng.normal(size=design.add_one.shape) for _ in range(3)]
    split = training_variance(design.cells, predictions)
    total = split.bias_squared + split.variance + split.training_variance
    np.testing.assert_allclose(total, split.mse, atol=1e-12)
    each = [bias_variance(design.cells, one) for one in predictions]
    np.testing.assert_allclose(split.mse, np.mean([one.mse for one in each], axis=0), atol=1e-13)
    np.testing.assert_allclose(split.variance, np.mean([one.variance for one in each], axis=0), atol=1e-13)
    np.testing.assert_array_equal(split.split_weight, each[0].split_weight)


def test_interaction_is_that_of_a_loop(nested):
    design = nested(2, 9, 1)
    rng = np.random.default_rng(2)
    predictions = rng.dirichlet(np.ones(3), size=(4, *design.tokens.shape))
    split = training_variance(design.cells, predictions)
    for r in range(2):
        expected = 0.0
        for v in range(3):
            x = predictions[:, r, design.tokens[r, :, 0] == v, 0]  # (J, m, K)
            m = x.shape[1]
            if m >= 2:
                rest = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean(axis=(0, 1))
                between = x.mean(axis=1).var(axis=0, ddof=1).sum()
                expected += design.cells.weight[r, 0, v] * (between - (rest**2).sum() / ((m - 1) * 3) / m)
        assert split.training_variance[r, 0] == pytest.approx(expected, rel=1e-9)


def test_equal_checkpoints_have_no_training_variance(nested):
    design = nested(10, 4, 5)
    split = training_variance(design.cells, [design.add_one] * 3)
    np.testing.assert_allclose(split.training_variance, 0.0, atol=1e-15)
    np.testing.assert_allclose(split.bias_squared, bias_variance(design.cells, design.add_one).bias_squared, atol=1e-14)


def test_what_is_undefined_says_why(nested):
    design = nested(3, 2, 4)
    alone = training_variance(design.cells, [design.add_one])
    assert np.isnan(alone.training_variance).all()
    assert np.isnan(alone.bias_squared).all()
    assert alone.note == "one training run: training variance needs two or more"
    single = nested(3, 1, 4)
    split = training_variance(single.cells, [single.add_one] * 2)
    assert np.isnan(split.mse).all()
    assert split.note == "one sequence per chain: bias and variance need two or more"
    assert chain_values(split.mse, 3).shape == (3, 4)


def test_bad_input_is_named(nested):
    design = nested(2, 2, 3)
    with pytest.raises(InputError, match="no training runs"):
        training_variance(design.cells, [])
    with pytest.raises(InputError, match="predictions must have shape"):
        training_variance(design.cells, [design.add_one, design.add_one[:1]])


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
def test_what_is_undefined_says_why_of_intervals(made):
    average = Moments.of([[1.0, np.nan], [2.0, 1.0]])
    found = made([], average)
    np.testing.assert_array_equal(found.estimate, [1.5, np.nan])
    assert np.isnan([found.se, found.low, found.high]).all()
    assert found.notes == (
        "two training runs give only one difference: three are needed to see how differences vary",
        "undefined in 1 of 2 chains",
    )
    one = Moments.of([[1.0]])
    assert np.isnan(made([one] * 3, one).high[0])


@pytest.mark.parametrize("made", [squared_bias_intervals, training_variance_intervals])
def test_bad_input_is_named_of_intervals(made):
    moments = Moments.of([[1.0], [2.0]])
    with pytest.raises(InputError, match="level"):
        made([moments] * 3, moments, level=1.0)
    with pytest.raises(InputError, match="same chains and coordinates"):
        made([moments] * 3, Moments.of([[1.0]] * 3))
