"""Choose the construction's read-out scale γ on separate chains."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from icl_estimators.divergences import sum_states
from icl_estimators.estimators.construction import induction_path
from icl_estimators.sources import Source
from icl_estimators.validation import positive_int

__all__ = ["gamma_tuner", "tune_gamma"]

TUNING_CHAINS = 2000
TUNING_SEQUENCES = 1
_DIGITS = 4
_LOG_GAMMA_BOUNDS = (np.log(1e-3), np.log(1e3))


def gamma_tuner(law: Source, length: int) -> Callable[[bool], float]:
    """Return a function that tunes γ to a law and a length: `direct_path` → γ.

    The seed is always 0, not that of the study, so every command finds the same γ for the same law and length.

    Parameters
    ----------
    law : Source
    length : int
        T ≥ 1.

    Raises
    ------
    InputError
        If `length` is not an integer of at least 1.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> from icl_estimators.sources import ChainLaw
    >>> get("construction-softmax:tuned:direct_path=false", tune=gamma_tuner(ChainLaw(), 6)).name
    'construction-softmax:0.8037:direct_path=false'
    """
    return partial(_tune, law, positive_int(length, "length"))


def _tune(law: Source, length: int, direct_path: bool) -> float:
    return tune_gamma(law, length, direct_path=direct_path)


def tune_gamma(law: Source, length: int, *, direct_path: bool, seed: int = 0) -> float:
    """Return the γ of `construction-softmax` with the smallest risk averaged over context lengths 1 … T.

    The risk is the Rao-Blackwell KL, up to a constant the cross-entropy from the Bayes predictive; where that is not
    known exactly, the cross-entropy from the true row. Four significant digits are kept, more
    than 2,000 sequences can determine, so that an estimator's name shows the whole number.

    Parameters
    ----------
    law : Source
    length : int
        T.
    direct_path : bool
        Whether the bonus for repeating the current token is in the logits.
    seed : int
        Of the "tuning" stream, which is used for nothing else.

    Returns
    -------
    float
        0, which makes the prediction uniform, if no γ above 0 is better.

    Examples
    --------
    >>> from icl_estimators.sources import ChainLaw
    >>> 2.0 < tune_gamma(ChainLaw(), 100, direct_path=False) < 2.4
    True
    """
    sample = law.sample(
        range(TUNING_CHAINS), sequences_per_chain=TUNING_SEQUENCES, length=length, seed=seed, purpose="tuning"
    )
    tokens = sample.inputs
    predictive = law.posterior_predictive(tokens)
    target = sample.truth if predictive is None else predictive
    logits = induction_path(tokens, law.n_states)
    if direct_path:
        logits = logits + (tokens[:, :, None] == np.arange(law.n_states))

    def risk(log_gamma: float) -> float:
        return -float(sum_states(target * log_softmax(np.exp(log_gamma) * logits, axis=-1)).mean())

    found = minimize_scalar(risk, bounds=_LOG_GAMMA_BOUNDS, method="bounded", options={"xatol": 1e-6})
    if found.x - _LOG_GAMMA_BOUNDS[0] < 1e-3:  # an end of the search is no estimate: the risk falls all the way to 0
        return 0.0
    return float(f"{np.exp(found.x):.{_DIGITS}g}")
