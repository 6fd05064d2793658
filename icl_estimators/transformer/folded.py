"""The two-layer model folded onto its vocabulary: 281 numbers instead of 33,352, exactly.

Without MLP and layer norm the stream after layer 1 lies in the span of the K embeddings E and the K rows
E W_V¹W_O¹. Position i is there φ_i = [onehot(t_i), M_i] with M_i[b] the layer-1 attention mass on
token b, so that with B = [E; E W_V¹W_O¹]

    M_i[b]   ∝ exp(S1[t_i, b]) Σ_{j≤i} 1[t_j = b] exp(r1_{i−j})
    score_ij = φ_i G φ_jᵀ + r2_{i−j}
    logits_i = φ_i · direct + (Σ_j A_ij φ_j) · induction

where S1 = E W_Q¹(E W_K¹)ᵀ/√d, G = B W_Q²(B W_K²)ᵀ/√d, direct = B W_U and induction = B W_V²W_O²W_U.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from icl_estimators.transformer.model import Transformer
from icl_estimators.validation import InputError, positive_int

__all__ = ["Folded", "Kind", "construction_folded", "fold"]

Kind = TypeVar("Kind", Tensor, NDArray[np.float64])
"""Tensors everywhere; float64 arrays in the kernel."""


@dataclass(frozen=True, slots=True, eq=False)
class Folded(Generic[Kind]):
    """The numbers through which a two-layer, one-head model acts.

    In every 2K axis the first K entries are the *token* block (which token is there), the last K the
    *scratch* block (which token layer 1 read there). Leading axes, one model each, are allowed.

    Attributes
    ----------
    S1 : Tensor, shape (…, K, K)
        Layer-1 scores of query token and key token, scaling included.
    r1, r2 : Tensor, shape (…, T)
        Layer-1 and layer-2 score of each relative distance.
    G : Tensor, shape (…, 2K, 2K)
        Layer-2 scores of query feature and key feature, scaling included.
    direct, induction : Tensor, shape (…, 2K, K)
        Logits of a position's own features, and of the features that layer 2 averages.
    """

    S1: Kind
    r1: Kind
    G: Kind
    r2: Kind
    direct: Kind
    induction: Kind

    @property
    def n_states(self) -> int:
        """K."""
        return self.S1.shape[-1]

    @property
    def length(self) -> int:
        """T, the number of distances that have a bias of their own."""
        return self.r1.shape[-1]

    @property
    def tensors(self) -> tuple[Kind, ...]:
        """The fields in their order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def count(self) -> int:
        """How many numbers one model has: K² + T + (2K)² + T + 2·2K·K, 281 at K = 3 and T = 100."""
        k, length = self.n_states, self.length
        return 9 * k * k + 2 * length

    @property
    def identified_count(self) -> int:
        """How many of them the predictions determine: 242 at K = 3 and T = 100.

        A softmax ignores what is added to a whole row, and both halves of φ sum to 1. That leaves K(K − 1)
        of S1, T − 1 of each r, (2K − 1)(2K − 2) of G and (4K − 3)(K − 1) of the read-outs.
        """
        k, length = self.n_states, self.length
        return k * (k - 1) + 2 * (length - 1) + (2 * k - 1) * (2 * k - 2) + (4 * k - 3) * (k - 1)

    def centred(self: Folded[Tensor]) -> Folded[Tensor]:
        """Return the same predictions in the smallest form, so that two models can be compared entry by entry.

        S1 and each K × K block of G have rows of mean 0, read-outs have rows of mean 0, r has median 0. What is
        left to choose, a function of the key alone in G and a constant in the logits, is shared evenly
        between the blocks. Centring the blocks of G by columns as well would change the predictions of a
        model that prefers some keys whatever the query; :meth:`key_effect` holds just that part.
        """
        g = _centre_rows(self.G.unflatten(-1, (2, -1))).flatten(-2)  # (…, 2K, 2K)
        effects = g.unflatten(-2, (2, -1)).mean(dim=-2)  # (…, 2, 2K): by key, in either query block
        g = g - (effects - effects.mean(dim=-2, keepdim=True)).repeat_interleave(self.n_states, dim=-2)
        read_out = _centre_rows(torch.stack([self.direct, self.induction], dim=-3))  # (…, 2, 2K, K)
        blocks = read_out.unflatten(-2, (2, -1)).mean(dim=-2, keepdim=True)  # (…, 2, 2, 1, K)
        constant = blocks.mean(dim=(-4, -3), keepdim=True)
        read_out = (read_out.unflatten(-2, (2, -1)) - blocks + constant).flatten(-3, -2)
        direct, induction = read_out.unbind(dim=-3)
        return Folded(
            S1=_centre_rows(self.S1),
            r1=self.r1 - _median(self.r1),
            G=g,
            r2=self.r2 - _median(self.r2),
            direct=direct,
            induction=induction,
        )

    def key_effect(self: Folded[Tensor]) -> Tensor:
        """Return the part of the layer-2 score that depends on the key alone, shape (…, 2K).

        Each half has mean 0. It is 0 for a model that treats all states alike.
        """
        g = _centre_rows(self.G.unflatten(-1, (2, -1))).flatten(-2)
        return g.unflatten(-2, (2, -1)).mean(dim=-2).sum(dim=-2)

    def detach(self: Folded[Tensor]) -> Folded[Tensor]:
        """Return the numbers without their history."""
        return Folded(*(tensor.detach() for tensor in self.tensors))


def fold(model: Transformer | Mapping[str, Tensor]) -> Folded[Tensor]:
    """Fold a model onto its vocabulary; differentiable.

    Parameters
    ----------
    model : Transformer or mapping of parameter name to Tensor
        Two layers of one head, no sentinel. Tensors may carry a leading axis of models.

    Raises
    ------
    InputError
        If the model has another number of layers or heads, or a sentinel: it has no folded form.

    Examples
    --------
    >>> folded = fold(Transformer())
    >>> folded.count, folded.identified_count
    (281, 242)
    """
    weights = dict(model.named_parameters()) if isinstance(model, Transformer) else model
    n_layers = sum(name.endswith(".query") for name in weights)
    embedding, unembedding = weights["embedding"], weights["unembedding"]
    n_heads = weights["layers.0.distance_bias"].shape[-2]
    sentinel = embedding.shape[-2] != unembedding.shape[-1]
    if (n_layers, n_heads, sentinel) != (2, 1, False):
        shape = f"{n_layers} layer(s), {n_heads} head(s){' and a sentinel' if sentinel else ''}"
        raise InputError(
            f"only a model of two layers with one head and no sentinel can be folded; this has {shape}: run it unfolded"
        )
    first, second = (
        {name.rpartition(".")[2]: tensor for name, tensor in weights.items() if name.startswith(f"layers.{layer}.")}
        for layer in (0, 1)
    )
    scale = 1.0 / math.sqrt(embedding.shape[-1])
    basis = torch.cat([embedding, embedding @ first["value"] @ first["output"]], dim=-2)  # (…, 2K, d)
    return Folded(
        S1=(embedding @ first["query"]) @ (embedding @ first["key"]).mT * scale,
        r1=first["distance_bias"].squeeze(-2),
        G=(basis @ second["query"]) @ (basis @ second["key"]).mT * scale,
        r2=second["distance_bias"].squeeze(-2),
        direct=basis @ unembedding,
        induction=basis @ second["value"] @ second["output"] @ unembedding,
    )


def construction_folded(n_states: int, length: int, beta: float, gamma: float) -> Folded[Tensor]:
    """Return the explicit induction-head construction in the folded basis, for a side-by-side.

    Layer 1 scores β at distance 1 and nothing else, layer 2 scores β where the key's scratch block holds the
    query's token, and both read-outs are γ on the token block. There is no sentinel in this basis: the
    first position reads itself.

    Returns
    -------
    Folded of float64

    Raises
    ------
    InputError
        If `n_states` < 2 or `length` < 1.

    Examples
    --------
    >>> construction_folded(2, 3, beta=30.0, gamma=1.0).r1.tolist()
    [0.0, 30.0, 0.0]
    """
    k = positive_int(n_states, "n_states", at_least=2)
    length = positive_int(length, "length")
    identity = torch.eye(k, dtype=torch.float64)
    r1 = torch.zeros(length, dtype=torch.float64)
    r1[1:2] = beta
    g = torch.zeros(2 * k, 2 * k, dtype=torch.float64)
    g[:k, k:] = beta * identity
    read_out = torch.cat([gamma * identity, torch.zeros_like(identity)])
    return Folded(torch.zeros_like(identity), r1, g, torch.zeros_like(r1), read_out, read_out.clone())


def _centre_rows(matrix: Tensor) -> Tensor:
    return matrix - matrix.mean(dim=-1, keepdim=True)


def _median(values: Tensor) -> Tensor:
    return values.quantile(0.5, dim=-1, keepdim=True)
