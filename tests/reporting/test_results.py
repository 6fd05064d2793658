"""Reading a study's folder: exactly, whatever its labels look like."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icl_estimators.engine.tables import Table
from icl_estimators.metrics import MEANINGS
from icl_estimators.reporting.results import Results, read_results, read_table, records
from icl_estimators.schemas import SCHEMAS
from icl_estimators.validation import InputError


def test_every_metric_is_defined(results: Results) -> None:
    for table, column in (("risk", "metric"), ("decomposition", "metric"), ("attention", "quantity")):
        assert set(results.tables[table][column]) <= MEANINGS.keys()


@pytest.mark.parametrize("label", ["NaN", "NA", "None", "inf", "1e-12", "007", "a,b", 'say "no"', "", "a\nb"])
def test_labels_stay_text(tmp_path: Path, label: str) -> None:
    Table.of("circuit", [(label, "S1", 0, 1, 0.5)]).write(tmp_path / "circuit.csv")
    assert read_table(tmp_path / "circuit.csv")["estimator"].tolist() == [label]


@pytest.mark.parametrize("value", [0.1 + 0.2, 1e-300, -0.0, math.inf, math.nan, 2**0.5 * 1e17])
def test_numbers_are_exact(tmp_path: Path, value: float) -> None:
    Table.of("circuit", [("x", "S1", 0, 1, value)]).write(tmp_path / "circuit.csv")
    np.testing.assert_array_equal(read_table(tmp_path / "circuit.csv")["value"], [value])


def test_booleans_are_read_as_such(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    header, rest = SCHEMAS["pairs"].names, ["b", "a", "kl_nats", *"00001"]
    lines = [",".join([*rest, cell, ""]) for cell in ("True", "False", "")]
    path.write_text("\n".join([",".join(header), *lines, ""]), encoding="utf-8")
    assert read_table(path)["tied"].tolist() == [True, False, None]
    path.write_text(path.read_text("utf-8").replace("True", "yes"), encoding="utf-8")
    with pytest.raises(InputError, match="neither True nor False: 'yes'"):
        read_table(path)


def test_a_table_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    Table.of("checks", []).write(tmp_path / "checks.csv")
    assert list(read_table(tmp_path / "checks.csv")) == list(SCHEMAS["checks"].names)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no column"),
        ("estimator,matrix,row,column\n", "has no column value"),
        ("estimator,matrix,row,column,value\nx,S1,0\n", "line 2: 3 cells for 5 columns"),
        ("estimator,matrix,row,column,value\nx,S1,0,0,much\n", "could not convert"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "circuit.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=complaint) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_columns_that_a_later_version_adds_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "circuit.csv"
    path.write_text("estimator,matrix,row,column,value,colour\nx,S1,0,0,1.5,red\n", encoding="utf-8")
    assert records(read_table(path))[0]["colour"] == "red"


def test_a_folder_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        read_results(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"has no run\.json"):
        read_results(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"options": 3}'])
def test_a_record_of_something_else_is_refused(folder: Path, content: str) -> None:
    (folder / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="not the record of a study"):
        read_results(folder)


def test_the_bayes_rule_is_found_by_its_regret(results: Results) -> None:
    assert results.bayes == ("add-one",)
    assert results.display("add-one") == "add-one (Bayes)"
    assert results.subject == "transformer"


def test_the_bayes_curve_needs_no_bayes_estimator(results: Results) -> None:
    whole = results.bayes_curve()
    assert whole is not None
    risk = results.tables["risk"]
    without = replace(results, tables={"risk": risk[risk["estimator"] != "add-one"]})
    other = without.bayes_curve()
    assert other is not None
    np.testing.assert_allclose(other[1], whole[1], rtol=1e-9)


def test_of_several_runs_the_mean_is_drawn(results: Results) -> None:
    rows = results.tables["risk"]
    names = {"construction": "t:one", "construction-softmax": "t:two", "bigram": "t", "uniform": "t:recipe"}
    options = {**results.options, "recipes": {"t": ["t:one", "t:two"]}}
    several = Results({"risk": rows.assign(estimator=rows["estimator"].replace(names))}, {"options": options})
    assert several.curves == ("transformer", "t", "add-one")
    assert several.recipes == {"t": ("t:one", "t:two")}
    assert several.subject == "t"
    assert several.display("t") == "t (mean of 2 training runs)"


def test_a_row_that_is_not_there_is_an_error(results: Results) -> None:
    with pytest.raises(KeyError):
        results.at("risk", "add-one", 1000, metric="kl_nats")


def test_run_json_is_read_as_it_is(pristine: Path, results: Results) -> None:
    assert results.run == json.loads((pristine / "run.json").read_text(encoding="utf-8"))
