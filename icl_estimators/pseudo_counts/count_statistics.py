"""What an add-α fit needs from many predictions: sums by count, one row per chain.

With r_w = (n_vw + α)/(n_v + Kα) the objective of an estimator p̂ over a group of prefixes is

    Σ KL(p̂ ‖ r) = Σ Σ_w p̂_w log p̂_w − Σ_c W_c log(c + α) + Σ_n N_n log(n + Kα),

W_c the probability that p̂ puts on states with n_vw = c, and N_n the number of prefixes with n_v = n. So a few
hundred sums per chain are sufficient, and their moments over chains (:class:`PseudoCountMoments`) are sufficient for
any number of chains, because every score is linear in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from icl_estimators.inference.moments import Moments
from icl_estimators.validation import InputError, positive_int

__all__ = [
    "GROUPINGS",
    "CountStatistics",
    "Grouping",
    "Predictions",
    "PrefixGroups",
    "PseudoCountMoments",
    "count_statistics",
    "fitted_values",
    "prediction_sums",
    "unseen_sums",
]

Array = NDArray[np.float64]

Grouping = Literal["overall", "context-length", "visits"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
"""Which prefixes are fitted together: all with n_v ≥ 1, those of one length, those of one n_v."""

_PER_DECADE = 20


@dataclass(frozen=True, slots=True, eq=False)
class CountStatistics:
    """Sums over the prefixes of one group with n_v ≥ 1, one row for each of R chains.

    Attributes
    ----------
    mass : ndarray of float64, shape (R, C)
        ``[g, c]`` is Σ p̂_w over prefixes and states with n_vw = c.
    prefixes : ndarray of float64, shape (R, V)
        ``[g, j]`` is the number of prefixes with n_v = ``visits[j]``.
    negative_entropy : ndarray of float64, shape (R,)
        Σ Σ_w p̂_w log p̂_w, in nats.
    visits : ndarray of int64, shape (V,)
        Increasing, at least 1.
    n_states : int
        K.
    """

    mass: Array
    prefixes: Array
    negative_entropy: Array
    visits: NDArray[np.int64]
    n_states: int

    @property
    def rows(self) -> Array:
        """Everything side by side, shape (R, C + V + 1)."""
        return np.concatenate([self.mass, self.prefixes, self.negative_entropy[:, None]], axis=1)

    def plus(self, other: CountStatistics) -> CountStatistics:
        """Return the sums over the prefixes of both, of the same group and the same R chains.

        Raises
        ------
        InputError
            If they are of different groups.
        """
        if other.mass.shape != self.mass.shape or not np.array_equal(other.visits, self.visits):
            raise InputError("statistics of different groups of prefixes cannot be added")
        return CountStatistics(
            self.mass + other.mass,
            self.prefixes + other.prefixes,
            self.negative_entropy + other.negative_entropy,
            self.visits,
            self.n_states,
        )

    @staticmethod
    def average(runs: Sequence[CountStatistics]) -> CountStatistics:
        """Average over training runs on the same sequences: the statistics of their pooled objective, over J.

        Raises
        ------
        InputError
            If there are none, or they differ in chains or in the group.
        """
        if not runs:
            raise InputError("no statistics to average: give those of at least one training run")
        first = runs[0]
        for other in runs[1:]:
            if other.mass.shape != first.mass.shape or not np.array_equal(other.prefixes, first.prefixes):
                raise InputError("statistics of different prefixes cannot be averaged")
        return CountStatistics(
            np.mean([run.mass for run in runs], axis=0),
            first.prefixes,
            np.mean([run.negative_entropy for run in runs], axis=0),
            first.visits,
            first.n_states,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PseudoCountMoments:
    """Moments over chains of :attr:`CountStatistics.rows`: those chains that have a prefix in the group.

    Attributes
    ----------
    moments : Moments
        With covariances; coordinates as in :attr:`CountStatistics.rows`.
    visits : ndarray of int64, shape (V,)
    n_states : int
        K.
    """

    moments: Moments
    visits: NDArray[np.int64]
    n_states: int

    @classmethod
    def of(cls, statistics: CountStatistics) -> PseudoCountMoments | None:
        """Return the moments of the chains that contribute; None if none does."""
        return cls.of_parts(statistics, [slice(None)])[0]

    @classmethod
    def of_parts(cls, statistics: CountStatistics, parts: Sequence[slice]) -> list[PseudoCountMoments | None]:
        """Return the moments of several groups of the chains, each as :meth:`of` would."""
        contributes: NDArray[np.bool_] = statistics.prefixes.sum(axis=1) > 0
        rows = statistics.rows
        return [
            cls(Moments.of(rows[part][contributes[part]]), statistics.visits, statistics.n_states)
            if contributes[part].any()
            else None
            for part in parts
        ]

    def merge(self, other: PseudoCountMoments) -> PseudoCountMoments:
        """Return the moments of both groups of chains together.

        Raises
        ------
        InputError
            If they are of different groups of prefixes.
        """
        if self.n_states != other.n_states or not np.array_equal(self.visits, other.visits):
            raise InputError("statistics of different groups of prefixes cannot be merged")
        return PseudoCountMoments(self.moments.merge(other.moments), self.visits, self.n_states)

    @property
    def n_chains(self) -> int:
        """G, the chains with a prefix in the group."""
        return self.moments.count


def fitted_values(by: Grouping, length: int, *, every_up_to: int = 100) -> tuple[int, ...]:
    """Return the groups that are fitted: lengths 1 … T, visits 1 … T − 1, or the one group of all (0).

    Every value up to a limit; beyond it 20 to the decade, and the last: memory would grow with T³ otherwise.

    Parameters
    ----------
    by : {"overall", "context-length", "visits"}
    length : int
        T.
    every_up_to : int
        The limit.

    Raises
    ------
    InputError
        If `by` is not a grouping, or `length` or `every_up_to` < 1.

    Examples
    --------
    >>> fitted_values("visits", 5), fitted_values("context-length", 3), fitted_values("overall", 100)
    ((1, 2, 3, 4), (1, 2, 3), (0,))
    >>> fitted_values("visits", 100, every_up_to=20)[19:]
    (20, 22, 25, 28, 32, 36, 40, 45, 50, 56, 63, 71, 80, 89, 99)
    """
    if by not in GROUPINGS:
        raise InputError(f"by must be one of {', '.join(GROUPINGS)}, not {by!r}")
    length = positive_int(length, "length")
    limit = positive_int(every_up_to, "every_up_to")
    if by == "overall":
        return (0,)
    last = length if by == "context-length" else length - 1
    values = list(range(1, min(last, limit) + 1))
    step = 0
    while values and values[-1] < last:
        step += 1
        values.append(min(last, max(values[-1] + 1, math.ceil(limit * 10 ** (step / _PER_DECADE) - 0.5))))
    return tuple(values)


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predictions that sum to 1, with their negative entropy.

    Attributes
    ----------
    values : ndarray of float64, shape (R, S, T, K)
        p̂ after each prefix of S sequences of each of R chains.
    negative_entropy : ndarray of float64, shape (R, S, T)
        Σ_w p̂_w log p̂_w in nats.
    """

    values: Array
    negative_entropy: Array

    @classmethod
    def of(cls, predictions: Array) -> Predictions:
        """Normalise predictions, whose rows may be off by rounding.

        Raises
        ------
        InputError
            If the shape is not (R, S, T, K).
        """
        if predictions.ndim != 4:
            raise InputError(f"predictions must have shape (R, S, T, K), not {predictions.shape}")
        values = predictions / predictions.sum(axis=-1, keepdims=True)
        return cls(values, np.asarray(xlogy(values, values).sum(axis=-1)))


class PrefixGroups:
    """Where each prefix's predictions are to be added: found once for the sequences, used for every estimator.

    Parameters
    ----------
    counts : ndarray of int, shape (R, S, T, K)
        n_vw, transitions out of the current token.
    by : {"overall", "context-length", "visits"}
    values : sequence of int, optional
        The groups wanted; by default :func:`fitted_values`.

    Attributes
    ----------
    values : tuple of int
        By length n, by visits n_v, or 0 for all prefixes together; prefixes with n_v = 0 are in none.

    Raises
    ------
    InputError
        If the shape is another, `by` is not a grouping, or a value lies outside 0 … T.
    """

    def __init__(self, counts: NDArray[np.int32], by: Grouping, values: Sequence[int] | None = None) -> None:
        if counts.ndim != 4:
            raise InputError(f"counts must have shape (R, S, T, K), not {counts.shape}")
        n_chains, _, length, k = counts.shape
        self.values = fitted_values(by, length) if values is None else tuple(values)
        if not all(0 <= value <= length for value in self.values):
            raise InputError(f"values must be lengths or visits from 0 to {length}, not {max(self.values, key=abs)}")
        self._shape = counts.shape
        visits = counts.sum(axis=-1)
        if by == "overall":
            label = np.zeros_like(visits)
            widths, spans = [length], [np.arange(1, max(length, 2))]
        elif by == "context-length":
            label = np.broadcast_to(np.arange(1, length + 1), visits.shape)
            widths, spans = [max(n, 2) for n in self.values], [np.arange(1, max(n, 2)) for n in self.values]
        elif by == "visits":
            label = visits
            widths, spans = [v + 1 for v in self.values], [np.array([v]) for v in self.values]
        else:
            raise InputError(f"by must be one of {', '.join(GROUPINGS)}, not {by!r}")
        if not self.values:
            return
        group = np.full(length + 1, -1)
        group[list(self.values)] = np.arange(len(self.values))
        member = group[label].ravel()
        self._rows = np.flatnonzero((visits.ravel() > 0) & (member >= 0))
        member, n_visits = member[self._rows], visits.ravel()[self._rows]
        chain = self._rows // (len(visits.ravel()) // n_chains)
        mass_ends, span_ends = np.cumsum(widths), np.cumsum([len(span) for span in spans])
        self._spans, self._mass_ends = spans, mass_ends
        starts = (mass_ends - widths)[member] + chain * mass_ends[-1]
        self._mass_index = (starts[:, None] + counts.reshape(-1, k)[self._rows]).ravel()
        self._entropy_index = member + chain * len(self.values)
        first_visits = np.array([span[0] for span in spans])
        column = (span_ends - [len(span) for span in spans])[member] + n_visits - first_visits[member]
        prefixes = np.bincount(column + chain * span_ends[-1], minlength=n_chains * span_ends[-1])
        self._prefixes = np.split(prefixes.reshape(n_chains, -1).astype(np.float64), span_ends[:-1], axis=1)

    def statistics(self, predictions: Predictions) -> dict[int, CountStatistics]:
        """Sum predictions by count, chain by chain, for each group.

        Raises
        ------
        InputError
            If the predictions are not of the same prefixes.
        """
        if predictions.values.shape != self._shape:
            raise InputError(
                f"predictions and counts must both have shape (R, S, T, K), not {predictions.values.shape} and "
                f"{self._shape}"
            )
        if not self.values:
            return {}
        n_chains, k, size = self._shape[0], self._shape[-1], int(self._mass_ends[-1])
        weights = predictions.values.reshape(-1, k)[self._rows].ravel()
        mass = np.bincount(self._mass_index, weights, n_chains * size).reshape(n_chains, size)
        of_groups = np.bincount(
            self._entropy_index, predictions.negative_entropy.ravel()[self._rows], n_chains * len(self.values)
        )
        negative_entropy = np.asarray(of_groups.reshape(n_chains, -1).T, dtype=np.float64)
        masses = np.split(np.asarray(mass, dtype=np.float64), self._mass_ends[:-1], axis=1)
        return {
            value: CountStatistics(masses[i], self._prefixes[i], negative_entropy[i], self._spans[i], k)
            for i, value in enumerate(self.values)
        }


def count_statistics(
    predictions: Array, counts: NDArray[np.int32], by: Grouping, values: Sequence[int] | None = None
) -> dict[int, CountStatistics]:
    """Sum predictions by count, chain by chain, for each group of prefixes.

    Parameters
    ----------
    predictions : ndarray of float64, shape (R, S, T, K)
        p̂ after each prefix of S sequences of each of R chains.
    counts, by, values
        As for :class:`PrefixGroups`.

    Returns
    -------
    dict of int to CountStatistics

    Raises
    ------
    InputError
        As :class:`PrefixGroups`, or if the predictions are not of the same prefixes.

    Examples
    --------
    >>> counts = np.array([[[[0, 0], [0, 0], [0, 1]]]])
    >>> found = count_statistics(np.full(counts.shape, 0.5), counts, "overall")[0]
    >>> found.mass.tolist(), found.prefixes.tolist()
    ([[0.5, 0.5, 0.0]], [[1.0, 0.0]])
    """
    return PrefixGroups(counts, by, values).statistics(Predictions.of(predictions))


def unseen_sums(
    predictions: Predictions, counts: NDArray[np.int32], counted: NDArray[np.bool_] | None = None
) -> tuple[Array, Array]:
    """Sum KL(p̂ ‖ uniform) over prefixes with n_v = 0, which say nothing about α.

    Parameters
    ----------
    predictions : Predictions
    counts : ndarray of int, shape (R, S, T, K)
        n_vw.
    counted : ndarray of bool, shape (R, S, T), optional
        Which prefixes count; by default all.

    Returns
    -------
    kl, number : ndarray of float64, shape (R,) each
        Of each chain: the sum in nats, and how many such prefixes there are.

    Examples
    --------
    >>> counts = np.zeros((2, 1, 1, 2), dtype=np.int32)
    >>> [part.tolist() for part in unseen_sums(Predictions.of(np.full(counts.shape, 0.5)), counts)]
    [[0.0, 0.0], [1.0, 1.0]]
    """
    unseen = counts.sum(axis=-1) == 0
    if counted is not None:
        unseen = unseen & counted
    kl = predictions.negative_entropy + np.log(counts.shape[-1])
    kl = np.where(kl > 8 * np.finfo(np.float64).eps, kl, 0.0)  # rounding, on either side of 0, where p̂ is uniform
    return np.where(unseen, kl, 0.0).sum(axis=(1, 2)), unseen.sum(axis=(1, 2), dtype=np.float64)


def prediction_sums(predictions: Predictions, counts: NDArray[np.int32], visits: int) -> tuple[Array, Array]:
    """Sum p̂_w by n_vw = c, at one number of visits.

    Parameters
    ----------
    predictions : Predictions
    counts : ndarray of int, shape (R, S, T, K)
        n_vw.
    visits : int
        n_v ≥ 1.

    Returns
    -------
    total, number : ndarray of float64, shape (R, n_v + 1) each
        Of each chain and c = 0 … n_v: Σ p̂_w, and of how many (prefix, w).

    Raises
    ------
    InputError
        If `visits` < 1.

    Examples
    --------
    >>> counts = np.array([[[[0, 0], [0, 0], [0, 1]]]])
    >>> [part.tolist() for part in prediction_sums(Predictions.of(np.full(counts.shape, 0.5)), counts, 1)]
    [[[0.5, 0.5]], [[1.0, 1.0]]]
    """
    visits = positive_int(visits, "visits")
    n_chains = len(counts)
    keep = counts.sum(axis=-1) == visits
    chain = np.broadcast_to(np.arange(n_chains)[:, None, None], keep.shape)[keep]
    index = (chain[:, None] * (visits + 1) + counts[keep]).ravel()
    size = n_chains * (visits + 1)
    total = np.bincount(index, weights=predictions.values[keep].ravel(), minlength=size)
    number = np.bincount(index, minlength=size).astype(np.float64)
    return np.asarray(total.reshape(n_chains, -1), np.float64), number.reshape(n_chains, -1)
