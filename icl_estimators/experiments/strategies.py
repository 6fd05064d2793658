"""A model's prediction as a convex mixture of a dictionary of rules → strategies.csv."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator, family_of, get
from icl_estimators.experiments.fitted_rules import FittedRules
from icl_estimators.experiments.prediction import predict
from icl_estimators.experiments.study import Study
from icl_estimators.inference import MixtureFit, fit_mixture, mixture_kl
from icl_estimators.notes import Code, Note, join
from icl_estimators.sources import Purpose

__all__ = ["DICTIONARY", "StrategyWeights", "dictionary_of", "strategy_table", "strategy_weights"]

Array = NDArray[np.float64]
Tokens = NDArray[np.int64]

STRATEGY_CHAINS = 1000
"""Chains that weights are found from, the first sequence of each: half for the weights, half held out."""

SHOWN_LENGTHS = (1, 3, 6, 12, 24, 50, 100)

_MOST_CELLS = 600_000  # probabilities of one rule that weights are found from; 300,000 at K = 3 and 100 tokens


DICTIONARY = (
    "uniform",
    "unigram",
    "add-constant",
    "construction-softmax:direct_path=false",
    "add-constant:order=2",
    "recency",
)
"""The families of the dictionary; those with a parameter are fitted to the model."""

_UNFITTED = {"uniform": "uniform", "unigram": "unigram", "add-constant:order=2": "add-one:order=2"}


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


def dictionary_of(fitted: FittedRules, n_states: int) -> tuple[Estimator, ...]:
    """Return the rules of the dictionary for a model.

    Parameters
    ----------
    fitted : FittedRules
        To the model; a family whose best parameter lies at an end of its range is left out.
    n_states : int
        K.

    Examples
    --------
    >>> [rule.name for rule in dictionary_of(FittedRules((), (), ()), 3)]
    ['uniform', 'unigram', 'add-one:order=2']
    """
    own = {family_of(rule): rule for rule in fitted.rules}
    found = (
        get(_UNFITTED[family], n_states=n_states) if family in _UNFITTED else own.get(family) for family in DICTIONARY
    )
    return tuple(rule for rule in found if rule is not None)


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
        See :func:`dictionary_of`.
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


def strategy_chains(study: Study) -> int:
    """Return of how many chains the first sequence is used."""
    return min(study.chains, STRATEGY_CHAINS, max(100, _MOST_CELLS // study.cells))


def strategy_table(study: Study, fitted: Sequence[FittedRules], purpose: Purpose = "risk") -> Table | None:
    """Return strategies.csv of a study; None if all its estimators are fixed rules.

    Parameters
    ----------
    study : Study
        The first sequence of each of its first 1,000 chains is used; fewer where T·K is above 600.
    fitted : sequence of FittedRules
        To its models.
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
        own = next((rules for rules in fitted if model.name in rules.subjects), None)
        if own is None:
            continue
        dictionary = dictionary_of(own, study.n_states)
        names = [rule.name for rule in dictionary]
        n_chains = strategy_chains(study)
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
