"""The study: rules judge intervals, every claim has one, and the committed report is what the tables say."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from analysis import (
    attention_at_the_start,
    construction,
    kl_to_truth,
    leftover_mass,
    masses,
    match_mass,
    model_size,
)
from analysis.claims import COLUMNS, Claim, Rule, claims_table
from analysis.questions import Answer, Sizes
from analysis.study import answers, build
from icl_estimators import compare, get, sample_chains
from icl_estimators.experiments.mechanism import ReadOut, exact_frequencies, fit_read_out, read_out_law
from icl_estimators.sources import posterior_predictive, transition_counts

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
        # The article has no word on the read-out, and coverage is about the intervals.
        assert answer.claims or name in ("refitted_readout", "coverage"), name
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


def test_a_change_of_mass_is_paired_by_sequence() -> None:
    rng = np.random.default_rng(1)
    level = rng.uniform(size=(400, 1))
    values = level + np.array([0.0, 0.1]) + 0.01 * rng.standard_normal((400, 2))
    change, low, high = masses.change(values, 1, 2)
    apart = values[:, 1] - values[:, 0]
    se = apart.std(ddof=1) / 20
    assert change == pytest.approx(apart.mean())
    assert (high - low) / 2 == pytest.approx(t.ppf(0.975, 399) * se)
    assert se < values[:, 0].std() / 100  # unpaired it would be many times as wide


@pytest.mark.slow
def test_masses_are_those_of_the_attention_table() -> None:
    sizes = Sizes(attention=20, length=16, seed=1)
    found = masses.attend(sizes)
    options = {"chains": 20, "sequences_per_chain": 1, "decomposition_chains": 0, "length": 16, "seed": 1}
    rows = compare(["transformer", "add-one"], **options).attention
    for quantity in ("match_mass", "previous_token_mass"):
        expected = rows[(rows["quantity"] == quantity) & (rows["context_length"] != "mean")]
        mine = masses.table("transformer", quantity, getattr(found, quantity))
        np.testing.assert_allclose(mine["estimate"], expected["estimate"], rtol=1e-9)
        np.testing.assert_allclose(mine["ci_low"], expected["ci_low"], rtol=1e-9)


def test_the_least_excess_is_told_in_nats_and_as_a_share(found: dict[str, Answer]) -> None:
    answer = found["kl_to_truth"]
    table = answer.tables["kl_excess"]
    nats, share = (int(table.loc[table[column].idxmin(), "context_length"]) for column in ("regret_nats", "share"))
    assert f"In nats the excess is smallest at n = {nats}:" in answer.paragraphs[0]
    assert f"it is smallest at n = {share}:" in answer.paragraphs[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((-0.0017, -0.0032, -0.0002), ": no change beyond ±0.004"),
        ((0.01, 0.008, 0.012), ": a change of more than 0.004"),
        ((-0.005, -0.015, 0.004), ", which does not show whether it changes by 0.004"),
    ],
)
def test_no_change_is_said_only_of_an_interval_within_its_bounds(change: tuple[float, float, float], said: str) -> None:
    assert match_mass._stays(change) == said


def test_a_refitted_read_out_is_the_best_of_its_kind_and_exact_rules_fit_exactly() -> None:
    tokens = sample_chains(range(300), sequences_per_chain=1, length=20, purpose="tuning").inputs
    q = posterior_predictive(transition_counts(tokens, 3), 1.0)
    copied = exact_frequencies(tokens, 3, "n_w/(n + 1)")
    gamma, bonus = fit_read_out(tokens, copied, q)

    def loss(gamma: float, bonus: float) -> float:
        law = read_out_law(tokens, copied, ReadOut(gamma, bonus))
        return -float((q * np.log(law)).sum(axis=-1).mean())

    best = loss(gamma, bonus)
    assert all(loss(gamma + a, bonus + b) > best for a, b in ((0.05, 0), (-0.05, 0), (0, 0.05), (0, -0.05)))
    rule = get(f"construction-softmax:{gamma!r}:direct_path=false")
    law = read_out_law(tokens, copied, ReadOut(gamma, 0.0))
    np.testing.assert_allclose(rule.predict_proba(tokens), law, atol=1e-12)


def committed_table(name: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / "data" / "study" / f"{name}.csv")


def test_the_committed_match_mass_does_not_change_in_its_second_half() -> None:
    row = committed_table("match_mass_change").query("from_length == 50").iloc[0]
    assert -0.004 <= row.ci_low <= row.difference <= row.ci_high <= 0.004


def test_the_committed_refits_are_the_known_ones() -> None:
    table = committed_table("refitted_readout").set_index(["attention", "read_out"])
    assert table.loc[("exact", "trained"), "regret_nats"].item() == pytest.approx(0.0469, abs=3e-4)
    assert table.loc[("exact", "refitted"), "regret_nats"].tolist() == pytest.approx([0.0256, 0.0287, 0.0337], abs=3e-4)
    assert table.loc[("exact", "refitted"), "gamma"].tolist() == pytest.approx([2.2, 2.2, 2.2], abs=0.1)


@pytest.mark.slow
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
