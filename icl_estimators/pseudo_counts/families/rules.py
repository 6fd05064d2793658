"""Families of smoothing rules: what an estimator may act like, with a few parameters each.

A rule gives each state an unnormalised weight m_w(θ) and predicts m_w/Σm. A family gives m and its first two
derivatives for a block of prefixes. Everything else is the same for all of them (see
:mod:`icl_estimators.pseudo_counts.families.fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from icl_estimators.pseudo_counts.prefixes import PrefixBlock, decayed_counts
from icl_estimators.validation import InputError, positive_int

__all__ = ["FAMILIES", "Family", "Parameter", "Weights", "smoothing_family"]

Array = NDArray[np.float64]

Kind = Literal["positive", "rate", "share", "real"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number of a family.

    Attributes
    ----------
    name : str
        As in smoothing.csv.
    kind : {"positive", "rate", "share", "real"}
        `positive`: in [0, ∞], fitted as its logarithm; `rate`: the same, and the family differentiates with respect to
        the logarithm; `share`: in [0, 1], fitted as its logit; `real`: fitted as it is.
    """

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Unnormalised predictions of a rule for n prefixes, with derivatives with respect to P parameters.

    Attributes
    ----------
    value : ndarray of float64, shape (K, n)
    first : sequence of P ndarray, each of shape (K, n) or broadcast to it
    second : dict of (p, q), p ≤ q, to ndarray of shape (K, n)
        Those that are not 0.
    """

    value: Array
    first: Sequence[Array]
    second: dict[tuple[int, int], Array]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of smoothing rules.

    Attributes
    ----------
    name : str
        As in smoothing.csv.
    formula : str
        The unnormalised prediction of w after t_n = v.
    parameters : tuple of Parameter
    weights : callable
        (values, block) → Weights.
    starts : callable
        The pseudo-count α̂ of the add-α family → points, in fitted coordinates, to start from.
    counts_only : bool
        Whether the rule depends only on v and the counts, so that equal prefixes may be merged.
    reported : callable, optional
        Fitted values → the values that are reported and their Jacobian, where the two differ.
    limit : callable, optional
        Blocks → Σ −p̂ log(rule) in nats of the best rule that the family tends to as pseudo-counts grow without bound,
        and in what proportion they do, the largest 1; 0 for a parameter that then makes no difference.
    views : dict of int to (Family, callable)
        For a reported parameter that is not fitted itself: the same rules with that parameter first, and fitted values
        → the values of that family.
    """

    name: str
    formula: str
    parameters: tuple[Parameter, ...]
    weights: Callable[[Sequence[float], PrefixBlock], Weights]
    starts: Callable[[float], list[list[float]]]
    counts_only: bool = True
    reported: Callable[[Array], tuple[Array, Array]] | None = None
    limit: Callable[[Sequence[PrefixBlock]], tuple[float, Array]] | None = None
    views: Mapping[int, tuple[Family, Callable[[Array], Array]]] = field(default_factory=dict)


def _uniform_limit(n_parameters: int) -> Callable[[Sequence[PrefixBlock]], tuple[float, Array]]:
    """Infinite α: 1/K, where nothing but α tells how it is reached."""

    def limit(blocks: Sequence[PrefixBlock]) -> tuple[float, Array]:
        number = sum(float(block.predictions.sum()) for block in blocks)
        return number * float(np.log(len(blocks[0].predictions))), np.array([1.0] + [0.0] * (n_parameters - 1))

    return limit


def _fixed_law_limit(blocks: Sequence[PrefixBlock]) -> tuple[float, Array]:
    """Infinite α_w: one law for all prefixes, the mean prediction."""
    total = np.sum([block.predictions.sum(axis=1) for block in blocks], axis=0)
    return -float(xlogy(total, total / total.sum()).sum()), total / total.max()


def _staying_limit(blocks: Sequence[PrefixBlock]) -> tuple[float, Array]:
    """Infinite α and α + δ: one probability of staying, all others alike."""
    k = len(blocks[0].predictions)
    number = sum(float(block.predictions.sum()) for block in blocks)
    stay = sum(float(block.predictions[block.is_current()].sum()) for block in blocks)
    value = -float(xlogy(stay, stay / number) + xlogy(number - stay, (number - stay) / number / (k - 1)))
    odds = np.array([(number - stay) / (k - 1), stay])
    return value, odds / odds.max()


def _add_constant(values: Sequence[float], block: PrefixBlock) -> Weights:
    return Weights(block.counts + values[0], [np.ones((1, 1))], {})


def _affine(values: Sequence[float], block: PrefixBlock) -> Weights:
    visits: Array = block.counts.sum(axis=0, keepdims=True, dtype=np.float64)
    return Weights(block.counts + (values[0] + values[1] * visits), [np.ones((1, 1)), visits], {})


def _bonus(values: Sequence[float], block: PrefixBlock) -> Weights:
    other, current = values
    same = block.is_current()
    return Weights(block.counts + np.where(same, current, other), [(~same).astype(float), same.astype(float)], {})


def _bonus_by_difference(values: Sequence[float], block: PrefixBlock) -> Weights:
    """(δ, the lesser of α and α + δ)."""
    difference, least = values
    same = block.is_current()
    current, other = least + max(difference, 0.0), least + max(-difference, 0.0)
    slope = same.astype(float) if difference >= 0 else -(~same).astype(float)
    return Weights(block.counts + np.where(same, current, other), [slope, np.ones((1, 1))], {})


def _bonus_reported(values: Array) -> tuple[Array, Array]:
    """(α, α + δ) → (α, δ)."""
    return np.array([values[0], values[1] - values[0]]), np.array([[1.0, 0.0], [-1.0, 1.0]])


def _unigram_mixture(values: Sequence[float], block: PrefixBlock) -> Weights:
    alpha, share = values
    k = len(block.predictions)
    if block.occurrences is None:
        raise InputError("a mixture with the unigram needs occurrences: merged prefixes have none")
    occurrences, counts = block.occurrences + 1.0, block.counts + alpha
    unigram = occurrences / occurrences.sum(axis=0)
    total = counts.sum(axis=0)
    smoothed = counts / total
    slope = (1.0 - k * smoothed) / total  # d smoothed / dα
    return Weights(
        (1.0 - share) * smoothed + share * unigram,
        [(1.0 - share) * slope, unigram - smoothed],
        {(0, 0): (1.0 - share) * (-2.0 * k * slope / total), (0, 1): -slope},
    )


def _recency(values: Sequence[float], block: PrefixBlock) -> Weights:
    alpha, decay = values
    if block.tokens is None or block.kept is None:
        raise InputError("a recency-weighted rule needs sequences: merged prefixes have none")
    k, (n_sequences, length) = block.shape[0], block.tokens.shape
    by_state = decayed_counts(block.tokens, k, decay).transpose(0, 3, 2, 1).reshape(3, k, length * n_sequences)
    sequence, time = np.nonzero(block.kept)
    counts, first, second = by_state.take(time * n_sequences + sequence, axis=2)
    return Weights(counts + alpha, [np.ones((1, 1)), first], {(1, 1): second})


def _asymmetric(values: Sequence[float], block: PrefixBlock) -> Weights:
    k = len(block.predictions)
    rows = np.eye(k)[:, :, None]  # state p's weight moves with parameter p alone
    return Weights(block.counts + np.asarray(values)[:, None], list(rows), {})


def _temperature(values: Sequence[float], block: PrefixBlock) -> Weights:
    frequency = block.counts / block.counts.sum(axis=0, dtype=np.float64)
    shifted = frequency - (frequency.max(axis=0) if values[0] >= 0 else frequency.min(axis=0))
    weight = np.exp(values[0] * shifted)
    return Weights(weight, [shifted * weight], {(0, 0): shifted**2 * weight})


def smoothing_family(name: str, n_states: int) -> Family:
    """Return a family for K states.

    Parameters
    ----------
    name : str
        One of :data:`FAMILIES`.
    n_states : int
        K ≥ 2.

    Raises
    ------
    InputError
        If the name is unknown or `n_states` < 2.

    Examples
    --------
    >>> smoothing_family("affine", 3).formula
    'n_vw + a + b n_v'
    """
    k = positive_int(n_states, "n_states", at_least=2)
    alpha = Parameter("pseudo_count", "positive")
    difference = Family(
        "bonus",
        "n_vw + α + δ 1[w = v]",
        (Parameter("bonus", "real"), Parameter("least_pseudo_count", "positive")),
        _bonus_by_difference,
        lambda a: [[0.0, np.log(a)]],
    )
    families = {
        "add-constant": Family(
            "add-constant", "n_vw + α", (alpha,), _add_constant, lambda a: [[np.log(a)]], limit=_uniform_limit(1)
        ),
        "affine": Family(
            "affine",
            "n_vw + a + b n_v",
            (alpha, Parameter("pseudo_count_per_visit", "positive")),
            _affine,
            lambda a: [[np.log(a), -4.0], [np.log(a) - 1.0, -2.0], [-5.0, -2.0]],
            limit=_uniform_limit(2),
        ),
        "bonus": Family(
            "bonus",
            "n_vw + α + δ 1[w = v]",
            (alpha, Parameter("bonus", "positive")),
            _bonus,
            lambda a: [[np.log(a), np.log(a)]],
            reported=_bonus_reported,
            limit=_staying_limit,
            views={1: (difference, lambda v: np.array([v[1] - v[0], v.min()]))},
        ),
        "unigram-mixture": Family(
            "unigram-mixture",
            "(1 − λ)(n_vw + α)/(n_v + Kα) + λ(n_w + 1)/(n + K)",
            (alpha, Parameter("unigram_share", "share")),
            _unigram_mixture,
            lambda a: [[np.log(a), -3.0], [np.log(a) - 1.0, 0.0], [np.log(a), 4.0]],
            counts_only=False,
        ),
        "recency": Family(
            "recency",
            "Σ d^age + α",
            (alpha, Parameter("decay", "rate")),
            _recency,
            lambda a: [[np.log(a), -0.01], [np.log(a), -0.5]],
            counts_only=False,
            limit=_uniform_limit(2),
        ),
        "asymmetric": Family(
            "asymmetric",
            "n_vw + α_w",
            tuple(Parameter(f"pseudo_count_{state}", "positive") for state in range(k)),
            _asymmetric,
            lambda a: [[np.log(a)] * k],
            limit=_fixed_law_limit,
        ),
        "temperature": Family(
            "temperature",
            "exp(γ n_vw / n_v)",
            (Parameter("gamma", "real"),),
            _temperature,
            lambda a: [[2.0]],
        ),
    }
    if name not in families:
        raise InputError(f"unknown family {name!r}: choose from {', '.join(families)}")
    return families[name]


FAMILIES = ("add-constant", "affine", "bonus", "unigram-mixture", "recency", "asymmetric", "temperature")
"""The families that are compared, the plain pseudo-count first."""
