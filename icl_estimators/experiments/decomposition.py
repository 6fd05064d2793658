"""Bias and variance by a separate nested design: chains, and many sequences of each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.study import Study
from icl_estimators.inference import (
    Cells,
    CellTally,
    Moments,
    bias_variance,
    kl_bias_variance,
    training_variance,
    with_mean,
)
from icl_estimators.inference.trees import Summary
from icl_estimators.metrics import KL_METRICS

__all__ = ["DecompositionMoments", "decomposition_block"]

Array = NDArray[np.float64]

_RUN_METRICS = ("bias_squared", "training_variance")


@dataclass(frozen=True, eq=False)
class DecompositionMoments(Summary):
    """What the nested design keeps of some chains; coordinates are context lengths 1 … T and then their mean.

    Attributes
    ----------
    parts : dict of (estimator, metric) to Moments
        Of per-chain values, with covariances. `training_variance` only for the mean over several checkpoints, whose
        KL parts are the means of those of each.
    tallies : dict of estimator to CellTally
        Cells used, and those where a zero makes the KL parts undefined (in the run that has most, for a recipe).
    runs : dict of (training run, metric) to Moments
        Jackknife pseudo-values of the recipe's `bias_squared` and `training_variance`, variances only; none of recipes
        with fewer than three runs.
    """

    parts: dict[tuple[str, str], Moments]
    tallies: dict[str, CellTally]
    runs: dict[tuple[str, str], Moments] = field(default_factory=dict)


def decomposition_block(study: Study, chains: range) -> DecompositionMoments:
    """Draw `chains` with many sequences each, ask every estimator, and split its error.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    InputError
        If a chain lacks the stationary law that the study starts from.
    """
    sample = study.source.sample(
        chains,
        sequences_per_chain=study.decomposition_sequences,
        length=study.length,
        seed=study.seed,
        purpose="decomposition",
    )
    cells = Cells.of(sample.states, sample.transition, study.source.visits(sample))
    tokens = sample.inputs
    parts: dict[tuple[str, str], Moments] = {}
    tallies: dict[str, CellTally] = {}
    pooled: dict[str, Array] = {}
    kl: dict[str, dict[str, Array]] = {}
    pseudo: dict[tuple[str, str], Moments] = {}
    for estimator in study.estimators:
        predictions = predict(estimator, tokens, chains, study.decomposition_sequences)
        euclid, heskes = bias_variance(cells, predictions), kl_bias_variance(cells, predictions)
        values = {
            "bias_squared": euclid.bias_squared,
            "variance": euclid.variance,
            "mse": euclid.mse,
            "split_weight": euclid.split_weight,
            "kl_bias_nats": heskes.kl_bias_nats,
            "kl_variance_nats": heskes.kl_variance_nats,
        }
        parts |= {(estimator.name, metric): Moments.of(with_mean(value)) for metric, value in values.items()}
        tallies[estimator.name] = heskes.tally
        if estimator.name in study.checkpoints:
            pooled[estimator.name] = predictions
            kl[estimator.name] = {metric: value for metric, value in values.items() if metric in KL_METRICS}
    for recipe, runs in study.recipes.items():
        split = training_variance(cells, [pooled[name] for name in runs])
        for metric in ("bias_squared", "variance", "training_variance", "mse", "split_weight"):
            parts[recipe, metric] = Moments.of(with_mean(getattr(split, metric)))
        for metric in kl[runs[0]]:
            parts[recipe, metric] = Moments.of(with_mean(np.mean([kl[name][metric] for name in runs], axis=0)))
        tallies[recipe] = CellTally.worst([tallies[name] for name in runs])
        for metric in _RUN_METRICS:
            for name, values_of_run in zip(runs, getattr(split, f"{metric}_runs"), strict=False):  # none if J = 2
                pseudo[name, metric] = Moments.of(with_mean(values_of_run), full=False)
    return DecompositionMoments(parts, tallies, pseudo)
