"""Monte Carlo risk of several estimators on the same draws, block by block."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import kl_divergence, log_loss, sum_states
from icl_estimators.experiments.kept_chains import KeptChains
from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.regret_groups import ChainGroups, RegretGroups, entropy_rates, group_regret
from icl_estimators.experiments.study import Study
from icl_estimators.inference import (
    Cells,
    MeanRatioMoments,
    Moments,
    PairMoments,
    PairwiseMoments,
    RatioMoments,
    merge_in_order,
    signed_bias_moments,
    with_mean,
)
from icl_estimators.inference.trees import Summary
from icl_estimators.metrics import METRICS, Drawn
from icl_estimators.pseudo_counts.streaming import PANEL_VISITS, SmoothingMoments, SmoothingPrefixes, SmoothingSums
from icl_estimators.sources import transition_counts

__all__ = ["RiskMoments", "risk_block"]

Array = NDArray[np.float64]

_EVERY_VISIT_UP_TO = 20  # beyond, some numbers of visits stand for all: the summaries stay small


@dataclass(frozen=True, eq=False)
class RiskMoments(Summary):
    """Everything that a study keeps of some chains.

    The coordinates of every summary are context lengths 1 … T and then their mean, unless it says otherwise.

    Attributes
    ----------
    risk : dict of (estimator, metric) to Moments
        Of chain means, with covariances where the metric gets a band.
    finite : dict of estimator to MeanRatioMoments
        Of the sum of finite KL over the count of finite KL; context lengths 1 … T.
    differences : dict of (estimator, metric) to PairMoments
        The estimator against the reference.
    pairs : dict of metric to PairwiseMoments
        Of the mean over context lengths of all estimators, their names sorted; empty if there is one only.
    signed_bias : dict of estimator to RatioMoments
        Context length by bin of the true probability.
    smoothing : dict of estimator to SmoothingMoments
        What fits of a pseudo-count by visits need.
    martingale : Moments or None
        Of realised KL of Bayes minus ρ; None where the posterior is not exact.
    foresight : dict of (estimator, measure) to Moments
        What detects an estimator that has seen later tokens, single estimators only; empty where the posterior is not
        exact. `next_token`: the probability it gave to the observed token, minus its posterior expectation,
        with mean 0. `kl_nats`, `log_loss_nats`: its loss minus that of the Bayes rule, with a mean that is not below 0.
    groups : dict of estimator to RegretGroups
        Regret by visits and by entropy rate; empty where the posterior is not exact.
    kept : KeptChains or None
        One value for each chain, where the study keeps them.
    """

    risk: dict[tuple[str, str], Moments]
    finite: dict[str, MeanRatioMoments]
    differences: dict[tuple[str, str], PairMoments]
    pairs: dict[str, PairwiseMoments]
    signed_bias: dict[str, RatioMoments]
    smoothing: dict[str, SmoothingMoments]
    martingale: Moments | None
    foresight: dict[tuple[str, str], Moments]
    groups: dict[str, RegretGroups] = field(default_factory=dict)
    kept: KeptChains | None = None


def risk_block(study: Study, chains: range) -> RiskMoments:
    """Draw `chains`, ask every estimator, and return the moments of the chains' values.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    InputError
        If a chain lacks the stationary law that the study starts from.
    """
    sample = study.source.sample(
        chains,
        sequences_per_chain=study.sequences_per_chain,
        length=study.length,
        seed=study.seed,
        purpose="risk",
    )
    # An entry of a Dirichlet row is above 0 even where its double is not (α < 0.02): a predicted 0 is infinitely wrong.
    above_zero = np.maximum(sample.transition, np.nextafter(0.0, 1.0))
    n_chains = len(chains)
    shape = (n_chains, study.sequences_per_chain, study.length)
    tokens, targets = sample.inputs, sample.targets.reshape(shape)
    truth = replace(sample, transition=above_zero).truth.reshape(*shape, study.n_states)
    counts = transition_counts(tokens, study.n_states).reshape(truth.shape)
    bayes = floor = None
    of_bayes: dict[str, Array] = {}
    posterior = study.source.posterior(tokens)
    if posterior is not None:
        bayes, floor = posterior.predictive.reshape(truth.shape), posterior.kl_floor.reshape(shape)
        of_bayes = {"kl_nats": kl_divergence(truth, bayes), "log_loss_nats": log_loss(bayes, targets)}
    units = study.units(n_chains)
    visits = study.source.visits(sample)
    cells = [Cells.of(sample.states[unit], sample.transition[unit], visits[unit]) for unit in units]
    chain: dict[str, _ChainValues] = {}
    bias: dict[str, list[RatioMoments]] = {}
    smoothing: dict[str, SmoothingSums] = {}
    foresight: dict[tuple[str, str], Array] = {}
    pooled: dict[str, Array] = {}
    groups: dict[str, ChainGroups] = {}
    seen_before, rates = counts.sum(axis=-1), np.zeros(0)
    if bayes is not None:
        rates = entropy_rates(sample.transition)
    prefixes = SmoothingPrefixes(counts, ["visits"], PANEL_VISITS, every_up_to=_EVERY_VISIT_UP_TO)
    for estimator in study.estimators:
        predictions = predict(estimator, sample.inputs, chains, study.sequences_per_chain)
        drawn = Drawn(predictions, truth, targets, bayes, floor)
        by_sequence = {
            metric.name: metric.loss(drawn)
            for metric in METRICS.values()
            if metric.summary != "finite mean" and not (metric.needs_posterior and bayes is None)
        }
        chain[estimator.name] = _ChainValues.of(by_sequence)
        if bayes is not None:
            seen = np.take_along_axis(predictions, targets[..., None], axis=-1)[..., 0]
            excess = {metric: by_sequence[metric] - loss for metric, loss in of_bayes.items()}
            excess["next_token"] = seen - sum_states(bayes * predictions)
            for measure, values in excess.items():
                foresight[estimator.name, measure] = with_mean(values.mean(axis=1))
            regret = by_sequence["regret_nats"]
            groups[estimator.name] = group_regret(regret, seen_before, rates, study.n_states, study.length)
        bias[estimator.name] = [
            signed_bias_moments(cell, predictions[unit]) for cell, unit in zip(cells, units, strict=True)
        ]
        smoothing[estimator.name] = prefixes.sums(predictions)
        recipe_of_it = next((recipe for recipe, runs in study.recipes.items() if estimator.name in runs), None)
        if recipe_of_it is not None:  # signed bias is linear in p̂: that of the runs together is that of their mean
            share = predictions / len(study.recipes[recipe_of_it])
            pooled[recipe_of_it] = share + pooled[recipe_of_it] if recipe_of_it in pooled else share
    for recipe, runs in study.recipes.items():
        bias[recipe] = [
            signed_bias_moments(cell, pooled[recipe][unit]) for cell, unit in zip(cells, units, strict=True)
        ]
        chain[recipe] = _ChainValues.average([chain[name] for name in runs])
        if bayes is not None:
            groups[recipe] = ChainGroups.average([groups[name] for name in runs])
        smoothing[recipe] = SmoothingSums.average([smoothing[name] for name in runs])
    martingale = None
    if bayes is not None and floor is not None:
        martingale = with_mean((of_bayes["kl_nats"] - floor).mean(axis=1))
    smoothing_moments = {
        name: sums.moments(units, study.chains // 2 - chains.start) for name, sums in smoothing.items()
    }
    return merge_in_order(
        _summary(
            chain,
            {name: parts[i] for name, parts in bias.items()},
            {name: parts[i] for name, parts in smoothing_moments.items()},
            martingale,
            foresight,
            groups,
            study.reference,
            "chains" in study.keep,
            unit,
        )
        for i, unit in enumerate(units)
    )


@dataclass(frozen=True, eq=False)
class _ChainValues:
    """One number per chain and context length, of one estimator.

    Metrics have shape (R, T + 1), the last their mean over context lengths; sums and counts of finite KL (R, T).
    """

    metrics: dict[str, Array]
    finite_sum: Array
    finite_count: Array

    @classmethod
    def of(cls, losses: dict[str, Array]) -> _ChainValues:
        """Average over the sequences of a chain; losses have shape (R, S, T)."""
        finite = np.isfinite(losses["kl_nats"])
        return cls(
            {metric: with_mean(loss.mean(axis=1)) for metric, loss in losses.items()},
            np.where(finite, losses["kl_nats"], 0.0).mean(axis=1),
            finite.astype(np.float64).mean(axis=1),
        )

    @classmethod
    def average(cls, runs: list[_ChainValues]) -> _ChainValues:
        """Average the metrics of several training runs, not the metric of averaged predictions."""
        return cls(
            {metric: np.mean([run.metrics[metric] for run in runs], axis=0) for metric in runs[0].metrics},
            np.mean([run.finite_sum for run in runs], axis=0),
            np.mean([run.finite_count for run in runs], axis=0),
        )


def _summary(
    chain: dict[str, _ChainValues],
    signed_bias: dict[str, RatioMoments],
    smoothing: dict[str, SmoothingMoments],
    martingale: Array | None,
    foresight: dict[tuple[str, str], Array],
    groups: dict[str, ChainGroups],
    reference: str,
    keep_chains: bool,
    unit: slice,
) -> RiskMoments:
    return RiskMoments(
        risk={
            (name, metric): Moments.of(values[unit], full=METRICS[metric].has_band)
            for name, of_name in chain.items()
            for metric, values in of_name.metrics.items()
        },
        finite={
            name: MeanRatioMoments.of(of_name.finite_sum[unit], of_name.finite_count[unit])
            for name, of_name in chain.items()
        },
        differences={
            (name, metric): PairMoments.of(values[unit], chain[reference].metrics[metric][unit])
            for name, of_name in chain.items()
            if name != reference
            for metric, values in of_name.metrics.items()
            if METRICS[metric].differenced
        },
        pairs={
            metric: PairwiseMoments.of(
                np.stack([chain[name].metrics[metric][unit, -1] for name in sorted(chain)], axis=1)
            )
            for metric in chain[reference].metrics
            if len(chain) > 1 and METRICS[metric].paired
        },
        signed_bias=signed_bias,
        smoothing=smoothing,
        martingale=None if martingale is None else Moments.of(martingale[unit], full=False),
        foresight={key: Moments.of(values[unit], full=False) for key, values in foresight.items()},
        groups={name: of_name.moments(unit) for name, of_name in groups.items()},
        kept=KeptChains.of({name: of_name.metrics for name, of_name in chain.items()}, unit) if keep_chains else None,
    )
