"""Predictions of one model by the kernel."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from icl_estimators.transformer.folded import Folded
from icl_estimators.transformer.kernel.distances import lines
from icl_estimators.transformer.kernel.groups import group_count, logits_groups, shapes_for
from icl_estimators.transformer.kernel.numbers import as_arrays, is_safe, numbers_of
from icl_estimators.transformer.kernel.passes import Numbers
from icl_estimators.transformer.kernel.threads import over_threads
from icl_estimators.transformer.positions import Far

__all__ = ["kernel_logits", "kernel_probabilities"]

_ENTRIES_AT_ONCE = 2**16  # what a softmax works on while it is in the cache


def kernel_logits(
    folded: Folded[Tensor], tokens: NDArray[np.int64], *, far: Far = None, threads: int | None = None
) -> NDArray[np.float32] | None:
    """Return logits of the next token, or None where scores lie too far apart for the kernel.

    A position's logits depend on the tokens up to it alone, bit for bit: not on what follows, on the other sequences
    or on the number of threads.

    Parameters
    ----------
    folded : Folded
        One model, K from 2 to 8.
    tokens : ndarray of int64, shape (N, T)
        In [0, K).
    far : "last", int or None
        The rule for positions beyond the trained length; see :mod:`icl_estimators.transformer.positions`.
    threads : int, optional
        As many as torch uses by default.

    Returns
    -------
    ndarray of float32, shape (N, T, K), or None

    Raises
    ------
    InputError
        If `far` is neither "last" nor a trained distance.

    Examples
    --------
    >>> from icl_estimators.transformer import Transformer, fold
    >>> kernel_logits(fold(Transformer()).detach(), np.array([[0, 1, 0, 2, 0]])).shape
    (1, 5, 3)
    """
    n_sequences, length = tokens.shape
    spread_out = replace(folded, r1=lines(folded.r1, length, far), r2=lines(folded.r2, length, far))
    one = Folded(*(array[None] for array in as_arrays(spread_out).tensors))
    if not is_safe(one)[0]:
        return None
    trained, *of_models = numbers_of(one, folded.length)
    numbers = Numbers(trained, *(field[0] for field in of_models))
    logits = np.empty((n_sequences, length, folded.n_states), dtype=np.float32)
    given = np.require(tokens, np.int64, ["C", "W"])  # read-only arrays would need another compilation
    work = partial(_work, tokens=given, numbers=numbers, out=logits, shapes=shapes_for(folded.n_states))
    over_threads(work, group_count(n_sequences), threads)
    return logits


def kernel_probabilities(
    folded: Folded[Tensor], tokens: NDArray[np.int64], *, far: Far = None, threads: int | None = None
) -> NDArray[np.float64] | None:
    """Return the softmax of :func:`kernel_logits`, taken in float64, shape (N, T, K); None where that is None.

    Raises
    ------
    InputError
        If `far` is neither "last" nor a trained distance.

    Examples
    --------
    >>> from icl_estimators.transformer import Transformer, fold
    >>> kernel_probabilities(fold(Transformer()).detach(), np.array([[0, 1, 0]])).sum(axis=-1).round(12).tolist()
    [[1.0, 1.0, 1.0]]
    """
    logits = kernel_logits(folded, tokens, far=far, threads=threads)
    if logits is None:
        return None
    k = folded.n_states
    flat = logits.reshape(-1, k)
    out = np.empty(flat.shape)
    step = max(1, _ENTRIES_AT_ONCE // k)
    for first in range(0, len(flat), step):
        columns = flat[first : first + step].T.astype(np.float64, order="C")  # (K, n): long rows are fast in numpy
        columns -= columns.max(axis=0)
        np.exp(columns, out=columns)
        columns /= columns.sum(axis=0)
        out[first : first + step] = columns.T
    return out.reshape(logits.shape)


def _work(first: int, last: int, **given: Any) -> None:
    logits_groups(first, last, given["tokens"], given["numbers"], given["out"], given["shapes"])
