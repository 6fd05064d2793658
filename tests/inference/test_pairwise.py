from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import studentized_range, ttest_rel

from icl_estimators.inference import (
    PairMoments,
    PairwiseMoments,
    compare_pairs,
    is_rounding,
    merge_in_order,
    paired_differences,
    pairs_of_moments,
)
from icl_estimators.inference.trees import from_arrays, to_arrays
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError

RNG = np.random.default_rng(7)
VALUES = RNG.normal(size=(60, 1)) + RNG.normal(size=(60, 4)) * [0.1, 0.2, 0.1, 0.5] + [0.0, 0.02, 0.2, 0.0]


def test_each_pair_is_the_paired_difference() -> None:
    parts = [PairwiseMoments.of(VALUES[i : i + 20]) for i in range(0, 60, 20)]
    pairs = pairs_of_moments(merge_in_order(parts))
    assert list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
        (2, 3),
    ]
    for row, (i, j) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        alone = paired_differences(PairMoments.of(VALUES[:, [i]], VALUES[:, [j]]))
        assert pairs.difference[row] == pytest.approx(alone.difference[0], rel=1e-12)
        assert pairs.se[row] == pytest.approx(alone.se[0], rel=1e-12)
        pointwise = ttest_rel(VALUES[:, i], VALUES[:, j]).pvalue
        assert pointwise * (1 - 1e-9) <= pairs.p[row] <= min(1.0, 6 * pointwise) * (1 + 1e-9)
    assert pairs.notes == ("",) * 6


@pytest.mark.parametrize(("size", "freedom"), [(3, 10.0), (5, 30.0), (8, 200.0)])
def test_equal_variances_without_correlation_are_tukeys_range(size: int, freedom: float) -> None:
    means = np.linspace(0.0, 3.0, size)
    pairs = compare_pairs(means, np.eye(size), degrees_of_freedom=freedom)
    assert pairs.critical == pytest.approx(studentized_range.ppf(0.95, size, freedom) / np.sqrt(2), abs=0.02)
    exact = studentized_range.sf(np.abs(pairs.difference) / pairs.se * np.sqrt(2), size, freedom)
    np.testing.assert_allclose(pairs.p, exact, atol=0.006)
    np.testing.assert_allclose(pairs.high - pairs.difference, pairs.critical * np.sqrt(2))


def test_p_and_interval_say_the_same() -> None:
    pairs = pairs_of_moments(PairwiseMoments.of(VALUES))
    assert ((pairs.p < 0.05) == ((pairs.low > 0) | (pairs.high < 0))).all()
    assert 0 < (pairs.p < 0.05).sum() < 6


def test_common_noise_cancels_where_separate_intervals_overlap() -> None:
    common = RNG.normal(size=(400, 1))
    values = common + 0.001 * RNG.normal(size=(400, 2)) + [0.0, 0.0007]
    pairs = pairs_of_moments(PairwiseMoments.of(values))
    apart = values.std(axis=0, ddof=1) / 20
    assert apart.min() > 50 * abs(pairs.difference[0]), "separately the two cannot be told apart"
    assert pairs.high[0] < 0


def test_twins_are_identical_and_cost_the_others_nothing() -> None:
    twins = np.concatenate([VALUES, VALUES[:, :1]], axis=1)
    alone, pairs = (pairs_of_moments(PairwiseMoments.of(values)) for values in (VALUES, twins))
    row = [(int(i), int(j)) for i, j in zip(pairs.first, pairs.second, strict=True)].index((0, 4))
    assert pairs.identical.tolist() == [index == row for index in range(10)]
    assert (pairs.difference[row], pairs.se[row], pairs.low[row], pairs.high[row], pairs.p[row]) == (0, 0, 0, 0, 1)
    assert pairs.notes[row] == Note(Code.IDENTICAL)
    assert pairs.critical == pytest.approx(alone.critical, abs=0.02)
    assert is_rounding(1e-13)
    assert not is_rounding(1e-11)


def test_a_difference_that_does_not_vary_has_no_test() -> None:
    pairs = pairs_of_moments(PairwiseMoments.of([[1.0, 2.0], [3.0, 4.0], [2.0, 3.0]]))
    assert (pairs.low[0], pairs.high[0]) == (-1.0, -1.0)
    assert np.isnan(pairs.p[0])
    assert pairs.notes == ("the difference does not vary: no test",)


def test_infinite_and_undefined_values_leave_the_other_pairs_alone() -> None:
    values = VALUES.copy()
    values[3, 1], values[7, 3] = np.inf, np.nan
    parts = [PairwiseMoments.of(values[:5]), PairwiseMoments.of(values[5:])]
    pairs = pairs_of_moments(merge_in_order(parts))
    assert pairs.notes[0] == "no difference: one is infinite in 1 of 60 chains"
    assert pairs.notes[4] == "no difference: one is infinite in 1 of 60 chains, one is undefined in 1 of 60 chains"
    alone = pairs_of_moments(PairwiseMoments.of(values[:, [0, 2]]))
    assert np.isfinite(pairs.p).tolist() == [False, True, False, False, False, False]
    assert pairs.low[1] == pytest.approx(alone.low[0], rel=1e-12)


def test_one_chain_has_no_standard_error() -> None:
    pairs = pairs_of_moments(PairwiseMoments.of([[1.0, 2.0]]))
    assert pairs.difference[0] == -1.0
    assert np.isnan([pairs.se[0], pairs.low[0], pairs.p[0]]).all()
    assert pairs.notes == ("fewer than 2 chains: no standard error",)


def test_the_order_of_estimators_changes_the_sign_alone() -> None:
    straight, turned = (pairs_of_moments(PairwiseMoments.of(VALUES[:, order])) for order in ([0, 1], [1, 0]))
    assert straight.difference[0] == -turned.difference[0]
    assert (straight.se[0], straight.p[0]) == (turned.se[0], turned.p[0])


def test_moments_go_through_arrays_bit_for_bit() -> None:
    moments = PairwiseMoments.of(VALUES)
    back = from_arrays(PairwiseMoments, to_arrays(moments))
    np.testing.assert_array_equal(back.values.scatter, moments.values.scatter)
    np.testing.assert_array_equal(back.differences.centre, moments.differences.centre)


@pytest.mark.slow
def test_the_intervals_hold_for_all_pairs_at_once() -> None:
    rng, hits, studies = np.random.default_rng(1), 0, 200
    mix = rng.normal(size=(5, 5))
    for _ in range(studies):
        pairs = pairs_of_moments(PairwiseMoments.of(rng.normal(size=(40, 5)) @ mix))
        hits += bool(((pairs.low <= 0) & (pairs.high >= 0)).all())
    assert 0.95 - 3 * np.sqrt(0.95 * 0.05 / studies) < hits / studies <= 0.985


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: PairwiseMoments.of([[1.0], [2.0]]), "N at least 2"),
        (lambda: PairwiseMoments.of(VALUES).merge(PairwiseMoments.of(VALUES[:, :2])), "cannot be merged"),
        (lambda: compare_pairs(np.zeros(2), np.eye(3), degrees_of_freedom=3.0), "do not give pairs"),
        (lambda: compare_pairs(np.zeros(1), np.eye(1), degrees_of_freedom=3.0), "do not give pairs"),
        (lambda: pairs_of_moments(PairwiseMoments.of(VALUES), level=1.0), "level"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()  # type: ignore[operator]
