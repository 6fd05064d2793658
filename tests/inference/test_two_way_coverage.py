"""Intervals of a recipe against its truth: synthetic training runs, whose law is known, on fresh chains and prompts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
import pytest

from icl_estimators.divergences import kl_divergence
from icl_estimators.inference import (
    Cells,
    Intervals,
    Moments,
    bias_variance,
    chain_values,
    squared_bias_intervals,
    training_variance,
    training_variance_intervals,
    two_way_intervals,
)
from icl_estimators.sources import sample_chains, transition_counts, visit_probabilities

N = 3  # context length at which truth is found by enumeration
PREFIXES = np.array(list(product(range(3), repeat=N)), dtype=np.int64)
Law = Callable[[np.random.Generator, int], np.ndarray]


def smoothed(counts: np.ndarray, effect: np.ndarray) -> np.ndarray:
    """Add-β with a log-normal β."""
    return (counts + np.exp(effect)) / (counts.sum(axis=-1, keepdims=True) + 3 * np.exp(effect))


def tilted(counts: np.ndarray, effect: np.ndarray) -> np.ndarray:
    """Add-one with a table of its own added to the logits, by counts seen and by state."""
    logits = np.log(counts + 1.0) + effect[counts.sum(axis=-1)]
    law = np.exp(logits)
    return law / law.sum(axis=-1, keepdims=True)


FAMILIES: dict[str, tuple[Callable[..., np.ndarray], Law]] = {
    "smoothed": (smoothed, lambda rng, n: rng.normal(0.2, 0.5, size=n)),
    "tilted": (tilted, lambda rng, n: rng.normal(0.0, 0.4, size=(n, N + 1, 3))),
}


@cache
def truth(family: str, runs: int = 1000, chains: int = 20_000) -> dict[str, float]:
    """Return the recipe's values at n = N: every prefix with its probability, many runs and chains."""
    rule, law = FAMILIES[family]
    rng = np.random.default_rng(99)
    counts = transition_counts(PREFIXES, 3)[:, -1]
    p = np.stack([rule(counts, effect) for effect in law(rng, runs)])  # (J, 27, 3)
    add_one = (counts + 1.0) / (counts.sum(axis=-1, keepdims=True) + 3)
    last = PREFIXES[:, -1]
    total = dict.fromkeys(("bias_squared", "variance", "training_variance", "mse", "kl_nats", "difference"), 0.0)
    for first in range(0, chains, 1000):
        block = range(first, first + 1000)
        transition = sample_chains(block, sequences_per_chain=1, length=1, seed=77, purpose="test").transition
        weight = np.prod([transition[:, PREFIXES[:, i], PREFIXES[:, i + 1]] for i in range(N - 1)], axis=0) / 3
        target = transition[:, last]  # (R, 27, 3)
        square = (p**2).sum(-1).mean(0) - 2 * (target * p.mean(0)).sum(-1) + (target**2).sum(-1)
        total["mse"] += (weight * square).sum()
        total["kl_nats"] += (weight * (target * (np.log(target) - np.log(p).mean(0))).sum(-1)).sum()
        total["difference"] += (weight * (target * (np.log(add_one) - np.log(p).mean(0))).sum(-1)).sum()
        for v in range(3):
            w = weight[:, last == v]
            mass = w.sum(axis=1)
            mean = np.einsum("rp,jpk->rjk", w / mass[:, None], p[:, last == v])
            spread = mean.var(axis=1, ddof=1).sum(-1)
            total["training_variance"] += (mass * spread).sum()
            bias = ((mean.mean(axis=1) - transition[:, v]) ** 2).sum(-1) - spread / runs
            total["bias_squared"] += (mass * bias).sum()
    total = {name: float(value) / chains for name, value in total.items()}
    total["variance"] = total["mse"] - total["bias_squared"] - total["training_variance"]
    return total


def intervals(family: str, n_runs: int, n_chains: int, seed: int) -> dict[str, Intervals]:
    """Return the recipe's intervals at n = N from one study, as the tables make them."""
    rule, law = FAMILIES[family]
    effects = law(np.random.default_rng((seed, n_runs, n_chains)), n_runs)
    chains = range(n_chains)
    sample = sample_chains(chains, sequences_per_chain=8, length=N, seed=seed, purpose="decomposition")
    start = np.full((n_chains, 3), 1 / 3)
    law_of_last = visit_probabilities(sample.transition, start, N)[:, -1:]  # no other context length is looked at
    cells = Cells.of(sample.tokens[:, :, N - 1 : N], sample.transition, law_of_last)
    counts = transition_counts(sample.inputs, 3)[:, -1:]
    predictions = [rule(counts, effect) for effect in effects]
    split = training_variance(cells, predictions)
    each = [bias_variance(cells, one) for one in predictions]
    target = sample.truth[:, -1:]
    reference = kl_divergence(target, (counts + 1.0) / (counts.sum(axis=-1, keepdims=True) + 3))
    kl = [chain_values(kl_divergence(target, one), n_chains) for one in predictions]
    difference = [one - chain_values(reference, n_chains) for one in kl]

    def linear(runs: list[np.ndarray]) -> Intervals:
        return two_way_intervals([Moments.of(one) for one in runs], Moments.of(np.mean(runs, axis=0)))

    return {
        "bias_squared": squared_bias_intervals(
            [Moments.of(one) for one in split.bias_squared_runs], Moments.of(split.bias_squared)
        ),
        "training_variance": training_variance_intervals(
            [Moments.of(one) for one in split.training_variance_runs], Moments.of(split.training_variance)
        ),
        "variance": linear([one.variance for one in each]),
        "mse": linear([one.mse for one in each]),
        "kl_nats": linear(kl),
        "difference": linear(difference),
    }


def coverage(family: str, n_runs: int, n_chains: int, studies: int) -> dict[str, float]:
    """Return by quantity the share of studies whose interval holds the truth; NaN where there is no interval."""
    known = truth(family) if studies > 100 else truth(family, 300, 4000)
    inside: dict[str, list[float]] = {name: [] for name in known}
    for seed in range(studies):
        for name, found in intervals(family, n_runs, n_chains, seed).items():
            low, high = found.low[0], found.high[0]
            inside[name].append(np.nan if np.isnan(low) else float(low <= known[name] <= high))
    return {name: float(np.mean(values)) for name, values in inside.items()}


PAIRS_OF_RUNS = ("bias_squared", "training_variance")
"""What no interval can be had for from two runs."""

SKEWED = {("smoothed", "difference"): 0.80, ("smoothed", "variance"): 0.88}
"""Effects of runs that are strongly skewed, where a t interval from few runs is known to cover less."""


def shortfall(family: str, n_runs: int, n_chains: int, studies: int, errors: float) -> dict[str, float]:
    """Return what covers less than it should by more than so many Monte Carlo standard errors."""
    found = coverage(family, n_runs, n_chains, studies)
    missing = {name for name, share in found.items() if np.isnan(share)}
    assert missing == (set(PAIRS_OF_RUNS) if n_runs == 2 else set())
    wanted = {name: SKEWED.get((family, name), 0.92) for name in found}
    return {
        name: share
        for name, share in found.items()
        if share < wanted[name] - errors * np.sqrt(wanted[name] * (1 - wanted[name]) / studies)
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_runs", [2, 3])
def test_a_few_studies_cover(family: str, n_runs: int) -> None:
    assert shortfall(family, n_runs, 50, studies=30, errors=3.0) == {}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_chains", [50, 200])
@pytest.mark.parametrize("n_runs", [2, 3, 5, 10])
def test_intervals_of_a_recipe_cover(family: str, n_runs: int, n_chains: int) -> None:
    assert shortfall(family, n_runs, n_chains, studies=300, errors=3.0) == {}
