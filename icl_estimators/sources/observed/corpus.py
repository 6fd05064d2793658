"""Sequences of any lengths as one array, and the counts that come before each of their tokens.

A counting rule needs two numbers for the probability of a token: how often the token followed the same context so far,
and how often anything did. They are found by sorting, for all tokens at once. No array has an axis of states, so that
memory grows with the tokens alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError, positive_int

__all__ = ["Corpus", "TokenCounts", "fold_of_units"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TokenCounts:
    """What was counted before each of n tokens.

    Attributes
    ----------
    followed : ndarray of int64, shape (n,)
        How often the token followed the same context.
    visits : ndarray of int64, shape (n,)
        How often any token followed it; 0 also where the context is incomplete.
    """

    followed: Integers
    visits: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """N sequences, one after another.

    Attributes
    ----------
    tokens : ndarray of int64, shape (L,)
    starts : ndarray of int64, shape (N + 1,)
        Sequence i is ``tokens[starts[i]:starts[i + 1]]``.
    n_states : int
        K.
    """

    tokens: Integers
    starts: Integers
    n_states: int

    @classmethod
    def of(cls, sequences: Sequence[Integers], n_states: int) -> Corpus:
        """Put sequences together.

        Raises
        ------
        InputError
            If there are none.

        Examples
        --------
        >>> Corpus.of([np.array([0, 1]), np.array([1, 1, 0])], 2).starts.tolist()
        [0, 2, 5]
        """
        if not len(sequences):
            raise InputError("there are no sequences: give at least one")
        starts = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
        return cls(np.concatenate(sequences).astype(np.int64), starts.astype(np.int64), n_states)

    @property
    def lengths(self) -> Integers:
        """Tokens of each sequence, shape (N,)."""
        return np.diff(self.starts)

    @property
    def sequence_of(self) -> Integers:
        """The sequence of each token, shape (L,)."""
        return np.repeat(np.arange(len(self.starts) - 1), self.lengths)

    @property
    def places(self) -> Integers:
        """How many tokens of its own sequence come before each token, shape (L,)."""
        return np.arange(len(self.tokens)) - np.repeat(self.starts[:-1], self.lengths)

    @property
    def targets(self) -> Integers:
        """Positions of the tokens that are predicted, all but the first of each sequence, shape (n,)."""
        return np.flatnonzero(self.places > 0)

    def before(
        self, order: int, *, window: int | None = None, pooled: bool = False, folds: Integers | None = None
    ) -> TokenCounts:
        """Count, for each token that is predicted, what came before it.

        By default counts begin anew with each sequence.

        Parameters
        ----------
        order : int
            k ≥ 0: the context of a token is the k tokens before it. No context reaches into another sequence. With
            k = 0 the first tokens of sequences count too, as tokens that occurred.
        window : int, optional
            Count only among the W ≥ 1 tokens before the token, as if the sequence began there.
        pooled : bool
            Carry the counts of all earlier sequences over.
        folds : ndarray of int, shape (N,), optional
            The fold of each sequence. Counts are then those of the sequences in other folds, all of them, and none of
            the sequence's own.

        Raises
        ------
        InputError
            If `order` is negative, `window` is below 1, or more than one of `window`, `pooled` and `folds` is given.

        Examples
        --------
        >>> corpus = Corpus.of([np.array([0, 1, 0, 1]), np.array([0, 1])], 2)
        >>> corpus.before(1).followed.tolist(), corpus.before(1, pooled=True).followed.tolist()
        ([0, 0, 1, 0], [0, 0, 1, 2])
        """
        order = positive_int(order, "order", at_least=0)
        if (window is not None) + pooled + (folds is not None) > 1:
            raise InputError("give at most one of window, pooled and folds")
        if window is not None:
            window = positive_int(window, "window")
        places, targets = self.places, self.targets
        events = np.flatnonzero(places >= order)
        contexts = self._contexts(order, events)
        followed = contexts * self.n_states + self.tokens[events]
        asked = places[events] > 0  # an event that is no target is a first token, which only order 0 counts
        whole = TokenCounts(np.zeros(len(targets), np.int64), np.zeros(len(targets), np.int64))
        complete = places[targets] >= order
        if window is not None and window < order:
            return whole
        if folds is not None:
            fold = np.asarray(folds, dtype=np.int64)[self.sequence_of[events]]
            parts = (_elsewhere(keys, fold) for keys in (followed, contexts))
        else:
            if pooled:
                since = np.zeros(len(events), np.int64)
            else:
                since = events - places[events]
                if window is not None:
                    since = np.maximum(since, events - window) + order  # the context lies within the window too
            parts = (_since(keys, events, since) for keys in (followed, contexts))
        for found, part in zip((whole.followed, whole.visits), parts, strict=True):
            found[complete] = part[asked]
        return whole

    def totals(self, order: int, *, pooled: bool = False, first_tokens: bool = False) -> tuple[Integers, Integers]:
        """Return all counts at the end: of each context and token, and of each context.

        Parameters
        ----------
        order : int
            k ≥ 0, as for :meth:`before`.
        pooled : bool
            Count over all sequences; by default each sequence has contexts of its own.
        first_tokens : bool
            Count the first token of each sequence alone, which only order 0 counts.

        Returns
        -------
        tuple of two ndarrays of int64
            The counts that are not 0, in no particular order. Both have the same sum.

        Examples
        --------
        >>> Corpus.of([np.array([0, 1, 0, 1])], 2).totals(1)
        (array([2, 1]), array([2, 1]))
        """
        places = self.places
        events = np.flatnonzero(places == 0 if first_tokens else places >= order)
        contexts = self._contexts(0 if first_tokens else order, events)
        if not pooled:
            contexts = np.unique(contexts * (len(self.starts) - 1) + self.sequence_of[events], return_inverse=True)[1]
        cells = np.unique(contexts * self.n_states + self.tokens[events], return_counts=True)[1]
        return cells, np.unique(contexts, return_counts=True)[1]

    def transition_matrix(self) -> Integers:
        """Return n_vw over all sequences, shape (K, K).

        Examples
        --------
        >>> Corpus.of([np.array([0, 1, 0]), np.array([0, 0])], 2).transition_matrix().tolist()
        [[1, 1], [1, 0]]
        """
        targets = self.targets
        pairs = self.tokens[targets - 1] * self.n_states + self.tokens[targets]
        return np.bincount(pairs, minlength=self.n_states**2).reshape(self.n_states, self.n_states)

    def _contexts(self, order: int, events: Integers) -> Integers:
        """Number the contexts of some positions, from 0."""
        contexts = np.zeros(len(events), np.int64)
        for k in range(order, 0, -1):
            contexts = contexts * self.n_states + self.tokens[events - k]
            if k < order or order == 1:  # numbered anew, so that no number overflows
                contexts = np.unique(contexts, return_inverse=True)[1].astype(np.int64)
        return contexts


def fold_of_units(units: Integers, n_folds: int, seed: int = 0) -> Integers:
    """Divide independent units at random into folds of as equal a size as can be.

    Parameters
    ----------
    units : ndarray of int, shape (N,)
        The unit of each sequence.
    n_folds : int
        At least 2, and at most as many as there are units.
    seed : int

    Returns
    -------
    ndarray of int64, shape (N,)
        The fold of each sequence; sequences of one unit are in one fold.

    Raises
    ------
    InputError
        If `n_folds` is out of its range.

    Examples
    --------
    >>> np.bincount(fold_of_units(np.arange(10), 3)).tolist()
    [4, 3, 3]
    """
    distinct, place = np.unique(units, return_inverse=True)
    n_folds = positive_int(n_folds, "folds", at_least=2)
    if n_folds > len(distinct):
        raise InputError(f"{len(distinct)} sequences cannot be divided into {n_folds} folds: give fewer folds")
    order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(len(distinct))
    return np.asarray((order % n_folds)[place], dtype=np.int64)


def _since(keys: Integers, events: Integers, since: Integers) -> Integers:
    """Count, for each event, the earlier ones with its key at positions from `since` on."""
    by_key = np.argsort(keys, kind="stable")  # and by position within a key
    span = int(events[-1]) + 1 if len(events) else 1
    ranked = np.unique(keys, return_inverse=True)[1].astype(np.int64) * span
    first = np.searchsorted((ranked + events)[by_key], (ranked + since)[by_key])
    counts = np.empty(len(keys), np.int64)
    counts[by_key] = np.maximum(np.arange(len(keys)) - first, 0)
    return counts


def _elsewhere(keys: Integers, folds: Integers) -> Integers:
    """Count, for each event, those with its key in other folds."""
    ranked = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    own = np.unique(ranked * (int(folds.max(initial=0)) + 1) + folds, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(ranked)[ranked] - own[2][own[1]], dtype=np.int64)
