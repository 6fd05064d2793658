"""Sequences from Python: lists, arrays, Series, DataFrames, or the path of a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from icl_estimators.sources.observed.encoded import Encoded
from icl_estimators.sources.observed.python_data import encoded_data
from icl_estimators.sources.observed.python_labels import is_no_value, text_of
from icl_estimators.sources.observed.raw_text import STANDARD_INPUT
from icl_estimators.sources.observed.reading import read_sequences
from icl_estimators.sources.observed.reading_options import ReadingKeywords, ReadingOptions
from icl_estimators.sources.observed.sequences import ObservedSequences
from icl_estimators.sources.observed.states import observed_states
from icl_estimators.validation import InputError

__all__ = ["observed"]


def observed(
    data: Any,
    *,
    name: str | None = None,
    states_order: Iterable[Hashable] | None = None,
    missing: Hashable | Iterable[Hashable] = (),
    missing_action: str = "split",
    state_column: Hashable | None = None,
    id_column: Hashable | None = None,
    order_column: Hashable | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    characters: bool = False,
) -> ObservedSequences:
    """Return your own categorical sequences, with the names of their states.

    Parameters
    ----------
    data : path, list, mapping, array, Series or DataFrame
        - A path (text is a path; ``-`` is standard input): a UTF-8 text file with one sequence a line, FASTA, or, with
          `state_column`, a table with one observation a row.
        - A list of labels is one sequence; a list of lists (or tuples, arrays, Series) is one sequence each. A mapping
          has a sequence for each name.
        - A NumPy array of shape (T,) is one sequence, one of shape (N, T) has a sequence in each row.
        - A pandas Series is one sequence. The categories of a Categorical are the order of states; unused ones stay.
        - A DataFrame has one observation a row, with its label in `state_column`.

        Labels are text. Integers, whole floats and other objects become the text that ``str`` gives (1.0 becomes "1");
        text stays as it is, so "007" and "NA" are states like any other.
    name : str, optional
        What the data are called; by default the name of the file, else ``data``.
    states_order : iterable of labels, optional
        All states in their order. States that do not occur stay. Default: sorted, by number if all are numbers.
    missing : label or iterable of labels
        Values that are missing. None or NaN stands for all of None, NaN, NaT and pandas.NA.
    missing_action : {"split", "error"}
        A missing value ends a piece of its sequence, or is an error. Pieces have the same number in ``groups``.
    state_column, id_column, order_column : column of a table, optional
        Where the labels are; which rows are one sequence (one for each id, in the order of first appearance; rows need
        not be contiguous); and the order of the rows of one sequence (by number if all are numbers, else by text, as
        fits ISO dates; default: the order of rows). Columns of a file have names, or numbers from 1. In a file with
        one sequence a line, `id_column` is the column of the sequences' names.
    header : bool, optional
        Whether the first line of a file holds the names of columns; by default, whether a column is given by name.
    delimiter : str, optional
        What separates labels in a file; a space is any white space.
    characters : bool
        Each character of a line of a file, or of each text in a list, is a label.

    Returns
    -------
    ObservedSequences

    Raises
    ------
    InputError
        If the data cannot be read as described; see the message, which names the line or place.

    Warns
    -----
    UserWarning
        If labels differ only by case or white space.

    Examples
    --------
    >>> weather = observed([["sun", "sun", None, "rain", "sun"], ["rain", "rain"]], missing=[None])
    >>> weather.labels, [piece.tolist() for piece in weather.sequences], weather.groups
    (('rain', 'sun'), [[1, 1], [0, 1], [0, 0]], (0, 0, 1))
    >>> observed(list("ABAB"), states_order="ABC").n_states
    3
    """
    no_value, missing_labels = _missing(missing)
    options = ReadingOptions(
        delimiter=delimiter,
        characters=bool(characters),
        header=header,
        state_column=None if state_column is None else str(state_column),
        id_column=None if id_column is None else str(id_column),
        order_column=None if order_column is None else str(order_column),
        missing=missing_labels,
        missing_action=missing_action,
        states_order=None if states_order is None else tuple(text_of(x, "states_order") for x in states_order),
    )

    notes: list[str] = []
    if isinstance(data, (str, Path)):
        found = _from_file(data, name, options, no_value, notes.append)
    else:
        _refuse_what_is_for_files(data, options)
        columns = {"state_column": state_column, "id_column": id_column, "order_column": order_column}
        read = encoded_data(
            data, name or "data", {k: v for k, v in columns.items() if v is not None}, characters=options.characters
        )
        if not no_value:
            _refuse_no_value(read)
        found = observed_states(read, options, notes.append)
    for line in notes:
        warnings.warn(line, stacklevel=2)
    return found


def _from_file(
    path: str | Path, name: str | None, options: ReadingOptions, no_value: bool, warn: Callable[[str], None]
) -> ObservedSequences:
    if no_value:
        raise InputError(
            'a file holds text only: give missing values as they are written there, such as missing=["NA"]'
        )
    if isinstance(path, str) and path != STANDARD_INPUT and not os.path.exists(path):
        hint = f"list({path!r})" if len(path) <= 20 and path.isprintable() else "list(text)"
        raise InputError(
            f"no such file: {path[:60]!r} (text is a path; for a sequence of characters give {hint}, or [text] with "
            "characters=True)"
        )
    keywords: ReadingKeywords = {field.name: getattr(options, field.name) for field in fields(options)}  # type: ignore[assignment]
    found = read_sequences(path, warn=warn, **keywords)
    return found if name is None else replace(found, name=name)


def _refuse_what_is_for_files(data: Any, options: ReadingOptions) -> None:
    for given in ("delimiter", "header"):
        if getattr(options, given) is not None:
            raise InputError(f"{given} applies to files, not to a {type(data).__name__}: leave it out")


def _refuse_no_value(read: Encoded) -> None:
    absent = np.flatnonzero(read.codes < 0)
    if len(absent):
        raise InputError(
            f"{read.where(int(absent[0]))} has no value (None or NaN): say that this is a missing value with "
            "missing=[None], or remove it"
        )


def _missing(missing: Hashable | Iterable[Hashable]) -> tuple[bool, tuple[str, ...]]:
    """Return whether None and NaN are missing values, and which labels are."""
    one = isinstance(missing, (str, bytes)) or not isinstance(missing, Iterable)
    values: list[Any] = [missing] if one else list(missing)  # type: ignore[arg-type]
    labels = tuple(text_of(value, "missing") for value in values if not is_no_value(value))
    return len(labels) < len(values), tuple(dict.fromkeys(labels))
