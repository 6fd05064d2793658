"""Prequential log loss on observed sequences, where no truth is known.

Each token after the first is predicted from those before it: −log p̂(t_{n+1}). Counting rules use the whole history;
every rule is also given only the last W tokens as a fresh prefix, recomputed at each step, so that a transformer of
length W and the others are compared on equal terms. Where no sequence is longer than the window the two are the same
predictions, and there is one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from icl_estimators.divergences import log_loss
from icl_estimators.engine.tables import Cell, Table
from icl_estimators.estimators import Estimator, check_estimator
from icl_estimators.estimators.capabilities import reads_window
from icl_estimators.experiments.prediction import ask
from icl_estimators.inference import RatioMoments, ratio_intervals
from icl_estimators.notes import Code, Note, join
from icl_estimators.row_names import of_window
from icl_estimators.sources import ObservedSequences

__all__ = [
    "ObservedRow",
    "checked_length",
    "observed_losses",
    "observed_risk",
    "observed_rows",
    "risk_row",
    "unchecked_line",
]

Array = NDArray[np.float64]

_WINDOW_BATCH = 512
_CHECKED, _CHECKED_AT_LEAST = 4096, 256  # tokens that causality is tried on, where histories are longer
_BATCH_CELLS = 2_000_000  # probabilities that are predicted at once: 16 MB


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
    history, targets = sequence[:-1], sequence[1:]
    if not len(history):
        return np.empty(0)

    def predict(tokens: NDArray[np.int64], first: int = 1) -> Array:
        def place(row: int) -> str:
            return name if len(tokens) == 1 else f"{name}, the window that ends at position {first + row}"

        return ask(estimator, tokens, place=place, where=lambda _: name)

    if window is None or window >= len(history):
        return log_loss(predict(history[None])[0], targets)
    losses = np.empty(len(history))
    losses[:window] = log_loss(predict(history[None, :window])[0], targets[:window])
    windows = sliding_window_view(history, window)
    size = max(1, min(_WINDOW_BATCH, _BATCH_CELLS // (window * estimator.n_states)))
    for first in range(1, len(windows), size):
        batch = np.ascontiguousarray(windows[first : first + size])
        last = slice(window + first - 1, window + first - 1 + len(batch))  # each window predicts one token
        losses[last] = log_loss(predict(batch, window + first)[:, -1], targets[last])
    return losses


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


@dataclass(frozen=True, eq=False)
class ObservedRow:
    """The losses of one row.

    Attributes
    ----------
    name : str
        The estimator's, for the whole history; ``name:window=W`` for the window.
    estimator : str
        The estimator's own name.
    sliding : bool
        Whether it read a window that is shorter than some sequence, so that not always the whole history.
    losses : list of ndarray of float64
        Of each sequence that has anything to predict.
    """

    name: str
    estimator: str
    sliding: bool
    losses: list[Array]


def observed_rows(estimators: Sequence[Estimator], data: ObservedSequences, *, window: int) -> list[ObservedRow]:
    """Ask every estimator for its losses, with the whole history and with the window.

    Parameters
    ----------
    estimators : sequence of Estimator
        One that offers :class:`icl_estimators.estimators.ReadsWindow` is given the window only (a transformer has no
        whole history).
    data : ObservedSequences
    window : int
        W ≥ 1.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    """
    for estimator in estimators:
        # Above all that it does not look at what it is to predict.
        check_estimator(estimator, data.n_states, length=checked_length(estimator, data, window))
    sliding = max(len(sequence) - 1 for sequence in data.sequences) > window
    rows = []
    for estimator in estimators:
        sizes: tuple[int | None, ...] = (None, window) if sliding else (None,)
        if reads_window(estimator):
            sizes = (window,)
        for size in sizes:
            losses = [
                observed_losses(estimator, sequence, size, name=f"sequence {number} of {data.name}")
                for number, sequence in enumerate(data.sequences, start=1)
            ]
            name = estimator.name if size is None else of_window(estimator.name, size)
            rows.append(
                ObservedRow(name, estimator.name, sliding and size is not None, [loss for loss in losses if len(loss)])
            )
    return rows


def observed_risk(
    estimators: Sequence[Estimator], data: ObservedSequences, *, window: int, level: float = 0.95
) -> Table:
    """Return risk.csv for observed sequences: mean log loss per prediction, whole history and sliding window.

    Parameters
    ----------
    estimators, data, window
        As for :func:`observed_rows`.
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
    return Table.of("risk", (risk_row(row, level) for row in observed_rows(estimators, data, window=window)))


def risk_row(row: ObservedRow, level: float) -> tuple[Cell, ...]:
    """Return the row of risk.csv: the mean loss per prediction."""
    name, losses = row.name, row.losses
    n_predictions = sum(len(loss) for loss in losses)
    n_infinite = sum(int(np.isinf(loss).sum()) for loss in losses)
    estimate = float(sum(loss.sum() for loss in losses) / n_predictions)
    se = low = high = np.nan
    note: str = Note(Code.PREDICTIONS, count=n_predictions)
    if n_infinite:
        note = join(note, Note(Code.INFINITE_IN_SOME, count=n_infinite))
    elif len(losses) < 2:
        note = join(note, Note(Code.ONE_SERIES))
    else:
        sums = RatioMoments.of(
            [[loss.sum()] for loss in losses],
            [[float(len(loss))] for loss in losses],
        )
        intervals = ratio_intervals(sums, level=level)
        se, low, high = float(intervals.se[0]), float(intervals.low[0]), float(intervals.high[0])
    cells: tuple[Cell, ...] = (name, "mean", "log_loss_nats", estimate, se, low, high, np.nan, np.nan)
    return (*cells, len(losses), len(losses), note)
