"""Reading the files of a study's folder: tables as their schemas say, run.json, and one line on what is wrong."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from icl_estimators.schemas import SCHEMAS
from icl_estimators.validation import InputError

__all__ = ["KINDS", "PIECE", "PIECE_FILE", "ROWS", "kind_of", "read_columns", "read_record", "rows_written"]

KINDS = ("comparison", "observed", "identification", "smoothing", "exact")
"""What a folder can hold: the entry `kind` of run.json."""

ROWS = "rows"
"""The entry of run.json that holds how many rows each table was written with."""

PIECE, PIECE_FILE = "piece", "piece.json"
"""The kind of a record of a part of a study, without tables, and the name of its file."""


def read_columns(path: Path, n_rows: int | None = None) -> dict[str, tuple[str, ...]]:
    """Return the cells of a table as text, by column, in the order of the file.

    A column that the schema lacks is kept: a later version may have added it.

    Parameters
    ----------
    path : Path
    n_rows : int, optional
        How many rows were written. A table that lost some would pass for a smaller study.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column of the schema, has a row of another length, ends within a line, or
        does not have `n_rows` rows.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    missing = [column for column in SCHEMAS[path.stem].names if column not in header]
    if missing:
        raise InputError(f"{path} has no column {missing[0]}: it is not a {path.name} of this version")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: {len(row)} cells for {len(header)} columns")
    if not text.endswith("\n"):
        raise InputError(f"{path} ends within line {len(rows) + 1}: it was cut off; run the command in run.json again")
    if n_rows is not None and len(rows) != n_rows:
        raise InputError(f"{path} has {len(rows)} rows, but {n_rows} were written: run the command in run.json again")
    return dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(header, ())


def read_record(folder: Path) -> dict[str, Any]:
    """Return run.json.

    Raises
    ------
    InputError
        If the folder or run.json is missing, or run.json is not the record of a study of this version.
    """
    path = folder / "run.json"
    if not folder.is_dir():
        raise InputError(f"no such folder: {folder} (python -m icl_estimators.evaluate --out {folder} makes it)")
    if not path.is_file():
        if (folder / PIECE_FILE).is_file():
            raise InputError(
                f"{folder} holds a piece of a study, without tables: put it together with the other pieces by "
                f"python -m icl_estimators.merge {folder} … --out WHOLE"
            )
        raise InputError(
            f"{folder} has no {path.name}: give a folder that evaluate, smoothing, identify or exact wrote"
        )
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(run["options"], dict):
            raise TypeError("its options are not an object")
        run["options"]["estimators"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is not the record of a study ({type(error).__name__}: {error})") from None
    if kind_of(run) not in KINDS:
        raise InputError(f"{path} is of the unknown kind {run['kind']!r}: this version knows {', '.join(KINDS)}")
    return run


def rows_written(run: dict[str, Any], name: str) -> int | None:
    """Return how many rows a table was written with; None if the record is older than that entry.

    Examples
    --------
    >>> rows_written({"rows": {"risk": 12}}, "risk"), rows_written({}, "risk")
    (12, None)
    """
    rows = run.get(ROWS)
    return rows.get(name) if isinstance(rows, dict) else None


def kind_of(run: dict[str, Any]) -> str:
    """Return what kind of study a record is of: its entry `kind`.

    Older records have none. Their options tell: only observed sequences have `data`, only smoothing has `families`.

    Examples
    --------
    >>> kind_of({"kind": "exact", "options": {}}), kind_of({"options": {"families": []}})
    ('exact', 'smoothing')
    """
    options = run["options"]
    older = "observed" if "data" in options else "smoothing" if "families" in options else "comparison"
    return str(run.get("kind", older))
