"""A study's folder read back gives the frames that were in memory."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_estimators.api import (
    Comparison,
    Identification,
    Smoothing,
    compare,
    effective_smoothing,
    identify_estimator,
    read_results,
)
from icl_estimators.engine.reading import read_folder, read_table
from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.tables import Table
from icl_estimators.reading import kind_of, read_columns
from icl_estimators.reporting.results import read_results as read_for_report
from icl_estimators.schemas import SCHEMAS, Type
from icl_estimators.validation import InputError


def same(first: StudyResult, second: StudyResult) -> None:
    assert set(first.tables) == set(second.tables)
    for name in first.tables:
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name), check_exact=True, obj=name)


@pytest.fixture(scope="module")
def study() -> Comparison:
    return compare(
        "bigram,add-one,unigram",
        chains=24,
        sequences_per_chain=2,
        length=7,
        decomposition_chains=20,
        decomposition_sequences=3,
    )


def test_every_frame_of_a_comparison_is_the_one_in_memory(study: Comparison, tmp_path: Path) -> None:
    study.save(tmp_path)
    again = read_results(tmp_path)
    assert type(again) is Comparison
    same(again, study)
    assert again.summary() == study.summary()
    assert again.run == json.loads(json.dumps(study.run))
    risk = again.risk
    assert math.inf in set(risk.estimate)
    assert risk.context_length.map(type).isin([int, str]).all()
    for n in (5, "mean"):
        assert (risk.context_length == n).sum() == (study.risk.context_length == n).sum() > 0


def test_plain_pandas_finds_nothing_at_a_context_length(study: Comparison, tmp_path: Path) -> None:
    """What the README warns of."""
    study.save(tmp_path)
    assert not (pd.read_csv(tmp_path / "risk.csv").context_length == 5).any()


@pytest.mark.slow
def test_a_smoothing_study_and_an_identification_come_back_as_such(tmp_path: Path) -> None:
    design = {"chains": 24, "sequences_per_chain": 2, "length": 7}
    found = effective_smoothing("bigram", families=[], **design)
    found.save(tmp_path / "smoothing")
    again: Comparison = read_results(tmp_path / "smoothing")
    assert type(again) is Smoothing
    same(again, found)
    assert again.summary() == found.summary()
    asked = identify_estimator("add-constant:0.37", **design)
    asked.save(tmp_path / "identify")
    again = read_results(str(tmp_path / "identify"))
    assert type(again) is Identification
    same(again, asked)
    assert again.summary() == asked.summary()


def cells(kind: Type) -> st.SearchStrategy[object]:
    number = st.floats(allow_nan=True, allow_infinity=True)
    return {
        Type.TEXT: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0")),
        Type.NUMBER: number | st.none(),
        Type.INTEGER: st.integers(-(2**53), 2**53) | st.none(),
        Type.BOOLEAN: st.booleans() | st.none(),
        Type.CONTEXT_LENGTH: st.integers(1, 10**6) | st.just("mean"),
    }[kind]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
@given(data=st.data())
def test_any_table_survives_its_file(name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    row = st.tuples(*(cells(column.type) for column in SCHEMAS[name].columns))
    table = Table.of(name, data.draw(st.lists(row, max_size=4)))
    path = tmp_path_factory.mktemp("any") / f"{name}.csv"
    table.write(path)
    pd.testing.assert_frame_equal(read_table(path).frame(), table.frame(), check_exact=True)


def test_the_types_of_columns() -> None:
    rows: list[tuple[object, ...]] = [("a", 1, "regret", 0.5, None, 0, 0, "exact", "")]
    frame = Table.of("budget", rows).frame()  # type: ignore[arg-type]
    assert frame.context_length.dtype == np.int64
    assert frame.se.dtype == frame.ci_low.dtype == np.float64
    assert frame.note.tolist() == [""]
    empty = Table.of("smoothing", []).frame()
    assert list(empty.columns) == list(SCHEMAS["smoothing"].names)
    assert (empty.estimate.dtype, empty.boundary.dtype) == (np.float64, np.bool_)


def record(folder: Path, **entries: object) -> None:
    run = {"options": {"estimators": ["a"], "length": 4, "level": 0.95}, **entries}
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_folder(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_no_study_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nowhere")
    assert "has no run.json" in refusal(tmp_path)
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    assert "is not the record of a study" in refusal(tmp_path)
    record(tmp_path, options=3)
    assert "is not the record of a study" in refusal(tmp_path)
    record(tmp_path, kind="cookbook")
    assert "unknown kind 'cookbook'" in refusal(tmp_path)
    record(tmp_path)
    assert "has no table" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n", "circuit.csv has no column estimator"),
        ("estimator,matrix,row,column,value\nx,S1,0,0\n", "line 2: 4 cells for 5 columns"),
        ("estimator,matrix,row,column,value\nx,S1,0,0,much\n", "column value: could not convert"),
        ("estimator,matrix,row,column,value\nx,S1,0.5,0,1\n", "column row: invalid literal"),
    ],
)
def test_a_corrupt_table_is_refused_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    record(tmp_path)
    (tmp_path / "circuit.csv").write_text(text, encoding="utf-8")
    assert complaint in refusal(tmp_path)


def test_cells_of_another_type_are_refused(tmp_path: Path) -> None:
    for name, column, cell, complaint in (
        ("pairs", "tied", "yes", "neither True nor False: 'yes'"),
        ("risk", "context_length", "", "invalid literal"),
    ):
        names = SCHEMAS[name].names
        row = [cell if other == column else "" for other in names]
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([",".join(names), ",".join(row), ""]), encoding="utf-8")
        with pytest.raises(InputError, match=complaint):
            read_table(path)


def test_a_table_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "circuit.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot read"):
        read_columns(tmp_path / "circuit.csv")


@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_a_table_that_was_cut_off_is_no_smaller_study(tmp_path: Path, study: Comparison, kept: float) -> None:
    study.save(tmp_path)
    path = tmp_path / "risk.csv"
    whole = path.read_text(encoding="utf-8")
    lines = whole.splitlines(keepends=True)
    fewer = int(len(lines) * kept)
    path.write_text("".join(lines[:fewer]), encoding="utf-8")
    assert refusal(tmp_path).startswith(f"{path} has {fewer - 1} rows, but {len(lines) - 1} were written")
    for read in (read_results, read_for_report):
        with pytest.raises(InputError, match="rows, but"):
            read(tmp_path)
    path.write_text(whole[:-1], encoding="utf-8")  # within the last cell, which is text: any of it would be a note
    assert f"{path} ends within line {len(lines)}: it was cut off" in refusal(tmp_path)


def test_a_record_without_numbers_of_rows_is_read(tmp_path: Path, study: Comparison) -> None:
    study.save(tmp_path)
    path = tmp_path / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    assert run.pop("rows")["risk"] == len(study.risk)
    path.write_text(json.dumps(run), encoding="utf-8")
    assert read_folder(tmp_path).run == json.loads(json.dumps(study.run))


def test_a_table_that_is_not_there_is_named_with_those_that_are(study: Comparison) -> None:
    with pytest.raises(AttributeError, match="the result has no table 'nonsense': it has risk, "):
        _ = study.nonsense


def test_older_records_say_their_kind_by_their_options() -> None:
    assert kind_of({"options": {"data": "x"}}) == "observed"
    assert kind_of({"options": {}}) == "comparison"
