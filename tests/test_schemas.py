"""The schemas of the output tables."""

from __future__ import annotations

from icl_estimators.schemas import SCHEMAS


def test_every_table_has_a_title_and_every_column_a_meaning() -> None:
    for name, schema in SCHEMAS.items():
        assert schema.title, name
        assert len(set(schema.names)) == len(schema.columns), name
        assert all(column.meaning for column in schema.columns), name
