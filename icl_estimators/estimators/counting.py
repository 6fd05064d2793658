"""Rules that count what followed the last token, or the last few."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.sources import context_counts, occurrence_counts, posterior_predictive
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
    order : int
        k ≥ 0: count what followed the last k tokens. By default the last one, v. It is uniform where n < k or the last
        k tokens did not occur before.

    Raises
    ------
    InputError
        If `n_states` is below 2, `constant` is not a finite number above 0, or `order` is not an integer of at least 0.

    Examples
    --------
    >>> AddConstant(3, 0.5).predict_proba([[0, 1, 0]])[0, -1].tolist()
    [0.2, 0.6, 0.2]
    >>> AddConstant(2, 1.0, order=2).predict_proba([[0, 1, 0, 1]])[0, -1].tolist()  # after 0, 1 came a 0
    [0.6666666666666666, 0.3333333333333333]
    """

    positive = True

    def __init__(self, n_states: int, constant: float, *, order: int = 1, name: str | None = None) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        self.constant = positive_real(constant, "the constant of add-constant")
        self.order = self.counted_order = positive_int(order, "order", at_least=0)
        self.name = (name or f"add-constant:{exactly(self.constant)}") + _order_in_name(self.order)
        self.family = "add-constant" + _order_in_name(self.order)
        self.display = f"add-α, α = {self.constant:.3g}" + _order_in_words(self.order)

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        counts = context_counts(as_tokens(tokens, self.n_states), self.n_states, self.order)
        return posterior_predictive(counts, self.constant)

    def from_counts(self, followed: NDArray[Any], visits: NDArray[Any]) -> NDArray[np.float64]:
        """Return (n_vw + β)/(n_v + Kβ) from the counts of single tokens, shape (n,)."""
        return np.asarray((followed + self.constant) / (visits + self.n_states * self.constant))


class AddOne(AddConstant):
    """Laplace's rule of succession, (n_vw + 1)/(n_v + K): the Bayes rule at α = 1 and a uniform start."""

    def __init__(self, n_states: int, *, order: int = 1) -> None:
        super().__init__(n_states, 1.0, order=order, name="add-one")
        self.display = "add-one" + _order_in_words(self.order)


class KrichevskyTrofimov(AddConstant):
    """Krichevsky & Trofimov (1981): add ½ to each count, the Bayes rule under Jeffreys' prior."""

    def __init__(self, n_states: int, *, order: int = 1) -> None:
        super().__init__(n_states, 0.5, order=order, name="krichevsky-trofimov")
        self.display = "Krichevsky–Trofimov" + _order_in_words(self.order)


class Bayes(AddConstant):
    """The Bayes rule under the prior that draws the chains: add its concentration α to each count."""

    def __init__(self, n_states: int, *, concentration: float = 1.0) -> None:
        super().__init__(n_states, positive_real(concentration, "concentration"), name="bayes")
        self.display = f"Bayes rule of the prior, α = {self.constant:.3g}"


class Bigram:
    """The unsmoothed maximum-likelihood bigram, n_vw / n_v.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    unseen : {"uniform", "prefix"}
        The prediction where the current token has no earlier occurrence (n_v = 0, where maximum likelihood
        says nothing): uniform, or the prefix's own token frequencies n_w / n.
    order : int
        k ≥ 0: count what followed the last k tokens, by default the last one.

    Raises
    ------
    InputError
        If `n_states` is below 2, `unseen` is unknown, or `order` is not an integer of at least 0.

    Examples
    --------
    >>> Bigram(3).predict_proba([[0, 1, 0, 2, 0]])[0, -1].tolist()
    [0.0, 0.5, 0.5]
    """

    positive = False

    def __init__(self, n_states: int, *, unseen: Literal["uniform", "prefix"] = "uniform", order: int = 1) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        if unseen not in ("uniform", "prefix"):
            raise InputError(f"unseen must be uniform or prefix, not {unseen!r}")
        self.unseen = unseen
        self.order = positive_int(order, "order", at_least=0)
        self.counted_order = self.order if unseen == "uniform" else None
        self.name = ("bigram" if unseen == "uniform" else f"bigram:unseen={unseen}") + _order_in_name(self.order)
        self.family = "bigram" + _order_in_name(self.order)
        self.display = "unsmoothed bigram" if unseen == "uniform" else "unsmoothed bigram, backing off to frequencies"
        self.display += _order_in_words(self.order)

    def predict_proba(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64, exact zeros included."""
        checked = as_tokens(tokens, self.n_states)
        counts = context_counts(checked, self.n_states, self.order)
        visits = counts.sum(axis=-1, keepdims=True)
        if self.unseen == "uniform":
            fallback = np.full(counts.shape, 1.0 / self.n_states)
        else:
            fallback = occurrence_counts(checked, self.n_states) / np.arange(1, checked.shape[1] + 1)[:, None]
        return np.where(visits > 0, counts / np.maximum(visits, 1), fallback)

    def from_counts(self, followed: NDArray[Any], visits: NDArray[Any]) -> NDArray[np.float64]:
        """Return n_vw/n_v from the counts of single tokens, shape (n,); 1/K where n_v = 0."""
        return np.where(visits > 0, followed / np.maximum(visits, 1), 1.0 / self.n_states)


def _order_in_words(order: int) -> str:
    return "" if order == 1 else f", order {order}"


def _order_in_name(order: int) -> str:
    return "" if order == 1 else f":order={order}"
