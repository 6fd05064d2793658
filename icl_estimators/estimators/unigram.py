"""Token frequencies, which ignore the current token."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.sources import occurrence_counts, posterior_predictive
from icl_estimators.validation import as_tokens, positive_int

__all__ = ["Unigram"]


class Unigram:
    """Add-one token frequencies, (n_w + 1)/(n + K), with n_w the occurrences of w in the prefix.

    The first phase that Edelman et al. (2024) see in training.

    Raises
    ------
    InputError
        If `n_states` is below 2.

    Examples
    --------
    >>> Unigram(2).predict_proba([[0, 0]])[0, -1].tolist()
    [0.75, 0.25]
    """

    name = "unigram"
    family = "unigram"
    display = "unigram"
    positive = True
    counted_order = 0

    def __init__(self, n_states: int) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        counts = occurrence_counts(as_tokens(tokens, self.n_states), self.n_states)
        return posterior_predictive(counts, 1.0)

    def from_counts(self, followed: NDArray[Any], visits: NDArray[Any]) -> NDArray[np.float64]:
        """Return (n_w + 1)/(n + K) from the counts of single tokens, shape (n,)."""
        return np.asarray((followed + 1.0) / (visits + self.n_states))
