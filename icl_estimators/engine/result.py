"""What a study found: its tables and the record that becomes run.json."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.engine.folder import save_tables
from icl_estimators.engine.tables import Cell, Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["StudyResult"]


@dataclass(frozen=True)
class StudyResult:
    """What a study found.

    Attributes
    ----------
    tables : dict of str to Table
        By file stem, in the order they are written: risk, differences, …
    run : dict
        Design, γ used, chains needed for a target SE, seeds: what run.json adds provenance to.
    """

    tables: dict[str, Table]
    run: dict[str, Any]

    def __getattr__(self, name: str) -> pd.DataFrame:
        """Return a table as a DataFrame: ``.risk``, ``.differences``, …"""
        tables = self.__dict__.get("tables", {})
        if name in tables:
            frame: pd.DataFrame = tables[name].frame()
            return frame
        raise AttributeError(f"the result has no table {name!r}: it has {', '.join(tables)}")

    @property
    def records(self) -> dict[str, list[dict[str, Cell]]]:
        """Every table as plain rows, each by column name."""
        return {
            name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for name, table in self.tables.items()
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(f'{name} ({len(t.rows)})' for name, t in self.tables.items())}>"

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write every table and run.json to `folder`; return the paths.

        Raises
        ------
        InputError
            If the folder cannot be written to, another process is writing to it, or it holds another study and `force`
            is false.
        """
        return save_tables(Path(folder), self.tables, self.run, force=force)
