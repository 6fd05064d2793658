"""Likelihood-ratio tests of transition counts: a stated matrix, and the order of the chain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import chi2, chi2_contingency

from icl_estimators.sources.observed.corpus import Corpus

__all__ = ["LikelihoodRatio", "order_tests", "stated_matrix_test"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class LikelihoodRatio:
    """A test of G² = 2 Σ n log(n/expected) against χ².

    Attributes
    ----------
    statistic : float
        inf if something occurred that the null hypothesis excludes; NaN if nothing can be tested.
    degrees_of_freedom : int
    p_value : float
    n_transitions : int
    small_expected : float
        Share of the cells with an expected count below 5.
    impossible : tuple of (int, int, int), or None
        A transition v → w that the null hypothesis excludes, and how often it occurred.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    n_transitions: int
    small_expected: float
    impossible: tuple[int, int, int] | None = None


def stated_matrix_test(counts: Integers, matrix: NDArray[np.float64]) -> LikelihoodRatio:
    """Test whether transitions come from a stated matrix (Anderson & Goodman 1957).

    Parameters
    ----------
    counts : ndarray of int64, shape (K, K)
        n_vw.
    matrix : ndarray of float64, shape (K, K)
        P_vw, rows sum to 1.

    Notes
    -----
    Each state that was left has as many degrees of freedom as its row has entries above 0, less 1.

    Examples
    --------
    >>> found = stated_matrix_test(np.array([[30, 10], [12, 28]]), np.full((2, 2), 0.5))
    >>> round(found.statistic, 4), found.degrees_of_freedom, round(found.p_value, 6)
    (17.0476, 2, 0.000199)
    """
    visits = counts.sum(axis=1)
    expected = visits[:, None] * matrix
    tested = (visits[:, None] > 0) & (matrix > 0)
    excluded = np.argwhere((matrix == 0) & (counts > 0))
    freedom = int(tested.sum() - (visits > 0).sum())
    small = float((expected[tested] < 5).mean()) if tested.any() else math.nan
    total = int(counts.sum())
    if len(excluded):
        v, w = excluded[0].tolist()
        return LikelihoodRatio(math.inf, freedom, 0.0, total, small, (v, w, int(counts[v, w])))
    if freedom == 0:
        return LikelihoodRatio(math.nan, 0, math.nan, total, small)
    ratio = np.divide(counts, expected, out=np.ones(counts.shape), where=tested)
    statistic = 2.0 * float(xlogy(counts, ratio).sum())
    return LikelihoodRatio(statistic, freedom, float(chi2.sf(statistic, freedom)), total, small)


def order_tests(corpus: Corpus) -> Iterator[tuple[str, LikelihoodRatio]]:
    """Test order 0 against 1 and order 1 against 2, over all sequences together.

    Both are tests of independence in contingency tables (Hoel 1954): of the current and the next token; and, for each
    current token, of the one before and the next.

    Examples
    --------
    >>> corpus = Corpus.of([np.array([0, 1] * 20)], 2)
    >>> [(name, round(found.p_value, 3)) for name, found in order_tests(corpus)]
    [('order_0_against_1', 0.0), ('order_1_against_2', nan)]
    """
    yield "order_0_against_1", _independence([corpus.transition_matrix()])
    places = np.flatnonzero(corpus.places >= 2)
    before, current, after = (corpus.tokens[places - back] for back in (2, 1, 0))
    by_current = np.argsort(current, kind="stable")
    limits = np.searchsorted(current[by_current], np.arange(corpus.n_states + 1))
    tables = []
    for first, end in zip(limits[:-1].tolist(), limits[1:].tolist(), strict=True):
        chosen = by_current[first:end]
        if len(chosen):
            rows, r = np.unique(before[chosen], return_inverse=True)
            columns, c = np.unique(after[chosen], return_inverse=True)
            table = np.bincount(r * len(columns) + c, minlength=len(rows) * len(columns))
            tables.append(table.reshape(len(rows), len(columns)))
    yield "order_1_against_2", _independence(tables)


def _independence(tables: list[Integers]) -> LikelihoodRatio:
    statistic, freedom, small, cells = 0.0, 0, 0, 0
    for table in tables:
        occurring = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(occurring.shape) < 2:
            continue
        found = chi2_contingency(occurring, correction=False, lambda_="log-likelihood")
        statistic += float(found.statistic)
        freedom += int(found.dof)
        small += int((found.expected_freq < 5).sum())
        cells += occurring.size
    total = int(sum(table.sum() for table in tables))
    if not freedom:
        return LikelihoodRatio(math.nan, 0, math.nan, total, math.nan)
    return LikelihoodRatio(statistic, freedom, float(chi2.sf(statistic, freedom)), total, small / cells)
