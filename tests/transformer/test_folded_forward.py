from __future__ import annotations

import pytest
import torch

from icl_estimators.transformer import Folded, ModelConfig, Transformer, fold, folded_attention, folded_logits
from icl_estimators.transformer.folded_forward import features
from icl_estimators.validation import InputError

LENGTHS = (1, 2, 17, 100, 130)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("length", LENGTHS)
def test_logits_are_the_plain_ones(random_model, trained_model, tokens_of, k, length):
    """Within 1e-5 in float32 and 1e-12 in float64, on random weights and after training."""
    tokens = tokens_of(k, (6, length))
    with torch.no_grad():
        for model in (random_model(k), trained_model(k)):
            assert torch.allclose(folded_logits(fold(model), tokens), model(tokens), rtol=0, atol=1e-5)
        model = random_model(k).double()
        assert torch.allclose(folded_logits(fold(model), tokens), model(tokens), rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("far", [None, "last", 3])
def test_attention_is_the_plain_one(random_model, tokens_of, k, far):
    model = random_model(k, length=20).double()
    tokens = tokens_of(k, (3, 27))
    with torch.no_grad():
        plain = model.attention(tokens, far=far)
        for matrix, expected in zip(folded_attention(fold(model), tokens, far=far), plain, strict=True):
            assert matrix.shape == (3, 27, 27)
            assert torch.allclose(matrix, expected[:, 0], atol=1e-13)


@pytest.mark.parametrize("far", ["last", 0, 5])
def test_longer_contexts_follow_the_rule(random_model, tokens_of, far):
    model = random_model(3, length=10).double()
    tokens = tokens_of(3, (4, 25))
    with torch.no_grad():
        assert torch.allclose(folded_logits(fold(model), tokens, far=far), model(tokens, far=far), atol=1e-12)


@pytest.mark.parametrize("length", [30, 130])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_causality_is_bitwise(random_model, tokens_of, length, scale):
    """Also where the scores are so far apart that the exponentials need a shift."""
    folded = fold(random_model(3)).detach()
    folded = Folded(*(tensor * scale for tensor in folded.tensors))
    tokens = tokens_of(3, (5, length))
    changed = tokens.clone()
    changed[:, 17:] = (changed[:, 17:] + 1) % 3
    assert torch.equal(folded_logits(folded, tokens)[:, :17], folded_logits(folded, changed)[:, :17])


def test_wild_scores_stay_finite_and_right(random_model, tokens_of):
    """Biases and scores hundreds of nats apart: exponentials alone would underflow to 0/0."""
    model = random_model(3, length=40).double()
    with torch.no_grad():
        for layer in model.layers:
            layer.distance_bias *= 400.0
            layer.query *= 300.0
    tokens = tokens_of(3, (4, 40))
    single = fold(model.float()).detach()
    double = Folded(*(tensor.double() for tensor in single.tensors))
    assert float(single.r1.amax() - single.r1.amin()) > 200
    logits = folded_logits(single, tokens)
    assert bool(logits.isfinite().all())
    assert torch.allclose(logits.double(), folded_logits(double, tokens), atol=1e-3)


def test_features(random_model, tokens_of):
    model = random_model(4, length=9)
    tokens = tokens_of(4, (2, 9))
    folded = fold(model).detach()
    x1 = features(folded, tokens)
    assert x1.shape == (7, 2, 9)
    one_hot = torch.nn.functional.one_hot(tokens, 4).float()  # (B, T, K)
    mass = folded_attention(folded, tokens)[0] @ one_hot
    assert torch.equal(x1[:3], one_hot[..., :3].permute(2, 0, 1))
    assert torch.allclose(x1[3:6], mass[..., :3].permute(2, 0, 1), atol=1e-6)
    assert bool((x1[6] == 1).all())


def test_evaluating_first_does_not_break_training(tokens_of):
    """What is cached under inference mode must not be a tensor that autograd refuses."""
    model = Transformer(ModelConfig(n_states=7, length=4))  # a K that nothing else has cached
    tokens = tokens_of(7, (2, 4))
    with torch.inference_mode():
        folded_logits(fold(model), tokens)
    folded_logits(fold(model), tokens).sum().backward()
    assert model.embedding.grad is not None


@pytest.mark.parametrize("call", [folded_logits, folded_attention])
def test_unknown_rule(call):
    with pytest.raises(InputError, match="far must be"):
        call(fold(Transformer(ModelConfig(length=5))), torch.zeros(1, 3, dtype=torch.int64), far=7)
