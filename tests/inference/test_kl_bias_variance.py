from __future__ import annotations

import numpy as np
import pytest
from scipy.special import rel_entr

from icl_estimators.divergences import kl_divergence
from icl_estimators.inference import Cells, Moments, kl_bias_variance, zero_mean_check
from icl_estimators.validation import InputError


def one_cell(truth, predictions):
    """One chain of one token, always in state 0."""
    k = len(truth)
    cells = Cells.of(np.zeros((1, len(predictions), 1), dtype=np.int64), np.tile(truth, (1, k, 1)), np.eye(k)[None, :1])
    split = kl_bias_variance(cells, np.asarray(predictions)[None, :, None, :])
    return float(split.kl_bias_nats[0, 0]), float(split.kl_variance_nats[0, 0]), float(split.kl_nats[0, 0])


def test_oracle_of_equally_likely_predictions(oracles):
    known = oracles["heskes"]
    copies = 50_000  # the jackknife is exact in the limit of many draws
    bias, variance, total = one_cell(np.array(known["p"]), np.tile(known["predictions"], (copies, 1)))
    assert bias == pytest.approx(known["bias_nats"], abs=2e-6)
    assert variance == pytest.approx(known["variance_nats"], abs=2e-6)
    assert total == pytest.approx(known["total_nats"], abs=2e-7)


def test_jackknife_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    predictions, truth = rng.dirichlet(np.ones(4), size=7), rng.dirichlet(np.ones(4))

    def plug_in(draws):
        return -np.log(np.exp(np.log(draws).mean(axis=0)).sum())

    without = [plug_in(np.delete(predictions, i, axis=0)) for i in range(7)]
    expected = 7 * plug_in(predictions) - 6 * np.mean(without)
    bias, variance, total = one_cell(truth, predictions)
    assert variance == pytest.approx(expected, rel=1e-10)
    assert total == pytest.approx(rel_entr(truth, predictions).sum(axis=1).mean(), rel=1e-12)
    assert bias + variance == pytest.approx(total, rel=1e-12)


def test_equal_predictions_have_no_variance():
    bias, variance, total = one_cell(np.array([0.0, 1.0]), np.tile([0.25, 0.75], (5, 1)))
    assert variance == pytest.approx(0.0, abs=1e-14)
    assert bias == pytest.approx(-np.log(0.75))
    assert total == pytest.approx(-np.log(0.75))


def test_parts_add_up_to_the_kl_risk(nested):
    design = nested(1500, 8, 20)
    split = kl_bias_variance(design.cells, design.add_one)
    np.testing.assert_allclose(split.kl_bias_nats + split.kl_variance_nats, split.kl_nats, atol=1e-12)
    risk = kl_divergence(design.truth, design.add_one).mean(axis=1)
    assert np.abs(zero_mean_check(Moments.of(split.kl_nats - risk)).z).max() < 4


def test_jackknife_mends_the_plug_in():
    # Draws that do not depend on the path, so that more sequences estimate the same variance better.
    rng = np.random.default_rng(1)
    reference = kl_of_draws(rng, 400, 200)
    few = kl_of_draws(rng, 20_000, 5)
    assert few == pytest.approx(reference, rel=0.03)


def kl_of_draws(rng, n_chains, n_sequences):
    tokens = np.zeros((n_chains, n_sequences, 1), dtype=np.int64)
    start = np.tile([1.0, 0.0, 0.0], (n_chains, 1, 1))
    cells = Cells.of(tokens, np.full((n_chains, 3, 3), 1 / 3), start)
    return kl_bias_variance(cells, rng.dirichlet([4.0, 4.0, 4.0], size=tokens.shape)).kl_variance_nats.mean()


def test_a_predicted_zero_is_undefined_and_counted(nested):
    design = nested(40, 4, 6)
    predictions = design.add_one.copy()
    predictions[3, 0, 2] = [1.0, 0.0, 0.0]
    split = kl_bias_variance(design.cells, predictions)
    used = design.cells.size[3, 2, design.tokens[3, 0, 2]] >= 2
    assert used
    assert np.isnan(split.kl_bias_nats).sum() == np.isnan(split.kl_variance_nats).sum() == 1
    assert np.isnan(split.kl_nats[3, 2])
    assert split.tally.with_zero.tolist() == [0, 0, 1, 0, 0, 0, 1]
    assert split.tally.notes()[2].startswith("a predicted probability is 0 in 1 of ")
    assert split.tally.smallest.tolist() == [2] * 7


def test_one_sequence_per_chain_is_undefined(nested):
    design = nested(3, 1, 4)
    split = kl_bias_variance(design.cells, design.add_one)
    for values in (split.kl_bias_nats, split.kl_variance_nats, split.kl_nats):
        assert np.isnan(values).all()
    assert split.note == "one sequence per chain: bias and variance need two or more"


def test_predictions_are_not_written_to(nested):
    design = nested(2, 3, 3)
    frozen = design.add_one.copy()
    frozen.setflags(write=False)
    kl_bias_variance(design.cells, frozen)
    np.testing.assert_array_equal(frozen, design.add_one)


def test_bad_input_is_named(nested):
    design = nested(2, 2, 3)
    with pytest.raises(InputError, match="predictions must have shape"):
        kl_bias_variance(design.cells, design.add_one[..., :2])
