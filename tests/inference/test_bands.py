from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.band_coverage import measured_coverage
from icl_estimators.divergences import kl_divergence
from icl_estimators.inference import Moments, simultaneous_band, sup_t_quantile
from icl_estimators.inference.bands import DRAWS, _normal_blocks
from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.sources import posterior_kl_floor, posterior_predictive, sample_batch, transition_counts
from icl_estimators.validation import InputError

# Three times the Monte Carlo standard error of a 95 % quantile, √(0.95·0.05/draws)/density, the density about 0.1.
MONTE_CARLO = 3 * np.sqrt(0.95 * 0.05 / DRAWS) / 0.1


def test_oracles_in_the_limit_of_many_chains(oracles):
    known = oracles["sup_t_95"]
    independent = sup_t_quantile(np.eye(10), degrees_of_freedom=np.inf)
    assert independent == pytest.approx(known["independent_10"], abs=MONTE_CARLO)
    assert independent <= known["bonferroni_10"]
    equal = sup_t_quantile(np.ones((10, 10)), degrees_of_freedom=np.inf)
    assert equal == pytest.approx(known["perfectly_correlated"], abs=MONTE_CARLO)


def test_few_chains_widen_the_band_as_t_does():
    wide = sup_t_quantile(np.ones((3, 3)), degrees_of_freedom=4)
    assert wide == pytest.approx(t_quantile(0.975, 4), rel=0.02)
    assert sup_t_quantile(np.eye(3), degrees_of_freedom=4) > wide


def test_quantile_lies_between_pointwise_and_bonferroni():
    rng = np.random.default_rng(0)
    for size in (2, 20):
        factor = rng.normal(size=(size, 3))
        covariance = factor @ factor.T
        scale = np.sqrt(covariance.diagonal())
        value = sup_t_quantile(covariance / np.outer(scale, scale), degrees_of_freedom=30)
        assert t_quantile(0.975, 30) <= value <= t_quantile(1 - 0.025 / size, 30)


def test_same_seed_same_bits_whatever_was_asked_before():
    correlation = 0.5 + 0.5 * np.eye(20)
    first = sup_t_quantile(correlation, degrees_of_freedom=100)
    sup_t_quantile(0.1 + 0.9 * np.eye(90), degrees_of_freedom=100)
    _normal_blocks.cache_clear()
    assert sup_t_quantile(correlation, degrees_of_freedom=100) == first
    assert sup_t_quantile(correlation, degrees_of_freedom=100, seed=1) != first


def test_band_holds_all_means_at_once():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(400):
        values = rng.normal(size=(60, 12)).cumsum(axis=1)
        band = simultaneous_band(Moments.of(values), draws=4096)
        inside.append(bool(((band.low <= 0) & (band.high >= 0)).all()))
    assert np.mean(inside) == pytest.approx(0.95, abs=0.035)


def test_more_lengths_than_chains():
    values = np.random.default_rng(2).normal(size=(10, 40))
    band = simultaneous_band(Moments.of(values))
    assert np.isfinite(band.critical)
    assert (band.high > band.low).all()


def test_lengths_without_a_standard_error_are_left_out():
    values = np.random.default_rng(3).normal(size=(3000, 6))
    values[:, 1] = 0.3
    values[7, 2] = np.inf
    values[8, 3] = np.nan
    band = simultaneous_band(Moments.of(values))
    rest = simultaneous_band(Moments.of(values[:, [0, 4, 5]]))
    assert band.critical == rest.critical
    assert band.n_varying == 3
    assert band.low[1] == band.high[1] == 0.3
    assert np.isnan(band.low[[2, 3]]).all()
    assert np.isnan(band.high[[2, 3]]).all()
    assert band.notes == ("", "", "infinite in 1 of 3,000 chains", "undefined in 1 of 3,000 chains", "", "")


def test_values_equal_but_for_rounding_do_not_vary():
    values = np.random.default_rng(4).normal(size=(100, 2))
    values[:, 1] = np.where(values[:, 0] > 0, 0.7, np.nextafter(0.7, 1))
    assert simultaneous_band(Moments.of(values)).n_varying == 1


def test_nothing_varies():
    band = simultaneous_band(Moments.of(np.ones((5, 2))))
    assert np.isnan(band.critical)
    np.testing.assert_array_equal([band.low, band.high], 1.0)


def test_one_chain_has_no_band():
    band = simultaneous_band(Moments.of([[1.0, 2.0]]))
    assert np.isnan(band.low).all()
    assert band.notes[0] == "fewer than 2 chains: no standard error"


def bayes_kl(batch, n_chains):
    sample = sample_batch(batch, batch=n_chains, length=100, purpose="test")
    counts = transition_counts(sample.inputs, 3)
    return kl_divergence(sample.truth, posterior_predictive(counts, 1.0)), posterior_kl_floor(counts, 1.0)


@pytest.mark.slow
def test_coverage_of_bands_from_few_chains_is_what_the_note_says():
    truth = np.mean([bayes_kl(10_000 + i, 20_000)[1].mean(axis=0) for i in range(10)], axis=0)
    known = measured_coverage("kl_nats", length=100, chains=200)
    assert known is not None
    share = known.shares["add-one"]
    inside = []
    for study in range(300):
        band = simultaneous_band(Moments.of(bayes_kl(study, 200)[0]))
        inside.append(bool(((band.low <= truth) & (truth <= band.high)).all()))
    assert np.mean(inside) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) * (1 / 300 + 1 / known.studies)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simultaneous_band(Moments.of([[1.0], [2.0]], full=False)), "needs covariances"),
        (lambda: simultaneous_band(Moments.of([[1.0], [2.0]]), level=0.0), "level"),
        (lambda: simultaneous_band(Moments.of([[1.0], [2.0]]), draws=10), "draws"),
        (lambda: sup_t_quantile(np.eye(2), degrees_of_freedom=5, seed=-1), "seed"),
        (lambda: sup_t_quantile(np.eye(2), degrees_of_freedom=5, draws=999), "draws"),
        (lambda: sup_t_quantile(np.eye(2), degrees_of_freedom=5, level=1.0), "level"),
        (lambda: sup_t_quantile(np.ones((2, 3)), degrees_of_freedom=5), "square"),
        (lambda: sup_t_quantile(np.array([[np.nan]]), degrees_of_freedom=5), "square and finite"),
        (lambda: sup_t_quantile(np.eye(2), degrees_of_freedom=0), "degrees_of_freedom"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
