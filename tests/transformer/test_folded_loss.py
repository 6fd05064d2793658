from __future__ import annotations

import statistics
import sys
import time

import pytest
import torch
from torch.nn.functional import cross_entropy

from icl_estimators.transformer import Folded, ModelConfig, Transformer, fold, folded_loss
from icl_estimators.transformer.training import Recipe, Trainer
from icl_estimators.transformer.training.updates import advance


def plain_loss(model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    return cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def gradients(loss: torch.Tensor, model: Transformer) -> dict[str, torch.Tensor]:
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


def largest_relative_error(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    """Over tensors; one that is exactly 0 in truth is measured against the whole gradient's norm."""
    whole = max(float(tensor.norm()) for tensor in expected.values())
    errors = []
    for name, tensor in expected.items():
        norm = float(tensor.norm())
        errors.append(float((found[name] - tensor).norm()) / (norm if norm > 1e-6 * whole else whole))
    return max(errors)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("length", [1, 2, 17, 100, 130])
def test_loss_and_every_gradient_are_the_plain_ones(random_model, trained_model, tokens_of, k, length):
    tokens = tokens_of(k, (7, length + 1), seed=length)
    for make in (random_model, trained_model):
        model = make(k).requires_grad_()
        loss, expected = folded_loss(fold(model), tokens), plain_loss(model, tokens)
        assert torch.allclose(loss, expected, rtol=1e-5, atol=1e-6)
        assert largest_relative_error(gradients(loss, model), gradients(expected, model)) < 1e-4
    model = random_model(k).double()
    loss, expected = folded_loss(fold(model), tokens), plain_loss(model, tokens)
    assert largest_relative_error(gradients(loss, model), gradients(expected, model)) < 1e-9


def test_gradient_with_respect_to_the_folded_numbers(random_model, tokens_of):
    """The clean cut: against finite differences, in float64."""
    numbers = fold(random_model(3, length=6).double()).detach().tensors
    folded = Folded(*(tensor.clone().requires_grad_() for tensor in numbers))
    tokens = tokens_of(3, (4, 7))
    assert torch.autograd.gradcheck(lambda *numbers: folded_loss(Folded(*numbers), tokens), folded.tensors)


def test_upstream_gradient_is_used(random_model, tokens_of):
    model = random_model(3, length=6)
    tokens = tokens_of(3, (4, 7))
    once = gradients(folded_loss(fold(model), tokens), model)
    thrice = gradients(3.0 * folded_loss(fold(model), tokens), model)
    assert torch.allclose(3.0 * once["embedding"], thrice["embedding"], rtol=1e-5)


def test_blocks_of_sequences_add_up(random_model, tokens_of, monkeypatch):
    """A batch that does not divide into the blocks held in memory."""
    model = random_model(3, length=20).double()
    tokens = tokens_of(3, (11, 21))
    whole = folded_loss(fold(model), tokens)
    expected = gradients(whole, model)
    monkeypatch.setattr(sys.modules[folded_loss.__module__], "BLOCK_ENTRIES", 4 * 400)
    loss = folded_loss(fold(model), tokens)
    assert torch.allclose(loss, whole, rtol=1e-13)
    assert largest_relative_error(gradients(loss, model), expected) < 1e-12


@pytest.mark.parametrize("scale", [30.0, 400.0])
def test_wild_scores(random_model, tokens_of, scale):
    """Too far apart for exponentials without a shift: the slower path is taken, and the numbers are right."""
    model = random_model(3, length=30).double()
    with torch.no_grad():
        for layer in model.layers:
            layer.distance_bias *= scale
            layer.query *= scale
    tokens = tokens_of(3, (4, 31))
    loss, expected = folded_loss(fold(model), tokens), plain_loss(model, tokens)
    assert bool(loss.isfinite())
    assert largest_relative_error(gradients(loss, model), gradients(expected, model)) < 1e-9


def test_nan_is_not_hidden(random_model, tokens_of):
    model = random_model(3, length=6)
    with torch.no_grad():
        model.layers[1].query[0, 0] = torch.nan
        assert bool(folded_loss(fold(model), tokens_of(3, (2, 7))).isnan())


@pytest.mark.slow
def test_a_training_step_is_four_times_faster(tokens_of):
    """64 × 100, forward, backward and Adam, measured alternately; the plain module with torch's fused Adam."""
    plain = Transformer()
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-3, fused=True)
    trainer = Trainer(ModelConfig(), Recipe(steps=10_000))
    tokens = tokens_of(3, (64, 101))
    seconds: dict[str, list[float]] = {"plain": [], "folded": []}
    for step in range(60):
        began = time.perf_counter()
        optimizer.zero_grad()
        plain_loss(plain, tokens).backward()
        optimizer.step()
        seconds["plain"].append(time.perf_counter() - began)
        trainer._drawn = (step, tokens[None])
        began = time.perf_counter()
        advance([trainer], step + 1)
        seconds["folded"].append(time.perf_counter() - began)
    assert statistics.median(seconds["plain"]) > 4 * statistics.median(seconds["folded"])
