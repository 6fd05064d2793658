"""From labels to states: which labels are states, their order, and the sequences between gaps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from icl_estimators.sources.observed.encoded import Encoded
from icl_estimators.sources.observed.labels import few, in_order
from icl_estimators.sources.observed.missing import split_at_gaps
from icl_estimators.sources.observed.reading_options import ReadingOptions
from icl_estimators.sources.observed.sequences import ObservedSequences
from icl_estimators.validation import InputError

__all__ = ["MOST_STATES", "observed_states"]

MOST_STATES = 1000
"""With more labels that nobody declared, something else than states was read."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")


def observed_states(read: Encoded, options: ReadingOptions, warn: Callable[[str], None]) -> ObservedSequences:
    """Number the states, and divide the sequences at missing values.

    States have the declared order, else that of the data's own categories, else the labels' sorted order. Declared
    states that do not occur stay.

    Parameters
    ----------
    read : Encoded
    options : ReadingOptions
    warn : callable
        Takes a line about labels that differ only by case or white space.

    Raises
    ------
    InputError
        If a label is empty, holds control characters or is not declared; if a value is missing and that is to be an
        error; if there are too many labels; or if no sequence has two tokens.
    """
    gaps = np.array([label in options.missing for label in read.labels] + [True], dtype=bool)  # −1 is missing
    missing = gaps[read.codes]
    _refuse_odd_labels(read, options, gaps)
    if options.missing_action == "error" and missing.any():
        raise InputError(
            f"{read.where(int(np.flatnonzero(missing)[0]))} has a missing value: remove it, or allow gaps with "
            f"{options.flag('missing_action')} split"
        )
    met = [label for label, gap in zip(read.labels, gaps, strict=False) if not gap]
    order = _order(read, options, met)
    pieces = split_at_gaps(missing, read.lengths)
    if not len(pieces.lengths) or pieces.lengths.max() < 2:
        between = "without a gap " if missing.any() else ""
        raise InputError(
            f"{read.place} has no sequence of two or more tokens {between}".rstrip() + ", so there is nothing to "
            "predict: write each sequence on one line, or name the columns of a table with "
            f"{options.flag('state_column')} and {options.flag('id_column')}"
        )
    _warn_of_similar(met, options, warn)
    state = {label: k for k, label in enumerate(order)}
    numbers = np.array([state.get(label, -1) for label in read.labels] + [-1], dtype=np.int64)
    tokens = numbers[read.codes[pieces.tokens]]
    n_missing = int(missing.sum())
    return ObservedSequences(
        read.name,
        order,
        tuple(_divided(tokens, pieces.lengths)),
        read.form,
        ids=tuple(read.ids[group] for group in pieces.groups) if read.ids else (),
        groups=tuple(pieces.groups.tolist()) if n_missing else (),
        missing=n_missing,
    )


def _divided(tokens: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    ends = np.cumsum(lengths).tolist()
    return [tokens[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _first(read: Encoded, label: str) -> str:
    """Return where a label stands first."""
    return read.where(int(np.flatnonzero(read.codes == read.labels.index(label))[0]))


def _refuse_odd_labels(read: Encoded, options: ReadingOptions, gaps: NDArray[np.bool_]) -> None:
    for label, gap in zip(read.labels, gaps, strict=False):
        if gap:
            continue
        if not label.strip():
            raise InputError(
                f"{_first(read, label)} has an empty label: write a state there, or say that it is a missing value "
                f"with {options.with_empty_missing}"
            )
        odd = _UNPRINTABLE.search(label)
        if odd is not None:
            raise InputError(
                f"{_first(read, label)} has the character {odd[0]!r} in the label {label[:40]!r}: write labels on one "
                "line, without control characters"
            )


def _order(read: Encoded, options: ReadingOptions, met: Sequence[str]) -> tuple[str, ...]:
    declared = options.states_order
    if declared is not None:
        known = set(declared)
        unknown = next((label for label in met if label not in known), None)
        if unknown is not None:
            raise InputError(
                f"{_first(read, unknown)} has {unknown!r}, which {options.flag('states_order')} lacks: add it there, "
                f"or name it in {options.flag('missing')} if it is a missing value"
            )
        return declared
    if read.order is not None:
        return tuple(label for label in read.order if label not in options.missing)
    if len(met) > MOST_STATES:
        raise InputError(
            f"{read.place} has {len(met):,} different labels ({few(met)}): choose the column or separator that gives "
            f"states, or declare all of them with {options.flag('states_order')}"
        )
    return tuple(in_order(met))


def _warn_of_similar(met: Sequence[str], options: ReadingOptions, warn: Callable[[str], None]) -> None:
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for label in [*met, *options.missing]:
        alike[" ".join(label.split()).casefold()].append(label)
    groups = [
        " and ".join(map(repr, labels)) for labels in alike.values() if len(set(labels) & set(met)) and len(labels) > 1
    ]
    if groups:
        shown = ", ".join(groups[:3]) + (", …" if len(groups) > 3 else "")
        warn(f"labels that differ only by case or white space are different: {shown}")
