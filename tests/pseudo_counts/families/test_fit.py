from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.pseudo_counts import (
    FAMILIES,
    Prefixes,
    PseudoCountMoments,
    count_statistics,
    fit_families,
    fit_pseudo_count,
    smoothing_family,
)
from icl_estimators.pseudo_counts.families.objective import Coordinates, block_values, minimise, natural
from icl_estimators.pseudo_counts.prefixes import decayed_counts
from icl_estimators.sources import occurrence_counts, sample_chains, transition_counts
from icl_estimators.validation import InputError

K, S, T = 3, 3, 30


class Drawn:
    """Sequences of some chains with everything that a rule may look at, and halves of what a rule predicts there."""

    def __init__(self, n_chains, n_states=K):
        self.n_chains = n_chains
        sample = sample_chains(range(n_chains), sequences_per_chain=S, length=T, purpose="test")
        self.tokens = sample.tokens[:, :, :-1]
        shape = (n_chains, S, T, n_states)
        self.counts = transition_counts(sample.inputs, n_states).reshape(shape)
        self.occurrences = occurrence_counts(sample.inputs, n_states).reshape(shape)
        self.visits = self.counts.sum(axis=-1, keepdims=True)

    def prefixes(self, predictions, chains=slice(None)):
        return Prefixes.of([predictions[chains]], self.tokens[chains], self.counts[chains], self.occurrences[chains])

    def halves(self, predictions):
        middle = self.n_chains // 2
        return self.prefixes(predictions, slice(0, middle)), self.prefixes(predictions, slice(middle, None))

    def rule(self, weights):
        """Normalise unnormalised predictions; uniform where all are 0."""
        total = weights.sum(axis=-1, keepdims=True)
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / K)


@pytest.fixture(scope="module")
def drawn():
    return Drawn(40)


def fit_of(drawn, predictions, family, **options):
    plain, fit = fit_families(*drawn.halves(predictions), families=["add-constant", family], **options)
    return plain, fit


def estimates(fit):
    return {parameter.name: parameter.estimate for parameter in fit.parameters}


def family_predictions(drawn):
    """Give for each family a member's predictions and what the fit must find."""
    counts, visits = drawn.counts, drawn.visits
    same = drawn.tokens[..., None] == np.arange(K)
    frequency = counts / np.maximum(visits, 1)
    unigram = (drawn.occurrences + 1.0) / (drawn.occurrences + 1.0).sum(axis=-1, keepdims=True)
    plain = (counts + 0.4) / (visits + K * 0.4)
    faded = decayed_counts(drawn.tokens.reshape(-1, T), K, 0.9)[0].reshape(counts.shape)
    return {
        "affine": (counts + 0.3 + 0.1 * visits, {"pseudo_count": 0.3, "pseudo_count_per_visit": 0.1}),
        "bonus": (counts + 0.7 + 1.3 * same, {"pseudo_count": 0.7, "bonus": 1.3}),
        "unigram-mixture": (0.7 * plain + 0.3 * unigram, {"pseudo_count": 0.4, "unigram_share": 0.3}),
        "recency": (faded + 0.6, {"pseudo_count": 0.6, "decay": 0.9}),
        "asymmetric": (
            counts + np.array([0.2, 1.0, 3.0]),
            {"pseudo_count_0": 0.2, "pseudo_count_1": 1.0, "pseudo_count_2": 3.0},
        ),
        "temperature": (np.exp(2.2 * frequency), {"gamma": 2.2}),
    }


@pytest.mark.parametrize("name", FAMILIES[1:])
def test_a_member_is_recognised_with_its_parameters(drawn, name):
    weights, known = family_predictions(drawn)[name]
    plain, fit = fit_of(drawn, drawn.rule(weights), name)
    assert estimates(fit) == pytest.approx(known, rel=1e-6)
    assert fit.residual_kl_nats == fit.heldout.estimate == 0.0
    assert fit.explained.estimate == 1.0
    assert fit.heldout_gain.estimate == plain.heldout.estimate > 1e-4
    assert fit.heldout_gain.low > 0
    for parameter in fit.parameters:
        assert parameter.identified
        assert not parameter.boundary
        assert parameter.se < 1e-6
        assert parameter.low == pytest.approx(parameter.high, rel=1e-6)


def test_the_family_that_made_it_is_the_best_of_all(drawn):
    for name, (weights, _) in family_predictions(drawn).items():
        fits = fit_families(*drawn.halves(drawn.rule(weights)))
        assert [fit.family for fit in fits] == list(FAMILIES)
        assert min(fits, key=lambda fit: fit.heldout.estimate).family == name


def test_plain_family_agrees_with_the_fit_from_moments(drawn):
    predictions = drawn.rule(np.exp(2.2 * drawn.counts / np.maximum(drawn.visits, 1)))
    fit = fit_families(*drawn.halves(predictions), families=["add-constant"])[0]
    other = fit_pseudo_count(PseudoCountMoments.of(count_statistics(predictions, drawn.counts, "overall")[0]))
    (alpha,) = fit.parameters
    assert np.log(alpha.estimate) == pytest.approx(np.log(other.estimate), abs=1e-9)
    assert alpha.se == pytest.approx(other.se, rel=1e-6)
    assert fit.residual_kl_nats == pytest.approx(other.residual_kl_nats, rel=1e-9)
    assert fit.explained.estimate == pytest.approx(other.explained, rel=1e-9)
    assert fit.explained.se == pytest.approx(other.explained_se, rel=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_are_those_of_the_cross_entropy(drawn, name):
    family = smoothing_family(name, K)
    predictions = np.random.default_rng(0).dirichlet(np.ones(K), size=drawn.counts.shape[:-1])
    block = drawn.prefixes(predictions).blocks[0]
    x = np.linspace(-0.7, 0.4, len(family.parameters))

    def at(point):
        """Value and gradient in fitted coordinates."""
        here = Coordinates(point, {})
        loss, score, hessian = block_values(family, here.values(family), block)
        first, second = here.slopes(family)
        gradient = score.sum(axis=1)
        return loss.sum(), gradient * first, hessian * np.outer(first, first) + np.diag(gradient * second)

    _, gradient, hessian = at(x)
    for index in range(len(x)):
        step = np.zeros(len(x))
        step[index] = 1e-5
        above, below = at(x + step), at(x - step)
        assert (above[0] - below[0]) / 2e-5 == pytest.approx(gradient[index], rel=1e-5, abs=1e-4)
        np.testing.assert_allclose((above[1] - below[1]) / 2e-5, hessian[index], rtol=1e-4, atol=1e-3)


def test_decayed_counts_are_those_of_a_loop():
    tokens = np.random.default_rng(1).integers(0, K, size=(4, 12))
    decay = 0.8
    counts, first, second = decayed_counts(tokens, K, decay)
    for i in range(4):
        for n in range(1, 13):
            for w in range(K):
                ages = [n - 1 - j for j in range(1, n) if tokens[i, j - 1] == tokens[i, n - 1] and tokens[i, j] == w]
                powers = [(decay**a, a * decay**a, a * a * decay**a) for a in ages]
                want = np.sum(powers, axis=0) if powers else np.zeros(3)
                got = [part[i, n - 1, w] for part in (counts, first, second)]
                assert got == pytest.approx(want.tolist())
    np.testing.assert_array_equal(decayed_counts(tokens, K, 1.0)[0], transition_counts(tokens, K))


def test_merging_equal_prefixes_changes_nothing(drawn):
    predictions = np.random.default_rng(2).dirichlet(np.ones(K), size=drawn.counts.shape[:-1])
    prefixes = drawn.prefixes(predictions)
    (merged,) = prefixes.merged()
    assert merged.shape[1] < prefixes.blocks[0].shape[1]
    for name in ("add-constant", "affine", "bonus", "asymmetric", "temperature"):
        family = smoothing_family(name, K)
        values = np.full(len(family.parameters), 0.6)
        whole = block_values(family, values, prefixes.blocks[0])
        short = block_values(family, values, merged)
        assert whole[0].sum() == pytest.approx(short[0].sum())
        np.testing.assert_allclose(whole[1].sum(axis=1), short[1].sum(axis=1), rtol=1e-9)
        np.testing.assert_allclose(whole[2], short[2], rtol=1e-9)


def test_too_many_states_to_merge_are_left_as_they_are():
    counts = np.zeros((1, 1, 40, 30), dtype=np.int32)
    counts[0, 0, :, 0] = 39
    prefixes = Prefixes.of([np.full(counts.shape, 1 / 30)], np.zeros((1, 1, 40), dtype=np.int64), counts, counts)
    assert prefixes.merged() == prefixes.blocks


def test_bounds_are_flagged_with_one_sided_intervals(drawn):
    add_one = drawn.rule(drawn.counts + 1.0)
    _, affine = fit_of(drawn, add_one, "affine")
    a, b = affine.parameters
    assert a.estimate == pytest.approx(1.0)
    assert b.boundary
    assert b.estimate == b.low == 0.0
    assert 0.0 <= b.high < 1e-9
    assert np.isnan(b.se)
    _, mixture = fit_of(drawn, add_one, "unigram-mixture")
    share = mixture.parameters[1]
    assert share.boundary
    assert share.estimate == share.low == 0.0
    assert mixture.parameters[0].estimate == pytest.approx(1.0, rel=1e-8)


def test_unigram_is_the_other_end_of_the_mixture(drawn):
    _, fit = fit_of(drawn, drawn.rule(drawn.occurrences + 1.0), "unigram-mixture")
    alpha, share = fit.parameters
    assert share.boundary
    assert share.estimate == share.high == 1.0
    assert share.low == pytest.approx(1.0)
    assert fit.residual_kl_nats == 0.0
    assert not alpha.identified
    assert np.isnan(alpha.estimate)
    assert "not identified" in alpha.note


def test_bigram_and_uniform_are_boundaries(drawn):
    bigram = fit_families(*drawn.halves(drawn.rule(drawn.counts)), families=["add-constant", "bonus", "recency"])
    for fit in bigram:
        assert fit.parameters[0].boundary
        assert fit.parameters[0].estimate == 0.0
        assert fit.residual_kl_nats == 0.0
    assert bigram[1].parameters[1].estimate == 0.0
    assert bigram[2].parameters[1].estimate == pytest.approx(1.0)
    flat = np.full(drawn.counts.shape, 1 / K)
    uniform = fit_families(*drawn.halves(flat), families=["add-constant", "affine"])
    for fit in uniform:
        assert fit.parameters[0].boundary
        assert fit.parameters[0].estimate == np.inf
        assert np.isnan(fit.explained.estimate)
        assert "0/0" in fit.explained.note
    per_visit = uniform[1].parameters[1]
    assert per_visit.boundary or not per_visit.identified


def test_a_share_near_its_bound_has_an_upper_limit():
    # Half of the chains lean to the unigram, half away from it, a little more.
    drawn = Drawn(80)
    plain = drawn.rule(drawn.counts + 1.0)
    unigram = drawn.rule(drawn.occurrences + 1.0)
    lean = np.where(np.arange(80) % 2, 0.05, -0.055)[:, None, None, None]
    mixed = (1 - lean) * plain + lean * unigram
    assert (mixed > 0).all()
    _, fit = fit_of(drawn, mixed, "unigram-mixture")
    share = fit.parameters[1]
    assert share.boundary
    assert share.estimate == share.low == 0.0
    assert 0.001 < share.high < 0.1


def test_sandwich_agrees_with_a_bootstrap():
    drawn = Drawn(60)
    rng = np.random.default_rng(3)
    slope = rng.uniform(0.05, 0.15, size=(60, 1, 1, 1))
    predictions = drawn.rule(drawn.counts + 0.3 + slope * drawn.visits)
    family = smoothing_family("affine", K)
    fit = fit_of(drawn, predictions, "affine")[1]
    parts = [drawn.prefixes(predictions, slice(g, g + 1)) for g in range(60)]
    drawn_again = []
    for _ in range(60):
        again = Prefixes.join([parts[g] for g in rng.integers(0, 60, size=60)])
        at = minimise(family, again.merged(), [Coordinates(np.array([-1.0, -2.0]), {})]).at
        drawn_again.append(at.values(family))
    spread = np.std(drawn_again, axis=0, ddof=1)
    for parameter, sd in zip(fit.parameters, spread, strict=True):
        assert parameter.se == pytest.approx(sd, rel=0.35)
        assert parameter.low < parameter.estimate < parameter.high


def test_pooled_training_runs_are_the_mean_objective(drawn):
    runs = [drawn.rule(drawn.counts + 0.5), drawn.rule(drawn.counts + 2.0)]
    pooled = Prefixes.of(runs, drawn.tokens, drawn.counts, drawn.occurrences)
    single = [drawn.prefixes(run) for run in runs]
    np.testing.assert_allclose(pooled.negative_entropy, (single[0].negative_entropy + single[1].negative_entropy) / 2)
    family = smoothing_family("add-constant", K)

    def kl(prefixes):
        return block_values(family, np.array([1.0]), prefixes.blocks[0])[0].sum() + prefixes.negative_entropy.sum()

    assert kl(pooled) == pytest.approx((kl(single[0]) + kl(single[1])) / 2)


def test_heldout_is_fitted_to_the_first_half_alone(drawn):
    predictions = drawn.rule(np.exp(2.0 * drawn.counts / np.maximum(drawn.visits, 1)))
    first, second = drawn.halves(predictions)
    fit = fit_families(first, second, families=["affine"])[0]
    alone = fit_families(first, second, families=["affine"])[0]
    assert fit.heldout == alone.heldout
    at = minimise(smoothing_family("affine", K), first.merged(), [Coordinates(np.array([-1.0, -2.0]), {})]).at
    values = at.values(smoothing_family("affine", K))
    kl = block_values(smoothing_family("affine", K), values, second.blocks[0])[0].sum() + second.negative_entropy.sum()
    assert fit.heldout.estimate == pytest.approx(kl / second.number.sum(), rel=1e-9)
    assert fit.heldout.low < fit.heldout.estimate < fit.heldout.high
    assert fit.heldout_gain.estimate == 0.0


def test_few_chains_have_no_interval():
    drawn = Drawn(2)
    predictions = drawn.rule(np.exp(2.0 * drawn.counts / np.maximum(drawn.visits, 1)))
    fit = fit_families(*drawn.halves(predictions), families=["affine"])[0]
    assert np.isnan(fit.heldout.se)
    assert "1 chain" in fit.heldout.note


def test_a_long_context_cannot_make_weights_overflow():
    # What looks at the oldest transitions alone drives the decay above 1, and 200 tokens raise it to the 198th power.
    sample = sample_chains(range(40), sequences_per_chain=1, length=200, purpose="test")
    tokens, shape = sample.tokens[:, :, :-1], (40, 1, 200, 3)
    counts, seen = (count(sample.inputs, 3).reshape(shape) for count in (transition_counts, occurrence_counts))
    first = decayed_counts(sample.inputs, 3, 1.5)[0].reshape(shape) + 1e-3
    rule = first / first.sum(axis=-1, keepdims=True)
    halves = [Prefixes.of([rule[cut]], tokens[cut], counts[cut], seen[cut]) for cut in (slice(0, 20), slice(20, 40))]
    fit = fit_families(*halves, families=["add-constant", "recency"])[1]
    assert fit.parameters[1].estimate == pytest.approx(1.5, rel=1e-4)
    assert fit.residual_kl_nats < 1e-9


def test_coordinates():
    assert natural("positive", np.log(2.0)) == pytest.approx(2.0)
    assert natural("rate", np.log(0.5)) == pytest.approx(0.5)
    assert natural("share", 0.0) == 0.5
    assert natural("real", -3.0) == -3.0


def test_bad_input_is_named(drawn):
    halves = drawn.halves(drawn.rule(drawn.counts + 1.0))
    with pytest.raises(InputError, match="unknown family"):
        fit_families(*halves, families=["add-two"])
    with pytest.raises(InputError, match="level"):
        fit_families(*halves, level=1.0)
    with pytest.raises(InputError, match="n_states"):
        smoothing_family("affine", 1)
    with pytest.raises(InputError, match="no predictions"):
        Prefixes.of([], drawn.tokens, drawn.counts, drawn.occurrences)
    with pytest.raises(InputError, match="must have shape"):
        Prefixes.of([np.zeros((1, 2))], drawn.tokens, drawn.counts, drawn.occurrences)
    with pytest.raises(InputError, match="to join"):
        Prefixes.join([])
    (merged,) = halves[0].merged()
    lost = Prefixes((merged,), np.ones(1), np.zeros(1), K)
    with pytest.raises(InputError, match="lost their chains and"):
        Prefixes.join([lost])
    with pytest.raises(InputError, match="lost their chains"):
        merged.chain_sums(np.zeros(merged.shape[1]), 1)
    for name, what in (("unigram-mixture", "occurrences"), ("recency", "sequences")):
        with pytest.raises(InputError, match=what):
            block_values(smoothing_family(name, K), np.array([1.0, 0.5]), merged)
    nothing = Prefixes.of(
        [np.full((1, 1, 1, K), 1 / K)],
        np.zeros((1, 1, 1), dtype=np.int64),
        np.zeros((1, 1, 1, K), dtype=np.int32),
        np.ones((1, 1, 1, K), dtype=np.int32),
    )
    with pytest.raises(InputError, match="nothing to fit"):
        fit_families(nothing, nothing)
