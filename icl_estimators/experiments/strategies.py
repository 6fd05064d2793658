"""A model's prediction as a convex mixture of a dictionary of rules → strategies.csv."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator, get, is_rule
from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.study import Study
from icl_estimators.inference import MixtureFit, fit_mixture, mixture_kl
from icl_estimators.notes import Code, Note, join
from icl_estimators.sources import Purpose, Source
from icl_estimators.text import exactly

__all__ = ["STRATEGIES", "Strategy", "StrategyWeights", "fitted_dictionary", "strategy_table", "strategy_weights"]

Array = NDArray[np.float64]
Tokens = NDArray[np.int64]

STRATEGY_CHAINS = 1000
"""Chains that weights are found from, the first sequence of each: half for the weights, half held out."""

PARAMETER_CHAINS = 300
"""Other chains, which the parameters of the rules are fitted to."""

SHOWN_LENGTHS = (1, 3, 6, 12, 24, 50, 100)

_DIGITS = 4
_MOST_CELLS = 600_000  # probabilities of one rule that weights are found from; 300,000 at K = 3 and 100 tokens


@dataclass(frozen=True, slots=True)
class Strategy:
    """A rule of the dictionary, or a family of rules with one parameter.

    Attributes
    ----------
    spec : str
        As for :func:`icl_estimators.get`; ``{}`` stands for the parameter.
    bounds : tuple of two float, optional
        Where the parameter is looked for. All rules in between give every state a probability above 0.
    logarithmic : bool
        Whether it is looked for on a logarithmic scale.
    """

    spec: str
    bounds: tuple[float, float] | None = None
    logarithmic: bool = False

    def rule(self, n_states: int, parameter: float = np.nan) -> Estimator:
        """Return the rule, for K states."""
        return get(self.spec.format(exactly(parameter)), n_states=n_states)


STRATEGIES = (
    Strategy("uniform"),
    Strategy("unigram"),
    Strategy("add-constant:{}", (1e-4, 1e3), logarithmic=True),
    Strategy("construction-softmax:{}:direct_path=false", (1e-2, 50.0), logarithmic=True),
    Strategy("add-one:order=2"),
    Strategy("recency:{}", (0.05, 1.0)),
)
"""The dictionary."""


@dataclass(frozen=True, slots=True, eq=False)
class StrategyWeights:
    """The mixture that is nearest to a model at one context length.

    Attributes
    ----------
    context_length : int or None
        n; None for all n = 1 … T together.
    fit : MixtureFit
        The weights, in the order of the dictionary.
    explained : float
        1 − ΣKL(p̂ ‖ mixture)/ΣKL(p̂ ‖ uniform) on held-out chains; NaN where the model is uniform there.
    """

    context_length: int | None
    fit: MixtureFit
    explained: float


def fitted_dictionary(model: Estimator, source: Source, length: int, *, seed: int = 0) -> tuple[Estimator, ...]:
    """Return the rules of the dictionary, each with the parameter that is nearest to a model.

    Parameters
    ----------
    model : Estimator
    source : Source
        What draws the sequences.
    length : int
        T.
    seed : int
        Of the "tuning" stream.

    Returns
    -------
    tuple of Estimator
        One for each of :data:`STRATEGIES`, in order. A parameter minimises the mean of KL(p̂ ‖ rule) over all prefixes;
        it has four significant digits, so that the rule's name is all of it.

    Raises
    ------
    ContractError
        If the model fails or breaks the contract.
    """
    chains = range(PARAMETER_CHAINS)
    tokens = source.sample(chains, sequences_per_chain=1, length=length, seed=seed, purpose="tuning").inputs
    prediction = predict(model, tokens, chains, 1)[:, 0]
    return tuple(_fitted(strategy, prediction, tokens) for strategy in STRATEGIES)


def _fitted(strategy: Strategy, prediction: Array, tokens: Tokens) -> Estimator:
    n_states = prediction.shape[-1]
    if strategy.bounds is None:
        return strategy.rule(n_states)
    scale, back = (np.log, np.exp) if strategy.logarithmic else (float, float)

    def distance(x: float) -> float:
        law = strategy.rule(n_states, float(back(x))).predict_proba(tokens)
        return float(mixture_kl(prediction, law).mean())

    low, high = (float(scale(end)) for end in strategy.bounds)
    found = minimize_scalar(distance, bounds=(low, high), method="bounded", options={"xatol": 1e-5})
    best = min((found.x, low, high), key=distance)  # the search never tries the ends themselves
    return strategy.rule(n_states, float(f"{float(back(best)):.{_DIGITS}g}"))


def strategy_weights(
    model: Estimator,
    dictionary: tuple[Estimator, ...],
    draw: Callable[[range], Tokens],
    n_chains: int,
    length: int,
    *,
    level: float = 0.95,
) -> list[StrategyWeights]:
    """Return the nearest mixtures of a dictionary, at the shown context lengths and over all of them.

    Parameters
    ----------
    model : Estimator
    dictionary : tuple of Estimator
        See :func:`fitted_dictionary`.
    draw : callable
        Chains → one sequence of each, shape (R, T).
    n_chains : int
        Chains 0 … R − 1. The weights are found on the first half, and what they explain on the second.
    length : int
        T.
    level : float
        Confidence level in (0, 1).

    Raises
    ------
    ContractError
        If the model fails or breaks the contract.
    """
    chains = range(n_chains)
    tokens = draw(chains)
    p = predict(model, tokens, chains, 1)[:, 0]
    r = np.stack([rule.predict_proba(tokens) for rule in dictionary])
    half = n_chains - n_chains // 2
    shown = sorted({n for n in SHOWN_LENGTHS if n <= length} | {length})
    found = []
    for n in (*shown, None):
        at = slice(None) if n is None else slice(n - 1, n)
        fit = fit_mixture(p[:half, at], r[:, :half, at], level=level)
        law = np.tensordot(fit.weights, r[:, half:, at], axes=1)
        left = float(mixture_kl(p[half:, at], law).sum())
        whole = float(mixture_kl(p[half:, at], np.full(p.shape[-1], 1.0 / p.shape[-1])).sum())
        found.append(StrategyWeights(n, fit, 1.0 - left / whole if whole > 1e-12 else np.nan))
    return found


def strategy_table(study: Study, purpose: Purpose = "risk") -> Table | None:
    """Return strategies.csv of a study; None if all its estimators are fixed rules.

    Parameters
    ----------
    study : Study
        The first sequence of each of its first 1,000 chains is used; fewer where T·K is above 600.
    purpose : str
        The stream that the chains come from.

    Raises
    ------
    ContractError
        If a model fails or breaks the contract.
    """

    def draw(chains: range) -> Tokens:
        sample = study.source.sample(
            chains, sequences_per_chain=1, length=study.length, seed=study.seed, purpose=purpose
        )
        return sample.inputs

    rows: list[tuple[Cell, ...]] = []
    for model in study.estimators:
        if is_rule(model):
            continue
        dictionary = fitted_dictionary(model, study.source, study.length, seed=study.seed)
        names = [rule.name for rule in dictionary]
        n_chains = min(study.chains, STRATEGY_CHAINS, max(100, _MOST_CELLS // study.cells))
        for found in strategy_weights(model, dictionary, draw, n_chains, study.length, level=study.level):
            rows += _rows(model.name, names, found)
    return Table.of("strategies", rows) if rows else None


def _rows(name: str, strategies: list[str], found: StrategyWeights) -> Iterator[tuple[Cell, ...]]:
    fit = found.fit
    n = "mean" if found.context_length is None else found.context_length
    for s, strategy in enumerate(strategies):
        known = bool(fit.identified[s])
        undefined = Note(Code.EXPLAINED_UNDEFINED) if np.isnan(found.explained) else ""
        yield (
            name,
            n,
            strategy,
            float(fit.weights[s]) if known else np.nan,
            float(fit.se[s]),
            float(fit.low[s]),
            float(fit.high[s]),
            bool(fit.boundary[s]) if known else None,
            found.explained,
            join(fit.notes[s], undefined),
        )
