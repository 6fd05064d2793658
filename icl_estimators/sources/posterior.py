"""The posterior of the current row given a prefix, and what it says about any estimator.

If the first token does not depend on the chain, the posterior of row v is exactly Dirichlet(α + n_v·). Otherwise it
is not, and nothing in this module applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, psi

from icl_estimators.divergences import sum_states

__all__ = ["DirichletPosterior", "posterior_kl_floor", "posterior_predictive"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DirichletPosterior:
    """Prefixes after each of which the law P of the next token is Dirichlet(a_1, …, a_K).

    Attributes
    ----------
    parameters : ndarray of float64, shape (…, K)
        a > 0.
    """

    parameters: Array

    def __getitem__(self, index: Any) -> DirichletPosterior:
        """Return the posterior of some of the prefixes."""
        return DirichletPosterior(self.parameters[index])

    @property
    def predictive(self) -> Array:
        """q_w = a_w/A, shape (…, K), with A = Σ_w a_w."""
        return np.asarray(self.parameters / sum_states(self.parameters)[..., None])

    @property
    def kl_floor(self) -> Array:
        """ρ = Σ_w q_w [ψ(a_w + 1) − ψ(A + 1) − log q_w] in nats, shape (…,)."""
        a = self.parameters
        total = sum_states(a)[..., None]
        q = a / total
        return sum_states(q * (psi(a + 1.0) - psi(total + 1.0) - np.log(q)))

    @property
    def variance(self) -> Array:
        """Σ_w Var P_w = Σ_w q_w (1 − q_w)/(A + 1), as P_w ~ Beta(a_w, A − a_w); shape (…,)."""
        q = self.predictive
        return np.asarray((q * (1.0 - q)).sum(axis=-1) / (self.parameters.sum(axis=-1) + 1.0))

    def total_variation(self, prediction: Array) -> Array:
        """Return ½ Σ_w E|P_w − c_w|, shape (…,): E|P − c| = m − c + 2(c F_a(c) − m F_{a+1}(c)) in Beta laws."""
        a = self.parameters
        rest = a.sum(axis=-1, keepdims=True) - a
        mean = a / (a + rest)
        point = np.minimum(prediction, 1.0)  # float32 models may overstep by 1e-7
        below = prediction * betainc(a, rest, point) - mean * betainc(a + 1.0, rest, point)
        return np.asarray(0.5 * (mean - prediction + 2.0 * below).sum(axis=-1))


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
    return DirichletPosterior(counts + np.float64(concentration)).predictive


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
    return DirichletPosterior(counts + np.float64(concentration)).kl_floor
