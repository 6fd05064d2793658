"""Ask estimators where they look while they read a prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from icl_estimators.estimators import Estimator
from icl_estimators.estimators.construction import ConstructionSoftmax
from icl_estimators.estimators.heads import heads_of
from icl_estimators.sources.observed.prompt import SENTINEL

__all__ = ["layers_of", "position_labels"]


def layers_of(estimator: Estimator, tokens: NDArray[np.int64]) -> list[NDArray[np.float64]] | None:
    """Return an estimator's attention on one sequence, None if it does not show any.

    The construction's softmax form looks where the construction's heads look.

    Parameters
    ----------
    estimator : Estimator
    tokens : ndarray of int64, shape (T,)

    Returns
    -------
    list of ndarray of float64, each of shape (H, P, P), or None
        One for each layer; P = T, or T + 1 with a sentinel in front.

    Raises
    ------
    ContractError
        If the estimator's method fails, or returns something else.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> [layer.shape for layer in layers_of(get("construction"), np.array([0, 1, 0]))]
    [(1, 4, 4), (1, 4, 4)]
    """
    asked = estimator.head if isinstance(estimator, ConstructionSoftmax) else estimator
    layers = heads_of(asked, tokens[None])
    return None if layers is None else [layer[0] for layer in layers]


def position_labels(tokens: Sequence[str], positions: int) -> tuple[str, ...]:
    """Return what each position holds; one more position than tokens is the sentinel.

    It is called ^, or start if a state is called ^.

    Examples
    --------
    >>> position_labels(["A", "B"], 3)
    ('^', 'A', 'B')
    """
    if positions == len(tokens):
        return tuple(tokens)
    return (SENTINEL if SENTINEL not in tokens else "start", *tokens)
