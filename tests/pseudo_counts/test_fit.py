from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from icl_estimators.notes import Code, Note
from icl_estimators.pseudo_counts import (
    CountStatistics,
    PseudoCountMoments,
    count_statistics,
    fit_pseudo_count,
)
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.sources import sample_chains, transition_counts
from icl_estimators.validation import InputError

K = 3


def add(constant, counts):
    return (counts + constant) / (counts.sum(axis=-1, keepdims=True) + K * constant)


def draw(chains, sequences, length, first=0):
    sample = sample_chains(range(first, first + chains), sequences_per_chain=sequences, length=length, purpose="test")
    return transition_counts(sample.inputs, K).reshape(chains, sequences, length, K)


def fits(predictions, counts, by, **options):
    """Fit every group that has a prefix."""
    found = count_statistics(predictions, counts, by)
    moments = {value: PseudoCountMoments.of(group) for value, group in found.items()}
    return {value: fit_pseudo_count(group, **options) for value, group in moments.items() if group is not None}


@pytest.fixture(scope="module")
def counts():
    return draw(60, 4, 40)


def noisy(constant, counts, rng, size=1.0):
    """Add-β with noise that a chain's prefixes share, of mean 0 given the counts: its α is β on average."""
    rule = add(constant, counts)
    sign = rng.uniform(-1.0, 1.0, size=(len(counts), 1, 1, 1))
    direction = np.broadcast_to(np.array([1.0, -0.5, -0.5]), rule.shape)
    return rule + size * sign * rule.min(axis=-1, keepdims=True) * direction


@pytest.mark.parametrize("constant", [0.01, 0.5, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("by", ["overall", "visits", "context-length"])
def test_add_constant_is_recovered_exactly(counts, constant, by):
    for value, fit in fits(add(constant, counts), counts, by).items():
        assert fit.estimate == pytest.approx(constant, rel=1e-6), value
        if fit.n_chains > 1:
            assert fit.low == fit.estimate == fit.high
            assert fit.se == fit.se_log == fit.explained_se == 0.0
        assert fit.residual_kl_nats == 0.0
        assert fit.explained == 1.0
        assert fit.n_minima == 1
        assert not fit.boundary


def test_bigram_is_at_zero(counts):
    visits = counts.sum(axis=-1, keepdims=True)
    bigram = np.where(visits > 0, counts / np.maximum(visits, 1), 1 / K)
    for fit in fits(bigram, counts, "visits").values():
        assert fit.boundary
        assert fit.estimate == 0.0
        assert fit.low == fit.high == 0.0 or fit.n_chains < 50
        assert np.isnan(fit.se)
        assert fit.residual_kl_nats == 0.0
        assert fit.explained == 1.0
        assert "boundary 0" in fit.notes[0]


def test_sharper_than_every_rule_is_at_zero_with_a_residual(counts):
    squared = counts.astype(float) ** 2
    total = squared.sum(axis=-1, keepdims=True)
    sharp = np.where(total > 0, squared / np.maximum(total, 1), 1 / K)
    fit = fits(sharp, counts, "overall")[0]
    assert fit.boundary
    assert fit.estimate == 0.0
    assert fit.residual_kl_nats > 0


def test_uniform_is_at_infinity(counts):
    for fit in fits(np.full(counts.shape, 1 / K), counts, "visits").values():
        assert fit.boundary
        assert fit.estimate == np.inf
        assert fit.low == fit.high == np.inf or fit.n_chains < 50
        assert np.isnan(fit.se)
        assert fit.residual_kl_nats == 0.0
        assert np.isnan(fit.explained)
        assert any("0/0" in note for note in fit.notes)


def test_flat_on_average_has_a_lower_limit():
    # Half of the chains a little sharper than uniform, half a little more away from the counts.
    counts = draw(200, 2, 20)
    away = np.where(np.arange(200) % 2, -0.048, 0.05)[:, None, None, None]
    rule = 1 / K - away * (add(1.0, counts) - 1 / K)
    fit = fits(rule, counts, "overall")[0]
    assert fit.boundary
    assert fit.estimate == fit.high == np.inf
    assert 10 < fit.low < np.inf
    assert np.isnan(fit.se)
    assert fit.residual_kl_nats > 0


def test_sharp_on_average_has_an_upper_limit():
    # Where every state has been followed by every other: half of the chains sharper than the frequencies, half flatter.
    drawn = draw(200, 2, 40)
    counts = np.where((drawn > 0).all(axis=-1, keepdims=True), drawn, 0)
    frequency = np.where(counts.sum(axis=-1, keepdims=True) > 0, add(1e-12, counts), 1 / K)
    frequency /= frequency.sum(axis=-1, keepdims=True)
    sharper = np.where(np.arange(200) % 2, -0.042, 0.05)[:, None, None, None] * frequency.min(axis=-1, keepdims=True)
    fit = fits(frequency + sharper * (frequency - 1 / K), counts, "overall")[0]
    assert fit.boundary
    assert fit.estimate == fit.low == 0.0 < fit.high < 1.0
    assert np.isnan(fit.se)


def test_no_prefix_is_no_number():
    fit = fit_pseudo_count(None)
    assert not fit.identified
    assert not fit.boundary
    assert fit.n_chains == fit.n_prefixes == 0
    assert "no such prefix" in fit.notes[0]
    assert np.isnan([fit.residual_kl_nats, fit.explained, fit.low]).all()


def test_equal_counts_are_not_identified():
    mass = np.array([[0.0, 0.0, 1.0]] * 4)  # n_vw = 2 for every w
    statistics = CountStatistics(mass, np.ones((4, 1)), np.full(4, -np.log(K)), np.array([6]), K)
    fit = fit_pseudo_count(PseudoCountMoments.of(statistics))
    assert not fit.identified
    assert not fit.boundary
    assert "not identified" in fit.notes[0]


def test_two_minima_and_the_better_one_is_found():
    # Acts like α = 0.26 after one visit and like 4.9 after a hundred; weights 0.001 and 1.
    groups = [(np.array([1, 0, 0]), 0.26, 0.001), (np.array([40, 35, 25]), 4.9, 1.0)]
    mass, prefixes, negative_entropy = np.zeros(101), np.zeros(100), 0.0
    for count, constant, weight in groups:
        p = (count + constant) / (count.sum() + K * constant)
        np.add.at(mass, count, weight * p)
        prefixes[count.sum() - 1] += weight
        negative_entropy += weight * float(p @ np.log(p))
    objective = AddConstantObjective(np.concatenate([mass, prefixes, [negative_entropy]]), np.arange(1, 101), K)
    minimum = objective.minimum()
    assert minimum.count == 2
    curve = np.array([objective.kl(a) for a in np.exp(np.arange(-3, 3, 0.01))])
    valleys = np.flatnonzero((curve[1:-1] < curve[:-2]) & (curve[1:-1] < curve[2:])) + 1
    alphas = np.exp(np.arange(-3, 3, 0.01))[valleys]
    np.testing.assert_allclose(alphas, [0.42, 4.2], rtol=0.02)
    assert minimum.alpha == pytest.approx(alphas[curve[valleys].argmin()], rel=0.01)
    assert objective.kl(minimum.alpha) <= curve.min()
    rows = np.stack([objective.sums, objective.sums])
    fit = fit_pseudo_count(
        PseudoCountMoments.of(CountStatistics(rows[:, :101], rows[:, 101:-1], rows[:, -1], np.arange(1, 101), K))
    )
    assert fit.n_minima == 2
    assert any("2 local minima" in note for note in fit.notes)


def test_one_visit_has_a_closed_form(counts):
    # After one visit add-α puts (1 + α)/(1 + Kα) on what was seen: α̂ matches the mean prediction there.
    predictions = np.random.default_rng(2).dirichlet(np.ones(K), size=counts.shape[:-1])
    visits = counts.sum(axis=-1)
    on_seen = predictions[visits == 1][counts[visits == 1] == 1].mean()
    fit = fits(predictions, counts, "visits")[1]
    if on_seen > 1 / K:
        assert fit.estimate == pytest.approx((1 - on_seen) / (K * on_seen - 1), rel=1e-9)
    else:
        assert fit.estimate == np.inf


def test_estimate_is_a_root_of_the_score_to_1e_minus_9(counts):
    predictions = noisy(0.7, counts, np.random.default_rng(3))
    statistics = count_statistics(predictions, counts, "overall")[0]
    objective = AddConstantObjective(statistics.rows.sum(axis=0), statistics.visits, K)
    root = brentq(objective.score, -3, 3, xtol=1e-14)
    assert np.log(fit_pseudo_count(PseudoCountMoments.of(statistics)).estimate) == pytest.approx(root, abs=1e-9)


def bootstrap(statistics, replicates, rng):
    """Draw whole chains with replacement and fit again: slow, assumes less."""
    rows = statistics.rows[statistics.prefixes.any(axis=1)]
    times = rng.multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)), size=replicates)
    sums = times.astype(np.float64) @ rows
    return np.array([AddConstantObjective(row, statistics.visits, K).minimum().alpha for row in sums])


def test_sandwich_interval_and_bootstrap_agree():
    counts = draw(150, 2, 30)
    predictions = noisy(1.0, counts, np.random.default_rng(4))
    statistics = count_statistics(predictions, counts, "overall")[0]
    fit = fit_pseudo_count(PseudoCountMoments.of(statistics))
    drawn = np.log(bootstrap(statistics, 600, np.random.default_rng(5)))
    assert fit.se_log == pytest.approx(drawn.std(ddof=1), rel=0.12)
    assert fit.se == pytest.approx(fit.estimate * fit.se_log)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert np.log([fit.low, fit.high]) == pytest.approx([low, high], abs=0.35 * fit.se_log)


def test_inverted_score_agrees_with_wald_where_chains_are_many(counts):
    fit = fits(noisy(1.0, counts, np.random.default_rng(6)), counts, "overall")[0]
    wald = np.exp(np.log(fit.estimate) + np.array([-2.0, 2.0]) * fit.se_log)
    np.testing.assert_allclose([fit.low, fit.high], wald, rtol=0.05)


def test_few_chains_say_so(counts):
    one = fits(noisy(1.0, counts[:1], np.random.default_rng(7)), counts[:1], "overall")[0]
    assert np.isfinite(one.estimate)
    assert np.isnan([one.se, one.low, one.high, one.explained_se]).all()
    assert Note(Code.TOO_FEW_CHAINS) in one.notes
    some = fits(noisy(1.0, counts[:8], np.random.default_rng(7)), counts[:8], "overall")[0]
    assert any("only 8 chains" in note for note in some.notes)


def test_explained_share_is_a_ratio_of_sums(counts):
    predictions = noisy(1.0, counts, np.random.default_rng(8))
    statistics = count_statistics(predictions, counts, "overall")[0]
    fit = fit_pseudo_count(PseudoCountMoments.of(statistics))
    rows = [AddConstantObjective(row, statistics.visits, K) for row in statistics.rows]
    rest, whole = (np.array([row.kl(a) for row in rows]) for a in (fit.estimate, np.inf))
    ratio = rest.sum() / whole.sum()
    assert fit.explained == pytest.approx(1 - ratio)
    g = len(rows)
    se = np.sqrt(g / (g - 1) * ((rest - ratio * whole) ** 2).sum()) / whole.sum()
    assert fit.explained_se == pytest.approx(se, rel=1e-6)
    assert fit.residual_kl_nats == pytest.approx(rest.sum() / fit.n_prefixes)


def test_heldout_residual_is_that_of_the_other_half(counts):
    predictions = noisy(1.0, counts, np.random.default_rng(9))
    parts = [count_statistics(predictions[cut], counts[cut], "overall")[0] for cut in (slice(0, 30), slice(30, 60))]
    halves = tuple(PseudoCountMoments.of(part) for part in parts)
    fit = fit_pseudo_count(halves[0].merge(halves[1]), halves=halves)
    alpha = fit_pseudo_count(halves[0]).estimate
    second = AddConstantObjective(parts[1].rows.sum(axis=0), parts[1].visits, K)
    assert fit.heldout_kl_nats == pytest.approx(second.kl(alpha) / second.n_prefixes)
    assert np.isnan(fit_pseudo_count(halves[0], halves=(None, halves[1])).heldout_kl_nats)


def test_mass_on_the_unseen_far_below_the_grid_is_still_found(counts):
    fit = fits(add(1e-12, counts), counts, "overall")[0]
    assert fit.estimate == pytest.approx(1e-12, rel=1e-3)
    assert not fit.boundary


def test_scores_that_vanish_have_zero_width_at_any_level(counts):
    for level in (0.5, 0.99):
        fit = fits(add(2.0, counts), counts, "overall", level=level)[0]
        assert fit.low == fit.high


def test_bad_input_is_named(counts):
    statistics = count_statistics(add(1.0, counts), counts, "overall")[0]
    with pytest.raises(InputError, match="level"):
        fit_pseudo_count(PseudoCountMoments.of(statistics), level=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["overall", "visits"])
def test_coverage_of_the_interval(by):
    rng = np.random.default_rng(10)
    covered = []
    for repeat in range(500):
        counts = draw(80, 2, 20, first=80 * repeat)
        statistics = count_statistics(noisy(1.0, counts, rng), counts, by)[0 if by == "overall" else 2]
        fit = fit_pseudo_count(PseudoCountMoments.of(statistics))
        covered.append(fit.low <= 1.0 <= fit.high)
    assert np.mean(covered) == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 500))
