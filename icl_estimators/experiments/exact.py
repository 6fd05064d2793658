"""Exact risk: every prefix enumerated with its exact probability, no Monte Carlo error.

The chain is integrated out: given a prefix the current row is Dirichlet(n_v· + α), so each metric has a closed form
for each prefix, and its expectation is a finite sum. The start law is uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from icl_estimators.divergences import kl_divergence, squared_error
from icl_estimators.engine.executors import one_thread
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.prediction import ask
from icl_estimators.sources import (
    ChainLaw,
    all_prefixes,
    check_prefix_budget,
    posterior_kl_floor,
    posterior_predictive,
    prefix_probabilities,
    transition_counts,
)
from icl_estimators.validation import InputError

__all__ = ["EXACT_METRICS", "ExactRisk", "check_exact_budget", "exact_risk"]

Array = NDArray[np.float64]

EXACT_METRICS = (
    "kl_nats",
    "kl_finite_nats",
    "p_infinite",
    "regret_nats",
    "total_variation",
    "squared_error",
    "log_loss_nats",
)
"""The metrics that have a closed form given a prefix."""

MOST_STATES = 1000  # a prefix has K × K counts, whatever its length

BLOCK_CELLS = 2**19
"""How many probabilities are held at once: 4 MiB an array, at any K."""


@dataclass(frozen=True)
class ExactRisk:
    """Expected loss of one estimator at each context length.

    Attributes
    ----------
    estimator : str
        Its name.
    law : ChainLaw
        The prior; the start law is uniform.
    metrics : dict of str to ndarray of float64, each of shape (T,)
        By metric, the expectation at context lengths 1 … T. `kl_finite_nats` is NaN where every KL is infinite.
    """

    estimator: str
    law: ChainLaw
    metrics: dict[str, Array]


def check_exact_budget(n_states: int, length: int) -> int:
    """Return the number of prefixes, if they and the states are few enough for exact risk.

    Raises
    ------
    InputError
        If K is above 1,000, or as :func:`icl_estimators.sources.check_prefix_budget` does.

    Examples
    --------
    >>> check_exact_budget(3, 12)
    531441
    """
    if n_states > MOST_STATES:
        raise InputError(f"{n_states} states are too many for exact risk: at most {MOST_STATES}")
    return check_prefix_budget(n_states, length)


def exact_risk(estimator: Estimator, length: int, law: ChainLaw | None = None) -> ExactRisk:
    """Return the exact risk of `estimator` at context lengths 1 … `length`.

    Parameters
    ----------
    estimator : Estimator
        Any; it sees every sequence of `length` tokens once.
    length : int
        T, within the budget of :func:`icl_estimators.sources.check_prefix_budget`.
    law : ChainLaw, optional
        K, α; K = 3, α = 1 by default.

    Returns
    -------
    ExactRisk

    Raises
    ------
    InputError
        If the prefixes or the states are too many, the start law is not uniform (then the posterior given a prefix
        has no closed form), or `estimator` is for another K.
    ContractError
        If the estimator fails, or its predictions break the contract.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> risk = exact_risk(get("bayes"), 2)
    >>> risk.metrics["kl_nats"].round(6).tolist()
    [0.265279, 0.245648]
    """
    law = law or ChainLaw()
    if law.start != "uniform":
        raise InputError("exact risk needs start='uniform': under another the posterior has no closed form")
    if estimator.n_states != law.n_states:
        raise InputError(f"{estimator.name} is for {estimator.n_states} states, the chains have {law.n_states}")
    k = law.n_states
    total = check_exact_budget(k, length)
    sums = {metric: np.zeros(length) for metric in EXACT_METRICS}
    finite_weight = np.zeros(length)
    first = 0
    block = max(1, min(8192, BLOCK_CELLS // (length * k + k * k)))
    for tokens in all_prefixes(k, length, block):
        with one_thread():
            predictions = ask(estimator, tokens, place="sequence {}".format, where=_what)
        counts = transition_counts(tokens, k)
        weights = prefix_probabilities(tokens, k, law.concentration)
        numbers = np.arange(first, first + len(tokens))
        first += len(tokens)
        for n in range(1, length + 1):
            # Sequences that share their first n tokens stand together: the first of each run speaks for all.
            rows = (numbers % (total // k**n) == 0) & (weights[:, n - 1] > 0)  # 0 at a vanishing α
            _accumulate(
                sums,
                finite_weight,
                n - 1,
                weights[rows, n - 1],
                predictions[rows, n - 1],
                counts[rows, n - 1],
                law.concentration,
            )
    with np.errstate(invalid="ignore"):
        sums["kl_finite_nats"] = np.where(finite_weight > 0, sums["kl_finite_nats"] / finite_weight, np.nan)
    return ExactRisk(estimator.name, law, sums)


def _what(tokens: NDArray[np.int64]) -> str:
    return f"prefixes of {tokens.shape[1]} tokens"


def _accumulate(
    sums: dict[str, Array],
    finite_weight: Array,
    column: int,
    weight: Array,
    prediction: Array,
    counts: NDArray[np.int32],
    concentration: float,
) -> None:
    q = posterior_predictive(counts, concentration)
    divergence = kl_divergence(q, prediction)
    kl = posterior_kl_floor(counts, concentration) + divergence
    finite = np.isfinite(kl)
    # P_vw ~ Beta(a_w, A − a_w) under the posterior, so Var P_vw = q_w (1 − q_w)/(A + 1).
    total = counts.sum(axis=-1) + concentration * counts.shape[-1]
    spread = (q * (1.0 - q)).sum(axis=-1) / (total + 1.0)
    with np.errstate(divide="ignore"):
        log_loss = -(q * np.log(prediction)).sum(axis=-1)  # q_w > 0 always
    values = {
        "kl_nats": kl,
        "p_infinite": ~finite,
        "regret_nats": divergence,
        "total_variation": _expected_total_variation(counts + np.float64(concentration), prediction),
        "squared_error": squared_error(q, prediction) + spread,
        "log_loss_nats": log_loss,
    }
    for metric, value in values.items():
        sums[metric][column] += weight @ value
    sums["kl_finite_nats"][column] += weight[finite] @ kl[finite]
    finite_weight[column] += weight[finite].sum()


def _expected_total_variation(a: Array, prediction: Array) -> Array:
    """Return ½ Σ_w E|P_w − c_w| for P_w ~ Beta(a_w, A − a_w): E|P − c| = m − c + 2(c F_a(c) − m F_{a+1}(c))."""
    rest = a.sum(axis=-1, keepdims=True) - a
    mean = a / (a + rest)
    point = np.minimum(prediction, 1.0)  # float32 models may overstep by 1e-7
    below = prediction * betainc(a, rest, point) - mean * betainc(a + 1.0, rest, point)
    return np.asarray(0.5 * (mean - prediction + 2.0 * below).sum(axis=-1))
