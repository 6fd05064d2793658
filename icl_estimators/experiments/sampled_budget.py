"""The regret budget by Monte Carlo, for contexts that are too long to enumerate.

The steps are those of :mod:`icl_estimators.experiments.regret_budget`. The mean over orders is estimated from uniformly
drawn re-orderings of each prefix, the later means from cells of prefixes with the same key. The KL of a mean of few
predictions is biased upwards; a jackknife over the re-orderings, and over the members of a cell, removes the leading
term. Standard errors come from a jackknife that leaves out one group of chains at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import kl_divergence
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.prediction import ask
from icl_estimators.experiments.regret_budget import PARTS, require_alike_states
from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.sources import ChainLaw, Stream, posterior_predictive, sample_chains, transition_counts
from icl_estimators.sources.reordering import reorder
from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["SampledBudget", "sampled_budget"]

Array = NDArray[np.float64]

_ASKED = 20_000  # prefixes at once


@dataclass(frozen=True, slots=True)
class SampledBudget:
    """Where an estimator loses at one context length, with intervals.

    Attributes
    ----------
    estimator : str
    context_length : int
        n.
    estimates, se, low, high : dict of str to float
        Nats, of ``regret`` and of each of :data:`PARTS`; the parts sum to the regret. NaN where it is infinite.
    covered : float
        Share of the prefixes that are in a cell of two or more at the second step. The drop of that step is the mean
        over these.
    """

    estimator: str
    context_length: int
    estimates: dict[str, float]
    se: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    covered: float


def sampled_budget(
    estimator: Estimator,
    length: int,
    law: ChainLaw | None = None,
    *,
    chains: int = 20_000,
    reorderings: int = 7,
    groups: int = 20,
    seed: int = 0,
    level: float = 0.95,
) -> SampledBudget:
    """Estimate the regret budget at context length `length` from fresh chains, one sequence of each.

    Parameters
    ----------
    estimator : Estimator
    length : int
        n ≥ 1.
    law : ChainLaw, optional
        K, α; K = 3, α = 1 by default.
    chains : int
        N; the estimator sees N·(`reorderings` + 1) prefixes.
    reorderings : int
        How many other orders of each prefix are drawn, at least 1.
    groups : int
        Of chains, for the standard errors; at least 2.
    seed : int
    level : float
        Of the intervals (Student's t with one degree of freedom less than there are groups).

    Raises
    ------
    InputError
        If an option is out of its range, the posterior of the chains is not known exactly, or `estimator` is for
        another K.
    ContractError
        If the estimator fails, or its predictions break the contract.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> budget = sampled_budget(get("unigram"), 5, chains=2000, groups=10)
    >>> budget.estimates["order"], bool(budget.low["regret"] < 0.0660 < budget.high["regret"])
    (0.0, True)
    """
    law = law or ChainLaw()
    length, seed = positive_int(length, "length"), positive_int(seed, "seed", at_least=0)
    reorderings, groups = positive_int(reorderings, "reorderings"), positive_int(groups, "groups", at_least=2)
    chains, level = positive_int(chains, "chains", at_least=groups), probability_level(level)
    if not law.exact_posterior:
        raise InputError("a regret budget needs chains whose posterior is known exactly: use start='uniform'")
    require_alike_states(law)
    if estimator.n_states != law.n_states:
        raise InputError(f"{estimator.name} is for {estimator.n_states} states, the chains have {law.n_states}")
    drawn = _Drawn.of(estimator, length, law, chains, reorderings, seed)
    everyone = np.ones(chains, dtype=bool)
    estimates = drawn.budget(everyone)
    group = np.arange(chains) * groups // chains
    without = np.array([drawn.budget(group != left_out) for left_out in range(groups)])  # (groups, 1 + parts)
    with np.errstate(invalid="ignore"):  # an infinite regret has no spread
        spread = without - without.mean(axis=0)
    se = np.sqrt((groups - 1) / groups * (spread**2).sum(axis=0))
    margin = t_quantile(0.5 + level / 2, groups - 1) * se
    names = ("regret", *PARTS)

    def named(values: Array) -> dict[str, float]:
        return dict(zip(names, (float(value) for value in values), strict=True))

    return SampledBudget(
        estimator.name,
        length,
        named(estimates),
        named(se),
        named(estimates - margin),
        named(estimates + margin),
        drawn.covered(),
    )


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Prefixes with predictions for their re-orderings, and the cells in which each step averages.

    Attributes
    ----------
    current : ndarray of int64, shape (N,)
    counts : ndarray of int64, shape (N, K)
        Out of the current token.
    predictions : ndarray of float64, shape (N, M + 1, K)
        Of the prefix and of its re-orderings.
    concentration : float
    """

    current: NDArray[np.int64]
    counts: NDArray[np.int64]
    predictions: Array
    concentration: float

    @classmethod
    def of(cls, estimator: Estimator, length: int, law: ChainLaw, chains: int, reorderings: int, seed: int) -> _Drawn:
        """Draw chains from the stream of the risk design, re-order each sequence, and ask the estimator."""
        rng = Stream(seed, "bootstrap", "other").generator(length)
        block = max(1, _ASKED // (reorderings + 1))
        current, counts, predictions = [], [], []
        for first in range(0, chains, block):
            numbers = range(first, min(first + block, chains))
            tokens = sample_chains(numbers, sequences_per_chain=1, length=length, law=law, seed=seed).inputs
            every = np.stack([tokens, *(reorder(tokens, law.n_states, rng) for _ in range(reorderings))], axis=1)
            flat = every.reshape(-1, length)
            asked = ask(estimator, flat, place="prefix {}".format, where=_what)[:, -1]
            current.append(tokens[:, -1])
            counts.append(transition_counts(tokens, law.n_states)[:, -1].astype(np.int64))
            predictions.append(asked.reshape(len(tokens), reorderings + 1, law.n_states))
        return cls(np.concatenate(current), np.concatenate(counts), np.concatenate(predictions), law.concentration)

    def budget(self, chosen: NDArray[np.bool_]) -> Array:
        """Return the regret and its parts from the chosen prefixes, shape (1 + parts,)."""
        regret = float(self.losses[chosen].mean())
        if not math.isfinite(regret):
            return np.array([regret, *[math.nan] * len(PARTS)])
        values = [self.any_order[chosen]]
        values += [cells.values(chosen) for cells in self.cells]
        drops = [regret - float(values[0].mean())]
        drops += [float(np.nanmean(before - after)) for before, after in pairwise(values)]
        amount = self._amount(chosen)
        return np.array([regret, *drops, regret - sum(drops) - amount, amount])

    def covered(self) -> float:
        """Return the share of the prefixes in cells of two or more at the second step."""
        cell = self.cells[0].cell
        return float((np.bincount(cell)[cell] > 1).mean())

    @cached_property
    def mean(self) -> Array:
        """The mean over the orders of each prefix, shape (N, K)."""
        return np.asarray(self.predictions.mean(axis=1))

    @cached_property
    def losses(self) -> Array:
        """KL(q ‖ p̂), the mean over the orders of each prefix, shape (N,)."""
        return np.asarray(kl_divergence(self._bayes(self.counts)[:, None], self.predictions).mean(axis=1))

    @cached_property
    def any_order(self) -> Array:
        """KL(q ‖ mean over orders), minus its leading bias, shape (N,)."""
        return _jackknifed(self._bayes(self.counts), self.predictions)

    @cached_property
    def cells(self) -> tuple[_Cells, _Cells, _Cells]:
        """The cells of the second, third and fourth step."""
        own = _Cells.of(np.column_stack([self.current, self.counts]), self._bayes(self.counts), self.mean)
        return own, self._relabelled(with_current=False), self._relabelled(with_current=True)

    def _relabelled(self, *, with_current: bool) -> _Cells:
        """Put the states in the order of their counts; the current token stands first, or among the others."""
        counts, k = self.counts, self.counts.shape[1]
        first = np.arange(k) == self.current[:, None]
        apart = counts if with_current else np.where(first, np.iinfo(np.int64).max, counts)
        order = np.argsort(-apart, axis=1, kind="stable")
        ordered = np.take_along_axis(counts, order, axis=1)
        predicted = np.take_along_axis(self.mean, order, axis=1)
        for state in range(k):  # states with equal counts are alike: each gets their mean
            alike = ordered == ordered[:, [state]]
            if not with_current:
                alike &= (np.arange(k) > 0) == (state > 0)
            share = (predicted * alike).sum(axis=1) / alike.sum(axis=1)
            predicted = np.where(alike, share[:, None], predicted)
        label = np.zeros_like(self.current) if with_current else self.current
        return _Cells.of(np.column_stack([label, ordered]), self._bayes(ordered), predicted)

    def _bayes(self, counts: NDArray[np.int64]) -> Array:
        return posterior_predictive(counts.astype(np.int32), self.concentration)

    def _amount(self, chosen: NDArray[np.bool_]) -> float:
        """Return the regret of the add-α rules that are nearest to the averaged rule at each number of visits."""
        counts, mean = self.counts[chosen], self.mean[chosen]
        visits, k = counts.sum(axis=1), counts.shape[1]
        nearest = np.full(counts.shape, 1.0 / k)
        for n in np.unique(visits[visits > 0]):
            here = visits == n
            mass = np.bincount(counts[here].ravel(), mean[here].ravel(), int(n) + 1)
            # The information of the predictions moves no minimum, so that it may be left at 0.
            sums = np.array([*mass, float(here.sum()), 0.0])
            alpha = AddConstantObjective(sums, np.array([n]), k).minimum().alpha
            if np.isfinite(alpha):
                nearest[here] = (counts[here] + alpha) / (n + k * alpha)
        return float(kl_divergence(self._bayes(counts), nearest).mean())


def _what(tokens: NDArray[np.int64]) -> str:
    return f"prefixes of {tokens.shape[1]} tokens"


def _jackknifed(q: Array, predictions: Array) -> Array:
    """Return KL(q ‖ mean) of each row's predictions, minus its leading bias, shape (N,)."""
    number = predictions.shape[1]
    total = predictions.sum(axis=1)
    whole = kl_divergence(q, total / number)
    left_out = kl_divergence(q[:, None], (total[:, None] - predictions) / (number - 1)).mean(axis=1)
    return np.asarray(number * whole - (number - 1) * left_out)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Prefixes in cells with the same Bayes predictive.

    Attributes
    ----------
    cell : ndarray of int64, shape (N,)
        Each prefix's.
    bayes, predictions : ndarray of float64, shape (N, K)
    """

    cell: NDArray[np.int64]
    bayes: Array
    predictions: Array

    @classmethod
    def of(cls, keys: NDArray[np.int64], bayes: Array, predictions: Array) -> _Cells:
        """Put prefixes with equal keys, shape (N, D), into one cell."""
        return cls(np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1), bayes, predictions)

    def values(self, chosen: NDArray[np.bool_]) -> Array:
        """Return KL(q ‖ mean of the chosen in the cell), minus its leading bias, for each; NaN for one alone."""
        cell, q, predictions = self.cell[chosen], self.bayes[chosen], self.predictions[chosen]
        size = np.bincount(cell)[cell].astype(np.float64)
        total = np.stack([np.bincount(cell, column)[cell] for column in predictions.T], axis=1)
        whole = kl_divergence(q, total / size[:, None])
        alone = size < 2
        others = np.full(q.shape, 1.0 / q.shape[1])
        np.divide(total - predictions, (size - 1.0)[:, None], out=others, where=~alone[:, None])
        left_out = kl_divergence(q, np.maximum(others, 0.0))
        mean_left_out = (np.bincount(cell, left_out) / np.maximum(np.bincount(cell), 1))[cell]
        return np.where(alone, np.nan, size * whole - (size - 1.0) * mean_left_out)
