"""Cells of the nested design: R chains × S sequences of each, grouped by state: of a Markov chain the current token.

The cell (r, n, v) holds the m sequences of chain r in state v at context length n. An estimator's bias and variance
are those of its predictions within a cell, where the truth is one row of one chain. Cells with m ≥ 2 are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.notes import Code, Note
from icl_estimators.validation import InputError

__all__ = ["Cells", "CellTally"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Which sequence is in which cell, and the weight of each cell; made once for all estimators.

    Attributes
    ----------
    index : ndarray of int64, shape (R·S·T,)
        Number (r·T + n − 1)·M + v of the cell of each (chain, sequence, context length).
    size : ndarray of int64, shape (R, T, M)
        m.
    weight : ndarray of float64, shape (R, T, M)
        (m/S)·1[m ≥ 2] / (1 − (1 − π_v)^{S−1}).
    transition : ndarray of float64, shape (R, M, K)
        The truth of the cell (r, n, v) is ``transition[r, v]``; M = K where the state is the current token.
    n_sequences : int
        S.

    Notes
    -----
    Given that one sequence is in the cell, another one is among the remaining S − 1 with probability 1 − (1 −
    π_v)^{S−1}, so that E[(m/S)·1[m ≥ 2]] = π_v (1 − (1 − π_v)^{S−1}): the weight has mean π_v for every S ≥ 2,
    and weighted sums over v estimate Σ_v π_v(·)_v without the bias that leaving out m < 2 would bring
    (inverse-probability weighting, Horvitz & Thompson 1952).
    """

    index: NDArray[np.int64]
    size: NDArray[np.int64]
    weight: Array
    transition: Array
    n_sequences: int

    @classmethod
    def of(cls, states: NDArray[np.int64], transition: Array, visits: Array) -> Cells:
        """Group sequences into cells.

        Parameters
        ----------
        states : ndarray of int64, shape (R, S, T)
            The state at each context, from 0 to M − 1: of a Markov chain the tokens that were read.
        transition : ndarray of float64, shape (R, M, K)
        visits : ndarray of float64, shape (R, T, M)
            π_v, the law of the state at each context length given the chain.

        Raises
        ------
        InputError
            If the shapes do not fit together, or a chain is in a state where it cannot be.
        """
        m = transition.shape[1]
        if states.ndim != 3 or len(transition) != len(states) or visits.shape != (len(states), states.shape[-1], m):
            raise InputError(
                f"states (R, S, T), transition (R, M, K) and visits (R, T, M) do not fit together: "
                f"{states.shape}, {transition.shape}, {visits.shape}"
            )
        n_chains, n_sequences, length = states.shape
        first = (np.arange(n_chains)[:, None, None] * length + np.arange(length)) * m
        index = (first + states).ravel()
        shape = (n_chains, length, m)
        size = np.bincount(index, minlength=n_chains * length * m).reshape(shape)
        if (size[visits == 0] > 0).any():
            chain, n, state = np.argwhere((visits == 0) & (size > 0))[0]
            raise InputError(
                f"chain {chain} is in state {state} at context length {n + 1}, which has probability 0: "
                "states and transition are not of the same chains"
            )
        used = size >= 2
        weight = np.zeros(shape)
        with np.errstate(divide="ignore"):  # π = 1: log 0 = −inf, and the probability below is 1
            companion = -np.expm1((n_sequences - 1) * np.log1p(-visits[used]))
        weight[used] = size[used] / n_sequences / companion
        return cls(index, size, weight, transition, n_sequences)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(R, T, M)."""
        n_chains, length, m = self.size.shape
        return n_chains, length, m

    @property
    def note(self) -> str:
        """Why no cell can be used; empty where some can."""
        return Note(Code.ONE_SEQUENCE) if self.n_sequences < 2 else ""

    @property
    def split_weight(self) -> Array:
        """Share of sequences that are in cells with m ≥ 2, shape (R, T)."""
        return np.asarray(np.where(self.size >= 2, self.size, 0).sum(axis=-1) / self.n_sequences)

    def by_state(self, predictions: Array) -> Array:
        """Copy predictions state by state, shape (K, R·S·T), each row in the order of :attr:`index`.

        Contiguous rows: what follows runs over K long vectors instead of very many short ones.

        Parameters
        ----------
        predictions : ndarray of float64, shape (R, S, T, K) or (R·S, T, K)

        Raises
        ------
        InputError
            If the shape does not fit the cells.
        """
        n_chains, length, _ = self.shape
        k = self.transition.shape[-1]
        shapes = ((n_chains, self.n_sequences, length, k), (n_chains * self.n_sequences, length, k))
        if predictions.shape not in shapes:
            raise InputError(f"predictions must have shape {shapes[0]} or {shapes[1]}, not {predictions.shape}")
        return np.array(predictions.reshape(-1, k).T, dtype=np.float64, order="C")

    def sums(self, values: Array) -> Array:
        """Sum values over each cell, shape (R·S·T,) → (R, T, M)."""
        totals = np.bincount(self.index, weights=values, minlength=self.size.size)
        return np.asarray(totals, dtype=np.float64).reshape(self.shape)

    def means(self, values: Array) -> Array:
        """Average values over each cell, shape (R·S·T,) → (R, T, M); 0 in empty cells."""
        return self.sums(values) / np.maximum(self.size, 1)

    def spread(self, cell_values: Array) -> Array:
        """Give each (chain, sequence, context length) its cell's value, shape (R, T, M) → (R·S·T,)."""
        return np.take(cell_values, self.index)

    def truth(self, state: int) -> Array:
        """Return P_vw of w = `state` in each cell (r, n, v), shape (R, T, M)."""
        return np.repeat(self.transition[:, None, :, state], self.shape[1], axis=1)

    def integrate(self, cell_values: Array) -> Array:
        """Return Σ_v weight·value over the cells with m ≥ 2, shape (R, T, M) → (R, T); NaN where S = 1."""
        if self.n_sequences < 2:
            return np.full(self.shape[:2], np.nan)
        return np.asarray(np.where(self.weight > 0, self.weight * cell_values, 0.0).sum(axis=-1))


@dataclass(frozen=True, slots=True, eq=False)
class CellTally:
    """Counts of cells at each context length and, last, over all of them; shape (T + 1,) each.

    Attributes
    ----------
    used : ndarray of int64
        Cells with m ≥ 2.
    with_zero : ndarray of int64
        Those in which some predicted probability is 0.
    smallest : ndarray of int64
        The smallest m among the cells used; 0 where there are none.
    """

    used: NDArray[np.int64]
    with_zero: NDArray[np.int64]
    smallest: NDArray[np.int64]

    @classmethod
    def of(cls, cells: Cells, with_zero: NDArray[np.bool_]) -> CellTally:
        """Count the cells; `with_zero` has shape (R, T, M)."""
        used = cells.size >= 2
        smallest = np.where(used, cells.size, np.iinfo(np.int64).max).min(axis=(0, 2))
        smallest = np.append(smallest, smallest.min())
        count, zero = (np.asarray(which.sum(axis=(0, 2))) for which in (used, used & with_zero))
        return cls(
            np.append(count, count.sum()),
            np.append(zero, zero.sum()),
            np.where(smallest == np.iinfo(np.int64).max, 0, smallest),
        )

    @classmethod
    def worst(cls, tallies: Sequence[CellTally]) -> CellTally:
        """Return the tally of several estimators in the same cells, with the largest `with_zero` among them."""
        zero = np.max([tally.with_zero for tally in tallies], axis=0)
        return cls(tallies[0].used, zero, tallies[0].smallest)

    def merge(self, other: CellTally) -> CellTally:
        """Return the tally of both groups of chains together.

        Raises
        ------
        InputError
            If the context lengths differ in number.
        """
        if self.used.shape != other.used.shape:
            raise InputError(f"tallies of {len(self.used)} and {len(other.used)} coordinates cannot be merged")
        smallest = np.where(
            np.minimum(self.smallest, other.smallest) > 0,
            np.minimum(self.smallest, other.smallest),
            np.maximum(self.smallest, other.smallest),
        )
        return CellTally(self.used + other.used, self.with_zero + other.with_zero, smallest)

    def notes(self) -> tuple[str, ...]:
        """Say where a zero makes the KL decomposition undefined, and the smallest cell where it is defined."""
        return tuple(
            Note(Code.ZERO_IN_CELLS, count=zero, total=used)
            if zero
            else Note(Code.SMALLEST_CELL, size=smallest)
            if used
            else Note(Code.NO_CELL)
            for used, zero, smallest in zip(self.used, self.with_zero, self.smallest, strict=True)
        )
