"""What the tests of the kernel share: gradients by name, and their distance from those of the plain float64 module."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import cross_entropy

pytest.importorskip("numba")

from icl_estimators.transformer import Folded, Transformer, fold
from icl_estimators.transformer.kernel import kernel_loss

Gradients = dict[str, torch.Tensor]


@pytest.fixture(scope="session")
def kernel_gradients() -> Callable[[Transformer, torch.Tensor], tuple[torch.Tensor, Gradients]]:
    """Return the kernel's loss of one model and its gradient with respect to every weight."""

    def compute(model: Transformer, tokens: torch.Tensor) -> tuple[torch.Tensor, Gradients]:
        weights = dict(model.requires_grad_().named_parameters())
        folded = Folded(*(tensor[None] for tensor in fold(weights).tensors))
        (loss,) = kernel_loss(folded, tokens[None])
        return loss.detach(), dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))

    return compute


@pytest.fixture(scope="session")
def plain_gradients() -> Callable[[Transformer, torch.Tensor], tuple[torch.Tensor, Gradients]]:
    """The same of the plain module in float64."""

    def compute(model: Transformer, tokens: torch.Tensor) -> tuple[torch.Tensor, Gradients]:
        plain = Transformer(model.config).double()
        plain.load_state_dict(model.state_dict())
        loss = cross_entropy(plain(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        weights = dict(plain.named_parameters())
        return loss.detach(), dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))

    return compute


@pytest.fixture(scope="session")
def largest_error() -> Callable[[Gradients, Gradients], float]:
    """Return the largest relative error of a tensor; one that is 0 in truth is measured against the whole gradient."""

    def compare(found: Gradients, expected: Gradients) -> float:
        whole = max(float(tensor.norm()) for tensor in expected.values())
        errors = []
        for name, tensor in expected.items():
            norm = float(tensor.norm())
            errors.append(float((found[name] - tensor).norm()) / (norm if norm > 1e-6 * whole else whole))
        return max(errors)

    return compare
