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
    assert list(result.tables) == ["risk", "differences", "pairs"]
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
