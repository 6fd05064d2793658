from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from icl_estimators.divergences import kl_divergence, squared_error
from icl_estimators.inference import Cells, Moments, bias_variance, kl_bias_variance, with_mean, zero_mean_check
from icl_estimators.validation import InputError

DESIGNS = [(4000, 2), (3000, 4), (800, 16), (250, 64)]  # chains, sequences of each


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(2, 6), st.integers(1, 4), st.integers(2, 4))
def test_bias_and_variance_add_up(seed, n_chains, n_sequences, length, k):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, k, size=(n_chains, n_sequences, length))
    transition = rng.dirichlet(np.ones(k), size=(n_chains, k))
    predictions = rng.dirichlet(np.ones(k), size=tokens.shape)
    cells = Cells.of(tokens, transition, np.full((n_chains, length, k), 1 / k))
    split = bias_variance(cells, predictions)
    scale = 1.0 + split.mse  # weights of rare states can be large
    assert (np.abs(split.bias_squared + split.variance - split.mse) <= 1e-12 * scale).all()


def test_cells_are_those_of_a_loop(nested):
    design = nested(4, 6, 5)
    split = bias_variance(design.cells, design.add_one)
    for r in range(4):
        for n in range(5):
            expected = np.zeros(3)
            for v in range(3):
                drawn = design.add_one[r, design.tokens[r, :, n] == v, n]
                m = len(drawn)
                if m >= 2:
                    s2 = drawn.var(axis=0, ddof=1).sum()
                    errors = drawn - design.sample.transition[r, v]
                    parts = (errors.mean(axis=0) @ errors.mean(axis=0) - s2 / m, s2, (errors**2).sum() / m)
                    expected += design.cells.weight[r, n, v] * np.array(parts)
            actual = [x[r, n] for x in (split.bias_squared, split.variance, split.mse)]
            np.testing.assert_allclose(actual, expected, atol=1e-14)


@pytest.mark.parametrize(("n_chains", "n_sequences"), DESIGNS)
def test_mse_is_the_squared_error_of_the_risk(nested, n_chains, n_sequences):
    design = nested(n_chains, n_sequences, 40)
    risk = squared_error(design.truth, design.add_one).mean(axis=1)
    mse = bias_variance(design.cells, design.add_one).mse
    check = zero_mean_check(Moments.of(with_mean(mse - risk)))
    # At n = 1 and S = 64 a cell of one is too rare (1e-11) to be seen, and so is what it would balance.
    assert (np.abs(check.estimate) < 4 * check.se + 1e-9).all()


@pytest.mark.parametrize(("n_chains", "n_sequences"), DESIGNS[:2])
def test_without_the_weight_mse_is_not_the_squared_error(nested, n_chains, n_sequences):
    design = nested(n_chains, n_sequences, 40)
    risk = squared_error(design.truth, design.add_one)
    used = design.cells.spread((design.cells.size >= 2).astype(float)).reshape(risk.shape)
    bare = (risk * used).mean(axis=1)  # weights m/S: what is in cells of one is missed
    assert np.abs(zero_mean_check(Moments.of(with_mean(bare - risk.mean(axis=1)))).z[-1]) > 20


def test_bias_needs_the_weight_and_renormalising_is_not_enough(nested):
    truth = Moments.of(bias_variance((many := nested(400, 64, 50)).cells, many.add_one).bias_squared[:, -1:])
    few = nested(6000, 4, 50)
    weighted = bias_variance(few.cells, few.add_one).bias_squared[:, -1]
    share = np.where(few.cells.size >= 2, few.cells.size / 4, 0.0)
    bare = dataclasses.replace(few.cells, weight=share)
    split = bias_variance(bare, few.add_one)
    missed = split.bias_squared[:, -1]
    renormalised = missed.mean() / split.split_weight[:, -1].mean()
    se = np.hypot(truth.standard_error[0], weighted.std() / np.sqrt(6000))
    assert weighted.mean() == pytest.approx(truth.mean[0], abs=3 * se)
    assert missed.mean() == pytest.approx(0.0026, abs=0.0002)
    assert renormalised == pytest.approx(0.0036, abs=0.0003)
    assert truth.mean[0] == pytest.approx(0.0046, abs=0.0004)


def test_correction_makes_the_squared_bias_unbiased(nested):
    design = nested(3000, 4, 10)
    rng = np.random.default_rng(0)
    draws = design.truth + 0.1 * rng.normal(size=design.truth.shape)  # the path does not matter: no bias
    split = bias_variance(design.cells, draws)
    assert np.abs(zero_mean_check(Moments.of(split.bias_squared)).z).max() < 4
    naive = split.bias_squared + design.cells.integrate(
        np.divide(0.03, design.cells.size, out=np.zeros(design.cells.shape), where=design.cells.size > 0)
    )  # Σ_w Var = 3·0.1²: what the naive square holds on average
    assert zero_mean_check(Moments.of(naive)).z.min() > 20
    assert (split.bias_squared < 0).any()  # unbiased around 0 and not clipped
    z = zero_mean_check(Moments.of(split.variance - 0.03 * design.cells.weight.sum(axis=2))).z
    assert np.abs(z).max() < 4


def test_split_weight_is_what_the_split_rests_on(nested):
    design = nested(50, 4, 10)
    split = bias_variance(design.cells, design.add_one)
    np.testing.assert_array_equal(split.split_weight, design.cells.split_weight)
    assert 0.7 < split.split_weight.mean() < 1


def test_one_sequence_per_chain_is_undefined(nested):
    design = nested(3, 1, 4)
    split = bias_variance(design.cells, design.add_one)
    for values in (split.bias_squared, split.variance, split.mse, split.split_weight):
        assert values.shape == (3, 4)
        assert np.isnan(values).all()
    assert split.note == "one sequence per chain: bias and variance need two or more"


def test_flat_predictions_are_the_same(nested):
    design = nested(3, 4, 5)
    one = bias_variance(design.cells, design.add_one)
    two = bias_variance(design.cells, design.add_one.reshape(12, 5, 3))
    np.testing.assert_array_equal(one.bias_squared, two.bias_squared)


def test_bad_input_is_named(nested):
    design = nested(2, 2, 3)
    with pytest.raises(InputError, match="predictions must have shape"):
        bias_variance(design.cells, design.add_one[:1])


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


def test_one_sequence_per_chain_is_undefined_in_kl(nested):
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


def test_bad_input_is_named_in_kl(nested):
    design = nested(2, 2, 3)
    with pytest.raises(InputError, match="predictions must have shape"):
        kl_bias_variance(design.cells, design.add_one[..., :2])
