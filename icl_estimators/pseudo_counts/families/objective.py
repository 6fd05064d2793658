"""Σ KL(p̂ ‖ rule) of a family, with derivatives, and its minimum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import xlogy

from icl_estimators.pseudo_counts.families.rules import Family, Kind, Parameter, Weights
from icl_estimators.pseudo_counts.prefixes import PrefixBlock

__all__ = [
    "EDGE",
    "Coordinates",
    "FamilyMinimum",
    "block_values",
    "bounds",
    "minimise",
    "natural",
    "newton_step",
    "score_coefficients",
]

Array = NDArray[np.float64]

EDGE = 18.0
"""Logarithms from which on a positive parameter counts as infinite, e^18, and a rate, e^−18, as 0."""

_LOWEST = -60.0  # logarithm of the least parameter above 0: p̂ may put very little on what has not been seen

LARGEST_GROWTH = 200.0
"""How far log d^T may go, so that no sum of weights overflows."""

NEAR_EDGE = 10.0
"""Beyond it a boundary is tried."""

_MOST_STEPS = 100
_LAST_STEP = 1e-6  # steps that are shorter are the last: what they leave is their square
_FLAT = 1e-14  # gradient, in nats per prefix
_LONGEST_STEP = 3.0
_SATURATED = 40.0  # e^−40 of the largest weight is nothing; frequencies differ by 1/n_v at least
_SAME = 1e-12  # nats per prefix: an exact boundary wins if it is no worse by more


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where a family's parameters are: free ones in fitted coordinates, others pinned to a boundary.

    Attributes
    ----------
    free : ndarray of float64, shape (P,)
        Logarithms, logits or the numbers themselves; meaningless where pinned.
    pinned : dict of int to float
        Parameters held at 0 or 1 exactly.
    """

    free: Array
    pinned: dict[int, float]

    def values(self, family: Family) -> Array:
        """Return the parameters themselves, shape (P,)."""
        values = [natural(p.kind, float(x)) for p, x in zip(family.parameters, self.free, strict=True)]
        for index, value in self.pinned.items():
            values[index] = value
        return np.array(values)

    def slopes(self, family: Family) -> tuple[Array, Array]:
        """Return the first two derivatives of what the family differentiates by, with respect to the coordinates.

        A pinned parameter is its own coordinate.
        """
        first, second = np.ones(len(self.free)), np.zeros(len(self.free))
        for index, (parameter, value) in enumerate(zip(family.parameters, self.values(family), strict=True)):
            if index in self.pinned:
                continue
            if parameter.kind == "positive":
                first[index] = second[index] = value
            elif parameter.kind == "share":
                first[index] = value * (1.0 - value)
                second[index] = first[index] * (1.0 - 2.0 * value)
        return first, second


@dataclass(frozen=True, slots=True)
class FamilyMinimum:
    """The best member of a family.

    Attributes
    ----------
    at : Coordinates
    cross_entropy : float
        Σ −p̂ log(rule) there, in nats: the objective less Σ p̂ log p̂.
    in_the_limit : bool
        Whether no member is as good as the limit of infinite pseudo-counts, the family's
        :attr:`~icl_estimators.pseudo_counts.families.rules.Family.limit`; then `at` is far out on the way there.
    """

    at: Coordinates
    cross_entropy: float
    in_the_limit: bool = False


def natural(kind: Kind, x: float) -> float:
    """Return the parameter itself of a fitted coordinate: a logarithm, a logit or the number."""
    if kind == "real":
        return float(x)
    return float(1.0 / (1.0 + np.exp(-x))) if kind == "share" else float(np.exp(min(x, 700.0)))


def block_values(
    family: Family, values: Array, block: PrefixBlock, *, derivatives: bool = True
) -> tuple[Array, Array, Array]:
    """Return each prefix's cross-entropy and score, and the Hessian of their sum.

    Parameters
    ----------
    family : Family
    values : ndarray of float64, shape (P,)
    block : PrefixBlock
    derivatives : bool
        False leaves them out: the arrays are empty.

    Returns
    -------
    cross_entropy : ndarray, shape (n,)
    score : ndarray, shape (P, n)
    hessian : ndarray, shape (P, P)
    """
    weights = family.weights(values.tolist(), block)
    p, m = block.predictions, weights.value
    number = p.sum(axis=0)
    total = m.sum(axis=0)
    positive = bool(m.min(initial=1.0) > 0)  # then nothing has to look out for 0·log 0 and 0/0, which takes longer
    with np.errstate(divide="ignore"):
        loss = number * np.log(total) - (p * np.log(m) if positive else xlogy(p, m)).sum(axis=0)
    if not derivatives:
        return loss, np.empty((0, 0)), np.empty((0, 0))
    with np.errstate(over="ignore", invalid="ignore"):  # where the loss is infinite or nearly so
        share = p / m if positive else np.divide(p, m, out=np.zeros_like(p), where=m > 0)
        score, curvature = _derivatives(share, number / total, total, weights)
    return loss, score, curvature


def score_coefficients(family: Family, values: Array, block: PrefixBlock) -> Array:
    """Return what a score is multiplied from: score_p = Σ_w p̂_w·c_pw of a prefix, shape (P, K, n)."""
    weights = family.weights(values.tolist(), block)
    m = weights.value
    first = np.stack([np.broadcast_to(row, m.shape) for row in weights.first])
    own = np.divide(first, m, out=np.zeros_like(first), where=m > 0)
    return np.asarray(first.sum(axis=1, keepdims=True) / m.sum(axis=0) - own)


def _derivatives(share: Array, per_total: Array, total: Array, weights: Weights) -> tuple[Array, Array]:
    """Return scores and Hessian; `share` is p̂_w/m_w."""
    m, size = weights.value, len(weights.first)
    first = [np.broadcast_to(row, m.shape) for row in weights.first]
    sums = [row.sum(axis=0) for row in first]
    score = np.stack([per_total * sums[i] - (share * first[i]).sum(axis=0) for i in range(size)])
    curvature = np.empty((size, size))
    over = np.divide(share, m, out=np.zeros_like(m), where=share > 0)
    for i in range(size):
        for j in range(i, size):
            value = np.vdot(over * first[i], first[j]) - np.dot(per_total / total, sums[i] * sums[j])
            if (i, j) in weights.second:
                second = weights.second[i, j]
                value += np.dot(per_total, second.sum(axis=0)) - np.vdot(share, second)
            curvature[i, j] = curvature[j, i] = value
    return score, curvature


def minimise(family: Family, blocks: Sequence[PrefixBlock], starts: Iterable[Coordinates]) -> FamilyMinimum:
    """Find the least cross-entropy from several starts, boundaries and limits included.

    Newton's method with the Hessian made positive, steps of bounded length and backtracking. A parameter that runs
    towards an end of its range is tried there: at 0, at 1, or far enough out that more makes no difference. So is the
    limit of infinite pseudo-counts, where a family has one.
    """
    objective = _Objective(family, blocks)
    best: FamilyMinimum | None = None
    for start in starts:
        found = _descend(objective, start)
        if best is None or found.cross_entropy < best.cross_entropy:
            best = found
    assert best is not None  # every family has a start
    tolerance = _SAME * objective.number
    for index, boundary in _boundaries_nearby(family, best.at, objective):
        pinned = Coordinates(best.at.free, {**best.at.pinned, index: boundary})
        found = _descend(objective, pinned)
        if found.cross_entropy <= best.cross_entropy + tolerance:
            best = found
    short = np.array([p.kind in ("positive", "share") for p in family.parameters])
    short &= (best.at.free <= 1e-6 - EDGE) & ~np.isin(np.arange(len(short)), list(best.at.pinned))
    if short.any():  # 0 is worse: the estimate is further down
        objective.lower = np.where(short, _LOWEST, objective.lower)
        best = _descend(objective, best.at)
    if family.limit is not None:
        value, odds = family.limit(blocks)
        if value <= best.cross_entropy + tolerance:
            values = best.at.values(family)
            far = [EDGE + np.log(odd) if odd > 0 else _free(p.kind, v) for p, v, odd in _zip(family, values, odds)]
            best = FamilyMinimum(Coordinates(np.array(far), {}), value, in_the_limit=True)
    return best


def _zip(family: Family, values: Array, odds: Array) -> Iterable[tuple[Parameter, float, float]]:
    return zip(family.parameters, values.tolist(), odds.tolist(), strict=True)


def _free(kind: Kind, value: float) -> float:
    """Return the fitted coordinate of a parameter that the limit leaves open."""
    return float(np.log(np.clip(value, 1e-3, 1e3))) if kind in ("positive", "rate") else value


def _boundaries_nearby(family: Family, at: Coordinates, objective: _Objective) -> list[tuple[int, float]]:
    nearby = []
    for index, (parameter, x) in enumerate(zip(family.parameters, at.free, strict=True)):
        if index in at.pinned:
            continue
        if parameter.kind == "real":
            nearby += [(index, float(side[index])) for side in (objective.lower, objective.upper)]
        elif x < -NEAR_EDGE:
            nearby.append((index, float(np.exp(-EDGE)) if parameter.kind == "rate" else 0.0))
        elif x > NEAR_EDGE and parameter.kind == "positive":
            nearby.append((index, float(np.exp(EDGE))))
        elif x > NEAR_EDGE and parameter.kind == "share":
            nearby.append((index, 1.0))
    return nearby


class _Objective:
    """The sum over blocks in fitted coordinates."""

    def __init__(self, family: Family, blocks: Sequence[PrefixBlock]) -> None:
        self.family, self.blocks = family, blocks
        self.lower, self.upper = bounds(family, blocks)
        self.number = float(sum(block.predictions.sum() for block in blocks))

    def __call__(self, at: Coordinates) -> tuple[float, Array, Array]:
        """Return the value, the gradient and the Hessian."""
        size = len(at.free)
        values = at.values(self.family)
        loss, gradient, hessian = 0.0, np.zeros(size), np.zeros((size, size))
        for block in self.blocks:
            of_rows, score, curvature = block_values(self.family, values, block)
            loss += float(of_rows.sum())
            gradient += score.sum(axis=1)
            hessian += curvature
        first, second = at.slopes(self.family)
        if not (np.isfinite(loss) and np.isfinite(gradient).all() and np.isfinite(hessian).all()):
            return np.inf, np.zeros(size), np.zeros((size, size))
        return loss, gradient * first, hessian * np.outer(first, first) + np.diag(gradient * second)


def _descend(objective: _Objective, start: Coordinates) -> FamilyMinimum:
    """Go down from one start, within bounds, by scipy's trust region with exact subproblems."""
    moving = np.array([index not in start.pinned for index in range(len(start.free))])
    lower, upper = objective.lower[moving], objective.upper[moving]
    seen: dict[bytes, tuple[float, Array, Array]] = {}

    def at(x: Array) -> Coordinates:
        free = start.free.copy()
        free[moving] = np.clip(x, lower, upper)
        return Coordinates(free, start.pinned)

    def found(x: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian, a prefix; beyond a bound nothing changes."""
        if x.tobytes() not in seen:
            value, gradient, hessian = objective(at(x))
            inside = (x >= lower) & (x <= upper)
            curvature = hessian[np.ix_(moving, moving)] * np.outer(inside, inside)
            number = objective.number
            seen[x.tobytes()] = value / number, gradient[moving] * inside / number, curvature / number
        return seen[x.tobytes()]

    last = start.free[moving]

    def value_of(x: Array) -> float:
        nonlocal last
        if 0.0 < np.abs(x - last).max() < _LAST_STEP:  # its gain is less than rounding can show
            last = x
            raise StopIteration
        return found(x)[0]

    def gradient_of(x: Array) -> Array:
        nonlocal last
        last = x
        return found(x)[1]

    if np.isfinite(found(last)[0]) and moving.any():
        options = {"gtol": _FLAT, "max_trust_radius": _LONGEST_STEP, "maxiter": _MOST_STEPS}
        solver: Any = {"method": "trust-exact", "hess": lambda x: found(x)[2], "options": options}
        with suppress(StopIteration):
            minimize(value_of, last, jac=gradient_of, **solver)
    return FamilyMinimum(at(last), min(value for value, _, _ in seen.values()) * objective.number)


def newton_step(gradient: Array, hessian: Array) -> Array:
    """Return −|H|⁻¹g, no longer than the longest step in any coordinate."""
    scale = np.sqrt(np.maximum(np.abs(hessian.diagonal()), 1e-300))
    values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
    values = np.maximum(np.abs(values), 1e-10)
    step = -(vectors @ ((vectors.T @ (gradient / scale)) / values)) / scale
    longest = np.abs(step).max()
    return np.asarray(step * min(1.0, _LONGEST_STEP / longest) if longest > 0 else step)


def bounds(family: Family, blocks: Sequence[PrefixBlock]) -> tuple[Array, Array]:
    """Return how far each fitted coordinate may go, shape (P,) each."""
    length = max((block.tokens.shape[1] for block in blocks if block.tokens is not None), default=1)
    visits = 1.0
    if any(parameter.kind == "real" for parameter in family.parameters):
        visits = max(float(block.counts.sum(axis=0, dtype=np.float64).max(initial=1.0)) for block in blocks)
    growth, slope = min(EDGE, LARGEST_GROWTH / length), _SATURATED * visits
    lower = {"real": -slope, "rate": -EDGE, "positive": -EDGE, "share": -EDGE}
    upper = {"real": slope, "rate": growth, "positive": EDGE, "share": EDGE}
    kinds = [parameter.kind for parameter in family.parameters]
    return np.array([lower[kind] for kind in kinds]), np.array([upper[kind] for kind in kinds])
