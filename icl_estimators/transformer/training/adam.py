"""Adam's update as one fused operation of torch, without the optimizer object.

``torch.optim.Adam`` makes the same update. But creating it loads torch's compiler: seconds in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adam import adam

from icl_estimators.transformer.training.recipe import Recipe

__all__ = ["Moments", "adam_update"]


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What Adam remembers of one run's gradients; updates change it in place.

    Attributes
    ----------
    first, second : Tensor, shape (P,)
    step : Tensor of float32, shape ()
        Updates so far.
    """

    first: Tensor
    second: Tensor
    step: Tensor

    @classmethod
    def of(cls, first: Tensor, second: Tensor, step: int, device: torch.device) -> Moments:
        """Return copies on the device."""
        return cls(first.to(device, copy=True), second.to(device, copy=True), torch.tensor(float(step), device=device))


@torch.no_grad()
def adam_update(
    weights: Sequence[Tensor], gradients: Sequence[Tensor], moments: Sequence[Moments], recipe: Recipe, step: int
) -> None:
    """Update the weights of each run in place, with the step size of update `step`."""
    adam(
        list(weights),
        list(gradients),
        [one.first for one in moments],
        [one.second for one in moments],
        [],
        [one.step for one in moments],
        fused=True,
        amsgrad=False,
        beta1=recipe.beta1,
        beta2=recipe.beta2,
        lr=recipe.learning_rate(step),
        weight_decay=0.0,
        eps=recipe.epsilon,
        maximize=False,
    )
