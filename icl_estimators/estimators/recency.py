"""Add-one smoothing of transitions that count less the older they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.sources import DirichletPosterior, recency_counts
from icl_estimators.text import exactly
from icl_estimators.validation import InputError, as_tokens, positive_int, positive_real

__all__ = ["Recency"]


class Recency:
    """(n_vw + 1)/(Σ_w n_vw + K) after t_n = v, with n_vw = Σ d^age over the transitions v → w of the prefix.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    decay : float
        d in (0, 1]. The age of a transition is how many tokens have followed it: 0 for the last one.
        d = 1 is `add-one`.

    Raises
    ------
    InputError
        If `n_states` is below 2 or `decay` is not above 0 and at most 1.

    Examples
    --------
    >>> Recency(2, 0.5).predict_proba([[0, 1, 0, 1, 0]])[0, -1].round(4).tolist()  # counts 0 and 0.5³ + 0.5
    [0.381, 0.619]
    """

    family = "recency"
    positive = True

    def __init__(self, n_states: int, decay: float) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        self.decay = positive_real(decay, "the decay of recency")
        if self.decay > 1.0:
            raise InputError(f"the decay of recency must be at most 1, not {decay!r}")
        self.name = f"recency:{exactly(self.decay)}"
        self.display = f"recency-weighted add-one, d = {self.decay:.3g}"

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        counts = recency_counts(as_tokens(tokens, self.n_states), self.n_states, self.decay)
        return DirichletPosterior(counts + 1.0).predictive
