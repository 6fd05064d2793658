"""The regret budget by Monte Carlo, for contexts that are too long to enumerate.

The steps are those of :mod:`icl_estimators.experiments.regret_budget`. The mean over orders is estimated from uniformly
drawn re-orderings of each prefix, the later means from cells of prefixes with the same key. The KL of a mean of few
predictions is biased upwards; a jackknife over the re-orderings, and over the members of a cell, removes the leading
term. Standard errors come from a jackknife that leaves out one group of chains at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import kl_divergence
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.prediction import ask
from icl_estimators.experiments.regret_budget import PARTS, require_alike_states
from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.inference.moments import merge_in_order
from icl_estimators.inference.trees import Summary
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.sources import ChainLaw, Stream, posterior_predictive, transition_counts
from icl_estimators.sources.reordering import reorder
from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["BudgetDraws", "LengthDraws", "SampledBudget", "draw_prefixes", "sampled_budget"]

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
    block = max(1, _ASKED // (reorderings + 1))
    whole = merge_in_order(
        draw_prefixes((estimator,), [length], law, range(first, min(first + block, chains)), reorderings, seed)
        for first in range(0, chains, block)
    )
    return whole.lengths[length].budget(estimator.name, length, law.concentration, groups=groups, level=level)


def draw_prefixes(
    estimators: Sequence[Estimator],
    lengths: Sequence[int],
    law: ChainLaw,
    chains: range,
    reorderings: int,
    seed: int,
) -> BudgetDraws:
    """Draw one sequence of each of `chains`, re-order its prefixes, and ask the estimators for all of them.

    Draws come from the stream ``budget``. At every length, each estimator sees len(`chains`) · (`reorderings` + 1)
    prefixes of that length.

    Raises
    ------
    ContractError
        If an estimator fails, or its predictions break the contract.
    """
    k = law.n_states
    tokens = law.sample(chains, sequences_per_chain=1, length=max(lengths), seed=seed, purpose="budget").inputs
    shuffles = Stream(seed, "budget", "other")
    drawn = {}
    for length in lengths:
        prefix = np.ascontiguousarray(tokens[:, :length])
        rng = shuffles.generator(chains.start, length)
        every = np.stack([prefix, *(reorder(prefix, k, rng) for _ in range(reorderings))], axis=1)
        counts = transition_counts(prefix, k)[:, -1].astype(np.int64)
        q = posterior_predictive(counts.astype(np.int32), law.concentration)
        asked = {}
        for estimator in estimators:
            found = ask(estimator, every.reshape(-1, length), place="prefix {}".format, where=_what)[:, -1]
            asked[estimator.name] = _Asked.of(q, found.reshape(*every.shape[:2], k))
        drawn[length] = LengthDraws(prefix[:, -1], counts, asked)
    return BudgetDraws(drawn)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is kept of an estimator's predictions for N prefixes and their re-orderings.

    Attributes
    ----------
    mean : ndarray of float64, shape (N, K)
        Of the predictions, over the orders of each prefix.
    losses : ndarray of float64, shape (N,)
        KL(q ‖ p̂), the mean over the orders of each prefix.
    any_order : ndarray of float64, shape (N,)
        KL(q ‖ mean over orders), minus its leading bias.
    """

    mean: Array
    losses: Array
    any_order: Array

    @classmethod
    def of(cls, q: Array, predictions: Array) -> _Asked:
        """Summarise predictions of shape (N, M + 1, K)."""
        losses = np.asarray(kl_divergence(q[:, None], predictions).mean(axis=1))
        return cls(np.asarray(predictions.mean(axis=1)), losses, _jackknifed(q, predictions))

    def merge(self, other: _Asked) -> _Asked:
        """Return the summary of both groups of prefixes; `other`'s come after."""
        return _Asked(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class LengthDraws:
    """N prefixes of one length, and what estimators predict for them.

    Attributes
    ----------
    current : ndarray of int64, shape (N,)
    counts : ndarray of int64, shape (N, K)
        Out of the current token.
    asked : dict of estimator to its predictions
    """

    current: NDArray[np.int64]
    counts: NDArray[np.int64]
    asked: dict[str, _Asked]

    def merge(self, other: LengthDraws) -> LengthDraws:
        """Return the prefixes of both; `other`'s come after."""
        return LengthDraws(
            np.concatenate([self.current, other.current]),
            np.concatenate([self.counts, other.counts]),
            {name: asked.merge(other.asked[name]) for name, asked in self.asked.items()},
        )

    def budget(
        self, name: str, length: int, concentration: float, *, of: Sequence[str] = (), groups: int, level: float
    ) -> SampledBudget:
        """Return the budget of one estimator, or as `name` the mean of the budgets of several.

        Each group of chains is left out once; groups are consecutive prefixes.
        """
        number = len(self.current)
        groups = min(groups, number)
        cells = self._cells(concentration)
        group = np.arange(number) * groups // number
        found = [
            _Budget(self.asked[one], self.counts, cells, concentration).jackknife(group, groups)
            for one in of or (name,)
        ]
        estimates = np.mean([whole for whole, _ in found], axis=0)
        without = np.mean([each for _, each in found], axis=0)  # (groups, 1 + parts)
        with np.errstate(invalid="ignore"):  # an infinite regret has no spread
            spread = without - without.mean(axis=0)
        se = np.sqrt((groups - 1) / groups * (spread**2).sum(axis=0))
        margin = t_quantile(0.5 + level / 2, groups - 1) * se
        estimated, spread_of, low, high = (
            dict(zip(("regret", *PARTS), map(float, values), strict=True))
            for values in (estimates, se, estimates - margin, estimates + margin)
        )
        return SampledBudget(name, length, estimated, spread_of, low, high, cells[0].covered())

    def _cells(self, concentration: float) -> tuple[_Cells, ...]:
        """Return the cells of the second, third and fourth step."""
        k = self.counts.shape[1]
        unchanged = np.broadcast_to(np.arange(k), self.counts.shape)
        own = _Cells.of(np.column_stack([self.current, self.counts]), self.counts, unchanged, (), concentration)
        return (
            own,
            self._relabelled(concentration, with_current=False),
            self._relabelled(concentration, with_current=True),
        )

    def _relabelled(self, concentration: float, *, with_current: bool) -> _Cells:
        """Put the states in the order of their counts; the current token stands first, or among the others."""
        counts, k = self.counts, self.counts.shape[1]
        first = np.arange(k) == self.current[:, None]
        apart = counts if with_current else np.where(first, np.iinfo(np.int64).max, counts)
        order = np.argsort(-apart, axis=1, kind="stable")
        ordered = np.take_along_axis(counts, order, axis=1)
        alike = []
        for state in range(k):  # states with equal counts are alike: each gets their mean
            same = ordered == ordered[:, [state]]
            if not with_current:
                same &= (np.arange(k) > 0) == (state > 0)
            alike.append(same)
        # A rule of the counts out of v does not know which state v is: without v it has no label either.
        label = np.zeros_like(self.current) if with_current else self.current
        return _Cells.of(np.column_stack([label, ordered]), ordered, order, tuple(alike), concentration)


@dataclass(frozen=True, eq=False)
class BudgetDraws(Summary):
    """The prefixes of some chains, by context length."""

    lengths: dict[int, LengthDraws]


@dataclass(frozen=True, eq=False)
class _Cells:
    """Prefixes in cells with the same Bayes predictive.

    Attributes
    ----------
    cell : ndarray of int64, shape (N,)
        Each prefix's.
    bayes : ndarray of float64, shape (N, K)
    order : ndarray of int64, shape (N, K)
        The states as the cell orders them.
    alike : tuple of ndarray of bool, shape (N, K)
        For each place in that order, the places with which it is averaged.
    """

    cell: NDArray[np.int64]
    bayes: Array
    order: NDArray[np.int64]
    alike: tuple[NDArray[np.bool_], ...]

    @classmethod
    def of(
        cls,
        keys: NDArray[np.int64],
        counts: NDArray[np.int64],
        order: NDArray[np.int64],
        alike: tuple[NDArray[np.bool_], ...],
        concentration: float,
    ) -> _Cells:
        """Put prefixes with equal keys, shape (N, D), into one cell."""
        cell = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        return cls(cell, posterior_predictive(counts.astype(np.int32), concentration), order, alike)

    def covered(self) -> float:
        """Return the share of the prefixes in cells of two or more."""
        return float((np.bincount(self.cell)[self.cell] > 1).mean())

    def in_order(self, mean: Array) -> Array:
        """Return predictions (N, K) with their states in the cell's order, those that are alike averaged."""
        predicted = np.take_along_axis(mean, self.order, axis=1)
        for same in self.alike:
            share = (predicted * same).sum(axis=1) / same.sum(axis=1)
            predicted = np.where(same, share[:, None], predicted)
        return predicted

    def values(self, predictions: Array, chosen: NDArray[np.bool_]) -> Array:
        """Return KL(q ‖ mean of the chosen in the cell), minus its leading bias, for each; NaN for one alone."""
        cell, q, predictions = self.cell[chosen], self.bayes[chosen], predictions[chosen]
        size = np.bincount(cell)[cell].astype(np.float64)
        total = np.stack([np.bincount(cell, column)[cell] for column in predictions.T], axis=1)
        whole = kl_divergence(q, total / size[:, None])
        alone = size < 2
        others = np.full(q.shape, 1.0 / q.shape[1])
        np.divide(total - predictions, (size - 1.0)[:, None], out=others, where=~alone[:, None])
        left_out = kl_divergence(q, np.maximum(others, 0.0))
        mean_left_out = (np.bincount(cell, left_out) / np.maximum(np.bincount(cell), 1))[cell]
        return np.where(alone, np.nan, size * whole - (size - 1.0) * mean_left_out)


class _Budget:
    """The budget of one estimator from all its prefixes, or from some of them."""

    def __init__(
        self, asked: _Asked, counts: NDArray[np.int64], cells: tuple[_Cells, ...], concentration: float
    ) -> None:
        self._asked, self._counts, self._cells = asked, counts, cells
        self._ordered = [step.in_order(asked.mean) for step in cells]
        self._q = posterior_predictive(counts.astype(np.int32), concentration)

    def jackknife(self, group: NDArray[np.int64], groups: int) -> tuple[Array, Array]:
        """Return the values, shape (1 + parts,), from all prefixes, and without each group, (groups, 1 + parts)."""
        everyone = np.ones(len(group), dtype=bool)
        if not np.isfinite(self._asked.losses.mean()):
            nothing = np.array([self._asked.losses.mean(), *[math.nan] * len(PARTS)])
            return nothing, np.tile(nothing, (groups, 1))
        amounts = self._amounts(group, groups)
        without = [self._parts(group != left_out, amounts[1 + left_out]) for left_out in range(groups)]
        return self._parts(everyone, amounts[0]), np.array(without)

    def _parts(self, chosen: NDArray[np.bool_], amount: float) -> Array:
        regret = float(self._asked.losses[chosen].mean())
        values = [self._asked.any_order[chosen]]
        values += [step.values(mean, chosen) for step, mean in zip(self._cells, self._ordered, strict=True)]
        drops = [regret - float(values[0].mean())]
        for before, after in pairwise(values):
            drop = before - after
            known = ~np.isnan(drop)
            drops.append(float(drop[known].mean()) if known.any() else math.nan)
        return np.array([regret, *drops, regret - sum(drops) - amount, amount])

    def _amounts(self, group: NDArray[np.int64], groups: int) -> list[float]:
        """Return the regret of the nearest add-α rules by visits: of all prefixes, then without each group.

        Without a group, α comes from that of all by one Newton step in log α: the fits are the dear part.
        """
        counts, mean = self._counts, self._asked.mean
        visits, k = counts.sum(axis=1), counts.shape[1]
        losses = kl_divergence(self._q, np.full(counts.shape, 1.0 / k))
        total, number = float(losses[visits == 0].sum()), len(group)
        by_group = np.bincount(group[visits == 0], losses[visits == 0], groups)
        without = total - by_group  # Σ over all but the group
        for n in np.unique(visits[visits > 0]):
            here = np.flatnonzero(visits == n)
            some, which = counts[here], group[here]
            place = (which[:, None] * (n + 1) + some).ravel()
            mass = np.bincount(place, mean[here].ravel(), groups * (n + 1)).reshape(groups, n + 1)
            times = np.bincount(which, minlength=groups).astype(np.float64)
            # The information of the predictions moves no minimum, so that it may be left at 0.
            each = np.column_stack([mass, times, np.zeros(groups)])
            objective = AddConstantObjective(each.sum(axis=0), np.array([n]), k)
            alpha = objective.minimum().alpha
            alphas = np.full(groups, alpha)
            if 0.0 < alpha < np.inf:
                left = each.sum(axis=0) - each
                slope = left @ objective.score_coefficients(alpha) * alpha
                bend = slope + left @ objective.curvature_coefficients(alpha) * alpha**2
                step = np.where(bend > 0, -slope / np.where(bend > 0, bend, 1.0), 0.0)
                alphas = alpha * np.exp(np.clip(step, -1.0, 1.0))
            q = self._q[here]
            total += float(_regret_of(q, some, alpha).sum())
            changed = np.stack([_regret_of(q, some, a) for a in alphas])  # (groups, prefixes)
            without += changed.sum(axis=1) - changed[which, np.arange(len(here))] @ (
                which[:, None] == np.arange(groups)
            )
        sizes = number - np.bincount(group, minlength=groups)
        return [total / number, *(without / sizes)]


def _regret_of(q: Array, counts: NDArray[np.int64], alpha: float) -> Array:
    """Return KL(q ‖ add-α) for each row of counts; that of the uniform law where α is infinite or not determined."""
    k = counts.shape[1]
    rule = (counts + alpha) / (counts.sum(axis=1, keepdims=True) + k * alpha) if np.isfinite(alpha) else None
    return kl_divergence(q, np.full(counts.shape, 1.0 / k) if rule is None else rule)


def _what(tokens: NDArray[np.int64]) -> str:
    return f"prefixes of {tokens.shape[1]} tokens"


def _jackknifed(q: Array, predictions: Array) -> Array:
    """Return KL(q ‖ mean) of each row's predictions, minus its leading bias, shape (N,)."""
    number = predictions.shape[1]
    total = predictions.sum(axis=1)
    whole = kl_divergence(q, total / number)
    left_out = kl_divergence(q[:, None], (total[:, None] - predictions) / (number - 1)).mean(axis=1)
    with np.errstate(invalid="ignore"):  # infinite less infinite: then the regret is infinite, and is not divided
        return np.asarray(number * whole - (number - 1) * left_out)
