from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icl_estimators.api import compare, identify_estimator
from icl_estimators.estimators import get
from icl_estimators.estimators.own_runs import training_runs
from icl_estimators.estimators.registry import is_own
from icl_estimators.experiments.cost import cost_line, planned_sequences
from icl_estimators.experiments.study import Study
from strange_rules import Flat

SMALL: dict[str, Any] = {"chains": 20, "sequences_per_chain": 1, "length": 12}


class Counting(Flat):
    """Counts the sequences that it is asked for."""

    name = "counting"

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        self.asked += len(tokens)
        return super().predict_proba(tokens)


def test_a_small_comparison_asks_a_model_of_ones_own_for_little() -> None:
    rule = Counting()
    study = Study.build([rule], warn=print, **SMALL)
    checked = rule.asked  # by the contract, before
    planned = planned_sequences(study)
    result = compare([rule], **SMALL)
    asked = rule.asked - 2 * checked
    assert sum(planned.values()) <= 1300
    assert 0.8 * sum(planned.values()) <= asked <= 1.2 * sum(planned.values()) + 50
    options = result.run["options"]
    assert (options["decomposition_chains"], options["decomposition_sequences"]) == (5, 64)


def test_the_packages_own_rules_keep_their_designs() -> None:
    study = Study.build("add-one,transformer", warn=print, **SMALL)
    planned = planned_sequences(study)
    assert (planned["exact"], planned["decomposition"], planned["fitting"]) == (3**8, 500 * 64, 1000)
    assert not study.has_own
    assert cost_line(study) is None


def test_what_is_given_is_done() -> None:
    study = Study.build([Flat()], warn=print, decomposition_chains=7, decomposition_sequences=3, **SMALL)
    assert planned_sequences(study)["decomposition"] == 21


def test_a_full_study_of_a_model_of_ones_own_is_announced(recwarn: pytest.WarningsRecorder) -> None:
    study = Study.build([Flat()], warn=print)
    line = cost_line(study)
    assert line is not None
    assert line.startswith("mine: about ")
    assert "sequences of up to 100 tokens will be asked for (budget 80,000, decomposition 32,000, " in line
    assert planned_sequences(study)["exact"] == 3**8
    with pytest.warns(UserWarning, match=r"mine: about [\d,]+ sequences of up to 2 tokens will be asked for"):
        compare([Flat()], chains=200, sequences_per_chain=100, length=2, decomposition_chains=60)


def test_exact_checks_can_be_switched_off() -> None:
    result = compare("add-one,bigram", exact_checks=False, chains=20, length=5, decomposition_chains=0)
    assert not result.checks.check.str.startswith("exact:").any()
    assert (result.budget.method == "monte-carlo").all()
    assert result.run["options"]["exact_checks"] is False
    found = identify_estimator("unigram", exact_checks=False, chains=20, length=5)
    assert (found.budget.method == "monte-carlo").all()


def test_what_wraps_a_model_of_ones_own_is_ones_own() -> None:
    import torch

    from icl_estimators.estimators.model import from_torch

    assert is_own(Flat())
    assert is_own(training_runs({"flat": [Flat(), Flat()]})[0])
    assert is_own(from_torch(torch.nn.Embedding(3, 3), n_states=3))
    assert not is_own(get("construction"))
