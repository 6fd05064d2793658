"""Log loss of one estimator on observed sequences, by what it may know before each token.

- `alone`: the tokens before it in its own sequence. Counts restart with each sequence.
- `window`: the last W of these, as a fresh prefix, recomputed at each step.
- `pooled`: all sequences before it in the order of the file, and the tokens before it in its own (prequential).
- `folds`: the sequences of the other folds, all of them, and none of its own (K-fold cross-validation by sequence).

Any estimator can be asked for the first two. The last two are for rules that need only counts, which can be carried
over from one sequence to the next (:class:`icl_estimators.estimators.CountsTokens`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from icl_estimators.divergences import log_loss
from icl_estimators.estimators import Estimator
from icl_estimators.estimators.capabilities import counted_order
from icl_estimators.experiments.prediction import ask
from icl_estimators.row_names import of_folds, of_pooled, of_window
from icl_estimators.sources.observed.corpus import Corpus

__all__ = ["ALONE", "History", "Kind", "corpus_losses", "observed_losses", "predict_named"]

Array = NDArray[np.float64]
Kind = Literal["alone", "window", "pooled", "folds"]

_BATCH_CELLS = 2_000_000  # probabilities that are predicted at once: 16 MB
_BATCH = 512  # sequences, or windows


@dataclass(frozen=True, eq=False)
class History:
    """What an estimator may know before each token.

    Attributes
    ----------
    kind : {"alone", "window", "pooled", "folds"}
    window : int or None
        W, of `window`.
    folds : ndarray of int64, shape (N,), or None
        The fold of each sequence, of `folds`.
    """

    kind: Kind = "alone"
    window: int | None = None
    folds: NDArray[np.int64] | None = None

    @property
    def carries_over(self) -> bool:
        """Whether other sequences are known: only counts can tell them."""
        return self.kind in ("pooled", "folds")

    def row_name(self, estimator: str) -> str:
        """Return what an estimator is called in the tables."""
        if self.kind == "pooled":
            return of_pooled(estimator)
        if self.folds is not None:
            return of_folds(estimator, int(self.folds.max()) + 1)
        return estimator if self.window is None else of_window(estimator, self.window)


ALONE = History()


def corpus_losses(estimator: Estimator, corpus: Corpus, history: History = ALONE, *, name: str = "the data") -> Array:
    """Return −log p̂ of each token that is predicted, in nats.

    Parameters
    ----------
    estimator : Estimator
    corpus : Corpus
    history : History
    name : str
        What to call the data in messages.

    Returns
    -------
    ndarray of float64, shape (n,)
        In the order of ``corpus.targets``.

    Raises
    ------
    ContractError
        If the estimator fails, or its predictions break the contract.
    ValueError
        If the history is of other sequences too, and the estimator needs more than counts.
    """
    order = counted_order(estimator)
    if order is not None:
        counts = corpus.before(order, window=history.window, pooled=history.kind == "pooled", folds=history.folds)
        chances = estimator.from_counts(counts.followed, counts.visits)  # type: ignore[attr-defined]
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(chances))
    if history.carries_over:
        raise ValueError(f"{estimator.name} needs more than counts, so that nothing can be carried over")
    losses = np.empty(len(corpus.tokens))
    for positions, found in _asked(estimator, corpus, history.window, name):
        losses[positions] = found
    return losses[corpus.targets]


def observed_losses(
    estimator: Estimator, sequence: NDArray[np.int64], window: int | None = None, *, name: str = "the sequence"
) -> Array:
    """Return −log p̂(t_{n+1}) for n = 1 … L − 1, in nats.

    Parameters
    ----------
    estimator : Estimator
    sequence : ndarray of int64, shape (L,)
    window : int, optional
        Give the estimator at most this many last tokens, as a fresh prefix; by default the whole history.
    name : str
        What to call the sequence in messages.

    Returns
    -------
    ndarray of float64, shape (L − 1,)

    Raises
    ------
    ContractError
        If the estimator fails, or its predictions break the contract.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> observed_losses(get("add-one", n_states=2), np.array([0, 1, 0, 1])).round(4).tolist()
    [0.6931, 0.6931, 0.4055]
    """
    corpus = Corpus.of([sequence], estimator.n_states)
    history = ALONE if window is None else History("window", window)
    return corpus_losses(estimator, corpus, history, name=name)


def _asked(
    estimator: Estimator, corpus: Corpus, window: int | None, name: str
) -> Iterator[tuple[NDArray[np.int64], Array]]:
    """Yield the positions of some targets and their losses. Equal lengths alone are in one batch: nothing is padded."""
    history = corpus.lengths - 1
    room = history if window is None else np.minimum(history, window)

    def called(number: int) -> str:
        return name if len(corpus.lengths) == 1 else f"sequence {number + 1} of {name}"

    for length in np.unique(room[room > 0]).tolist():
        alike = np.flatnonzero(room == length)
        for chosen in _batches(alike, length * estimator.n_states):
            positions = corpus.starts[chosen][:, None] + np.arange(length)  # (N, T)
            predictions = predict_named(estimator, corpus.tokens[positions], [called(n) for n in chosen.tolist()])
            targets = positions + 1
            yield targets.ravel(), log_loss(predictions, corpus.tokens[targets]).ravel()
    if window is None:
        return
    beyond = np.flatnonzero(corpus.places > window)
    whose, places = corpus.sequence_of[beyond], corpus.places[beyond]
    for chosen in _batches(np.arange(len(beyond)), window * estimator.n_states):
        targets = beyond[chosen]
        names = [
            f"{called(number)}, the window that ends at position {place}"
            for number, place in zip(whose[chosen].tolist(), places[chosen].tolist(), strict=True)
        ]
        predictions = predict_named(estimator, corpus.tokens[targets[:, None] + np.arange(-window, 0)], names)
        yield targets, log_loss(predictions[:, -1], corpus.tokens[targets])


def _batches(items: NDArray[np.int64], cells: int) -> Iterator[NDArray[np.int64]]:
    size = max(1, min(_BATCH, _BATCH_CELLS // cells))
    for first in range(0, len(items), size):
        yield items[first : first + size]


def predict_named(estimator: Estimator, tokens: NDArray[np.int64], names: list[str]) -> Array:
    """Return checked predictions of sequences of one length, which messages call by their names.

    Parameters
    ----------
    estimator : Estimator
    tokens : ndarray of int64, shape (N, T)
    names : list of str
        N names.

    Raises
    ------
    ContractError
        If the estimator fails, or its predictions break the contract.
    """
    place: Callable[[int], str] = names.__getitem__

    def where(given: NDArray[np.int64]) -> str:
        if len(given) > 1:
            for row in range(len(given)):
                try:
                    estimator.predict_proba(given[row : row + 1])
                except (Exception, SystemExit):
                    return names[row]
        return names[0] if len(names) == 1 else f"{names[0]} or a later one"

    return ask(estimator, tokens, place=place, where=where)
