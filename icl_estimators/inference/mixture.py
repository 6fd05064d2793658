"""A law as a convex mixture of given laws: the weights nearest in KL, with intervals clustered on chains.

The weights minimise the mean of KL(p ‖ Σ_s w_s r_s), which is convex in them. A weight's interval holds what the
clustered score does not reject, with the other weights fitted again at each value, so it may contain 0 and stays valid
there, where an estimate plus or minus standard errors would not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, linprog, nnls

from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError, probability_level

__all__ = ["MixtureFit", "fit_mixture", "mixture_kl"]

Array = NDArray[np.float64]

_SAME = 1e-8  # relative curvature of a direction that changes no prediction
_FREE = 1e-7  # a weight below this is 0
_MOST_STEPS = 60
_END = 1.0 - 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class MixtureFit:
    """Weights of S components.

    Attributes
    ----------
    weights : ndarray of float64, shape (S,)
        At least 0, with sum 1. Where some are not identified, one of the sets of weights that fit best.
    se : ndarray of float64, shape (S,)
        NaN at a boundary, from one chain, and where a weight is not identified.
    low, high : ndarray of float64, shape (S,)
        In [0, 1]. At 0 the interval is one-sided: only a score that points inwards rejects 0, so that a true 0 is
        covered with probability 0.975 at a level of 0.95.
    identified : ndarray of bool, shape (S,)
        False where other weights give the same mixture.
    boundary : ndarray of bool, shape (S,)
        Whether the weight is 0 or 1.
    notes : tuple of str
        Why a number is NaN.
    """

    weights: Array
    se: Array
    low: Array
    high: Array
    identified: NDArray[np.bool_]
    boundary: NDArray[np.bool_]
    notes: tuple[str, ...]


def mixture_kl(target: Array, law: Array) -> Array:
    """Return KL(target ‖ law) in nats, summed over the last axis; 0·log 0 is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(target > 0, target * np.log(target / law), 0.0)
    return np.asarray(terms.sum(axis=-1))


def fit_mixture(target: ArrayLike, components: ArrayLike, *, level: float = 0.95) -> MixtureFit:
    """Fit the weights of a mixture, all prefixes alike, and their intervals.

    Parameters
    ----------
    target : array_like of float, shape (G, M, K)
        p after each of M prefixes of each of G chains.
    components : array_like of float, shape (S, G, M, K)
        r_s there, everywhere above 0.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    MixtureFit

    Raises
    ------
    InputError
        If the shapes do not fit together, a component is not above 0 everywhere, or `level` is not strictly between 0
        and 1.

    Notes
    -----
    With the weight s held at t and the others fitted, d is the direction with d_s = 1 and Σd = 0 that moves those of
    the others that are above 0, and changes the mixture least: it minimises dᵀHd, H the Hessian. A chain's efficient
    score is ψ_g = −Σ p Σ_s d_s r_s/m, and the statistic Σψ_g/√(G/(G − 1)·Σ(ψ_g − ψ̄)²) is compared with t_{G−1}.

    Examples
    --------
    >>> r = np.array([[[[0.5, 0.5]], [[0.5, 0.5]]], [[[0.9, 0.1]], [[0.2, 0.8]]]])  # two laws in two chains
    >>> fit_mixture(0.25 * r[0] + 0.75 * r[1], r).weights.round(6).tolist()
    [0.25, 0.75]
    """
    level = probability_level(level)
    p, r = np.asarray(target, dtype=np.float64), np.asarray(components, dtype=np.float64)
    if p.ndim != 3 or r.shape[1:] != p.shape or not len(r):
        raise InputError(f"components must have shape (S, {', '.join(map(str, p.shape))}), not {r.shape}")
    if not (r > 0).all():
        raise InputError("every component of a mixture must be above 0 everywhere")
    problem = _Problem(p, r)
    weights = problem.solve(np.full(len(r), 1.0 / len(r)))
    identified = problem.identified(weights)
    quantile = t_quantile(0.5 + 0.5 * level, max(problem.count - 1, 1))
    se, low, high = (np.full(len(r), np.nan) for _ in range(3))
    boundary = (weights < _FREE) | (weights > 1.0 - _FREE)
    notes: list[str] = []
    for s in range(len(r)):
        if not identified[s]:
            notes.append(Note(Code.SAME_MIXTURE))
        elif problem.count < 2:
            notes.append(Note(Code.TOO_FEW_CHAINS))
        else:
            low[s], high[s] = _interval(problem, weights, s, quantile)
            if not boundary[s]:
                se[s] = problem.standard_error(weights, s)
            notes.append("")
    return MixtureFit(weights, se, low, high, identified, boundary, tuple(notes))


class _Problem:
    """The mean KL of a mixture as a function of its weights."""

    def __init__(self, p: Array, r: Array) -> None:
        self.count, prefixes, _ = p.shape
        self.p = p.reshape(self.count, -1) / prefixes
        self.r = r.reshape(len(r), -1)
        self.flat = self.p.ravel()

    def loss(self, w: Array) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = -float(self.flat @ np.log(w @ self.r)) / self.count
        return value if np.isfinite(value) else np.inf

    def moments(self, w: Array) -> tuple[Array, Array, Array]:
        """Return r/m, the negative gradient and the Hessian."""
        x = self.r / (w @ self.r)
        weighted = x * self.flat
        return x, weighted.sum(axis=1) / self.count, weighted @ x.T / self.count

    def solve(self, w: Array, held: int | None = None) -> Array:
        """Minimise from `w` on by Newton steps, each a quadratic programme over the simplex; `held` keeps its weight.

        As w·(r/m) = 1, the Hessian times w is the negative gradient c, and the quadratic is ½vᵀHv − 2cᵀv.
        """
        free = np.array([s for s in range(len(w)) if s != held], dtype=np.intp)
        rest = 1.0 - (w[held] if held is not None else 0.0)
        if not len(free) or rest <= 0.0:
            return w
        value = self.loss(w)
        for _ in range(_MOST_STEPS):
            _, c, hessian = self.moments(w)
            linear = 2.0 * c[free]
            if held is not None:
                linear = linear - hessian[free, held] * w[held]
            own = hessian[np.ix_(free, free)]
            size = float(np.trace(own))
            root = np.linalg.cholesky(own + 1e-11 * size * np.eye(len(free)))
            heavy = 1e4 * np.sqrt(size)  # of the constraint that the weights sum to what is left
            matrix = np.vstack([root.T, np.full((1, len(free)), heavy)])
            found, _ = nnls(matrix, np.append(np.linalg.solve(root, linear), heavy * rest))
            step = np.zeros_like(w)
            step[free] = found * (rest / found.sum()) - w[free]
            gain = float(c @ step - 0.5 * step @ hessian @ step)
            if np.abs(step).max() < 1e-9 or gain < 1e-15:
                break
            length = 1.0
            while (new := self.loss(w + length * step)) > value and length > 1e-6:
                length *= 0.5
            if new > value:
                break
            w, value = w + length * step, new
        left = w[free]
        left = np.where(left < _FREE * left.sum(), 0.0, left)
        w = w.copy()
        w[free] = left * (rest / left.sum())
        return w

    def direction(self, w: Array, s: int, hessian: Array) -> Array:
        """Return d: weight s rises, the others that are above 0 give way."""
        others = np.flatnonzero((w > 0.0) & (np.arange(len(w)) != s))
        d = np.zeros_like(w)
        d[s] = 1.0
        if len(others):
            n = len(others)
            system = np.ones((n + 1, n + 1))
            system[:n, :n], system[n, n] = hessian[np.ix_(others, others)], 0.0
            d[others] = np.linalg.lstsq(system, np.append(-hessian[others, s], -1.0))[0][:n]
        return d

    def scores(self, w: Array, s: int) -> tuple[Array, float]:
        """Return the chains' efficient scores, shape (G,), and the curvature dᵀHd."""
        x, _, hessian = self.moments(w)
        d = self.direction(w, s, hessian)
        return -((d @ x).reshape(self.p.shape) * self.p).sum(axis=1), float(d @ hessian @ d)

    def statistic(self, w: Array, s: int) -> float:
        psi, _ = self.scores(w, s)
        total, spread = float(psi.sum()), self._spread(psi)
        if abs(total) <= 1e-9 * self.count and spread <= 1e-9 * np.sqrt(self.count):
            return 0.0  # every score is 0
        return total / spread if spread > 0 else float(np.copysign(1e6, total))

    def standard_error(self, w: Array, s: int) -> float:
        psi, curvature = self.scores(w, s)
        return self._spread(psi) / (self.count * curvature)

    def _spread(self, psi: Array) -> float:
        return float(np.sqrt(((psi - psi.mean()) ** 2).sum() * self.count / (self.count - 1)))

    def identified(self, w: Array) -> NDArray[np.bool_]:
        """Say which weights are the same in all sets of weights that give this mixture."""
        _, _, hessian = self.moments(w)
        values, vectors = np.linalg.eigh(hessian)
        same = vectors[:, values < _SAME * values[-1]]
        if not same.shape[1]:
            return np.ones(len(w), dtype=bool)
        found = np.ones(len(w), dtype=bool)
        for s in range(len(w)):
            if np.abs(same[s]).max() < 1e-6:
                continue
            for sign in (-1.0, 1.0):  # how far can this weight go, the others staying at 0 or above?
                end = linprog(sign * same[s], A_ub=-same, b_ub=np.maximum(w, 0.0), bounds=(-10.0, 10.0))
                found[s] &= end.status == 0 and abs(float(same[s] @ end.x)) < 1e-5
        return found


def _interval(problem: _Problem, weights: Array, s: int, quantile: float) -> tuple[float, float]:
    at = float(weights[s])
    start = weights

    def excess(t: float, sign: float) -> float:
        """Return how far beyond the quantile the score is at t: above 0 where t is rejected."""
        nonlocal start
        others = np.delete(start, s)
        w = np.insert(
            others * ((1.0 - t) / others.sum()) if others.sum() > 0 else np.full(len(others), (1.0 - t) / len(others)),
            s,
            t,
        )
        start = problem.solve(w, held=s)
        return sign * problem.statistic(start, s) - quantile

    def limit(sign: float) -> float:
        nonlocal start
        start = weights
        end = _END if sign > 0 else 0.0
        if (at >= 1.0 - _FREE and sign > 0) or (at < _FREE and sign < 0):
            return float(sign > 0)
        if at < _FREE and problem.statistic(weights, s) >= quantile:
            return 0.0  # the objective presses against the boundary: every value inside is rejected
        step = 0.01
        if _FREE <= at < 1.0 - _FREE:
            step = max(1.5 * quantile * problem.standard_error(weights, s), 1e-6)
        inside, ahead = at, at
        while True:
            ahead = min(ahead + step, end) if sign > 0 else max(ahead - step, end)
            if excess(ahead, sign) > 0:
                break
            if ahead == end:
                return float(sign > 0)
            inside, step = ahead, 2.0 * step
        if inside == at and not excess(at, sign) < 0:
            return at
        return float(brentq(excess, inside, ahead, args=(sign,), xtol=1e-6))

    return limit(-1.0), limit(1.0)
