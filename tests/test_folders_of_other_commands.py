"""The folders of exact and smoothing: tables, a report, and the result that is read back."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icl_estimators import Enumeration, Smoothing, evaluate, exact, exact_risk, get, read_results, report, smoothing
from icl_estimators.experiments.exact_study import ExactStudy
from icl_estimators.experiments.regret_budget import exact_budget
from icl_estimators.sources import ChainLaw
from icl_estimators.validation import InputError

Refused = Callable[..., str]

EXACT = ["--estimators", "unigram,bigram,add-one", "--context-length", "4"]
SMOOTH = ["--estimators", "bigram", "--chains", "40", "--sequences-per-chain", "2", "--length", "8", "--jobs", "1"]
SMOOTH += ["--families", "none"]


def test_exact_writes_what_exact_risk_computes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exact.main(EXACT) == 0
    printed = capsys.readouterr().out
    assert exact.main([*EXACT, "--out", str(tmp_path), "--no-report"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(printed)
    assert [line.strip() for line in out.removeprefix(printed).strip().splitlines()] == [
        "Wrote",
        str(tmp_path / "exact.csv"),
        str(tmp_path / "run.json"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exact.csv", "run.json"]
    found = read_results(tmp_path)
    assert isinstance(found, Enumeration)
    assert found.summary() + "\n" == printed
    assert list(found.exact) == ["estimator", "context_length", "metric", "estimate"]
    risk = exact_risk(get("unigram"), 4)
    rows = found.exact[found.exact.estimator == "unigram"].reset_index(drop=True)
    assert rows.equals(risk)
    assert found.run["kind"] == "exact"
    assert found.run["command"].startswith("python -m icl_estimators.exact --estimators unigram,bigram,add-one")


def test_the_budget_of_every_length_is_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exact.main([*EXACT, "--budget"]) == 0
    printed = capsys.readouterr().out
    assert exact.main([*EXACT, "--budget", "--out", str(tmp_path), "--no-report"]) == 0
    assert capsys.readouterr().out.startswith(printed)
    budget = read_results(tmp_path).budget
    assert set(budget.method) == {"exact"}
    for n in range(1, 5):
        expected = exact_budget(get("unigram"), n, ChainLaw())
        rows = budget[(budget.estimator == "unigram") & (budget.context_length == n)].set_index("part").estimate
        assert rows["regret"] == expected.regret
        assert rows.drop("regret").to_dict() == expected.parts
        assert rows.drop("regret").sum() == pytest.approx(expected.regret, abs=1e-12)
    assert printed.strip() in read_results(tmp_path).summary()


def test_csv_stays_csv_with_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--budget"]):
        assert exact.main([*EXACT, *more, "--csv"]) == 0
        alone = capsys.readouterr().out
        assert exact.main([*EXACT, *more, "--csv", "--out", str(tmp_path / "x"), "--no-report", "--force"]) == 0
        assert capsys.readouterr().out == alone


def test_flags_of_a_folder_need_one(tmp_path: Path, refused: Refused, capsys: pytest.CaptureFixture[str]) -> None:
    for flag in (["--report", "html"], ["--no-report"], ["--force"]):
        assert f"{flag[0]} does not apply to a run without --out" in refused(exact.main, *EXACT, *flag)
    assert exact.main([*EXACT, "--out", str(tmp_path), "--no-report", "--csv"]) == 0
    capsys.readouterr()
    before = (tmp_path / "exact.csv").read_bytes()
    line = refused(exact.main, *EXACT, "--concentration", "0.5", "--out", str(tmp_path), "--no-report")
    assert "holds the results of another study" in line
    assert (tmp_path / "exact.csv").read_bytes() == before


def test_too_many_prefixes_are_refused() -> None:
    with pytest.raises(InputError, match="the largest context length that fits is 12"):
        ExactStudy((get("add-one"),), 13, ChainLaw())


@pytest.mark.parametrize(
    ("run", "arguments", "sections"),
    [
        (exact.main, [*EXACT, "--budget"], ["exact", "exact-budget", "provenance", "definitions"]),
        (smoothing.main, [*SMOOTH, "--quiet"], ["design", "provenance", "definitions"]),
    ],
)
def test_a_report_is_made_and_report_builds_it_again(
    run: Callable[[list[str]], int], arguments: list[str], sections: list[str], tmp_path: Path
) -> None:
    assert run([*arguments, "--out", str(tmp_path), "--report", "html"]) == 0
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert [line.partition("{#")[2].rstrip("}") for line in page.splitlines() if line.startswith("## ")] == sections
    assert not (tmp_path / "report.pdf").exists()
    assert not (tmp_path / "tables").exists()
    html = (tmp_path / "report.html").read_bytes()
    assert report.main([str(tmp_path), "--html"]) == 0
    assert (tmp_path / "report.html").read_bytes() == html
    assert run([*arguments, "--out", str(tmp_path), "--no-report"]) == 0
    assert not list(tmp_path.glob("report.*"))


def test_the_exact_report_says_what_is_exact_by_definition_and_impossible(tmp_path: Path) -> None:
    assert exact.main([*EXACT, "--budget", "--out", str(tmp_path), "--report", "html", "--csv"]) == 0
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert page.startswith("# Exact risk: 3 estimators on every prefix\n\nAll 81 prefixes of 4 tokens")
    assert "0, by definition" in page
    assert "never" in page
    assert "[0" not in page.partition("## Provenance")[0]  # no intervals


@pytest.mark.slow
def test_a_smoothing_report_has_the_pseudo_counts(tmp_path: Path) -> None:
    more = ["--chains", "300", "--sequences-per-chain", "4", "--quiet", "--no-interventions"]
    assert smoothing.main([*SMOOTH, *more, "--out", str(tmp_path), "--report", "html"]) == 0
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert page.startswith("# Which pseudo-count does it act like? 2 estimators\n\n300 chains × 4 sequences × 8 tokens")
    assert "## Effective pseudo-counts" in page
    assert isinstance(read_results(tmp_path), Smoothing)


def test_few_chains_are_said_to_be_few(tmp_path: Path) -> None:
    assert smoothing.main([*SMOOTH, "--quiet", "--out", str(tmp_path), "--report", "html"]) == 0
    assert "40 chains are too few for intervals" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_missing_packages_are_named_before_the_work(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    lacking: Any = lambda name: None if name in ("pypandoc", "typst") else find(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", lacking)
    for run, arguments in ((exact.main, EXACT), (smoothing.main, SMOOTH)):
        line = refused(run, *arguments, "--out", str(tmp_path / "out"), "--report", "html")
        assert "pypandoc" in line
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("kind", "table"), [("exact", "exact.csv"), ("smoothing", "smoothing.csv")])
def test_a_folder_without_its_first_table_is_refused(kind: str, table: str, tmp_path: Path, refused: Refused) -> None:
    record = {"kind": kind, "options": {"estimators": ["a"], "length": 3}}
    (tmp_path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert f"has no {table}" in refused(report.main, str(tmp_path))


@pytest.mark.slow
def test_another_command_takes_a_folder_over_completely(tmp_path: Path) -> None:
    small = ["--estimators", "add-one,unigram", "--chains", "20", "--sequences-per-chain", "1", "--length", "4"]
    small += ["--decomposition-chains", "0", "--quiet", "--report", "html", "--out", str(tmp_path)]
    assert evaluate.main(small) == 0
    assert (tmp_path / "tables" / "headline.tex").is_file()
    assert exact.main([*EXACT, "--out", str(tmp_path), "--force", "--no-report", "--csv"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exact.csv", "run.json"]
    assert pd.read_csv(tmp_path / "exact.csv").shape[1] == 4


def test_the_budget_of_a_trained_model_makes_a_report(tmp_path: Path) -> None:
    options = ["--estimators", "transformer,add-one", "--context-length", "3", "--budget", "--report", "html"]
    assert exact.main([*options, "--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.count("{#exact-budget}") == 1
    assert "{#budget}" not in text  # that of a study with Monte Carlo
