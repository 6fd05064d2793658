from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import statsmodels.regression.linear_model as linear

from icl_estimators.estimators import ContractError, get
from icl_estimators.experiments import observed_losses as losses_module
from icl_estimators.experiments.observed import checked_length, observed_risk, unchecked_line
from icl_estimators.experiments.observed_losses import observed_losses
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import ObservedSequences, elnino
from strange_rules import Changed, Flat, Foreseeing

LINE = np.array([0, 1, 1, 2, 0, 0, 1, 2, 2, 1, 0, 1])
RULES = ["construction-softmax", "add-one", "unigram", *(["transformer"] if shipped_checkpoint(3) else [])]


def data(*lines: Any, states: int = 3) -> ObservedSequences:
    return ObservedSequences("lines", tuple("ABCDEF"[:states]), tuple(np.array(line, dtype=np.int64) for line in lines))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("window", [None, 1, 4, 11, 50])
def test_each_token_is_predicted_from_those_before_it(
    rule: str, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses_module, "_BATCH", 3)
    estimator = get(rule)
    expected = []
    for n in range(1, len(LINE)):
        prefix = LINE[max(0, n - window) : n] if window else LINE[:n]  # fresh: nothing before the window is known
        prediction = estimator.predict_proba(prefix[None])[0, -1]
        expected.append(-math.log(prediction[LINE[n]]))
    np.testing.assert_allclose(observed_losses(estimator, LINE, window), expected, rtol=1e-5)


@pytest.mark.parametrize(("constant", "loss"), [(0.1, 0.65776), (0.5, 0.65685), (1, 0.66077), (2, 0.66946)])
def test_el_nino_has_its_known_losses(constant: float, loss: float) -> None:
    months = elnino()
    table = observed_risk([get(f"add-constant:{constant}")], months, window=100).frame()
    whole = table.iloc[0]
    assert whole.estimate == pytest.approx(loss, abs=5e-6)
    assert whole.estimator == f"add-constant:{constant}"
    assert table.iloc[1].estimator == f"add-constant:{constant}:window=100"
    assert table[["se", "ci_low", "ci_high", "band_low", "band_high"]].isna().all(axis=None)
    assert (table.note == "731 predictions; one series: no independent units, so no standard error").all()
    assert (table.context_length == "mean").all()
    assert (table.metric == "log_loss_nats").all()
    assert (table.n_chains == 1).all()


def test_the_counts_behind_the_known_losses() -> None:
    states = elnino().sequences[0]
    counts = np.zeros((3, 3), dtype=int)
    np.add.at(counts, (states[:-1], states[1:]), 1)
    assert counts.tolist() == [[199, 56, 0], [56, 187, 35], [0, 35, 163]]


@pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")
def test_a_trained_model_reads_the_window_alone() -> None:
    table = observed_risk([get("transformer"), get("add-one")], elnino(), window=100).frame()
    assert table.estimator.tolist() == ["transformer:window=100", "add-one", "add-one:window=100"]
    assert (np.abs(table.estimate - 0.66) < 0.1).all()


def test_the_mean_is_over_predictions_and_several_sequences_are_clusters() -> None:
    rng = np.random.default_rng(0)
    lines = [rng.integers(0, 3, size=size) for size in (5, 12, 2, 30, 9, 1)]
    losses = [observed_losses(get("unigram"), line) for line in lines]
    row = observed_risk([get("unigram")], data(*lines), window=50).frame().iloc[0]
    pooled = np.concatenate(losses)
    groups = np.repeat(np.arange(5), [len(loss) for loss in losses if len(loss)])
    assert row.estimate == pytest.approx(pooled.mean(), rel=1e-12)
    assert (row.n_chains, row.n_sequences) == (5, 5)  # a sequence of one token has nothing to predict
    assert row.note == "53 predictions"
    # The linearised standard error of a ratio, clustered: OLS on a constant with G/(G − 1).
    fit = linear.OLS(pooled, np.ones(len(pooled))).fit()
    residual = np.bincount(groups, weights=pooled - pooled.mean())
    expected = math.sqrt(5 / 4 * (residual**2).sum()) / len(pooled)
    assert fit.params[0] == pytest.approx(row.estimate)
    assert row.se == pytest.approx(expected, rel=1e-12)
    assert row.ci_high - row.estimate == pytest.approx(2.7764451 * row.se, rel=1e-7)


def test_an_infinite_loss_is_inf_and_counted() -> None:
    table = observed_risk([get("bigram")], data([0, 0, 1, 0, 1], [1, 1, 0, 0, 0]), window=9).frame()
    assert np.isposinf(table.estimate).all()
    assert table.note[0] == "8 predictions; infinite in 2 of them"
    assert np.isnan(table.se).all()


def test_equal_sequences_have_no_spread() -> None:
    table = observed_risk([get("add-one")], data(LINE, LINE), window=9).frame()
    assert (table.se == 0).all()
    assert (table.ci_low == table.ci_high).all()


def test_a_look_at_the_next_token_is_found_out() -> None:
    with pytest.raises(ContractError, match="foreseeing: not causal"):
        observed_risk([Foreseeing()], data(LINE), window=5)


def test_a_look_ahead_in_long_histories_alone_is_found_out() -> None:
    rng = np.random.default_rng(0)
    short, long = data(rng.integers(0, 3, size=20)), data(LINE, rng.integers(0, 3, size=90))
    observed_risk([Foreseeing(after=30)], short, window=5)
    with pytest.raises(ContractError, match="foreseeing: not causal: its prediction at context length"):
        observed_risk([Foreseeing(after=30)], long, window=5)  # which has the whole history too


def test_causality_is_tried_on_as_many_tokens_as_an_estimator_is_given_up_to_a_limit_that_is_said() -> None:
    class Windowed(Flat):
        windowed = True

    rng = np.random.default_rng(0)
    rule, long = get("add-one"), data(LINE, rng.integers(0, 3, size=5001))
    assert checked_length(rule, data(LINE), 5) == len(LINE) - 1
    assert checked_length(Windowed(), data(LINE), 5) == 5
    assert checked_length(rule, long, 5) == 4096
    assert unchecked_line([rule], data(LINE), 5) == ()
    assert unchecked_line([Windowed()], long, 100) == ()
    assert unchecked_line([Windowed(), rule], long, 100) == (
        "lines: that no estimator looks ahead is checked on 4,096 tokens; the longest history has 5,000",
    )


def breaking(at: list[int], last: Any) -> Changed:
    """Return an estimator that gives `last` after some tokens; it fails there if that is None."""

    def change(tokens: np.ndarray, out: np.ndarray) -> np.ndarray:
        for row, line in enumerate(tokens.tolist()):
            if line == at:
                if last is None:
                    raise LookupError("no such page")
                out[row, -1] = last
        return out

    return Changed(change, "breaking")


def test_a_failure_is_named_with_its_sequence() -> None:
    lines = data([0, 1, 0, 1], [0, 1, 2, 0, 1, 2])
    with pytest.raises(ContractError, match="breaking failed on sequence 2 of lines: LookupError: no such page"):
        observed_risk([breaking([0, 1, 2, 0, 1], None)], lines, window=9)
    expected = "breaking: the prediction for sequence 2 of lines at context length 5 has a negative entry"
    with pytest.raises(ContractError, match=expected):
        observed_risk([breaking([0, 1, 2, 0, 1], [1.5, -0.5, 0.0])], lines, window=9)
    expected = "sequence 2 of lines, the window that ends at position 5 at context length 3 sums to 1.1, not 1"
    with pytest.raises(ContractError, match=expected):
        observed_risk([breaking([2, 0, 1], [0.5, 0.6, 0.0])], lines, window=3)


def test_an_estimator_for_other_states_is_refused() -> None:
    with pytest.raises(ContractError, match="n_states is 2, but 3 states were asked for"):
        observed_risk([get("bigram", n_states=2)], data(LINE), window=5)


def test_a_sequence_of_one_token_has_no_losses() -> None:
    assert observed_losses(get("bigram"), np.array([1])).shape == (0,)
