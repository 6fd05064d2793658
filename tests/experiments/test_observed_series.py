from __future__ import annotations

import numpy as np
import pytest

from icl_estimators.estimators import get
from icl_estimators.experiments.observed import observed_losses_of, pooled_histories
from icl_estimators.experiments.observed_series import SHOWN_TOKENS, cumulative_table, series_table
from icl_estimators.sources import ObservedSequences, elnino


def test_the_last_sum_is_the_difference_of_the_means() -> None:
    rules = [get("add-one"), get("unigram"), get("bigram")]
    found = observed_losses_of(rules, elnino(), window=50)
    frame = cumulative_table(found, "add-one").frame()
    assert frame.reference.unique().tolist() == ["add-one", "add-one:window=50"]
    losses = {row.name: row.losses for row in found.rows}
    for name in ("unigram", "unigram:window=50"):
        rows = frame[frame.estimator == name]
        base = name.replace("unigram", "add-one")
        assert len(rows) == 400
        assert rows.prediction.iloc[[0, -1]].tolist() == [1, 731]
        assert rows.difference.iloc[-1] == pytest.approx((losses[name] - losses[base]).sum())
    assert np.isinf(frame[frame.estimator == "bigram"].difference.iloc[-1])


def test_other_folds_have_no_curve_for_they_know_later_sequences() -> None:
    data = ObservedSequences("x", ("a", "b"), tuple(np.array([0, 1, k % 2]) for k in range(6)))
    found = observed_losses_of(
        [get("add-one", n_states=2), get("uniform", n_states=2)], data, window=9, pooled=pooled_histories(data, 3)
    )
    assert set(cumulative_table(found, "add-one").frame().estimator) == {"uniform", "uniform:pooled"}


def test_only_the_first_tokens_are_kept() -> None:
    long = ObservedSequences("long", ("a", "b"), (np.zeros(1500, np.int64), np.ones(1500, np.int64)))
    frame = series_table(long).frame()
    assert len(frame) == SHOWN_TOKENS
    assert frame.state.iloc[[0, -1]].tolist() == ["a", "b"]
    assert frame.position.iloc[-1] == 500
