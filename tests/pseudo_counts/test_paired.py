from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.notes import Code, Note
from icl_estimators.pseudo_counts import PairedPseudoCountMoments, count_statistics, pseudo_count_difference
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.sources import sample_chains, transition_counts
from icl_estimators.validation import InputError

K, R = 3, 80


def add(constant, counts):
    return (counts + constant) / (counts.sum(axis=-1, keepdims=True) + K * constant)


def alpha(statistics, rows):
    return AddConstantObjective(rows.sum(axis=0), statistics.visits, K).minimum().alpha


@pytest.fixture(scope="module")
def counts():
    sample = sample_chains(range(R), sequences_per_chain=3, length=30, purpose="test")
    return transition_counts(sample.inputs, K).reshape(R, 3, 30, K)


def pair_of(predictions, counts, by="overall", value=0):
    return tuple(count_statistics(p, counts, by)[value] for p in predictions)


def noisy(counts):
    """Two estimators that share a chain's noise, and have some of their own."""
    rng = np.random.default_rng(0)
    shared, own = rng.uniform(-1, 1, (R, 1, 1, 1)), rng.uniform(-0.2, 0.2, (R, 1, 1, 1))
    direction = np.array([1.0, -0.5, -0.5])
    rules = [add(0.5, counts), add(1.5, counts)]
    noise = [shared, shared + own]
    return [
        rule + 0.8 * sign * rule.min(axis=-1, keepdims=True) * direction
        for rule, sign in zip(rules, noise, strict=True)
    ]


def test_difference_of_two_exact_rules_has_zero_width(counts):
    pair = PairedPseudoCountMoments.of(*pair_of([add(0.5, counts), add(2.0, counts)], counts))
    result = pseudo_count_difference(pair)
    assert result.difference == pytest.approx(np.log(0.25), abs=1e-9)
    assert result.se == 0.0
    assert result.low == result.high == result.difference
    assert (result.first.estimate, result.second.estimate) == pytest.approx((0.5, 2.0))


def test_paired_interval_agrees_with_a_paired_bootstrap(counts):
    first, second = pair_of(noisy(counts), counts)
    result = pseudo_count_difference(PairedPseudoCountMoments.of(first, second))
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(300):
        pick = rng.integers(0, R, size=R)
        drawn.append(np.log(alpha(first, first.rows[pick]) / alpha(second, second.rows[pick])))
    assert result.se == pytest.approx(np.std(drawn, ddof=1), rel=0.15)
    apart = np.hypot(result.first.se_log, result.second.se_log)
    assert result.se < 0.8 * apart  # the shared noise drops out
    assert result.low < result.difference < result.high


def test_parts_are_merged(counts):
    predictions = noisy(counts)
    whole = PairedPseudoCountMoments.of(*pair_of(predictions, counts, "visits", 2))
    parts = [
        PairedPseudoCountMoments.of(*pair_of([p[cut] for p in predictions], counts[cut], "visits", 2))
        for cut in (slice(0, 30), slice(30, R))
    ]
    merged = pseudo_count_difference(parts[0].merge(parts[1]))
    at_once = pseudo_count_difference(whole)
    assert merged.difference == pytest.approx(at_once.difference, abs=1e-10)
    assert merged.se == pytest.approx(at_once.se)


def test_no_difference_from_a_boundary(counts):
    uniform = np.full(counts.shape, 1 / K)
    result = pseudo_count_difference(PairedPseudoCountMoments.of(*pair_of([add(1.0, counts), uniform], counts)))
    assert np.isnan([result.difference, result.se, result.low]).all()
    assert result.note == "no difference: the second pseudo-count is inf"


def test_one_chain_has_no_interval(counts):
    result = pseudo_count_difference(PairedPseudoCountMoments.of(*pair_of([p[:1] for p in noisy(counts)], counts[:1])))
    assert np.isfinite(result.difference)
    assert np.isnan(result.se)
    assert result.note == Note(Code.TOO_FEW_CHAINS)


def test_nothing_to_pair(counts):
    assert PairedPseudoCountMoments.of(*pair_of(noisy(counts), counts, "context-length", 1)) is None


def test_bad_input_is_named(counts):
    first, second = pair_of(noisy(counts), counts)
    other = count_statistics(add(1.0, counts), counts, "visits")[1]
    with pytest.raises(InputError, match="same prefixes"):
        PairedPseudoCountMoments.of(first, other)
    pair = PairedPseudoCountMoments.of(first, second)
    with pytest.raises(InputError, match="different groups"):
        pair.merge(PairedPseudoCountMoments.of(other, other))
    with pytest.raises(InputError, match="level"):
        pseudo_count_difference(pair, level=0.0)
