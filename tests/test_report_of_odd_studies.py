"""Reports of studies at the edge: one token, two chains, hardly any randomness, no one with a finite mean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icl_estimators import evaluate
from icl_estimators.reporting.build import build_report

DESIGN = ["--chains", "60", "--sequences-per-chain", "2", "--length", "6", "--decomposition-chains", "10"]
DESIGN += ["--decomposition-sequences", "4", "--estimators", "construction-softmax,bigram,add-one"]
ODD = [
    ["--length", "1", "--chains", "2", "--sequences-per-chain", "1"],
    ["--states", "2", "--chains", "2", "--sequences-per-chain", "1", "--decomposition-chains", "2"],
    ["--states", "6", "--concentration", "0.001"],
    ["--concentration", "100", "--decomposition-chains", "2", "--decomposition-sequences", "2"],
    ["--start", "stationary", "--concentration", "0.01"],
    ["--length", "300", "--chains", "4", "--decomposition-chains", "2"],
    ["--reference", "construction", "--level", "0.999999"],
    ["--estimators", "bigram", "--reference", "bigram"],
    ["--estimators", "uniform,bigram", "--reference", "bigram"],
    ["--estimators", "transformer", "--length", "2"],
    ["--estimators", "add-constant:1e-12,construction:30", "--length", "3"],
    ["--states", "30", "--estimators", "construction,add-one", "--length", "4"],
]


@pytest.mark.slow
@pytest.mark.parametrize("options", ODD, ids=" ".join)
def test_odd_studies_make_reports(options: list[str], tmp_path: Path) -> None:
    assert evaluate.main([*DESIGN, *options, "--out", str(tmp_path), "--no-report", "--quiet"]) == 0
    build_report(tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "{#answer}" in text
    assert not re.search(r"\bnan\b|None|\{fig:|\{tbl:", text)
