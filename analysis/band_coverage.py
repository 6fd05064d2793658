"""How often simultaneous bands cover, by metric and design → icl_estimators/band_coverage.csv.

``python -m analysis.band_coverage``, about a quarter of an hour on one core. A large population of chains (K = 3,
α = 1, uniform start) is drawn once. Each study is a random subset of it, and its band covers if it holds the
population's means at all context lengths. A subset is at most a twelfth of the population, which narrows its spread by
4 % at most. The population lacks the rarest chains, so that a share may be some hundredths too high where a loss is
very skewed; Bayes' KL over 100 lengths, from few chains, is measured on independent studies instead.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import hellinger, kl_divergence, log_loss, squared_error, total_variation
from icl_estimators.estimators import get
from icl_estimators.inference import Cells, Moments, bias_variance, chain_values, kl_bias_variance, simultaneous_band
from icl_estimators.sources import (
    ChainLaw,
    posterior_kl_floor,
    posterior_predictive,
    sample_chains,
    transition_counts,
)

__all__ = ["TARGET", "coverage", "main", "populations"]

Array = NDArray[np.float64]

TARGET = Path(__file__).resolve().parents[1] / "icl_estimators" / "band_coverage.csv"
ESTIMATORS = {1: ("add-one", "transformer"), 64: ("add-one",)}
"""By sequences of each chain; a trained model on many sequences is slow."""
LENGTHS = (6, 25, 100)
CHAINS = {1: (50, 200, 1000, 2000), 64: (50, 200)}
"""Chains of a study, by sequences of each."""
STUDIES = 400
DRAWS = 8192
_BATCH = 200


def populations(quick: bool = False) -> Iterator[tuple[str, str, int, Array]]:
    """Yield (estimator, metric, sequences per chain, values of shape (chains, T))."""
    yield from _collect(_risk_values, 1, 600 if quick else 24_000)
    yield from _collect(_decomposition_values, 64, 60 if quick else 3000)


def _collect(values_of: object, sequences: int, chains: int) -> Iterator[tuple[str, str, int, Array]]:
    for name in ESTIMATORS[sequences]:
        found: dict[str, list[Array]] = {}
        batch = max(1, _BATCH * 10 // sequences)
        for first in range(0, chains, batch):
            block = range(first, min(first + batch, chains))
            for metric, values in values_of(name, block, sequences).items():  # type: ignore[operator]
                found.setdefault(metric, []).append(values.astype(np.float32))
        for metric, parts in found.items():
            yield name, metric, sequences, np.concatenate(parts).astype(np.float64)


def _risk_values(name: str, block: range, sequences: int) -> dict[str, Array]:
    sample = sample_chains(block, sequences_per_chain=sequences, length=max(LENGTHS), seed=1, purpose="validation")
    prediction = get(name).predict_proba(sample.inputs)
    counts = transition_counts(sample.inputs, 3)
    values = {
        "kl_nats": kl_divergence(sample.truth, prediction),
        "total_variation": total_variation(sample.truth, prediction),
        "squared_error": squared_error(sample.truth, prediction),
        "hellinger": hellinger(sample.truth, prediction),
        "log_loss_nats": log_loss(prediction, sample.targets),
    }
    regret = kl_divergence(posterior_predictive(counts, 1.0), prediction)
    values["kl_rb_nats"] = regret + posterior_kl_floor(counts, 1.0)
    if name != "add-one":  # whose regret is 0
        values["regret_nats"] = regret
    return {metric: chain_values(loss, len(block)) for metric, loss in values.items()}


def _decomposition_values(name: str, block: range, sequences: int) -> dict[str, Array]:
    sample = sample_chains(block, sequences_per_chain=sequences, length=max(LENGTHS), seed=1, purpose="validation")
    cells = Cells.of(sample.tokens[:, :, :-1], sample.transition, ChainLaw().visits(sample))
    prediction = get(name).predict_proba(sample.inputs)
    split, kl = bias_variance(cells, prediction), kl_bias_variance(cells, prediction)
    return {
        "bias_squared": split.bias_squared,
        "variance": split.variance,
        "mse": split.mse,
        "kl_bias_nats": kl.kl_bias_nats,
        "kl_variance_nats": kl.kl_variance_nats,
    }


def coverage(values: Array, chains: int, *, studies: int = STUDIES, seed: int = 0) -> float:
    """Return the share of studies of `chains` chains whose band holds the population's means at every length."""
    rng = np.random.default_rng(seed)
    truth, inside = values.mean(axis=0), 0
    slack = 1e-12 * np.abs(truth)
    for _ in range(studies):
        band = simultaneous_band(
            Moments.of(values[rng.choice(len(values), chains, replace=False)]), draws=DRAWS, seed=seed
        )
        inside += bool(((band.low <= truth + slack) & (truth - slack <= band.high)).all())
    return inside / studies


def bayes_kl_coverage(chains: int, studies: int = STUDIES) -> float:
    """Return the same for Bayes' KL over 100 lengths from independent studies: its truth is known without error."""
    losses, floors = [], []
    for study in range(studies):
        block = range(study * chains, (study + 1) * chains)
        sample = sample_chains(block, sequences_per_chain=1, length=max(LENGTHS), seed=1, purpose="validation")
        counts = transition_counts(sample.inputs, 3)
        losses.append(kl_divergence(sample.truth, posterior_predictive(counts, 1.0)))
        floors.append(posterior_kl_floor(counts, 1.0).mean(axis=0))
    truth, inside = np.mean(floors, axis=0), 0
    for values in losses:
        band = simultaneous_band(Moments.of(values), draws=DRAWS)
        inside += bool(((band.low <= truth) & (truth <= band.high)).all())
    return inside / studies


def main() -> None:
    """Measure, and write the table."""
    with open(TARGET, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["metric", "length", "sequences_per_chain", "chains", "estimator", "coverage", "studies"])
        for name, metric, sequences, values in populations():
            writer.writerows(measured(name, metric, sequences, values))
            print(name, metric, sequences, file=sys.stderr, flush=True)


def measured(name: str, metric: str, sequences: int, values: Array) -> Iterator[tuple[str | int, ...]]:
    """Yield the rows of one estimator and metric."""
    for length in LENGTHS:
        for chains in CHAINS[sequences]:
            skewed = (name, metric, length, sequences) == ("add-one", "kl_nats", max(LENGTHS), 1) and chains <= 200
            share = bayes_kl_coverage(chains) if skewed else coverage(values[:, :length], chains)
            yield metric, length, sequences, chains, name, f"{share:.4f}", STUDIES


if __name__ == "__main__":
    main()
