"""Prequential log loss on observed sequences, where no truth is known.

Each token after the first is predicted from those before it: −log p̂(t_{n+1}). Counting rules use the whole history;
every rule is also given only the last W tokens as a fresh prefix, recomputed at each step, so that a transformer of
length W and the others are compared on equal terms. Where no sequence is longer than the window the two are the same
predictions, and there is one row. Pooled, the counts of a rule carry over from other sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator, check_estimator
from icl_estimators.estimators.capabilities import counted_order, reads_window
from icl_estimators.experiments.observed_losses import ALONE, History, corpus_losses
from icl_estimators.inference import RatioMoments, ratio_intervals
from icl_estimators.notes import Code, Note, join
from icl_estimators.sources import ObservedSequences
from icl_estimators.sources.observed.corpus import Corpus, fold_of_units
from icl_estimators.validation import InputError

__all__ = [
    "ObservedLosses",
    "ObservedRow",
    "checked_length",
    "observed_losses_of",
    "observed_risk",
    "pooled_histories",
    "risk_row",
    "too_long_for",
    "unchecked_line",
]

Array = NDArray[np.float64]

_CHECKED, _CHECKED_AT_LEAST = 4096, 256  # tokens that causality is tried on, where histories are longer
_BATCH_CELLS = 2_000_000
_LARGEST = 20_000_000  # probabilities that one call may return: 160 MB, of which a few copies are made


def checked_length(estimator: Estimator, data: ObservedSequences, window: int) -> int:
    """Return on how many tokens an estimator is checked: the most that it is asked about, up to a limit.

    The limit is 4,096 tokens, and fewer from about 500 states on, so that the check costs no more than the study.
    """
    return min(_asked(estimator, data, window), max(_CHECKED_AT_LEAST, min(_CHECKED, _BATCH_CELLS // data.n_states)))


def unchecked_line(estimators: Sequence[Estimator], data: ObservedSequences, window: int) -> tuple[str, ...]:
    """Return a line that says so if an estimator is asked about more tokens than it is checked on."""
    longer = [rule for rule in estimators if _asked(rule, data, window) > checked_length(rule, data, window)]
    if not longer:
        return ()
    asked, tried = _asked(longer[0], data, window), checked_length(longer[0], data, window)
    return (
        f"{data.name}: that no estimator looks ahead is checked on {tried:,} tokens; the longest history has {asked:,}",
    )


def _asked(estimator: Estimator, data: ObservedSequences, window: int) -> int:
    longest = max(1, max(len(sequence) for sequence in data.sequences) - 1)
    return min(longest, window) if reads_window(estimator) else longest


def too_long_for(estimator: Estimator, data: ObservedSequences) -> bool:
    """Say whether the longest whole history is too long for an estimator: its predictions would not fit in memory.

    A rule of counts never is: it is not asked for whole distributions.
    """
    longest = max(len(sequence) for sequence in data.sequences)
    needs_all = counted_order(estimator) is None and not reads_window(estimator)
    return needs_all and longest * data.n_states > _LARGEST


def pooled_histories(data: ObservedSequences, folds: int) -> tuple[History, History]:
    """Return the two ways of carrying counts over: from earlier sequences, and from those of other folds.

    Raises
    ------
    InputError
        If there is one independent sequence, so that nothing can be carried over; or if `folds` is below 2 or above
        the number of sequences.
    """
    units = data.units
    count = len(np.unique(units))
    if count < 2:
        raise InputError(f"{data.name} is one sequence, so that there is nothing to pool: omit pooling")
    return History("pooled"), History("folds", folds=fold_of_units(units, folds))


@dataclass(frozen=True, eq=False)
class ObservedRow:
    """The losses of one row.

    Attributes
    ----------
    name : str
        What it is called in the tables.
    estimator : str
        The estimator's own name.
    history : History
        What the estimator may know.
    sliding : bool
        Whether it read a window that is shorter than some sequence, so that not always the whole history.
    losses : ndarray of float64, shape (n,)
    """

    name: str
    estimator: str
    history: History
    sliding: bool
    losses: Array

    @property
    def group(self) -> tuple[str, bool]:
        """Rows of one group may be compared."""
        return ("alone" if self.history.kind == "window" else self.history.kind, self.sliding)


@dataclass(frozen=True, eq=False)
class ObservedLosses:
    """The losses of all rows.

    Attributes
    ----------
    rows : list of ObservedRow
    unit : ndarray of int64, shape (n,)
        The independent sequence of each prediction, numbered from 0 in the order of the data.
    n_sequences : int
        Sequences that have anything to predict: pieces, where gaps divide sequences.
    """

    rows: list[ObservedRow]
    unit: NDArray[np.int64]
    n_sequences: int

    @property
    def predictions(self) -> NDArray[np.int64]:
        """How many predictions each independent sequence has, shape (G,)."""
        return np.bincount(self.unit)

    def sums(self, values: Array) -> Array:
        """Sum columns of values over each independent sequence, shape (n, N) → (G, N)."""
        return np.stack([np.bincount(self.unit, column) for column in values.T], axis=1)


def observed_losses_of(
    estimators: Sequence[Estimator],
    data: ObservedSequences,
    *,
    window: int,
    pooled: Sequence[History] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> ObservedLosses:
    """Ask every estimator for its losses, with the whole history and with the window.

    Parameters
    ----------
    estimators : sequence of Estimator
        One that offers :class:`icl_estimators.estimators.ReadsWindow` is given the window only (a transformer has no
        whole history), as is one for which the whole history is too long.
    data : ObservedSequences
    window : int
        W ≥ 1.
    pooled : sequence of History
        Also ask the rules that need only counts with these.
    progress : callable, optional
        Called with (what, done, total) after each row.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    """
    for estimator in estimators:
        # Above all that it does not look at what it is to predict.
        check_estimator(estimator, data.n_states, length=checked_length(estimator, data, window))
    corpus = Corpus.of(data.sequences, data.n_states)
    sliding = int(corpus.lengths.max()) - 1 > window
    planned: list[tuple[Estimator, History]] = []
    for estimator in estimators:
        if reads_window(estimator) or (sliding and too_long_for(estimator, data)):
            planned.append((estimator, History("window", window)))
        else:
            planned += [(estimator, ALONE), *([(estimator, History("window", window))] if sliding else [])]
    for history in pooled:
        planned += [(estimator, history) for estimator in estimators if counted_order(estimator) is not None]
    rows = []
    for done, (estimator, history) in enumerate(planned, start=1):
        losses = corpus_losses(estimator, corpus, history, name=data.name)
        name = history.row_name(estimator.name)
        rows.append(ObservedRow(name, estimator.name, history, sliding and history.kind == "window", losses))
        if progress is not None:
            progress("log loss", done, len(planned))
    whose = corpus.sequence_of[corpus.targets]
    unit = np.unique(data.units[whose], return_inverse=True)[1].astype(np.int64)
    return ObservedLosses(rows, unit, len(np.unique(whose)))


def observed_risk(
    estimators: Sequence[Estimator], data: ObservedSequences, *, window: int, level: float = 0.95
) -> Table:
    """Return risk.csv for observed sequences: mean log loss per prediction, whole history and sliding window.

    Parameters
    ----------
    estimators, data, window
        As for :func:`observed_losses_of`.
    level : float
        Of intervals, clustered on sequences; with one sequence there are none.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.

    Returns
    -------
    Table
        Rows `name` for the whole history, `name:window=W` for the window; the latter only where a sequence is longer
        than the window, and of rules that read no more.
    """
    found = observed_losses_of(estimators, data, window=window)
    return Table.of("risk", (risk_row(row, found, level) for row in found.rows))


def risk_row(row: ObservedRow, found: ObservedLosses, level: float) -> tuple[Cell, ...]:
    """Return the row of risk.csv: the mean loss per prediction."""
    losses, counts = row.losses, found.predictions
    n_infinite = int(np.isinf(losses).sum())
    estimate = float(losses.sum() / len(losses))
    se = low = high = np.nan
    note: str = Note(Code.PREDICTIONS, count=len(losses))
    if n_infinite:
        note = join(note, Note(Code.INFINITE_IN_SOME, count=n_infinite))
    elif len(counts) < 2:
        note = join(note, Note(Code.ONE_SERIES))
    elif row.history.kind == "pooled":
        note = join(note, Note(Code.CARRIED_OVER))
    else:
        sums = RatioMoments.of(found.sums(losses[:, None]), counts[:, None].astype(np.float64))
        intervals = ratio_intervals(sums, level=level)
        se, low, high = float(intervals.se[0]), float(intervals.low[0]), float(intervals.high[0])
        if row.history.kind == "folds":
            note = join(note, Note(Code.FITTED_TO_OTHER_FOLDS))
    cells: tuple[Cell, ...] = (row.name, "mean", "log_loss_nats", estimate, se, low, high, np.nan, np.nan)
    return (*cells, len(counts), found.n_sequences, note)
