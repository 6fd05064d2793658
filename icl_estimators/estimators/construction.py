"""The explicit induction head as an estimator: its induction path, alone or through a softmax.

Layer-1 scores depend on positions alone and layer 2 lives in K + 1 dimensions, so the matrices of
:mod:`icl_estimators.estimators.induction_matrices` need no (T, T) attention: this block form gives the same
numbers to 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from icl_estimators.estimators.induction_matrices import InductionMatrices
from icl_estimators.sources import occurrence_counts, transition_counts
from icl_estimators.text import exactly
from icl_estimators.validation import InputError, as_tokens, positive_int, positive_real

__all__ = ["DEFAULT_GAMMA", "Construction", "ConstructionSoftmax", "induction_path", "saturated_attention"]

Array = NDArray[np.float64]

DEFAULT_GAMMA = {True: 0.645, False: 2.21}
"""γ by `direct_path` of the plain name, in every command: minimisers of the Rao-Blackwell KL averaged over
n = 1 … 100, K = 3, α = 1."""


def induction_path(tokens: NDArray[np.int64], n_states: int, beta: float = math.inf) -> Array:
    """Return what the second head writes, f_w, over the real tokens.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, T)
    n_states : int
    beta : float
        β, the attentions' logit scale; infinity is the limit of saturated attention.

    Returns
    -------
    ndarray of float64, shape (N, T, K)
        In the limit, n_vw / n_v where t_n = v has been left before; otherwise attention falls back to a uniform
        mean over the prefix and its sentinel, n_w / (n + 1), the sentinel holding the rest of the mass.

    Examples
    --------
    >>> induction_path(np.array([[0, 1, 0]]), 2)[0].tolist()
    [[0.5, 0.0], [0.3333333333333333, 0.3333333333333333], [0.0, 1.0]]
    """
    if math.isinf(beta):
        return _saturated_path(tokens, n_states)
    return _finite_path(tokens, n_states, beta)


def _saturated_path(tokens: NDArray[np.int64], n_states: int) -> Array:
    counts = transition_counts(tokens, n_states)
    visits = counts.sum(axis=-1, keepdims=True)
    prefix_and_sentinel = np.arange(2, tokens.shape[1] + 2)[:, None]
    fallback = occurrence_counts(tokens, n_states) / prefix_and_sentinel
    return np.where(visits > 0, counts / np.maximum(visits, 1), fallback)


def _finite_path(tokens: NDArray[np.int64], n_states: int, beta: float) -> Array:
    n_sequences, length = tokens.shape
    sequence = np.arange(n_sequences)
    by_time = np.ascontiguousarray(tokens.T)
    # The second head's running sums for a query of each real token v: Σ_j e^{β M_j[v] − peak} 1[t_j = w], kept
    # relative to the running peak so that any β is safe. Position 1 is the sentinel: M_1[v] = 0.
    peak = np.zeros((n_sequences, n_states))
    mass = np.zeros((n_sequences, n_states, n_states + 1))  # last column: the sentinel
    mass[:, :, n_states] = 1.0
    seen = np.zeros((n_sequences, n_states))  # occurrences of each real token so far
    path = np.empty((length, n_sequences, n_states))
    for t in range(length):
        token = by_time[t]
        seen[sequence, token] += 1.0
        # The first head at position i = t + 2 puts 1/(1 + (i − 1)e^{−β}) on i − 1, e^{−β} times that elsewhere.
        on_previous = 1.0 / (1.0 + (t + 1) * math.exp(-beta))
        copied = seen * (math.exp(-beta) * on_previous)  # M_i[v], (N, K)
        if t > 0:
            copied[sequence, by_time[t - 1]] += on_previous * (1.0 - math.exp(-beta))
        score = beta * copied
        new_peak = np.maximum(peak, score)
        mass *= np.exp(peak - new_peak)[:, :, None]
        mass[sequence, :, token] += np.exp(score - new_peak)
        peak = new_peak
        row = mass[sequence, token]  # the query is the current token: (N, K + 1)
        path[t] = row[:, :n_states] / row.sum(axis=-1, keepdims=True)
    return path.transpose(1, 0, 2).copy()


def saturated_attention(tokens: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return both attentions in the limit β → ∞.

    Parameters
    ----------
    tokens : ndarray of int64, shape (N, T)

    Returns
    -------
    first, second : ndarray of float64, shape (N, T + 1, T + 1)
        The sentinel is position 0. First: each position on the one before. Second: uniform over the positions whose
        predecessor is the current token, over the whole prefix where there are none.

    Examples
    --------
    >>> saturated_attention(np.array([[0, 1, 0, 2, 0]]))[1][0, -1].tolist()
    [0.0, 0.0, 0.5, 0.0, 0.5, 0.0]
    """
    n_sequences, length = tokens.shape
    first = np.zeros((n_sequences, length + 1, length + 1))
    first[:, 0, 0] = 1.0
    first[:, np.arange(1, length + 1), np.arange(length)] = 1.0
    match = np.zeros(first.shape, dtype=bool)
    match[:, 1:, 2:] = tokens[:, :, None] == tokens[:, None, :-1]
    causal = np.tri(length + 1, dtype=bool)
    match &= causal
    kept = np.where(match.any(axis=-1, keepdims=True), match, causal)
    return first, kept / kept.sum(axis=-1, keepdims=True)


class Construction:
    """The construction's induction path, restricted to the real tokens and normalised.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    beta : float, optional
        β > 0 runs the matrices at that finite scale. Attention can only copy what is in the prefix, so
        states that have not occurred yet keep probability 0 (and KL is infinite) at any β; once all have, KL is
        finite and grows linearly in β. By default the limit β → ∞: raw empirical frequencies with exact
        zeros, n_w / n where there is no match.

    Raises
    ------
    InputError
        If `n_states` is below 2 or `beta` is not a number above 0.

    Examples
    --------
    >>> Construction(3).predict_proba([[0, 1, 0, 2, 0]])[0, -1].tolist()
    [0.0, 0.5, 0.5]
    """

    family = "construction"
    positive = False

    def __init__(self, n_states: int, beta: float | None = None) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        self.beta = math.inf if beta is None else positive_real(beta, "beta of construction")
        self.name = "construction" if beta is None else f"construction:{exactly(self.beta)}"
        self.display = "explicit induction head" + ("" if beta is None else f", β = {self.beta:.3g}")

    def predict_proba(self, tokens: ArrayLike) -> Array:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        path = induction_path(as_tokens(tokens, self.n_states), self.n_states, self.beta)
        return np.asarray(path / path.sum(axis=-1, keepdims=True))

    def attention(self, tokens: ArrayLike) -> tuple[Array, Array]:
        """Return both layers' weights, sentinel first, shape (N, T + 1, T + 1) each."""
        checked = as_tokens(tokens, self.n_states)
        if math.isinf(self.beta):
            return saturated_attention(checked)
        return InductionMatrices(self.n_states, checked.shape[1], self.beta).run(checked).attention


class ConstructionSoftmax:
    """The construction's logits as written, through a softmax: softmax_w(γ (1[w = v] + f_w)) after t_n = v.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    gamma : float or "tuned", optional
        γ > 0. By default 0.645, or 2.21 without the direct path, whatever the chains: the minimisers of the mean risk
        at K = 3, α = 1, T = 100. "tuned" asks `tune`, and the number becomes part of the name.
    direct_path : bool
        Whether the bonus for repeating the current token stays in; a trained model can cancel it.
    beta : float, optional
        β > 0, the scale of both attentions; by default the limit β → ∞.
    tune : callable, optional
        `direct_path` → γ, suited to some law and length: :func:`icl_estimators.experiments.tuning.gamma_tuner`.

    Attributes
    ----------
    name : str
        Also a spec that makes this estimator, including γ.
    gamma : float
    gamma_from : {"default", "given", "tuned"}
    head : Construction
        The two attention layers that are read out.

    Raises
    ------
    InputError
        If `n_states` is below 2, `gamma` is not a number of at least 0, `beta` not a number above 0, `direct_path` is
        not true or false, γ is to be tuned without `tune`, or to be tuned at a finite β.

    Examples
    --------
    >>> rule = ConstructionSoftmax(3, 2.0, direct_path=False)
    >>> rule.predict_proba([[0, 1, 0, 2, 0]])[0, -1].round(4).tolist()
    [0.1554, 0.4223, 0.4223]
    """

    positive = True

    def __init__(
        self,
        n_states: int,
        gamma: float | str | None = None,
        *,
        direct_path: bool = True,
        beta: float | None = None,
        name: str | None = None,
        tune: Callable[[bool], float] | None = None,
    ) -> None:
        self.n_states = positive_int(n_states, "n_states", at_least=2)
        if not isinstance(direct_path, bool):
            raise InputError(f"direct_path must be true or false, not {direct_path!r}")
        self.direct_path = direct_path
        self.head = Construction(self.n_states, beta)
        path = "" if direct_path else ":direct_path=false"
        self.family = f"construction-softmax{path}"
        self.gamma_from: Literal["default", "given", "tuned"] = "default" if gamma is None else "given"
        if gamma == "tuned":
            if beta is not None:
                raise InputError("γ is tuned for the limit β → ∞ only: give the number, or leave beta out")
            if tune is None:
                raise InputError(
                    "construction-softmax:tuned needs chains and a length to tune γ on, but there are none here: "
                    "give the number, as in construction-softmax:2.2"
                )
            gamma, self.gamma_from = tune(direct_path), "tuned"
        used: Any = DEFAULT_GAMMA[direct_path] if gamma is None else gamma  # a word other than "tuned" is refused here
        self.gamma = (
            0.0 if used == 0 and not isinstance(used, bool) else positive_real(used, "gamma of construction-softmax")
        )
        what = "softmax of frequencies" + (" with a bonus for repeating" if direct_path else "")
        self.display = f"{what}, γ = {self.gamma:.3g}" + ("" if beta is None else f", β = {self.head.beta:.3g}")
        value = "" if self.gamma_from == "default" else f":{exactly(self.gamma)}"
        scale = "" if beta is None else f":beta={exactly(self.head.beta)}"
        self.name = name or f"construction-softmax{value}{scale}{path}"

    def predict_proba(self, tokens: ArrayLike) -> Array:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64."""
        checked = as_tokens(tokens, self.n_states)
        logits = induction_path(checked, self.n_states, self.head.beta)
        if self.direct_path:
            logits = logits + (checked[:, :, None] == np.arange(self.n_states))
        return np.asarray(softmax(self.gamma * logits, axis=-1))
