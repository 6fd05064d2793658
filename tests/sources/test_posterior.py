from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from icl_estimators.divergences import kl_divergence
from icl_estimators.sources import (
    ChainLaw,
    posterior_kl_floor,
    posterior_predictive,
    sample_chains,
    transition_counts,
)

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "small_examples.json").read_text(encoding="utf-8"))

COUNTS = [(0, 0, 0), (3, 1, 0), (0, 0, 20)]


@pytest.mark.parametrize("concentration", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("counts", COUNTS)
def test_the_predictive_is_the_posterior_mean(counts: tuple[int, ...], concentration: float) -> None:
    expected = stats.dirichlet(np.array(counts) + concentration).mean()
    np.testing.assert_allclose(posterior_predictive(np.array(counts), concentration), expected, rtol=1e-14)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("counts", COUNTS)
def test_expected_kl_of_any_estimate_is_floor_plus_kl_to_bayes(counts: tuple[int, ...], concentration: float) -> None:
    rows = stats.dirichlet(np.array(counts) + concentration).rvs(60_000, random_state=1)
    q = posterior_predictive(np.array(counts), concentration)
    floor = posterior_kl_floor(np.array(counts), concentration)
    for estimate in (q, np.array([0.2, 0.3, 0.5]), np.array([0.98, 0.01, 0.01])):
        drawn = kl_divergence(rows, estimate)
        standard_error = drawn.std() / math.sqrt(len(drawn))
        assert abs(drawn.mean() - (floor + kl_divergence(q, estimate))) < 4 * standard_error


def test_the_expected_entropy_of_a_row_is_the_known_one() -> None:
    oracle = ORACLES["expected_entropy_row"]
    k = oracle["n_states"]
    # E H(P) = log K − E KL(P ‖ uniform), and the Bayes predictive of an unseen state is uniform.
    floor = posterior_kl_floor(np.zeros(k, dtype=np.int32), 1.0)
    assert math.log(k) - floor == pytest.approx(oracle["value"], abs=1e-12)
    rows = np.random.default_rng(0).dirichlet(np.ones(k), size=60_000)
    entropy = stats.entropy(rows, axis=1)
    assert abs(entropy.mean() - oracle["value"]) < 4 * entropy.std() / math.sqrt(len(rows))


def test_the_floor_is_positive_falls_with_counts_and_never_nan() -> None:
    counts = np.arange(0, 3000, 10)[:, None] * np.ones(4, dtype=np.int64)
    floor = posterior_kl_floor(counts, 1.0)
    assert (np.diff(floor) < 0).all()
    assert floor[-1] == pytest.approx(3 / (2 * 4 * 2991), rel=1e-2)  # (K − 1)/(2A), its leading term
    for concentration in (1e-300, 0.001, 1e4):
        values = posterior_kl_floor(np.array(COUNTS), concentration)
        assert np.isfinite(values).all()
        assert (values >= 0).all()


@pytest.mark.parametrize("law", [ChainLaw(), ChainLaw(2, 0.3)])
def test_the_floor_is_what_the_bayes_rule_realises_on_drawn_chains(law: ChainLaw) -> None:
    sample = sample_chains(range(2000), sequences_per_chain=1, length=100, law=law, purpose="test")
    counts = transition_counts(sample.inputs, law.n_states)
    realised = kl_divergence(sample.truth, posterior_predictive(counts, law.concentration))
    floor = posterior_kl_floor(counts, law.concentration)
    gap = realised - floor
    assert (np.abs(gap.mean(axis=0)) < 4.5 * gap.std(axis=0) / math.sqrt(len(gap))).all()


def test_a_stationary_start_has_another_posterior() -> None:
    """t₁ then speaks about the chain: the expected KL of what is Bayes for a uniform start is 0.2801 at n = 1."""
    law = ChainLaw(3, 1.0, "stationary")
    sample = sample_chains(range(10_000), sequences_per_chain=1, length=1, law=law, purpose="test")
    realised = kl_divergence(sample.truth[:, 0], np.full(3, 1 / 3))
    standard_error = realised.std() / math.sqrt(len(realised))
    assert abs(realised.mean() - 0.2801) < 4 * standard_error
    assert abs(realised.mean() - posterior_kl_floor(np.zeros(3, dtype=np.int32), 1.0)) > 4 * standard_error


@pytest.mark.parametrize(("n", "known"), [(24, 0.083), (50, 0.0475), (99, 0.0266)])
def test_the_bayes_risk_at_lengths_beyond_enumeration_is_known(n: int, known: float) -> None:
    tokens = sample_chains(range(4000), sequences_per_chain=1, length=n, purpose="test").inputs
    floor = posterior_kl_floor(transition_counts(tokens, 3)[:, -1], 1.0)
    assert abs(floor.mean() - known) < 4 * floor.std() / math.sqrt(len(floor)) + 5e-4
