"""From the folded numbers to those that the kernel reads, and its gradient back: small matrices, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from icl_estimators.transformer.folded import Folded
from icl_estimators.transformer.kernel.passes import LOG2_E, Numbers, Sums
from icl_estimators.transformer.reduced import (
    KERNEL_LEAVES_OUT,
    layer_one_is_safe,
    layer_two_is_safe,
    reduce,
    reduction,
)

__all__ = ["as_arrays", "empty_sums", "folded_gradient", "is_safe", "numbers_of"]

Array = NDArray[np.float64]


@np.errstate(invalid="ignore", over="ignore")  # a run that diverges, which its loss will tell
def is_safe(folded: Folded[Array]) -> NDArray[np.bool_]:
    """Return which models' exponentials can be taken without a shift of their own for each row, shape (…)."""
    safe: NDArray[np.bool_] = layer_one_is_safe(folded) & layer_two_is_safe(folded, KERNEL_LEAVES_OUT)
    return safe


def as_arrays(folded: Folded[Tensor]) -> Folded[Array]:
    """Return the numbers in float64."""
    return Folded(*(tensor.detach().numpy().astype(np.float64) for tensor in folded.tensors))


@np.errstate(invalid="ignore", over="ignore")
def numbers_of(folded: Folded[Array], trained: int) -> Numbers:
    """Return what the kernel reads.

    Parameters
    ----------
    folded : Folded of float64 arrays
        With a leading axis S; `r1` and `r2` have the lines of
        :func:`~icl_estimators.transformer.kernel.distances.lines`.
    trained : int
        How many distances have a bias of their own.
    """
    reduced = reduce(folded, KERNEL_LEAVES_OUT)
    # Shifts that the softmax ignores. They depend on the model alone, so that a longer context changes no bit.
    highest = folded.r1.max(axis=(-2, -1), keepdims=True)
    centre = 0.5 * (folded.r2.max(axis=(-2, -1), keepdims=True) + folded.r2.min(axis=(-2, -1), keepdims=True))
    return Numbers(
        trained=trained,
        occurrence=_float32(np.exp(folded.r1 - highest)),
        preference=_float32(np.exp(folded.S1 - folded.S1.max(axis=-1, keepdims=True))),
        query=_float32(reduced.query.mT),
        bias=_float32((folded.r2 - centre) * LOG2_E),
        direct=_float32(reduced.direct),
        induction=_float32(reduced.induction),
    )


def empty_sums(numbers: Numbers, n_groups: int) -> Sums:
    """Return arrays for the gradients of each model and group."""
    n_models, k, m = numbers.induction.shape
    distances = numbers.bias.shape[1:]
    shapes = ((1, 1), distances, (k, k), (m + 1, m), distances, (k, m + 1), (k, m))
    return Sums(*(np.empty((n_models, n_groups, *shape)) for shape in shapes))


def folded_gradient(numbers: Numbers, sums: Sums) -> tuple[Array, Folded[Array]]:
    """Return the losses, shape (S,), and their gradient with respect to the folded numbers.

    Parameters
    ----------
    numbers : Numbers
        As :func:`numbers_of` made them.
    sums : Sums
        With leading axes (S, groups); groups are added up in their order.
    """
    total = Sums(*(field.sum(axis=1) for field in sums))
    r = reduction(numbers.preference.shape[-1], KERNEL_LEAVES_OUT, like=total.query)
    direct = total.direct.swapaxes(-1, -2)  # (S, m + 1, K)
    induction = np.concatenate([total.induction.swapaxes(-1, -2), direct[:, -1:]], axis=1)
    gradient = Folded(
        S1=total.preference,
        r1=total.occurrence * numbers.occurrence,
        G=r.T @ total.query @ r[:-1],
        r2=total.bias,
        direct=r.T @ direct,
        induction=r.T @ induction,
    )
    return total.loss[:, 0, 0], gradient


def _float32(values: Any) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)
