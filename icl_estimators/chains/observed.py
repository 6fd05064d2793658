"""Observed sequences: data without a known truth."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError

__all__ = ["ObservedSequences", "DATASETS", "dataset", "elnino", "read_sequences"]


@dataclass(frozen=True, slots=True)
class ObservedSequences:
    """Categorical sequences with the names of their states.

    Attributes
    ----------
    name : str
        Where they come from.
    labels : tuple of str
        The states' names; state k is ``labels[k]``.
    sequences : tuple of ndarray of int64, each of shape (L,)
        A sequence of L tokens gives L − 1 predictions to score.
    """

    name: str
    labels: tuple[str, ...]
    sequences: tuple[NDArray[np.int64], ...]

    @property
    def n_states(self) -> int:
        """K, at least 2 so that every estimator is defined."""
        return max(2, len(self.labels))

    @property
    def n_predictions(self) -> int:
        """How many tokens are predicted: Σ (L − 1)."""
        return sum(len(sequence) - 1 for sequence in self.sequences)


def elnino() -> ObservedSequences:
    """Monthly sea-surface temperatures as La Niña, neutral and El Niño, 1950 to 2010.

    The series ships with statsmodels. A month's anomaly is its temperature less the mean of that calendar
    month over 1950–2010; states are La Niña (below −0.5 °C), neutral (from −0.5 up to but not including
    0.5) and El Niño (from 0.5 °C up). 732 months.

    Examples
    --------
    >>> months = elnino()
    >>> months.labels, months.n_predictions
    (('La Niña', 'neutral', 'El Niño'), 731)
    """
    from statsmodels.datasets import elnino as source  # statsmodels is slow to import

    table = source.load_pandas().data
    temperature = table.drop(columns="YEAR").to_numpy(dtype=np.float64)  # (years, months)
    anomaly = (temperature - temperature.mean(axis=0)).ravel()
    states = np.digitize(anomaly, [-0.5, 0.5]).astype(np.int64)
    return ObservedSequences("elnino", ("La Niña", "neutral", "El Niño"), (states,))


DATASETS = {"elnino": elnino}
"""Series that need no file, by name."""


def dataset(name: str) -> ObservedSequences:
    """Return a series of :data:`DATASETS`.

    Raises
    ------
    InputError
        If there is no such series.
    """
    try:
        return DATASETS[name]()
    except KeyError:
        raise InputError(f"unknown dataset {name!r}: choose from {', '.join(sorted(DATASETS))}") from None


def read_sequences(path: str | Path) -> ObservedSequences:
    """Read one sequence a line from a UTF-8 text file.

    Labels are separated by commas or white space; a line with neither is read character by character.
    Empty lines are skipped. States are numbered in the labels' sorted order (by number where all are numbers).

    Raises
    ------
    InputError
        If the file is missing, is no UTF-8 text, holds an empty label, or has no sequence of two tokens.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise InputError(f"no such file: {path} (give a text file with one sequence a line)") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: save it as UTF-8, one sequence a line") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    split: list[list[str]] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        if "," in text:
            words = [word.strip() for word in text.split(",")]
        else:
            words = text.split() if re.search(r"\s", text) else list(text)
        if "" in words:
            raise InputError(f"{path}, line {number}: an empty label: put one label between commas")
        split.append(words)
    if not any(len(words) > 1 for words in split):
        raise InputError(f"{path} has no sequence of two or more tokens, so there is nothing to predict")
    labels = _in_order({word for words in split for word in words})
    index = {label: k for k, label in enumerate(labels)}
    sequences = tuple(np.array([index[word] for word in words], dtype=np.int64) for words in split)
    return ObservedSequences(path.name, tuple(labels), sequences)


def _in_order(labels: set[str]) -> list[str]:
    by_text = sorted(labels)  # first, so that the order never hangs on the set's
    try:
        numbers = {label: float(label) for label in labels}
    except ValueError:
        return by_text
    return by_text if any(map(math.isnan, numbers.values())) else sorted(by_text, key=numbers.__getitem__)
