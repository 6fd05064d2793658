from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from icl_estimators.transformer.kernel.lane_algebra import (
    apply,
    apply_transposed,
    dot,
    exp2,
    join,
    largest,
    log,
    tail,
    total,
)
from icl_estimators.transformer.kernel.lane_memory import add_outer, add_to, load, one_hot, store, zeros
from icl_estimators.transformer.kernel.lanes import LANES, maximum

ONE, TWO, THREE = (0,), (0, 0), (0, 0, 0)


def lanes(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(*shape, LANES)).astype(np.float32)


def test_operators():
    @njit
    def run(x, out):
        a, b, one = load(x, 0, 0, TWO), load(x, 1, 0, TWO), load(x, 2, 0, ONE)
        store(out, 0, 0, a + b)
        store(out, 1, 0, a - one)
        store(out, 2, 0, one * b)
        store(out, 3, 0, a / b)
        store(out, 4, 0, 2.5 - a)
        store(out, 5, 0, a * np.float32(0.5))
        store(out, 6, 0, maximum(a, b))
        store(out, 7, 0, maximum(a, 0.25))
        a += one
        store(out, 8, 0, a)

    x, out = lanes(3, 2), np.zeros((9, 2, LANES), dtype=np.float32)
    run(x, out)
    a, b, one = x[0], x[1], x[2, :1]
    expected = [a + b, a - one, one * b, a / b, 2.5 - a, 0.5 * a, np.maximum(a, b), np.maximum(a, 0.25), a + one]
    for found, wanted in zip(out, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_rows_must_fit():
    @njit
    def run(x):
        store(x, 0, 0, load(x, 0, 0, TWO) + load(x, 0, 0, THREE))

    with pytest.raises(Exception, match="Lanes"):
        run(lanes(1, 3))


def test_memory():
    @njit
    def run(x, out, outer):
        store(out, 1, 1, load(x, 2, 1, TWO))
        add_to(out, 1, 1, load(x, 0, 0, TWO))
        add_to(out, 0, 0, zeros(THREE))
        add_outer(outer, load(x, 0, 0, TWO), load(x, 1, 0, THREE))

    x, out, outer = lanes(3, 3), np.zeros((2, 3, LANES), dtype=np.float32), np.ones((2, 3, LANES), dtype=np.float32)
    run(x, out, outer)
    assert not out[0].any()
    assert not out[1, 0].any()
    np.testing.assert_allclose(out[1, 1:], x[2, 1:] + x[0, :2], rtol=1e-6)
    np.testing.assert_allclose(outer, 1.0 + x[0, :2, None] * x[1, None], rtol=1e-5)


def test_one_hot():
    @njit
    def run(tokens, out):
        store(out, 0, 0, one_hot(tokens, 1, THREE))

    tokens = np.random.default_rng(0).integers(0, 3, (2, LANES)).astype(np.int32)
    out = np.zeros((1, 3, LANES), dtype=np.float32)
    run(tokens, out)
    assert np.array_equal(out[0], (tokens[1] == np.arange(3)[:, None]).astype(np.float32))


def test_linear_algebra():
    @njit
    def run(matrix, x, out):
        three, two = load(x, 0, 0, THREE), load(x, 1, 0, TWO)
        store(out, 0, 0, apply(matrix, three, TWO))
        store(out, 1, 0, apply_transposed(matrix, two, THREE))
        store(out, 2, 0, apply_transposed(matrix, two, ONE))
        store(out, 3, 0, dot(three, three))
        store(out, 4, 0, total(three))
        store(out, 5, 0, largest(three))
        store(out, 6, 0, join(two, 7.0))
        store(out, 7, 0, join(dot(two, two), two))
        store(out, 8, 0, tail(three, TWO))

    matrix = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
    x, out = lanes(2, 3), np.zeros((9, 3, LANES), dtype=np.float32)
    run(matrix, x, out)
    three, two = x[0], x[1, :2]
    seven = np.full((1, LANES), 7.0)
    expected = [
        matrix @ three,
        matrix.T @ two,
        (matrix.T @ two)[:1],
        (three**2).sum(axis=0, keepdims=True),
        three.sum(axis=0, keepdims=True),
        three.max(axis=0, keepdims=True),
        np.concatenate([two, seven]),
        np.concatenate([(two**2).sum(axis=0, keepdims=True), two]),
        three[1:],
    ]
    for found, wanted in zip(out, expected, strict=True):
        np.testing.assert_allclose(found[: len(wanted)], wanted, rtol=1e-5, atol=1e-6)
        assert not found[len(wanted) :].any()


@pytest.fixture(scope="module")
def functions():
    @njit
    def run(x, powers, logarithms):
        for position in range(len(x)):
            value = load(x, position, 0, ONE)
            power = exp2(value)
            store(powers, position, 0, power)
            store(logarithms, position, 0, log(power))

    def compute(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = np.resize(values.astype(np.float32), (-(-len(values) // LANES), 1, LANES))
        powers, logarithms = np.zeros_like(x), np.zeros_like(x)
        run(x, powers, logarithms)
        return powers.ravel()[: len(values)], logarithms.ravel()[: len(values)]

    return compute


def test_exp2_and_log(functions):
    edges = [-126.0, -125.5, -0.5, 0.0, 0.5, 0.49999997, 126.5, 127.0]
    values = np.concatenate([np.linspace(-126, 127, 200_001), np.linspace(-1, 1, 100_001), edges]).astype(np.float32)
    powers, logarithms = functions(values)
    exact = np.exp2(values.astype(np.float64))
    assert np.abs(powers / exact - 1.0).max() < 2.2e-7
    true_log = np.log(powers.astype(np.float64))
    assert np.abs(logarithms - true_log).max() < 4.5e-6  # about half a unit in the last place of 87
    near_one = np.abs(true_log) < 2.0
    assert np.abs(logarithms - true_log)[near_one].max() < 3e-7


def test_exp2_keeps_nan(functions):
    powers, _ = functions(np.array([np.nan, 1.0]))
    assert np.isnan(powers[0])
    assert powers[1] == pytest.approx(2.0)
