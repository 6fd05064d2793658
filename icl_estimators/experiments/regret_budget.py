"""The regret budget: an exact account of where an estimator loses.

Given a prefix, the Bayes predictive q depends on the current token v and the counts out of v alone. Averaging an
estimator's prediction p̂ over what q ignores can only lower the regret E KL(q ‖ p̂), because KL is convex in its second
argument (Rao–Blackwell). Each step of averaging names a cause, and the drop of the regret is its share:

- ``order``: over the orders in which the same transitions can have happened;
- ``other_rows``: over the transitions out of other states than v;
- ``label_asymmetry``: over relabellings of the states other than v, with the prediction relabelled too;
- ``self_bias``: over relabellings of all states, v included.

What is left is a rule p̄ of the counts out of v. With α̂(n_v) the pseudo-count nearest to p̄ at each number of visits,
``amount`` is the regret of add-α̂(n_v), and ``shape`` is the regret of p̄ less ``amount``; it may be negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import kl_divergence
from icl_estimators.engine.executors import one_thread
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.exact import check_exact_budget
from icl_estimators.experiments.prediction import ask
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.sources import ChainLaw, all_prefixes, posterior_predictive
from icl_estimators.validation import InputError, positive_int

__all__ = ["PARTS", "RegretBudget", "exact_budget", "require_alike_states"]

Array = NDArray[np.float64]

PARTS = ("order", "other_rows", "label_asymmetry", "self_bias", "shape", "amount")
"""The parts, in the order of the steps; they sum to the regret."""

_BLOCK_CELLS = 20_000_000
_ROUNDING = 1e-14  # of a difference of two regrets, nats
MOST_STATES = 6
"""K! relabellings are averaged over."""


@dataclass(frozen=True, slots=True)
class RegretBudget:
    """Where an estimator loses at one context length.

    Attributes
    ----------
    estimator : str
    context_length : int
        n.
    regret : float
        E KL(q ‖ p̂), nats.
    parts : dict of str to float
        Nats, in the order of :data:`PARTS`. NaN where the regret is infinite: then there is nothing to divide.
    """

    estimator: str
    context_length: int
    regret: float
    parts: dict[str, float]


def exact_budget(estimator: Estimator, length: int, law: ChainLaw | None = None) -> RegretBudget:
    """Return the regret budget at context length `length`, by enumeration of every prefix.

    Parameters
    ----------
    estimator : Estimator
        Any; it sees every sequence of `length` tokens once.
    length : int
        n, within the budget of :func:`icl_estimators.sources.check_prefix_budget`.
    law : ChainLaw, optional
        K, α; K = 3, α = 1 by default.

    Returns
    -------
    RegretBudget

    Raises
    ------
    InputError
        If the prefixes or the states are too many, the posterior of the chains is not known exactly, or `estimator`
        is for another K.
    ContractError
        If the estimator fails, or its predictions break the contract.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> budget = exact_budget(get("add-constant:3"), 4)
    >>> {part: round(value, 6) for part, value in budget.parts.items() if abs(value) > 1e-12}
    {'amount': 0.021039}
    """
    law = law or ChainLaw()
    length = positive_int(length, "length")
    if not law.exact_posterior:
        raise InputError("a regret budget needs chains whose posterior is known exactly: use start='uniform'")
    require_alike_states(law)
    if estimator.n_states != law.n_states:
        raise InputError(f"{estimator.name} is for {estimator.n_states} states, the chains have {law.n_states}")
    if law.n_states > MOST_STATES:
        raise InputError(f"{law.n_states} states are too many for a regret budget: at most {MOST_STATES}")
    check_exact_budget(law.n_states, length)
    prefixes = _Prefixes.enumerated(estimator, length, law)
    steps = list(_steps(prefixes, law))
    regrets = [regret for regret, _ in steps]
    if not np.isfinite(regrets[0]):
        return RegretBudget(estimator.name, length, regrets[0], dict.fromkeys(PARTS, float("nan")))
    rule = steps[-1][1]
    amount = _amount(rule, law)
    values = (*(before - after for before, after in pairwise(regrets)), regrets[-1] - amount, amount)
    values = tuple(0.0 if abs(value) < _ROUNDING else value for value in values)
    return RegretBudget(estimator.name, length, regrets[0], dict(zip(PARTS, values, strict=True)))


def require_alike_states(law: ChainLaw) -> None:
    """Raise InputError if the states are not exchangeable: then relabelled prefixes are not equally likely."""
    first = law.prefix_probabilities(np.arange(law.n_states)[:, None])
    if first is not None and np.ptp(first) > 1e-12:
        raise InputError("a regret budget needs states that are alike: use a uniform law of the first token")


@dataclass(frozen=True, eq=False)
class _Prefixes:
    """Groups of prefixes with their probabilities and mean predictions.

    Attributes
    ----------
    keys : ndarray of int64, shape (G, 1 + K) or (G, 1 + K²)
        The current token, then counts: of all transitions, or of those out of it.
    weights : ndarray of float64, shape (G,)
    predictions : ndarray of float64, shape (G, K)
    """

    keys: NDArray[np.int64]
    weights: Array
    predictions: Array

    @classmethod
    def enumerated(cls, estimator: Estimator, length: int, law: ChainLaw) -> _Prefixes:
        """Ask the estimator for every prefix."""
        k = law.n_states
        block = max(1, min(8192, _BLOCK_CELLS // (length * k)))
        parts = [cls._of_block(estimator, tokens, law) for tokens in all_prefixes(k, length, block)]
        keys, weights, predictions = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls(keys, weights, predictions)

    @staticmethod
    def _of_block(
        estimator: Estimator, tokens: NDArray[np.int64], law: ChainLaw
    ) -> tuple[NDArray[np.int64], Array, Array]:
        k = law.n_states
        with one_thread():
            predicted = ask(estimator, tokens, place="sequence {}".format, where=_what)[:, -1]
        moves = tokens[:, :-1] * k + tokens[:, 1:]
        counts = np.stack([(moves == move).sum(axis=1) for move in range(k * k)], axis=1)
        weights = law.prefix_probabilities(tokens)
        assert weights is not None  # the posterior is known
        return np.concatenate([tokens[:, -1:], counts], axis=1), weights[:, -1], predicted

    def grouped(self, keys: NDArray[np.int64]) -> _Prefixes:
        """Average over groups with equal `keys`, weighted by probability."""
        distinct, group = np.unique(keys, axis=0, return_inverse=True)
        group = group.reshape(-1)
        weights = np.asarray(np.bincount(group, self.weights, len(distinct)), dtype=np.float64)
        sums = [np.bincount(group, self.weights * column, len(distinct)) for column in self.predictions.T]
        positive = np.where(weights > 0, weights, 1.0)
        return _Prefixes(distinct, weights, np.stack(sums, axis=1) / positive[:, None])

    def own_counts(self, k: int) -> NDArray[np.int64]:
        """Return the counts out of the current token, shape (G, K)."""
        if self.keys.shape[1] == 1 + k:
            return self.keys[:, 1:]
        rows = self.keys[:, 1:].reshape(-1, k, k)
        return rows[np.arange(len(rows)), self.keys[:, 0]]

    def regret(self, law: ChainLaw) -> float:
        """Return E KL(q ‖ ·)."""
        q = posterior_predictive(self.own_counts(law.n_states).astype(np.int32), law.concentration)
        seen = self.weights > 0
        return float(self.weights[seen] @ kl_divergence(q[seen], self.predictions[seen]))

    def relabelled(self, k: int, *, with_current: bool) -> _Prefixes:
        """Average over relabellings of the states; the current token keeps its label unless `with_current`."""
        keys, weights, predictions = [], [], []
        for order in permutations(range(k)):
            new = np.array(order)  # state s is now called new[s]
            current = new[self.keys[:, 0]]
            stays = np.ones(len(current), dtype=bool) if with_current else current == self.keys[:, 0]
            counts, predicted = np.empty_like(self.keys[:, 1:]), np.empty_like(self.predictions)
            counts[:, new], predicted[:, new] = self.keys[:, 1:], self.predictions
            # A rule of the counts alone does not know which of them is the current token's.
            label = np.zeros_like(current) if with_current else current
            keys.append(np.column_stack([label, counts])[stays])
            weights.append(self.weights[stays])
            predictions.append(predicted[stays])
        every = _Prefixes(np.concatenate(keys), np.concatenate(weights), np.concatenate(predictions))
        averaged = every.grouped(every.keys)
        return _Prefixes(
            averaged.keys, averaged.weights * (self.weights.sum() / every.weights.sum()), averaged.predictions
        )


def _what(tokens: NDArray[np.int64]) -> str:
    return f"prefixes of {tokens.shape[1]} tokens"


def _steps(prefixes: _Prefixes, law: ChainLaw) -> Iterator[tuple[float, _Prefixes]]:
    """Yield the regret of p̂, and after each step of averaging."""
    k = law.n_states
    yield prefixes.regret(law), prefixes
    any_order = prefixes.grouped(prefixes.keys)
    yield any_order.regret(law), any_order
    own = any_order.grouped(np.column_stack([any_order.keys[:, 0], any_order.own_counts(k)]))
    yield own.regret(law), own
    unlabelled = own.relabelled(k, with_current=False)
    yield unlabelled.regret(law), unlabelled
    rule = unlabelled.relabelled(k, with_current=True)
    yield rule.regret(law), rule


def _amount(rule: _Prefixes, law: ChainLaw) -> float:
    """Return the regret of the add-α rules that are nearest to a rule of the counts at each number of visits."""
    counts = rule.keys[:, 1:]
    visits = counts.sum(axis=1)
    amount = 0.0
    for n in np.unique(visits):
        group = visits == n
        nearest = np.full((int(group.sum()), law.n_states), 1.0 / law.n_states)
        alpha = np.inf if n == 0 else _nearest_pseudo_count(rule, group, int(n))
        if np.isfinite(alpha):
            nearest = (counts[group] + alpha) / (n + law.n_states * alpha)
        q = posterior_predictive(counts[group].astype(np.int32), law.concentration)
        amount += float(rule.weights[group] @ kl_divergence(q, nearest))
    return amount


def _nearest_pseudo_count(rule: _Prefixes, group: NDArray[np.bool_], visits: int) -> float:
    """Return the α with the least Σ weight · KL(p̄ ‖ add-α) at one number of visits; any where all counts are equal."""
    weights, predictions, counts = rule.weights[group], rule.predictions[group], rule.keys[group, 1:]
    mass = np.bincount(counts.ravel(), (weights[:, None] * predictions).ravel(), visits + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(predictions > 0, predictions * np.log(predictions), 0.0)
    sums = np.array([*mass, weights.sum(), weights @ logs.sum(axis=1)])
    alpha = AddConstantObjective(sums, np.array([visits]), rule.predictions.shape[1]).minimum().alpha
    return np.inf if np.isnan(alpha) else alpha
