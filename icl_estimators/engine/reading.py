"""A study's folder read back, every cell of the type that it had in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.tables import Cell, Table
from icl_estimators.reading import ROWS, read_columns, read_record, rows_written
from icl_estimators.schemas import SCHEMAS, Type
from icl_estimators.validation import InputError

__all__ = ["read_folder", "read_table"]


def _number(cell: str) -> float:
    return float(cell) if cell else math.nan


def _integer(cell: str) -> int | None:
    return int(cell) if cell else None


def _boolean(cell: str) -> bool | None:
    if cell not in ("True", "False", ""):
        raise ValueError(f"neither True nor False: {cell!r}")
    return cell == "True" if cell else None


def _context_length(cell: str) -> int | str:
    return cell if cell == "mean" else int(cell)


_READ: dict[Type, Callable[[str], Cell]] = {
    Type.TEXT: str,
    Type.NUMBER: _number,
    Type.INTEGER: _integer,
    Type.BOOLEAN: _boolean,
    Type.CONTEXT_LENGTH: _context_length,
}


def read_folder(folder: Path) -> StudyResult:
    """Return the tables and the record of a study's folder.

    Parameters
    ----------
    folder : Path
        What ``evaluate``, ``smoothing``, ``identify`` or ``exact`` wrote. Other files in it are ignored.

    Raises
    ------
    InputError
        If there is no such folder, run.json is missing or not the record of a study, there is no table, or a table
        cannot be read.
    """
    run = read_record(folder)
    paths = [path for path in (folder / f"{name}.csv" for name in SCHEMAS) if path.is_file()]
    if not paths:
        raise InputError(f"{folder} has no table: run the command in its run.json again")
    tables = {path.stem: read_table(path, rows_written(run, path.stem)) for path in paths}
    run.pop(ROWS, None)  # the record in memory has none
    return StudyResult(tables, run)


def read_table(path: Path, n_rows: int | None = None) -> Table:
    """Return one table: numbers to the last bit, context lengths as integers beside `mean`.

    Raises
    ------
    InputError
        If it is not a table of that name, is cut off, or a cell is not of its column's type.
    """
    text = read_columns(path, n_rows)
    schema = SCHEMAS[path.stem]
    columns = []
    for column in schema.columns:
        convert = _READ[column.type]
        try:
            columns.append([convert(cell) for cell in text[column.name]])
        except ValueError as error:
            raise InputError(f"cannot read {path}, column {column.name}: {error}") from None
    return Table.of(path.stem, zip(*columns, strict=True))
