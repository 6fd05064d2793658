from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.divergences import kl_divergence
from icl_estimators.inference import Moments, agreement_check, chain_values, with_mean, zero_mean_check
from icl_estimators.sources import posterior_kl_floor, posterior_predictive, sample_chains, transition_counts
from icl_estimators.validation import InputError


def bayes_excess(concentration):
    sample = sample_chains(range(4000), sequences_per_chain=1, length=30, purpose="test")
    counts = transition_counts(sample.inputs, 3)
    realised = kl_divergence(sample.truth, posterior_predictive(counts, concentration))
    return Moments.of(with_mean(chain_values(realised - posterior_kl_floor(counts, concentration), 4000)))


def test_realised_kl_of_bayes_has_the_posterior_mean():
    check = zero_mean_check(bayes_excess(1.0))
    assert np.abs(check.z).max() < 4
    assert check.notes == ("",) * 31


def test_the_wrong_prior_is_found_out():
    assert np.abs(zero_mean_check(bayes_excess(0.5)).z).max() > 10


def test_what_does_not_vary_or_is_not_finite_has_no_z():
    check = zero_mean_check(Moments.of([[0.0, np.inf, np.nan, 1.0], [0.0, 1.0, 1.0, 3.0]]))
    np.testing.assert_array_equal(check.z, [np.nan, np.nan, np.nan, 2.0])
    assert check.notes == (
        "no z: the value does not vary",
        "infinite in 1 of 2 chains",
        "undefined in 1 of 2 chains",
        "",
    )


def test_agreement_of_independent_means():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(300, 50)), rng.normal(size=(500, 50))
    check = agreement_check(Moments.of(a), Moments.of(b, full=False))
    assert check.se[0] == pytest.approx(np.sqrt(a[:, 0].var(ddof=1) / 300 + b[:, 0].var(ddof=1) / 500))
    assert check.z.std() == pytest.approx(1.0, abs=0.35)
    infinite = agreement_check(Moments.of([[np.inf], [1.0]]), Moments.of([[1.0], [2.0]]))
    assert np.isnan(infinite.estimate[0])
    assert infinite.notes == ("infinite in 1 of 2 chains",)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="1 and 2 coordinates cannot be compared"):
        agreement_check(Moments.of([[1.0]]), Moments.of([[1.0, 2.0]]))
