"""Every prediction of every estimator on some sequences, as columns of one long table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.engine.executors import one_thread
from icl_estimators.estimators import Estimator
from icl_estimators.experiments.prediction import ask
from icl_estimators.sources import ObservedSequences, Source
from icl_estimators.validation import InputError, as_tokens, positive_int

__all__ = ["Given", "drawn_sequences", "given_sequences", "prediction_columns"]

_BATCH_CELLS = 2_000_000  # probabilities that are predicted at once: 16 MB


@dataclass(frozen=True)
class Given:
    """Sequences to predict on.

    Attributes
    ----------
    labels : tuple of str or int
        What each of the K states is called.
    sequences : tuple of ndarray of int64, each of shape (T,)
        Of any lengths T ≥ 1.
    truth : tuple of ndarray of float64, each of shape (T, K), or None
        The law of the next token after each prefix, where it is known.
    """

    labels: tuple[str, ...] | tuple[int, ...]
    sequences: tuple[NDArray[np.int64], ...]
    truth: tuple[NDArray[np.float64], ...] | None = None

    @property
    def longest(self) -> int:
        """The most tokens of a sequence."""
        return max(map(len, self.sequences))


def given_sequences(sequences: ObservedSequences | ArrayLike | Iterable[ArrayLike], states: int) -> Given:
    """Return sequences that were given: observed ones, one sequence of integers, or several of any lengths.

    Parameters
    ----------
    sequences : ObservedSequences, or array-like of int of shape (T,) or (N, T), or iterable of those of shape (T,)
    states : int
        K, where the sequences do not say it.

    Raises
    ------
    InputError
        If there are no sequences, one is empty, or a token is not an integer from 0 to K − 1.

    Examples
    --------
    >>> [len(sequence) for sequence in given_sequences([[0, 1, 2], [1, 0]], 3).sequences]
    [3, 2]
    """
    if isinstance(sequences, ObservedSequences):
        labels = (*sequences.labels, *("" for _ in range(sequences.n_states - len(sequences.labels))))
        return Given(labels, sequences.sequences)
    rows: list[Any] = list(sequences)  # type: ignore[arg-type]
    if rows and np.ndim(rows[0]) == 0:
        rows = [rows]
    if not rows or any(np.size(row) == 0 for row in rows):
        raise InputError("there is nothing to predict on: give sequences of at least one token")
    tokens = tuple(as_tokens([row], states)[0] for row in rows)
    return Given(tuple(range(states)), tokens)


def drawn_sequences(source: Source, chains: int, *, sequences_per_chain: int, length: int, seed: int) -> Given:
    """Draw sequences of fresh chains: those that a study of the same seed draws for its risk.

    Parameters
    ----------
    source : Source
    chains, sequences_per_chain, length : int
        R, S and T; sequence s of chain r has the number r·S + s.
    seed : int

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    sample = source.sample(
        range(positive_int(chains, "chains")),
        sequences_per_chain=positive_int(sequences_per_chain, "sequences_per_chain"),
        length=positive_int(length, "length"),
        seed=positive_int(seed, "seed", at_least=0),
        purpose="risk",
    )
    return Given(tuple(range(source.n_states)), tuple(sample.inputs), tuple(sample.truth))


def prediction_columns(estimators: Sequence[Estimator], given: Given) -> dict[str, Any]:
    """Ask every estimator after every prefix; return the columns of the table.

    Parameters
    ----------
    estimators : sequence of Estimator
    given : Given

    Returns
    -------
    dict of str to ndarray
        `estimator`, `sequence`, `context_length`, `token` (what may come next), `probability`, and `truth` where it is
        known: one entry for each estimator, sequence, prefix and token, in this order.

    Raises
    ------
    ContractError
        If an estimator fails or breaks the contract.
    """
    k, lengths = len(given.labels), [len(sequence) for sequence in given.sequences]
    per_estimator = sum(lengths) * k
    found = {rule.name: _ask_all(rule, given.sequences) for rule in estimators}
    names = np.repeat(np.array(list(found), dtype=object), per_estimator)
    sequence = np.repeat(np.arange(len(lengths)), np.array(lengths) * k)
    context = np.concatenate([np.repeat(np.arange(1, length + 1), k) for length in lengths])
    label = np.array(given.labels, dtype=object if isinstance(given.labels[0], str) else np.int64)
    columns = {
        "estimator": names,
        "sequence": np.tile(sequence, len(found)),
        "context_length": np.tile(context, len(found)),
        "token": np.tile(label, len(found) * sum(lengths)),
        "probability": np.concatenate([part.ravel() for parts in found.values() for part in parts]),
    }
    if given.truth is not None:
        columns["truth"] = np.tile(np.concatenate([part.ravel() for part in given.truth]), len(found))
    return columns


def _ask_all(estimator: Estimator, sequences: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """Return the predictions for each sequence, shape (T, K); sequences of one length are predicted together."""
    of_length: dict[int, list[int]] = {}
    for number, sequence in enumerate(sequences):
        of_length.setdefault(len(sequence), []).append(number)
    found: dict[int, NDArray[np.float64]] = {}
    for length, numbers in of_length.items():
        size = max(1, _BATCH_CELLS // (length * estimator.n_states))
        for first in range(0, len(numbers), size):
            batch = numbers[first : first + size]
            with one_thread():
                predicted = ask(
                    estimator,
                    np.stack([sequences[number] for number in batch]),
                    place=lambda row, batch=batch: f"sequence {batch[row]}",  # type: ignore[misc]
                    where=lambda _, batch=batch: f"sequences {batch[0]} to {batch[-1]}",  # type: ignore[misc]
                )
            found.update(zip(batch, predicted, strict=True))
    return [found[number] for number in range(len(sequences))]
