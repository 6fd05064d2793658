"""A table with one observation a row, in a text file: which columns hold states, names and the order."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from icl_estimators.sources.observed.columns import column_number
from icl_estimators.sources.observed.encoded import Codes, Encoded
from icl_estimators.sources.observed.grouping import in_sequences, ranks_of_text
from icl_estimators.sources.observed.labels import HARD, SEPARATORS, few, find_separator, is_number, outside_quotes
from icl_estimators.sources.observed.raw_text import RawText
from icl_estimators.sources.observed.reading_options import ReadingOptions
from icl_estimators.validation import InputError

__all__ = ["read_table"]

Row = tuple[int, list[str]]
"""Number of a line, from 1, and its cells."""


def read_table(text: RawText, options: ReadingOptions) -> Encoded:
    """Read the columns that the options name.

    Cells stay as written, without spaces before them. They may be quoted unless white space separates them.

    Raises
    ------
    InputError
        If a column is missing, rows differ in their number of cells, a quote is not closed, a name or a place in the
        order is empty, two rows of a sequence have the same place, or the first line looks like a header that was not
        announced.
    """
    separator = _separator(text, options)
    rows = _rows(text, separator)
    number, first = next(rows)
    names, rows = _header(text, options, (number, first), rows)
    width = len(first)
    roles = {
        role: column_number(column, names, width, text.place)
        for role in ("state_column", "id_column", "order_column")
        if (column := getattr(options, role)) is not None
    }
    if len(set(roles.values())) < len(roles):
        raise InputError(f"{text.place}: two of {', '.join(map(options.flag, roles))} are one column: give it one role")
    codes = {role: Codes() for role in roles}
    tokens = {role: array("q") for role in roles}
    lines = array("q")
    columns = [(position, codes[role], tokens[role]) for role, position in roles.items()]
    for line, cells in rows:
        if len(cells) != width:
            have = f"{len(cells)} cell" + ("s" if len(cells) > 1 else "")
            raise InputError(
                f"{text.place}, line {line} has {have}, but line {number} has {width}: give each row a cell for each "
                f"column (quote cells that hold the separator, or name it with {options.flag('delimiter')})"
            )
        for position, numbers, column in columns:
            column.append(numbers[cells[position]])
        lines.append(line)
    if not lines:
        raise InputError(f"{text.place} has a header only: write the rows below it")
    read = {role: np.array(column, dtype=np.int64) for role, column in tokens.items()}
    if options.header is None and names is None:
        _refuse_header(text, options, number, read, codes)
    return _encoded(text, options, read, codes, np.array(lines, dtype=np.int64))


def _encoded(
    text: RawText,
    options: ReadingOptions,
    read: dict[str, NDArray[np.int64]],
    codes: dict[str, Codes],
    lines: NDArray[np.int64],
) -> Encoded:
    def where(row: int) -> str:
        return f"{text.place}, line {lines[row]}"

    for role in ("id_column", "order_column"):
        empty = next((code for label, code in codes.get(role, {}).items() if not label.strip()), None)
        if empty is not None:
            row = int(np.flatnonzero(read[role] == empty)[0])
            raise InputError(f"{where(row)} has an empty cell in {options.flag(role)}: fill it in, or remove the row")
    ranks, ordered = None, ""
    if "order_column" in read:
        by_label, kind = ranks_of_text(list(codes["order_column"]))
        ranks, ordered = by_label[read["order_column"]], f", in the order of {options.order_column} (by {kind})"
    order, lengths = in_sequences(read.get("id_column"), ranks, len(lines), where)
    by_id = f", one sequence for each {options.id_column}" if "id_column" in read else ", one sequence"
    return Encoded(
        name=text.name,
        place=text.place,
        labels=list(codes["state_column"]),
        codes=read["state_column"][order],
        lengths=lengths,
        where=lambda token: where(int(order[token])),
        form=f"a table with the states in column {options.state_column}{by_id}{ordered}",
        ids=tuple(codes["id_column"]) if "id_column" in read else (),
    )


def _separator(text: RawText, options: ReadingOptions) -> str:
    """Return what separates cells, as the first line shows it; a tab where it has one cell."""
    if options.delimiter is not None:
        separator = " " if options.delimiter.isspace() and options.delimiter != "\t" else options.delimiter
        if len(separator) > 1:
            raise InputError(f"the delimiter {separator!r} of a table has several characters: give one character")
        if separator == '"':
            raise InputError('the delimiter " quotes cells: give another character')
        return separator
    bare = outside_quotes(text.first_line())
    marks = [mark for mark in HARD if mark in bare]
    if len(marks) > 1:
        raise InputError(
            f"{text.place}: {SEPARATORS[marks[0]]} and {SEPARATORS[marks[1]]} both occur in the first line: name the "
            f"separator with {options.flag('delimiter')}"
        )
    return find_separator(bare, text.place) or "\t"


def _rows(text: RawText, separator: str) -> Iterator[Row]:
    """Go through the rows. Empty lines are none, but within a single column they are empty cells."""
    if separator == " ":
        yield from ((number, line.split()) for number, line in text.lines())
        return
    reader = csv.reader(io.StringIO(text.text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    before, width = 0, 0
    blank: list[int] = []
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f'{text.place}, line {before + 1}: {error}: close each quote, and write " within quotes as ""'
            ) from None
        if cells is None:
            return  # empty lines at the end are no rows
        number, before = before + 1, reader.line_num
        if not cells or (width != 1 and len(cells) == 1 and not cells[0].strip()):
            blank += [number] * (width == 1)
            continue
        width = width or len(cells)
        yield from ((line, [""]) for line in blank)
        blank.clear()
        yield number, cells


def _header(
    text: RawText, options: ReadingOptions, first: Row, rows: Iterator[Row]
) -> tuple[list[str] | None, Iterator[Row]]:
    """Return the names of columns, or None, and the rows that are data."""
    given = [column for column in (options.state_column, options.id_column, options.order_column) if column]
    name = next((column for column in given if not column.isdecimal()), None)
    if name is not None and options.header is False:
        raise InputError(
            f"the column {name!r} is a name, and {options.without_header} says that there are none: give its number"
        )
    if options.header or (name is not None and options.header is None):
        return [cell.strip() for cell in first[1]], rows

    def all_rows() -> Iterator[Row]:
        yield first
        yield from rows

    return None, all_rows()


def _refuse_header(
    text: RawText,
    options: ReadingOptions,
    number: int,
    read: dict[str, NDArray[np.int64]],
    codes: dict[str, Codes],
) -> None:
    """Refuse a first line whose cells are unlike all others in their columns, where nothing says what it is."""
    if len(next(iter(read.values()))) < 3 or options.states_order is not None:
        return
    firsts = {role: next(iter(codes[role])) for role in read}
    alone = {role: (column == column[0]).sum() == 1 for role, column in read.items()}
    unlike = alone["state_column"] and alone.get("id_column", True)
    if unlike and "order_column" in read:
        digits = [any(map(str.isdecimal, label)) for label in codes["order_column"]]
        unlike = not digits[0] and all(digits[1:])
    numbers = [is_number(label) for label in codes["state_column"]]
    titled = not numbers[0] and all(numbers[1:]) and alone["state_column"]
    if unlike or titled:
        raise InputError(
            f"{text.place}, line {number} looks like a header (no other row has {few(list(firsts.values()))} in "
            f"its columns): give {options.with_header} if it is one, {options.without_header} if it is a row"
        )
