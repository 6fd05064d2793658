from __future__ import annotations

import math

import pytest
import torch

from icl_estimators.transformer.positions import bias_matrix, far_distance, toeplitz
from icl_estimators.validation import InputError


@pytest.mark.parametrize(
    ("far", "n_distances", "expected"),
    [(None, 100, 60), (None, 1, 0), (None, 2, 1), (None, 17, 10), ("last", 100, 99), (0, 5, 0), (4, 5, 4)],
)
def test_far_distance(far, n_distances, expected):
    assert far_distance(far, n_distances) == expected


@pytest.mark.parametrize("far", ["first", -1, 5, 2.0, True])
def test_far_distance_must_be_a_trained_one(far):
    with pytest.raises(InputError, match="far must be"):
        far_distance(far, 5)


def by_definition(bias: torch.Tensor, length: int, above: float, far: int) -> torch.Tensor:
    n_distances = len(bias)
    matrix = torch.full((length, length), above, dtype=bias.dtype)
    for i in range(length):
        for j in range(i + 1):
            matrix[i, j] = bias[i - j if i < n_distances else min(i - j, far)]
    return matrix


@pytest.mark.parametrize("length", [1, 3, 5, 6, 12])
@pytest.mark.parametrize(("far", "distance"), [(None, 3), ("last", 4), (0, 0), (2, 2)])
def test_bias_matrix(length, far, distance):
    bias = torch.arange(1.0, 6.0)
    for above in (-math.inf, 0.0):
        assert torch.equal(bias_matrix(bias, length, above, far), by_definition(bias, length, above, distance))
    both = bias_matrix(torch.stack([bias, 2 * bias]), length, 0.0, far)
    assert torch.equal(both[1], 2 * both[0])


def test_bias_matrix_checks_the_rule_even_where_it_has_no_effect():
    with pytest.raises(InputError, match="trained distance"):
        bias_matrix(torch.arange(5.0), 3, 0.0, 9)


@pytest.mark.parametrize("length", [1, 2, 17, 100])
@pytest.mark.parametrize("leading", [(), (3,), (2, 2)])
def test_toeplitz_is_indexing_by_distance(length, leading):
    generator = torch.Generator().manual_seed(length)
    bias = torch.randn(*leading, length, dtype=torch.float64, generator=generator).requires_grad_()
    i, j = torch.arange(length)[:, None], torch.arange(length)[None]
    expected = bias[..., (i - j).clamp(min=0)].masked_fill(i < j, 7.0)
    result = toeplitz(bias, 7.0)
    assert torch.equal(result, expected)
    upstream = torch.randn(result.shape, dtype=torch.float64, generator=generator)
    gradients = [torch.autograd.grad(matrix, bias, upstream, retain_graph=True)[0] for matrix in (result, expected)]
    assert torch.allclose(*gradients, rtol=1e-12, atol=1e-12)


def test_toeplitz_of_infinity_has_finite_gradient():
    bias = torch.zeros(6, requires_grad=True)
    toeplitz(bias, -math.inf).softmax(dim=-1)[:, 0].sum().backward()
    assert bias.grad is not None
    assert bool(bias.grad.isfinite().all())
