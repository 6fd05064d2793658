"""The training loss of several models at once, for autograd."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl_estimators.transformer.folded import Folded
from icl_estimators.transformer.folded_loss import folded_loss
from icl_estimators.transformer.kernel.distances import lines
from icl_estimators.transformer.kernel.groups import gradient_groups, group_count, shapes_for
from icl_estimators.transformer.kernel.numbers import as_arrays, empty_sums, folded_gradient, is_safe, numbers_of
from icl_estimators.transformer.kernel.threads import over_threads

__all__ = ["kernel_loss"]


def kernel_loss(folded: Folded[Tensor], tokens: Tensor, *, threads: int | None = None) -> Tensor:
    """Return each model's mean cross-entropy of predicting every next token, in nats; differentiable once.

    What a model gets depends on its numbers and tokens alone, bit for bit: not on the models beside it nor on the
    number of threads. A model whose scores lie too far apart for the kernel, or are NaN, takes the slower path of
    :func:`~icl_estimators.transformer.folded_loss.folded_loss`.

    Parameters
    ----------
    folded : Folded of float32
        S models, a leading axis on every tensor; K from 2 to 8.
    tokens : Tensor of int64, shape (S, B, T + 1)
        T tokens are read, the last is only a target.
    threads : int, optional
        As many as torch uses by default.

    Returns
    -------
    Tensor, shape (S,)

    Examples
    --------
    >>> from icl_estimators.transformer import Transformer, fold
    >>> one = fold(Transformer()).detach()
    >>> folded = Folded(*(tensor[None] for tensor in one.tensors))
    >>> tokens = torch.tensor([[0, 1, 0, 2, 0]])
    >>> bool(torch.allclose(kernel_loss(folded, tokens[None]), folded_loss(one, tokens), rtol=1e-6))
    True
    """
    length = tokens.shape[-1] - 1
    spread_out = replace(folded, r1=lines(folded.r1, length), r2=lines(folded.r2, length))
    arrays = as_arrays(spread_out)
    safe = is_safe(arrays)
    if safe.all():
        losses: Tensor = _KernelLoss.apply(arrays, folded.length, threads, tokens, *spread_out.tensors)
        return losses
    return torch.stack(
        [_alone(folded, tokens, model, safe=bool(safe[model]), threads=threads) for model in range(len(safe))]
    )


def _alone(folded: Folded[Tensor], tokens: Tensor, model: int, *, safe: bool, threads: int | None) -> Tensor:
    if safe:
        rows = slice(model, model + 1)
        return kernel_loss(Folded(*(tensor[rows] for tensor in folded.tensors)), tokens[rows], threads=threads)[0]
    return folded_loss(Folded(*(tensor[model] for tensor in folded.tensors)), tokens[model])


class _KernelLoss(torch.autograd.Function):
    """The gradient is made with the loss."""

    @staticmethod
    def forward(
        ctx: Any, arrays: Folded[Any], trained: int, threads: int | None, tokens: Tensor, *folded: Tensor
    ) -> Tensor:
        n_models, batch, _ = tokens.shape
        numbers = numbers_of(arrays, trained)
        n_groups = group_count(batch)
        sums = empty_sums(numbers, n_groups)
        shapes = shapes_for(numbers.preference.shape[-1])
        given = np.ascontiguousarray(tokens.numpy())
        work = partial(_work, tokens=given, numbers=numbers, out=sums, shapes=shapes)
        over_threads(work, n_models * n_groups, threads)
        losses, gradient = folded_gradient(numbers, sums)
        kind = folded[0].dtype
        ctx.save_for_backward(*(torch.from_numpy(array).to(kind) for array in gradient.tensors))
        return torch.from_numpy(losses).to(kind)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        factors = [gradient.view(-1, *[1] * (saved.ndim - 1)) for saved in ctx.saved_tensors]
        return (
            None,
            None,
            None,
            None,
            *(factor * saved for factor, saved in zip(factors, ctx.saved_tensors, strict=True)),
        )


def _work(first: int, last: int, **given: Any) -> None:
    gradient_groups(first, last, given["tokens"], given["numbers"], given["out"], given["shapes"])
