from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from icl_estimators.chains import ChainLaw, sample_batches
from icl_estimators.chains.compiled import draw_tokens
from icl_estimators.chains.sampling import draw_tokens as draw_by_numpy


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
