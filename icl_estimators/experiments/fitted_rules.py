"""Rules with a parameter, fitted to a model's predictions on chains that are drawn for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

from icl_estimators.divergences import sum_states
from icl_estimators.estimators import Estimator, family_of, get
from icl_estimators.experiments.prediction import predict
from icl_estimators.sources import Source

__all__ = ["FITTED_FAMILIES", "FittedFamily", "FittedRules", "fit_rules"]

Array = NDArray[np.float64]

CHAINS = 1000
"""One sequence of each is fitted to."""

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class FittedFamily:
    """A family of rules with one parameter.

    Attributes
    ----------
    parameter : str
        Its name.
    spec : str
        A template of the rule's spec.
    low, high : float
        Where the parameter is searched for.
    logarithmic : bool
        Whether its logarithm is searched.
    """

    parameter: str
    spec: str
    low: float
    high: float
    logarithmic: bool = True


FITTED_FAMILIES: tuple[FittedFamily, ...] = (
    FittedFamily("alpha", "add-constant:{}", 1e-6, 1e6),
    FittedFamily("gamma", "construction-softmax:{}:direct_path=false", 1e-3, 1e3),
    FittedFamily("gamma", "construction-softmax:{}", 1e-3, 1e3),
    FittedFamily("decay", "recency:{}", 0.05, 1.0, logarithmic=False),
)
"""Smoothing of the counts, of the frequencies with and without the bonus for repeating, and of recent counts."""


@dataclass(frozen=True)
class FittedRules:
    """The rules that are fitted to one model, or to the training runs of one recipe together.

    Attributes
    ----------
    subjects : tuple of str
        Names of the estimators that they were fitted to, and of the recipe.
    rules : tuple of Estimator
    parameters : tuple of dict
        Of each rule: parameter to value.
    """

    subjects: tuple[str, ...]
    rules: tuple[Estimator, ...]
    parameters: tuple[dict[str, float], ...]

    def record(self) -> list[dict[str, Any]]:
        """Return what run.json says of them."""
        return [
            {"family": family_of(rule), "spec": rule.name, "parameters": parameters}
            for rule, parameters in zip(self.rules, self.parameters, strict=True)
        ]


def fit_rules(
    source: Source,
    length: int,
    seed: int,
    models: Sequence[Estimator],
    subjects: Sequence[str] | None = None,
    *,
    chains: int = CHAINS,
) -> FittedRules:
    """Fit a rule of each family to the predictions of a model: the least Σ KL(p̂ ‖ rule) over all prefixes.

    Parameters
    ----------
    source : Source
        What draws the chains; their stream is used for nothing else.
    length : int
        T.
    seed : int
        Of the study.
    models : sequence of Estimator
        One model, or training runs whose sums are added.
    subjects : sequence of str, optional
        By default the models' names.
    chains : int
        How many are drawn, one sequence each.

    Returns
    -------
    FittedRules
        Four significant digits of each parameter are kept, so that the name of a rule shows the whole number. A rule
        whose best parameter lies at an end of the search is left out: no number would describe it.

    Raises
    ------
    ContractError
        If a model fails.

    Examples
    --------
    >>> from icl_estimators.sources import ChainLaw
    >>> fit_rules(ChainLaw(), 12, 0, [get("add-constant:0.37")]).rules[0].name
    'add-constant:0.37'
    """
    sample = source.sample(range(chains), sequences_per_chain=1, length=length, seed=seed, purpose="fitting")
    tokens = sample.inputs
    shape = (len(tokens), length, source.n_states)
    predictions = [predict(model, tokens, range(chains), 1).reshape(shape) for model in models]
    # Σ_j KL(p̂_j ‖ r) is, up to a constant, J times the cross-entropy of the mean prediction.
    target = np.mean(predictions, axis=0)
    rules, parameters = [], []
    for family in FITTED_FAMILIES:
        value = _best(family, lambda rule: _divergence(target, rule, tokens), source.n_states)
        if value is not None:
            rules.append(get(family.spec.format(repr(value)), n_states=source.n_states))
            parameters.append({family.parameter: value})
    return FittedRules(tuple(subjects or (model.name for model in models)), tuple(rules), tuple(parameters))


def _divergence(target: Array, rule: Estimator, tokens: NDArray[np.int64]) -> float:
    return float(sum_states(rel_entr(target, rule.predict_proba(tokens))).mean())


def _best(family: FittedFamily, loss: Callable[[Estimator], float], n_states: int) -> float | None:
    """Return the best parameter; None if it is at an end of the search."""
    into, back = (np.log, np.exp) if family.logarithmic else (float, float)

    def at(place: float) -> float:
        return loss(get(family.spec.format(repr(float(back(place)))), n_states=n_states))

    bounds = (float(into(family.low)), float(into(family.high)))
    found = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 1e-7 * (bounds[1] - bounds[0])})
    margin = 1e-3 * (bounds[1] - bounds[0])
    if not bounds[0] + margin < found.x < bounds[1] - margin:
        return None
    return float(f"{float(back(found.x)):.{_DIGITS}g}")
