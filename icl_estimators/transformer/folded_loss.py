"""The training loss and its gradient with respect to the folded numbers, without keeping a T × T matrix.

Folded numbers and tokens go in, loss and gradient come out. Autograd carries the gradient on to the
weights. The T × T part is written by hand, for one block of sequences at a time on reused memory; autograd
does the rest. With E = exp(scores) unnormalised, Z = Σ_j E_ij, o = x Eᵀ/Z and g the gradient of o,

    ∂score_ij = E_ij (g_i · x_j − g_i · o_i)/Z_i

so that E alone is needed, and both factors of the bracket are one product with x̃ = (x, 1).
"""

from __future__ import annotations

import math
import threading
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from icl_estimators.transformer.folded import Folded
from icl_estimators.transformer.folded_forward import LOG2_E, by_sequence, features, folded_logits, mix
from icl_estimators.transformer.positions import bias_matrix
from icl_estimators.transformer.reduced import layer_two_is_safe, reduce

__all__ = ["folded_loss"]

BLOCK_ENTRIES = 2**20
"""How many entries of T × T matrices are in memory at once: 104 sequences at T = 100."""


def folded_loss(folded: Folded[Tensor], tokens: Tensor) -> Tensor:
    """Return the mean cross-entropy of predicting every next token, in nats; differentiable once.

    Parameters
    ----------
    folded : Folded
        One model.
    tokens : Tensor of int64, shape (B, T + 1)
        T tokens are read, the last is only a target.

    Returns
    -------
    Tensor, shape ()

    Examples
    --------
    >>> from icl_estimators.transformer import Transformer, fold
    >>> loss = folded_loss(fold(Transformer()), torch.tensor([[0, 1, 0, 2, 0]]))
    >>> round(float(loss.detach()), 1)  # log 3 before training
    1.1
    """
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    if not layer_two_is_safe(folded):
        return cross_entropy(folded_logits(folded, inputs).flatten(0, 1), targets.flatten())
    reduced = reduce(folded)
    x1 = features(folded, inputs)  # (m+1, B, T)
    centre = 0.5 * (folded.r2.detach().amax() + folded.r2.detach().amin())
    bias = bias_matrix((folded.r2 - centre) * LOG2_E, inputs.shape[1], -math.inf)  # (T, T)
    query = mix(reduced.query * LOG2_E, x1)  # (m, B, T): scores are in base 2, where exponentials are cheapest
    loss: Tensor = _AttendAndScore.apply(query, x1, bias, mix(reduced.direct, x1), reduced.induction, targets)
    return loss


class _AttendAndScore(torch.autograd.Function):
    """Layer 2, the read-out and the loss; the gradient is made in the forward pass, while E is at hand."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, x1: Tensor, bias: Tensor, direct_logits: Tensor, induction: Tensor, targets: Tensor
    ) -> Tensor:
        _, n_sequences, length = query.shape
        d_query, d_x1, d_logits = torch.empty_like(query), torch.empty_like(x1), torch.empty_like(direct_logits)
        d_bias, d_induction = torch.zeros_like(bias), torch.zeros_like(induction)
        loss = query.new_zeros(())
        block = min(max(1, BLOCK_ENTRIES // length**2), n_sequences)
        exponentials, brackets = _scratch.buffers(query, block)
        for first in range(0, n_sequences, block):
            part = slice(first, min(first + block, n_sequences))
            e, d_scores = exponentials[: part.stop - first], brackets[: part.stop - first]  # (b, T, T)
            q, keys1 = by_sequence(query[:, part]), by_sequence(x1[:, part])  # (b, m, T), (b, m+1, T)
            keys = keys1[:, :-1]
            torch.baddbmm(bias, q.mT, keys, out=e)
            torch.exp2(e, out=e)
            sums = by_sequence(keys1 @ e.mT)  # (m+1, b, T): Σ_j E_ij x_j and, last, Z
            normaliser = sums[-1]
            averaged = sums[:-1] / normaliser
            log_p = (direct_logits[:, part] + mix(induction, averaged)).log_softmax(dim=0)  # (K, b, T)
            target = targets[None, part]
            loss -= log_p.gather(0, target).sum()
            d_out = log_p.exp_().scatter_add_(0, target, -torch.ones_like(target, dtype=log_p.dtype))
            d_logits[:, part] = d_out
            d_induction += d_out.flatten(1) @ averaged.flatten(1).mT
            g = mix(induction.mT, d_out) / normaliser  # (m, b, T)
            g1 = by_sequence(torch.cat([g, -(g * averaged).sum(dim=0, keepdim=True)]))  # (b, m+1, T)
            torch.bmm(g1.mT, keys1, out=d_scores).mul_(e)
            d_bias += d_scores.sum(dim=0)
            d_query[:, part] = by_sequence(keys @ d_scores.mT)
            d_x1[:-1, part] = by_sequence(torch.baddbmm(q @ d_scores, by_sequence(g), e, beta=1.0 / LOG2_E))
        d_x1[-1] = 0.0  # the constant row
        mean = 1.0 / (n_sequences * length)
        base_2 = mean / LOG2_E  # the derivative with respect to a score in base 2 is log 2 times that in nats
        ctx.save_for_backward(
            d_query.mul_(base_2), d_x1.mul_(mean), d_bias.mul_(base_2), d_logits.mul_(mean), d_induction.mul_(mean)
        )
        return loss * mean

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradient * saved for saved in ctx.saved_tensors), None)


class _Scratch(threading.local):
    """Two (b, T, T) buffers kept between steps, one pair a thread.

    Fresh memory of this size comes from the system, and touching it for the first time costs more than all
    the arithmetic that is done on it.
    """

    def __init__(self) -> None:
        self._pair = torch.empty(2, 0, 0, 0)

    def buffers(self, like: Tensor, block: int) -> Tensor:
        """Return an uninitialised tensor of shape (2, block, T, T) of the type and device of `like`."""
        shape = (2, block, like.shape[-1], like.shape[-1])
        pair = self._pair
        if (pair.shape, pair.dtype, pair.device) != (shape, like.dtype, like.device):
            with torch.inference_mode(False):  # the next caller may be training
                self._pair = torch.empty(shape, dtype=like.dtype, device=like.device)
        return self._pair


_scratch = _Scratch()
