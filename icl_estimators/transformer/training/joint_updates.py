"""Updates of several training runs at once, by the kernel.

Runs at the same step share one fold, one pass of the kernel over all their sequences and one call of Adam. Each run
gets the same bits as alone. With several threads only the kernel uses them, because its results do not depend on
their number; torch's may.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from icl_estimators.transformer.folded import fold
from icl_estimators.transformer.kernel import kernel_loss
from icl_estimators.transformer.training.adam import adam_update
from icl_estimators.transformer.training.alignment import CACHE_LINE
from icl_estimators.transformer.training.trainer import Trainer

__all__ = ["advance_together"]


def advance_together(trainers: Sequence[Trainer], to: int, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Make updates until `to` of them have been made, or `should_stop` says so between two.

    Parameters
    ----------
    trainers : sequence of Trainer
        With the same config and recipe, at the same step, on the CPU.
    to : int
    should_stop : callable
    """
    config, recipe = trainers[0].config, trainers[0].recipe
    weights = _rows([trainer.weights for trainer in trainers])
    loss_sum = torch.stack([trainer.loss_sum for trainer in trainers])
    moments = [trainer.moments for trainer in trainers]
    step = trainers[0].step
    with _one_torch_thread() as threads:
        try:
            while step < min(to, recipe.steps) and not should_stop():
                tokens = torch.stack([trainer.batch(step) for trainer in trainers])
                losses = kernel_loss(fold(_by_name(weights, config.parameter_shapes)), tokens, threads=threads)
                (gradient,) = torch.autograd.grad(losses.sum(), weights)
                adam_update(weights.detach().unbind(), gradient.unbind(), moments, recipe, step)
                loss_sum += losses.detach()
                step += 1
                for trainer in trainers:
                    trainer.step = step
        finally:
            for trainer, row, total in zip(trainers, weights.detach(), loss_sum, strict=True):
                trainer.weights.detach().copy_(row)
                trainer.loss_sum.copy_(total)


def _rows(flat: Sequence[Tensor]) -> Tensor:
    """Return a leaf of shape (S, P) whose rows all begin at a line of the cache."""
    n_weights = flat[0].numel()
    memory = torch.zeros(len(flat), -(-n_weights // CACHE_LINE) * CACHE_LINE)
    rows = memory[:, :n_weights]
    rows.copy_(torch.stack([row.detach() for row in flat]))
    return rows.requires_grad_()


def _by_name(rows: Tensor, shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    pieces = rows.split([math.prod(shape) for shape in shapes.values()], dim=1)
    return {name: piece.view(len(rows), *shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}


@contextmanager
def _one_torch_thread() -> Iterator[int]:
    """Give the number of threads for the kernel, and one to torch."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
