from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from icl_estimators.inference import Moments, PairMoments, chain_values, merge_in_order, with_mean
from icl_estimators.inference.trees import from_arrays, to_arrays
from icl_estimators.validation import InputError

VALUES = hnp.arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 4)), elements=st.floats(-1e3, 1e3))


@given(VALUES, st.integers(1, 11), st.booleans())
def test_merging_parts_gives_the_moments_of_the_whole(values, cut, full):
    cut = min(cut, len(values) - 1)
    whole = Moments.of(values, full=full)
    merged = Moments.of(values[:cut], full=full).merge(Moments.of(values[cut:], full=full))
    assert merged.count == whole.count
    np.testing.assert_allclose(merged.mean, values.mean(axis=0), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(merged.scatter, whole.scatter, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(merged.variance, values.var(axis=0, ddof=1), rtol=1e-9, atol=1e-6)


def test_covariance_is_the_unbiased_one():
    values = np.random.default_rng(0).normal(size=(40, 5)) + 1e6
    np.testing.assert_allclose(Moments.of(values).covariance, np.cov(values.T), rtol=1e-9)


def test_merge_order_fixes_the_bits():
    units = np.random.default_rng(1).normal(size=(20, 50, 7))
    parts = [Moments.of(unit) for unit in units]
    again = [Moments.of(unit) for unit in units[::-1]][::-1]  # computed in another order, merged in the same one
    one, two = merge_in_order(parts), merge_in_order(again)
    for name, array in to_arrays(one).items():
        assert array.tobytes() == to_arrays(two)[name].tobytes()


def test_equal_values_have_no_variance_at_all():
    units = [Moments.of(np.full((50, 2), 0.1)) for _ in range(7)]
    whole = merge_in_order(units)
    assert whole.mean.tolist() == [0.1, 0.1]
    assert whole.variance.tolist() == [0.0, 0.0]


def test_infinite_and_undefined_values_stay_in_their_coordinate():
    values = np.array([[1.0, np.inf, np.nan, np.inf], [2.0, 3.0, 1.0, np.nan], [6.0, np.inf, 1.0, 1.0]])
    later = np.array([[3.0, 1.0, 1.0, 1.0]])
    moments = Moments.of(values).merge(Moments.of(later))
    np.testing.assert_array_equal(moments.mean, [3.0, np.inf, np.nan, np.nan])
    np.testing.assert_allclose(moments.variance, [np.var([1, 2, 6, 3], ddof=1), np.nan, np.nan, np.nan])
    assert moments.n_infinite.tolist() == [0, 2, 0, 1]
    assert moments.n_undefined.tolist() == [0, 0, 1, 1]
    assert np.isfinite(moments.covariance).sum() == 1


def test_one_unit_has_a_mean_and_no_variance():
    moments = Moments.of([[1.0, 2.0]])
    assert moments.mean.tolist() == [1.0, 2.0]
    assert np.isnan(moments.variance).all()
    assert np.isnan(moments.standard_error).all()
    assert np.isnan(moments.covariance).all()


def test_select_takes_coordinates_of_everything():
    values = np.random.default_rng(2).normal(size=(9, 4))
    values[0, 3] = np.inf
    whole, some = Moments.of(values), Moments.of(values[:, [3, 1]])
    for name, array in to_arrays(whole.select([3, 1])).items():
        np.testing.assert_array_equal(array, to_arrays(some)[name])
    np.testing.assert_array_equal(
        Moments.of(values, full=False).select(slice(0, 3)).variance, Moments.of(values[:, :3], full=False).variance
    )


@pytest.mark.parametrize("full", [True, False])
def test_arrays_go_to_a_file_and_back_without_pickle(full):
    values = np.random.default_rng(3).normal(size=(50, 3))
    values[4, 1] = np.inf
    moments = Moments.of(values, full=full)
    file = io.BytesIO()
    np.savez(file, **to_arrays(moments))
    file.seek(0)
    back = from_arrays(Moments, np.load(file, allow_pickle=False))
    assert back.count == 50
    for name, array in to_arrays(moments).items():
        assert array.tobytes() == to_arrays(back)[name].tobytes()


def test_pairs_know_the_difference_and_the_covariance():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 60, 3))
    a, b = a + 2 * b, b
    parts = [PairMoments.of(a[i : i + 20], b[i : i + 20]) for i in range(0, 60, 20)]
    pair = merge_in_order(parts)
    np.testing.assert_allclose(pair.difference.mean, (a - b).mean(axis=0))
    np.testing.assert_allclose(pair.covariance, [np.cov(a[:, j], b[:, j])[0, 1] for j in range(3)])
    back = from_arrays(PairMoments, to_arrays(pair))
    np.testing.assert_array_equal(back.covariance, pair.covariance)


def test_a_tiny_difference_keeps_its_precision():
    noise = np.random.default_rng(5).normal(size=(100, 1))
    base = np.random.default_rng(6).normal(size=(100, 1))
    pair = PairMoments.of(base + 1e-9 * noise, base)
    np.testing.assert_allclose(np.sqrt(pair.difference.variance), 1e-9 * noise.std(ddof=1), rtol=1e-5)


def test_a_difference_that_involves_inf_is_undefined():
    pair = PairMoments.of([[np.inf, np.inf, 1.0], [1.0, 2.0, 3.0]], [[1.0, np.inf, 0.0], [1.0, 1.0, 1.0]])
    assert pair.difference.n_undefined.tolist() == [1, 1, 0]
    np.testing.assert_array_equal(pair.difference.mean, [np.nan, np.nan, 1.5])


def test_mean_over_lengths_is_infinite_where_one_is():
    result = with_mean(np.array([[1.0, np.inf], [1.0, np.nan], [1.0, 3.0]]))
    np.testing.assert_array_equal(result[:, 2], [np.inf, np.nan, 2.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Moments.of([1.0, 2.0]), r"must have shape \(G, D\)"),
        (lambda: Moments.of(np.empty((0, 3))), "at least one unit"),
        (lambda: Moments.of([[0.0, 1.0], [0.0, -np.inf]]), "unit 1, coordinate 1 is -inf"),
        (lambda: Moments.of([[1.0]]).merge(Moments.of([[1.0, 2.0]])), "cannot be merged"),
        (lambda: Moments.of([[1.0]]).merge(Moments.of([[1.0]], full=False)), "cannot be merged"),
        (lambda: Moments.of([[1.0]], full=False).covariance, "variances only"),
        (lambda: merge_in_order([]), "no moments to merge"),
        (lambda: PairMoments.of([[1.0]], [[1.0, 2.0]]), "equal shapes"),
        (lambda: PairMoments.of([[1.0]], [[1.0]]).merge(PairMoments.of([[1.0, 1.0]], [[1.0, 1.0]])), "merged"),
        (lambda: chain_values(np.zeros((5, 2)), 2), "5 sequences cannot be shared out evenly among 2 chains"),
        (lambda: chain_values(np.zeros((5, 2)), 0), "n_chains"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
