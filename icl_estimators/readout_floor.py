"""The loss of a softmax read-out of exact frequencies that remains in arbitrarily long contexts."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaincinv, logsumexp, xlogy

from icl_estimators.validation import positive_int, positive_real

__all__ = ["ReadoutFloor", "readout_floor"]

_LOG2_POINTS = 13
_SEED = 1


class ReadoutFloor(NamedTuple):
    """The least risk of a softmax read-out of exact frequencies.

    Attributes
    ----------
    gamma : float
        The scale that attains it.
    kl_nats : float
        The expected KL there.
    """

    gamma: float
    kl_nats: float


@lru_cache(maxsize=8)
def readout_floor(n_states: int, concentration: float, *, by_visits: bool = True) -> ReadoutFloor:
    """Return min over γ of E KL(p ‖ softmax(γp)), p a row of a random chain.

    It is what remains as the context grows, since counts become exact. It bounds no risk at a finite length.

    Parameters
    ----------
    n_states : int
        K ≥ 2.
    concentration : float
        α of the Dirichlet rows.
    by_visits : bool
        Weight the rows of a chain by its stationary law, as in a long context; otherwise weight all rows equally.

    Returns
    -------
    ReadoutFloor
        By 8,192 chains spread evenly over the prior (scrambled Sobol points), the same on every call.

    Raises
    ------
    InputError
        If `n_states` < 2 or `concentration` is not above 0.

    Examples
    --------
    >>> round(readout_floor(3, 1.0).kl_nats, 4)
    0.0166
    """
    k = positive_int(n_states, "n_states", at_least=2)
    alpha = positive_real(concentration, "concentration")
    rows, weights = _chains(k, alpha)
    if not by_visits:
        weights = np.full_like(weights, 1.0 / k)
    negative_entropy = (weights * xlogy(rows, rows).sum(axis=-1)).sum(axis=-1).mean()
    square = (weights * (rows**2).sum(axis=-1)).sum(axis=-1).mean()

    def risk(log_gamma: float) -> float:
        gamma = np.exp(log_gamma)
        return float(
            negative_entropy - gamma * square + (weights * logsumexp(gamma * rows, axis=-1)).sum(axis=-1).mean()
        )

    found = minimize_scalar(risk, bounds=(np.log(1e-3), np.log(1e3)), method="bounded", options={"xatol": 1e-7})
    return ReadoutFloor(float(np.exp(found.x)), float(found.fun))


def _chains(k: int, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows (R, K, K) of evenly spread chains and their stationary laws (R, K)."""
    from scipy.stats import qmc  # half a second, and only reports need it

    uniforms = qmc.Sobol(k * k, rng=_SEED).random_base2(_LOG2_POINTS)
    gammas = np.maximum(gammaincinv(alpha, uniforms), np.finfo(float).tiny).reshape(-1, k, k)
    rows = gammas / gammas.sum(axis=-1, keepdims=True)
    # πP = π and Σπ = 1: the last equation of the first set follows from the others.
    system = np.swapaxes(rows, -1, -2) - np.eye(k)
    system[:, -1, :] = 1.0
    target = np.zeros((len(rows), k, 1))
    target[:, -1] = 1.0
    stationary = np.linalg.solve(system, target)[..., 0]
    return rows, np.maximum(stationary, 0.0)
