"""Regret by visits to the current token and by the entropy rate of the chain, from the draws of the risk design."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.inference import RatioMoments, ratio_intervals
from icl_estimators.inference.trees import Summary
from icl_estimators.notes import Code, Note
from icl_estimators.sources.start import stationary_distribution
from icl_estimators.validation import InputError

__all__ = ["RegretGroups", "entropy_rates", "entropy_table", "group_regret", "visits_edges", "visits_table"]

Array = NDArray[np.float64]

ENTROPY_BINS = 10
_VISITS = (*range(12), 16, 21, 31, 41, 61, 101, 201, 401)


@dataclass(frozen=True, eq=False)
class RegretGroups(Summary):
    """Regret of one estimator by groups of prefixes and of chains, from some chains.

    Attributes
    ----------
    visits : RatioMoments
        Σ finite regret over the number of prefixes, by group of visits.
    entropy : RatioMoments
        Finite regret of the chain, by bin of its entropy rate.
    prefixes, total : ndarray of float64, shape (V,)
        Number of prefixes and Σ regret, inf included, by group of visits.
    infinite_visits, infinite_entropy : ndarray of int64
        Chains with an infinite regret, by group.
    entropy_sum : ndarray of float64, shape (B,)
        Σ entropy rate of the chains, by bin.
    """

    visits: RatioMoments
    entropy: RatioMoments
    prefixes: Array
    total: Array
    infinite_visits: NDArray[np.int64]
    infinite_entropy: NDArray[np.int64]
    entropy_sum: Array


def visits_edges(length: int) -> NDArray[np.int64]:
    """Return the first n_v of each group: each number up to 10, then groups that widen; the last is open.

    Examples
    --------
    >>> visits_edges(100).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 21, 31, 41, 61]
    """
    return np.array([edge for edge in _VISITS if edge < length], dtype=np.int64)


def entropy_rates(transition: Array) -> Array:
    """Return −Σ_v π_v Σ_w P_vw log P_vw of each chain (R, K, K) in nats, shape (R,); NaN without a unique π.

    Examples
    --------
    >>> entropy_rates(np.full((1, 2, 2), 0.5)).round(6).tolist()
    [0.693147]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = -np.where(transition > 0, transition * np.log(transition), 0.0).sum(axis=2)
    try:
        return np.asarray((stationary_distribution(transition) * rows).sum(axis=1))
    except InputError:  # some chain has none
        return np.array([_rate(chain, row) for chain, row in zip(transition, rows, strict=True)])


def _rate(chain: Array, row: Array) -> float:
    try:
        return float(stationary_distribution(chain[None])[0] @ row)
    except InputError:
        return float("nan")


def group_regret(regret: Array, visits: NDArray[np.int64], rates: Array, n_states: int, length: int) -> ChainGroups:
    """Sum one estimator's regret (R, S, T) by group, one row for each chain.

    Parameters
    ----------
    regret : ndarray of float64, shape (R, S, T)
    visits : ndarray of int64, shape (R, S, T)
        n_v.
    rates : ndarray of float64, shape (R,)
    n_states, length : int
    """
    edges = visits_edges(length)
    chains, bins = len(regret), len(edges)
    group = np.searchsorted(edges, visits, side="right") - 1
    place = (np.arange(chains)[:, None, None] * bins + group).ravel()
    flat = regret.ravel()
    finite = np.isfinite(flat)
    size = chains * bins
    sums = np.bincount(place, np.where(finite, flat, 0.0), size).reshape(chains, bins)
    number = np.bincount(place, minlength=size).reshape(chains, bins).astype(np.float64)
    infinite = np.bincount(place[~finite], minlength=size).reshape(chains, bins) > 0
    known = ~np.isnan(rates)
    within = np.clip(np.where(known, rates, 0.0) / np.log(n_states) * ENTROPY_BINS, 0, ENTROPY_BINS - 1).astype(int)
    member = ((within[:, None] == np.arange(ENTROPY_BINS)) & known[:, None]).astype(np.float64)
    return ChainGroups(
        np.asarray(sums, dtype=np.float64),
        number,
        infinite,
        regret.mean(axis=(1, 2)),
        member,
        np.where(known, rates, 0.0),
    )


@dataclass(frozen=True, eq=False)
class ChainGroups:
    """One row for each chain: Σ finite regret, number and infinities by visits; mean regret and bin of entropy."""

    sums: Array
    number: Array
    infinite: NDArray[np.bool_]
    mean: Array
    member: Array
    rates: Array

    @staticmethod
    def average(runs: list[ChainGroups]) -> ChainGroups:
        """Average the regret of several training runs on the same draws."""
        first = runs[0]
        return ChainGroups(
            np.mean([run.sums for run in runs], axis=0),
            first.number,
            np.any([run.infinite for run in runs], axis=0),
            np.mean([run.mean for run in runs], axis=0),
            first.member,
            first.rates,
        )

    def moments(self, unit: slice) -> RegretGroups:
        """Return the moments over the chains of a unit."""
        sums, number, infinite = self.sums[unit], self.number[unit], self.infinite[unit]
        mean, member = self.mean[unit, None], self.member[unit]
        lost = ~np.isfinite(mean)
        return RegretGroups(
            RatioMoments.of(sums, number),
            RatioMoments.of(np.where(lost, 0.0, mean) * member, member),
            number.sum(axis=0),
            np.where(infinite, np.inf, sums).sum(axis=0),
            infinite.sum(axis=0),
            (lost * member > 0).sum(axis=0),
            self.rates[unit] @ member,
        )


def _numbers(
    moments: RatioMoments, infinite: NDArray[np.int64], level: float, empty: str
) -> Iterator[tuple[tuple[float, float, float, float], int, str]]:
    """Yield estimate, standard error and limits of each group, the chains with such a group, and the note."""
    found = ratio_intervals(moments, level=level, empty=empty)
    for i, lost in enumerate(infinite):
        chains = int(moments.contributing[i])
        if lost:
            yield (np.inf, np.nan, np.nan, np.nan), chains, Note(Code.INFINITE_REGRET_HERE, chains=int(lost))
        else:
            numbers = (found.estimate[i], found.se[i], found.low[i], found.high[i])
            yield tuple(map(float, numbers)), chains, found.notes[i]  # type: ignore[misc]


def visits_table(names: tuple[str, ...], groups: dict[str, RegretGroups], length: int, level: float) -> Table:
    """Return regret_by_visits.csv."""
    edges = visits_edges(length)
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        of = groups[name]
        whole = float(of.total.sum())
        for i, (numbers, chains, note) in enumerate(
            _numbers(of.visits, of.infinite_visits, level, Note(Code.NO_SUCH_VISITS))
        ):
            high = int(edges[i + 1]) - 1 if i + 1 < len(edges) else None
            share = float(of.total[i] / whole) if 0.0 < whole < np.inf else np.nan
            why = note or (
                ""
                if np.isfinite(share)
                else Note(Code.NO_SHARE_OF_NOTHING if whole == 0 else Code.NO_SHARE_OF_INFINITE)
            )
            part = float(of.prefixes[i] / of.prefixes.sum())
            rows.append((name, int(edges[i]), high, *numbers, part, share, chains, why))
    return Table.of("regret_by_visits", rows)


def entropy_table(names: tuple[str, ...], groups: dict[str, RegretGroups], n_states: int, level: float) -> Table:
    """Return regret_by_entropy.csv."""
    edges = np.linspace(0.0, np.log(n_states), ENTROPY_BINS + 1)
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        of = groups[name]
        for i, (numbers, chains, note) in enumerate(
            _numbers(of.entropy, of.infinite_entropy, level, Note(Code.NO_SUCH_ENTROPY))
        ):
            middle = float(of.entropy_sum[i] / chains) if chains else np.nan
            rows.append((name, float(edges[i]), float(edges[i + 1]), middle, *numbers, chains, note))
    return Table.of("regret_by_entropy", rows)
