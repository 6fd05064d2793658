"""Columns by their names, or by their numbers from 1."""

from __future__ import annotations

from icl_estimators.sources.observed.labels import few
from icl_estimators.validation import InputError

__all__ = ["column_number"]


def column_number(column: str, header: list[str] | None, width: int | None, place: str) -> int:
    """Return where a column is, from 0, by its name or, if it has none, its number from 1.

    Parameters
    ----------
    column : str
    header : list of str or None
        Names, where the first line holds them.
    width : int or None
        How many columns there are, if that is known.
    place : str

    Raises
    ------
    InputError
        If there is no such column, or two; the columns there are are named.

    Examples
    --------
    >>> column_number("state", ["date", "state"], 2, "x.csv"), column_number("2", None, 2, "x.csv")
    (1, 1)
    """
    if header is not None and column in header:
        if header.count(column) > 1:
            positions = [str(k) for k, name in enumerate(header, start=1) if name == column]
            raise InputError(
                f"{place} has {len(positions)} columns {column!r} (numbers {', '.join(positions)}): give its number"
            )
        return header.index(column)
    if column.isdecimal() and int(column) >= 1 and (width is None or int(column) <= width):
        return int(column) - 1
    if header is not None:
        raise InputError(f"{place} has no column {column!r}: its columns are {few(header, 20)}")
    numbers = "have numbers from 1" if width is None else f"have the numbers 1 to {width}"
    raise InputError(f"{place} has no column {column!r}: its columns {numbers}")
