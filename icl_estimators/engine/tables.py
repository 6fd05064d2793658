"""Long tables: one estimate in each row, with column names that other programs rely on."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from icl_estimators.files import write_whole
from icl_estimators.schemas import SCHEMAS

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
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, name: str, rows: Iterable[Sequence[Cell]]) -> Table:
        """Return a table of :data:`icl_estimators.schemas.SCHEMAS`; every row must fill its columns."""
        columns = SCHEMAS[name].names
        filled = tuple(tuple(row) for row in rows)
        for row in filled:
            if len(row) != len(columns):
                raise ValueError(f"{name}: a row of {len(row)} cells for {len(columns)} columns")
        return cls(columns, filled)

    def frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame, numbers unrounded."""
        import pandas as pd

        return pd.DataFrame.from_records(list(self.rows), columns=list(self.columns))

    def write(self, path: Path) -> None:
        """Write a CSV file, completely or not at all: full precision, inf as inf, undefined numbers empty."""
        with write_whole(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows([_spell(cell) for cell in row] for row in self.rows)


def _spell(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float):
        return repr(float(cell) + 0.0)  # float: a NumPy scalar's repr names its type; + 0.0: no −0.0
    return str(cell)
