from __future__ import annotations

import re

import pytest

from icl_estimators.api import Comparison, compare
from icl_estimators.engine.result import StudyResult
from icl_estimators.estimators import get
from icl_estimators.experiments.observed import observed_risk
from icl_estimators.reporting.terminal.comparison import summary_text
from icl_estimators.sources import elnino
from strange_rules import Leaning


def block(text: str, title: str) -> dict[str, list[str]]:
    """Return the rows under a title by estimator, cells split at two or more spaces."""
    part = text.split(title, 1)[1].split("\n\n")[0].strip("\n").split("\n")
    rows, pending = {}, ""
    for line in part[1:]:
        cells = re.split(r"\s{2,}", line.strip())
        if line.startswith(" "):
            rows[pending] = cells
        else:
            pending = cells[0]
            rows[pending] = cells[1:]
    return rows


def test_it_says_what_was_done(small: Comparison) -> None:
    assert small.summary().startswith(
        "230 chains × 3 sequences × 12 tokens; K = 3, α = 1, uniform start, seed 5; ± is half a 95 % interval, "
    )


def test_means_and_margins_are_those_of_the_table(small: Comparison, rules: tuple[str, ...]) -> None:
    rows = block(small.summary(), "KL(truth ‖ estimate), nats\n")
    names = [name for name in rows if name and not set(name) <= set("- ")]
    assert [name for name in names if name in rules] == list(rules)
    table = small.risk[(small.risk.estimator == "add-one") & (small.risk.metric == "kl_nats")]
    table = table.set_index("context_length")
    expected = []
    for label in ("mean", 1, 3, 12):
        row = table.loc[label]
        margin = f"{row.ci_high - row.estimate:.4f}".removeprefix("0")
        expected.append(f"{row.estimate:.4f} ±{margin}")
    assert rows["add-one"] == expected
    assert rows["bigram"][0] == "inf"


def test_infinite_shares_are_spelled_out(small: Comparison) -> None:
    text = small.summary()
    shares = block(text, "… share of sequences with KL = inf\n")
    assert shares["construction"][1].startswith("1.0000 ±")
    finite = block(text, "… mean over the sequences with finite KL\n")
    assert finite["construction"][1] == "–"
    assert "add-one" not in shares


def test_differences_have_a_verdict(small: Comparison) -> None:
    rows = block(small.summary(), "interval, nats\n")
    assert rows["unigram"][-1] == "worse"
    assert rows["bigram"] == ["undefined: KL is infinite with positive probability"]
    assert "add-one" not in rows


def test_the_verdict_follows_the_sign() -> None:
    options = {"chains": 100, "length": 8, "decomposition_chains": 0}
    better = compare(["add-one", "uniform"], reference="uniform", **options).summary()
    assert block(better, "interval, nats\n")["add-one"][-1] == "better"
    same = compare(["add-one", "bayes"], **options).summary()
    assert block(same, "interval, nats\n")["bayes"] == ["+0.0000 [+0.0000, +0.0000]", "identical"]


def test_a_stationary_start_has_no_regret_and_is_compared_by_kl() -> None:
    text = compare(["unigram", "add-one"], start="stationary", chains=60, length=4, decomposition_chains=0).summary()
    assert "Regret is not defined for these chains (the notes in the tables say why)." in text
    assert "stationary start" in text.split("\n")[0]
    assert re.search(r"unigram\s+[+-]\d\.\d{4} \[", text)


@pytest.mark.parametrize("length", [1, 2, 12, 13])
def test_the_last_context_length_is_always_shown(length: int) -> None:
    text = compare(["add-one"], chains=20, length=length, decomposition_chains=0, sequences_per_chain=1).summary()
    header = text.split("\n")[3].split("  ")
    shown = [n for n in (1, 3, 12) if n <= length]
    if length not in shown:
        shown.append(length)
    assert [cell.strip() for cell in header if cell.strip()] == ["mean over n", *(f"n = {n}" for n in shown)]


def test_training_runs_show_their_mean_and_their_recipe() -> None:
    text = compare(
        [Leaning("m:a", 0.1), Leaning("m:b", 1.0), "add-one"], chains=60, length=4, decomposition_chains=0
    ).summary()
    rows = block(text, "KL(truth ‖ estimate), nats\n")
    assert [name for name in rows if name.startswith("m")] == ["m:a", "m:b", "m", "m:recipe"]
    assert rows["m"][0] == rows["m:recipe"][0] == "inf"
    shares = block(text, "KL = inf\n")
    assert [name for name in shares if name.startswith("m")] == ["m:b", "m"]


def test_lines_stay_narrow_whatever_the_names(small: Comparison) -> None:
    assert max(map(len, small.summary().splitlines())) < 160


def test_observed_sequences_are_ordered_by_loss_and_say_why_there_is_no_interval() -> None:
    months = elnino()
    table = observed_risk([get("uniform"), get("add-one"), get("bigram")], months, window=50)
    options = {"data": "elnino", "n_predictions": 731, "labels": list(months.labels), "length": 50, "level": 0.95}
    lines = summary_text(StudyResult({"risk": table}, {}).records, {"options": options}).splitlines()
    assert lines[0] == "Log loss per prediction, nats: elnino, 731 predictions, states La Niña, neutral, El Niño"
    names = [line.split()[0] for line in lines if line[:1].isalpha() and "  " in line][1:]
    assert names == ["add-one", "add-one:window=50", "uniform", "uniform:window=50", "bigram", "bigram:window=50"]
    assert "No intervals: one series has no independent units." in lines


def test_it_names_the_nearest_rule_of_each_model() -> None:
    found = compare(
        [Leaning("leaning", 0.2, None), "unigram", "add-one"],
        chains=40,
        sequences_per_chain=2,
        length=8,
        decomposition_chains=0,
    )
    text = summary_text(found.records, found.run)
    row = found.nearest.iloc[0]
    rules = found.run["rules"]
    assert f"Nearest rule to leaning: {rules[row.rule]['display']}; {100 * row.estimate:.2g} % of the" in text
    assert f"Next: {rules[row.next_rule]['display']}, {100 * row.difference:.2g} [" in text
    assert "Nearest rule" not in summary_text({**found.records, "nearest": []}, found.run)
