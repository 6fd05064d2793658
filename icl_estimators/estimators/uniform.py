"""The uniform law, which ignores the prefix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.validation import as_tokens, positive_int

__all__ = ["Uniform"]


class Uniform:
    """1/K for every token.

    Raises
    ------
    InputError
        If `n_states` is below 2.

    Examples
    --------
    >>> Uniform(4).predict_proba([[0, 3]])[0, 0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    name = "uniform"
    family = "uniform"
    display = "uniform"
    positive = True
    counted_order = 0

    def __init__(self, n_states: int) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        shape = as_tokens(tokens, self.n_states).shape
        return np.full((*shape, self.n_states), 1.0 / self.n_states)

    def from_counts(self, followed: NDArray[Any], visits: NDArray[Any]) -> NDArray[np.float64]:
        """Return 1/K for every token, shape (n,)."""
        return np.full(np.shape(visits), 1.0 / self.n_states)
