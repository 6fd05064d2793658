"""One sequence a line: labels with one separator for the whole text, or a character each."""

from __future__ import annotations

from icl_estimators.sources.observed.columns import column_number
from icl_estimators.sources.observed.encoded import Encoded, Encoder, line_of
from icl_estimators.sources.observed.labels import (
    SEPARATORS,
    cells_of,
    check_label,
    find_separator,
    holds,
    outside_quotes,
    refuse_r_index,
)
from icl_estimators.sources.observed.raw_text import RawText
from icl_estimators.sources.observed.reading_options import ReadingOptions
from icl_estimators.sources.observed.suspicion import refuse_inner_separator, refuse_tables
from icl_estimators.validation import InputError

__all__ = ["read_characters", "read_lines"]

_NO_LABELS = {"#", "%", "//", "|", "->", "=>", "→"}
_MARKS = {">": "a header of FASTA", "#": "a comment", "%": "a comment", "//": "a comment"}


def read_characters(text: RawText, options: ReadingOptions) -> Encoded:
    """Read lines in which each character is a label.

    Raises
    ------
    InputError
        If a line has a separator, or starts like a comment.
    """
    lines = _plain_lines(text)

    def check(label: str, place: str) -> None:
        if label.isspace() or label in SEPARATORS:
            raise InputError(
                f"{place} has {SEPARATORS.get(label, 'white space')}, but {options.with_characters} treats each "
                "character as a state: leave that out, or remove it from the line"
            )

    encoder = Encoder(check)
    for number, line in lines:
        encoder.add(line, f"{text.place}, line {number}")
        encoder.end()
    return _result(text, encoder, [number for number, _ in lines], "each character a label")


def read_lines(text: RawText, options: ReadingOptions) -> Encoded:
    """Read lines of labels with separators; a header and a column of names where the options say so.

    Raises
    ------
    InputError
        If there are two separators or none, a label cannot be one, or the lines look like a table.
    """
    lines = _plain_lines(text)
    separator = _given_separator(text, lines, options) or _separator(text, lines, options)
    named = options.id_column is not None and not options.id_column.isdecimal()
    if named and options.header is False:
        raise InputError(f"{options.flag('id_column')} {options.id_column} needs names of columns: give its number")
    header: list[str] | None = None
    if options.header or (named and options.header is None):
        (number, line), *lines = lines
        header = cells_of(line, separator, f"{text.place}, line {number}")
        if not lines:
            raise InputError(f"{text.place} has a header only: write each sequence on a line below it")
    column = None
    if options.id_column is not None:
        column = column_number(options.id_column, header, None, text.place)

    def check(label: str, place: str) -> None:
        if label or "" not in options.missing:
            if not label:
                what = SEPARATORS.get(separator, "delimiters")
                raise InputError(
                    f"{place} has an empty label: put one label between {what}, or say that it is a missing value "
                    f"with {options.with_empty_missing}"
                )
            check_label(label, place, separator)

    encoder, ids = Encoder(check), _Names()
    for number, line in lines:
        place = f"{text.place}, line {number}"
        cells = cells_of(line, separator, place)
        if column is not None:
            ids.take(cells, column, number, place)
        refuse_r_index(cells, place)
        encoder.add(cells, place)
        encoder.end()
    numbers = [number for number, _ in lines]
    form = f"labels separated by {SEPARATORS.get(separator, repr(separator))}"
    encoded = _result(text, encoder, numbers, form, ids=tuple(ids.names))
    if options.states_order is None:  # else it is known what is a state
        if options.delimiter is None:
            refuse_inner_separator(encoded, options)
        refuse_tables(encoded, options, has_header=header is not None)
    return encoded


class _Names:
    """The names of lines, each once."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def take(self, cells: list[str], column: int, number: int, place: str) -> None:
        """Move the name from a line's cells."""
        if column >= len(cells):
            raise InputError(f"{place} has no column {column + 1}, where its name should be: add it")
        name = cells.pop(column)
        if not name:
            raise InputError(f"{place} has no name in column {column + 1}: write one there")
        if name in self.names:
            raise InputError(
                f"{place} has the name {name!r}, as line {self.names[name]} has: give each sequence a name of its own, "
                "or read rows of single states as a table with a state column"
            )
        if not cells:
            raise InputError(f"{place} has a name but no states: remove the line")
        self.names[name] = number


def _result(text: RawText, encoder: Encoder, numbers: list[int], form: str, ids: tuple[str, ...] = ()) -> Encoded:
    codes, lengths = encoder.result()
    where = line_of(text.place, lengths, numbers)
    return Encoded(
        name=text.name,
        place=text.place,
        labels=encoder.labels,
        codes=codes,
        lengths=lengths,
        where=where,
        form=form,
        ids=ids,
    )


def _plain_lines(text: RawText) -> list[tuple[int, str]]:
    """Return the lines, none of which starts like a header or a comment."""
    lines = text.lines()
    for number, line in lines:
        start = line.lstrip()
        for mark, kind in _MARKS.items():
            if start.startswith(mark):
                raise InputError(
                    f"{text.place}, line {number} starts with {mark}, as {kind} does: remove such lines (a state with "
                    "that name needs another name)"
                )
    return lines


def _given_separator(text: RawText, lines: list[tuple[int, str]], options: ReadingOptions) -> str | None:
    if options.delimiter is None:
        return None
    separator = " " if options.delimiter.isspace() and options.delimiter != "\t" else options.delimiter
    if not any(holds(line, separator) for _, line in lines):
        raise InputError(
            f"{text.place}: the delimiter {options.delimiter!r} occurs in no line: give what separates labels"
        )
    return separator


def _separator(text: RawText, lines: list[tuple[int, str]], options: ReadingOptions) -> str:
    """Return what separates labels in all lines."""
    found: dict[str, int] = {}
    for number, line in lines:
        place, bare = f"{text.place}, line {number}", outside_quotes(line)
        words = bare.split()
        if not _NO_LABELS.isdisjoint(words):
            odd = next(word for word in words if word in _NO_LABELS)
            raise InputError(
                f"{place} has {odd} among its labels, as a comment or an arrow does: separate "
                "labels by commas, semicolons, tabs or white space alone, and remove comments"
            )
        separator = find_separator(bare, place)
        if separator is not None:
            found.setdefault(separator, number)
        if len(found) > 1:
            (before, where), (other, _) = found.items()
            raise InputError(
                f"{place} has {SEPARATORS[other]}, but line {where} has {SEPARATORS[before]}: separate all labels in "
                f"the same way, or name the separator with {options.flag('delimiter')}"
            )
    if not found:
        raise InputError(
            f"every line of {text.place} is one word: give {options.with_characters} if each character is a state, "
            f"or {options.flag('delimiter')} with what separates the states; for one state per line give "
            f"{options.flag('state_column')} 1"
        )
    return next(iter(found))
