"""Lines that look like something other than sequences: a second separator, rows of a table, measurements.

A file of sequences does not describe itself. A wrong reading would give a plausible number about other data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icl_estimators.sources.observed.encoded import Encoded
from icl_estimators.sources.observed.labels import few, is_number
from icl_estimators.sources.observed.reading_options import ReadingOptions
from icl_estimators.validation import InputError

__all__ = ["refuse_inner_separator", "refuse_tables"]

_MANY = 12  # labels beyond which numbers with decimals that hardly recur are measurements


def refuse_inner_separator(read: Encoded, options: ReadingOptions) -> None:
    """Refuse ``sun rain`` where ``sun`` is a label too: white space is a second separator there.

    Raises
    ------
    InputError
        If a word of a label is a label too.
    """
    labels = set(read.labels)
    for code, label in enumerate(read.labels):
        words = label.split()
        known = next((word for word in words if word in labels), None) if len(words) > 1 else None
        if known is not None:
            place = read.where(int(np.flatnonzero(read.codes == code)[0]))
            raise InputError(
                f"{place}: {label!r} contains white space, and {known!r} is a label too: separate all labels in the "
                f"same way, or name the separator with {options.flag('delimiter')}"
            )


def refuse_tables(read: Encoded, options: ReadingOptions, *, has_header: bool = False) -> None:
    """Refuse what looks like rows of a table; a missing value is evidence of nothing.

    - The labels of the first line differ from each other and occur nowhere else (a header), unless the options say
      whether there is one.
    - In three lines or more, the labels of the first column, or of any where all lines are equally long, differ from
      each other and occur nowhere else (names of rows, dates, measurements).
    - All lines are equally long, and some columns that vary hold numbers alone, others none; or in three lines or
      more, a first line without numbers is above a column of them.
    - There are more than a dozen labels, all numbers, some with decimals, and most occur once (measurements).

    Parameters
    ----------
    read : Encoded
    options : ReadingOptions
    has_header : bool
        A header was taken off.

    Raises
    ------
    InputError
        In these cases.
    """
    first_is_data = has_header or options.header is False
    rows = len(read.lengths)
    counts = np.bincount(read.codes, minlength=len(read.labels))
    missing = np.array([label in options.missing for label in read.labels], dtype=bool)
    counts[missing] = len(read.codes) + 1
    numeric = np.array([is_number(label) for label in read.labels], dtype=bool)
    starts = np.cumsum(read.lengths) - read.lengths
    first = read.codes[: read.lengths[0]]
    place = read.where(0)
    mend = f"name the columns with {options.flag('state_column')} (and {options.flag('id_column')})"
    remedy = f"if it is one, {mend}; if not, keep only the states, and put each sequence on one line"
    head = f"give {options.with_header} if it is one (with {options.flag('state_column')} for a table with a row for "
    head += f"each state), {options.without_header} if it is a sequence"
    if rows > 1 and not first_is_data and (counts[first] == 1).all():
        raise InputError(f"{place} looks like the header of a table ({_few(read, first)} occur nowhere else): {head}")
    rectangular = bool((read.lengths == read.lengths[0]).all())
    table = read.codes.reshape(rows, -1) if rectangular else read.codes[starts][:, None]
    alone = np.flatnonzero((counts[table] == 1).all(axis=0))
    if rows >= 3 and len(alone):
        raise InputError(
            f"{read.place} looks like a table: the labels of column {alone[0] + 1} ({_few(read, table[:, alone[0]])}) "
            f"occur nowhere else: {remedy}"
        )
    if rectangular and rows > 1:
        _refuse_kinds(read, table, numeric, missing, place, head if not first_is_data else None, remedy)
    known = ~missing
    once = int((counts == 1).sum())
    measured = numeric[known].all() and any("." in read.labels[k] for k in np.flatnonzero(known))
    if measured and known.sum() > _MANY and once > known.sum() / 2:
        raise InputError(
            f"{read.place} looks like measurements, not states: {known.sum()} different numbers "
            f"({few(read.labels)}), {once} of which occur once: divide them into a few states, or declare all of them "
            f"with {options.flag('states_order')}"
        )


def _refuse_kinds(
    read: Encoded,
    table: NDArray[np.int64],
    numeric: NDArray[np.bool_],
    missing: NDArray[np.bool_],
    place: str,
    head: str | None,
    remedy: str,
) -> None:
    """Refuse columns of numbers beside columns of words, or below a first line of words; `table` is (rows, columns)."""
    number, gap = numeric[table], missing[table]
    below = np.flatnonzero(number[1:].all(axis=0))
    if head is not None and len(table) >= 3 and len(below) and not number[0].any():
        raise InputError(
            f"{place} looks like the header of a table ({read.labels[table[0, below[0]]]} above numbers): {head}"
        )
    lowest = np.where(gap, len(read.labels), table).min(axis=0)
    varying = np.where(gap, -1, table).max(axis=0) > lowest
    numbers = np.flatnonzero(varying & (number | gap).all(axis=0))
    words = np.flatnonzero(varying & (~number | gap).all(axis=0))
    if len(numbers) and len(words):
        raise InputError(
            f"{read.place} looks like a table: column {numbers[0] + 1} has numbers, column {words[0] + 1} words: "
            f"{remedy}"
        )


def _few(read: Encoded, codes: NDArray[np.int64]) -> str:
    return few([read.labels[code] for code in codes[:4]])
