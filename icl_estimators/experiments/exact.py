"""Exact risk: every prefix enumerated with its exact probability, no Monte Carlo error.

The chain is integrated out: the source knows the posterior given a prefix, so that each metric has a closed form for
each prefix, and its expectation is a finite sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.executors import one_thread
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.prediction import ask
from icl_estimators.metrics import METRICS, GivenPrefix
from icl_estimators.sources import ChainLaw, Posterior, Source, all_prefixes, check_prefix_budget
from icl_estimators.validation import InputError

__all__ = ["EXACT_METRICS", "ExactRisk", "check_exact_budget", "exact_risk"]

Array = NDArray[np.float64]

EXACT_METRICS = tuple(
    sorted(
        (metric.name for metric in METRICS.values() if metric.expected is not None),
        key=lambda name: list(METRICS).index(METRICS[name].made_of or name),
    )
)
"""The metrics that have a closed form given a prefix, each followed by those that are made of its values."""

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
    source : Source
        What the prefixes are drawn from.
    metrics : dict of str to ndarray of float64, each of shape (T,)
        By metric, the expectation at context lengths 1 … T. `kl_finite_nats` is NaN where every KL is infinite.
    """

    estimator: str
    source: Source
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


def exact_risk(estimator: Estimator, length: int, source: Source | None = None) -> ExactRisk:
    """Return the exact risk of `estimator` at context lengths 1 … `length`.

    Parameters
    ----------
    estimator : Estimator
        Any; it sees every sequence of `length` tokens once.
    length : int
        T, within the budget of :func:`icl_estimators.sources.check_prefix_budget`.
    source : Source, optional
        One with an exact posterior; by default the Dirichlet source with K = 3, α = 1 and a uniform start.

    Returns
    -------
    ExactRisk

    Raises
    ------
    InputError
        If the prefixes or the states are too many, the posterior given a prefix is not exact, or `estimator` is for
        another K.
    ContractError
        If the estimator fails, or its predictions break the contract.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> risk = exact_risk(get("bayes"), 2)
    >>> risk.metrics["kl_nats"].round(6).tolist()
    [0.265279, 0.245648]
    """
    source = source or ChainLaw()
    if estimator.n_states != source.n_states:
        raise InputError(f"{estimator.name} is for {estimator.n_states} states, the chains have {source.n_states}")
    k = source.n_states
    total = check_exact_budget(k, length)
    sums = {metric: np.zeros(length) for metric in EXACT_METRICS}
    finite_weight = np.zeros(length)
    first = 0
    block = max(1, min(8192, BLOCK_CELLS // (length * k + k * k)))
    for tokens in all_prefixes(k, length, block):
        posterior, weights = source.posterior(tokens), source.prefix_probabilities(tokens)
        if posterior is None or weights is None:
            raise InputError(
                f"exact risk needs an exact posterior given a prefix: the source {source.spec} with "
                f"start='{source.start}' has none"
            )
        with one_thread():
            predictions = ask(estimator, tokens, place="sequence {}".format, where=_what)
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
                posterior[rows, n - 1],
            )
    with np.errstate(invalid="ignore"):
        sums["kl_finite_nats"] = np.where(finite_weight > 0, sums["kl_finite_nats"] / finite_weight, np.nan)
    return ExactRisk(estimator.name, source, sums)


def _what(tokens: NDArray[np.int64]) -> str:
    return f"prefixes of {tokens.shape[1]} tokens"


def _accumulate(
    sums: dict[str, Array],
    finite_weight: Array,
    column: int,
    weight: Array,
    prediction: Array,
    posterior: Posterior,
) -> None:
    given = GivenPrefix(prediction, posterior)
    for metric in METRICS.values():
        if metric.expected is not None:
            value = metric.expected(given)
            kept = np.isfinite(value) if metric.summary == "finite mean" else slice(None)
            sums[metric.name][column] += weight[kept] @ value[kept]
    finite_weight[column] += weight[np.isfinite(given.kl)].sum()
