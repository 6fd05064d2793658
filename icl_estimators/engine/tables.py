"""Long tables: one estimate in each row, with column names that other programs rely on."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.files import write_whole
from icl_estimators.schemas import SCHEMAS, Type

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "Table"]

Cell = str | float | int | bool | None


@dataclass(frozen=True)
class Table:
    """Rows under fixed columns.

    Attributes
    ----------
    columns : tuple of str
    rows : tuple of tuples
        NaN is an undefined number: an empty cell when written, with the reason in `note`.
    name : str
        Its key in :data:`icl_estimators.schemas.SCHEMAS`; empty for any other table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    name: str = ""

    @classmethod
    def of(cls, name: str, rows: Iterable[Sequence[Cell]]) -> Table:
        """Return a table of :data:`icl_estimators.schemas.SCHEMAS`; every row must fill its columns."""
        columns = SCHEMAS[name].names
        filled = tuple(tuple(row) for row in rows)
        for row in filled:
            if len(row) != len(columns):
                raise ValueError(f"{name}: a row of {len(row)} cells for {len(columns)} columns")
        return cls(columns, filled, name)

    def frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame, numbers unrounded.

        The columns have the types of their schema, whatever their cells: text is str, numbers are float64, integers
        are int64, or float64 where some are missing, and booleans are bool, or objects with None where some are
        missing. Context lengths are int64, or objects, integers beside "mean", so that ``== 50`` and ``== "mean"``
        both find their rows.
        """
        import pandas as pd

        if not self.name:
            return pd.DataFrame.from_records(list(self.rows), columns=list(self.columns))
        cells = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        kinds = (column.type for column in SCHEMAS[self.name].columns)
        columns = zip(self.columns, kinds, cells, strict=True)
        return pd.DataFrame({name: _typed(kind, column) for name, kind, column in columns})

    def write(self, path: Path) -> None:
        """Write a CSV file, completely or not at all: full precision, inf as inf, undefined numbers empty."""
        with write_whole(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows([_spell(cell) for cell in row] for row in self.rows)


def _typed(kind: Type, cells: Sequence[Cell]) -> pd.Series[Any]:
    """Return a column of a frame: its type depends on the schema, and on whether a cell is empty."""
    import pandas as pd

    given = [not _is_empty(cell) for cell in cells]
    if kind is Type.TEXT:
        texts = [str(cell) if there else "" for cell, there in zip(cells, given, strict=True)]
        return pd.Series(texts, dtype="str")
    if kind is Type.NUMBER or (kind is Type.INTEGER and not all(given)):
        numbers = [float(cell) + 0.0 if there else math.nan for cell, there in zip(cells, given, strict=True)]  # type: ignore[arg-type]
        return pd.Series(numbers, dtype="float64")
    if kind is Type.INTEGER or (kind is Type.CONTEXT_LENGTH and "mean" not in cells):
        return pd.Series(cells, dtype="int64")
    if kind is Type.BOOLEAN and all(given):
        return pd.Series(cells, dtype="bool")
    return pd.Series([cell if there else None for cell, there in zip(cells, given, strict=True)], dtype="object")


def _is_empty(cell: Cell) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def _spell(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float):
        return repr(float(cell) + 0.0)  # float: a NumPy scalar's repr names its type; + 0.0: no −0.0
    return str(cell)
