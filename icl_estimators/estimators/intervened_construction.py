"""The explicit construction with a head replaced, as an estimator."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from icl_estimators.estimators.construction import Construction, ConstructionSoftmax
from icl_estimators.heads import Head
from icl_estimators.validation import InputError, as_tokens

__all__ = ["IntervenedConstruction"]

Array = NDArray[np.float64]

_CELLS = 2**21  # attention weights of one layer that are held at once


class IntervenedConstruction:
    """The construction's circuit, its heads replaced; the sentinel is a position like the others.

    Parameters
    ----------
    rule : Construction or ConstructionSoftmax
        The intact construction; it is not changed.
    layer1, layer2 : Head, optional
        What replaces the head of that layer. Without a read-out the prediction is 1/K where layer 2 looks at the
        sentinel alone.

    Raises
    ------
    InputError
        If layer 2 is to add nothing to a construction without a read-out: its prediction is what layer 2 adds.

    Examples
    --------
    >>> IntervenedConstruction(Construction(3), layer2="uniform").predict_proba([[0, 1, 0, 2]])[0, -1].tolist()
    [0.5, 0.25, 0.25]
    """

    def __init__(
        self, rule: Construction | ConstructionSoftmax, layer1: Head | None = None, layer2: Head | None = None
    ) -> None:
        self.rule, self.layer1, self.layer2 = rule, layer1, layer2
        self.n_states = rule.n_states
        changes = {"layer1": layer1, "layer2": layer2}
        self.name = ":".join([rule.name, *(f"{layer}={head}" for layer, head in changes.items() if head is not None)])
        self._head = rule.head if isinstance(rule, ConstructionSoftmax) else rule
        if layer2 == "zero" and isinstance(rule, Construction):
            raise InputError(
                f"{self.name}: the prediction is what layer 2 adds, and zero adds nothing: give a read-out scale gamma "
                "as well, or replace layer 2 by uniform attention"
            )

    def predict_proba(self, tokens: ArrayLike) -> Array:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        checked = as_tokens(tokens, self.n_states)
        size = max(1, _CELLS // (checked.shape[1] + 1) ** 2)
        path = np.concatenate([self._path(checked[first : first + size]) for first in range(0, len(checked), size)])
        if isinstance(self.rule, Construction):
            total = path.sum(axis=-1, keepdims=True)  # 0 where layer 2 looks at the sentinel alone
            return np.where(total > 0, path / np.where(total > 0, total, 1.0), 1.0 / self.n_states)
        if self.rule.direct_path:
            path = path + (checked[:, :, None] == np.arange(self.n_states))
        return np.asarray(softmax(self.rule.gamma * path, axis=-1))

    def attention(self, tokens: ArrayLike) -> tuple[Array, Array]:
        """Return both layers' weights, sentinel first, shape (N, T + 1, T + 1) each; also those of a zero head."""
        checked = as_tokens(tokens, self.n_states)
        with_sentinel = np.pad(checked, ((0, 0), (1, 0)), constant_values=self.n_states)
        one_hot = np.eye(self.n_states + 1)[with_sentinel]
        intact = self._head.attention(checked)
        first = _replaced(self.layer1, with_sentinel, intact[0])
        if self.layer2 not in (None, "zero"):
            return first, _replaced(self.layer2, with_sentinel, intact[1])
        if self.layer1 is None:
            return first, intact[1]
        copied = 0.0 * one_hot if self.layer1 == "zero" else first @ one_hot  # the scratch block, (N, P, K + 1)
        scores = one_hot @ copied.swapaxes(-1, -2)
        return first, _attend(scores, self._head.beta)

    def _path(self, tokens: NDArray[np.int64]) -> Array:
        """Return what layer 2 adds over the real tokens, shape (N, T, K)."""
        if self.layer2 == "zero":
            return np.zeros((*tokens.shape, self.n_states))
        second = self.attention(tokens)[1][:, 1:, 1:]
        return np.asarray(second @ np.eye(self.n_states)[tokens])


def _attend(scores: Array, beta: float) -> Array:
    """Return the causal softmax of β × scores, even among the highest in the limit."""
    causal = np.tri(scores.shape[-1], dtype=bool)
    scores = np.where(causal, scores, -np.inf)
    if np.isfinite(beta):
        return np.asarray(softmax(beta * scores, axis=-1))
    highest = scores == scores.max(axis=-1, keepdims=True)
    return highest / highest.sum(axis=-1, keepdims=True)


def _replaced(head: Head | None, tokens: NDArray[np.int64], own: Array) -> Array:
    """Return the attention of a replaced head; `tokens`, shape (N, P), begin with the sentinel."""
    size = tokens.shape[1]
    causal = np.broadcast_to(np.tri(size, dtype=bool), own.shape)
    if head == "previous":
        look = np.broadcast_to(np.eye(size, k=-1, dtype=bool), own.shape).copy()
        look[:, 0, 0] = True
    elif head == "uniform":
        look = causal
    elif head == "match":
        look = np.zeros(own.shape, dtype=bool)
        look[:, :, 1:] = tokens[:, :, None] == tokens[:, None, :-1]
        look &= causal
    else:
        return own
    number = look.sum(axis=-1, keepdims=True)
    return np.where(number > 0, look / np.maximum(number, 1), own)
