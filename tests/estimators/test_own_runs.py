from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from icl_estimators.api import compare, effective_smoothing, identify_estimator
from icl_estimators.estimators import ContractError, check_estimator, get
from icl_estimators.estimators.capabilities import attention_of, recipe_of
from icl_estimators.estimators.own_runs import training_runs
from icl_estimators.validation import InputError
from strange_rules import Flat

CONSTANTS = (0.3, 0.5, 0.8)
SMALL: dict[str, Any] = {"chains": 60, "sequences_per_chain": 2, "length": 8}


def runs() -> list[Any]:
    return list(training_runs({"mine": [get(f"add-constant:{value}") for value in CONSTANTS]}))


def test_a_comparison_has_rows_of_the_recipe_and_its_training_variance() -> None:
    found = compare([*runs(), "add-one"], decomposition_chains=20, decomposition_sequences=4, **SMALL)
    risk = found.risk[(found.risk.metric == "regret_nats") & (found.risk.context_length == "mean")].set_index(
        "estimator"
    )
    of_runs = [risk.estimate[f"mine:{number}"] for number in (1, 2, 3)]
    assert risk.estimate["mine"] == pytest.approx(np.mean(of_runs))
    assert "mine:recipe" in risk.index
    assert risk.ci_high["mine:recipe"] > risk.ci_high["mine"]
    spread = found.decomposition.query("metric == 'training_variance' and context_length == 'mean'").set_index(
        "estimator"
    )
    assert spread.estimate["mine"] > 0
    assert found.run["options"]["recipes"] == {"mine": ["mine:1", "mine:2", "mine:3"]}


def test_pseudo_counts_are_pooled_over_the_runs() -> None:
    rows = effective_smoothing(runs(), by=["overall"], families=[], **SMALL).smoothing
    found = rows[rows.parameter == "pseudo_count"].set_index("estimator").estimate
    assert found["mine:1"] == pytest.approx(0.3)
    assert 0.3 < found["mine"] < 0.8
    assert found["mine:recipe"] == pytest.approx(np.exp(np.log(CONSTANTS).mean()))


def test_what_a_run_offers_is_offered_and_the_run_is_not_changed() -> None:
    first, second = get("construction"), get("construction:20")
    one, other = training_runs({"heads": [first, second]})
    tokens = np.array([[0, 1, 0]])
    assert attention_of(one, tokens) is not None
    assert (recipe_of(one), recipe_of(first), first.name) == ("heads", None, "construction")
    check_estimator(other, 3, tolerance=1e-12)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict_proba(tokens), first.predict_proba(tokens))
    assert not hasattr(one, "no_such_thing")


def test_identify_names_the_recipe() -> None:
    models = training_runs({"mine": [Flat(), Flat()]})
    found = identify_estimator(models[0], **SMALL)
    assert "mine:1" in found.summary()


@pytest.mark.parametrize(
    ("recipes", "message"),
    [
        ({}, "no training runs: give them by recipe"),
        ({"": [Flat(), Flat()]}, "a recipe needs a name, not ''"),
        ({"mine": [Flat()]}, "mine has 1 training run: give two or more"),
        ({"mine": []}, "mine has 0 training runs: give two or more"),
        ({"mine": [get("uniform"), get("uniform", n_states=2)]}, "the training runs of mine are for 2 and 3 states"),
    ],
)
def test_what_are_no_training_runs_is_refused(recipes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        training_runs(recipes)


def test_one_object_is_one_run() -> None:
    rule = Flat()
    with pytest.raises(InputError, match="mine has the same object twice, which is one training run"):
        training_runs({"mine": [rule, rule]})
    with pytest.raises(ContractError, match=r"mine: .* is a class, not an object of it"):
        training_runs({"mine": [rule, Flat]})  # type: ignore[list-item]
    with pytest.raises(ContractError, match="mine: 'uniform' lacks name, n_states or predict_proba"):
        training_runs({"mine": [rule, "uniform"]})  # type: ignore[list-item]
