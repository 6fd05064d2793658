from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from icl_estimators.transformer import Folded, construction_folded, fold
from icl_estimators.transformer.kernel.distances import lines
from icl_estimators.transformer.kernel.numbers import as_arrays, is_safe, numbers_of
from icl_estimators.transformer.positions import bias_matrix
from icl_estimators.validation import InputError


def arrays_of(folded: Folded, length: int = 5) -> Folded:
    spread = replace(folded, r1=lines(folded.r1, length), r2=lines(folded.r2, length))
    return as_arrays(Folded(*(tensor[None] for tensor in spread.tensors)))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_reduced_numbers_act_as_the_folded_ones(random_model, k):
    folded = fold(random_model(k, length=5).double()).detach()
    numbers = numbers_of(arrays_of(folded), 5)
    rng = np.random.default_rng(k)
    token, scratch = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
    phi, x = np.concatenate([token, scratch]), np.concatenate([token[1:], scratch[1:], [1.0]])
    # Scores, but for what is the same for every key.
    keys = rng.dirichlet(np.ones(k), size=(4, 2))
    expected = keys.reshape(4, 2 * k) @ (folded.G.numpy().T @ phi)
    found = keys[:, :, 1:].reshape(4, -1) @ (numbers.query[0].T @ x)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-5)
    read = keys[0].ravel()
    logits = phi @ folded.direct.numpy() + read @ folded.induction.numpy()
    reduced = numbers.direct[0] @ x + numbers.induction[0] @ keys[0, :, 1:].ravel()
    np.testing.assert_allclose(reduced, logits, atol=1e-5)
    assert numbers.occurrence.max() == 1.0
    assert (numbers.preference.max(axis=-1) == 1.0).all()
    assert numbers.bias.max() == -numbers.bias.min()


def test_safety_is_judged_model_by_model():
    one = construction_folded(3, 5, beta=20.0, gamma=1.0)
    many = [one, replace(one, r1=70.0 * torch.eye(5, dtype=torch.float64)[0]), replace(one, G=torch.nan * one.G)]
    stacked = (arrays_of(folded).tensors for folded in many)
    together = Folded(*(np.concatenate(arrays) for arrays in zip(*stacked, strict=True)))
    assert is_safe(together).tolist() == [True, False, False]


@pytest.mark.parametrize("name", ["S1", "r1", "G", "r2"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_what_is_not_safe(name, bad):
    folded = construction_folded(3, 5, beta=1.0, gamma=1.0)
    tensor = getattr(folded, name).clone()
    tensor.view(-1)[1] = bad
    assert not is_safe(arrays_of(replace(folded, **{name: tensor})))[0]


@pytest.mark.parametrize("length", [1, 7, 10, 23])
@pytest.mark.parametrize("far", [None, "last", 0, 4])
def test_lines_make_the_matrix(length, far):
    bias = torch.randn(10, generator=torch.Generator().manual_seed(0))
    found = lines(bias, length, far)
    expected = bias_matrix(bias, length, 0.0, far)
    for i in range(length):
        for j in range(i + 1):
            assert found[0 if i < 10 else 1, i - j] == expected[i, j]
    assert found.shape == (1 if length <= 10 else 2, max(10, length))
    assert set(found.flatten().tolist()) <= set(bias.tolist())


def test_lines_refuse_a_distance_that_was_not_trained():
    with pytest.raises(InputError, match="far must be a trained distance"):
        lines(torch.zeros(3), 5, 3)
