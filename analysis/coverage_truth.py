"""True values for the coverage study, by enumeration: every prefix with its probability, given the chain or not.

Nothing here uses the statistics whose intervals are tried. What has no closed form given a prefix (a variance given the
chain, a Hellinger distance) is a mean over many drawn chains of its exact value given the chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from icl_estimators.estimators import Estimator
from icl_estimators.inference import BIN_EDGES
from icl_estimators.sources import ChainLaw, all_prefixes, occurrence_counts, transition_counts

__all__ = ["CHAINS", "STATES", "Group", "Nested", "Prefixes", "Runs", "Spread", "predictions_of"]

Array = NDArray[np.float64]

STATES = 3
CHAINS = 20_000
"""Chains that exact values given the chain are averaged over."""

_BATCH = 2_000
_LOG_ALPHA = 18.0
_GRID = 721


@dataclass(frozen=True, eq=False)
class Group:
    """All prefixes of one length n, in lexicographic order, so that every third ends in the same state.

    Attributes
    ----------
    tokens : ndarray of int64, shape (3^n, n)
    counts : ndarray of int32, shape (3^n, 3)
        Transitions out of the last token.
    occurrences : ndarray of int, shape (3^n, 3)
    probability : ndarray, shape (3^n,)
        With the chain integrated out; uniform start, α = 1.
    """

    tokens: NDArray[np.int64]
    counts: NDArray[np.int32]
    occurrences: NDArray[np.int32]
    probability: Array

    @property
    def visits(self) -> NDArray[np.int64]:
        """n_v of each prefix."""
        return self.counts.sum(axis=1)


class Prefixes:
    """The prefixes of 1 … T tokens."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.groups: list[Group] = []
        for n in range(1, length + 1):
            tokens = np.concatenate(list(all_prefixes(STATES, n)))
            self.groups.append(
                Group(
                    tokens,
                    transition_counts(tokens, STATES)[:, -1],
                    occurrence_counts(tokens, STATES)[:, -1],
                    ChainLaw(STATES).prefix_probabilities(tokens)[:, -1],
                )
            )

    def pooled(self, predictions: Sequence[Array], by: str, value: int = 0) -> tuple[Array, Array, Array]:
        """Return predictions, counts and weights of the prefixes with n_v ≥ 1 of a group."""
        parts = []
        for n, (group, prediction) in enumerate(zip(self.groups, predictions, strict=True), start=1):
            kept = group.visits >= 1
            if by == "visits":
                kept &= group.visits == value
            elif by == "context-length":
                kept &= n == value
            parts.append((prediction[kept], group.counts[kept].astype(float), group.probability[kept]))
        first, second, third = (np.concatenate(part) for part in zip(*parts, strict=True))
        return first, second, third

    def pseudo_count(self, predictions: Sequence[Array], by: str, value: int = 0) -> tuple[float, float]:
        """Return α̂ of the population, the minimiser of Σ P(prefix) KL(p̂ ‖ add-α), and its share explained."""
        p, counts, weight = self.pooled(predictions, by, value)

        def loss(theta: float) -> float:
            smoothed = counts + np.exp(theta)
            return float(-(weight @ (p * np.log(smoothed / smoothed.sum(axis=1, keepdims=True))).sum(axis=1)))

        grid = np.linspace(-_LOG_ALPHA, _LOG_ALPHA, _GRID)
        best = int(np.argmin([loss(theta) for theta in grid]))
        around = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
        theta = float(minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-10}).x)
        information = float(weight @ _xlogx(p).sum(axis=1))
        uniform = information + float(weight.sum()) * np.log(STATES)
        return float(np.exp(theta)), 1.0 - (information + loss(theta)) / uniform

    def temperature(self, predictions: Sequence[Array]) -> float:
        """Return the γ of the population for softmax(γf)."""
        p, counts, weight = self.pooled(predictions, "overall")
        frequency = counts / counts.sum(axis=1, keepdims=True)

        def loss(gamma: float) -> float:
            logits = gamma * frequency
            normaliser = np.log(np.exp(logits).sum(axis=1))
            return float(weight @ (normaliser - (p * logits).sum(axis=1)))

        return float(minimize_scalar(loss, bounds=(-20.0, 40.0), method="bounded", options={"xatol": 1e-10}).x)

    def unseen_kl(self, predictions: Sequence[Array]) -> float:
        """Return the mean KL(p̂ ‖ uniform) where n_v = 0."""
        total = number = 0.0
        for group, prediction in zip(self.groups, predictions, strict=True):
            kept = group.visits == 0
            kl = _xlogx(prediction[kept]).sum(axis=1) + np.log(STATES)
            total += float(group.probability[kept] @ kl)
            number += float(group.probability[kept].sum())
        return total / number

    def prediction_at_count(self, predictions: Sequence[Array], visits: int, count: int) -> float:
        """Return the mean of p̂_w where n_v = `visits` and n_vw = `count`; NaN if that cannot be."""
        total = number = 0.0
        for group, prediction in zip(self.groups, predictions, strict=True):
            kept = (group.visits == visits)[:, None] & (group.counts == count)
            weight = np.broadcast_to(group.probability[:, None], kept.shape)[kept]
            total += float(weight @ prediction[kept])
            number += float(weight.sum())
        return total / number if number else float("nan")

    def regret(self, predictions: Sequence[Array], visits: int | None = None) -> float:
        """Return the mean of KL(q ‖ p̂) over prefixes, or over those with n_v = `visits`."""
        total = number = 0.0
        for group, prediction in zip(self.groups, predictions, strict=True):
            q = (group.counts + 1.0) / (group.visits[:, None] + STATES)
            kept = np.full(len(q), True) if visits is None else group.visits == visits
            kl = (q * (np.log(q) - np.log(prediction))).sum(axis=1)
            total += float(group.probability[kept] @ kl[kept])
            number += float(group.probability[kept].sum())
        return total / number

    def rule_kl(self, predictions: Sequence[Array], rules: Sequence[Array]) -> float:
        """Return the mean KL(p̂ ‖ rule) over prefixes with n_v ≥ 1."""
        total = number = 0.0
        for group, prediction, rule in zip(self.groups, predictions, rules, strict=True):
            kept = group.visits >= 1
            with np.errstate(divide="ignore"):
                kl = _xlogx(prediction[kept]).sum(axis=1) - (prediction[kept] * np.log(rule[kept])).sum(axis=1)
            total += float(group.probability[kept] @ kl)
            number += float(group.probability[kept].sum())
        return total / number


def _xlogx(p: Array) -> Array:
    return p * np.log(np.where(p > 0, p, 1.0))


def predictions_of(estimator: Estimator, prefixes: Prefixes) -> list[Array]:
    """Return an estimator's prediction after each prefix, a (3^n, 3) array for n = 1 … T."""
    whole = estimator.predict_proba(prefixes.groups[-1].tokens)
    return [whole[:: STATES ** (prefixes.length - n), n - 1].copy() for n in range(1, prefixes.length + 1)]


def _chains(prefixes: Prefixes, n_chains: int, seed: int) -> Iterator[tuple[Array, list[Array]]]:
    """Yield transition matrices and, for each n, the probability of each prefix given the matrix, (m, 3^n)."""
    rng = np.random.default_rng(seed)
    for first in range(0, n_chains, _BATCH):
        matrix = rng.dirichlet(np.ones(STATES), (min(_BATCH, n_chains - first), STATES))
        joint = [np.full((len(matrix), STATES), 1.0 / STATES)]
        for group in prefixes.groups[1:]:
            step = matrix[:, group.tokens[:, -2], group.tokens[:, -1]]
            joint.append(np.repeat(joint[-1], STATES, axis=1) * step)
        yield matrix, joint


@dataclass(frozen=True, eq=False)
class Nested:
    """What needs the chain: each of shape (T,), `signed_bias` (T + 1, 10) with all lengths pooled in the last row."""

    values: dict[str, Array]
    signed_bias: Array
    visits: Array

    @classmethod
    def of(cls, predictions: Sequence[Array], prefixes: Prefixes, n_chains: int = CHAINS, seed: int = 71) -> Nested:
        """Average over drawn chains what is exact given the chain."""
        length, bins = prefixes.length, len(BIN_EDGES) - 1
        names = ("bias_squared", "variance", "kl_bias_nats", "kl_variance_nats", "hellinger")
        sums = {name: np.zeros(length) for name in names}
        excess, number = np.zeros((2, length, bins))
        visits: list[Array] = []
        for matrix, joints in _chains(prefixes, n_chains, seed):
            pi = np.empty((len(matrix), length, STATES))
            for n, (joint, prediction) in enumerate(zip(joints, predictions, strict=True)):
                with np.errstate(divide="ignore"):
                    log_p = np.log(prediction)
                for v in range(STATES):
                    mass, p, truth = joint[:, v::STATES], prediction[v::STATES], matrix[:, v]
                    share = mass.sum(axis=1)
                    pi[:, n, v] = share
                    mean = mass @ p / share[:, None]
                    spread = mass @ (p**2).sum(axis=1) / share - (mean**2).sum(axis=1)
                    sums["bias_squared"][n] += share @ ((mean - truth) ** 2).sum(axis=1)
                    sums["variance"][n] += share @ spread
                    cosine = np.sqrt(truth) @ np.sqrt(p).T
                    sums["hellinger"][n] += (mass * np.sqrt(np.maximum(1.0 - cosine, 0.0))).sum()
                    if np.isfinite(log_p).all():
                        g = mass @ log_p[v::STATES] / share[:, None]
                        log_z = np.log(np.exp(g).sum(axis=1))
                        sums["kl_variance_nats"][n] -= share @ log_z
                        bias = (truth * (np.log(truth) - g)).sum(axis=1) + log_z
                        sums["kl_bias_nats"][n] += share @ bias
                    which = np.minimum(np.searchsorted(BIN_EDGES, truth, side="right") - 1, bins - 1)
                    excess[n] += np.bincount(which.ravel(), ((mean - truth) * share[:, None]).ravel(), bins)
                    number[n] += np.bincount(which.ravel(), np.repeat(share, STATES), bins)
            visits.append(pi)
        pooled = np.concatenate([excess, excess.sum(axis=0, keepdims=True)])
        signed = pooled / np.concatenate([number, number.sum(axis=0, keepdims=True)])
        values = {name: total / n_chains for name, total in sums.items()}
        if not all((p > 0).all() for p in predictions):
            values["kl_bias_nats"] = values["kl_variance_nats"] = np.full(length, np.nan)
        return cls(values, signed, np.concatenate(visits))

    def split_weight(self, n_sequences: int) -> Array:
        """Return the expected share of sequences in cells with m ≥ 2."""
        shared = 1.0 - (1.0 - self.visits) ** (n_sequences - 1)
        return np.asarray((self.visits * shared).sum(axis=2).mean(axis=0))


class Runs:
    """A recipe of training: a rule with one random parameter θ for each run; values at any θ by interpolation.

    Parameters
    ----------
    by_node : sequence of sequences of ndarray
        Predictions at each node, as :func:`predictions_of` returns them.
    nodes : ndarray, shape (N,)
        Chebyshev nodes of θ.
    prefixes : Prefixes
    """

    def __init__(
        self, by_node: Sequence[Sequence[Array]], nodes: Array, prefixes: Prefixes, n_chains: int = CHAINS
    ) -> None:
        self.nodes = nodes
        size, length = len(nodes), prefixes.length
        self._gram = np.zeros((length, size, size))  # E Σ_v π_v Σ_w m_a m_b
        self._cross = np.zeros((length, size))  # E Σ_v π_v Σ_w m_a P
        self._truth = np.zeros(length)
        self._square = np.zeros((length, size))  # E |p̂_a|²
        for n, group in enumerate(prefixes.groups):
            for a in range(size):
                self._square[n, a] = group.probability @ (by_node[a][n] ** 2).sum(axis=1)
        for matrix, joints in _chains(prefixes, n_chains, 72):
            for n, joint in enumerate(joints):
                for v in range(STATES):
                    mass, truth = joint[:, v::STATES], matrix[:, v]
                    share = mass.sum(axis=1)
                    columns = np.concatenate([by_node[a][n][v::STATES] for a in range(size)], axis=1)
                    mean = (mass @ columns).reshape(len(matrix), size, STATES)
                    scaled = (mean / np.sqrt(share)[:, None, None]).transpose(1, 0, 2).reshape(size, -1)
                    self._gram[n] += scaled @ scaled.T / n_chains
                    self._cross[n] += np.einsum("maw,mw->a", mean, truth) / n_chains
                    self._truth[n] += share @ (truth**2).sum(axis=1) / n_chains

    def weights(self, theta: Array) -> Array:
        """Return the Lagrange weights of the nodes, shape (len(theta), N)."""
        nodes = self.nodes
        gap = nodes[:, None] - nodes[None]
        np.fill_diagonal(gap, 1.0)
        barycentric = 1.0 / gap.prod(axis=1)
        away = np.asarray(theta, dtype=float)[:, None] - nodes
        exact = np.abs(away) < 1e-13
        ratio = barycentric / np.where(exact, 1.0, away)
        return np.where(exact.any(axis=1, keepdims=True), exact, ratio / ratio.sum(axis=1, keepdims=True))

    def split(self, theta: Array, share: Array) -> dict[str, Array]:
        """Return bias², prompt and training variance if run j has θ_j with probability `share`_j, shape (T,) each."""
        at = self.weights(theta)
        average = share @ at
        own = np.einsum("ja,nab,jb->nj", at, self._gram, at)
        shared = np.einsum("a,nab,b->n", average, self._gram, average)
        bias = shared - 2.0 * self._cross @ average + self._truth
        variance = (self._square @ at.T - own) @ share
        training = own @ share - shared
        return {"bias_squared": bias, "variance": variance, "training_variance": training}


@dataclass(frozen=True, eq=False)
class Spread:
    """θ ~ N(0, sd²) as nodes and weights of Gauss–Hermite quadrature."""

    sd: float

    @property
    def nodes(self) -> tuple[Array, Array]:
        """θ and their probabilities."""
        points, weights = np.polynomial.hermite_e.hermegauss(15)
        return self.sd * points, weights / weights.sum()
