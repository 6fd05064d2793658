"""Choosing the construction's read-out scale γ on chains of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from icl_estimators.chains import ChainLaw, posterior_predictive, sample_chains, transition_counts
from icl_estimators.divergences import sum_states
from icl_estimators.estimators.construction import induction_path

__all__ = ["tune_gamma"]

TUNING_CHAINS = 2000
TUNING_SEQUENCES = 1
_LOG_GAMMA_BOUNDS = (np.log(1e-3), np.log(1e3))


def tune_gamma(law: ChainLaw, length: int, *, direct_path: bool, seed: int = 0) -> float:
    """Return the γ of `construction-softmax` with the least risk averaged over context lengths 1 … T.

    The risk is the Rao-Blackwell KL, up to a constant the cross-entropy from the Bayes predictive; with a stationary
    start, where that is not known exactly, the cross-entropy from the true row.

    Parameters
    ----------
    law : ChainLaw
    length : int
        T.
    direct_path : bool
        Whether the bonus for repeating the current token is in the logits.
    seed : int
        The study's seed; the "tuning" stream is used for nothing else.

    Returns
    -------
    float

    Examples
    --------
    >>> 2.0 < tune_gamma(ChainLaw(), 100, direct_path=False) < 2.4
    True
    """
    sample = sample_chains(
        range(TUNING_CHAINS),
        sequences_per_chain=TUNING_SEQUENCES,
        length=length,
        law=law,
        seed=seed,
        purpose="tuning",
    )
    tokens = sample.inputs
    target: NDArray[np.float64] = sample.truth
    if law.start == "uniform":
        target = posterior_predictive(transition_counts(tokens, law.n_states), law.concentration)
    logits = induction_path(tokens, law.n_states)
    if direct_path:
        logits = logits + (tokens[:, :, None] == np.arange(law.n_states))

    def risk(log_gamma: float) -> float:
        return -float(sum_states(target * log_softmax(np.exp(log_gamma) * logits, axis=-1)).mean())

    found = minimize_scalar(risk, bounds=_LOG_GAMMA_BOUNDS, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))
