"""Monte Carlo risk of several estimators on the same draws, block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.chains import posterior_kl_floor, posterior_predictive, sample_chains, transition_counts
from icl_estimators.divergences import hellinger, kl_divergence, log_loss, squared_error, total_variation
from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.study import UNIT, Study
from icl_estimators.inference import Moments, PairMoments, RatioMoments, chain_values, merge_in_order, with_mean

__all__ = ["POSTERIOR_METRICS", "RISK_METRICS", "RiskMoments", "risk_block"]

Array = NDArray[np.float64]

POSTERIOR_METRICS = ("kl_rb_nats", "regret_nats")
"""Metrics that integrate the chain out; they need its exact posterior."""

RISK_METRICS = (
    "kl_nats",
    "kl_rb_nats",
    "regret_nats",
    "p_infinite",
    "total_variation",
    "squared_error",
    "hellinger",
    "log_loss_nats",
)
"""Metrics that are a mean over sequences; `kl_finite_nats`, a ratio, is kept apart."""


@dataclass(frozen=True, eq=False)
class RiskMoments:
    """All that a study keeps of some chains.

    The coordinates of every summary are context lengths 1 … T and then their mean.

    Attributes
    ----------
    risk : dict of (estimator, metric) to Moments
        Of chain means, with covariances.
    finite : dict of estimator to RatioMoments
        Of the sum of finite KL over the count of finite KL.
    differences : dict of (estimator, metric) to PairMoments
        The estimator against the reference, `p_infinite` left out.
    martingale : Moments or None
        Of realised KL of Bayes less ρ; None where the posterior is not exact.
    """

    risk: dict[tuple[str, str], Moments]
    finite: dict[str, RatioMoments]
    differences: dict[tuple[str, str], PairMoments]
    martingale: Moments | None

    def merge(self, other: RiskMoments) -> RiskMoments:
        """Return the summaries of both groups of chains together; `other`'s come after."""
        return RiskMoments(
            {key: moments.merge(other.risk[key]) for key, moments in self.risk.items()},
            {key: moments.merge(other.finite[key]) for key, moments in self.finite.items()},
            {key: moments.merge(other.differences[key]) for key, moments in self.differences.items()},
            None if self.martingale is None or other.martingale is None else self.martingale.merge(other.martingale),
        )


def risk_block(study: Study, chains: range) -> RiskMoments:
    """Draw `chains`, ask every estimator, and return the moments of the chains' values.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    InputError
        If a chain lacks the stationary law that the study starts from.
    """
    sample = sample_chains(
        chains,
        sequences_per_chain=study.sequences_per_chain,
        length=study.length,
        law=study.law,
        seed=study.seed,
        purpose="risk",
    )
    tokens, truth, targets = sample.inputs, sample.truth, sample.targets
    bayes = floor = None
    if study.exact_posterior:
        counts = transition_counts(tokens, study.n_states)
        bayes = posterior_predictive(counts, study.law.concentration)
        floor = posterior_kl_floor(counts, study.law.concentration)
    n_chains = len(chains)
    values: dict[str, dict[str, Array]] = {}
    finite: dict[str, tuple[Array, Array]] = {}
    for estimator in study.estimators:
        predictions = predict(estimator, tokens, chains, study.sequences_per_chain)
        by_sequence = _losses(predictions, truth, targets, bayes, floor)
        values[estimator.name] = {
            metric: with_mean(chain_values(loss, n_chains)) for metric, loss in by_sequence.items()
        }
        kl = by_sequence["kl_nats"]
        is_finite = np.isfinite(kl)
        numerator = with_mean(chain_values(np.where(is_finite, kl, 0.0), n_chains))
        finite[estimator.name] = numerator, with_mean(chain_values(is_finite.astype(np.float64), n_chains))
    martingale = None
    if bayes is not None and floor is not None:
        martingale = with_mean(chain_values(kl_divergence(truth, bayes) - floor, n_chains))
    units = [slice(first, first + UNIT) for first in range(0, n_chains, UNIT)]
    return merge_in_order(_summary(values, finite, martingale, study.reference, unit) for unit in units)


def _losses(
    predictions: Array, truth: Array, targets: NDArray[np.int64], bayes: Array | None, floor: Array | None
) -> dict[str, Array]:
    """Return each metric's value for each sequence and context length, shape (N, T)."""
    kl = kl_divergence(truth, predictions)
    losses = {
        "kl_nats": kl,
        "p_infinite": np.isinf(kl).astype(np.float64),
        "total_variation": total_variation(truth, predictions),
        "squared_error": squared_error(truth, predictions),
        "hellinger": hellinger(truth, predictions),
        "log_loss_nats": log_loss(predictions, targets),
    }
    if bayes is not None and floor is not None:
        losses["regret_nats"] = kl_divergence(bayes, predictions)
        losses["kl_rb_nats"] = floor + losses["regret_nats"]
    return {metric: losses[metric] for metric in RISK_METRICS if metric in losses}


def _summary(
    values: dict[str, dict[str, Array]],
    finite: dict[str, tuple[Array, Array]],
    martingale: Array | None,
    reference: str,
    unit: slice,
) -> RiskMoments:
    return RiskMoments(
        risk={
            (name, metric): Moments.of(chain[unit])
            for name, by_metric in values.items()
            for metric, chain in by_metric.items()
        },
        finite={name: RatioMoments.of(top[unit], bottom[unit]) for name, (top, bottom) in finite.items()},
        differences={
            (name, metric): PairMoments.of(chain[unit], values[reference][metric][unit])
            for name, by_metric in values.items()
            if name != reference
            for metric, chain in by_metric.items()
            if metric != "p_infinite"
        },
        martingale=None if martingale is None else Moments.of(martingale[unit], full=False),
    )
