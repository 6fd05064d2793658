from __future__ import annotations

import pytest
import torch

from icl_estimators.transformer import Folded, fold, folded_loss
from icl_estimators.transformer.kernel import kernel_loss

STATES = [2, 3, *(pytest.param(k, marks=pytest.mark.slow) for k in (4, 5, 8))]  # a compilation each
# Batches that do not divide by the 16 lanes, and one that does.
CONTEXTS = [(1, 1), (2, 7), (17, 16), (100, 37), (130, 19)]


@pytest.mark.parametrize("k", STATES)
@pytest.mark.parametrize(("length", "batch"), CONTEXTS)
def test_loss_and_every_gradient_are_the_plain_ones(
    random_model, trained_model, tokens_of, kernel_gradients, plain_gradients, largest_error, k, length, batch
):
    """At T = 130 the positions beyond the trained length of 100 go by the rule for them."""
    tokens = tokens_of(k, (batch, length + 1), seed=length)
    for make in (random_model, trained_model):
        model = make(k)
        loss, found = kernel_gradients(model, tokens)
        exact, expected = plain_gradients(model, tokens)
        assert float(loss) == pytest.approx(float(exact), rel=2e-6, abs=1e-7)
        assert largest_error(found, expected) < 1e-5


def test_a_longer_model(random_model, tokens_of, kernel_gradients, plain_gradients, largest_error):
    """130 distances with a bias of their own, more than the context uses."""
    model, tokens = random_model(3, length=160), tokens_of(3, (5, 131))
    assert largest_error(kernel_gradients(model, tokens)[1], plain_gradients(model, tokens)[1]) < 1e-5


def test_gradient_with_respect_to_the_folded_numbers(random_model, tokens_of):
    """The clean cut, against torch in float64."""
    exact = fold(random_model(3, length=20).double()).detach()
    tokens = tokens_of(3, (9, 21))
    leaves = [tensor.clone().requires_grad_() for tensor in exact.tensors]
    expected = torch.autograd.grad(folded_loss(Folded(*leaves), tokens), leaves)
    lanes = [tensor.float()[None].requires_grad_() for tensor in exact.tensors]
    found = torch.autograd.grad(kernel_loss(Folded(*lanes), tokens[None]).sum(), lanes)
    for one, other in zip(found, expected, strict=True):
        assert float((one[0] - other).norm() / other.norm()) < 2e-6


def test_upstream_gradient_is_used(random_model, tokens_of):
    folded = [fold(random_model(3, seed=seed)).detach() for seed in range(2)]
    lanes = [torch.stack(pair).requires_grad_() for pair in zip(*(one.tensors for one in folded), strict=True)]
    tokens = tokens_of(3, (2, 4, 8))
    once = torch.autograd.grad(kernel_loss(Folded(*lanes), tokens).sum(), lanes)
    weighted = torch.autograd.grad((kernel_loss(Folded(*lanes), tokens) * torch.tensor([0.0, 3.0])).sum(), lanes)
    for one, other in zip(once, weighted, strict=True):
        assert torch.allclose(other[1], 3.0 * one[1])
        assert not other[0].any()


def batch_of(*folded: Folded) -> Folded:
    return Folded(*(torch.stack(tensors) for tensors in zip(*(one.tensors for one in folded), strict=True)))


def test_a_model_gets_the_same_beside_others_and_on_any_number_of_threads(random_model, tokens_of):
    folded = [fold(random_model(3, seed=seed)).detach() for seed in range(5)]
    tokens = tokens_of(3, (5, 37, 51))
    together = kernel_loss(batch_of(*folded), tokens)
    for threads in (2, 3, 50):
        assert torch.equal(kernel_loss(batch_of(*folded), tokens, threads=threads), together)
    for model in (0, 3):
        assert torch.equal(kernel_loss(batch_of(folded[model]), tokens[model, None])[0], together[model])


def test_gradients_do_not_depend_on_threads_nor_neighbours(random_model, tokens_of):
    tensors = batch_of(*(fold(random_model(3, seed=seed)).detach() for seed in range(3))).tensors
    tokens = tokens_of(3, (3, 20, 31))

    def gradients(rows: slice, threads: int) -> tuple[torch.Tensor, ...]:
        lanes = [tensor[rows].clone().requires_grad_() for tensor in tensors]
        return torch.autograd.grad(kernel_loss(Folded(*lanes), tokens[rows], threads=threads).sum(), lanes)

    whole = gradients(slice(0, 3), 1)
    for threads in (2, 5):
        assert all(map(torch.equal, gradients(slice(0, 3), threads), whole))
    assert all(torch.equal(one, other[1:2]) for one, other in zip(gradients(slice(1, 2), 1), whole, strict=True))


@pytest.mark.parametrize("scale", [30.0, 400.0])
def test_wild_scores_take_the_slower_path(
    random_model, tokens_of, kernel_gradients, plain_gradients, largest_error, scale
):
    model = random_model(3, length=30)
    with torch.no_grad():
        for layer in model.layers:
            layer.distance_bias *= scale
            layer.query *= scale
    tokens = tokens_of(3, (4, 31))
    (loss, found), (exact, expected) = kernel_gradients(model, tokens), plain_gradients(model, tokens)
    assert float(loss) == pytest.approx(float(exact), rel=1e-4)
    assert largest_error(found, expected) < 1e-2  # float32 through scores of hundreds


def test_one_wild_model_does_not_change_the_others(random_model, tokens_of):
    tame = fold(random_model(3, length=10)).detach()
    wild = Folded(tame.S1, 100.0 * tame.r1, tame.G, tame.r2, tame.direct, tame.induction)
    tokens = tokens_of(3, (3, 4, 11))
    losses = kernel_loss(batch_of(tame, wild, tame), tokens)
    assert torch.equal(losses[2], kernel_loss(batch_of(tame), tokens[2:])[0])
    assert torch.equal(losses[1], folded_loss(wild, tokens[1]))


def test_scores_at_the_edge_of_what_is_safe(random_model, tokens_of):
    """Just below the bound nothing overflows or vanishes."""
    exact = fold(random_model(3, length=50).double()).detach()
    stretch = 119.0 / float(exact.r2.max() - exact.r2.min())
    far = Folded(0.0 * exact.S1, exact.r1, 0.0 * exact.G, stretch * exact.r2, exact.direct, exact.induction)
    tokens = tokens_of(3, (6, 51))
    lanes = Folded(*(tensor.float()[None] for tensor in far.tensors))
    assert float(kernel_loss(lanes, tokens[None])) == pytest.approx(float(folded_loss(far, tokens)), rel=1e-5)


def test_nan_is_not_hidden(random_model, tokens_of):
    model = random_model(3, length=6)
    with torch.no_grad():
        model.layers[1].query[0, 0] = torch.nan
        folded = batch_of(fold(random_model(3, length=6)), fold(model))
        losses = kernel_loss(folded, tokens_of(3, (2, 2, 7)))
    assert losses.isnan().tolist() == [False, True]


def test_nan_in_a_read_out_is_not_hidden(random_model, tokens_of):
    folded = fold(random_model(3, length=6)).detach()
    folded.direct[0, 0] = torch.nan
    assert bool(kernel_loss(batch_of(folded), tokens_of(3, (1, 2, 7))).isnan())


MEMORY = """
import resource, torch
from icl_estimators.transformer import Folded, ModelConfig, Transformer, fold
from icl_estimators.transformer.kernel import kernel_loss
folded = Folded(*(tensor[None] for tensor in fold(Transformer(ModelConfig(length=4000))).detach().tensors))
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
kernel_loss(folded, torch.zeros(1, 16, 3, dtype=torch.int64), threads=1)
before = peak()
kernel_loss(folded, torch.zeros(1, 16, 4001, dtype=torch.int64), threads=1)
print(peak() - before)
"""


@pytest.mark.slow
def test_nothing_of_size_t_squared_is_kept(python):
    """16 matrices of 4,000 × 4,000 are 977 MiB."""
    done = python("-c", MEMORY)
    assert done.stderr == ""
    assert float(done.stdout) < 30
