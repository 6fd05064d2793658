from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from icl_estimators.transformer import Folded, construction_folded, fold
from icl_estimators.transformer.reduced import (
    KERNEL_LEAVES_OUT,
    LEAVES_OUT,
    layer_one_is_safe,
    layer_two_is_safe,
    reduce,
    reduction,
)

STATES = [LEAVES_OUT, KERNEL_LEAVES_OUT, 1]


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("state", STATES)
def test_features_come_back(k, state):
    rng = np.random.default_rng(k)
    halves = rng.dirichlet(np.ones(k), size=2)
    x1 = np.append(np.delete(halves, state, axis=1), 1.0)
    np.testing.assert_allclose(reduction(k, state, like=np.zeros(1)).T @ x1, halves.ravel(), atol=1e-15)


@pytest.mark.parametrize("state", STATES)
def test_whatever_is_left_out_predictions_stay(random_model, state):
    k = 4
    folded = fold(random_model(k, length=5).double()).detach()
    rng = np.random.default_rng(k)
    query, keys = rng.dirichlet(np.ones(k), size=2), rng.dirichlet(np.ones(k), size=(5, 2))
    reduced = reduce(folded, state)
    x1 = np.append(np.delete(query, state, axis=1), 1.0)
    x = np.delete(keys, state, axis=2).reshape(5, -1)
    scores = keys.reshape(5, -1) @ (folded.G.numpy().T @ query.ravel())
    found = x @ (reduced.query.numpy() @ x1)
    np.testing.assert_allclose(found - found[0], scores - scores[0], atol=1e-12)  # a shift of the row changes nothing
    logits = query.ravel() @ folded.direct.numpy() + keys[0].ravel() @ folded.induction.numpy()
    np.testing.assert_allclose(reduced.direct.numpy() @ x1 + reduced.induction.numpy() @ x[0], logits, atol=1e-12)


@pytest.mark.parametrize("state", STATES)
def test_arrays_and_tensors_are_reduced_alike(random_model, state):
    folded = fold(random_model(3, length=5).double()).detach()
    of_arrays = reduce(Folded(*(tensor.numpy()[None] for tensor in folded.tensors)), state)
    of_tensors = reduce(folded, state)
    for name in ("query", "direct", "induction"):
        np.testing.assert_allclose(getattr(of_arrays, name)[0], getattr(of_tensors, name), atol=1e-14)


def test_safety_is_judged_for_each_layer():
    folded = construction_folded(3, 5, beta=50.0, gamma=1.0)
    assert layer_one_is_safe(folded)
    assert layer_two_is_safe(folded)
    wild = replace(folded, r1=2.0 * folded.r1)
    assert not layer_one_is_safe(wild)
    assert layer_two_is_safe(wild)
    assert not layer_two_is_safe(replace(folded, G=2.0 * folded.G))
    assert not layer_two_is_safe(replace(folded, r2=torch.full((5,), torch.nan)))
