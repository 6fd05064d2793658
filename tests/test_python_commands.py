from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import icl_estimators as icl
from icl_estimators import exact, report
from icl_estimators.api import compare
from icl_estimators.validation import InputError
from strange_rules import Flat


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    assert exact.main([*arguments, "--csv"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_exact_risk_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(capsys, "--context-length", "3", "--estimators", "unigram,bigram", "--concentration", "0.5")
    frame = icl.exact_risk(["unigram", "bigram"], 3, concentration=0.5)
    assert list(frame) == ["estimator", "context_length", "metric", "estimate"]
    assert frame.estimator.tolist() == [row["estimator"] for row in rows]
    assert frame.metric.tolist() == [row["metric"] for row in rows]
    assert [repr(value + 0.0) for value in frame.estimate] == [row["estimate"] for row in rows]


def test_the_budget_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(capsys, "--context-length", "3", "--estimators", "unigram", "--budget")
    frame = icl.exact_risk("unigram", 3, budget=True)
    last = frame[frame.context_length == 3]
    assert last.part.tolist() == [row["part"] for row in rows]
    assert [repr(float(value) + 0.0) for value in last.estimate] == [row["estimate"] for row in rows]


def test_one_object_is_enough_and_what_does_not_fit_is_refused() -> None:
    assert icl.exact_risk(Flat(), 2).estimator.unique().tolist() == ["mine"]
    with pytest.raises(InputError, match="more than the 1,000,000 that are enumerated"):
        icl.exact_risk("add-one", 30)
    with pytest.raises(InputError, match="unknown estimator 'nobody'"):
        icl.exact_risk("nobody", 2)
    with pytest.raises(InputError, match="length"):
        icl.exact_risk("add-one", 0)


def test_write_report_does_what_report_does(tmp_path: Path) -> None:
    compare("add-one,uniform", chains=10, length=3, decomposition_chains=0).save(tmp_path)
    paths = icl.write_report(tmp_path, "html")
    assert {"report.md", "report.html"} <= {path.name for path in paths}
    page = (tmp_path / "report.html").read_bytes()
    assert report.main([str(tmp_path), "--html"]) == 0
    assert (tmp_path / "report.html").read_bytes() == page
    with pytest.raises(InputError):
        icl.write_report(tmp_path / "nothing")
    (tmp_path / "risk.csv").write_text("estimator\nadd-one\n")
    with pytest.raises(InputError):
        icl.write_report(tmp_path, ())


def test_training_gives_the_files_that_checkpoints_take(tmp_path: Path) -> None:
    small = {"steps": 4, "batch": 4, "length": 6, "engine": "torch"}
    paths = icl.train_transformer(tmp_path, seeds=[3, 4], **small)
    assert all(path.is_file() for path in paths)
    frame = icl.exact_risk("transformer", 2, checkpoints=paths)
    assert frame.estimator.nunique() == 2
    with pytest.raises(InputError, match="has finished"):
        icl.train_transformer(tmp_path, seeds=3, **small)
    assert icl.train_transformer(tmp_path, seeds=3, resume=True, **small) == paths[:1]
    with pytest.raises(InputError, match="unrecognized arguments: --stps"):
        icl.train_transformer(tmp_path, stps=3)
    with pytest.raises(InputError, match="no seed is given"):
        icl.train_transformer(tmp_path, seeds=[])
