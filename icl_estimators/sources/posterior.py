"""The posterior of the current row given a prefix, and what it says about any estimator.

With a uniform first token the posterior of row v is exactly Dirichlet(α + n_v·); with a stationary one it is
not, and nothing in this module applies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from icl_estimators.divergences import sum_states

__all__ = ["posterior_predictive", "posterior_kl_floor"]


def posterior_predictive(counts: NDArray[np.int32], concentration: float) -> NDArray[np.float64]:
    """Return q_w = (n_vw + α)/(n_v + Kα), the Bayes predictive of the next token.

    Parameters
    ----------
    counts : ndarray of int, shape (…, K)
        Transitions out of the current token, n_vw.
    concentration : float
        α > 0.

    Returns
    -------
    ndarray of float64, shape (…, K)

    Examples
    --------
    >>> posterior_predictive(np.array([0, 1, 1]), 1.0).tolist()
    [0.2, 0.4, 0.4]
    """
    smoothed = counts + np.float64(concentration)
    return np.asarray(smoothed / sum_states(smoothed)[..., None])


def posterior_kl_floor(counts: NDArray[np.int32], concentration: float) -> NDArray[np.float64]:
    """Return ρ = E[KL(P_v ‖ q) | prefix], the posterior expected KL of the Bayes predictive, in nats.

    ρ = Σ_w q_w [ψ(a_w + 1) − ψ(A + 1) − log q_w] with a = n_v· + α, A = n_v + Kα. For any estimator p̂ of the
    prefix E[KL(P_v ‖ p̂) | prefix] = ρ + KL(q ‖ p̂).

    Parameters
    ----------
    counts : ndarray of int, shape (…, K)
    concentration : float

    Returns
    -------
    ndarray of float64, shape (…,)

    Examples
    --------
    At n = 1 with K = 3 and α = 1 it is log 3 − 5/6:

    >>> float(posterior_kl_floor(np.zeros(3, dtype=np.int32), 1.0)).__round__(12)
    0.265278955335
    """
    a = counts + np.float64(concentration)
    total = sum_states(a)[..., None]
    q = a / total
    return sum_states(q * (psi(a + 1.0) - psi(total + 1.0) - np.log(q)))
