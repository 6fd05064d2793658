from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.inference import Cells, Moments, bias_variance, chain_values, training_variance, zero_mean_check
from icl_estimators.validation import InputError

# Σ_w of the components, on w = 0 alone: bias², prompt, training run, their interaction.
BIAS, PROMPT, TRAINING, INTERACTION = 0.5, 3.0, 1.0, 2.0
CHAINS, CHECKPOINTS, SEQUENCES = 4000, 4, 3


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
        + np.sqrt(TRAINING) * rng.normal(size=(CHECKPOINTS, CHAINS, 1))
        + np.sqrt(INTERACTION) * rng.normal(size=(CHECKPOINTS, CHAINS, SEQUENCES))
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
    assert alone.note == "one checkpoint: training variance needs two or more"
    single = nested(3, 1, 4)
    split = training_variance(single.cells, [single.add_one] * 2)
    assert np.isnan(split.mse).all()
    assert split.note == "one sequence per chain: bias and variance need two or more"
    assert chain_values(split.mse, 3).shape == (3, 4)


def test_bad_input_is_named(nested):
    design = nested(2, 2, 3)
    with pytest.raises(InputError, match="no checkpoints"):
        training_variance(design.cells, [])
    with pytest.raises(InputError, match="predictions must have shape"):
        training_variance(design.cells, [design.add_one, design.add_one[:1]])
