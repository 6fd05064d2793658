"""Distances between next-token laws, with the conventions for the risk of estimators.

`p` is the truth and `q` the estimate, both of shape (…, K) on the simplex; each function reduces the last
axis. Natural logarithms: KL and log loss are in nats. p = 0 contributes 0; q = 0 where p > 0 gives +inf,
never NaN; nothing is floored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["kl_divergence", "total_variation", "squared_error", "hellinger", "log_loss", "sum_states"]

Array = NDArray[np.float64]


def sum_states(terms: Array) -> Array:
    """Sum over the last axis, shape (…, K) → (…,): a few long additions instead of very many short ones.

    Examples
    --------
    >>> sum_states(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    """
    total = terms[..., 0].copy()
    for state in range(1, terms.shape[-1]):
        total += terms[..., state]
    return np.asarray(total)


def kl_divergence(p: Array, q: Array) -> Array:
    """Return KL(p ‖ q) = Σ_w p_w log(p_w / q_w) in nats, shape (…,).

    Examples
    --------
    >>> float(kl_divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])))
    inf
    >>> float(kl_divergence(np.array([1.0, 0.0]), np.array([1.0, 0.0])))
    0.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0)
    return sum_states(terms)


def total_variation(p: Array, q: Array) -> Array:
    """Return ½ Σ_w |p_w − q_w|, shape (…,).

    Examples
    --------
    >>> float(total_variation(np.array([1.0, 0.0]), np.array([0.5, 0.5])))
    0.5
    """
    return 0.5 * sum_states(np.abs(p - q))


def squared_error(p: Array, q: Array) -> Array:
    """Return Σ_w (q_w − p_w)², without a factor 1/K, shape (…,).

    Examples
    --------
    >>> float(squared_error(np.array([1.0, 0.0]), np.array([0.5, 0.5])))
    0.5
    """
    return sum_states((q - p) ** 2)


def hellinger(p: Array, q: Array) -> Array:
    """Return √(½ Σ_w (√p_w − √q_w)²), shape (…,).

    Examples
    --------
    >>> float(hellinger(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
    1.0
    """
    return np.sqrt(0.5 * sum_states((np.sqrt(p) - np.sqrt(q)) ** 2))


def log_loss(q: Array, target: NDArray[np.int64]) -> Array:
    """Return −log q[target] in nats; `q` has shape (…, K), `target` and the result (…,).

    Examples
    --------
    >>> float(log_loss(np.array([0.5, 0.5]), np.array(0))).__round__(12)
    0.69314718056
    """
    chosen = np.take_along_axis(q, np.asarray(target)[..., None], axis=-1)[..., 0]
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(chosen))
