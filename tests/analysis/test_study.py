"""The study: rules judge intervals, every claim has one, and the committed report is what the tables say."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from analysis import attention_at_the_start, construction, kl_to_truth, leftover_mass, match_mass, model_size
from analysis.claims import COLUMNS, Claim, Rule, claims_table
from analysis.questions import Answer, Sizes
from analysis.study import answers, build

ROOT = Path(__file__).parents[2]
SMALL = Sizes(
    few=20, many=60, attention=20, smoothing_chains=60, smoothing_sequences=2, length=16, seed=1, jobs=1
)  # fmt: skip
MODULES = (kl_to_truth, attention_at_the_start, match_mass, leftover_mass, construction, model_size)
RULES = {rule.text: rule for module in MODULES for rule in vars(module).values() if isinstance(rule, Rule)}


@pytest.fixture(scope="module")
def found() -> dict[str, Answer]:
    return answers(SMALL)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.6, 0.9), "holds"),
        ((0.5, 2.0), "holds"),
        ((0.3, 0.49), "fails"),
        ((2.1, 3.0), "fails"),
        ((0.4, 0.6), "not distinguishable"),
        ((1.0, 2.5), "not distinguishable"),
        ((0.1, 9.0), "not distinguishable"),
        ((math.nan, math.nan), "not distinguishable"),
    ],
)
def test_a_rule_judges_the_interval_not_the_estimate(interval: tuple[float, float], verdict: str) -> None:
    assert Rule("between 1/2 and 2", low=0.5, high=2.0).verdict(*interval) == verdict


def test_claims_are_written_with_their_rules(tmp_path: Path) -> None:
    claim = Claim("it is large", "size, in metres", 2.0, 1.5, 2.5, Rule("large is at least 1", low=1.0))
    claims_table([claim], tmp_path / "claims.csv")
    with open(tmp_path / "claims.csv", encoding="utf-8", newline="") as file:
        header, row = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert row == ["it is large", "size, in metres", "2.0", "1.5", "2.5", "large is at least 1", "holds"]


def test_every_question_has_a_table_a_paragraph_and_claims(found: dict[str, Answer]) -> None:
    for name, answer in found.items():
        assert answer.tables, name
        assert answer.paragraphs, name
        assert answer.claims or name == "coverage", name  # it is about the intervals, not about a claim
        for claim in answer.claims:
            assert claim.low <= claim.estimate <= claim.high
            assert claim.rule.text in RULES
        for drawing in answer.drawings:
            assert len(drawing.alt) > 60


def test_the_model_has_the_articles_size(found: dict[str, Answer]) -> None:
    (claim,) = found["model_size"].claims
    assert (claim.estimate, claim.verdict) == (33_352, "holds")


def test_the_construction_computes_frequencies(found: dict[str, Answer]) -> None:
    (claim,) = found["construction"].claims
    assert claim.verdict == "holds"
    table = found["construction"].tables["construction"]
    assert (np.diff(table["largest_difference"]) <= 1e-15).all(), "the larger β, the nearer"


def test_kl_is_drawn_from_the_same_chains_whatever_their_number() -> None:
    few, _ = kl_to_truth.draw(Sizes(many=5, length=8))
    many, _ = kl_to_truth.draw(Sizes(many=9, length=8))
    for name, values in few.items():
        np.testing.assert_array_equal(values, many[name][:5])


def test_the_figure_draws_the_table(found: dict[str, Answer]) -> None:
    answer = found["kl_to_truth"]
    table = answer.tables["kl_to_truth"]
    for axes, count in zip(answer.drawings[0].figure.axes, (SMALL.few, SMALL.many), strict=True):
        assert axes.get_title(loc="left") == f"{count:,} sequences"
        line = next(line for line in axes.get_lines() if line.get_label() == "transformer")
        rows = table[(table["sequences"] == count) & (table["estimator"] == "transformer")]
        np.testing.assert_array_equal(line.get_ydata(), rows["kl_nats"])


def test_differences_of_masses_are_not_too_sure() -> None:
    change, low, high = match_mass._less((0.9, 0.89, 0.91), (0.8, 0.77, 0.83))
    assert (change, low, high) == pytest.approx((0.1, 0.06, 0.14))


def test_it_builds_tables_and_report(found: dict[str, Answer], tmp_path: Path) -> None:
    data, reports = tmp_path / "data", tmp_path / "reports"
    paths = build(found, data, reports, ROOT / "reports" / "template.md", ("html", "pdf"))
    assert {path.name for path in paths} >= {"study.md", "study.html", "study.pdf", "kl-to-truth.svg"}
    tables = {f"{name}.csv" for answer in found.values() for name in answer.tables}
    assert {path.name for path in data.iterdir()} == tables | {"claims.csv", "run.json"}
    text = (reports / "study.md").read_text(encoding="utf-8")
    assert "{{" not in text
    assert all(claim.claim in text for answer in found.values() for claim in answer.claims)


def committed() -> list[dict[str, str]]:
    with open(ROOT / "data" / "study" / "claims.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", committed(), ids=lambda row: row["claim"])
def test_the_committed_verdicts_follow_from_their_numbers_and_rules(row: dict[str, str]) -> None:
    assert row["verdict"] == RULES[row["rule"]].verdict(float(row["ci_low"]), float(row["ci_high"]))


def test_the_committed_report_is_of_the_committed_claims() -> None:
    text = (ROOT / "reports" / "study.md").read_text(encoding="utf-8")
    for row in committed():
        assert row["claim"] in text
    assert text.count("**not distinguishable**") == sum(row["verdict"] == "not distinguishable" for row in committed())
    page = (ROOT / "reports" / "study.html").read_text(encoding="utf-8")
    assert "<title>What a trained induction head estimates</title>" in page
    assert (ROOT / "reports" / "study.pdf").read_bytes().startswith(b"%PDF")
