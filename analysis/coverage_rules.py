"""Estimators whose true values are known: smoothing rules with noise that does not move their parameters, and runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.coverage_truth import STATES, Group, Prefixes
from icl_estimators import get
from icl_estimators.sources import occurrence_counts, transition_counts

__all__ = ["FAMILY_RULES", "Run", "TableRule", "family_rule", "noisy"]

Array = NDArray[np.float64]


class TableRule:
    """Looks its predictions up by prefix; add-one after prefixes that are longer than its tables.

    Parameters
    ----------
    name : str
    tables : sequence of ndarray, shape (3^n, 3) for n = 1 …
    """

    n_states = STATES

    def __init__(self, name: str, tables: Sequence[Array]) -> None:
        self.name = name
        self.tables = tuple(tables)

    def predict_proba(self, tokens: ArrayLike) -> Array:
        """Predict after every prefix: (N, T) integers in [0, 3) → (N, T, 3) float64."""
        read = np.asarray(tokens, dtype=np.int64)
        out = get("add-one").predict_proba(read)
        code = np.zeros(len(read), dtype=np.int64)
        for n, table in enumerate(self.tables[: read.shape[1]]):
            code = code * STATES + read[:, n]
            out[:, n] = table[code]
        return out


class Run:
    """One training run of a toy recipe: 0.8 add-e^θ + 0.2 unigram, θ random.

    Parameters
    ----------
    name : str
        ``recipe:run``.
    theta : float
    """

    n_states = STATES

    def __init__(self, name: str, theta: float) -> None:
        self.name, self.theta = name, theta
        self.recipe = name.partition(":")[0]

    def predict_proba(self, tokens: ArrayLike) -> Array:
        """Predict after every prefix: (N, T) integers in [0, 3) → (N, T, 3) float64."""
        read = np.asarray(tokens, dtype=np.int64)
        counts = transition_counts(read, STATES) + np.exp(self.theta)
        seen = occurrence_counts(read, STATES) + 1.0
        parts = [part / part.sum(axis=-1, keepdims=True) for part in (counts, seen)]
        return np.asarray(0.8 * parts[0] + 0.2 * parts[1])


def _decayed(group: Group, decay: float) -> Array:
    """Σ d^age over the transitions out of the last token, age 0 for the last transition of the prefix."""
    tokens, n = group.tokens, group.tokens.shape[1]
    total = np.zeros(group.counts.shape)
    for j in range(1, n):
        same = tokens[:, j - 1] == tokens[:, -1]
        np.add.at(total, (np.flatnonzero(same), tokens[same, j]), decay ** (n - 1 - j))
    return total


def _unigram(group: Group) -> Array:
    seen = group.occurrences + 1.0
    return np.asarray(seen / seen.sum(axis=1, keepdims=True))


def _law(weights: NDArray[np.floating]) -> Array:
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1.0 / STATES))


def _current(group: Group) -> Array:
    return np.eye(STATES)[group.tokens[:, -1]]


def _frequency(group: Group) -> Array:
    return group.counts / np.maximum(group.visits, 1)[:, None]


FAMILY_RULES: dict[str, tuple[tuple[str, ...], Callable[[Group, Sequence[float]], Array]]] = {
    "add-constant": (("pseudo_count",), lambda g, p: _law(g.counts + p[0])),
    "affine": (
        ("pseudo_count", "pseudo_count_per_visit"),
        lambda g, p: _law(g.counts + p[0] + p[1] * g.visits[:, None]),
    ),
    "bonus": (("pseudo_count", "bonus"), lambda g, p: _law(g.counts + p[0] + p[1] * _current(g))),
    "unigram-mixture": (
        ("pseudo_count", "unigram_share"),
        lambda g, p: (1.0 - p[1]) * _law(g.counts + p[0]) + p[1] * _unigram(g),
    ),
    "recency": (("pseudo_count", "decay"), lambda g, p: _law(_decayed(g, p[1]) + p[0])),
    "asymmetric": (
        tuple(f"pseudo_count_{state}" for state in range(STATES)),
        lambda g, p: _law(g.counts + np.asarray(p)),
    ),
    "temperature": (("gamma",), lambda g, p: _law(np.exp(p[0] * _frequency(g)))),
}
"""By family: names of its parameters, and its prediction after each prefix of a group."""


def family_rule(family: str, values: Sequence[float], prefixes: Prefixes) -> list[Array]:
    """Return a family's predictions, a (3^n, 3) array for n = 1 … T."""
    return [FAMILY_RULES[family][1](group, values) for group in prefixes.groups]


def noisy(
    name: str, at: dict[str, tuple[float, ...]], prefixes: Prefixes, *, scale: float = 0.5, seed: int = 0
) -> TableRule:
    """Return a rule plus noise of each prefix's own that leaves the rule's parameters where they are.

    The noise is orthogonal to the scores of the named families, so that each family's parameters at the population's
    least KL are exactly those given, on the boundary or not.

    Parameters
    ----------
    name : str
    at : dict of family to parameters
        All must predict the same: add-one is affine with (1, 0), a mixture with (1, 0) …
    prefixes : Prefixes
    scale : float
        Largest relative noise, before it is made orthogonal.
    seed : int
    """
    family = next(iter(at))
    base = np.concatenate(family_rule(family, at[family], prefixes))
    for other, values in at.items():
        np.testing.assert_allclose(np.concatenate(family_rule(other, values, prefixes)), base, atol=1e-12)
    probability = np.concatenate([group.probability for group in prefixes.groups])
    probability = probability * np.concatenate([group.visits >= 1 for group in prefixes.groups])
    relative = np.random.default_rng(seed).uniform(-scale, scale, base.shape)
    noise = base * (relative - (base * relative).sum(axis=1, keepdims=True))
    scores = []
    for other, values in at.items():
        for index in range(len(values)):
            step = np.zeros(len(values))
            step[index] = 1e-6
            near = [
                np.concatenate(family_rule(other, (values + side * step).tolist(), prefixes)) for side in (-1.0, 1.0)
            ]
            scores.append((np.log(near[1]) - np.log(near[0])) / 2e-6)
    fisher = np.array([[probability @ (base * a * b).sum(axis=1) for b in scores] for a in scores])
    slope = np.array([probability @ (noise * a).sum(axis=1) for a in scores])
    share = np.linalg.lstsq(fisher, slope, rcond=1e-9)[0]
    # a second pass takes away what differentiation by steps has left
    noise = noise - base * sum(
        c * (s - (base * s).sum(axis=1, keepdims=True)) for c, s in zip(share, scores, strict=True)
    )
    law = base + noise
    assert law.min() > 0, "the noise is too large for this rule"
    ends = np.cumsum([len(group.tokens) for group in prefixes.groups])[:-1]
    return TableRule(name, np.split(law, ends))
