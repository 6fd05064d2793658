"""Rules that count transitions out of the current token."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.sources import occurrence_counts, posterior_predictive, transition_counts
from icl_estimators.text import exactly
from icl_estimators.validation import InputError, as_tokens, positive_int, positive_real

__all__ = ["AddConstant", "AddOne", "Bayes", "Bigram", "KrichevskyTrofimov"]


class AddConstant:
    """Additive (Lidstone) smoothing: (n_vw + β)/(n_v + Kβ) after t_n = v.

    It is the posterior predictive, and so the Bayes rule, under independent Dirichlet(β, …, β) rows and a
    uniform first token.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    constant : float
        β > 0.

    Raises
    ------
    InputError
        If `n_states` is below 2 or `constant` is not a finite number above 0.

    Examples
    --------
    >>> AddConstant(3, 0.5).predict_proba([[0, 1, 0]])[0, -1].tolist()
    [0.2, 0.6, 0.2]
    """

    def __init__(self, n_states: int, constant: float, *, name: str | None = None) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        self.constant = positive_real(constant, "the constant of add-constant")
        self.name = name or f"add-constant:{exactly(self.constant)}"

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        counts = transition_counts(as_tokens(tokens, self.n_states), self.n_states)
        return posterior_predictive(counts, self.constant)


class AddOne(AddConstant):
    """Laplace's rule of succession, (n_vw + 1)/(n_v + K): the Bayes rule at α = 1 and a uniform start."""

    def __init__(self, n_states: int) -> None:
        super().__init__(n_states, 1.0, name="add-one")


class KrichevskyTrofimov(AddConstant):
    """Krichevsky & Trofimov (1981): add ½ to each count, the Bayes rule under Jeffreys' prior."""

    def __init__(self, n_states: int) -> None:
        super().__init__(n_states, 0.5, name="krichevsky-trofimov")


class Bayes(AddConstant):
    """The Bayes rule under the prior that draws the chains: add its concentration α to each count."""

    def __init__(self, n_states: int, *, concentration: float = 1.0) -> None:
        super().__init__(n_states, positive_real(concentration, "concentration"), name="bayes")


class Bigram:
    """The unsmoothed maximum-likelihood bigram, n_vw / n_v.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    unseen : {"uniform", "prefix"}
        The prediction where the current token has no earlier occurrence (n_v = 0, where maximum likelihood
        says nothing): uniform, or the prefix's own token frequencies n_w / n.

    Raises
    ------
    InputError
        If `n_states` is below 2 or `unseen` is unknown.

    Examples
    --------
    >>> Bigram(3).predict_proba([[0, 1, 0, 2, 0]])[0, -1].tolist()
    [0.0, 0.5, 0.5]
    """

    def __init__(self, n_states: int, *, unseen: Literal["uniform", "prefix"] = "uniform") -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        if unseen not in ("uniform", "prefix"):
            raise InputError(f"unseen must be uniform or prefix, not {unseen!r}")
        self.unseen = unseen
        self.name = "bigram" if unseen == "uniform" else f"bigram:unseen={unseen}"

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64, exact zeros included."""
        checked = as_tokens(tokens, self.n_states)
        counts = transition_counts(checked, self.n_states)
        visits = counts.sum(axis=-1, keepdims=True)
        if self.unseen == "uniform":
            fallback = np.full(counts.shape, 1.0 / self.n_states)
        else:
            fallback = occurrence_counts(checked, self.n_states) / np.arange(1, checked.shape[1] + 1)[:, None]
        return np.where(visits > 0, counts / np.maximum(visits, 1), fallback)
