from __future__ import annotations

import numpy as np
import pytest
import torch

from icl_estimators.transformer import Folded, construction_folded, fold, folded_logits
from icl_estimators.transformer.kernel import kernel_logits, kernel_probabilities


@pytest.mark.parametrize("k", [2, 3, *(pytest.param(k, marks=pytest.mark.slow) for k in (4, 5, 8))])
@pytest.mark.parametrize(("length", "batch"), [(1, 1), (17, 16), (100, 37), (130, 5)])
@pytest.mark.parametrize("far", [None, "last", 3])
def test_logits_are_the_plain_ones(random_model, trained_model, tokens_of, k, length, batch, far):
    tokens = tokens_of(k, (batch, length), seed=length)
    for make in (random_model, trained_model):
        model = make(k)
        found = kernel_logits(fold(model).detach(), tokens.numpy(), far=far)
        with torch.no_grad():
            expected = model.double()(tokens, far=far).numpy()
        model.float()
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_position_depends_on_what_came_before_it_alone(random_model, tokens_of):
    """Bitwise: not on later tokens, on where the context ends, on the other sequences, or on threads."""
    folded = fold(random_model(3)).detach()
    tokens = tokens_of(3, (40, 120)).numpy()
    whole = kernel_logits(folded, tokens)
    for length in (1, 60, 100, 119):
        assert np.array_equal(kernel_logits(folded, tokens[:, :length]), whole[:, :length])
    changed = tokens.copy()
    changed[:, 70:] = (changed[:, 70:] + 1) % 3
    assert np.array_equal(kernel_logits(folded, changed)[:, :70], whole[:, :70])
    assert np.array_equal(kernel_logits(folded, tokens[17:18]), whole[17:18])
    assert np.array_equal(kernel_logits(folded, tokens[::-1]), whole[::-1])
    for threads in (2, 3, 99):
        assert np.array_equal(kernel_logits(folded, tokens, threads=threads), whole)


def test_read_only_tokens(random_model, tokens_of):
    folded = fold(random_model(3)).detach()
    tokens = tokens_of(3, (3, 9)).numpy()
    expected = kernel_logits(folded, tokens)
    tokens.setflags(write=False)
    assert np.array_equal(kernel_logits(folded, tokens), expected)


def test_wild_scores_are_left_to_torch(random_model, tokens_of):
    folded = fold(random_model(3)).detach()
    tokens = tokens_of(3, (2, 5)).numpy()
    for wild in ({"r1": 100.0 * folded.r1}, {"G": 1e4 * folded.G}, {"S1": torch.nan * folded.S1}):
        fields = {name: getattr(folded, name) for name in Folded.__slots__} | wild
        assert kernel_logits(Folded(**fields), tokens) is None
        assert kernel_probabilities(Folded(**fields), tokens) is None


def test_the_construction_runs_too(tokens_of):
    """Float64 numbers are taken, and computed in float32."""
    folded = construction_folded(3, 40, beta=12.0, gamma=2.0)
    tokens = tokens_of(3, (5, 40))
    found = kernel_logits(folded, tokens.numpy())
    np.testing.assert_allclose(found, folded_logits(folded, tokens).numpy(), atol=1e-5)


@pytest.mark.parametrize("k", [2, 3, pytest.param(5, marks=pytest.mark.slow)])
def test_probabilities_are_the_softmax(random_model, tokens_of, monkeypatch, k):
    folded = fold(random_model(k)).detach()
    tokens = tokens_of(k, (50, 33)).numpy()
    logits = kernel_logits(folded, tokens).astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    whole = kernel_probabilities(folded, tokens)
    np.testing.assert_allclose(whole, expected, rtol=1e-14)
    monkeypatch.setattr("icl_estimators.transformer.kernel.logits._ENTRIES_AT_ONCE", 1000)
    assert np.array_equal(kernel_probabilities(folded, tokens), whole)
