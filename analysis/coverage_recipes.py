"""Coverage of what is said of a recipe of training, of which each study has fresh runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.coverage_base import (
    BIG,
    CHAINS_OF_STUDY,
    CONDITIONAL,
    EXACT_METRICS,
    NOMINAL,
    QUADRATURE,
    RECIPE_LENGTH,
    SHOWN,
    Design,
    Key,
    Seen,
    label_of,
    rows_of,
    with_mean,
)
from analysis.coverage_rules import Run
from analysis.coverage_truth import CHAINS, Prefixes, Runs, Spread, predictions_of
from icl_estimators import compare, effective_smoothing, get
from icl_estimators.experiments.exact import exact_risk

__all__ = ["Recipe"]

Array = NDArray[np.float64]


@dataclass(eq=False)
class Recipe(Design):
    """J training runs of a toy recipe with a random parameter, with fresh runs in every study.

    Parameters
    ----------
    runs : int
        J.
    centre, sd : float
        Mean and standard deviation of θ = log β; 0 is the best rule. At −2.5 ± 0.2 runs decide most intervals, and
        their regrets are nearly normal; at −1 ± 0.05 chains decide; at −1 ± 0.5 and 0 ± 0.5 the regrets are skewed.
    limit : str
        The kind of the recipe's rows, if its intervals are not held to the nominal level.
    """

    runs: int = 3
    centre: float = -2.5
    sd: float = 0.2
    limit: str = ""
    n_chains: int = CHAINS
    sequences: int = 4
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"recipe, J = {self.runs}, θ = {self.centre:g} ± {self.sd:g}"
        self.prefixes = prefixes = Prefixes(RECIPE_LENGTH)
        size = 12
        nodes = self.centre + 5.0 * self.sd * np.cos(np.pi * (np.arange(size) + 0.5) / size)
        rules = [Run("toy:node", float(theta)) for theta in nodes]
        by_node = [predictions_of(rule, prefixes) for rule in rules]
        self.recipe = Runs(by_node, nodes, prefixes, self.n_chains)
        exact = [exact_risk(rule, RECIPE_LENGTH).metrics for rule in rules]
        self.metrics = [m for m in EXACT_METRICS if m != "p_infinite"]
        self.risk = {metric: np.array([one[metric] for one in exact]) for metric in self.metrics}
        self.risk["kl_rb_nats"] = self.risk["kl_nats"]
        reference = exact_risk(get("add-one"), RECIPE_LENGTH).metrics
        self.reference = {metric: reference[metric] for metric in self.metrics} | {"kl_rb_nats": reference["kl_nats"]}
        self.alpha = np.array([np.log(prefixes.pseudo_count(p, "overall")[0]) for p in by_node])
        theta, share = Spread(self.sd).nodes
        theta = theta + self.centre
        self.mean_split = self.recipe.split(theta, share)
        at = self.recipe.weights(theta)
        self.mean_risk = {metric: share @ (at @ values) for metric, values in self.risk.items()}
        alpha = at @ self.alpha
        self.mean_alpha = float(share @ alpha)
        self.sd_alpha = float(np.sqrt(share @ (alpha - self.mean_alpha) ** 2))

    def draw(self, seed: int) -> list[Seen]:
        """As :class:`Design`."""
        theta = np.random.default_rng([seed, self.runs]).normal(self.centre, self.sd, self.runs)
        rules = [Run(f"toy:{j}", float(value)) for j, value in enumerate(theta)]
        result = compare(
            [*rules, get("add-one")],
            chains=CHAINS_OF_STUDY,
            sequences_per_chain=self.sequences,
            decomposition_chains=0 if self.limit else CHAINS_OF_STUDY,
            decomposition_sequences=8,
            length=RECIPE_LENGTH,
            seed=BIG + seed,
            level=NOMINAL,
        )
        own = np.full(self.runs, 1.0 / self.runs)
        at = self.recipe.weights(theta)
        risk = {metric: own @ (at @ values) for metric, values in self.risk.items()}
        split = self.recipe.split(theta, own)
        # The variance over the runs at hand is with J − 1, and what is taken from bias² too.
        training = split["training_variance"] * self.runs / (self.runs - 1)
        split["bias_squared"] = split["bias_squared"] + split["training_variance"] - training
        split["training_variance"] = self.mean_split["training_variance"]
        truth = {
            "toy": self._truths(risk, split),
            "toy:recipe": self._truths(self.mean_risk, self.mean_split),
        }
        seen = []
        for table, apart in (("risk", False), ("differences", True)):
            for row in rows_of(getattr(result, table)):
                label = label_of(row.context_length)
                if row.estimator not in truth or label not in SHOWN:
                    continue
                value = truth[row.estimator].get((row.metric, label))
                if value is None or (apart and row.metric not in self.reference):
                    continue
                if apart:
                    value -= with_mean(self.reference[row.metric])[label]
                of = "recipe" if row.estimator.endswith(":recipe") else "mean over runs"
                kind = f"{of}: {'difference' if apart else 'risk'}"
                if of == "recipe":
                    kind = self.limit or kind
                seen.append(Seen((kind, row.estimator, row.metric, label), row.ci_low, row.ci_high, value))
        if self.limit:  # the rest is tried in the other designs
            return seen
        for row in rows_of(result.decomposition):
            label = label_of(row.context_length)
            value = truth.get(row.estimator, {}).get((row.metric, label))
            if value is None or label not in SHOWN or row.metric == "squared_error":
                continue
            of = "recipe" if row.estimator.endswith(":recipe") else "mean over runs"
            kind = "training variance" if row.metric == "training_variance" else f"{of}: bias and variance"
            seen.append(Seen((kind, row.estimator, row.metric, label), row.ci_low, row.ci_high, value))
        return seen + self._alpha(rules, theta, seed)

    def method(self, key: Key) -> str:
        """As :class:`Design`."""
        conditional = key[1] == "toy" and key[0] != "training variance"
        return CONDITIONAL if conditional else QUADRATURE

    def _truths(self, risk: Mapping[str, Array], split: Mapping[str, Array]) -> dict[tuple[str, str], float]:
        parts = dict(risk) | dict(split) | {"mse": risk["squared_error"]}
        return {(metric, at): v for metric, values in parts.items() for at, v in with_mean(values).items()}

    def _alpha(self, rules: list[Run], theta: Array, seed: int) -> list[Seen]:
        frame = effective_smoothing(
            rules,
            by=("overall",),
            families=(),
            interventions=False,
            chains=CHAINS_OF_STUDY,
            sequences_per_chain=self.sequences,
            length=RECIPE_LENGTH,
            seed=BIG + seed,
            level=NOMINAL,
        ).smoothing
        truth = {"pseudo_count": float(np.exp(self.mean_alpha)), "between_seed_sd_log": self.sd_alpha}
        return [
            Seen(("recipe: pseudo-count", row.estimator, row.parameter, "overall"), row.ci_low, row.ci_high, value)
            for row in rows_of(frame[frame["estimator"] == "toy:recipe"])
            if (value := truth.get(row.parameter)) is not None
        ]
