"""The types of columns: what fits them, and what a cell of a file is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from icl_estimators.schemas import SCHEMAS, Type


@pytest.mark.parametrize(
    ("kind", "fits", "does_not"),
    [
        (Type.TEXT, ["a", "", None], [1, 0.5, True]),
        (Type.NUMBER, [1, 0.5, math.inf, math.nan, np.float64(2), np.int64(2), None, ""], ["a", True]),
        (Type.INTEGER, [1, np.int64(-1), math.nan, None], [0.5, "a", False, math.inf]),
        (Type.BOOLEAN, [True, False, "", None], [1, "True", 0.0]),
        (Type.CONTEXT_LENGTH, [1, np.int64(7), "mean"], [0, 1.5, "median", "", None]),
    ],
)
def test_cells_fit_their_type(kind: Type, fits: list[Any], does_not: list[Any]) -> None:
    assert all(kind.holds(cell) for cell in fits)
    assert not any(kind.holds(cell) for cell in does_not)


def test_cells_are_read_by_their_type() -> None:
    assert [Type.BOOLEAN.read(text) for text in ("True", "False", "")] == [True, False, None]
    assert [Type.TEXT.read("007"), Type.CONTEXT_LENGTH.read("mean")] == ["007", "mean"]
    assert [Type.INTEGER.read("7"), Type.NUMBER.read("inf")] == [7.0, math.inf]
    for kind, text in ((Type.BOOLEAN, "yes"), (Type.NUMBER, "much")):
        with pytest.raises(ValueError, match=text):
            kind.read(text)


def test_every_table_has_a_title_and_every_column_a_meaning() -> None:
    for name, schema in SCHEMAS.items():
        assert schema.title, name
        assert len(set(schema.names)) == len(schema.columns), name
        assert all(column.meaning for column in schema.columns), name
