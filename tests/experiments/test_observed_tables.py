from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from nltk.lm import Lidstone
from scipy.stats import ttest_rel
from statsmodels.regression.linear_model import OLS

from icl_estimators.engine.result import StudyResult
from icl_estimators.estimators import get
from icl_estimators.experiments.observed_losses import observed_losses
from icl_estimators.experiments.observed_tables import observed_tables
from icl_estimators.notes import Code, Note
from icl_estimators.reporting.terminal.comparison import summary_text
from icl_estimators.sources import ObservedSequences, elnino
from icl_estimators.validation import InputError

RULES = ["add-one", "krichevsky-trofimov", "unigram"]


def data(*lines: Any, states: int = 3) -> ObservedSequences:
    return ObservedSequences("lines", tuple("ABCDEF"[:states]), tuple(np.array(line, dtype=np.int64) for line in lines))


def tables(rules: Sequence[str], what: ObservedSequences, window: int, **options: Any) -> dict[str, pd.DataFrame]:
    made = [get(rule, n_states=what.n_states) for rule in rules]
    options = {"reference": "add-one", **options}
    return {name: table.frame() for name, table in observed_tables(made, what, window=window, **options).items()}


def lines(seed: int = 0) -> ObservedSequences:
    rng = np.random.default_rng(seed)
    return data(*(rng.integers(0, 3, size=size) for size in (5, 12, 2, 30, 9, 1)))


def windowed(rule: str) -> np.ndarray:
    return observed_losses(get(rule), elnino().sequences[0], 100)


def test_one_series_has_the_standard_error_of_newey_and_west() -> None:
    rows = tables(RULES, elnino(), 100)["differences"].set_index(["estimator", "metric"])
    values = windowed("krichevsky-trofimov") - windowed("add-one")
    row = rows.loc["krichevsky-trofimov:window=100", "log_loss_nats"]
    lag = math.floor(4 * (731 / 100) ** (2 / 9))
    fit = OLS(values, np.ones(731)).fit(cov_type="HAC", cov_kwds={"maxlags": lag}, use_t=True)
    assert (row.reference, row.context_length) == ("add-one:window=100", "mean")
    assert row.difference == pytest.approx(fit.params[0], rel=1e-9)
    assert row.se == pytest.approx(fit.bse[0], rel=1e-9)
    np.testing.assert_allclose([row.ci_low, row.ci_high], fit.conf_int()[0], rtol=1e-9)
    assert row.note == "Diebold–Mariano, Newey–West with lag 6, t with 730 degrees of freedom"
    classical = rows.loc["krichevsky-trofimov:window=100", "log_loss_nats_lag_0"]
    test = ttest_rel(windowed("krichevsky-trofimov"), windowed("add-one"))
    np.testing.assert_allclose([classical.ci_low, classical.ci_high], test.confidence_interval(), rtol=1e-9)
    assert classical.difference / classical.se == pytest.approx(test.statistic, rel=1e-9)
    blocks = rows.loc["krichevsky-trofimov:window=100", "log_loss_nats_block_bootstrap"]
    assert blocks.difference == row.difference
    assert 0.7 * row.se < blocks.se < 1.3 * row.se
    assert blocks.ci_low < row.difference < blocks.ci_high


def test_a_growing_history_of_one_series_has_a_difference_but_no_interval() -> None:
    found = tables(RULES, elnino(), 100)
    rows = found["differences"].query("reference == 'add-one'").set_index("estimator")
    assert rows.loc["krichevsky-trofimov"].difference == pytest.approx(0.65685 - 0.66077, abs=1e-5)
    assert rows[["se", "ci_low", "ci_high", "correlation", "variance_reduction"]].isna().all(axis=None)
    assert (rows.note == Note(Code.GROWING_HISTORY)).all()
    pairs = found["pairs"]
    whole = pairs[~pairs.other.str.contains("window")]
    assert len(whole) == 3
    assert whole.tied.isna().all()
    assert (whole.note == Note(Code.GROWING_HISTORY)).all()


def test_like_is_compared_with_like() -> None:
    found = tables(RULES, elnino(), 100)
    for name, other in [("differences", "reference"), ("pairs", "other")]:
        frame = found[name]
        assert (frame.estimator.str.contains("window") == frame[other].str.contains("window")).all()
    pairs = found["pairs"].set_index(["estimator", "other"])
    row = pairs.loc["add-one:window=100", "krichevsky-trofimov:window=100"]
    assert row.tied is False or row.tied == False  # noqa: E712
    single = found["differences"].set_index(["estimator", "metric"])
    expected = single.loc["krichevsky-trofimov:window=100", "log_loss_nats"]
    assert row.difference == pytest.approx(-expected.difference, rel=1e-12)
    assert row.se == pytest.approx(expected.se, rel=1e-12)
    assert row.ci_low < -expected.ci_high


def test_several_sequences_are_clusters() -> None:
    what = lines()
    rows = tables(RULES, what, 50)["differences"].set_index("estimator")
    kept = [sequence for sequence in what.sequences if len(sequence) > 1]
    values = np.concatenate(
        [observed_losses(get("unigram"), line) - observed_losses(get("add-one"), line) for line in kept]
    )
    groups = np.repeat(np.arange(5), [len(line) - 1 for line in kept])
    fit = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    row = rows.loc["unigram"]
    assert row.difference == pytest.approx(fit.params[0], rel=1e-12)
    assert row.se == pytest.approx(fit.bse[0], rel=1e-9)
    np.testing.assert_allclose([row.ci_low, row.ci_high], fit.conf_int()[0], rtol=1e-9)
    assert row.note == "clustered on 5 sequences, t with 4 degrees of freedom"


def test_the_difference_is_that_of_nltk() -> None:
    what = data([0, 1, 1, 2, 0, 0, 1, 2, 2, 1, 0, 1], [2, 1, 0, 0, 1, 2, 2])
    row = tables(["add-one", "krichevsky-trofimov"], what, 50)["differences"].iloc[0]
    total = {1.0: 0.0, 0.5: 0.0}
    for sequence in what.sequences:
        words = [str(token) for token in sequence]
        for constant in total:
            for n in range(1, len(words)):
                model = Lidstone(constant, 2)
                model.fit([list(pairwise(words[:n]))], vocabulary_text=["0", "1", "2"])
                count = model.counts[[words[n - 1]]]
                chance = (count[words[n]] + constant) / (count.N() + 3 * constant)
                total[constant] -= math.log(chance)
    assert row.difference == pytest.approx((total[0.5] - total[1.0]) / 17, rel=1e-12)


def test_without_a_longer_sequence_there_is_one_row_each() -> None:
    found = tables(RULES, lines(), 29)
    assert found["risk"].estimator.tolist() == RULES
    assert found["differences"].estimator.tolist() == RULES[1:]
    assert len(found["pairs"]) == 3
    longer = tables(RULES, lines(), 28)
    assert len(longer["risk"]) == 6
    assert len(longer["pairs"]) == 6


def test_a_rule_that_reads_a_window_only_is_compared_where_it_can_be() -> None:
    class Windowed:
        name, n_states, windowed = "short", 3, True
        predict_proba = staticmethod(get("uniform").predict_proba)

    for window, reference in [(50, "add-one"), (10, "add-one:window=10")]:
        made = observed_tables([Windowed(), get("add-one")], lines(), reference="add-one", window=window)
        row = made["differences"].frame().iloc[0]
        assert (row.estimator, row.reference) == (f"short:window={window}", reference)
    made = observed_tables([Windowed(), get("add-one")], lines(), reference="short", window=10)
    rows = made["differences"].frame().set_index("estimator")
    assert (
        rows.loc["add-one"].note
        == "no difference: short reads only a window, so it has no whole history to compare with"
    )
    assert rows.loc["add-one:window=10"].reference == "short:window=10"


def test_twins_are_identical_with_or_without_a_law_for_their_difference() -> None:
    rules = ["krichevsky-trofimov", "add-constant:0.5", "add-one"]
    for what in (elnino(), lines()):
        found = tables(rules, what, 100, reference="krichevsky-trofimov")
        twins = found["differences"].query("estimator.str.startswith('add-constant')")
        assert twins.metric.eq("log_loss_nats").all()
        assert twins.note.eq(Note(Code.IDENTICAL)).all()
        assert twins[["difference", "se", "ci_low", "ci_high"]].eq(0).all(axis=None)
        pairs = found["pairs"]
        row = pairs[(pairs.note == Note(Code.IDENTICAL))]
        best = pairs.other.isin(["krichevsky-trofimov", "krichevsky-trofimov:window=100"])
        assert row.tied[best & (pairs.estimator != "add-one") & (what.name == "elnino")].eq(True).all()
        assert len(row) == (2 if what.name == "elnino" else 1)
        assert row.p_simultaneous.eq(1).all()


def test_an_infinite_loss_has_no_difference() -> None:
    found = tables(["bigram", *RULES], elnino(), 100)
    rows = found["differences"].set_index("estimator")
    assert np.isnan(rows.loc["bigram"].difference)
    assert rows.loc["bigram"].note == "no difference: bigram is infinite in 4 of 731 predictions"
    assert rows.loc["bigram:window=100"].isna().sum() == 7
    pairs = found["pairs"].set_index(["estimator", "other"])
    row = pairs.loc["bigram:window=100", "krichevsky-trofimov:window=100"]
    assert (row.tied, np.isnan(row.p_simultaneous)) == (False, True)


def test_a_window_that_is_rarely_full_is_no_sliding_window() -> None:
    series = np.random.default_rng(0).integers(0, 3, size=61)
    assert tables(RULES, data(series), 31)["differences"].query("reference.str.contains('window')").se.notna().all()
    rows = tables(RULES, data(series), 40)["differences"].query("reference.str.contains('window')")
    assert rows.se.isna().all()
    assert rows.note.str.contains("the window is full only from prediction 40 of 60").all()
    one = tables(RULES, data([0, 1]), 1)["differences"]
    assert one.note.tolist() == [Note(Code.IDENTICAL), "no interval: one prediction"]


def test_no_number_is_missing_without_a_reason() -> None:
    for what, window in [(elnino(), 100), (lines(), 10), (lines(), 100), (data([0, 1, 0]), 1)]:
        for name, frame in tables(["bigram", *RULES], what, window).items():
            if name in ("series", "cumulative"):  # whose columns are never empty
                continue
            numbers = frame.select_dtypes("number").drop(columns="rao_blackwell_factor", errors="ignore")
            assert not (numbers.isna().any(axis=1) & (frame.note == "")).any()


def test_the_summary_rests_on_pairs() -> None:
    options = {"data": "elnino", "n_predictions": 731, "labels": ["a"], "length": 100, "level": 0.95}
    made = [get(rule) for rule in ["add-one", "krichevsky-trofimov", "add-constant:0.5", "unigram"]]
    found = observed_tables(made, elnino(), reference="add-one", window=100)
    text = summary_text(
        StudyResult(found, {}).records, {"options": {**options, "reference": "add-one", "longest_history": 731}}
    )
    assert "Log loss minus that of add-one, like with like, paired by prediction" in text
    tied = "Tied with it: add-constant:0.5:window=100 (identical)."
    assert f"Smallest log loss: krichevsky-trofimov:window=100. {tied}" in text
    assert "Tied with it: add-constant:0.5 (identical). Without an interval: add-one, unigram." in text
    short = observed_tables(made, lines(), reference="add-one", window=100)
    text = summary_text(
        StudyResult(short, {}).records, {"options": {**options, "reference": "add-one", "longest_history": 29}}
    )
    assert "no history is longer than the window of 100 tokens" in text
    assert "window=" not in text


@pytest.mark.parametrize(
    ("rules", "options", "message"),
    [
        (["add-one", "add-one"], {}, "two estimators are called add-one: give each once"),
        (["unigram"], {}, "the reference add-one is not among the estimators: unigram"),
        (["add-one"], {"level": 1.5}, "level"),
    ],
)
def test_what_cannot_be_compared_is_refused(rules: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tables(rules, lines(), 10, **options)
