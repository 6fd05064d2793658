from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icl_estimators.experiments.observed_study import ObservedStudy
from icl_estimators.sources import ObservedSequences
from icl_estimators.validation import InputError

COIN = ObservedSequences("coin", ("a", "b"), (np.array([0, 1, 1, 0]), np.array([0, 0, 1]), np.array([1, 0])))


def test_a_study_says_what_decides_its_numbers() -> None:
    study = ObservedStudy.build(COIN, "uniform,bayes", warn=print, concentration=0.5, length=2)
    record = study.record()
    assert record["estimators"] == ["uniform", "bayes", "add-one"]
    assert (record["reference"], record["concentration"], record["length"], record["level"]) == (
        "add-one",
        0.5,
        2,
        0.95,
    )
    assert (record["n_sequences"], record["n_predictions"], record["longest_history"], record["states"]) == (3, 6, 3, 2)
    other = ObservedSequences("coin", ("a", "b"), (np.array([0, 1, 1, 1]), *COIN.sequences[1:]))
    changed = ObservedStudy.build(other, "uniform", warn=print).record()
    assert changed["data_sha256"] != record["data_sha256"]
    result = study.run()
    assert list(result.tables) == [
        *("risk", "differences", "pairs", "series", "cumulative"),
        *("transitions", "concentration", "concentration_profile", "orders", "likelihood_ratio"),
    ]
    assert result.run["options"] == record
    row = result.risk.query("estimator == 'uniform'")
    assert row.estimate.tolist() == pytest.approx([np.log(2.0)])


@pytest.mark.parametrize(
    ("estimators", "options", "message"),
    [
        ("uniform", {"states": 3}, "coin has 2 states, not 3: leave --states out"),
        ("bayes", {}, "bayes needs --concentration on observed sequences: their prior is not known"),
        ("uniform", {"reference": "bayes"}, "bayes needs --concentration"),
        (
            "uniform",
            {"concentration": 0.5},
            "--concentration does not apply to observed sequences without bayes among the estimators: leave it out",
        ),
        ("nobody", {}, "unknown estimator 'nobody'"),
        ("uniform", {"folds": 2}, "--folds applies only with --pool: give both"),
        ("uniform", {"pool": True, "folds": 4}, "3 sequences cannot be divided into 4 folds: give fewer folds"),
        ("uniform", {"matrix": [[1.0]]}, "the matrix has shape 1 × 1, but the data have 2 states"),
    ],
)
def test_what_does_not_fit_the_data_is_refused(estimators: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        ObservedStudy.build(COIN, estimators, warn=print, dashes="--", **options)
    with pytest.raises(InputError, match=f"^{message.replace('--', '')}"):
        ObservedStudy.build(COIN, estimators, warn=print, **options)


def test_two_of_the_same_name_are_refused() -> None:
    with pytest.raises(InputError, match="two estimators are called uniform"):
        ObservedStudy.build(COIN, ["uniform", "uniform"], warn=print)


def test_pooled_rows_stand_beside_the_others_and_their_histories_are_recorded() -> None:
    study = ObservedStudy.build(COIN, "bigram,construction", warn=print, pool=True)
    assert study.folds == 3  # as many as there are sequences
    assert study.left_out == ("no pooled rows: construction (only rules of counts can carry them over)",)
    result = study.run()
    assert result.risk.estimator.tolist() == [
        *("bigram", "construction", "add-one"),
        *("bigram:pooled", "add-one:pooled", "bigram:folds=3", "add-one:folds=3"),
    ]
    assert result.run["histories"]["bigram:pooled"] == {"estimator": "bigram", "history": "pooled"}
    row = result.risk.set_index("estimator").loc["add-one:pooled"]
    assert np.isnan(row.se)
    assert "counts carry over from sequence to sequence" in row.note
    assert "given the counts of the other folds" in result.risk.set_index("estimator").loc["add-one:folds=3"].note
    compared = result.differences.set_index("estimator").reference
    assert compared["bigram:folds=3"] == "add-one:folds=3"
    assert set(result.orders.history) == {"alone", "pooled", "folds"}


def test_one_sequence_has_nothing_to_pool() -> None:
    alone = ObservedSequences("alone", ("a", "b"), (np.array([0, 1, 1]), np.array([0, 1])), groups=(0, 0))
    with pytest.raises(InputError, match="alone is one sequence, so that there is nothing to pool: omit pooling"):
        ObservedStudy.build(alone, "uniform", warn=print, pool=True)


def test_pieces_of_one_sequence_are_one_unit() -> None:
    pieces = (np.array([0, 1, 1, 0]), np.array([1, 0]), np.array([0, 0, 1]))
    whole = ObservedSequences("whole", ("a", "b"), pieces)
    cut = ObservedSequences("cut", ("a", "b"), pieces, groups=(0, 0, 1))
    rows = {data.name: ObservedStudy.build(data, "uniform", warn=print).run().risk for data in (whole, cut)}
    assert (rows["whole"].n_chains == 3).all()
    assert (rows["cut"].n_chains == 2).all()
    assert (rows["cut"].n_sequences == 3).all()
    np.testing.assert_array_equal(rows["whole"].estimate, rows["cut"].estimate)


def test_predictions_that_do_not_fit_in_memory_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icl_estimators.experiments.observed._LARGEST", 20)
    long = ObservedSequences("long", ("a", "b"), (np.array([0, 1] * 10),))
    study = ObservedStudy.build(long, "construction,bigram", warn=print, length=4)
    assert study.left_out == (
        "construction: no row for the whole history of 20 tokens, whose predictions would not fit in memory; the row "
        "of the last 4 tokens remains",
    )
    assert study.run().risk.estimator.tolist() == [
        *("construction:window=4", "bigram", "bigram:window=4", "add-one", "add-one:window=4"),
    ]


def test_progress_is_reported_row_by_row() -> None:
    told: list[tuple[str, int, int]] = []
    ObservedStudy.build(COIN, "uniform", warn=print).run(lambda *what: told.append(what))
    assert told == [("log loss", 1, 2), ("log loss", 2, 2)]
