"""Intervals for the parameters of a family of smoothing rules: the clustered score, inverted.

A parameter is held at a value, the others are fitted again, and the chains' scores say whether the value is rejected.
What is not rejected is the interval. It needs no scale on which an estimate is nearly normal, and it can contain 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array

from icl_estimators.notes import Code, Note, join
from icl_estimators.pseudo_counts.families.objective import (
    EDGE,
    block_values,
    bounds,
    newton_step,
    score_coefficients,
)
from icl_estimators.pseudo_counts.families.rules import Family
from icl_estimators.pseudo_counts.prefixes import PrefixBlock, Prefixes

__all__ = ["ProfileScore", "Range", "score_interval"]

Array = NDArray[np.float64]

_BEYOND = 25.0  # how far the logarithms of the other parameters may go while one is held
_FLAT = 1e-11  # nats per prefix: curvature, on a relative scale, below which a parameter makes no difference
_PROFILED = 1e-3  # relative step of the others that is left to the efficient score, whose error is its square
_PROFILED_MERGED = 1e-7  # the same where a pass over merged prefixes costs little
_ROUNDING = 1e-13  # nats per prefix
_NOTHING_LEFT = 1e-12  # nats per prefix that a step of the others is to gain
_MOST_STEPS = 60
_MOST_WALKED = 60
_MOST_SECANTS = 6
_LAST_SECANT = 1e-4  # of the way to the limit
_EXACT = 1e-6  # of the statistic at a limit
_REJECTED = 1e6  # a statistic where the objective is infinite


@dataclass(frozen=True, slots=True)
class Range:
    """The interval of a parameter, with the reason where a limit is infinite or missing."""

    low: float
    high: float
    note: str = ""


class Profiled(NamedTuple):
    """The clustered score at one value of the parameter.

    Attributes
    ----------
    statistic : float
        Above 0 the objective rises: the estimate is less. NaN where the other parameters cannot be fitted.
    y : ndarray of float64, shape (P,)
        All parameters, the others fitted.
    slope : float
        Of the statistic, the spread of the scores taken for constant.
    along : ndarray of float64, shape (P,)
        dy/dy_j along the profile.
    """

    statistic: float
    y: Array
    slope: float
    along: Array


class ProfileScore:
    """The clustered score of one parameter, the others profiled out.

    Works in y: the parameters themselves, but the logarithm of a rate.

    Parameters
    ----------
    family : Family
    prefixes : Prefixes
        Of all chains, G of them with a prefix.
    target : int
        Which parameter is held.
    merged : sequence of PrefixBlock
    merged_chains : csr_array or None
        :meth:`Prefixes.merged` and :meth:`Prefixes.merged_chains`, for rules that look at counts alone.

    Notes
    -----
    With s_g the chain's scores, H the Hessian of the sum and F the other parameters that are free (neither at a
    boundary that they press against nor without any effect), the efficient score is
    ψ_g = s_gj − H_jF H_FF⁻¹ s_gF, and the statistic Σψ_g / √(G/(G − 1)·Σ(ψ_g − ψ̄)²). It is the same number whatever
    scale the parameter is measured on. Its sum takes the last Newton step of the others to first order.
    """

    def __init__(
        self,
        family: Family,
        prefixes: Prefixes,
        target: int,
        merged: Sequence[PrefixBlock],
        merged_chains: csr_array | None,
    ) -> None:
        self.family, self.prefixes, self.target = family, prefixes, target
        self.merged_chains = merged_chains if family.counts_only else None
        self.blocks = prefixes.blocks if self.merged_chains is None else merged
        self.profiled = _PROFILED if self.merged_chains is None else _PROFILED_MERGED
        self.used = prefixes.number > 0
        self.number = float(prefixes.number.sum())
        self.n_chains = int(self.used.sum())
        kinds = [parameter.kind for parameter in family.parameters]
        lower, upper = bounds(family, prefixes.blocks)
        self.kind = kinds[target]
        self.rates = np.array([kind == "rate" for kind in kinds])
        ends = {"positive": (0.0, float(np.exp(_BEYOND))), "share": (0.0, 1.0)}
        self.lower = np.array([ends.get(kind, (low, 0.0))[0] for kind, low in zip(kinds, lower, strict=True)])
        self.upper = np.array([ends.get(kind, (0.0, high))[1] for kind, high in zip(kinds, upper, strict=True)])

    def coordinates(self, values: Array) -> Array:
        """Return y of the parameters themselves, shape (P,)."""
        with np.errstate(divide="ignore"):
            y = np.where(self.rates, np.log(np.maximum(values, 1e-300)), values)
        return np.asarray(np.clip(y, self.lower, self.upper))

    def statistic(self, held: float, start: Array) -> Profiled:
        """Fit the others with y_j = `held`, from `start` on."""
        y = start.copy()
        y[self.target] = held
        found = self._totals(y)
        failed = Profiled(np.nan, y, np.nan, np.zeros_like(y))
        if not np.isfinite(found[0]):
            return failed
        for _ in range(_MOST_STEPS):
            free = self._free(y, *found[1:3])
            step = np.zeros_like(y)
            if len(free):
                gradient, hessian = found[1][free], found[2][np.ix_(free, free)]
                size = np.maximum(np.abs(y[free]), 1e-3)
                step[free] = newton_step(gradient, hessian)
                step[free] /= max(1.0, float((np.abs(step[free]) / (3.0 * size + 1.0)).max()))
                step = np.clip(y + step, self.lower, self.upper) - y
                longest = float((np.abs(step[free]) / size).max())
            expected = float(found[1] @ step)
            if not len(free) or longest <= self.profiled or abs(expected) <= _NOTHING_LEFT * self.number:
                return self._studentised(y, free, found)
            length = 1.0
            while True:
                trial = y + length * step
                new = self._totals(trial)
                if new[0] <= found[0] + 1e-4 * length * min(expected, 0.0) + 1e-13 * self.number:
                    break
                length *= 0.5
                if length < 1e-6:
                    return failed
            y, found = trial, new
        return failed

    def _free(self, y: Array, gradient: Array, hessian: Array) -> NDArray[np.intp]:
        free = np.arange(len(y)) != self.target
        free &= ~((y <= self.lower) & (gradient >= 0)) & ~((y >= self.upper) & (gradient <= 0))
        relative = np.where(self.rates, 1.0, np.maximum(np.abs(y), 1e-3))
        free &= np.abs(hessian.diagonal()) * relative**2 > _FLAT * self.number
        return np.flatnonzero(free)

    def _values(self, y: Array) -> Array:
        return np.where(self.rates, np.exp(np.where(self.rates, y, 0.0)), y)

    def _totals(self, y: Array) -> tuple[float, Array, Array, Array | None]:
        """Return the objective, its gradient and Hessian, and the chains' scores where they cost nothing more."""
        values, size = self._values(y), len(y)
        loss, gradient, hessian = 0.0, np.zeros(size), np.zeros((size, size))
        scores = np.zeros((self.prefixes.n_chains, size)) if self.merged_chains is None else None
        for block in self.blocks:
            of_rows, score, curvature = block_values(self.family, values, block)
            loss += float(of_rows.sum())
            gradient += score.sum(axis=1)
            hessian += curvature
            if scores is not None:
                for index in range(size):
                    scores[:, index] += block.chain_sums(score[index], self.prefixes.n_chains)
        if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
            loss = np.inf
        return loss, gradient, hessian, scores

    def _studentised(
        self, y: Array, free: NDArray[np.intp], found: tuple[float, Array, Array, Array | None]
    ) -> Profiled:
        _, _, hessian, scores = found
        if scores is None:
            assert self.merged_chains is not None
            coefficients = score_coefficients(self.family, self._values(y), self.blocks[0])
            scores = np.asarray(self.merged_chains @ coefficients.reshape(len(y), -1).T)
        along = np.zeros_like(y)
        along[self.target] = 1.0
        if len(free):
            along[free] = -np.linalg.lstsq(hessian[np.ix_(free, free)], hessian[free, self.target])[0]
        efficient = scores[self.used] @ along
        total = float(efficient.sum())
        spread = float(((efficient - efficient.mean()) ** 2).sum()) * self.n_chains / (self.n_chains - 1)
        held = float(y[self.target])
        reach = max(abs(held), 1e-3) / self.number
        if max(abs(total), np.sqrt(spread)) * reach <= _ROUNDING:
            return Profiled(0.0, y, np.nan, along)  # the parameter makes no difference here
        if spread == 0.0:
            return Profiled(float(np.copysign(_REJECTED, total)), y, np.nan, along)
        scale = float(np.sqrt(spread))
        return Profiled(total / scale, y, float(hessian[self.target] @ along) / scale, along)


def score_interval(score: ProfileScore, y: Array, t: float) -> Range:
    """Return the values of the held parameter that the score does not reject, around the estimate.

    Parameters
    ----------
    score : ProfileScore
    y : ndarray of float64, shape (P,)
        The estimate. At a boundary of the parameter the interval is one-sided: only a score that points inwards
        rejects, so that where the truth is the boundary itself a level of 0.95 covers it with probability 0.975.
    t : float
        Quantile of Student's t.

    Returns
    -------
    Range
        In the parameter itself. A limit beyond the search is 0, 1 or ±inf, whichever is the parameter's end.
    """
    walk = _Walk(score, y, t)
    low, why_low = walk.limit(-1)
    high, why_high = walk.limit(1)
    shown = walk.shown
    if low > shown or high < shown:
        return Range(np.nan, np.nan, Note(Code.SCORE_NOT_ZERO))
    return Range(low, high, join(why_low, why_high))


class _Walk:
    """From an estimate outwards to the first value that is rejected."""

    def __init__(self, score: ProfileScore, y: Array, t: float) -> None:
        self.score, self.y, self.t = score, y, t
        self.at = float(y[score.target])
        low, high = float(score.lower[score.target]), float(score.upper[score.target])
        if score.kind == "positive":
            high = float(np.exp(EDGE))
        self.ends = {-1: low, 1: high}
        self.at = min(max(self.at, low), high)
        self.start = score.statistic(self.at, y)
        self.here, slope = self.start.statistic, self.start.slope
        scale = self.at if score.kind == "positive" and self.at > 0 else max(abs(self.at), 1e-3)
        self.reach = t / slope if np.isfinite(slope) and slope > 0 else scale

    def _near(self, held: float, point: Profiled | None = None) -> Array:
        """Follow the profile's tangent from a point, the estimate by default, to where the parameter is `held`."""
        point = point or self.start
        moved = point.y + point.along * (held - float(point.y[self.score.target]))
        return np.clip(moved, self.score.lower, self.score.upper)

    def limit(self, direction: int) -> tuple[float, str]:
        """Return the limit and, where it is infinite or missing, the reason."""
        end = self.ends[direction]
        if not np.isfinite(self.here):
            return np.nan, Note(Code.NOT_PROFILED, side=_side(direction))
        if self.at == end:
            return self._end(direction), ""
        if direction * self.here >= self.t:  # a boundary, against which the objective presses
            edge = self._end(-direction) if self.at == self.ends[-direction] else self._shown(self.at)
            return edge, Note(Code.REJECTED_INSIDE)
        if (limit := self._secant(direction)) is not None:
            return self._shown(limit), ""
        inside, start, step = self.at, self.y, self.reach
        from_top = direction < 0 and self.score.kind == "positive" and self.at == self.ends[1]
        previous = direction * self.here - self.t
        for walked in range(_MOST_WALKED):
            ahead = inside * np.exp(-1.5) if from_top else inside + direction * step
            if from_top and ahead < 1e-6:
                ahead = end
            if direction * (ahead - end) >= 0 or (not from_top and walked > 40):
                ahead = end
            guess = start
            if from_top:  # all pseudo-counts shrink together
                guess = np.where(start > 1e3, start * (ahead / inside), start)
            elif start is self.y:
                guess = self._near(ahead)
            value, found = self._value(direction, ahead, guess, start)
            if value > 0:
                return self._root(direction, inside, previous, ahead, value, start), ""
            if np.isnan(value):
                return np.nan, Note(Code.NOT_PROFILED, side=_side(direction))
            if ahead == end:
                return self._end(direction), self._why(direction)
            inside, start, previous = ahead, found, value
            step *= 2.0 if walked < 3 else 8.0
        return np.nan, Note(Code.NOT_PROFILED, side=_side(direction))

    def _secant(self, direction: int) -> float | None:
        """Return the limit by the secant method; None where it leads away from where a limit is expected."""
        point, old, new = self.start, self.at, self.at + direction * self.reach
        before, end = direction * self.here - self.t, self.ends[direction]
        for _ in range(_MOST_SECANTS):
            if not (0 < direction * (new - self.at) <= 3.0 * self.reach and direction * (end - new) > 0):
                return None
            point = self.score.statistic(new, self._near(new, point))
            value = direction * point.statistic - self.t
            if not np.isfinite(value) or value == before:
                return None
            step = -value * (new - old) / (value - before)
            old, before, new = new, value, new + step
            if abs(step) <= _LAST_SECANT * self.reach and direction * (end - new) > 0:
                return new
        return None

    def _value(self, direction: int, held: float, guess: Array, start: Array) -> tuple[float, Array]:
        """Return the statistic less t outwards: above 0 where the value is rejected."""
        for point in (guess, start):
            found = self.score.statistic(held, point)
            if np.isfinite(found.statistic):
                return direction * found.statistic - self.t, found.y
        # An infinite objective: a rule that gives probability 0 to what the estimator holds possible.
        y = start.copy()
        y[self.score.target] = held
        return (_REJECTED if np.isinf(self.score._totals(y)[0]) else np.nan), y

    def _root(self, direction: int, inside: float, near: float, outside: float, far: float, start: Array) -> float:
        width, known = abs(outside - inside), {inside: near, outside: far}

        def rejects(held: float) -> float:
            if held in known:
                return known[held]
            value, _ = self._value(direction, held, self._near(held) if start is self.y else start, start)
            # Near enough: brentq ends at a 0.
            return _REJECTED if np.isnan(value) else 0.0 if abs(value) < _EXACT else value

        low, high = inside, outside
        if far >= _REJECTED or (inside > 0 and outside > 0 and max(inside / outside, outside / inside) > 3.0):
            # Halve first, on a logarithmic scale where the ends are far apart.
            for _ in range(60):
                middle = float(np.sqrt(low * high)) if low > 0 and high > 0 else 0.5 * (low + high)
                value = rejects(middle)
                low, high = (middle, high) if value <= 0 else (low, middle)
                if value < _REJECTED and value > 0 and abs(high - low) < 0.5 * max(abs(high), abs(low)):
                    break
                if abs(high - low) <= 1e-9 * width:
                    return self._shown(low)
        root = brentq(rejects, low, high, xtol=1e-7 * abs(high - low) + 1e-300, rtol=1e-12, maxiter=100)
        return self._shown(float(root))

    @property
    def shown(self) -> float:
        """The estimate itself; infinite at that end."""
        at_end = [direction for direction in (-1, 1) if self.at == self.ends[direction] and self.score.kind != "rate"]
        return self._end(at_end[0]) if at_end else self._shown(self.at)

    def _shown(self, y: float) -> float:
        return float(np.exp(y)) if self.score.kind == "rate" else y

    def _end(self, direction: int) -> float:
        kind, end = self.score.kind, self.ends[direction]
        if kind == "share":
            return end
        if kind == "positive":
            return np.inf if direction > 0 else 0.0
        if kind == "rate":
            return np.nan if direction > 0 else 0.0
        return direction * np.inf

    def _why(self, direction: int) -> str:
        kind, side = self.score.kind, _side(direction)
        if kind == "rate" and direction > 0:
            return Note(Code.SEARCH_ENDS, side=side, value=np.exp(self.ends[1]))
        if kind == "real" or (kind == "positive" and direction > 0):
            return Note(Code.NONE_REJECTED, side=side)
        return ""


def _side(direction: int) -> str:
    return "upper" if direction > 0 else "lower"
