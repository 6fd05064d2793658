"""Predictions and attention from the folded numbers, differentiable.

Features come first and positions last, (features, B, T): so every product with a T × T matrix is one with few
long rows, and a map of features is one matrix product for the whole batch. Features are x and x̃ of
:mod:`icl_estimators.transformer.reduced`, without the last state of each half.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from icl_estimators.transformer.folded import Folded
from icl_estimators.transformer.positions import Far, bias_matrix
from icl_estimators.transformer.reduced import Reduced, layer_one_is_safe, reduce

__all__ = ["by_sequence", "features", "folded_attention", "folded_logits", "layer_two_attention", "mix"]

LOG2_E = 1.0 / math.log(2.0)


def features(folded: Folded[Tensor], tokens: Tensor, far: Far = None) -> Tensor:
    """Return x̃: what each position holds after layer 1.

    Parameters
    ----------
    folded : Folded
    tokens : Tensor of int64, shape (B, T)
    far : "last", int or None
        The rule for positions beyond the trained length.

    Returns
    -------
    Tensor, shape (2K − 1, B, T)
        K − 1 rows of onehot(t_i), K − 1 rows of M_i, a row of ones.
    """
    k = folded.n_states
    states = torch.arange(k, device=tokens.device)[:, None, None]
    one_hot = (tokens == states).to(folded.S1.dtype)  # (K, B, T)
    mass = _layer_one_mass(folded, tokens, one_hot, far)  # (K, B, T)
    return torch.cat([one_hot[:-1], mass[:-1], torch.ones_like(one_hot[:1])])


def folded_logits(folded: Folded[Tensor], tokens: Tensor, *, far: Far = None) -> Tensor:
    """Return logits of the next token, those of the plain model.

    Parameters
    ----------
    folded : Folded
        One model.
    tokens : Tensor of int64, shape (B, T)
    far : "last", int or None
        The rule for positions beyond the trained length; see :mod:`icl_estimators.transformer.positions`.

    Returns
    -------
    Tensor, shape (B, T, K)

    Raises
    ------
    InputError
        If `far` is neither "last" nor a trained distance.

    Examples
    --------
    >>> from icl_estimators.transformer import Transformer, fold
    >>> model, tokens = Transformer(), torch.tensor([[0, 1, 0, 2, 0]])
    >>> bool(torch.allclose(folded_logits(fold(model), tokens), model(tokens), atol=1e-6))
    True
    """
    reduced = reduce(folded)
    x1 = features(folded, tokens, far)  # (m+1, B, T)
    attention = layer_two_attention(folded, reduced, x1, far)  # (B, T, T)
    averaged = (by_sequence(x1[:-1]) @ attention.mT).transpose(0, 1)  # (m, B, T)
    return (mix(reduced.direct, x1) + mix(reduced.induction, averaged)).permute(1, 2, 0)  # (B, T, K)


def folded_attention(folded: Folded[Tensor], tokens: Tensor, *, far: Far = None) -> tuple[Tensor, Tensor]:
    """Return the attention matrices of layer 1 and layer 2, each of shape (B, T, T).

    Raises
    ------
    InputError
        If `far` is neither "last" nor a trained distance.

    Examples
    --------
    >>> from icl_estimators.transformer import construction_folded
    >>> folded = construction_folded(3, 5, beta=50.0, gamma=1.0)
    >>> second = folded_attention(folded, torch.tensor([[0, 1, 0, 2, 0]]))[1]
    >>> second[0, 3].round(decimals=6).tolist()  # state 2 is met for the first time: nothing matches
    [0.25, 0.25, 0.25, 0.25, 0.0]
    """
    first = _layer_one_attention(folded, tokens, far)
    return first, layer_two_attention(folded, reduce(folded), features(folded, tokens, far), far)


def _layer_one_mass(folded: Folded[Tensor], tokens: Tensor, one_hot: Tensor, far: Far) -> Tensor:
    """Return M, shape (K, B, T)."""
    if not layer_one_is_safe(folded):
        return (by_sequence(one_hot) @ _layer_one_attention(folded, tokens, far).mT).transpose(0, 1)
    kernel = bias_matrix(torch.exp(folded.r1 - folded.r1.detach().amax()), tokens.shape[1], 0.0, far)  # (T, T)
    occurrences = one_hot @ kernel.mT  # (K, B, T)
    per_token = torch.exp(folded.S1 - folded.S1.detach().amax(dim=-1, keepdim=True))  # (K, K)
    weights = mix(per_token.mT, one_hot) * occurrences
    return weights / weights.sum(dim=0)


def _layer_one_attention(folded: Folded[Tensor], tokens: Tensor, far: Far) -> Tensor:
    bias = bias_matrix(folded.r1, tokens.shape[1], -math.inf, far)
    scores = folded.S1[tokens[:, :, None], tokens[:, None, :]] + bias  # (B, T, T)
    return scores.softmax(dim=-1)


def layer_two_attention(folded: Folded[Tensor], reduced: Reduced[Tensor], x1: Tensor, far: Far) -> Tensor:
    """Return the attention matrix of layer 2, shape (B, T, T), of features x̃ of shape (2K − 1, B, T)."""
    query = by_sequence(mix(reduced.query, x1))  # (B, m, T)
    bias = bias_matrix(folded.r2, x1.shape[-1], -math.inf, far)
    return torch.baddbmm(bias, query.mT, by_sequence(x1[:-1])).softmax(dim=-1)


def mix(matrix: Tensor, rows: Tensor) -> Tensor:
    """Multiply the first axis: (n, m) and (m, B, T) give (n, B, T)."""
    return (matrix @ rows.flatten(1)).unflatten(1, rows.shape[1:])


def by_sequence(rows: Tensor) -> Tensor:
    """See (m, B, T) as (B, m, T), the order of batched products; no copy is made."""
    return rows.transpose(0, 1)
