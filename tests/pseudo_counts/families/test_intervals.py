"""Intervals of family parameters: where the score rejects, the ends of ranges, and how often they cover the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.pseudo_counts import FAMILIES, Prefixes, fit_families, smoothing_family
from icl_estimators.pseudo_counts.families.intervals import ProfileScore, score_interval
from icl_estimators.pseudo_counts.families.objective import Coordinates, block_values, minimise, score_coefficients
from icl_estimators.pseudo_counts.prefixes import decayed_counts
from icl_estimators.sources import occurrence_counts, sample_chains, transition_counts

K, S, T, G = 3, 2, 24, 40

TRUTHS = {
    "affine, b = 0": ("affine", (0.8, 0.0)),
    "unigram-mixture, share = 0": ("unigram-mixture", (0.8, 0.0)),
    "recency, d = 1": ("recency", (0.8, 1.0)),
    "bonus = 0": ("bonus", (0.8, 0.0)),
    "affine": ("affine", (0.5, 0.1)),
    "unigram-mixture": ("unigram-mixture", (0.8, 0.3)),
    "recency": ("recency", (0.5, 0.9)),
    "bonus": ("bonus", (0.7, 1.3)),
    "asymmetric": ("asymmetric", (0.2, 1.0, 3.0)),
    "temperature": ("temperature", (2.2,)),
}
# Where the truth is an end of the range, only a score that points inwards rejects it.
ONE_SIDED = {("affine, b = 0", 1), ("unigram-mixture, share = 0", 1)}


class Sample:
    """Sequences of G chains, and rules with noise of each chain's own around a member of a family."""

    def __init__(self, study=0, n_chains=G):
        chains = range(study * n_chains, (study + 1) * n_chains)
        sample = sample_chains(chains, sequences_per_chain=S, length=T, purpose="test")
        shape = (n_chains, S, T, K)
        self.tokens = sample.tokens[:, :, :-1]
        self.counts = transition_counts(sample.inputs, K).reshape(shape)
        self.occurrences = occurrence_counts(sample.inputs, K).reshape(shape)
        self.visits = self.counts.sum(axis=-1, keepdims=True)
        self.same = self.tokens[..., None] == np.arange(K)
        self.n_chains = n_chains

    def member(self, family, values):
        counts, visits = self.counts, self.visits
        if family == "affine":
            weights = counts + values[0] + values[1] * visits
        elif family == "bonus":
            weights = counts + values[0] + values[1] * self.same
        elif family == "asymmetric":
            weights = counts + np.array(values)
        elif family == "temperature":
            weights = np.exp(values[0] * counts / np.maximum(visits, 1))
        elif family == "recency":
            weights = decayed_counts(self.tokens.reshape(-1, T), K, values[1])[0].reshape(counts.shape) + values[0]
        else:
            unigram = (self.occurrences + 1.0) / (self.occurrences + 1.0).sum(axis=-1, keepdims=True)
            plain = (counts + values[0]) / (visits + K * values[0])
            weights = (1.0 - values[1]) * plain + values[1] * unigram
        return weights / weights.sum(axis=-1, keepdims=True)

    def noisy(self, family, values, rng):
        """Return p(1 + ε) with E ε = 0 whatever the sequences: scores are linear in p̂, so the truth stays `values`."""
        p = self.member(family, values)
        tilt = rng.uniform(-1.0, 1.0, size=(self.n_chains, 1, 1, K))
        return p * (1.0 + 0.5 * (tilt - (p * tilt).sum(axis=-1, keepdims=True)))

    def prefixes(self, predictions, chains=slice(None)):
        return Prefixes.of([predictions[chains]], self.tokens[chains], self.counts[chains], self.occurrences[chains])

    def fits(self, predictions, families):
        middle = self.n_chains // 2
        halves = (self.prefixes(predictions, slice(0, middle)), self.prefixes(predictions, slice(middle, None)))
        return fit_families(*halves, families=families)

    def fit(self, predictions, family):
        return self.fits(predictions, [family])[0]


@pytest.fixture(scope="module")
def sample():
    return Sample()


def covered(truth, n_studies):
    """Return the share of studies whose interval holds the truth, a number for each parameter."""
    family, values = TRUTHS[truth]
    rng = np.random.default_rng(5)
    hits = np.zeros((n_studies, len(values)))
    for study in range(n_studies):
        drawn = Sample(study)
        for index, found in enumerate(drawn.fit(drawn.noisy(family, values, rng), family).parameters):
            assert not math.isnan(found.low)
            assert not math.isnan(found.high)
            hits[study, index] = found.low - 1e-12 <= values[index] <= found.high + 1e-12
    return hits.mean(axis=0)


@pytest.mark.parametrize("truth", list(TRUTHS)[:4])
def test_a_few_studies_cover_the_truth(truth):
    # A Wald interval on a logarithm covered b = 0 in half of the studies: 10 of 12 would be a chance of 2 %.
    assert (covered(truth, 12) >= 10 / 12).all()


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS)
def test_coverage_is_nominal(truth):
    shares = covered(truth, 400)
    for index, share in enumerate(shares):
        nominal = 0.975 if (truth, index) in ONE_SIDED else 0.95
        error = math.sqrt(nominal * (1 - nominal) / 400)
        assert abs(share - nominal) < 3.0 * error, (truth, index, share)


def fitted(sample, family, predictions, target):
    """Return the inverted score's parts for one parameter that is fitted itself."""
    prefixes, rule = sample.prefixes(predictions), smoothing_family(family, K)
    merged = prefixes.merged()
    blocks = merged if rule.counts_only else prefixes.blocks
    start = Coordinates(np.array(rule.starts(0.8)[0]), {})
    at = minimise(rule, blocks, [start]).at
    score = ProfileScore(rule, prefixes, target, merged, prefixes.merged_chains())
    return score, score.coordinates(at.values(rule))


@pytest.mark.parametrize("family", ["affine", "unigram-mixture", "recency"])
def test_the_score_is_at_its_quantile_at_the_limits(sample, family):
    values = TRUTHS[family][1]
    predictions = sample.noisy(family, values, np.random.default_rng(1))
    t = t_quantile(0.975, G - 1)
    for target in (0, 1):
        score, y = fitted(sample, family, predictions, target)
        assert score.statistic(float(y[target]), y)[0] == pytest.approx(0.0, abs=1e-4)
        found = score_interval(score, y, t)
        for limit, side in ((found.low, -1), (found.high, 1)):
            held = math.log(limit) if score.kind == "rate" else limit
            assert score.statistic(held, y)[0] == pytest.approx(side * t, abs=1e-3)


def test_the_statistic_is_that_of_scores_with_the_others_projected_out(sample):
    predictions = sample.noisy("affine", (0.5, 0.1), np.random.default_rng(2))
    score, y = fitted(sample, "affine", predictions, 1)
    found, at, *_ = score.statistic(0.13, y)
    prefixes, rule = sample.prefixes(predictions), smoothing_family("affine", K)
    loss, rows, hessian = block_values(rule, at, prefixes.blocks[0])
    assert loss.shape == prefixes.blocks[0].current.shape
    chains = np.stack([prefixes.blocks[0].chain_sums(row, G) for row in rows], axis=1)
    psi = chains[:, 1] - chains[:, 0] * hessian[0, 1] / hessian[0, 0]
    want = psi.sum() / math.sqrt(((psi - psi.mean()) ** 2).sum() * G / (G - 1))
    assert found == pytest.approx(want, rel=1e-9)


def test_scores_from_merged_prefixes_are_those_of_the_prefixes(sample):
    predictions = sample.noisy("bonus", (0.7, 1.3), np.random.default_rng(3))
    prefixes = sample.prefixes(predictions)
    (merged,) = prefixes.merged()
    sums = prefixes.merged_chains()
    np.testing.assert_allclose(sums.sum(axis=0), merged.predictions.ravel())
    for family in ("affine", "asymmetric", "temperature"):
        rule = smoothing_family(family, K)
        values = np.full(len(rule.parameters), 0.6)
        rows = block_values(rule, values, prefixes.blocks[0])[1]
        want = np.stack([prefixes.blocks[0].chain_sums(row, G) for row in rows], axis=1)
        coefficients = score_coefficients(rule, values, merged).reshape(len(values), -1)
        np.testing.assert_allclose(sums @ coefficients.T, want, atol=1e-10)


@pytest.mark.slow
def test_intervals_agree_with_a_cluster_bootstrap():
    rng = np.random.default_rng(4)
    sample = Sample(n_chains=120)
    predictions = sample.noisy("affine", (0.5, 0.1), rng)
    rule = smoothing_family("affine", K)
    parts = [sample.prefixes(predictions, slice(g, g + 1)) for g in range(120)]
    again = []
    for _ in range(200):
        drawn = Prefixes.join([parts[g] for g in rng.integers(0, 120, size=120)])
        again.append(minimise(rule, drawn.merged(), [Coordinates(np.array([-1.0, -2.0]), {})]).at.values(rule))
    quantiles = np.quantile(again, [0.025, 0.975], axis=0)
    for found, (low, high) in zip(sample.fit(predictions, "affine").parameters, quantiles.T, strict=True):
        assert found.high - found.low == pytest.approx(high - low, rel=0.25)
        assert found.low == pytest.approx(low, abs=0.2 * (high - low))
        assert found.high == pytest.approx(high, abs=0.2 * (high - low))


def test_a_boundary_is_in_its_interval(sample):
    seen = set()
    for seed in range(4):
        predictions = sample.noisy("affine", (0.8, 0.0), np.random.default_rng(seed))
        per_visit = sample.fit(predictions, "affine").parameters[1]
        assert per_visit.boundary == (per_visit.estimate == 0.0)
        seen.add(per_visit.boundary)
        if per_visit.boundary:
            assert per_visit.low == 0.0
            assert 0.0 < per_visit.high < 0.2
            assert np.isnan(per_visit.se)
    assert seen == {True, False}


def edges(sample):
    """Estimators that a family describes best, or only, at an end of its range."""
    frequency = sample.counts / np.maximum(sample.visits, 1)
    most = (sample.counts == sample.counts.max(axis=-1, keepdims=True)).astype(float)
    return {
        "against the frequency": np.exp(-frequency),
        "most frequent": most,
        "bigram": np.where(sample.visits > 0, sample.counts, 1.0),
        "one law": np.broadcast_to([0.2, 0.3, 0.5], sample.counts.shape) + 0.0,
        "staying": 0.2 + 0.4 * sample.same,
        "uniform": np.ones(sample.counts.shape),
    }


@pytest.mark.slow
def test_an_end_of_the_search_is_never_an_estimate():
    sample = Sample(n_chains=12)
    for weights in edges(sample).values():
        predictions = weights / weights.sum(axis=-1, keepdims=True)
        for fit in sample.fits(predictions, FAMILIES):
            for found in fit.parameters:
                finite = [x for x in (found.estimate, found.low, found.high) if math.isfinite(x)]
                assert all(abs(x) < 1e6 for x in finite), (fit.family, found)
                if math.isnan(found.estimate):
                    assert not found.identified
                    assert "not identified" in found.note
                elif math.isinf(found.estimate):
                    assert found.boundary
                    assert found.note
                if any(not math.isfinite(x) for x in (found.low, found.high)):
                    assert found.note, (fit.family, found)
                if not any(math.isnan(x) for x in (found.estimate, found.low, found.high)):
                    assert found.low <= found.estimate <= found.high


def test_what_opposes_the_frequency_has_infinite_pseudo_counts(sample):
    weights = edges(sample)["against the frequency"]
    predictions = weights / weights.sum(axis=-1, keepdims=True)
    for found in sample.fit(predictions, "asymmetric").parameters:
        assert (found.estimate, found.high, found.boundary) == (np.inf, np.inf, True)
    (gamma,) = sample.fit(predictions, "temperature").parameters
    assert gamma.estimate == pytest.approx(-1.0)
    assert not gamma.boundary


def test_one_law_is_a_limit_of_infinite_pseudo_counts(sample):
    fit = sample.fit(edges(sample)["one law"], "asymmetric")
    assert [found.estimate for found in fit.parameters] == [np.inf] * K
    assert fit.residual_kl_nats < 1e-10


def test_the_most_frequent_state_alone_is_an_infinite_gamma(sample):
    weights = edges(sample)["most frequent"]
    fit = sample.fit(weights / weights.sum(axis=-1, keepdims=True), "temperature")
    (gamma,) = fit.parameters
    assert (gamma.estimate, gamma.boundary) == (np.inf, True)
    assert fit.residual_kl_nats == 0.0


def test_staying_is_a_bonus_without_bound(sample):
    alpha, bonus = sample.fit(edges(sample)["staying"], "bonus").parameters
    assert alpha.estimate == bonus.estimate == np.inf
    assert bonus.boundary


def test_a_tiny_probability_is_a_tiny_pseudo_count(sample):
    weights = np.where(sample.counts > 0, sample.counts, 1e-9)
    (alpha,) = sample.fit(weights / weights.sum(axis=-1, keepdims=True), "add-constant").parameters
    assert alpha.estimate == pytest.approx(1e-9, rel=0.01)
    assert not alpha.boundary


def test_an_exact_member_has_zero_width(sample):
    for family, values in TRUTHS.values():
        for found, value in zip(sample.fit(sample.member(family, values), family).parameters, values, strict=True):
            assert found.estimate == pytest.approx(value, abs=1e-6)
            assert found.low == found.estimate == found.high


def test_one_chain_has_no_interval():
    drawn = Sample(n_chains=1)
    predictions = drawn.noisy("affine", (0.5, 0.1), np.random.default_rng(0))
    fit = fit_families(drawn.prefixes(predictions), drawn.prefixes(predictions, slice(0, 0)), families=["affine"])[0]
    for found in fit.parameters:
        if found.identified:
            assert math.isnan(found.low)
            assert "fewer than 2 chains" in found.note
