from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from icl_estimators.sources import ChainLaw, sample_batches
from icl_estimators.sources import compiled_sampling as compiled
from icl_estimators.sources.compiled_sampling import MARGIN, draw_tokens, training_tokens
from icl_estimators.sources.prior import dirichlet_rows
from icl_estimators.sources.sampling import draw_tokens as draw_by_numpy


@pytest.mark.parametrize(
    "law", [ChainLaw(), ChainLaw(2, 0.3, "stationary"), ChainLaw(8), ChainLaw(5, 0.001), ChainLaw(3, 50.0)]
)
def test_the_very_tokens_of_numpy(law):
    options = {"batch": 16, "length": 40, "law": law, "seed": 3}
    expected = sample_batches(range(5, 9), **options)
    found = sample_batches(range(5, 9), draw=draw_tokens, **options)
    assert np.array_equal(found.tokens, expected.tokens)
    assert found.tokens.dtype == expected.tokens.dtype


def test_uniforms_on_an_edge_go_the_same_way():
    transition = np.array([[[0.25, 0.5, 0.25], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]])
    start = np.array([[0.5, 0.25, 0.25]])
    grid = np.array([0.0, 0.25, np.nextafter(0.25, 0), 0.5, 0.75, np.nextafter(0.75, 1), 1 - 2.0**-53])
    uniforms = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(1, -1, 3)
    assert np.array_equal(draw_tokens(transition, start, uniforms), draw_by_numpy(transition, start, uniforms))


def test_a_sum_below_one_opens_no_further_state():
    transition = np.full((1, 3, 3), 0.1)
    uniforms = np.full((1, 2, 4), 0.999)
    assert draw_tokens(transition, transition[:, 0], uniforms).max() == 2


@pytest.mark.parametrize(
    "law", [ChainLaw(), ChainLaw(2), ChainLaw(8), ChainLaw(3, 0.5), ChainLaw(3, 1.0, "stationary")]
)
@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("batch", [64, 13])
def test_training_tokens_are_the_sampler_s(law, seed, batch):
    options = {"batch": batch, "length": 50, "law": law, "seed": seed}
    found = training_tokens(range(100, 140), **options)
    assert np.array_equal(found, sample_batches(range(100, 140), **options).tokens)


@pytest.fixture
def near():
    """Draw one chain by edges that are known to within the margin; say whether that is certain."""

    def draw(of_rows, of_tokens):
        tokens, certain = np.empty((1, len(of_tokens)), dtype=np.int64), np.empty(1, dtype=np.bool_)
        k = len(of_rows)
        edges = np.empty((1, k + 1, k))
        compiled._near_edges(np.asarray(of_rows, dtype=float)[None], np.full(k, 1.0 / k).cumsum(), edges, certain)
        compiled._walk(edges, np.asarray(of_tokens)[None], tokens, certain)
        return tokens[0].tolist(), bool(certain[0])

    return draw


def test_what_comes_too_near_is_not_certain(near):
    of_rows = np.random.default_rng(0).random((3, 3, 2))
    row = dirichlet_rows(of_rows, 1.0)[0].cumsum()
    assert near(of_rows, [0.1, row[0] + 10 * MARGIN]) == ([0, 1], True)
    assert near(of_rows, [0.1, row[0] - 10 * MARGIN]) == ([0, 0], True)
    for distance in (0.5 * MARGIN, 0.0, -0.5 * MARGIN):
        assert not near(of_rows, [0.1, row[0] + distance])[1]
    assert not near(of_rows, [1.0 / 3.0, 0.5])[1]  # the first token's law has edges too


@pytest.mark.parametrize("u", [2.0**-54, 1e-8, 4e-7])
def test_where_the_equation_loses_digits_nothing_is_certain(near, u):
    of_rows = np.full((2, 2, 2), 0.5)
    assert near(of_rows, [0.1, 0.2])[1]
    of_rows[1, 0, 0] = u
    assert not near(of_rows, [0.1, 0.2])[1]


def test_edges_are_in_error_by_less_than_a_tenth_of_the_margin(near):
    """Down to the smallest and up to the largest uniform: the decisions at a tenth of the margin are the exact ones."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        of_rows = np.clip(
            np.where(rng.random((3, 3, 2)) < 0.5, rng.random((3, 3, 2)), rng.random((3, 3, 2)) ** 9), 6e-7, 1
        )
        of_rows[..., 0] = np.where(rng.random((3, 3)) < 0.2, 1.0 - 2.0 ** -rng.uniform(1, 53, (3, 3)), of_rows[..., 0])
        row = dirichlet_rows(of_rows, 1.0)[0].cumsum()
        for edge, below, above in ((row[0], 0, 1), (row[1], 1, 2)):
            if row[0] + 1e-6 < row[1] < 1.0 - 1e-6:
                assert near(of_rows, [0.1, edge - 0.1 * MARGIN])[0][1] == below
                assert near(of_rows, [0.1, edge + 0.1 * MARGIN])[0][1] == above


def test_the_uncertain_are_drawn_in_the_exact_way(monkeypatch):
    def doubt(edges, of_tokens, tokens, certain):
        walk(edges, of_tokens, tokens, certain)
        certain[[2, 5]] = False
        tokens[[2, 5]] = -1

    walk = compiled._walk
    monkeypatch.setattr(compiled, "_walk", doubt)
    options = {"batch": 8, "length": 30, "law": ChainLaw(), "seed": 1}
    assert np.array_equal(training_tokens([3, 4], **options), sample_batches([3, 4], **options).tokens)
