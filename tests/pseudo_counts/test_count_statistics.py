from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.divergences import kl_divergence
from icl_estimators.inference.trees import from_arrays, to_arrays
from icl_estimators.pseudo_counts import (
    GROUPINGS,
    CountStatistics,
    Predictions,
    PrefixGroups,
    PseudoCountMoments,
    count_statistics,
    fitted_values,
    prediction_sums,
    unseen_sums,
)
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.sources import sample_chains, transition_counts
from icl_estimators.validation import InputError

R, S, T, K = 6, 3, 12, 3


@pytest.fixture(scope="module")
def drawn():
    sample = sample_chains(range(R), sequences_per_chain=S, length=T, purpose="test")
    counts = transition_counts(sample.inputs, K).reshape(R, S, T, K)
    predictions = np.random.default_rng(0).dirichlet(np.ones(K), size=(R, S, T))
    return predictions, counts


def group(counts, by, value):
    visits = counts.sum(axis=-1)
    lengths = np.broadcast_to(np.arange(1, T + 1), visits.shape)
    chosen = {"overall": visits > 0, "visits": visits == value, "context-length": lengths == value}[by]
    return chosen & (visits > 0)


@pytest.mark.parametrize("by", GROUPINGS)
@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_the_sums_give_the_objective_chain_by_chain(drawn, by, alpha):
    predictions, counts = drawn
    found = count_statistics(predictions, counts, by)
    assert tuple(found) == fitted_values(by, T)
    rule = (counts + alpha) / (counts.sum(axis=-1, keepdims=True) + K * alpha)
    kl = kl_divergence(predictions, rule)
    for value, statistics in found.items():
        chosen = group(counts, by, value)
        for chain in range(R):
            objective = AddConstantObjective(statistics.rows[chain], statistics.visits, K)
            assert objective.n_prefixes == chosen[chain].sum()
            assert objective.kl(alpha) == pytest.approx(kl[chain][chosen[chain]].sum(), abs=1e-12)


def test_derivatives_are_those_of_the_objective(drawn):
    statistics = count_statistics(*drawn, "overall")[0]
    objective = AddConstantObjective(statistics.rows.sum(axis=0), statistics.visits, K)
    for alpha in (1e-3, 0.2, 0.999, 1.001, 30.0):
        step = 1e-5 * alpha
        slope = (objective.kl(alpha + step) - objective.kl(alpha - step)) / (2 * step)
        assert objective.score_coefficients(alpha) @ objective.sums == pytest.approx(slope, rel=1e-5)
        below, above = (objective.score_coefficients(a) @ objective.sums for a in (alpha - step, alpha + step))
        curvature = objective.curvature_coefficients(alpha) @ objective.sums
        assert curvature == pytest.approx((above - below) / (2 * step), rel=1e-4)


def test_rows_that_are_off_by_rounding_are_normalised(drawn):
    predictions, counts = drawn
    exact = count_statistics(predictions, counts, "overall")[0]
    off = count_statistics(predictions * (1 + 1e-7), counts, "overall")[0]
    np.testing.assert_allclose(off.rows, exact.rows, rtol=1e-12)


def test_average_over_training_runs_is_the_pooled_objective(drawn):
    predictions, counts = drawn
    others = np.random.default_rng(1).dirichlet(np.ones(K), size=(R, S, T))
    runs = [count_statistics(p, counts, "visits") for p in (predictions, others)]
    mean = CountStatistics.average([run[2] for run in runs])
    objectives = [AddConstantObjective(s.rows.sum(axis=0), s.visits, K) for s in (runs[0][2], runs[1][2], mean)]
    assert objectives[2].kl(0.7) == pytest.approx((objectives[0].kl(0.7) + objectives[1].kl(0.7)) / 2)


def test_moments_do_not_depend_on_how_chains_are_cut(drawn):
    predictions, counts = drawn
    whole = count_statistics(predictions, counts, "visits")
    first, second = (count_statistics(predictions[cut], counts[cut], "visits") for cut in (slice(0, 2), slice(2, R)))
    for value in (1, 3):
        parts = [PseudoCountMoments.of(part[value]) for part in (first, second)]
        merged, at_once = parts[0].merge(parts[1]), PseudoCountMoments.of(whole[value])
        assert merged.n_chains == at_once.n_chains
        np.testing.assert_allclose(merged.moments.centre, at_once.moments.centre, atol=1e-13)
        np.testing.assert_allclose(merged.moments.scatter, at_once.moments.scatter, atol=1e-12)
        stored = from_arrays(PseudoCountMoments, to_arrays(merged))
        np.testing.assert_array_equal(stored.moments.scatter, merged.moments.scatter)
        assert stored.moments.size - len(stored.visits) - 1 == value + 1


def test_chains_without_such_a_prefix_do_not_count(drawn):
    statistics = count_statistics(*drawn, "visits")
    for value, found in statistics.items():
        moments = PseudoCountMoments.of(found)
        contributing = int(found.prefixes.any(axis=1).sum())
        assert (moments.n_chains if moments else 0) == contributing, value
    assert PseudoCountMoments.of(count_statistics(*drawn, "context-length")[1]) is None


def test_unseen_states_are_kept_apart(drawn):
    predictions, counts = drawn
    unseen = counts.sum(axis=-1) == 0
    kl = kl_divergence(predictions, np.full_like(predictions, 1 / K))
    total, number = unseen_sums(Predictions.of(predictions), counts)
    assert number.tolist() == unseen.sum(axis=(1, 2)).tolist()
    np.testing.assert_allclose(total, np.where(unseen, kl, 0.0).sum(axis=(1, 2)))


def test_mean_predictions_are_those_of_a_loop(drawn):
    predictions, counts = drawn
    total, number = prediction_sums(Predictions.of(predictions), counts, 2)
    visits = counts.sum(axis=-1, keepdims=True)
    for count in range(3):
        chosen = (visits == 2) & (counts == count)
        assert number[:, count].sum() == chosen.sum()
        assert total[:, count].sum() == pytest.approx(predictions[chosen].sum())


def test_long_contexts_are_thinned():
    values = fitted_values("visits", 1000)
    assert values[:100] == tuple(range(1, 101))
    assert values[-1] == 999
    assert len(values) < 130
    assert fitted_values("visits", 1) == ()


def test_one_token_has_no_prefix_to_fit():
    predictions, counts = np.full((2, 1, 1, 2), 0.5), np.zeros((2, 1, 1, 2), dtype=np.int32)
    assert count_statistics(predictions, counts, "visits") == {}
    assert PseudoCountMoments.of(count_statistics(predictions, counts, "overall")[0]) is None


def test_bad_input_is_named(drawn):
    predictions, counts = drawn
    statistics = count_statistics(predictions, counts, "visits")
    moments = PseudoCountMoments.of(statistics[1])
    with pytest.raises(InputError, match="predictions must have shape"):
        Predictions.of(predictions[0])
    with pytest.raises(InputError, match="counts must have shape"):
        PrefixGroups(counts[0], "visits")
    with pytest.raises(InputError, match="must both have shape"):
        count_statistics(predictions[:1], counts, "visits")
    with pytest.raises(InputError, match="by must be one of"):
        count_statistics(predictions, counts, "weight", [1])
    with pytest.raises(InputError, match="by must be one of"):
        fitted_values("weight", 3)
    with pytest.raises(InputError, match="length"):
        fitted_values("visits", 0)
    with pytest.raises(InputError, match="from 0 to 12"):
        count_statistics(predictions, counts, "visits", [13])
    with pytest.raises(InputError, match="no statistics"):
        CountStatistics.average([])
    with pytest.raises(InputError, match="different prefixes"):
        CountStatistics.average([statistics[1], statistics[2]])
    with pytest.raises(InputError, match="different groups"):
        moments.merge(PseudoCountMoments.of(statistics[2]))
    with pytest.raises(InputError, match="visits"):
        prediction_sums(Predictions.of(predictions), counts, 0)
