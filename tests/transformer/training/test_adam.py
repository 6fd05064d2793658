from __future__ import annotations

import torch

from icl_estimators.transformer.training import Recipe
from icl_estimators.transformer.training.adam import Moments, adam_update


def test_the_updates_of_torch_s_optimizer_bit_for_bit():
    recipe = Recipe(steps=10)
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(501, generator=generator) for _ in range(3)]
    gradients = torch.randn(10, 3, 501, generator=generator)
    expected = [row.clone().requires_grad_() for row in weights]
    optimizer = torch.optim.Adam(expected, fused=True)
    moments = [Moments.of(torch.zeros(501), torch.zeros(501), 0, torch.device("cpu")) for _ in weights]
    for step in range(10):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate(step)
        for row, gradient in zip(expected, gradients[step], strict=True):
            row.grad = gradient.clone()
        optimizer.step()
        adam_update(weights, list(gradients[step]), moments, recipe, step)
    for row, other, moment in zip(weights, expected, moments, strict=True):
        assert torch.equal(row, other)
        assert torch.equal(moment.first, optimizer.state[other]["exp_avg"])
        assert torch.equal(moment.second, optimizer.state[other]["exp_avg_sq"])
        assert moment.step == 10.0
