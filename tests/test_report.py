"""The commands that make reports: report, and the end of evaluate."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from icl_estimators import evaluate, report

DESIGN = ["--estimators", "add-one,uniform", "--chains", "60", "--sequences-per-chain", "2", "--length", "4"]
DESIGN += ["--decomposition-chains", "0"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    out = tmp_path / "study"
    assert evaluate.main([*DESIGN, "--out", str(out), "--no-report", "--quiet"]) == 0
    return out


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it look as if the extra `report` were not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("pypandoc", "typst") else find(name))


def test_no_report_means_tables_alone(study: Path) -> None:
    assert sorted(path.name for path in study.iterdir()) == [
        "budget.csv",
        "checks.csv",
        "differences.csv",
        "likeness.csv",
        "pairs.csv",
        "regret_by_entropy.csv",
        "regret_by_visits.csv",
        "risk.csv",
        "run.json",
        "signed_bias.csv",
        "smoothing.csv",
    ]


@pytest.mark.parametrize("suffix", ["html", "pdf"])
def test_report_builds_the_one_asked_for(study: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        "icl_estimators.reporting.build.build_report", lambda folder, formats: asked.append(formats) or []
    )
    assert report.main([str(study), f"--{suffix}"]) == 0
    assert asked == [(suffix,)]


@pytest.mark.slow
def test_evaluate_ends_in_the_report_and_report_rebuilds_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate.main([*DESIGN, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out.strip().split("\n")
    ends = [str(tmp_path / "report.html"), str(tmp_path / "report.pdf")]
    assert [line.strip() for line in printed[-2:]] == ends
    before = {path.name: path.read_bytes() for path in tmp_path.glob("report.*")}
    assert report.main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out.split("\n")
    assert printed[0] == str(tmp_path / "report.md")
    assert printed[-3:] == [*ends, ""]
    assert printed[1] == str(tmp_path / "figures" / "*.svg, *.pdf")
    assert {path.name: path.read_bytes() for path in tmp_path.glob("report.*")} == before


@pytest.mark.slow
def test_a_new_study_leaves_no_report_of_the_old_one(tmp_path: Path) -> None:
    assert evaluate.main([*DESIGN, "--out", str(tmp_path), "--report", "html", "--quiet"]) == 0
    assert {path.suffix for path in tmp_path.glob("report.*")} == {".md", ".html"}
    assert evaluate.main([*DESIGN, "--seed", "1", "--out", str(tmp_path), "--force", "--no-report", "--quiet"]) == 0
    assert not list(tmp_path.glob("report.*"))
    assert not (tmp_path / "figures").exists()
    assert not (tmp_path / "tables").exists()


@pytest.mark.slow
def test_observed_sequences_make_a_report(tmp_path: Path) -> None:
    sequences = tmp_path / "sequences.txt"
    sequences.write_text("ABÜABABÜÜABAB\nABABABÜÜÜABA\nÜÜABABBBAB\n", encoding="utf-8")
    out = tmp_path / "out"
    rules = ["--estimators", "add-one,bigram,uniform"]
    assert evaluate.main(["--sequences", str(sequences), "--characters", *rules, "--out", str(out), "--quiet"]) == 0
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "**Lowest log loss.** add-one" in text
    assert "3 states (A, B, Ü)" in text
    assert (out / "report.pdf").is_file()


@pytest.mark.usefixtures("without_extra")
def test_without_the_extra_tables_still_come_and_one_line_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate.main([*DESIGN, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert err == (
        "report.html and report.pdf left out, because pypandoc_binary and typst are not installed: "
        "pip install 'icl-estimators[report]'\n"
    )
    assert (tmp_path / "risk.csv").is_file()
    assert str(tmp_path / "report.md") in out
    assert "report.html" not in out
    assert (tmp_path / "figures" / "kl.svg").is_file()


@pytest.mark.usefixtures("without_extra")
def test_a_report_that_was_asked_for_and_cannot_be_made_is_refused_before_the_work(
    tmp_path: Path, refused: Callable[..., str]
) -> None:
    line = refused(evaluate.main, *DESIGN, "--out", str(tmp_path / "new"), "--report", "pdf")
    assert line.endswith("pip install 'icl-estimators[report]'\n")
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("without_extra")
def test_report_without_the_extra_is_refused(study: Path, refused: Callable[..., str]) -> None:
    assert "needs pypandoc_binary and typst" in refused(report.main, str(study))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the following arguments are required: DIR"),
        (["nowhere"], "no such folder: nowhere"),
        ([".", "--png"], "--png"),
    ],
)
def test_report_refuses_in_one_line(refused: Callable[..., str], arguments: list[str], complaint: str) -> None:
    assert complaint in refused(report.main, *arguments)


def test_evaluate_refuses_other_formats(refused: Callable[..., str]) -> None:
    assert "'docx' is not a format of the report" in refused(evaluate.main, "--report", "html,docx")
    assert "not allowed with" in refused(evaluate.main, "--report", "html", "--no-report")


def test_a_broken_record_is_the_users_to_mend(study: Path, refused: Callable[..., str]) -> None:
    record = study / "run.json"
    record.write_text(json.dumps({"options": {}}), encoding="utf-8")
    assert "run.json" in refused(report.main, str(study))
