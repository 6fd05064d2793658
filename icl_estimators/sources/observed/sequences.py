"""Observed sequences: data without a known truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icl_estimators.validation import InputError

__all__ = ["ObservedSequences", "DATASETS", "dataset", "elnino"]

_NAMES_SHOWN = 12


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
    form : str
        How labels were separated, in words; empty where nothing was read from a file.
    about : str
        What was measured, when, and how the states were defined, in a sentence or two; empty where that is not known.
    ids : tuple of str
        The name of each sequence; empty where they have none.
    groups : tuple of int
        Which sequence of the data each one is a piece of, from 0, where gaps divide sequences; empty where each is
        whole. Pieces of one sequence are one independent unit.
    missing : int
        How many values were missing. A gap is no transition and no state.
    """

    name: str
    labels: tuple[str, ...]
    sequences: tuple[NDArray[np.int64], ...]
    form: str = ""
    about: str = ""
    ids: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    missing: int = 0

    @property
    def units(self) -> NDArray[np.int64]:
        """The independent unit of each sequence, shape (N,): pieces of one sequence have the same number."""
        return np.array(self.groups if self.groups else range(len(self.sequences)), dtype=np.int64)

    @property
    def n_states(self) -> int:
        """K, at least 2 so that every estimator is defined."""
        return max(2, len(self.labels))

    @property
    def n_predictions(self) -> int:
        """How many tokens are predicted: Σ (L − 1)."""
        return sum(len(sequence) - 1 for sequence in self.sequences)

    @property
    def record(self) -> dict[str, Any]:
        """What was read, as plain values: the states, and how many sequences of which lengths."""
        lengths = [len(sequence) for sequence in self.sequences]
        return {
            "name": self.name,
            "form": self.form,
            "about": self.about,
            "n_states": self.n_states,
            "labels": list(self.labels),
            "n_sequences": len(lengths),
            "shortest": min(lengths),
            "longest": max(lengths),
            "n_predictions": self.n_predictions,
            "n_units": len(set(self.units.tolist())),
            "missing": self.missing,
        }

    def described(self) -> str:
        """Say in one line what was read.

        Examples
        --------
        >>> elnino().described()
        'read elnino: 3 states (La Niña, neutral, El Niño), 1 sequence of 732 tokens, 731 predictions'
        """
        n_met, n_sequences = len(self.labels), len(self.sequences)
        names = ", ".join(self.labels[:_NAMES_SHOWN]) + (", …" if n_met > _NAMES_SHOWN else "")
        states = f"{n_met:,} states ({names})" if n_met > 1 else f"1 state ({names}), taken for one of 2"
        shortest, longest = self.record["shortest"], self.record["longest"]
        lengths = f"{shortest:,} to {longest:,}" if shortest < longest else f"{longest:,}"
        n_units = len(set(self.groups)) if self.groups else n_sequences
        sequences = _several(n_units, "sequence")
        if self.missing:
            gaps = "by " + _several(self.missing, "missing value")
            sequences += f", divided {gaps} into {_several(n_sequences, 'piece')}"
        single = sum(len(sequence) == 1 for sequence in self.sequences)
        nothing = f" ({single:,} of one token {'have' if single > 1 else 'has'} nothing to predict)" if single else ""
        form = f"; {self.form}" if self.form else ""
        return (
            f"read {self.name}: {states}, {sequences} of {lengths} tokens, {_several(self.n_predictions, 'prediction')}"
            f"{nothing}{form}"
        )


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


_ELNINO = (
    "Sea-surface temperature of the eastern tropical Pacific, monthly from January 1950 to December 2010 (the El Niño "
    "data set of statsmodels; source: National Oceanic and Atmospheric Administration). A month is El Niño if its "
    "temperature is at least 0.5 °C above the mean of that calendar month over these years, La Niña if it is more than "
    "0.5 °C below, and neutral otherwise."
)


def elnino() -> ObservedSequences:
    """Monthly sea-surface temperatures as La Niña, neutral and El Niño, 1950 to 2010.

    The series ships with statsmodels. A month's anomaly is its temperature minus the mean of that calendar
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
    return ObservedSequences("elnino", ("La Niña", "neutral", "El Niño"), (states,), about=_ELNINO)


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
