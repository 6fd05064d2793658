"""Where an estimator looks, with any number of attention layers and heads."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from icl_estimators.estimators.base import ContractError
from icl_estimators.estimators.capabilities import attention_of

__all__ = ["HasHeads", "heads_of"]

Array = NDArray[np.float64]

_ROUNDING = 1e-3  # of rows in half precision


@runtime_checkable
class HasHeads(Protocol):
    """An estimator with attention layers of any number of heads, that can show where they look."""

    def attention_heads(self, tokens: NDArray[np.int64]) -> Sequence[Array] | None:
        """Return the weights of each layer, shape (N, H, P, P); None if there are none to show.

        P = T, or T + 1 with a sentinel in front. `tokens`, shape (N, T), are read-only. Row i holds what position i
        puts on the positions j ≤ i, and sums to 1.
        """
        ...


def heads_of(estimator: object, tokens: NDArray[np.int64]) -> list[Array] | None:
    """Return the weights of each layer of an estimator, None if it does not offer them.

    Parameters
    ----------
    estimator : Estimator
        One that offers :class:`HasHeads`, or :class:`icl_estimators.estimators.HasAttention`, whose two layers have one
        head each.
    tokens : ndarray of int64, shape (N, T)

    Returns
    -------
    list of ndarray of float64, each of shape (N, H, P, P), or None
        Copies; H may differ between layers.

    Raises
    ------
    ContractError
        If the method fails; if it returns something else, attention to later positions, or rows that do not sum to 1.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> [layer.shape for layer in heads_of(get("construction"), np.array([[0, 1, 0]]))]
    [(1, 1, 4, 4), (1, 1, 4, 4)]
    """
    if not isinstance(estimator, HasHeads) or not inspect.isroutine(estimator.attention_heads):
        pair = attention_of(estimator, tokens)
        return None if pair is None else [layer[:, None] for layer in pair]
    name = str(getattr(estimator, "name", estimator))
    given = tokens.view()
    given.setflags(write=False)
    try:
        found = estimator.attention_heads(given)
    except ContractError:
        raise
    except Exception as error:
        raise ContractError(f"{name}: attention_heads(tokens) failed: {type(error).__name__}: {error}") from error
    if found is None or not len(found):
        return None
    layers = [np.array(layer, dtype=np.float64) for layer in found]
    n_sequences, length = tokens.shape
    for number, layer in enumerate(layers, start=1):
        sizes = {(n_sequences, layer.shape[1] if layer.ndim == 4 else 0, p, p) for p in (length, length + 1)}
        if layer.shape not in sizes or layer.shape != (*layer.shape[:2], *layers[0].shape[2:]):
            raise ContractError(
                f"{name}: attention_heads(tokens) returned shape {layer.shape} for layer {number} and tokens of shape "
                f"{tokens.shape}: return (N, H, P, P) for each layer, P = T, or T + 1 with a sentinel"
            )
        if np.abs(np.triu(layer, 1)).max(initial=0.0) > _ROUNDING:
            raise ContractError(f"{name}: layer {number} attends to later positions: rows are queries, columns keys")
        if np.abs(layer.sum(axis=-1) - 1.0).max(initial=0.0) > _ROUNDING:
            raise ContractError(f"{name}: rows of layer {number} do not sum to 1: return weights, not scores")
    return layers
