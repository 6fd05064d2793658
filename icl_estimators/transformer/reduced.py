"""The folded numbers without one state of each half: the only place that decides which state is left out.

φ = (onehot, M) has two halves that each sum to 1. So one state of each half is 1 minus the others, and products with φ
are products with fewer rows: φ = Rᵀ x̃ with x = (onehot, M) without that state, m = 2(K − 1) rows, x̃ = (x, 1), and a
constant matrix R of shape (2K − 1, 2K).

The forms of one model, each made from the one before: parameters, by name → :class:`~.folded.Folded` (:func:`~.fold`)
→ :class:`Reduced` (:func:`reduce`) → ``Numbers``, the kernel's float32 (:mod:`~.kernel.numbers`).

Torch leaves out the last state. The kernel leaves out the first: its memory of a position holds onehot of all states,
then M, so that x is consecutive rows of it. The choice decides the last bits of trained weights, so both stay as they
are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from icl_estimators.transformer.folded import Folded, Kind

__all__ = [
    "KERNEL_LEAVES_OUT",
    "LEAVES_OUT",
    "Reduced",
    "layer_one_is_safe",
    "layer_two_is_safe",
    "reduce",
    "reduction",
]

LEAVES_OUT = -1
"""The state that torch leaves out of each half: the last."""

KERNEL_LEAVES_OUT = 0
"""The state that the kernel leaves out of each half: the first."""

SAFE_SPREAD = 60.0
"""How far apart, in nats, scores may lie for exponentials without a shift: e^±60 is far inside float32."""


@dataclass(frozen=True, slots=True, eq=False)
class Reduced(Generic[Kind]):
    """The folded numbers against x and x̃ instead of φ; leading axes, one model each, are allowed.

    Attributes
    ----------
    query : shape (…, m, m + 1), m = 2(K − 1)
        x̃ ↦ query x̃, whose product with a key's x is the layer-2 score but for a shift of the whole row.
    direct : shape (…, K, m + 1)
        x̃ ↦ logits, the constant of the induction path included.
    induction : shape (…, K, m)
        averaged x ↦ logits.
    """

    query: Kind
    direct: Kind
    induction: Kind


def reduce(folded: Folded[Kind], state: int = LEAVES_OUT) -> Reduced[Kind]:
    """Leave `state` out of each half; tensors (differentiable) or arrays.

    Examples
    --------
    >>> from icl_estimators.transformer import construction_folded
    >>> reduce(construction_folded(3, 5, beta=2.0, gamma=1.0)).query.shape
    torch.Size([4, 5])
    """
    r = reduction(folded.n_states, state, like=folded.G)
    induction: Any = r @ folded.induction  # (…, m + 1, K)
    direct: Any = r @ folded.direct
    # The constant of the induction path does not depend on what is averaged: it moves to the constant of x̃.
    join: Any = torch.cat if isinstance(direct, Tensor) else np.concatenate
    direct = join([direct[..., :-1, :], direct[..., -1:, :] + induction[..., -1:, :]], axis=-2)
    return Reduced(query=(r @ folded.G @ r[:-1].mT).mT, direct=direct.mT, induction=induction[..., :-1, :].mT)


def reduction(n_states: int, state: int, *, like: Kind) -> Kind:
    """Return R of the type of `like`: the kept states of either half minus the one left out, and the constant."""
    if isinstance(like, Tensor):
        return _tensor(n_states, state, like.dtype, like.device)
    return _array(n_states, state)


def layer_one_is_safe(folded: Folded[Kind]) -> Any:
    """Return which models' scores of layer 1 lie within the safe spread of one another, shape (…).

    False also where an entry is NaN.
    """
    return _spread(folded, folded.r1) + _spread(folded, folded.S1) <= SAFE_SPREAD


def layer_two_is_safe(folded: Folded[Kind], state: int = LEAVES_OUT) -> Any:
    """Return which models' scores of layer 2 lie within the safe spread of the centre of r2, whatever the tokens.

    A half of x sums to at most 1, and so does a half of φ: a score is at most the sum over both halves of
    either side of the largest difference between an entry of G and its block's column of the state left out.
    False also where an entry is NaN.
    """
    k = folded.n_states
    g = folded.G.reshape(*folded.G.shape[:-2], 2, k, 2, k)
    differences: Any = abs(g - g[..., state, None])
    if isinstance(differences, Tensor):
        largest = differences.detach().amax(dim=(-3, -1)).sum(dim=(-2, -1))
    else:
        largest = differences.max(axis=(-3, -1)).sum(axis=(-2, -1))
    return largest + 0.5 * _spread(folded, folded.r2) <= SAFE_SPREAD


def _spread(folded: Folded[Kind], field: Kind) -> Any:
    """Return the largest number of a field minus the smallest, for each model."""
    flat: Any = field.reshape(*folded.G.shape[:-2], -1)
    if isinstance(flat, Tensor):
        return flat.detach().amax(dim=-1) - flat.detach().amin(dim=-1)
    return flat.max(axis=-1) - flat.min(axis=-1)


@lru_cache(maxsize=16)
def _array(k: int, state: int) -> NDArray[np.float64]:
    kept = np.delete(np.arange(k), state)
    half = np.zeros((k - 1, k))
    half[np.arange(k - 1), kept] = 1.0
    half[:, state] = -1.0
    constant = np.zeros((1, k))
    constant[:, state] = 1.0
    r = np.block([[half, np.zeros_like(half)], [np.zeros_like(half), half], [constant, constant]])
    r.setflags(write=False)
    return r


@lru_cache(maxsize=16)
def _tensor(k: int, state: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # what is kept must serve training too, even if evaluation asks first
        return torch.tensor(_array(k, state), dtype=dtype, device=device)
