"""What a model predicts by the counts of a prefix: pseudo-counts by context length and visits, and the simplex.

The first sequences of each chain of the risk design serve, and only estimators that are not rules themselves, with the
Bayes rule beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.experiments.likeness import LikenessDesign
from icl_estimators.experiments.prediction import predict
from icl_estimators.inference.intervals.mean import t_quantile
from icl_estimators.inference.trees import Summary
from icl_estimators.notes import Code, Note
from icl_estimators.pseudo_counts.objective import AddConstantObjective
from icl_estimators.sources import transition_counts

__all__ = ["PrefixSums", "map_block", "pseudo_count_map_table", "simplex_table"]

Array = NDArray[np.float64]

SIMPLEX_VISITS = (1, 4, 10)
_LENGTHS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 80, 100)
_VISITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40)
_GROUPS = 20  # of chains, for a jackknife
_FEWEST = 50  # prefixes


@dataclass(frozen=True, eq=False)
class PrefixSums(Summary):
    """Sums over prefixes of some chains.

    Attributes
    ----------
    mass : dict of (estimator, n, visits) to ndarray, shape (20, visits + 2)
        By group of chains: Σ p̂_w over the states with n_vw = 0 … visits, and last the number of prefixes.
    simplex : dict of (estimator, visits) to ndarray, shape (K, C, K + 1)
        By current token and count vector (in the order of :func:`count_vectors`): Σ p̂, and the number of prefixes.
    """

    mass: dict[tuple[str, int, int], Array]
    simplex: dict[tuple[str, int], Array]


def count_vectors(visits: int, n_states: int) -> NDArray[np.int64]:
    """Return all counts of K states that sum to `visits`, shape (C, K), in lexicographic order.

    Examples
    --------
    >>> count_vectors(1, 3).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    found = [vector for vector in product(range(visits + 1), repeat=n_states) if sum(vector) == visits]
    return np.array(found, dtype=np.int64)


def map_block(design: LikenessDesign, chains: range) -> PrefixSums:
    """Sum the models' predictions for `chains` by the counts of the prefix.

    Raises
    ------
    ContractError
        If a model fails or breaks the contract.
    """
    study, sequences = design.study, design.sequences_per_chain
    tokens = study.source.sample(
        chains, sequences_per_chain=sequences, length=study.length, seed=study.seed, purpose="risk"
    ).inputs
    k = study.n_states
    counts = transition_counts(tokens, k).astype(np.int64)
    seen = counts.sum(axis=-1)
    group = np.repeat(np.arange(chains.start, chains.stop) % _GROUPS, sequences)
    mass: dict[tuple[str, int, int], Array] = {}
    simplex: dict[tuple[str, int], Array] = {}
    for estimator in study.estimators:
        if estimator.name not in design.subjects:
            continue
        p = predict(estimator, tokens, chains, sequences).reshape(counts.shape)
        for n in (n for n in _LENGTHS if n <= study.length):
            for visits in (v for v in _VISITS if v < n):
                at = seen[:, n - 1] == visits
                index = group[at, None] * (visits + 2) + counts[at, n - 1]
                flat = np.bincount(index.ravel(), p[at, n - 1].ravel(), _GROUPS * (visits + 2))
                sums: Array = flat.astype(np.float64).reshape(_GROUPS, visits + 2)
                sums[:, -1] = np.bincount(group[at], minlength=_GROUPS)
                mass[estimator.name, n, visits] = sums
        if k == 3:
            for visits in SIMPLEX_VISITS:
                at = seen == visits
                simplex[estimator.name, visits] = _by_counts(tokens[at], counts[at], p[at], visits)
    for recipe, runs in study.recipes.items():
        mass |= {(recipe, n, v): _mean(mass, runs, n, v) for name, n, v in list(mass) if name == runs[0]}
        for visits in SIMPLEX_VISITS if k == 3 else ():
            simplex[recipe, visits] = np.mean([simplex[run, visits] for run in runs], axis=0)
    return PrefixSums(mass, simplex)


def _mean(mass: dict[tuple[str, int, int], Array], runs: tuple[str, ...], n: int, visits: int) -> Array:
    return np.asarray(np.mean([mass[run, n, visits] for run in runs], axis=0))


def _by_counts(current: NDArray[np.int64], counts: NDArray[np.int64], predictions: Array, visits: int) -> Array:
    vectors = count_vectors(visits, counts.shape[1])
    place = np.array([(visits + 1) ** power for power in range(counts.shape[1] - 1, -1, -1)])
    code = np.searchsorted(vectors @ place, counts @ place)
    index = current * len(vectors) + code
    size = counts.shape[1] * len(vectors)
    columns = [np.bincount(index, column, size) for column in predictions.T] + [np.bincount(index, minlength=size)]
    stacked = np.stack(columns, axis=-1).astype(np.float64)
    return np.asarray(stacked.reshape(counts.shape[1], len(vectors), counts.shape[1] + 1))


def pseudo_count_map_table(design: LikenessDesign, sums: PrefixSums) -> Table | None:
    """Return pseudo_count_map.csv: α̂ by context length and visits, with a jackknife over groups of chains."""
    rows: list[tuple[Cell, ...]] = []
    for subject in design.subjects:
        for (name, n, visits), mass in sums.mass.items():
            if name == subject:
                rows.append((name, n, visits, *_fit(mass, visits, design)))
    return Table.of("pseudo_count_map", rows) if rows else None


def _fit(mass: Array, visits: int, design: LikenessDesign) -> tuple[Cell, ...]:
    number = int(mass[:, -1].sum())
    if number < _FEWEST:
        return math.nan, math.nan, math.nan, number, None, Note(Code.FEW_PREFIXES, count=number, fewest=_FEWEST)
    alpha = _alpha(mass.sum(axis=0), visits, design.study.n_states)
    if not 0.0 < alpha < math.inf:
        why = Code.AT_ZERO if alpha == 0.0 else Code.AT_INFINITY if alpha == math.inf else Code.EQUAL_COUNTS
        return alpha, math.nan, math.nan, number, not math.isnan(alpha), Note(why)
    groups = np.flatnonzero(mass[:, -1] > 0)
    left_out = np.array([_alpha(np.delete(mass, g, axis=0).sum(axis=0), visits, design.study.n_states) for g in groups])
    if len(groups) < 2 or not ((left_out > 0) & np.isfinite(left_out)).all():
        return alpha, math.nan, math.nan, number, False, Note(Code.FEW_CHAINS, chains=len(groups))
    logs = np.log(left_out)
    se = math.sqrt((len(groups) - 1) / len(groups) * float(((logs - logs.mean()) ** 2).sum()))
    margin = t_quantile(0.5 + design.study.level / 2, len(groups) - 1) * se
    return alpha, alpha * math.exp(-margin), alpha * math.exp(margin), number, False, ""


def _alpha(mass: Array, visits: int, n_states: int) -> float:
    # The information of the predictions moves no minimum, so that it may be left at 0.
    return AddConstantObjective(np.append(mass, 0.0), np.array([visits]), n_states).minimum().alpha


def simplex_table(design: LikenessDesign, sums: PrefixSums) -> Table | None:
    """Return simplex.csv: the mean prediction by current token and counts; None unless K = 3."""
    rows: list[tuple[Cell, ...]] = []
    for (name, visits), found in sums.simplex.items():
        for vector, values in _cells(found, visits):
            current, total = vector[0], values[-1]
            for token, value in enumerate(values[:-1]):
                rows.append((name, visits, current, vector[1], token, value / total, round(float(total))))
    return Table.of("simplex", rows) if rows else None


def _cells(found: Array, visits: int) -> Iterator[tuple[tuple[int, str], Array]]:
    vectors = count_vectors(visits, found.shape[0])
    for current, index in product(range(found.shape[0]), range(len(vectors))):
        if found[current, index, -1] > 0:
            yield (current, " ".join(map(str, vectors[index]))), found[current, index]
