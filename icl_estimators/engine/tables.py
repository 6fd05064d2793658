"""Long tables: one estimate a row, under the column names that people script against."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from icl_estimators.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "Cell", "Table"]

Cell = str | float | int | bool | None

_INTERVAL = ("se", "ci_low", "ci_high")
_BAND = (*_INTERVAL, "band_low", "band_high")

COLUMNS: dict[str, tuple[str, ...]] = {
    "risk": ("estimator", "context_length", "metric", "estimate", *_BAND, "n_chains", "n_sequences", "note"),
    "decomposition": (
        "estimator",
        "context_length",
        "metric",
        "estimate",
        *_BAND,
        "n_chains",
        "n_sequences",
        "note",
    ),
    "signed_bias": (
        "estimator",
        "context_length",
        "bin_low",
        "bin_high",
        "estimate",
        *_INTERVAL,
        "n_chains",
        "note",
    ),
    "differences": (
        "estimator",
        "reference",
        "context_length",
        "metric",
        "difference",
        *_INTERVAL,
        "correlation",
        "variance_reduction",
        "rao_blackwell_factor",
        "note",
    ),
    "pairs": ("estimator", "other", "metric", "difference", *_INTERVAL, "p_simultaneous", "tied", "note"),
    "smoothing": (
        "estimator",
        "by",
        "value",
        "family",
        "parameter",
        "estimate",
        *_INTERVAL,
        "residual_kl_nats",
        "residual_kl_heldout_nats",
        "explained",
        "identified",
        "boundary",
        "note",
    ),
    "interventions": ("intervention", "visits", "quantity", "estimate", "difference", *_INTERVAL, "note"),
    "attention": ("estimator", "context_length", "quantity", "estimate", *_INTERVAL, "note"),
    "attention_example": ("estimator", "layer", "query", "key", "query_token", "key_token", "weight"),
    "circuit": ("estimator", "matrix", "row", "column", "value"),
    "checks": ("check", "estimator", "context_length", "estimate", "se", "z", "note"),
}
"""The tables of an evaluation and their columns."""


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
        """Return a table of :data:`COLUMNS`; every row must fill its columns."""
        columns = COLUMNS[name]
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
        """Write a CSV file, whole or not at all: full precision, inf as inf, undefined numbers empty."""
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
