"""From the folded numbers to those that the kernel reads, and its gradient back: small matrices, in float64.

φ = (onehot, M) has two halves that sum to 1, so that the first state of each is 1 less the others: φ = Rᵀ x̃ with
x̃ = (x, 1) and a constant R of shape (2K − 1, 2K).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from icl_estimators.transformer.folded_forward import SAFE_SPREAD
from icl_estimators.transformer.kernel.passes import LOG2_E, Numbers, Sums

__all__ = ["FoldedArrays", "empty_sums", "folded_gradient", "is_safe", "reduce_numbers"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class FoldedArrays:
    """The fields of :class:`~icl_estimators.transformer.folded.Folded` as float64 arrays, all with a leading axis S.

    `r1` and `r2` have the lines of :func:`~icl_estimators.transformer.kernel.distances.lines`.
    """

    S1: Array
    r1: Array
    G: Array
    r2: Array
    direct: Array
    induction: Array


@np.errstate(invalid="ignore", over="ignore")  # a run that diverges, which its loss will tell
def is_safe(folded: FoldedArrays) -> NDArray[np.bool_]:
    """Return which models' exponentials can be taken without a shift of their own for each row, shape (S,).

    Scores of layer 1 may lie :data:`~icl_estimators.transformer.folded_forward.SAFE_SPREAD` nats from one another, and
    those of layer 2 as far from the centre of r2. False also where a number is NaN.
    """
    k = folded.S1.shape[-1]
    first = _spread(folded.r1, (-2, -1)) + _spread(folded.S1, (-2, -1))
    g = folded.G.reshape(-1, 2, k, 2, k)
    # Halves of x̃ sum to 1 and halves of x to at most 1, so this bounds the score whatever the tokens.
    largest = np.abs(g[..., 1:] - g[..., :1]).max(axis=(2, 4)).sum(axis=(1, 2))
    second = largest + 0.5 * _spread(folded.r2, (-2, -1))
    return (first <= SAFE_SPREAD) & (second <= SAFE_SPREAD)


@np.errstate(invalid="ignore", over="ignore")
def reduce_numbers(folded: FoldedArrays, trained: int) -> Numbers:
    """Return what the kernel reads, with a leading axis S; `trained` distances have a bias of their own."""
    r = _reduction(folded.S1.shape[-1])
    direct = (r @ folded.direct).swapaxes(-1, -2)  # (S, K, m + 1)
    induction = (r @ folded.induction).swapaxes(-1, -2)
    direct[..., -1] += induction[..., -1]  # the constant of what is averaged is a constant of the logits
    # Shifts that the softmax ignores. They depend on the model alone, so that a longer context changes no bit.
    highest = folded.r1.max(axis=(-2, -1), keepdims=True)
    centre = 0.5 * (folded.r2.max(axis=(-2, -1), keepdims=True) + folded.r2.min(axis=(-2, -1), keepdims=True))
    return Numbers(
        trained=trained,
        occurrence=_float32(np.exp(folded.r1 - highest)),
        preference=_float32(np.exp(folded.S1 - folded.S1.max(axis=-1, keepdims=True))),
        query=_float32(r @ folded.G @ r[:-1].T),
        bias=_float32((folded.r2 - centre) * LOG2_E),
        direct=_float32(direct),
        induction=_float32(induction[..., :-1]),
    )


def empty_sums(numbers: Numbers, n_groups: int) -> Sums:
    """Return arrays for the gradients of each model and group."""
    n_models, k, m = numbers.induction.shape
    distances = numbers.bias.shape[1:]
    shapes = ((1, 1), distances, (k, k), (m + 1, m), distances, (k, m + 1), (k, m))
    return Sums(*(np.empty((n_models, n_groups, *shape)) for shape in shapes))


def folded_gradient(numbers: Numbers, sums: Sums) -> tuple[Array, FoldedArrays]:
    """Return the losses, shape (S,), and their gradient with respect to the folded numbers.

    Parameters
    ----------
    numbers : Numbers
        As :func:`reduce_numbers` made them.
    sums : Sums
        With leading axes (S, groups); groups are added up in their order.
    """
    total = Sums(*(field.sum(axis=1) for field in sums))
    r = _reduction(numbers.preference.shape[-1])
    direct = total.direct.swapaxes(-1, -2)  # (S, m + 1, K)
    induction = np.concatenate([total.induction.swapaxes(-1, -2), direct[:, -1:]], axis=1)
    gradient = FoldedArrays(
        S1=total.preference,
        r1=total.occurrence * numbers.occurrence,
        G=r.T @ total.query @ r[:-1],
        r2=total.bias,
        direct=r.T @ direct,
        induction=r.T @ induction,
    )
    return total.loss[:, 0, 0], gradient


@lru_cache(maxsize=16)
def _reduction(k: int) -> Array:
    """R: rows are the states 1 … K − 1 of either half less its first, and the constant."""
    r = np.zeros((2 * k - 1, 2 * k))
    for half in (0, 1):
        rows = slice(half * (k - 1), (half + 1) * (k - 1))
        r[rows, half * k + 1 : half * k + k] = np.eye(k - 1)
        r[rows, half * k] = -1.0
        r[-1, half * k] = 1.0
    r.setflags(write=False)
    return r


def _spread(values: Array, axis: int | tuple[int, ...]) -> Array:
    return np.asarray(values.max(axis=axis) - values.min(axis=axis))


def _float32(values: Array) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)
