"""What the terminal's tables share: rows by column name, numbers, long names, the line on the design."""

from __future__ import annotations

import math
from typing import Any

from icl_estimators.text import text_table

__all__ = ["Cell", "Record", "design_line", "named_table", "real"]

Cell = str | float | int | bool | None
Record = dict[str, Cell]
"""A row of a table by column name."""

_LONG_NAME = 24


def design_line(options: dict[str, Any]) -> str:
    """Return a line on how many chains were drawn from which law, or on the observed data, and what ± means."""
    if "data" in options:
        plural = "s" if options["n_sequences"] > 1 else ""
        return (
            f"{options['data']}: {options['n_sequences']:,} sequence{plural}, {options['n_predictions']:,} "
            f"predictions, K = {options['states']}; at most the last {options['length']} tokens are read; ± is half "
            f"a {100 * options['level']:g} % interval, clustered on sequences"
        )
    return (
        f"{options['chains']:,} chains × {options['sequences_per_chain']} sequences × {options['length']} tokens; "
        f"K = {options['states']}, α = {options['concentration']:g}, {options['start']} start, seed {options['seed']}; "
        f"± is half a {100 * options['level']:g} % interval, clustered on chains"
    )


def real(cell: Cell) -> float:
    """Return a number of a table; NaN for an empty cell."""
    return math.nan if cell is None or isinstance(cell, str) else float(cell)


def named_table(header: list[str], body: list[list[str]]) -> str:
    """Align rows; a long name stands on a line of its own, so that the columns stay narrow."""
    short: list[list[str]] = []
    long: dict[int, str] = {}
    for name, *cells in body:
        if len(name) > _LONG_NAME:
            long[len(short)] = name
            name = ""
        short.append([name, *cells])
    lines = text_table(header, short).split("\n")
    for index in sorted(long, reverse=True):
        lines.insert(index + 2, long[index])
    return "\n".join(lines)
