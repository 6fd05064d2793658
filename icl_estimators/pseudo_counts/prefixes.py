"""Prefixes with the estimator's predictions, as columns that a smoothing rule runs over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlogy

from icl_estimators.validation import InputError

__all__ = ["PrefixBlock", "Prefixes", "decayed_counts"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PrefixBlock:
    """The n prefixes with n_v ≥ 1 of some sequences, states first so that every operation runs over long rows.

    Attributes
    ----------
    predictions : ndarray of float64, shape (K, n)
        p̂; where equal prefixes were merged, their sum.
    counts : ndarray of int16 or float64, shape (K, n)
        n_vw.
    current : ndarray of int, shape (n,)
        v, the prefix's last token.
    occurrences : ndarray of int16, shape (K, n), or None
        n_w, tokens in the prefix; None where prefixes were merged, as are all that follow.
    tokens : ndarray of int16, shape (N, T), or None
        The sequences themselves.
    kept : ndarray of bool, shape (N, T), or None
        Which of their prefixes are columns, in row order.
    chain : ndarray of int32, shape (n,), or None
        Which chain each prefix is of, counted from 0 in the whole.
    """

    predictions: Array
    counts: NDArray[Any]
    current: NDArray[np.int16]
    occurrences: NDArray[np.int16] | None = None
    tokens: NDArray[np.int16] | None = None
    kept: NDArray[np.bool_] | None = None
    chain: NDArray[np.int32] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(K, n)."""
        k, n = self.predictions.shape
        return k, n

    def chain_sums(self, values: Array, n_chains: int) -> Array:
        """Sum one value for each prefix over each chain, shape (n,) → (G,).

        Raises
        ------
        InputError
            If prefixes were merged: they have lost their chains.
        """
        if self.chain is None:
            raise InputError("merged prefixes have lost their chains")
        return np.asarray(np.bincount(self.chain, values, n_chains), dtype=np.float64)

    def is_current(self) -> NDArray[np.bool_]:
        """Return where w = v, shape (K, n)."""
        return np.asarray(self.current == np.arange(len(self.predictions))[:, None])


@dataclass(frozen=True, eq=False)
class Prefixes:
    """The prefixes with n_v ≥ 1 of G chains, in blocks that fit a cache.

    Attributes
    ----------
    blocks : tuple of PrefixBlock
        In chain order.
    number, negative_entropy : ndarray of float64, shape (G,)
        Prefixes of each chain, and their Σ Σ_w p̂_w log p̂_w in nats.
    n_states : int
        K.
    """

    blocks: tuple[PrefixBlock, ...]
    number: Array
    negative_entropy: Array
    n_states: int

    @classmethod
    def of(
        cls,
        predictions: Sequence[Array],
        tokens: NDArray[np.int64],
        counts: NDArray[np.int32],
        occurrences: NDArray[np.int32],
    ) -> Prefixes:
        """Keep what families need of some chains, in one block.

        Parameters
        ----------
        predictions : sequence of J ndarray of float64, each of shape (R, S, T, K)
            Of one estimator, or of several training runs: their pooled objective is that of the mean prediction with
            the mean of their Σ p̂ log p̂.
        tokens : ndarray of int, shape (R, S, T)
        counts, occurrences : ndarray of int, shape (R, S, T, K)
            n_vw of the current token v, and n_w.

        Raises
        ------
        InputError
            If there are no predictions, or shapes do not fit together.
        """
        if not predictions:
            raise InputError("no predictions: give those of at least one training run")
        shape = counts.shape
        if any(p.shape != shape for p in predictions) or occurrences.shape != shape or tokens.shape != shape[:3]:
            raise InputError("predictions, counts and occurrences must have shape (R, S, T, K), and tokens (R, S, T)")
        n_chains, _, length, k = shape
        kept = counts.sum(axis=-1) > 0
        chain = np.broadcast_to(np.arange(n_chains, dtype=np.int32)[:, None, None], kept.shape)[kept]
        mean = np.zeros((k, len(chain)))
        negative_entropy = np.zeros(n_chains)
        for run in predictions:
            p = run[kept].T
            p = p / p.sum(axis=0)
            mean += p / len(predictions)
            negative_entropy += np.bincount(chain, xlogy(p, p).sum(axis=0), n_chains) / len(predictions)
        block = PrefixBlock(
            mean,
            np.ascontiguousarray(counts[kept].T, dtype=np.int16),
            tokens[kept].astype(np.int16),
            np.ascontiguousarray(occurrences[kept].T, dtype=np.int16),
            tokens.reshape(-1, length).astype(np.int16),
            kept.reshape(-1, length),
            chain,
        )
        return cls((block,), np.bincount(chain, minlength=n_chains).astype(np.float64), negative_entropy, k)

    @property
    def n_chains(self) -> int:
        """G."""
        return len(self.number)

    @staticmethod
    def join(parts: Sequence[Prefixes]) -> Prefixes:
        """Put the chains of several parts one after another.

        Raises
        ------
        InputError
            If there are no parts, or they differ in the number of states.
        """
        if len({part.n_states for part in parts}) != 1:
            raise InputError("give at least one set of prefixes to join, all with the same number of states")
        blocks: list[PrefixBlock] = []
        first = 0
        for part in parts:
            for block in part.blocks:
                if block.chain is None:
                    raise InputError("merged prefixes have lost their chains and cannot be joined")
                blocks.append(replace(block, chain=block.chain + np.int32(first)))
            first += part.n_chains
        return Prefixes(
            tuple(blocks),
            np.concatenate([part.number for part in parts]),
            np.concatenate([part.negative_entropy for part in parts]),
            parts[0].n_states,
        )

    def merged(self) -> tuple[PrefixBlock, ...]:
        """Return one column for each distinct (v, counts): the same objective for rules that look at nothing else.

        Where the counts of one prefix do not fit into 63 bits together, the blocks come back as they are.
        """
        found = self._distinct()
        if found is None:
            return self.blocks
        first, place = found
        predictions = np.concatenate([block.predictions for block in self.blocks], axis=1)
        counts = np.concatenate([block.counts for block in self.blocks], axis=1)
        current = np.concatenate([block.current for block in self.blocks])
        sums = np.stack([np.bincount(place, row, len(first)) for row in predictions])
        return (PrefixBlock(np.asarray(sums, np.float64), counts[:, first].astype(np.float64), current[first]),)

    def merged_chains(self) -> csr_array | None:
        """Return what each chain adds to the predictions of :meth:`merged`, shape (G, K·n), state by state.

        What is linear in p̂, as chains' scores are, is a product with it. None where prefixes cannot be merged.
        """
        found = self._distinct()
        if found is None:
            return None
        (first, place), k = found, self.n_states
        chains = [block.chain for block in self.blocks if block.chain is not None]
        columns = np.arange(k)[:, None] * len(first) + place
        rows = np.broadcast_to(np.concatenate(chains), columns.shape)
        values = np.concatenate([block.predictions for block in self.blocks], axis=1)
        shape = (self.n_chains, k * len(first))
        return csr_array((values.ravel(), (rows.ravel(), columns.ravel())), shape=shape)

    def _distinct(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """Return where each distinct (v, counts) is first, and which of them each prefix is."""
        k = self.n_states
        largest = max((int(block.counts.max(initial=0)) for block in self.blocks), default=0)
        if (largest + 1) ** k * k >= 2**63:
            return None
        keys = np.concatenate([_key(block, largest + 1) for block in self.blocks])
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        return first, place


def _key(block: PrefixBlock, base: int) -> NDArray[np.int64]:
    key = block.current.astype(np.int64)
    for row in block.counts:
        key = key * base + row.astype(np.int64)
    return key


def decayed_counts(tokens: NDArray[np.int16], n_states: int, decay: float) -> Array:
    """Count transitions out of the current token with weight decay^age, and differentiate.

    Parameters
    ----------
    tokens : ndarray of int, shape (N, T)
    n_states : int
        K.
    decay : float
        d > 0. The age of a transition is how many tokens have followed it: 0 for the last one.

    Returns
    -------
    ndarray of float64, shape (3, N, T, K)
        Σ d^age over the transitions v → w of the prefix, v its last token, and its derivatives with respect to log d,
        Σ age·d^age and Σ age²·d^age. In memory states come first.

    Examples
    --------
    >>> decayed_counts(np.array([[0, 1, 0, 1, 0]]), 2, 0.5)[0][0, -1].tolist()  # ages 3 and 1
    [0.0, 0.625]
    """
    n_sequences, length = tokens.shape
    by_time = np.ascontiguousarray(tokens.T).astype(np.intp)
    columns = np.arange(n_sequences)
    sums = np.zeros((3, n_states, n_states * n_sequences))  # by w and (v, sequence), of what the last token may become
    out = np.zeros((3, n_states, length, n_sequences))
    for t in range(1, length):
        zeroth, linear, square = sums
        square += 2.0 * linear + zeroth  # one more step of age: (a + 1)² = a² + 2a + 1
        linear += zeroth
        sums *= decay
        zeroth[by_time[t], by_time[t - 1] * n_sequences + columns] += 1.0
        out[:, :, t] = sums.take(by_time[t] * n_sequences + columns, axis=2)
    return out.transpose(0, 3, 2, 1)
